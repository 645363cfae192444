#pragma once

#include "gpumem/posttrain/impl/launch_inl.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem/posttrain/post_training_job.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/job/option_places.hpp"

namespace gpumem::posttrain {

namespace launch_detail {

/// Keys of which each is of one trainer of TRL, whose own configs name none. Source: TRL 0.12 to 1.9, trainer and
/// experimental: *_config.py.
struct TrainerKeys {
  std::string_view trainer;
  std::string_view keys;  ///< with a space between them
};
inline constexpr TrainerKeys kTrainersOfKeys[] = {
    {"RLOOTrainer", "rloo_k normalize_advantage normalize_advantages reward_clip_range token_level_kl"},
    {"NashMDTrainer", "mixture_coef"},
    {"OnlineDPOTrainer", "judge"},
    {"GKDTrainer", "teacher_model_name_or_path lmbda seq_kd"},
    {"PPOTrainer", "sft_model_path vf_coef cliprange_value kl_estimator num_ppo_epochs response_length"},
    {"GRPOTrainer",
     "scale_rewards importance_sampling_level top_entropy_quantile sapo_* vespo_* replay_buffer_size "
     "multi_objective_aggregation off_policy_mask_threshold vllm_importance_sampling_* cast_lm_head_to_fp32 "
     "num_generations reward_weights"},
    {"KTOTrainer", "desirable_weight undesirable_weight"},
    {"BCOTrainer", "min_density_ratio max_density_ratio prompt_sample_size"},
    {"CPOTrainer", "cpo_alpha simpo_gamma"},
    {"DPOTrainer", "f_divergence_type ld_alpha rpo_alpha discopop_tau use_weighting reference_free"},
    {"RewardTrainer", "center_rewards_coefficient"},
    {"PRMTrainer", "step_separator train_on_last_step_only"},
    {"SFTTrainer", "completion_only_loss assistant_only_loss packing packing_strategy eval_packing"},
};

/// The words that a setting takes, with a space between them.
struct SettingWords {
  std::string_view keys;  ///< with a space between them
  std::string_view words;
};
inline constexpr std::string_view kOnOrOff = "true false";  ///< and what else means one of them
inline constexpr std::string_view kKernelsOfAttention =
    "eager sdpa flash_attention_2 flash_attention_3 flash_attention_4 flex_attention flash_attn flash";

/// Settings of which a word decides memory, and all words that they take. Source: transformers 4.57, training_args.py
/// (FSDPOption); TRL 0.16 to 1.9, trainer and experimental: *_config.py; ms-swift 4, arguments: rlhf_args.py,
/// base_args.
inline constexpr SettingWords kWordsOfTrainers[] = {
    {"torch_dtype dtype model_init_kwargs.torch_dtype model_init_kwargs.dtype", "bfloat16 float16 float32 auto"},
    {"attn_implementation attn_impl model_init_kwargs.attn_implementation", kKernelsOfAttention},
    {"vllm_mode", "server colocate"},
    {"loss_type",
     "sigmoid hinge ipo exo_pair nca_pair robust bco_pair sppo_hard aot aot_pair aot_unpaired apo_zero apo_down "
     "discopop "
     "sft sigmoid_norm kto apo_zero_unpaired bco simpo alphapo grpo bnpo dr_grpo dapo cispo sapo luspo vespo fipo gspo "
     "real cpo nll chunked_nll dft"},
    {"fsdp", "full_shard shard_grad_op no_shard hybrid_shard hybrid_shard_zero2 offload auto_wrap fsdp2 true false"},
    {"bnb_4bit_quant_type", "nf4 fp4"},
    {"rlhf_type", "dpo orpo simpo kto cpo rm ppo grpo gkd"},
    {"quant_bits", "1 2 3 4 8 float8"},
    {"bf16 fp16 use_vllm use_peft use_liger_kernel use_liger_loss load_in_4bit load_in_8bit packing padding_free "
     "precompute_ref_log_probs vllm_enable_sleep_mode offload_model offload_optimizer activation_offloading "
     "disable_dropout use_dora gradient_checkpointing freeze_vit freeze_llm freeze_aligner use_bnb_nested_quant "
     "gradient_checkpointing_kwargs.use_reentrant vllm_enforce_eager fast_inference optimizer_cpu_offload "
     "sequence_parallel bnb_4bit_use_double_quant",
     kOnOrOff},
};
/// Source: LLaMA-Factory 0.9.4, hparams; axolotl 0.18, utils/schemas.
inline constexpr SettingWords kWordsOfLlamaFactory[] = {
    {"stage", "pt sft rm ppo dpo kto"},
    {"pref_loss", "sigmoid hinge ipo kto_pair orpo simpo"},
    {"flash_attn", "auto disabled sdpa fa2 fa3"},
    {"quantization_bit", "2 3 4 5 6 8"},
    {"pure_bf16 disable_gradient_checkpointing use_reentrant_gc enable_liger_kernel double_quantization", kOnOrOff},
};
inline constexpr SettingWords kWordsOfAxolotl[] = {
    {"bf16 fp16", "auto full true false"},
    {"gradient_checkpointing", "true false offload offload_disk unsloth"},
    {"load_in_4bit load_in_8bit flash_attention eager_attention lora_target_linear peft_use_dora", kOnOrOff},
};
/// Source: OpenRLHF 0.8 and 2026-08, cli/train_ppo_ray.py and train_dpo.py.
inline constexpr SettingWords kWordsOfOpenRlhf[] = {
    {"zero_stage ds.zero_stage", "0 1 2 3"},
    {"attn_implementation ds.attn_implementation", kKernelsOfAttention},
    {"param_dtype ds.param_dtype", "bf16 fp16"},
};
/// Source: verl 0.7 (2026-01), trainer/config; workers/config/engine.py.
inline constexpr SettingWords kWordsOfVerl[] = {
    {"actor_rollout_ref.actor.strategy critic.strategy actor_rollout_ref.ref.strategy",
     "fsdp fsdp2 megatron veomni torchtitan dp automodel"},
    {"model_engine", "dp fsdp fsdp2 megatron veomni torchtitan automodel"},
    {"actor_rollout_ref.rollout.name", "vllm sglang hf trtllm vllm_omni naive"},
    {"actor_rollout_ref.actor.fsdp_config.model_dtype actor_rollout_ref.ref.fsdp_config.model_dtype "
     "critic.model.fsdp_config.model_dtype",
     "fp32 float32 bf16 bfloat16 fp16 float16"},
    {"actor_rollout_ref.actor.fsdp_config.param_offload actor_rollout_ref.actor.fsdp_config.optimizer_offload "
     "actor_rollout_ref.actor.fsdp_config.offload_policy actor_rollout_ref.ref.fsdp_config.param_offload "
     "actor_rollout_ref.actor.megatron.param_offload actor_rollout_ref.actor.megatron.optimizer_offload "
     "actor_rollout_ref.actor.use_dynamic_bsz actor_rollout_ref.actor.use_kl_loss algorithm.use_kl_in_reward "
     "actor_rollout_ref.actor.use_torch_compile actor_rollout_ref.actor.entropy_from_logits_with_chunking "
     "actor_rollout_ref.model.enable_gradient_checkpointing actor_rollout_ref.model.use_remove_padding "
     "actor_rollout_ref.model.use_liger actor_rollout_ref.model.use_fused_kernels actor_rollout_ref.hybrid_engine "
     "actor_rollout_ref.model.enable_activation_offload actor_rollout_ref.rollout.free_cache_engine "
     "actor_rollout_ref.rollout.enforce_eager reward_model.enable reward_model.enable_resource_pool",
     kOnOrOff},
};
/// What a program calls the parts of a layout, of which each names its engine before a colon: "fsdp:d4p1t1".
inline constexpr std::string_view kEnginesOfAreal = "fsdp megatron archon sglang vllm";
/// Sources (2026-08): NeMo-RL, models/policy, models/automodel/setup.py; slime, utils/arguments.py; AReaL,
/// api/cli_args.py; ROLL, configs; PRIME-RL, configs/trainer.py and rl.py; open-instruct, grpo_utils.py.
inline constexpr SettingWords kWordsOfNemoRl[] = {
    {"policy.precision", "bfloat16 float16 float32"},
    {"policy.generation.backend", "vllm sglang megatron trtllm dynamo"},
    {"policy.megatron_cfg.recompute_granularity", "full selective"},
    {"policy.dtensor_cfg.enabled policy.dtensor_cfg.cpu_offload policy.dtensor_cfg.activation_checkpointing "
     "policy.dtensor_cfg.sequence_parallel policy.dtensor_cfg.lora_cfg.enabled "
     "policy.dtensor_cfg.lora_cfg.match_all_linear policy.megatron_cfg.enabled policy.megatron_cfg.sequence_parallel "
     "policy.megatron_cfg.activation_checkpointing policy.megatron_cfg.peft.enabled policy.sequence_packing.enabled "
     "policy.dynamic_batching.enabled policy.generation.colocated.enabled "
     "policy.megatron_cfg.optimizer.optimizer_cpu_offload policy.generation.vllm_cfg.enforce_eager",
     kOnOrOff},
};
inline constexpr SettingWords kWordsOfSlime[] = {
    {"advantage_estimator",
     "grpo gspo cispo reinforce_plus_plus reinforce_plus_plus_baseline ppo on_policy_distillation"},
    {"loss_type", "policy_loss sft_loss custom_loss"},
    {"recompute_granularity", "full selective"},
};
inline constexpr SettingWords kWordsOfAreal[] = {
    {"actor.dtype ref.dtype", "bfloat16 float16 float32"},
    {"actor.backend rollout.backend ref.backend allocation_mode", kEnginesOfAreal},
    {"actor.scheduling_strategy.type ref.scheduling_strategy.type critic.scheduling_strategy.type "
     "rollout.scheduling_strategy.type",
     "separation colocation"},
    {"train_dataset.type", "rl sft rw dpo"},
    {"actor.megatron.recompute_granularity", "full selective"},
    {"actor.gradient_checkpointing actor.use_lora actor.offload actor.fsdp.offload_params ref.offload "
     "sglang.disable_cuda_graph vllm.enforce_eager",
     kOnOrOff},
};
inline constexpr SettingWords kWordsOfRoll[] = {
    {"actor_train.strategy_args.strategy_name actor_infer.strategy_args.strategy_name "
     "reference.strategy_args.strategy_name",
     "hf_infer vllm sglang megatron_infer megatron_train fsdp2_infer fsdp2_train mock_infer deepspeed_infer "
     "deepspeed_train diffusion_deepspeed_train"},
    {"adv_estimator", "gae reinforce grpo gigpo step_reinforce agentic_reinforce"},
    {"actor_train.model_args.dtype", "fp32 bf16 fp16"},
    {"actor_train.strategy_args.strategy_config.param_dtype", "bf16 bfloat16 fp16 float16 fp32 float32"},
    {"actor_train.strategy_args.strategy_config.recompute_granularity", "full selective"},
    {"actor_train.model_args.disable_gradient_checkpointing actor_train.use_dynamic_batching_in_train "
     "actor_train.use_sequence_packing actor_train.strategy_args.strategy_config.offload_policy "
     "actor_infer.strategy_args.strategy_config.enforce_eager enable_reference use_kl_loss",
     kOnOrOff},
};
inline constexpr SettingWords kWordsOfPrimeRl[] = {
    {"trainer.model.ac.mode", "full selective"},
    {"trainer.model.optimization_dtype trainer.model.reduce_dtype", "bfloat16 float32"},
    {"trainer.optim.type", "adamw sgd muon sign_sgd"},
    {"deployment.type", "single_node multi_node"},
    {"trainer.model.optim_cpu_offload trainer.model.fsdp_cpu_offload inference.vllm.enforce_eager", kOnOrOff},
};
inline constexpr SettingWords kWordsOfOpenInstruct[] = {
    {"deepspeed_stage", "0 1 2 3"},
    {"single_gpu_mode load_ref_policy use_vllm_logprobs deepspeed_offload_param deepspeed_offload_optimizer "
     "gradient_checkpointing vllm_enforce_eager use_peft use_lora",
     kOnOrOff},
};

inline std::vector<std::span<const SettingWords>> words_of(Program program) {
  switch (program) {
    case Program::trl:
    case Program::unsloth:
    case Program::ms_swift:
    case Program::megatron: return {kWordsOfTrainers};
    case Program::llama_factory: return {kWordsOfLlamaFactory, kWordsOfTrainers};
    case Program::axolotl: return {kWordsOfAxolotl};
    case Program::openrlhf: return {kWordsOfOpenRlhf};
    case Program::verl:
    case Program::verl_megatron: return {kWordsOfVerl};
    case Program::nemo_rl:
    case Program::nemo_rl_megatron: return {kWordsOfNemoRl};
    case Program::slime: return {kWordsOfSlime};
    case Program::areal:
    case Program::areal_megatron: return {kWordsOfAreal};
    case Program::roll:
    case Program::roll_megatron: return {kWordsOfRoll};
    case Program::prime_rl: return {kWordsOfPrimeRl};
    case Program::open_instruct: return {kWordsOfOpenInstruct};
    default: break;
  }
  return {};
}

/// The words of a value, whatever its program puts between them.
inline std::vector<std::string_view> names_in(std::string_view text) {
  std::vector<std::string_view> names;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" +,[]'\"|"), text.size());
    if (end > 0) names.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

/// Each word of a value is one that the setting takes. A switch has more words than these; a kernel of the hub, and a
/// variable of the shell, may be any.
inline core::Status check_value(const LaunchSetting& setting, std::string_view words) {
  constexpr std::string_view kSwitches = "true false yes no on off y n t f 1 0 none null";
  if (is_false(setting.value) || is_variable(setting.value)) return core::Done{};
  for (std::string_view word : names_in(setting.value)) {
    if (words == kEnginesOfAreal) {
      if (word.find(':') == std::string_view::npos || word.starts_with("ffn:")) continue;
      word = word.substr(0, word.find(':'));
    }
    const bool switches = words.ends_with(kOnOrOff) && is_among(core::lower_case(word), kSwitches);
    const bool of_hub = words == kKernelsOfAttention && word.find('/') != std::string_view::npos;
    if (switches || of_hub || (words == kKernelsOfAttention && word == "paged")) continue;
    if (core::Status fit = core::check_word(setting.key, word, words); !fit) return fit;
  }
  return core::Done{};
}

/// A DeepSpeed config: one that is there, the name of one of ms-swift's, or one whose name says its stage.
inline core::Status check_deepspeed(const LaunchSetting& setting) {
  const std::string& value = setting.value;
  if (is_false(value) || is_true(value) || is_variable(value) || value.starts_with('{')) return core::Done{};
  std::error_code failure;
  if (std::filesystem::exists(value, failure)) return core::Done{};
  for (const std::string_view name : {"zero", "zero_", "zero-", "stage", "stage_", "_z"}) {
    const std::size_t at = value.find(name);
    const std::size_t stage = at == std::string::npos ? at : at + name.size();
    if (stage < value.size() && value[stage] >= '0' && value[stage] <= '3') return core::Done{};
  }
  return core::Error{core::ErrorCode::invalid_argument,
                     setting.key + ": there is no file " + core::quoted(core::shortened(value, 60)) +
                         ", and the name says no stage of ZeRO (zero1, zero2, zero3); give the file, or `sharding`",
                     {}};
}

/// Whether the settings that decide memory have words that their program takes. Errors: invalid_argument, naming one.
inline core::Status check_words(Program program, std::span<const LaunchSetting> settings) {
  for (const LaunchSetting& setting : settings) {
    for (const std::span<const SettingWords> rows : words_of(program)) {
      const auto row = std::find_if(rows.begin(), rows.end(),
                                    [&](const SettingWords& at) { return is_among(setting.key, at.keys); });
      if (row == rows.end()) continue;
      if (core::Status fit = check_value(setting, row->words); !fit) return fit;
      break;
    }
  }
  return core::Done{};
}

}  // namespace launch_detail

