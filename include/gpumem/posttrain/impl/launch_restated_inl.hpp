#pragma once

#include "gpumem/core/bytes.hpp"
#include "gpumem/posttrain/impl/launch_setting_inl.hpp"
#include "gpumem/posttrain/launch.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpumem::posttrain {

namespace launch_detail {

/// Source: AReaL (2026-05), areal/api/cli_args.py and examples. Each engine has the same settings.
inline constexpr LaunchKey kArealKeys[] = {
    {"actor.path", post, "actor_rollout_ref.model.path"},
    {"critic.path", post, "critic.model.path"},
    {"actor.backend", named},
    {"allocation_mode", named},
    {"rollout.backend", named},
    {"rollout.scheduling_strategy.type", named},
    {"rollout.scheduling_strategy.target", named},
    {"actor.gradient_checkpointing", post, "actor_rollout_ref.model.enable_gradient_checkpointing"},
    {"actor.dtype", named},
    {"actor.grad_reduce_dtype", not_modelled, "float32"},
    {"actor.attn_impl", not_modelled, "flash_attention_2"},
    {"actor.is_critic"},
    {"actor.mb_spec.max_tokens_per_mb", named},
    {"actor.mb_spec.n_mbs", named},
    {"actor.mb_spec.*"},
    {"actor.pad_to_maximum", not_modelled, "false"},
    {"actor.use_lora", named},
    {"actor.lora_rank", named},
    {"actor.target_modules", named},
    {"actor.peft_type", not_modelled, "lora"},
    {"actor.optimizer.type", not_modelled, "adam"},
    {"actor.fsdp.offload_params", post, "actor_rollout_ref.actor.fsdp_config.offload_policy"},
    {"actor.fsdp.per_layer_optim_step", not_modelled, "false"},
    {"actor.fsdp.wrap_policy*", not_modelled},
    {"actor.archon.offload_params", post, "actor_rollout_ref.actor.fsdp_config.offload_policy"},
    {"actor.archon.ac_mode", not_modelled, "full"},
    {"actor.archon.fp8_config.*", not_modelled},
    {"actor.archon.*"},
    {"actor.megatron.recompute_granularity", named},
    {"actor.megatron.recompute_method", not_modelled, "uniform"},
    {"actor.megatron.recompute_num_layers", not_modelled, "1"},
    {"actor.megatron.recompute_modules", not_modelled},
    {"actor.megatron.ddp.use_distributed_optimizer", not_modelled, "true"},
    {"actor.megatron.ddp.grad_reduce_in_fp32", not_modelled, "true"},
    {"actor.megatron.fp8_config.*", not_modelled},
    {"actor.megatron.ddp.fp8_param_gather", not_modelled, "false"},
    {"actor.megatron.virtual_pipeline_parallel_size", not_modelled, "1"},
    {"actor.megatron.main_*", not_modelled, "float32"},
    {"actor.megatron.exp_*", not_modelled, "float32"},
    {"actor.megatron.moe_token_dispatcher_type", not_modelled, "alltoall"},
    {"actor.megatron.moe_enable_deepep", not_modelled, "false"},
    {"actor.megatron.*"},
    {"actor.enable_tree_training", not_modelled, "false"},
    {"actor.kl_ctl", named},
    {"actor.ppo_n_minibatches", named},
    {"actor.recompute_logprob", not_modelled, "true"},
    {"actor.offload", named},
    {"actor.scheduling_strategy.type", named},
    {"actor.scheduling_strategy.target", named},
    {"enable_offload"},
    {"ref.offload", post, "actor_rollout_ref.ref.fsdp_config.param_offload"},
    {"ref.path"},
    {"ref.backend", named},
    {"ref.scheduling_strategy.type", named},
    {"ref.dtype", named},
    {"ref.mb_spec.max_tokens_per_mb", named},
    {"ref.*"},
    {"critic.scheduling_strategy.type", named},
    {"critic.*"},
    {"teacher.*", not_modelled},
    {"actor.*"},
    {"gconfig.n_samples", post, "actor_rollout_ref.rollout.n"},
    {"gconfig.max_new_tokens", post, "data.max_response_length"},
    {"gconfig.max_tokens", named},
    {"train_dataset.max_length", named},
    {"train_dataset.batch_size", named},
    {"train_dataset.type", named},
    {"dynamic_bs"},
    {"sglang.mem_fraction_static", named},
    {"sglang.context_length", named},
    {"sglang.max_running_requests", named},
    {"sglang.disable_cuda_graph", named},
    {"sglang.kv_cache_dtype", not_modelled, "auto"},
    {"sglang.torchao_config", not_modelled},
    {"sglang.*"},
    {"vllm.gpu_memory_utilization", named},
    {"vllm.max_model_len", named},
    {"vllm.max_num_seqs", named},
    {"vllm.enforce_eager", named},
    {"vllm.*"},
    {"cluster.*"},
    {"gconfig.*"},
    {"eval_gconfig.*"},
    {"rollout.*"},
    {"eval_rollout.*"},
    {"train_dataset.*"},
    {"valid_dataset.*"},
    {"env:PYTORCH_CUDA_ALLOC_CONF", named},
    {"env:*"},
    {"config"},
};

/// Source: ROLL (2026-08), roll/configs/base_config.py, worker_config.py and examples.
inline constexpr LaunchKey kRollKeys[] = {
    {"defaults"},  // environments
    {"pretrain", post, "actor_rollout_ref.model.path"},
    {"reward_pretrain"},
    {"actor_train.model_args.model_name_or_path", post, "actor_rollout_ref.model.path"},
    {"actor_train.model_args.disable_gradient_checkpointing", named},
    {"actor_train.model_args.dtype", not_modelled, "bf16"},
    {"actor_train.model_args.lora_rank", named},
    {"actor_train.model_args.lora_target", named},
    {"actor_train.model_args.ulysses_size", post, "actor_rollout_ref.actor.ulysses_sequence_parallel_size"},
    {"actor_train.model_args.attn_implementation", not_modelled, "fa2"},
    {"actor_train.model_args.flash_attn", not_modelled, "fa2"},
    {"actor_train.model_args.freeze_module_prefix", named},
    {"actor_train.model_args.*"},
    {"actor_train.training_args.per_device_train_batch_size", post,
     "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"},
    {"actor_train.training_args.gradient_accumulation_steps", post, "gradient_accumulation_steps"},
    {"actor_train.training_args.*"},
    {"actor_train.infer_batch_size", post, "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu"},
    {"reference.infer_batch_size", post, "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu"},
    {"actor_train.use_dynamic_batching_in_train", post, "actor_rollout_ref.actor.use_dynamic_bsz"},
    {"actor_train.max_tokens_per_microbatch_in_train", named},
    {"actor_train.max_tokens_per_microbatch_in_infer", named},
    {"actor_train.use_sequence_packing", named},
    {"actor_train.sequence_packing_args.*", named},
    {"actor_train.strategy_args.strategy_name", named},
    {"actor_train.strategy_args.strategy_config.tensor_model_parallel_size", named},
    {"actor_train.strategy_args.strategy_config.pipeline_model_parallel_size", named},
    {"actor_train.strategy_args.strategy_config.context_parallel_size", named},
    {"actor_train.strategy_args.strategy_config.expert_model_parallel_size", named},
    {"actor_train.strategy_args.strategy_config.expert_tensor_parallel_size", named},
    {"actor_train.strategy_args.strategy_config.sequence_parallel", named},
    {"actor_train.strategy_args.strategy_config.recompute_granularity", named},
    {"actor_train.strategy_args.strategy_config.recompute_modules", not_modelled},
    {"actor_train.strategy_args.strategy_config.moe_layer_recompute", not_modelled, "false"},
    {"actor_train.strategy_args.strategy_config.use_distributed_optimizer", not_modelled, "true"},
    {"actor_train.strategy_args.strategy_config.virtual_pipeline_model_parallel_size", not_modelled, "1"},
    {"actor_train.strategy_args.strategy_config.pipeline_model_parallel_layout", not_modelled},
    {"actor_train.strategy_args.strategy_config.account_for_*", not_modelled, "false"},
    {"actor_train.strategy_args.strategy_config.moe_grouped_gemm", not_modelled, "true"},
    {"actor_train.strategy_args.strategy_config.moe_token_dispatcher_type", not_modelled, "alltoall"},
    {"actor_train.strategy_args.strategy_config.apply_tiled_mlp", not_modelled, "false"},
    {"actor_train.strategy_args.strategy_config.ep_size", not_modelled, "1"},
    {"actor_train.strategy_args.strategy_config.efsdp_size", not_modelled, "1"},
    {"actor_train.strategy_args.strategy_config.fsdp_size", named},
    {"actor_train.strategy_args.strategy_config.offload_policy", post,
     "actor_rollout_ref.actor.fsdp_config.offload_policy"},
    {"actor_train.strategy_args.strategy_config.reshard_after_forward", post,
     "actor_rollout_ref.actor.fsdp_config.reshard_after_forward"},
    {"actor_train.strategy_args.strategy_config.param_dtype", named},
    {"actor_train.strategy_args.strategy_config.wrap_policy.*"},
    {"actor_train.strategy_args.strategy_config.*"},
    {"actor_train.device_mapping", named},
    {"actor_train.*"},
    {"actor_infer.strategy_args.strategy_name", named},
    {"actor_infer.strategy_args.strategy_config.gpu_memory_utilization", post,
     "actor_rollout_ref.rollout.gpu_memory_utilization"},
    {"actor_infer.strategy_args.strategy_config.mem_fraction_static", post,
     "actor_rollout_ref.rollout.gpu_memory_utilization"},
    {"actor_infer.strategy_args.strategy_config.max_model_len", post, "actor_rollout_ref.rollout.max_model_len"},
    {"actor_infer.strategy_args.strategy_config.max_num_batched_tokens", post,
     "actor_rollout_ref.rollout.max_num_batched_tokens"},
    {"actor_infer.strategy_args.strategy_config.max_num_seqs", post, "actor_rollout_ref.rollout.max_num_seqs"},
    {"actor_infer.strategy_args.strategy_config.enforce_eager", post, "actor_rollout_ref.rollout.enforce_eager"},
    {"actor_infer.strategy_args.strategy_config.tensor_parallel_size", named},
    {"actor_infer.strategy_args.strategy_config.pipeline_parallel_size", not_modelled, "1"},
    {"actor_infer.strategy_args.strategy_config.sleep_level", named},
    {"actor_infer.strategy_args.strategy_config.c*", not_modelled},  // sizes of CUDA graphs
    {"actor_infer.num_gpus_per_worker", named},
    {"actor_infer.device_mapping", named},
    {"actor_infer.*"},
    {"reference.device_mapping", named},
    {"reference.model_args.*"},
    {"reference.strategy_args.strategy_name", named},
    {"reference.strategy_args.strategy_config.*"},
    {"reference.*"},
    {"critic.model_args.model_name_or_path", post, "critic.model.path"},
    {"critic.*"},
    {"rewards.*"},
    {"reward.*"},
    {"prompt_length", post, "data.max_prompt_length"},
    {"response_length", post, "data.max_response_length"},
    {"sequence_length", named},
    {"max_tokens_per_step", named},
    {"num_return_sequences_in_group", post, "actor_rollout_ref.rollout.n"},
    {"adv_estimator", named},
    {"enable_reference", named},
    {"use_kl_loss", named},
    {"init_kl_coef", named},
    {"num_gpus_per_node"},
    {"num_nodes"},
    {"beta", named},
    {"chosen_key"},
    {"rejected_key"},
    {"sft_train.*", named},
    {"student*", named},
    {"teacher*", not_modelled},
    {"entropy_loss_coef", post, "actor_rollout_ref.actor.entropy_coeff"},
    {"async_generation_ratio"},
    {"env:PYTORCH_CUDA_ALLOC_CONF", named},
    {"env:*"},
    {"config"},
};

/// What changes no memory of ROLL's.
inline constexpr std::string_view kOfRoll =
    "parse_tool_call_parameter_to_dict single_prompt_agent_* skip_mock_system_prompt "
    "action_pattern add_token_level_kl advantage_clip agent_* all_response_pattern answer_key batch_adjust_mode "
    "checkpoint_config.* custom_env* data_args.* default_history_length difficulty_* distill_* dual_clip_loss "
    "enable_old_logprobs_recompute env_manager_cls episode_reward_weight error_max_len_clip eval_steps exp_name "
    "format_penalty frozen_format_penalty gamma gem_* global_template hydra.* ipo is_num_return_sequences_expand "
    "is_offload_optimizer_states_in_train_step is_offload_states kd_* kl_horizon kl_loss_coef kl_penalty "
    "label_smoothing lambd length_loss_weight local_rank logging_dir logging_steps logits_* lora_alpha lora_rank "
    "lora_target loss_agg_mode math_agent_* max_actions_per_traj max_grad_norm max_len_mask max_steps model_name "
    "model_update_* norm_mean_type norm_std_type offload_nccl output_dir pg_variant positive_loss_coef ppo_epochs "
    "profiler_output_dir prompt_key query_key ratio_type render_save_dir response_key resume_from_checkpoint "
    "reward_* rollout_batch_size rollout_dump_dir rpc_timeout save_logging_board_dir save_steps seed "
    "sokoban_format_penalty step_reward_* student_pretrain system_envs.* think_* track_with tracker_kwargs* "
    "train_env_manager.* use_topr_neg_loss_coef val_batch_size val_env_manager.* validation.* value_clip whiten_*";
/// What changes no memory of AReaL's.
inline constexpr std::string_view kOfAreal =
    "agent.* agent_builder_path agent_run_args.* async_training econfig.* eval_workflow* evaluator.* experiment_name "
    "export_style judge_engine.* launcher.* log_agent_stats* max_llm_calls_per_run max_tokens_per_trajectory max_turns "
    "memory_profiler.* model_path n_trajs perf_tracer.* recover.* reward_fn* saver.* scheduler.* seed stats_logger.* "
    "tir.* tokenizer_path total_train_* trial_name workflow*";

/// What OmegaConf puts in the place of "${policy.model_name}", "${..max_total_sequence_length}" and "${mul:4, 512}".
/// What is not there stays as it is, as a variable of the shell does. Source: omegaconf 2.3, grammar of
/// interpolations; NeMo-RL, utils/config.py: register_omegaconf_resolvers.
class Interpolation {
 public:
  explicit Interpolation(const std::map<std::string, std::string>& values) : values_(values) {}

