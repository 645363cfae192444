#pragma once

#include "gpumem/posttrain/impl/launch_others_inl.hpp"
#include "gpumem/posttrain/launch.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace gpumem::posttrain {

namespace launch_detail {

/// Source: open-instruct (2026-08), open_instruct/grpo_utils.py: GRPOExperimentConfig; data_loader.py: VLLMConfig,
/// StreamingDataLoaderConfig.
inline constexpr LaunchKey kOpenInstructKeys[] = {
    {"model_name_or_path", post, "actor_rollout_ref.model.path"},
    {"max_prompt_token_length", named},
    {"response_length", named},
    {"pack_length", named},
    {"per_device_train_batch_size", named},
    {"num_samples_per_prompt_rollout", named},
    {"num_unique_prompts_rollout", named},
    {"num_mini_batches", named},
    {"num_learners_per_node", named},
    {"num_nodes"},
    {"single_gpu_mode", named},
    {"load_ref_policy", named},
    {"beta"},
    {"use_vllm_logprobs", named},
    {"deepspeed_stage", named},
    {"deepspeed_offload_param", named},
    {"deepspeed_offload_optimizer", named},
    {"sequence_parallel_size", named},
    {"gradient_checkpointing"},  // on, whatever is said
    {"model_dtype", not_modelled, "bfloat16"},
    {"record_entropy", not_modelled, "false"},  // a second tensor of logits' size
    {"deepspeed_zpg", named},
    {"fsdp_*", not_modelled},
    {"vllm_gpu_memory_utilization", post, "actor_rollout_ref.rollout.gpu_memory_utilization"},
    {"vllm_tensor_parallel_size", post, "actor_rollout_ref.rollout.tensor_model_parallel_size"},
    {"vllm_enforce_eager", post, "actor_rollout_ref.rollout.enforce_eager"},
    {"vllm_num_engines"},
    {"use_peft", not_modelled, "false"},
    {"use_lora", not_modelled, "false"},
    {"env:PYTORCH_CUDA_ALLOC_CONF", named},
    {"env:*"},
    {"config"},
};
/// What changes no memory of open-instruct's.
inline constexpr std::string_view kOfOpenInstruct =
    "active_sampling add_bos additive_format_reward advantage_normalization_type alpha apply_* async_steps "
    "attn_implementation auto_* backend_timeout budget cache_dataset_only chat_template_name checkpoint_state_* clip_* "
    "cluster code_* collect_* config_name dataset_* deepspeed_checkpoint_load_universal description "
    "enable_* env eval_* exp_name filter_zero_std_samples fused_optimizer gather_whole_model gpus gs_* "
    "ground_truths_key "
    "hf_* image inflight_updates keep_last_n_checkpoints kl_estimator learning_rate llm_judge_* local_eval_every "
    "loss_denominator loss_fn lr_scheduler_type mask_* max_active_rubrics max_grad_norm max_length_verifier_* "
    "max_steps "
    "max_tool_calls mcp_* no_* non_stop_penalty* num_epochs num_evals num_training_steps oe_* only_reward_* output_dir "
    "pool_size preemptible priority pure_docker_mode push_to_hub queue_* ref_policy_update_freq "
    "remap_verifier rollouts_save_path reward_* rho_* run_name save_* search_* secret seed send_slack_alerts "
    "set_weight_decay_on_bias_and_norm shuffle_eval_dataset sft_messages_key stop_strings system_prompt_* task_name "
    "temperature timeout tokenizer_* tool_* tools total_episodes truncated_importance_sampling_ratio_cap try_* "
    "use_rho_correction use_slow_tokenizer verbose verification_reward vllm_attention_backend "
    "vllm_enable_prefix_caching vllm_sync_backend vllm_top_p wandb_* warm_up_steps warmup_ratio weight_decay "
    "with_tracking "
    "workspace world_size";

/// Source: PRIME-RL (2026-08), packages/prime-rl-configs: configs/trainer.py, rl.py, shared.py.
inline constexpr LaunchKey kPrimeRlKeys[] = {
    {"trainer.model.name", named},
    {"model.name", named},
    {"trainer.model.seq_len", named},
    {"seq_len", named},
    {"trainer.model.ac", named},
    {"trainer.model.ac.mode", not_modelled, "full"},
    {"trainer.model.ac.freq", not_modelled, "1"},
    {"trainer.model.ac.*"},
    {"trainer.model.ac_offloading", named},
    {"trainer.model.ac_offloading.*"},
    {"trainer.model.optim_cpu_offload", named},
    {"trainer.model.fsdp_cpu_offload", post, "actor_rollout_ref.actor.fsdp_config.offload_policy"},
    {"trainer.model.full_offload*", not_modelled, "false"},
    {"trainer.model.reshard_after_forward", post, "actor_rollout_ref.actor.fsdp_config.reshard_after_forward"},
    {"trainer.model.dp_replicate", named},
    {"trainer.model.ep", named},
    {"trainer.model.cp", named},
    {"trainer.model.optimization_dtype", named},
    {"trainer.model.reduce_dtype", not_modelled, "float32"},
    {"trainer.model.quantization*", not_modelled},
    {"trainer.model.moe_fused_kernel", not_modelled, "false"},
    {"trainer.model.freeze_moe_router", not_modelled, "false"},
    {"trainer.model.compile*", named},
    {"trainer.model.lora.rank", named},
    {"trainer.model.lora.target_modules", named},
    {"trainer.model.lora.modules_to_save", not_modelled},
    {"trainer.model.lora.*"},
    {"trainer.model.lora", named},
    {"trainer.model.fused_lm_head_token_chunk_size", named},
    {"trainer.model.vlm.*", not_modelled},
    {"trainer.model.debug.*", not_modelled},
    {"trainer.model.*"},
    {"model.vlm.*", not_modelled},
    {"trainer.optim.type", named},
    {"trainer.data.fake*", not_modelled},
    {"trainer.enable_router_replay", not_modelled, "false"},
    {"trainer.*"},
    {"deployment.type", named},
    {"deployment.num_train_gpus", named},
    {"deployment.num_train_nodes", named},
    {"deployment.gpus_per_node", named},
    {"deployment.nodes_per_fsdp_group", named},
    {"deployment.*"},
    {"orchestrator.seq_len"},
    {"orchestrator.group_size", post, "actor_rollout_ref.rollout.n"},
    {"orchestrator.rollouts_per_example", post, "actor_rollout_ref.rollout.n"},  // until 2026
    {"orchestrator.train.sampling.max_completion_tokens", named},
    {"orchestrator.*"},
    {"inference.vllm.gpu_memory_utilization", post, "actor_rollout_ref.rollout.gpu_memory_utilization"},
    {"inference.vllm.max_model_len", post, "actor_rollout_ref.rollout.max_model_len"},
    {"inference.vllm.tensor_parallel_size", post, "actor_rollout_ref.rollout.tensor_model_parallel_size"},
    {"inference.vllm.enforce_eager", post, "actor_rollout_ref.rollout.enforce_eager"},
    {"inference.*"},
    {"env_vars.PYTORCH_CUDA_ALLOC_CONF", named},
    {"env:PYTORCH_CUDA_ALLOC_CONF", named},
    {"env:*"},
};
/// What changes no memory of PRIME-RL's.
inline constexpr std::string_view kOfPrimeRl =
    "bench ckpt.* clean dry_run env_vars.* inference log.* max_steps model.trust_remote_code monitors.* output_dir "
    "renderer.* resume.* rollout_transport.* run.* slurm.* tokenizer.* wandb.* weight_broadcast.*";

/// Restates the settings of programs that generate on GPUs of their own as verl's: open-instruct's GRPO and PRIME-RL.
class ApartReader : private RestatingReader {
 public:
  ApartReader(Program program, std::span<const LaunchSetting> settings)
      : RestatingReader(program, settings,
                        program == Program::open_instruct ? KnownKeys{kOpenInstructKeys, kOfOpenInstruct}
                                                          : KnownKeys{kPrimeRlKeys, kOfPrimeRl}) {}