namespace post_training_options_detail {

using Options = PostTrainingOptions;

/// More tokens, sequences or GPUs than any job has; products of two still fit 64 bits, and so do sums of many.
inline constexpr std::int64_t kMostOfOption = std::int64_t{1} << 31;

inline std::optional<std::int64_t> whole_of(std::string_view word) {
  const std::optional<std::int64_t> value = core::parse_whole(word);
  return value && *value >= 0 && *value <= kMostOfOption ? value : std::nullopt;
}

/// A whole number of at least 1; of an option that is not optional, also 0.
template <auto kMember>
bool set_whole(Options& options, std::string_view word) {
  const std::optional<std::int64_t> value = whole_of(word);
  auto& to = options.*kMember;
  constexpr bool kOptional = std::is_same_v<std::remove_reference_t<decltype(to)>, std::optional<std::int64_t>>;
  if (!value || (kOptional && *value < 1)) return false;
  to = *value;
  return true;
}

/// More than 0 and at most 1.
template <auto kMember>
bool set_share(Options& options, std::string_view word) {
  const std::optional<double> share = core::parse_number(word);
  if (!share || *share <= 0.0 || *share > 1.0) return false;
  options.*kMember = *share;
  return true;
}

template <auto kMember>
bool set_flag(Options& options, std::string_view word) {
  const std::string text = job::job_options_detail::spelled_as_listed(word);
  const bool on = text == "true" || text == "1";
  if (!on && text != "false" && text != "0") return false;
  options.*kMember = on;
  return true;
}

template <auto kMember>
bool set_text(Options& options, std::string_view word) {
  options.*kMember = std::string(word);
  return true;
}

template <auto kMember, const auto& kList>
bool set_choice(Options& options, std::string_view word) {
  const auto known = model::value_of(kList, job::job_options_detail::spelled_as_listed(word));
  if (known) options.*kMember = *known;
  return known.has_value();
}

template <const auto& kList>
std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const auto& row : kList) all.push_back(row.name);
  return all;
}

