#pragma once

#include "gpumem/posttrain/launch.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/posttrain/post_training_options.hpp"

namespace gpumem::posttrain {

namespace launch_detail {

/// What a key means.
enum class Means : std::uint8_t {
  training,      ///< an option of how the policy is trained, with this value
  post,          ///< an option of post-training, with this value
  model,         ///< the policy's model
  named,         ///< handled by name
  nothing,       ///< it changes no memory
  not_modelled,  ///< it changes memory, unless its value is the usual one
};

/// A key that ends in '*' stands for all that begin so.
struct LaunchKey {
  std::string_view key;
  Means means = Means::nothing;
  std::string_view option = {};  ///< the option's name, or the usual value
};

using enum Means;

/// Of who starts the program: accelerate, torchrun, deepspeed; and what its words say ("trainer").
inline constexpr LaunchKey kLauncherKeys[] = {
    {"trainer", named},
    {"num_processes", named},
    {"nproc_per_node", named},
    {"num_gpus", named},
    {"nnodes", named},
    {"config_file", named},
    {"zero_stage", named},
    {"deepspeed_config_file", named},
    {"module"},
    {"multi_gpu"},
    {"mixed_precision", not_modelled, "bf16"},
    {"master_*"},
    {"main_process_*"},
    {"machine_rank"},
    {"node_rank"},
    {"rdzv_*"},
    {"standalone"},
    {"hostfile"},
    {"env:NNODES", named},
};

/// transformers' TrainingArguments, and what TRL and ms-swift add to them.
inline constexpr LaunchKey kTrainerKeys[] = {
    {"model", Means::model},
    {"model_name_or_path", Means::model},
    {"rlhf_type", named},
    {"per_device_train_batch_size", training, "batch_size"},
    {"gradient_accumulation_steps", training, "accumulate"},
    {"max_length", named},
    {"max_prompt_length", post, "prompt_length"},
    {"max_completion_length", post, "completion_length"},
    {"response_length", post, "completion_length"},
    {"packing", named},
    {"padding_free", named},
    {"train_type", named},
    {"tuner_type", named},
    {"use_peft", named},
    {"lora_rank", named},
    {"lora_r", named},
    {"lora_dropout", training, "lora_dropout"},
    {"target_modules", named},
    {"lora_target_modules", named},
    {"peft_config.r", named},
    {"peft_config.lora_alpha"},
    {"peft_config.target_modules", named},
    {"load_in_4bit", named},
    {"quant_bits", named},
    {"torch_dtype", named},
    {"dtype", named},
    {"model_init_kwargs.torch_dtype", named},
    {"model_init_kwargs.dtype", named},
    {"model_init_kwargs.attn_implementation", named},
    {"bf16", named},
    {"fp16", named},
    {"deepspeed", named},
    {"optim", named},
    {"attn_impl", named},
    {"attn_implementation", named},
    {"gradient_checkpointing", named},
    {"use_liger_kernel", named},
    {"use_liger_loss", named},
    {"beta", named},
    {"ref_model", named},
    {"precompute_ref_log_probs", named},
    {"reward_model", post, "reward_model"},
    {"reward_model_path", post, "reward_model"},
    {"teacher_model", post, "teacher_model"},
    {"teacher_model_name_or_path", post, "teacher_model"},
    {"use_vllm", named},
    {"vllm_mode", named},
    {"vllm_gpu_memory_utilization", post, "gpu_memory_utilization"},
    {"vllm_tensor_parallel_size", post, "rollout_tensor_parallel"},
    {"vllm_max_model_len", post, "max_model_len"},
    {"vllm_max_model_length", post, "max_model_len"},
    {"vllm_enforce_eager", post, "enforce_eager"},
    {"gpu_memory_utilization", post, "gpu_memory_utilization"},
    {"fast_inference", named},
    {"use_gradient_checkpointing", named},
    {"load_in_8bit", named},
    {"vllm_enable_sleep_mode", named},
    {"sleep_level", post, "sleep_level"},
    {"offload_model", named},
    {"offload_optimizer", named},
    {"local_rollout_forward_batch_size", post, "log_prob_batch"},
    {"sequence_parallel_size", post, "sequence_ranks"},
    {"max_pixels", named},
    {"freeze_vit", named},
    {"freeze_aligner", not_modelled, "true"},
    {"freeze_llm", named},
    {"vit_gradient_checkpointing", not_modelled, "true"},
    {"env:NPROC_PER_NODE", named},
    {"env:PYTORCH_CUDA_ALLOC_CONF", training, "alloc_conf"},
    {"env:MAX_PIXELS", named},
    {"env:IMAGE_MAX_TOKEN_NUM", named},
    {"env:*"},
};

/// ms-swift's Megatron arguments, beside those of its trainer.
inline constexpr LaunchKey kMegatronKeys[] = {
    {"micro_batch_size", training, "batch_size"},
    {"global_batch_size", named},
    {"tensor_model_parallel_size", training, "tensor_parallel"},
    {"pipeline_model_parallel_size", training, "pipeline_parallel"},
    {"context_parallel_size", training, "context_parallel"},
    {"expert_model_parallel_size", training, "expert_parallel"},
    {"expert_tensor_parallel_size", post, "expert_tensor_parallel"},
    {"sequence_parallel", training, "sequence_parallel"},
    {"recompute_granularity", named},
    {"recompute_method", not_modelled, "uniform"},
    {"recompute_num_layers", not_modelled, "1"},
    {"optimizer_cpu_offload", named},
    {"optimizer_offload_fraction", named},
    {"main_grads_dtype", not_modelled, "fp32"},
    {"main_params_dtype", not_modelled, "fp32"},
    {"exp_avg_dtype", not_modelled, "fp32"},
    {"exp_avg_sq_dtype", not_modelled, "fp32"},
    {"use_precision_aware_optimizer"},
    {"cross_entropy_loss_fusion", named},
    {"attention_backend", named},
    {"moe_grouped_gemm", not_modelled, "true"},
    {"moe_permute_fusion", not_modelled, "true"},
    {"moe_aux_loss_coeff"},
    {"moe_router_load_balancing_type"},
    {"moe_shared_expert_overlap"},
};

/// verl's, as hydra overrides.
inline constexpr LaunchKey kVerlKeys[] = {
    {"algorithm.adv_estimator", named},
    {"algorithm.use_kl_in_reward", named},
    {"data.max_prompt_length", post, "prompt_length"},
    {"data.max_response_length", post, "completion_length"},
    {"actor_rollout_ref.model.path", Means::model},
    {"actor_rollout_ref.model.lora_rank", named},
    {"actor_rollout_ref.model.target_modules", named},
    {"actor_rollout_ref.model.enable_gradient_checkpointing", named},
    {"actor_rollout_ref.model.use_remove_padding", not_modelled, "true"},
    {"actor_rollout_ref.model.use_liger", not_modelled, "false"},
    {"actor_rollout_ref.model.use_fused_kernels", named},
    {"actor_rollout_ref.actor.strategy", named},
    {"actor_rollout_ref.actor.use_kl_loss", named},
    {"actor_rollout_ref.actor.entropy_coeff", named},
    {"actor_rollout_ref.actor.entropy_from_logits_with_chunking", named},
    {"actor_rollout_ref.actor.entropy_checkpointing"},
    {"actor_rollout_ref.actor.use_torch_compile", named},
    {"actor_rollout_ref.actor.optim.lr"},
    {"actor_rollout_ref.actor.optim.lr_*"},
    {"actor_rollout_ref.actor.optim.warmup_*"},
    {"actor_rollout_ref.actor.optim.weight_decay"},
    {"actor_rollout_ref.actor.optim.total_training_steps"},
    {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", training, "batch_size"},
    {"actor_rollout_ref.actor.ppo_mini_batch_size", named},
    {"actor_rollout_ref.actor.use_dynamic_bsz", named},
    {"actor_rollout_ref.actor.ppo_max_token_len_per_gpu", named},
    {"actor_rollout_ref.actor.ulysses_sequence_parallel_size", post, "sequence_ranks"},
    {"actor_rollout_ref.actor.fsdp_config.param_offload", named},
    {"actor_rollout_ref.actor.fsdp_config.optimizer_offload", named},
    {"actor_rollout_ref.ref.fsdp_config.param_offload", post, "reference_offload"},
    {"actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu", named},
    {"actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu", named},
    {"actor_rollout_ref.ref.log_prob_max_token_len_per_gpu", named},
    {"actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu", named},
    {"actor_rollout_ref.rollout.name", named},
    {"actor_rollout_ref.rollout.nnodes", named},
    {"actor_rollout_ref.rollout.n_gpus_per_node"},
    {"actor_rollout_ref.rollout.n", named},
    {"actor_rollout_ref.rollout.tensor_model_parallel_size", post, "rollout_tensor_parallel"},
    {"actor_rollout_ref.rollout.gpu_memory_utilization", post, "gpu_memory_utilization"},
    {"actor_rollout_ref.rollout.enforce_eager", post, "enforce_eager"},
    {"actor_rollout_ref.rollout.free_cache_engine", named},
    {"actor_rollout_ref.rollout.max_model_len", post, "max_model_len"},
    {"critic.model.path", post, "critic_model"},
    {"reward_model.model.path", post, "reward_model"},
    {"trainer.n_gpus_per_node", named},
    {"trainer.nnodes", named},
    {"algorithm.*"},
    {"data.*"},
    {"actor_rollout_ref.actor.clip*"},
    {"actor_rollout_ref.actor.grad_clip"},
    {"actor_rollout_ref.actor.kl_loss*"},
    {"actor_rollout_ref.actor.loss_agg_mode"},
    {"actor_rollout_ref.actor.ppo_epochs"},
    {"actor_rollout_ref.actor.shuffle"},
    {"actor_rollout_ref.hybrid_engine", named},
    {"actor_rollout_ref.rollout.temperature"},
    {"actor_rollout_ref.rollout.top_*"},
    {"actor_rollout_ref.rollout.val_kwargs.*"},
    {"actor_rollout_ref.rollout.mode"},
    {"trainer.*"},
    {"critic.optim.*"},
    {"actor_rollout_ref.actor.optim.betas"},
    {"env:PYTORCH_CUDA_ALLOC_CONF", training, "alloc_conf"},
    {"env:*"},
};

inline constexpr LaunchKey kOpenRlhfKeys[] = {
    {"pretrain", Means::model},
    {"reward_pretrain", post, "reward_model"},
    {"critic_pretrain", post, "critic_model"},
    {"ref_pretrain", post, "reference_model"},
    {"advantage_estimator", named},
    {"micro_train_batch_size", training, "batch_size"},
    {"micro_rollout_batch_size", post, "log_prob_batch"},
    {"prompt_max_len", post, "prompt_length"},
    {"generate_max_len", post, "completion_length"},
    {"max_len", named},
    {"packing_samples", named},
    {"zero_stage", named},
    {"bf16", named},
    {"flash_attn", named},
    {"attn_implementation", named},
    {"gradient_checkpointing", named},
    {"adam_offload", named},
    {"lora_rank", named},
    {"target_modules", named},
    {"load_in_4bit", named},
    {"colocate_all_models", named},
    {"vllm_num_engines", named},
    {"vllm_tensor_parallel_size", post, "rollout_tensor_parallel"},
    {"vllm_gpu_memory_utilization", post, "gpu_memory_utilization"},
    {"vllm_enable_sleep", named},
    {"deepspeed_enable_sleep", named},
    {"enforce_eager", post, "enforce_eager"},
    {"init_kl_coef", named},
    {"actor_num_gpus_per_node", named},
    {"actor_num_nodes", named},
    {"ring_attn_size", post, "sequence_ranks"},
    {"entropy_loss_coef", named},
    {"async_train"},
    {"env:*"},
};

/// Keys that change no memory of a GPU, with a space between them.
inline constexpr std::string_view kWithoutEffect =
    "actor_learning_rate adam_beta* alpha apply_chat_template async_rollout cached_dataset* cached_val_dataset* "
    "center_rewards_coefficient ckpt_path columns cpo_alpha critic_learning_rate critic_num* custom_reward* "
    "dataloader* dataset* ddp_timeout desirable_weight disable_dropout epsilon* eval* external_plugins finetune "
    "gamma hub_* input_key label_smoothing lambda learning_rate lmbda load_best_model* load_from_cache_file log* "
    "lora_alpha loss_type loss_weights lr* max_epochs max_grad_norm max_samples max_steps merge_lora min_lr "
    "move_model_batches n_samples_per_prompt no_load* no_save* normalize_reward num_episodes num_generations "
    "num_iterations num_train_epochs output_dir per_device_eval_batch_size prompt_data push* ref_num* "
    "remote_rm_url remove_unused_columns report_to reward_funcs reward_num* reward_weights rollout_batch_size "
    "rpo_alpha run_name save* seed sft_alpha simpo_gamma split_dataset_ratio stop* system temperature top_k top_p "
    "train_batch_size truncation_strategy undesirable_weight use_hf use_wandb val_dataset* vllm_sync_backend "
    "warmup* weight_decay whiten*";

/// Words before the first setting that start another program.
inline constexpr std::string_view kLaunchers[] = {
    "accelerate", "torchrun", "deepspeed", "ray", "torch.distributed.run", "torch.distributed.launch"};

inline bool matches(std::string_view pattern, std::string_view key) {
  if (!pattern.ends_with('*')) return pattern == key;
  return key.starts_with(pattern.substr(0, pattern.size() - 1));
}

inline bool changes_nothing(std::string_view key) {
  std::string_view rest = kWithoutEffect;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (matches(rest.substr(0, end), key)) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

inline std::vector<std::span<const LaunchKey>> keys_of(Program program) {
  switch (program) {
    case Program::trl:
    case Program::ms_swift:
    case Program::unsloth: return {kTrainerKeys, kLauncherKeys};
    case Program::megatron: return {kMegatronKeys, kTrainerKeys, kLauncherKeys};
    case Program::verl: return {kVerlKeys, kLauncherKeys};
    case Program::openrlhf: break;
  }
  return {kOpenRlhfKeys, kLauncherKeys};
}

inline const LaunchKey* find_key(Program program, std::string_view key) {
  for (const std::span<const LaunchKey> keys : keys_of(program)) {
    for (const LaunchKey& row : keys) {
      if (matches(row.key, key)) return &row;
    }
  }
  return nullptr;
}

inline bool is_false(std::string_view word) {
  return word.empty() || word == "false" || word == "False" || word == "none" || word == "null" || word == "None";
}
inline bool is_true(std::string_view word) { return word == "true" || word == "True" || word == "1"; }

/// Whether a key has the value with which nothing differs: "true" also as "1", and all others also as what is off.
inline bool is_usual(std::string_view value, std::string_view usual) {
  if (usual == "true") return is_true(value);
  if (usual == "0" && !value.empty() && value.find_first_not_of("0.") == std::string_view::npos) return true;
  return value == usual || is_false(value);
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

/// The algorithm that a word names, as in "trl dpo", "scripts/dpo.py" or "openrlhf.cli.train_dpo"; empty: none.
inline std::string_view algorithm_in(std::string_view word) {
  if (const std::size_t slash = word.rfind('/'); slash != std::string_view::npos) word.remove_prefix(slash + 1);
  if (word.ends_with(".py")) word.remove_suffix(3);
  if (const std::size_t dot = word.rfind('.'); dot != std::string_view::npos) word.remove_prefix(dot + 1);
  if (word.starts_with("train_")) word.remove_prefix(std::string_view("train_").size());
  if (word.ends_with("_ray")) word.remove_suffix(std::string_view("_ray").size());
  if (word == "reward" || word == "reward_modeling") return "rm";
  return model::value_of(kAlgorithms, word) ? word : std::string_view();
}

/// A variable of the shell, which nobody knows here.
inline bool is_variable(std::string_view word) { return word.find('$') != std::string_view::npos; }

/// Reads the words of a command from left to right.
class WordReader {
 public:
  explicit WordReader(std::span<const std::string> words) : words_(words) {}

  core::Result<std::vector<LaunchSetting>> read() {
    for (at_ = 0; at_ < words_.size(); ++at_) {
      const std::string& word = words_[at_];
      if (word.starts_with("--") && word.size() > 2) {
        take_flag(word);
      } else if (const std::size_t equals = word.find('='); equals != std::string::npos && equals > 0) {
        take_pair(word, equals);
      } else if (starts_program(at_)) {
        take_program(word);
      } else if (word == "--" && launched_) {
        begun_ = false;
      } else if (!begun_) {
        take_first(word);
      } else {
        return core::Error{core::ErrorCode::invalid_argument,
                           "the word " + core::quoted(core::shortened(word, 60)) + " belongs to no setting",
                           {}};
      }
    }
    return std::move(settings_);
  }

 private:
  /// Behind a launcher's own settings: the script, or the module behind -m.
  [[nodiscard]] bool starts_program(std::size_t at) const {
    if (!launched_ || !begun_) return false;
    const std::string& word = words_[at];
    return word.ends_with(".py") || word == "-m" || (at > 0 && words_[at - 1] == "-m");
  }
  void take_program(const std::string& word) {
    if (word == "-m") return;
    launched_ = begun_ = false;
    take_first(word);
  }
  void take_first(const std::string& word) {
    const bool launcher =
        std::find(std::begin(kLaunchers), std::end(kLaunchers), std::string_view(word)) != std::end(kLaunchers);
    if (launcher) launched_ = true;
    if (word.ends_with(".py")) launched_ = false;
    if (const std::string_view algorithm = algorithm_in(word); !algorithm.empty()) {
      settings_.push_back({"trainer", std::string(algorithm)});
    }
  }

  void take_flag(const std::string& word) {
    begun_ = true;
    const std::size_t equals = word.find('=');
    std::string key = word.substr(2, equals == std::string::npos ? std::string::npos : equals - 2);
    std::replace(key.begin(), key.end(), '-', '_');
    if (equals != std::string::npos) {
      settings_.push_back({std::move(key), unquoted(word.substr(equals + 1))});
      return;
    }
    if (launched_ && key == "module" && at_ + 1 < words_.size()) {
      take_program(words_[++at_]);
      return;
    }
    std::string value = "true";
    // A list has several words: "--dataset a b".
    for (bool first = true; at_ + 1 < words_.size() && is_value(at_ + 1); first = false) {
      if (first) value.clear();
      else value += '+';
      value += unquoted(words_[++at_]);
    }
    settings_.push_back({std::move(key), std::move(value)});
  }
  /// Whether the word belongs to the flag in front of it.
  [[nodiscard]] bool is_value(std::size_t at) const { return !words_[at].starts_with("--") && !starts_program(at); }

  void take_pair(const std::string& word, std::size_t equals) {
    std::string key = word.substr(0, equals);
    const std::size_t plus = key.find_first_not_of('+');
    key.erase(0, plus == std::string::npos ? 0 : plus);
    if (is_environment(key)) key.insert(0, "env:");
    else begun_ = true;
    settings_.push_back({std::move(key), unquoted(word.substr(equals + 1))});
  }

  std::span<const std::string> words_;
  std::size_t at_ = 0;
  bool begun_ = false;     ///< a setting was seen
  bool launched_ = false;  ///< the settings are a launcher's, until the program comes
  std::vector<LaunchSetting> settings_;
};

}  // namespace launch_detail

GPUMEM_INLINE core::Result<std::vector<LaunchSetting>> launch_settings(std::span<const std::string> words) {
  return launch_detail::WordReader(words).read();
}

GPUMEM_INLINE std::optional<Program> program_of(std::span<const LaunchSetting> settings) {
  const auto any = [&](std::string_view begin) {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const LaunchSetting& at) { return launch_detail::matches(begin, at.key); });
  };
  if (any("actor_rollout_ref.*")) return Program::verl;
  if (any("pretrain")) return Program::openrlhf;
  if (any("rlhf_type")) return any("micro_batch_size") ? Program::megatron : Program::ms_swift;
  if (any("per_device_train_batch_size") || any("model_name_or_path")) return Program::trl;
  return std::nullopt;
}

GPUMEM_INLINE void set_buckets(model::Layout& layout, std::int64_t width) {
  const std::int64_t square = core::bounded_product({width, width});
  layout.zero_reduce_bucket = square;
  layout.zero_prefetch_bucket = square / 10 * 9;
  layout.zero_persistence_threshold = core::bounded_product({10, width});
}

}  // namespace gpumem::posttrain