  [[nodiscard]] RestatedSettings read() {
    made_.program = program_;
    take_all();
    say("algorithm.adv_estimator", std::string("grpo"));
    train_in_megatron(false);
    program_ == Program::open_instruct ? read_open_instruct() : read_prime();
    put("env:PYTORCH_CUDA_ALLOC_CONF", first({"env:PYTORCH_CUDA_ALLOC_CONF", "env_vars.PYTORCH_CUDA_ALLOC_CONF"}));
    return std::move(made_);
  }

 private:
  /// "2 4": of each node, which the settings join by '+'.
  std::int64_t learners() {
    std::int64_t all = 0;
    std::string_view rest = value("num_learners_per_node");
    if (rest.empty()) return 1;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find_first_of("+ ,"), rest.size());
      const auto one = core::parse_whole(rest.substr(0, end));
      if (!one || *one < 0 || *one > INT32_MAX) {
        number("num_learners_per_node");
        return std::max<std::int64_t>(all, 1);
      }
      all = core::bounded_sum({all, *one});
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return std::max<std::int64_t>(all, 1);
  }

  /// DeepSpeed over the learners, rows of `pack_length` tokens, every block computed again, log-probabilities by a
  /// compiled function; a reference that is sharded by stage 3 alone. Source: open-instruct (2026-08),
  /// open_instruct/grpo_fast.py: PolicyTrainerRayProcess.from_pretrained; model_utils.py: log_softmax_and_gather.
  void read_open_instruct() {
    constexpr std::int64_t kShort = 256;
    constexpr std::int64_t kPack = 512;
    constexpr std::int64_t kGroup = 4;
    constexpr std::int64_t kPrompts = 16;
    const std::int64_t stage = number("deepspeed_stage");
    const bool optimizer = on("deepspeed_offload_optimizer");
    const bool offloads = optimizer || on("deepspeed_offload_param");
    if (on("deepspeed_offload_param") && !optimizer) made_.not_modelled.emplace_back("deepspeed_offload_param true");
    say("deepspeed_config_file", "zero" + std::to_string(stage) + (offloads && optimizer ? "_offload" : ""));
    train_on(learners());
    say("actor_rollout_ref.model.enable_gradient_checkpointing", true);
    put(joined(kActor, "ulysses_sequence_parallel_size"), "sequence_parallel_size");
    say("data.max_prompt_length", std::max<std::int64_t>(number("max_prompt_token_length", kShort), 1));
    say("data.max_response_length", std::max<std::int64_t>(number("response_length", kShort), 1));
    const std::int64_t rows = std::max<std::int64_t>(number("per_device_train_batch_size", 1), 1);
    const std::int64_t tokens = core::bounded_product({number("pack_length", kPack), rows});
    pack(tokens, tokens);
    const std::int64_t each = std::max<std::int64_t>(number("num_samples_per_prompt_rollout", kGroup), 1);
    const std::int64_t minis = std::max<std::int64_t>(number("num_mini_batches", 1), 1);
    say(joined(kRollout, "n"), each);
    step(core::bounded_product({number("num_unique_prompts_rollout", kPrompts), each}) / minis, each);
    made_.old_log_probs = minis > 1 && !on("use_vllm_logprobs");  // grpo_fast.py: step
    generate("vllm", !on("single_gpu_mode"), 0);
    say(joined(kActor, "use_kl_loss"), on("load_ref_policy", true));
    made_.whole_reference = stage != 3;
    if (stage == 3 && number("deepspeed_zpg", 8) > 1) {
      made_.decided.emplace_back(
          "the second copy of the weights that deepspeed_zpg spreads over a node is not counted");
    }
  }

