#pragma once

#include "gpumem/posttrain/impl/launch_keys_verl_inl.hpp"
#include "gpumem/posttrain/launch.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/csv.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/posttrain/post_training_job.hpp"

namespace gpumem::posttrain {

namespace launch_detail {

/// Keys that change no memory of a GPU, or too little to see, with a space between them.
inline constexpr std::string_view kWithoutEffect =
    "actor_learning_rate adam_* alpha apply_chat_template async_rollout cached_dataset* cached_val_dataset* "
    "center_rewards_coefficient ckpt_path columns cpo_alpha critic_learning_rate critic_num* custom_reward* "
    "dataloader* dataset* ddp_* desirable_weight disable_tqdm epsilon* eval* external_plugins finetune gamma hub_* "
    "input_key label_smoothing lambda learning_rate lmbda load_best_model* load_from_cache_file log* lora_alpha "
    "loss_type loss_weights lr* max_epochs max_grad_norm max_samples max_steps merge_lora min_lr move_model_batches "
    "no_load* no_save* normalize_reward num_episodes num_generations_eval num_iterations num_train_epochs output_dir "
    "per_device_eval_batch_size prompt_data push* ref_num* remote_rm_url remove_unused_columns report_to reward_funcs "
    "reward_num* reward_weights rollout_batch_size rpo_alpha run_name save* seed simpo_gamma split_dataset_ratio "
    "stop* system temperature top_k top_p train_batch_size truncation_strategy undesirable_weight use_hf use_wandb "
    "val_dataset* vllm_sync_backend warmup* weight_decay* whiten*";

/// The same of transformers' and TRL's trainers. Source: transformers 4.57, training_args.py; TRL 1.9, trainer and
/// experimental.
inline constexpr std::string_view kOfTrainers =
    "accelerator_config advantage_* assistant_only_loss average_tokens_across_devices batch_eval_metrics batch_size "
    "beta1 beta2 bf16_full_eval distillation_* bnb_4bit_compute_dtype cache_implementation callbacks chat_template* "
    "cliprange* completion_only_loss data_seed debug delta diagnostics_* discopop_tau do_* ds3_gather_for_generation "
    "entropy_coef* entropy_target eos_token f_alpha* f_divergence* fp16_* fsdp_config.auto_wrap_policy "
    "fsdp_config.backward_prefetch fsdp_config.cpu_* fsdp_config.final_state_dict_type fsdp_config.forward_prefetch "
    "fsdp_config.fsdp_* fsdp_config.limit_all_gathers fsdp_config.min_num_params fsdp_config.mixed_precision* "
    "fsdp_config.reshard_after_forward fsdp_config.sharding_strategy fsdp_config.state_dict_type "
    "fsdp_config.sync_module_states fsdp_config.transformer_layer_cls_to_wrap fsdp_config.use_orig_params "
    "fsdp_config.xla* full_determinism generate_during_eval generation_kwargs "
    "gradient_checkpointing_kwargs.determinism_check gradient_checkpointing_kwargs.preserve_rng_state "
    "gradient_checkpointing_kwargs.debug gradient_checkpointing_kwargs.context_fn "
    "gradient_checkpointing_kwargs.early_stop greater_is_better group_by_length half_precision_backend "
    "ignore_data_skip importance_sampling_level include_* is_encoder_decoder kl_coef kl_estimator label_names "
    "label_pad_token_id lam ld_alpha length_column_name length_normalization liger_kernel_config local_* "
    "lora_task_type mask_truncated_completions max_density_ratio max_target_length max_tool_calling_iterations "
    "metric_for_best_model min_density_ratio min_p missing_eos_penalty mixture_coef model_adapter_name model_revision "
    "multi_objective_aggregation no_cuda normalize_advantages num_completions_to_print num_mini_batches "
    "num_ppo_epochs num_sample_generations num_total_batches off_policy_mask_threshold optim_args "
    "overwrite_output_dir packing_strategy pad_* padding_* past_index precompute_ref_batch_size prediction_loss_only "
    "project prompt_sample_size ref_adapter_name ref_model_mixup_alpha ref_model_sync_steps reference_free "
    "repetition_penalty replay_buffer_size restore_callback* resume_from_checkpoint reward_clip_range "
    "router_aux_loss_coef sapo_temperature* scale_rewards seq_kd shuffle_dataset skip_memory_metrics step_separator "
    "sync_ref_model teacher_model_revision tf32 top_entropy_quantile total_episodes trackio_* train_on_last_step_only "
    "train_sampling_strategy truncation_mode trust_remote_code use_adaptive_entropy use_bias_correction_kl use_cpu "
    "use_rslora use_weighting vespo_* vf_coef vllm_data_parallel_size vllm_disable_* vllm_enable_lora "
    "vllm_enable_prefix_caching vllm_engine_kwargs vllm_group_port vllm_guided* vllm_importance_sampling* "
    "vllm_limit_mm* vllm_max_lora_rank vllm_mm_processor* vllm_model_impl vllm_reasoning_parser vllm_server* "
    "vllm_structured* vllm_use_async_engine wandb_* world_size";

/// The same of ms-swift's own. Source: ms-swift 4 (2026-08), swift/arguments, trainers/arguments.py and
/// megatron/arguments.
inline constexpr std::string_view kOfSwift =
    "acc_* add_* agent_template aligner_lr align_* async_generate async_save attention_softmax_in_fp32 check_model "
    "chord_* clip_grad completion_length_limit_scope cosine_* create_checkpoint_symlink custom_* download_mode "
    "dynamic_sample early_stop_interval enable_* end_weight_decay exist_ok extra_eval_args fipo_* gkd_logits_topk "
    "gym_env ignore_args_error interleave_prob is_binary_loss_scale kl_in_reward lazy_tokenize load_args "
    "load_data_args local_repo_path loss_scale manual_gc* max_resample_times max_shard_size max_turns "
    "mlp_padding_free model_author model_name model_type moe_router* moe_z_loss_coeff multi_turn_scheduler num_beams "
    "num_labels off_policy_sequence* overlap_grad_reduce overlap_param_gather overlong_filter packing_num_proc "
    "perform_initialization preserve_thinking problem_type real_tau repetition_* response_prefix resume_only_model "
    "reward_model_plugin reward_model_revision reward_model_type reward_template rlsd_* rollout_importance* "
    "rope_scaling safe_serialization sdar_* shuffle_buffer_size soft_* start_weight_decay streaming strict swanlab_* "
    "task_type tau_* teacher_kl_coef teacher_model_type teacher_tag_key template template_backend tensorboard_* "
    "top_logprobs train_dataloader_shuffle train_iters tuner_backend use_chat_template use_cpu_initialization "
    "use_flash_ckpt use_gym_env use_swift_lora vit_attn_impl vit_lr";

/// The same of verl's, and of what is built on it. Source: verl 0.7 (2026-01),
/// trainer/config/_generated_ppo_trainer.yaml and experimental/fully_async_policy; rllm, siiRL and EasyR1 (2026), their
/// examples.
inline constexpr std::string_view kOfVerl =
    "actor_rollout_ref.actor.num_images_in_input actor_rollout_ref.actor.policy_drift_coeff "
    "actor_rollout_ref.actor.use_cpgd_loss actor_rollout_ref.embodied.* actor_rollout_ref.model.lora.* "
    "actor_rollout_ref.model.model_type agent.* async_training.* config_path critic.use_critic_model dag.* env.* "
    "gigpo.* model.name profiler.* reward_model.overlong_buffer.* rllm.* rllm/backend rollout.n_gpus_per_node "
    "rollout.test_freq rollout.total_* verifiers.* worker.actor.clip_ratio* worker.actor.dynamic_batching "
    "worker.actor.fsdp.* worker.actor.kl_* worker.actor.loss_* worker.actor.max_grad_norm "
    "worker.actor.model.lora_alpha worker.actor.model.lora.* worker.actor.model.trust_remote_code "
    "worker.actor.optim.* worker.actor.use_* worker.critic.* worker.reward.* worker.rollout.limit_images "
    "worker.rollout.temperature worker.rollout.top_p worker.rollout.val_override_config* "
    "actor_rollout_ref.actor.checkpoint.* actor_rollout_ref.actor.data_loader_seed "
    "actor_rollout_ref.actor.loss_scale_factor actor_rollout_ref.actor.policy_loss.* "
    "actor_rollout_ref.actor.profiler.* actor_rollout_ref.actor.rollout_n actor_rollout_ref.actor.router_replay.* "
    "actor_rollout_ref.actor.sum_pi* actor_rollout_ref.actor.tau_* actor_rollout_ref.actor.use_fused_kernels "
    "actor_rollout_ref.actor.use_remove_padding actor_rollout_ref.actor.profile.* "
    "actor_rollout_ref.model.custom_chat_template actor_rollout_ref.model.exclude_modules "
    "actor_rollout_ref.model.external_lib actor_rollout_ref.model.fused_kernel_options.* "
    "actor_rollout_ref.model.hf_config_path actor_rollout_ref.model.lora_a* actor_rollout_ref.model.mtp.* "
    "actor_rollout_ref.model.override_config actor_rollout_ref.model.tiled_mlp.* "
    "actor_rollout_ref.model.tokenizer_path actor_rollout_ref.model.trust_remote_code actor_rollout_ref.model.use_shm "
    "actor_rollout_ref.nccl_timeout actor_rollout_ref.ref.entropy_* actor_rollout_ref.ref.log_prob_use_dynamic_bsz "
    "actor_rollout_ref.ref.profiler.* actor_rollout_ref.ref.rollout_n actor_rollout_ref.ref.router_replay.* "
    "actor_rollout_ref.ref.use_torch_compile actor_rollout_ref.rollout.agent.* "
    "actor_rollout_ref.rollout.calculate_log_probs actor_rollout_ref.rollout.checkpoint_engine.* "
    "actor_rollout_ref.rollout.cudagraph_capture_sizes actor_rollout_ref.rollout.data_parallel_size "
    "actor_rollout_ref.rollout.disable_log_stats actor_rollout_ref.rollout.do_sample "
    "actor_rollout_ref.rollout.enable_* actor_rollout_ref.rollout.ignore_eos actor_rollout_ref.rollout.layered_summon "
    "actor_rollout_ref.rollout.load_format actor_rollout_ref.rollout.log_prob_use_dynamic_bsz "
    "actor_rollout_ref.rollout.logprobs_mode actor_rollout_ref.rollout.mtp* actor_rollout_ref.rollout.multi_* "
    "actor_rollout_ref.rollout.over_sample_rate actor_rollout_ref.rollout.profiler.* "
    "actor_rollout_ref.rollout.prometheus.* actor_rollout_ref.rollout.prompt_length "
    "actor_rollout_ref.rollout.quantization_config_file actor_rollout_ref.rollout.response_length "
    "actor_rollout_ref.rollout.scheduling_policy actor_rollout_ref.rollout.skip_* actor_rollout_ref.rollout.trace.* "
    "actor_rollout_ref.rollout.use_* critic.checkpoint.* critic.cliprange_value critic.data_loader_seed critic.enable "
    "critic.forward_* critic.grad_clip critic.loss_agg_mode critic.model.external_lib critic.model.lora_alpha "
    "critic.model.override_config critic.model.target_modules critic.model.tiled_mlp.num_shards "
    "critic.model.tokenizer_path critic.model.trust_remote_code critic.model.use_shm critic.nccl_timeout "
    "critic.ppo_epochs critic.ppo_mini_batch_size critic.profiler.* critic.rollout_n critic.shuffle "
    "custom_reward_function.* global_profiler.* hydra.* ray_init.* ray_kwargs.* reward_manager* "
    "reward_model.forward_* reward_model.launch_reward_fn_async reward_model.max_length reward_model.micro_batch* "
    "reward_model.model.external_lib reward_model.model.input_tokenizer reward_model.model.override_config "
    "reward_model.model.trust_remote_code reward_model.model.use_* reward_model.n_gpus_per_node reward_model.nnodes "
    "reward_model.num_workers reward_model.profiler.* reward_model.reward_* reward_model.rollout.* "
    "reward_model.sandbox_fusion.* reward_model.strategy reward_model.ulysses* reward_model.use_* transfer_queue.*";

/// The same of OpenRLHF's. Source: as of its names.
inline constexpr std::string_view kOfOpenRlhf =
    "actor.adam.* actor.dual_clip actor.eps_* actor.gradient_checkpointing_reentrant actor.policy_loss_type adam.* "
    "agent_func_path beta algo.* ckpt.* critic.adam.* critic.freezing_steps critic.num_* critic.save_value_network "
    "critic.value_clip data.apply_chat_template data.chosen_key data.data* data.disable_fast_tokenizer data.image_key "
    "data.input_* data.label_key data.max_samples data.multiturn data.output_key data.prompt_* data.rejected_key "
    "data.tokenizer_chat_template ds.deepcompile ds.experts_implementation ds.lora.alpha ds.overlap_comm "
    "ds.ring_attn_head_stride ds.use_universal_ckpt ds.value_head_prefix ds.zpg eps_clip* freezing_* "
    "full_determinism* kl_* local_rank logger.* max_norm min_lr_ratio model.compute_fp32_loss_enable model.beta "
    "model.gradient_checkpointing_reentrant model.ipo_enable model.label_smoothing model.loss_type "
    "model.margin_loss_enable model.pretrain_mode_enable muon.* overlap_comm partial_rollout* policy_loss_type "
    "ref.num_* reward.clip_range reward.normalize_enable reward.num_* reward.overlong* reward.stop* ring_head_stride "
    "rollout.batch_size rollout.temperature rollout.top_p rollout.vllm_generate* train.* use_kl_* use_ms "
    "vllm.enable_prefix_caching vllm.sync* vllm_enable_prefix_caching vllm_generate* vllm_sync* value_clip zpg";

inline bool matches(std::string_view pattern, std::string_view key) {
  if (!pattern.ends_with('*')) return pattern == key;
  return key.starts_with(pattern.substr(0, pattern.size() - 1));
}

inline bool is_among(std::string_view key, std::string_view rest) {
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (matches(rest.substr(0, end), key)) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

inline bool is_idle_in_section(std::string_view key) {
  return std::ranges::any_of(kVerlSections, [&](const VerlSection& at) {
    return key.starts_with(at.section) && is_among(key.substr(at.section.size()), at.idle);
  });
}

inline bool changes_nothing(Program program, std::string_view key) {
  if (is_among(key, kWithoutEffect)) return true;
  switch (program) {
    case Program::trl:
    case Program::unsloth: return is_among(key, kOfTrainers);
    case Program::ms_swift:
    case Program::megatron: return is_among(key, kOfTrainers) || is_among(key, kOfSwift);
    case Program::verl:
    case Program::verl_megatron: return is_among(key, kOfVerl) || is_idle_in_section(key);
    default: return is_among(key, kOfOpenRlhf);
  }
}

inline std::vector<std::span<const LaunchKey>> keys_of(Program program) {
  switch (program) {
    case Program::trl:
    case Program::ms_swift:
    case Program::unsloth: return {kTrainerKeys, kLauncherKeys};
    case Program::megatron: return {kMegatronKeys, kTrainerKeys, kLauncherKeys};
    case Program::verl:
    case Program::verl_megatron: return {kVerlKeys, kLauncherKeys};
    default: return {kOpenRlhfKeys, kLauncherKeys};
  }
}

inline const LaunchKey* find_key(Program program, std::string_view key) {
  for (const std::span<const LaunchKey> keys : keys_of(program)) {
    for (const LaunchKey& row : keys) {
      if (matches(row.key, key)) return &row;
    }
  }
  return nullptr;
}

/// "--no_gradient_checkpointing", as transformers' HfArgumentParser has it for all that is on unless it is told
/// otherwise; no setting whose own name begins so.
inline constexpr std::string_view kNo = "no_";
inline bool is_switched_off(Program program, const LaunchSetting& setting) {
  const bool trainers = program == Program::trl || program == Program::unsloth || program == Program::ms_swift;
  if (!trainers || setting.value != "true" || !setting.key.starts_with(kNo)) return false;
  const std::string_view key = std::string_view(setting.key).substr(kNo.size());
  const auto knows = [&](std::string_view name) {
    return find_key(program, name) != nullptr || changes_nothing(program, name);
  };
  return !knows(setting.key) && knows(key);
}

inline bool is_false(std::string_view word) {
  return word.empty() || word == "false" || word == "False" || word == "none" || word == "null" || word == "None";
}
inline bool is_true(std::string_view word) { return is_among(core::lower_case(word), "true 1 yes y t on"); }

/// Whether a key has the value with which nothing differs, or one of several: "true" also as "1", and all others also
/// as what is off.
inline bool is_usual(std::string_view value, std::string_view usual) {
  if (usual == "true" || usual == "True") return is_true(value);
  if (usual == "0" && !value.empty() && value.find_first_not_of("0.") == std::string_view::npos) return true;
  return is_among(value, usual) || is_false(value);
}

/// Without the quotes that a shell takes away.
inline std::string unquoted(std::string_view word) {
  while (word.size() >= 2 && word.front() == word.back() && (word.front() == '\'' || word.front() == '"')) {
    word = word.substr(1, word.size() - 2);
  }
  return std::string(word);
}

/// Whether a name is an environment variable's: no small letters, and no dots.
inline bool is_environment(std::string_view name) {
  return std::none_of(name.begin(), name.end(), [](char byte) { return byte == '.' || (byte >= 'a' && byte <= 'z'); });
}

/// What programs call an algorithm, beside the names that it has here. verl's are estimators of advantages, of which
/// "gae" alone has a critic. Source: TRL 1.9, trainer and experimental; verl 0.7, trainer/ppo/core_algos.py:
/// AdvantageEstimator.
inline constexpr std::pair<std::string_view, Algorithm> kAlgorithmNames[] = {
    {"cpo", Algorithm::simpo},
    {"CPOTrainer", Algorithm::simpo},
    {"DPOTrainer", Algorithm::dpo},
    {"KTOTrainer", Algorithm::kto},
    {"BCOTrainer", Algorithm::bco},
    {"GKDTrainer", Algorithm::gkd},
    {"GRPOTrainer", Algorithm::grpo},
    {"GMPOTrainer", Algorithm::grpo},
    {"GRPOWithReplayBufferTrainer", Algorithm::grpo},
    {"AsyncGRPOTrainer", Algorithm::grpo},
    {"async_grpo", Algorithm::grpo},
    {"ORPOTrainer", Algorithm::orpo},
    {"PRMTrainer", Algorithm::prm},
    {"RewardTrainer", Algorithm::reward},
    {"PPOTrainer", Algorithm::ppo},
    {"RLOOTrainer", Algorithm::grpo},
    {"rloo", Algorithm::grpo},
    {"NashMDTrainer", Algorithm::grpo},
    {"nash_md", Algorithm::grpo},
    {"OnlineDPOTrainer", Algorithm::online_dpo},
    {"online_dpo", Algorithm::online_dpo},
    {"dpo_online", Algorithm::online_dpo},
    {"XPOTrainer", Algorithm::online_dpo},
    {"xpo", Algorithm::online_dpo},
    {"reinforce", Algorithm::grpo},
    {"gae", Algorithm::ppo},
    {"dr_grpo", Algorithm::grpo},
    {"gigpo", Algorithm::grpo},
    {"gspo", Algorithm::grpo},
    {"dapo", Algorithm::grpo},
    {"mpo", Algorithm::dpo},  // its loss, with two terms more
    {"gold", Algorithm::gkd},
    {"distillation", Algorithm::gkd},
    {"opo", Algorithm::grpo},
    {"optimal_token_baseline", Algorithm::grpo},
    {"tir_optimal_token_baseline", Algorithm::grpo},
    {"cpgd", Algorithm::grpo},
    {"gpg", Algorithm::grpo},
    {"grpo_passk", Algorithm::grpo},
    {"grpo_vectorized", Algorithm::grpo},
    {"rloo_vectorized", Algorithm::grpo},
    {"reinforce_baseline", Algorithm::grpo},
    {"reinforce_plus_plus", Algorithm::grpo},
    {"reinforce_plus_plus_baseline", Algorithm::grpo},
    {"remax", Algorithm::grpo}};
inline std::optional<Algorithm> algorithm_of(std::string_view name) {
  std::string plain(name);
  std::replace(plain.begin(), plain.end(), '-', '_');
  const auto* const row = std::ranges::find(kAlgorithmNames, plain, &std::pair<std::string_view, Algorithm>::first);
  return row == std::end(kAlgorithmNames) ? std::nullopt : std::optional(row->second);
}
/// Of these the loss has a reference where nobody says otherwise, though TRL's GRPO has none: RLOO's beta is 0.05, and
/// Nash-MD plays against it. Source: TRL 1.9, trainer/rloo_config.py; experimental/nash_md/nash_md_config.py.
inline bool compares_in_trl(std::string_view name) {
  return is_among(name, "rloo RLOOTrainer nash_md nash-md NashMDTrainer");
}
inline bool is_supervised(std::string_view name) { return name == "sft" || name == "SFTTrainer"; }
inline core::Error supervised(std::string_view name) {
  return {core::ErrorCode::invalid_argument,
          core::quoted(core::shortened(name, 40)) + " is supervised fine-tuning, which `gpumem estimate` answers",
          {}};
}

/// TRL's further trainers, for which there is no rule. Source: TRL 1.9, examples/scripts and experimental.
inline constexpr std::string_view kOtherTrainers = "tpo sdft sdpo ssd minillm papo gfpo nemo_gym";
inline bool names_algorithm(std::string_view word) {
  const bool other = is_among(word, kOtherTrainers);
  return model::value_of(kAlgorithms, word) || algorithm_of(word) || is_supervised(word) || other;
}

/// The algorithm that a word names, as in "trl dpo", "scripts/run_dpo.py", "ppo_tldr.py" or "openrlhf.cli.train_dpo";
/// empty: none.
inline std::string_view algorithm_in(std::string_view word) {
  if (const std::size_t slash = word.rfind('/'); slash != std::string_view::npos) word.remove_prefix(slash + 1);
  if (word.ends_with(".py")) word.remove_suffix(3);
  if (const std::size_t dot = word.rfind('.'); dot != std::string_view::npos) word.remove_prefix(dot + 1);
  for (const std::string_view begin : {"fsdp_", "train_", "run_"}) {
    if (word.starts_with(begin)) word.remove_prefix(begin.size());
  }
  // What is behind the name says which data or model: "dpo_vlm", "grpo_agent", "sft_trainer".
  while (!names_algorithm(word)) {
    if (word == "reward") return "rm";
    const std::size_t end = word.rfind('_');
    if (end == std::string_view::npos) return {};
    word = word.substr(0, end);
  }
  return word;
}

/// What TRL's trainers of preferences cut sequences to, and TRL's and verl's of completions prompts and completions,
/// where nobody says otherwise. Source: TRL 0.24, trainer/dpo_config.py: max_length; grpo_config.py:
/// max_prompt_length; TRL 1.9: max_completion_length; ms-swift 4, arguments/rlhf_args.py; verl 0.7,
/// trainer/config/data/legacy_data.yaml: 512 and 512.
struct Usual {
  static constexpr std::int64_t kRow = 16384;           ///< verl's ppo_max_token_len_per_gpu
  static constexpr std::int64_t kDynamicRow = 16192;    ///< OpenRLHF's train.max_tokens_per_gpu
  static constexpr std::int64_t kShortCompletion = 64;  ///< TRL 1.9, experimental/online_dpo: max_new_tokens
  static constexpr std::int64_t kLength = 1024;
  static constexpr std::int64_t kPrompt = 512;
  static constexpr std::int64_t kCompletion = 512;
};

/// "1,024 tokens are taken, and max_length 2048 for the upper end of the range".
inline std::string taken(std::int64_t tokens, std::int64_t most) {
  std::string text = core::with_separators(tokens) + " tokens are taken";
  if (most > tokens) text += ", and max_length " + std::to_string(most) + " for the upper end of the range";
  return text;
}

/// Files hold settings of algorithms that they do not use.
inline void leave_out_foreign(PostTrainingRequest& request) {
  PostTrainingOptions& to = request.options;
  const AlgorithmRow& algorithm = row_of(to.algorithm);
  if (!algorithm.critic) to.critic_model.clear();
  if (!algorithm.teacher) to.teacher_model.clear();
  if (algorithm.generates) return;
  const PostTrainingOptions usual;
  to.reward_model.clear();
  to.num_generations.reset();
  to.gpu_memory_utilization = usual.gpu_memory_utilization;
  to.rollout_tensor_parallel = usual.rollout_tensor_parallel;
  to.max_model_len = usual.max_model_len;
  to.max_num_seqs = usual.max_num_seqs;
  to.max_num_batched_tokens = usual.max_num_batched_tokens;
  to.enforce_eager = usual.enforce_eager;
  to.engine = usual.engine;
  to.entropy = usual.entropy;
  to.sleep_level = usual.sleep_level;
  // A limit of completions that are generated, which distillation has beside that of its data.
  const std::int64_t sequence = request.training.training.sequence_length.value_or(0);
  if (to.completion_length.value_or(0) >= sequence) to.completion_length.reset();
}

/// A variable of the shell, which nobody knows here.
inline bool is_variable(std::string_view word) { return word.find('$') != std::string_view::npos; }

/// The last word of a path: "Qwen3-8B" of "$HOME/models/Qwen3-8B/".
inline std::string_view folder_of(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  return path.substr(path.rfind('/') + 1);
}
inline bool names_model(const LaunchKey& row) {
  return row.means == Means::model || (row.means == Means::post && row.option.ends_with("_model"));
}

/// What "\ " and a line that ends in two of them leave behind a setting: no program means anything by it.
inline bool is_left_by_shell(std::string_view word) {
  return word.find_first_not_of(" \t\r\n\\") == std::string_view::npos;
}

/// Several words behind one key are joined by '+'.
inline LaunchSetting setting_of(const ProgramWords::Given& given, bool environment) {
  LaunchSetting setting{(environment ? "env:" : "") + given.key, given.values.empty() ? "true" : std::string()};
  for (const std::string& value : given.values) {
    if (&value != &given.values.front()) setting.value += '+';
    setting.value += unquoted(value);
  }
  return setting;
}

}  // namespace launch_detail

GPUMEM_INLINE core::Result<std::vector<LaunchSetting>> launch_settings(std::span<const std::string> words) {
  namespace detail = launch_detail;
  std::vector<LaunchSetting> settings;
  const LauncherWords launcher = read_launcher(words);
  for (const auto& [key, value] : launcher.environment) settings.push_back({"env:" + key, detail::unquoted(value)});
  for (const auto& [key, value] : launcher.settings) {
    if (key != "m" && key != "module") settings.push_back({key, detail::unquoted(value)});
  }
  const ProgramWords program = read_program(words.subspan(launcher.begin));
  for (std::size_t at = 0; at < program.standing.size(); ++at) {
    const std::string& word = program.standing[at];
    const std::string_view algorithm = at < program.before ? detail::algorithm_in(word) : std::string_view();
    if (!algorithm.empty()) settings.push_back({"trainer", std::string(algorithm)});
    const bool file = at < program.before && (word.ends_with(".yaml") || word.ends_with(".yml"));
    if (file) settings.push_back({"config", word});  // "axolotl train dpo.yaml"
    if (at < program.before || detail::is_left_by_shell(word)) continue;
    return core::Error{core::ErrorCode::invalid_argument,
                       "the word " + core::quoted(core::shortened(word, 60)) + " belongs to no setting",
                       {}};
  }
  for (const ProgramWords::Given& given : program.settings) {
    settings.push_back(detail::setting_of(given, detail::is_environment(given.key)));
  }
  return settings;
}

GPUMEM_INLINE bool starts_post_training(std::span<const std::string> words) {
  const std::span<const std::string> program = words.subspan(read_launcher(words).begin);
  if (program.empty()) return false;
  const std::string_view name = std::string_view(program[0]).substr(program[0].rfind('/') + 1);
  const std::string_view command = program.size() > 1 ? std::string_view(program[1]) : std::string_view();
  const bool swift = (name == "swift" || name == "megatron") && (command == "rlhf" || command == "grpo");
  if (swift || name == "verl.trainer.main_ppo") return true;
  const auto settings = launch_settings(words);
  return settings && std::any_of(settings->begin(), settings->end(), [](const LaunchSetting& one) {
           return one.key == "trainer" && !launch_detail::is_supervised(one.value);
         });
}

GPUMEM_INLINE std::optional<Program> program_of(std::span<const LaunchSetting> settings) {
  const auto any = [&](std::string_view begin) {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const LaunchSetting& at) { return launch_detail::matches(begin, at.key); });
  };
  if (any("actor_rollout_ref.*") || any("worker.actor.*")) return Program::verl;
  if (any("policy.dtensor_cfg.*") || any("policy.megatron_cfg.*") || any("policy.generation.*")) {
    return Program::nemo_rl;
  }
  if (any("actor_train.*") || any("sft_train.strategy_args.*") || any("student.strategy_args.*")) return Program::roll;
  if (any("actor.backend") || any("allocation_mode")) return Program::areal;
  if (any("hf_checkpoint")) return Program::slime;
  if (any("num_samples_per_prompt_rollout") || any("num_learners_per_node")) return Program::open_instruct;
  if (any("orchestrator.*") || any("trainer.model.*")) return Program::prime_rl;
  if (any("base_model") && (any("micro_batch_size") || any("sequence_len"))) return Program::axolotl;
  if (any("finetuning_type") || any("cutoff_len") || any("stage")) return Program::llama_factory;
  const bool renamed = any("actor.model_name_or_path") || any("model.model_name_or_path");
  if (any("pretrain") || renamed) return Program::openrlhf;
  const std::string_view of_megatron[] = {"micro_batch_size", "global_batch_size", "tensor_model_parallel_size",
                                          "pipeline_model_parallel_size", "expert_model_parallel_size"};
  const bool megatron = std::any_of(std::begin(of_megatron), std::end(of_megatron), any);
  if (any("rlhf_type")) return megatron ? Program::megatron : Program::ms_swift;
  if (any("per_device_train_batch_size") || any("model_name_or_path")) return Program::trl;
  return std::nullopt;
}