/// Also by the names that programs have for it: "rloo", "cpo".
inline bool set_algorithm(Options& options, std::string_view word) {
  if (set_choice<&Options::algorithm, kAlgorithms>(options, word)) return true;
  const auto known = launch_detail::algorithm_of(word);
  if (known) options.algorithm = *known;
  return known.has_value();
}

inline bool set_sleep(Options& options, std::string_view word) {
  const std::optional<std::int64_t> level = whole_of(word);
  if (!level || *level > 2) return false;
  options.sleep_level = *level;
  return true;
}

/// GPUs: at least one.
template <auto kMember>
bool set_ranks(Options& options, std::string_view word) {
  return word != "0" && set_whole<kMember>(options, word);
}

/// More than 0 and at most 1; or 0.
inline bool set_states(Options& options, std::string_view word) {
  if (word == "0") options.states_on_host = 0.0;
  return word == "0" || set_share<&Options::states_on_host>(options, word);
}

/// "0, 1 or 2 (vLLM sleeps while the policy is trained: ...)".
inline std::string values_of(const PostTrainingOption& option) {
  if (option.value.empty()) return "true or false";
  std::string kind = option.value == "SHARE" ? "a share of 1" : "a whole number";
  if (option.name == "sleep_level") kind = "0, 1 or 2";
  return kind + " (" + std::string(option.help) + ")";
}