  [[nodiscard]] std::string resolved(const std::string& key, std::string text, int depth = 0) const {
    constexpr int kDeepest = 8;
    constexpr std::size_t kLongest = 2000;
    for (std::size_t at = text.find("${"); at != std::string::npos && depth < kDeepest; at = text.find("${", at)) {
      const std::size_t end = closing(text, at);
      if (end == std::string::npos || text.size() > kLongest) return text;
      const auto value = value_of(key, resolved(key, text.substr(at + 2, end - at - 2), depth + 1), depth);
      if (!value) return text;
      text.replace(at, end + 1 - at, *value);
      if (++depth >= kDeepest) return text;
    }
    return text;
  }

 private:
  static std::size_t closing(std::string_view text, std::size_t at) {
    int open = 0;
    for (; at < text.size(); ++at) {
      if (text[at] == '{') ++open;
      if (text[at] == '}' && --open == 0) return at;
    }
    return std::string::npos;
  }

  [[nodiscard]] std::optional<std::string> value_of(const std::string& key, const std::string& name, int depth) const {
    if (const std::size_t colon = name.find(':'); colon != std::string::npos) return computed(name, colon);
    std::string path = name;
    std::string above = key;
    if (!path.empty() && path.front() == '.') {
      while (!path.empty() && path.front() == '.') {
        path.erase(0, 1);
        const std::size_t dot = above.rfind('.');
        above.resize(dot == std::string::npos ? 0 : dot);
      }
      path = above.empty() ? path : above + "." + path;
    }
    const auto found = values_.find(path);
    if (found == values_.end()) return std::nullopt;
    return resolved(path, found->second, depth + 1);
  }