GPUMEM_INLINE FsdpWords fsdp_words(std::string_view asked) {
  constexpr std::string_view kBetween = " +,[]'\"";
  FsdpWords words;
  while (!asked.empty()) {
    const std::size_t end = std::min(asked.find_first_of(kBetween), asked.size());
    const std::string_view word = asked.substr(0, end);
    const bool whole = word == "full_shard" || word == "fsdp2" || launch_detail::is_true(word);
    words.shards = words.shards || whole;
    words.offloads = words.offloads || word == "offload";
    const bool changes_nothing = word.empty() || word == "auto_wrap" || word == "no_shard" || word == "offload";
    words.known = words.known && (whole || changes_nothing);
    asked.remove_prefix(std::min(end + 1, asked.size()));
  }
  words.known = words.known && (words.shards || !words.offloads);
  words.shards = words.shards && words.known;
  return words;
}

GPUMEM_INLINE model::Quantization four_bits_of_unsloth(std::string_view model, bool older) {
  const bool alike = older || model.ends_with("bnb-4bit");
  const bool dynamic = model.ends_with("unsloth-bnb-4bit") || !alike;
  return dynamic ? model::Quantization::nf4_dynamic : model::Quantization::nf4_double;
}

GPUMEM_INLINE void set_buckets(model::Layout& layout, std::int64_t width) {
  const std::int64_t square = core::bounded_product({width, width});
  layout.zero_reduce_bucket = square;
  layout.zero_prefetch_bucket = square / 10 * 9;
  layout.zero_persistence_threshold = core::bounded_product({10, width});
}

}  // namespace gpumem::posttrain