inline constexpr PostTrainingOption kOptions[] = {
    {"algorithm", "NAME", "what is trained on: pairs of answers, or completions of the model's own", &set_algorithm,
     &names<kAlgorithms>},
    {"program", "NAME", "the program that trains; decides the order of phases and what is held in them",
     &set_choice<&Options::program, kPrograms>, &names<kPrograms>},
    {"reference", "NAME", "what the policy is compared with", &set_choice<&Options::reference, kReferences>,
     &names<kReferences>},
    {"reference_model", "PATH", "the reference's config.json; default: the policy's",
     &set_text<&Options::reference_model>},
    {"critic_model", "PATH", "PPO: the critic's config.json; default: the policy's", &set_text<&Options::critic_model>},
    {"reward_model", "PATH", "the config.json of a reward model on the same GPUs", &set_text<&Options::reward_model>},
    {"teacher_model", "PATH", "distillation: the teacher's config.json", &set_text<&Options::teacher_model>},
    {"prompt_length", "N", "tokens of the longest prompt", &set_whole<&Options::prompt_length>},
    {"completion_length", "N", "tokens of the longest completion", &set_whole<&Options::completion_length>},
    {"packing", "", "a batch is one row of `seq_length` tokens, however many samples it holds",
     &set_flag<&Options::packing>},
    {"log_prob_batch", "N", "sequences of a pass for log-probabilities; default: the batch's",
     &set_whole<&Options::log_prob_batch>},
    {"log_prob_tokens", "N", "packing: tokens of a row of a pass for log-probabilities",
     &set_whole<&Options::log_prob_tokens>},
    {"rollout", "NAME", "who generates completions", &set_choice<&Options::rollout, kRollouts>, &names<kRollouts>},
    {"num_generations", "N", "completions of each prompt", &set_whole<&Options::num_generations>},
    {"rollout_batch", "N", "completions that one GPU generates at once with generate; default: those of a step",
     &set_whole<&Options::rollout_batch>},
    {"gpu_memory_utilization", "SHARE", "share of the GPU that vLLM takes on it",
     &set_share<&Options::gpu_memory_utilization>},
    {"rollout_tensor_parallel", "N", "GPUs that share each of vLLM's layers",
     &set_ranks<&Options::rollout_tensor_parallel>},
    {"max_model_len", "N", "tokens of vLLM's longest sequence; default: prompt and completion",
     &set_whole<&Options::max_model_len>},
    {"max_num_seqs", "N", "sequences that the engine works on at once; default: the program's",
     &set_whole<&Options::max_num_seqs>},
    {"max_num_batched_tokens", "N", "tokens of one of the engine's steps; default: the program's",
     &set_whole<&Options::max_num_batched_tokens>},
    {"enforce_eager", "", "the engine captures no CUDA graphs", &set_flag<&Options::enforce_eager>},
    {"engine", "NAME", "the server that generates on the same GPUs", &set_choice<&Options::engine, kEngines>,
     &names<kEngines>},
    {"engine_version", "NAME", "the engine's version, such as 0.19.0", &set_text<&Options::engine_version>},
    {"sleep_level", "N", "vLLM sleeps while the policy is trained: 0 no, 1 weights on the host, 2 weights dropped",
     &set_sleep},
    {"offload_policy", "NAME", "what of the policy is on the host while others run",
     &set_choice<&Options::offload, kWaitings>, &names<kWaitings>},
    {"reference_offload", "", "the reference model is on the host while others run",
     &set_flag<&Options::reference_offload>},
    {"states_on_host", "SHARE", "share of the optimizer's states that is always on the host", &set_states},
    {"sequence_ranks", "N", "GPUs that share each sequence: Ulysses, ring attention",
     &set_ranks<&Options::sequence_ranks>},
    {"length_limit", "N", "tokens of the longest sequence that there may be; the upper end of the range is for these",
     &set_whole<&Options::length_limit>},
    {"expert_tensor_parallel", "N", "GPUs that share each expert's weights in Megatron; default: those of a layer",
     &set_ranks<&Options::expert_tensor_parallel>},
    {"entropy", "NAME", "how an entropy that the loss has is computed", &set_choice<&Options::entropy, kEntropies>,
     &names<kEntropies>},
    {"label_loss", "", "distillation and pairs: the loss has the cross entropy of labels, too",
     &set_flag<&Options::label_loss>},
    {"old_log_probs", "", "a pass computes the policy's log-probabilities before the update",
     &set_flag<&Options::old_log_probs>},
};

}  // namespace post_training_options_detail