  static std::optional<std::string> computed(const std::string& text, std::size_t colon) {
    const std::string_view name = std::string_view(text).substr(0, colon);
    std::vector<std::int64_t> numbers;
    for (std::string_view rest = std::string_view(text).substr(colon + 1); !rest.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      std::string_view word = rest.substr(0, comma);
      while (word.starts_with(' ')) word.remove_prefix(1);
      while (word.ends_with(' ')) word.remove_suffix(1);
      const auto number = core::parse_whole(word);
      if (!number) return std::nullopt;
      numbers.push_back(*number);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    if (numbers.size() != 2) return std::nullopt;
    if (name == "mul") return std::to_string(core::bounded_product({numbers[0], numbers[1]}));
    if (name == "max") return std::to_string(std::max(numbers[0], numbers[1]));
    if (name == "div" && numbers[1] > 0) return std::to_string(numbers[0] / numbers[1]);
    return std::nullopt;
  }

  const std::map<std::string, std::string>& values_;
};

/// The settings of a program that are restated as verl's.
class RestatingReader {
 public:
  /// The keys of a program, and those of them that change no memory.
  struct KnownKeys {
    std::span<const LaunchKey> rows;
    std::string_view idle;
  };
  RestatingReader(Program program, std::span<const LaunchSetting> settings, KnownKeys known)
      : program_(program), known_(known) {
    std::map<std::string, std::string> given;
    for (const LaunchSetting& setting : settings) given[setting.key] = setting.value;
    const Interpolation all(given);
    for (const auto& [key, value] : given) values_[key] = all.resolved(key, value);
  }