  /// FSDP2 over float32 shards that compute in bfloat16, one row of `seq_len` tokens a pass, a head and a loss of some
  /// tokens at a time; what waits on the host is so by default since 2026-08. No reference: a completion's older
  /// log-probabilities are the engine's. Source: PRIME-RL (2026-08), src/prime_rl/trainer/model.py: setup_fsdp;
  /// trainer/rl/train.py; trainer/optim/state_offload.py (states come for the step alone).
  void read_prime() {
    constexpr std::int64_t kRow = 2048;
    constexpr std::int64_t kOfNode = 8;
    put("actor_rollout_ref.model.path", first({"trainer.model.name", "model.name"}));
    const std::int64_t row = number("trainer.model.seq_len", number("seq_len", kRow));
    pack(std::max<std::int64_t>(row, 1), 0);
    const std::int64_t completion = number("orchestrator.train.sampling.max_completion_tokens", row / 2);
    const std::int64_t generated = std::max<std::int64_t>(std::min(completion, row - 1), 1);
    say("data.max_response_length", generated);
    say("data.max_prompt_length", std::max<std::int64_t>(row - generated, 1));
    const std::int64_t nodes = number("deployment.num_train_nodes");
    const std::int64_t gpus = nodes > 0 ? core::bounded_product({nodes, number("deployment.gpus_per_node", kOfNode)})
                                        : std::max<std::int64_t>(number("deployment.num_train_gpus", 1), 1);
    train_on(gpus);
    const std::int64_t groups = std::max<std::int64_t>(number("deployment.nodes_per_fsdp_group"), 0);
    const std::int64_t copies = groups > 0 ? std::max<std::int64_t>(nodes / groups, 1)
                                           : std::max<std::int64_t>(number("trainer.model.dp_replicate", 1), 1);
    if (copies > 1) say(joined(kActor, "fsdp_config.fsdp_size"), std::max<std::int64_t>(gpus / copies, 1));
    put(joined(kActor, "ulysses_sequence_parallel_size"), "trainer.model.cp");
    if (value("trainer.model.ep") != "auto") {
      put(joined(kActor, "megatron.expert_model_parallel_size"), "trainer.model.ep");
    }
    if (value("trainer.model.optimization_dtype") == "bfloat16") {
      say(joined(kActor, "fsdp_config.model_dtype"), std::string("bf16"));
    }
    prime_saves();
    const std::string adapters = "trainer.model.lora.";
    constexpr std::int64_t kRank = 16;
    if (says(adapters) || says("trainer.model.lora")) adapt(adapters + "rank", kRank, adapters + "target_modules");
    generate("vllm", true, 0);
    say(joined(kActor, "use_kl_loss"), false);
  }
  /// What takes time or the host's memory in place of the GPU's.
  void prime_saves() {
    const auto off = [&](std::string_view key) { return is_said_off(value(key)); };
    if (!off("trainer.model.compile")) {
      made_.decided.emplace_back(
          "trainer.model.compile is on unless it is given as None; blocks are counted as PyTorch's own calls keep "
          "them");
    }
    const bool offloads = !off("trainer.model.ac_offloading");
    // trainer.py: ac_offloading_requires_ac turns checkpointing on.
    say("actor_rollout_ref.model.enable_gradient_checkpointing", offloads || !off("trainer.model.ac"));
    say("actor_rollout_ref.model.enable_activation_offload", offloads);
    const bool states = on("trainer.model.optim_cpu_offload",
                           !says("trainer.model.full_offload") && !on("trainer.model.fsdp_cpu_offload"));
    say(joined(kActor, "fsdp_config.optimizer_offload"), states);
    if (value("trainer.model.optim_cpu_offload").empty() && states) {
      made_.decided.emplace_back(
          "optim_cpu_offload and ac_offloading are on unless they are given, as in PRIME-RL of "
          "2026-08; older releases have neither");
    }
    const std::string_view type = value("trainer.optim.type");
    if (!type.empty() && type != "adamw") say("optim", std::string(type));
    else say("optim", std::string(states ? "adamw_torch" : "adamw_torch_fused"));
    say("actor_rollout_ref.model.use_fused_kernels",
        value("trainer.model.fused_lm_head_token_chunk_size") != "disabled");
  }
  static bool is_said_off(std::string_view word) { return !word.empty() && is_false(word); }
};

}  // namespace launch_detail

}  // namespace gpumem::posttrain