GPUMEM_INLINE DecidingKey trainer_of_keys(std::span<const LaunchSetting> settings) {
  for (const launch_detail::TrainerKeys& row : launch_detail::kTrainersOfKeys) {
    for (const LaunchSetting& setting : settings) {
      if (launch_detail::is_among(setting.key, row.keys)) return {row.trainer, setting.key};
    }
  }
  return {};
}

GPUMEM_INLINE std::span<const PostTrainingOption> post_training_options() {
  return post_training_options_detail::kOptions;
}

GPUMEM_INLINE const PostTrainingOption* find_post_training_option(std::string_view name) {
  const auto all = post_training_options();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const PostTrainingOption& at) { return at.name == name; });
  return found == all.end() ? nullptr : &*found;
}

GPUMEM_INLINE std::string help_of(const PostTrainingOption& option) {
  std::string text(option.help);
  if (option.choices == nullptr) return text;
  const char* separator = ": ";
  for (const std::string_view choice : option.choices()) {
    text.append(separator).append(choice);
    separator = ", ";
  }
  return text;
}

GPUMEM_INLINE core::Status set_post_training_option(PostTrainingOptions& options, std::string_view name,
                                                    std::string_view word) {
  const PostTrainingOption* const option = find_post_training_option(name);
  if (option == nullptr) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "a post-training job has no option " + core::quoted(core::shortened(name, 60)),
                       {}};
  }
  if (option->set(options, word)) return core::Done{};
  if (option->choices == nullptr) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "the " + std::string(name) + " cannot be " + core::quoted(word) + "; give " +
                           post_training_options_detail::values_of(*option),
                       {}};
  }
  const std::vector<std::string_view> choices = option->choices();
  std::string all;
  for (const std::string_view choice : choices) all.append(all.empty() ? "" : ", ").append(choice);
  return core::Error{core::ErrorCode::invalid_argument,
                     "there is no " + std::string(name) + " " + core::quoted(word) + core::did_you_mean(word, choices) +
                         "; choose one of " + all,
                     {}};
}

}  // namespace gpumem::posttrain