 protected:
  static constexpr std::string_view kActor = "actor_rollout_ref.actor.";
  static constexpr std::string_view kRollout = "actor_rollout_ref.rollout.";

  // --- One setting --------------------------------------------------------------------------------------------------

  void take_all() {
    for (const auto& [key, value] : values_) {
      const auto rows = known_.rows;
      const std::string_view name = key;
      if (name == kGivenTrainer) put(key, key);
      const auto row =
          std::find_if(rows.begin(), rows.end(), [&](const LaunchKey& at) { return matches(at.key, name); });
      if (row == rows.end()) {
        const bool trls = made_.names == Program::trl;
        if (trls && find_key(Program::trl, name) != nullptr) {
          put(key, key);
          continue;
        }
        const bool launches = (trls && changes_nothing(Program::trl, name)) ||
                              std::any_of(std::begin(kLauncherKeys), std::end(kLauncherKeys),
                                          [&](const LaunchKey& at) { return matches(at.key, name); });
        if (!is_among(key, known_.idle) && !launches) made_.unknown.push_back(core::shortened(key, 80));
        continue;
      }
      if (row->means == Means::post) put(row->option, key);
      const bool tells = row->means == Means::not_modelled && !is_usual(value, row->option) && !is_variable(value);
      if (tells) made_.not_modelled.push_back(core::shortened(key, 80) + " " + core::shortened(value, 60));
    }
  }

  [[nodiscard]] std::string_view value(std::string_view key) const {
    const auto found = values_.find(std::string(key));
    const bool known = found != values_.end() && !is_variable(found->second);
    return known ? std::string_view(found->second) : std::string_view();
  }
  [[nodiscard]] bool on(std::string_view key, bool usual = false) const {
    const std::string_view word = value(key);
    return word.empty() ? usual : is_true(word);
  }
  [[nodiscard]] bool says(std::string_view begin) const {
    const auto next = values_.lower_bound(std::string(begin));
    return next != values_.end() && next->first.starts_with(begin);
  }
  /// Whole, and at least 0; 0: it is not given.
  std::int64_t number(std::string_view key, std::int64_t usual = 0) {
    const std::string_view word = value(key);
    if (word.empty() || is_false(word)) return usual;
    const auto whole = core::parse_whole(word);
    if (whole && *whole >= 0 && *whole <= INT32_MAX) return *whole;
    made_.fault =
        core::Error{core::ErrorCode::invalid_argument,
                    core::shortened(key, 60) + ": " + core::quoted(core::shortened(word, 60)) + " is no whole number",
                    {}};
    return usual;
  }
  [[nodiscard]] std::string_view first(std::initializer_list<std::string_view> keys) const {
    for (const std::string_view key : keys) {
      if (!value(key).empty()) return key;
    }
    return {};
  }

  /// The setting of ours says what this one of theirs does; nothing, where they do not say it.
  void put(std::string_view own, std::string_view given) {
    if (!value(given).empty())
      made_.settings.push_back({std::string(own), std::string(value(given)), std::string(given)});
  }
  void say(std::string_view own, std::string value) {
    made_.settings.push_back({std::string(own), std::move(value), std::string(own)});
  }
  void say(std::string_view own, std::int64_t value) { say(own, std::to_string(value)); }
  void say(std::string_view own, bool value) { say(own, std::string(value ? "true" : "false")); }
  static std::string joined(std::string_view before, std::string_view name) { return std::string(before).append(name); }

  // --- What several programs have ---------------------------------------------------------------------------------

  void train_in_megatron(bool megatron) {
    say(joined(kActor, "strategy"), std::string(megatron ? "megatron" : "fsdp2"));
    made_.megatron = megatron;
  }
  /// Megatron's parallel sizes, whose names are alike but for what is before them.
  void put_megatron(std::string_view before) {
    for (const std::string_view size :
         {"tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size",
          "expert_model_parallel_size", "expert_tensor_parallel_size"}) {
      put(joined(joined(kActor, "megatron."), size), joined(before, size));
    }
    say(joined(kActor, "megatron.sequence_parallel"), on(joined(before, "sequence_parallel")));
  }
  void recompute(std::string_view granularity) {
    say(joined(kActor, "megatron.override_transformer_config.recompute_granularity"),
        std::string(granularity.empty() ? "none" : granularity));
  }
  /// While others run, what is trained is on the host; the optimizer's states alone where they stay.
  void wait_on_host(bool megatron, bool model, bool states) {
    const std::string before = joined(kActor, megatron ? "megatron." : "fsdp_config.");
    say(before + "param_offload", model);
    say(before + "optimizer_offload", states);
  }
  void train_on(std::int64_t gpus) {
    say("trainer.n_gpus_per_node", std::max<std::int64_t>(gpus, 1));
    say("trainer.nnodes", std::int64_t{1});
  }
  void pack(std::int64_t tokens, std::int64_t reading) {
    if (tokens < 1) return;
    say(joined(kActor, "use_dynamic_bsz"), true);
    say(joined(kActor, "ppo_max_token_len_per_gpu"), tokens);
    if (reading > 0) say(joined(kRollout, "log_prob_max_token_len_per_gpu"), reading);
  }
  /// Samples of a step, of which each prompt has so many.
  void step(std::int64_t samples, std::int64_t each) {
    if (samples < 1) return;
    if (each > 1 && samples % each == 0) samples /= each;
    else if (each > 1) return;
    say(joined(kActor, "ppo_mini_batch_size"), samples);
  }
  void generate(std::string_view engine, bool apart, std::int64_t sleeps) {
    say(joined(kRollout, "name"), std::string(engine));
    say("actor_rollout_ref.hybrid_engine", !apart);
    made_.sleep_level = apart ? 0 : sleeps;
  }
  /// Adapters of this rank, unless the settings say another.
  void adapt(std::string_view rank, std::int64_t usual, std::string_view targets) {
    say("actor_rollout_ref.model.lora_rank", number(rank, usual));
    if (value(targets) != "[]") put("actor_rollout_ref.model.target_modules", targets);
  }
  void put_engine(std::string_view before, std::string_view utilization, std::string_view length,
                  std::string_view eager) {
    put(joined(kRollout, "gpu_memory_utilization"), joined(before, utilization));
    put(joined(kRollout, "max_model_len"), joined(before, length));
    put(joined(kRollout, "enforce_eager"), joined(before, eager));
  }

  Program program_;
  KnownKeys known_;
  std::map<std::string, std::string> values_;  ///< the last one counts; what OmegaConf puts in is in its place
  RestatedSettings made_;
};

}  // namespace launch_detail

}  // namespace gpumem::posttrain
