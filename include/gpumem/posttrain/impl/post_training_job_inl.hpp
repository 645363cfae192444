#pragma once

#include "gpumem/posttrain/post_training_job.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/plan/phased_plan.hpp"

namespace gpumem::posttrain {

namespace post_training_job_detail {

inline core::Error refused(std::string message) { return {core::ErrorCode::invalid_argument, std::move(message), {}}; }

/// The words that the model's head knows: the width of its last linear layer.
inline std::int64_t vocabulary_of(const model::ModelGraph& graph) {
  std::int64_t words = 0;
  for (const model::Layer& layer : graph.layers()) {
    if (graph.op(layer) == "linear") words = graph.attributes(layer).integer("out_features").value_or(words);
  }
  return words;
}

/// Whether the loop gets the logits in float32.
inline bool makes_float_logits(const model::TrainingJob& policy) {
  return model::is_float32(policy.precision) || model::is_autocast(policy.precision) || policy.float_outputs;
}

/// The rank's part, in two bytes each.
inline std::int64_t logits_bytes(const Decided& decided, const model::TrainingJob& of) {
  const bool some = of.objective.count > 0 && !model::reads_last(of.objective.kind);
  const std::int64_t positions = some ? of.objective.count : of.sequence_length.value_or(0);
  const std::int64_t words =
      vocabulary_of(*decided.policy.graph) / std::max<std::int64_t>(of.layout.tensor_parallel, 1);
  return core::bounded_product({of.batch_size, positions, words, 2});
}

/// The policy's, in the type in which the loop gets them.
inline std::int64_t returned_bytes(const Decided& decided) {
  const std::int64_t narrow = logits_bytes(decided, decided.policy);
  return makes_float_logits(decided.policy) ? core::bounded_product({2, narrow}) : narrow;
}

inline std::int64_t whole_weights(const model::TrainingJob& policy) {
  std::int64_t elements = 0;
  for (const model::Layer& layer : policy.graph->layers()) {
    elements = core::bounded_sum({elements, layer.parameters - layer.tied_parameters});
  }
  return core::bounded_product({elements, core::element_size(model::parameter_dtype(policy.precision))});
}

/// Whether these are TRL's trainers, as they are; Unsloth's log-probabilities are its own (fused).
inline bool runs_trl(const ProgramRow& program) {
  return program.value == Program::trl || program.value == Program::axolotl || program.value == Program::unsloth;
}

/// The cache of transformers' generate(). Rotary embeddings multiply keys with cosines of the hidden states' type, so
/// that under autocast over float32 weights keys are float32, and values are not. TRL's online DPO has no cache where
/// it computes activations again, and reads all tokens for each one. Source: transformers 4.48 to 5.17,
/// models/llama/modeling_llama.py: apply_rotary_pos_emb; TRL 0.12 to 1.9, online_dpo_trainer.py: use_cache.
inline plan::GrowingCache cache_of(const PostTrainingJob& job, const Decided& decided,
                                   const serve::ServedModel& sizes) {
  constexpr std::int64_t kWide = 4;
  constexpr std::int64_t kNarrow = 2;
  const model::TrainingJob& policy = decided.policy;
  const std::int64_t passes = decided.algorithm.in_step ? 1 : policy.gradient_accumulation;
  const bool casts = model::is_autocast(policy.precision) && policy.base_dtype == model::BaseType::precision &&
                     policy.quantize == model::Quantization::none;
  const bool whole = model::is_float32(policy.precision);
  const bool wide = whole || casts;
  plan::GrowingCache cache;
  cache.sequences = job.options.rollout_batch.value_or(core::bounded_product({policy.batch_size, passes}));
  cache.completion = job.options.completion_length.value_or(0);
  cache.prompt = std::max<std::int64_t>(policy.sequence_length.value_or(0) - cache.completion, 1);
  if (decided.algorithm.in_step && policy.activation_checkpointing && runs_trl(decided.program)) return cache;
  const bool latent = sizes.latent_dim > 0;
  const std::int64_t width =
      core::bounded_product({cache.sequences, latent ? sizes.latent_dim : sizes.kv_heads * sizes.head_dim});
  cache.layers = sizes.layers;
  cache.keys = core::bounded_product({width, wide ? kWide : kNarrow});
  cache.values = latent ? 0 : core::bounded_product({width, whole ? kWide : kNarrow});
  cache.read_keys = wide && !whole ? core::bounded_product({width, kNarrow}) : 0;
  return cache;
}

/// An option that the algorithm does not have; empty: there is none.
inline std::string_view foreign_option(const PostTrainingOptions& options, const AlgorithmRow& algorithm) {
  const PostTrainingOptions usual;
  if (!algorithm.critic && !options.critic_model.empty()) return "critic_model";
  if (!algorithm.teacher && !options.teacher_model.empty()) return "teacher_model";
  if (!algorithm.teacher && (!algorithm.pairs || algorithm.scores) && options.label_loss) return "label_loss";
  if (algorithm.generates) return {};
  const std::pair<bool, std::string_view> of_generation[] = {
      {options.rollout != usual.rollout, "rollout"},
      {options.num_generations != usual.num_generations, "num_generations"},
      {options.rollout_batch != usual.rollout_batch, "rollout_batch"},
      {!options.reward_model.empty(), "reward_model"},
      {options.gpu_memory_utilization != usual.gpu_memory_utilization, "gpu_memory_utilization"},
      {options.rollout_tensor_parallel != usual.rollout_tensor_parallel, "rollout_tensor_parallel"},
      {options.max_model_len != usual.max_model_len, "max_model_len"},
      {options.max_num_seqs != usual.max_num_seqs, "max_num_seqs"},
      {options.max_num_batched_tokens != usual.max_num_batched_tokens, "max_num_batched_tokens"},
      {options.enforce_eager != usual.enforce_eager, "enforce_eager"},
      {options.engine != usual.engine, "engine"},
      {options.entropy != usual.entropy, "entropy"},
      {options.old_log_probs, "old_log_probs"},
      {options.engine_version != usual.engine_version, "engine_version"},
      {options.sleep_level != usual.sleep_level, "sleep_level"}};
  for (const auto& [given, name] : of_generation) {
    if (given) return name;
  }
  return {};
}

inline core::Result<Reference> reference_of(const PostTrainingJob& job, const AlgorithmRow& algorithm,
                                            const ProgramRow& program) {
  const PostTrainingOptions& options = job.options;
  const bool compares = algorithm.reference || (algorithm.generates && program.usual_reference);
  Reference reference = options.reference;
  if (reference == Reference::usual) {
    const bool own = job.reference != nullptr || !job.policy.has_adapters();
    reference = !compares && job.reference == nullptr ? Reference::none : own ? Reference::own : Reference::base;
  }
  if (reference == Reference::base && !job.policy.has_adapters()) {
    return refused("the base serves as reference only where adapters are trained; give `lora`, or say reference=own");
  }
  if (reference == Reference::precomputed && algorithm.generates) {
    return refused("log-probabilities of completions that are generated cannot be in a data set; say reference=own");
  }
  return reference;
}

/// The tokens of a sequence, where the options say its parts.
inline core::Result<std::int64_t> length_of(const PostTrainingJob& job, const AlgorithmRow& algorithm) {
  const PostTrainingOptions& options = job.options;
  if (const auto whole = job.policy.sequence_length) {
    const bool longer = !options.packing && options.completion_length.value_or(0) > *whole;
    if (!longer) return *whole;
    return refused("completion_length " + std::to_string(*options.completion_length) + " is more than `seq_length` " +
                   std::to_string(*whole) + ", which counts the prompt, too; leave one of them out");
  }
  if (options.prompt_length && options.completion_length) {
    const auto sum = (core::Checked(*options.prompt_length) + core::Checked(*options.completion_length)).value();
    if (sum) return *sum;
    return core::Error{core::ErrorCode::overflow, "the prompt and the completion are too long", {}};
  }
  return refused(algorithm.generates
                     ? "how long are the sequences? give prompt_length and completion_length"
                     : "how long are the sequences? give `seq_length`, or prompt_length and completion_length");
}

/// TRL's trainers that generate divide the logits by the temperature in their place, since 1.0.
inline model::Objective objective_of(const AlgorithmRow& algorithm, const ProgramRow& program) {
  if (algorithm.scores) return model::Objective::scores;
  if (runs_trl(program)) {
    if (algorithm.teacher) return model::Objective::handed_on;
    if (algorithm.in_step) return model::Objective::last_log_probabilities;
    if (algorithm.generates) return model::Objective::scaled_log_probabilities;
  }
  if (program.megatron) return model::Objective::loss;  // its own, a figure a token
  if (program.whole_logits) return model::Objective::whole_log_probabilities;
  return program.fused_logits ? model::Objective::fused_log_probabilities : model::Objective::log_probabilities;
}

/// The loop whose variables hold what the program's do. verl and OpenRLHF compute a micro-batch in a function of its
/// own, and take its logits in the type in which they are.
inline model::Loop loop_of(const ProgramRow& program) {
  switch (program.value) {
    case Program::trl:
    case Program::ms_swift:
    case Program::llama_factory:
    case Program::axolotl:
    case Program::unsloth: return model::Loop::hf_trainer;
    case Program::megatron:
    case Program::nemo_rl_megatron:
    case Program::slime:
    case Program::areal_megatron:
    case Program::roll_megatron:
    case Program::verl_megatron: return model::Loop::megatron;
    case Program::nemo_rl:
    case Program::open_instruct:
    case Program::prime_rl:
    case Program::areal:
    case Program::roll:
    case Program::verl:
    case Program::openrlhf: break;
  }
  return model::Loop::lightning;
}

/// Logits of completions alone are made where batches are padded; of a packed row, of all tokens. Source: TRL 1.9,
/// trainer/grpo_trainer.py: logits_to_keep, and experimental/online_dpo, which makes all; ms-swift 4,
/// trainers/mixin.py: get_use_logits_to_keep, which its DPO and KTO ask for models that read text alone.
inline std::int64_t positions_of(const PostTrainingJob& job, const AlgorithmRow& algorithm, const ProgramRow& program) {
  const bool reads_text = job.policy.graph->config().empty() && job.options.sequence_ranks == 1;
  const bool answers = program.value == Program::ms_swift && algorithm.reference && reads_text;
  const bool generated = algorithm.generates && !algorithm.in_step;
  const bool all = job.options.packing || program.fused_logits || program.all_logits;
  const bool read = algorithm.in_step && runs_trl(program);  // of all logits
  if (all || !(generated || answers || read) || !job.options.completion_length) return 0;
  return *job.options.completion_length + (read ? 0 : 1);
}

inline core::Status fill_policy(const PostTrainingJob& job, Decided& decided) {
  const core::Result<std::int64_t> length = length_of(job, decided.algorithm);
  if (!length) return length.error();
  model::TrainingJob& policy = decided.policy;
  policy = job.policy;
  // Each of the GPUs has its part of every sequence but in attention, where it has its part of the heads.
  const std::int64_t ranks = std::max<std::int64_t>(job.options.sequence_ranks, 1);
  policy.sequence_length = *length / ranks + (*length % ranks == 0 ? 0 : 1);
  // The tokens of images are shared, too. What is frozen of a model that sees is its tower.
  if (ranks > 1 && !policy.graph->config().empty()) {
    policy.images = 0;
    policy.freeze.clear();
  }
  const std::int64_t sequences = decided.algorithm.pairs && !job.options.packing ? 2 : 1;
  const auto batch = (core::Checked(policy.batch_size) * core::Checked(sequences)).value();
  if (!batch) return core::Error{core::ErrorCode::overflow, "the batch is too large", {}};
  policy.batch_size = *batch;
  if (policy.loop == model::Loop::script) {
    policy.loop = loop_of(decided.program);
    policy.zero_grad = model::row_of(policy.loop).zero_grad;
    // verl's update_policy() ends with it, and a DeepSpeed engine's step() does.
    if (decided.program.optimizer_only_updates) policy.zero_grad = model::ZeroGrad::step_end;
  }
  policy.objective = {objective_of(decided.algorithm, decided.program),
                      positions_of(job, decided.algorithm, decided.program)};
  policy.summary_pass = policy.validation_pass = false;
  policy.samples_per_epoch.reset();
  return core::Done{};
}

/// A pass without gradients of the same model. What it needs is its weights alone.
inline model::TrainingJob reading_of(const PostTrainingJob& job, const Decided& decided) {
  model::TrainingJob reading = decided.policy;
  if (job.options.log_prob_batch && !job.options.packing) reading.batch_size = *job.options.log_prob_batch;
  if (job.options.log_prob_tokens && job.options.packing) {
    const std::int64_t ranks = std::max<std::int64_t>(job.options.sequence_ranks, 1);
    reading.sequence_length = std::max<std::int64_t>(*job.options.log_prob_tokens / ranks, 1);
  }
  using enum model::Objective;
  constexpr std::pair<model::Objective, model::Objective> kRead[] = {
      {log_probabilities, read_log_probabilities},
      {scaled_log_probabilities, read_log_probabilities},
      {whole_log_probabilities, read_whole_log_probabilities},
      {last_log_probabilities, read_last_log_probabilities}};
  for (const auto& [trains, reads] : kRead) {
    if (decided.policy.objective.kind == trains) reading.objective.kind = reads;
  }
  reading.gradient_accumulation = 1;
  return reading;
}

inline void say_assumed(const PostTrainingJob& job, Decided& decided) {
  const auto say = [&](std::string about, std::string text) {
    decided.assumed.push_back({std::move(about), std::move(text)});
  };
  const std::string release(decided.program.source.substr(0, decided.program.source.find(',')));
  say("phases", "in the order of " + std::string(decided.program.name) + ", as of " + release +
                    "; how wide the range is, is a guess");
  std::string lengths = "every sequence has " + core::with_separators(decided.policy.sequence_length.value_or(0)) +
                        " tokens" + (job.options.sequence_ranks > 1 ? " on each GPU" : "");
  if (job.options.length_limit) {
    lengths += ", and in the upper end of the range " + core::with_separators(*job.options.length_limit);
    if (job.options.packing) lengths += ": a row of samples that are all as long as they may be has so many";
  }
  say("lengths", std::move(lengths));
  const auto& [prompt, completion] = std::pair(job.options.prompt_length, job.options.completion_length);
  const bool parts = job.policy.sequence_length && prompt && completion && !job.options.packing;
  if (parts && core::bounded_sum({*prompt, *completion}) != *job.policy.sequence_length) {
    say("lengths", "`seq_length` counts, and not prompt_length " + core::with_separators(*prompt) +
                       " with completion_length " + core::with_separators(*completion));
  }
  const bool copies = is_own(decided.reference) && job.reference == nullptr;
  if (copies) say("reference", "a copy of the policy's model");
  if (decided.algorithm.critic && job.critic == nullptr) say("critic", "of the policy's architecture");
  if (decided.algorithm.teacher && job.teacher == nullptr) say("teacher", "of the policy's architecture");
  if (expands_segments(decided)) say("allocator", "expandable segments, which the program switches on");
  if (job.tower_parameters > 0) say("image tower", "its weights are counted, frozen in bfloat16, and not its passes");
  decided.assumed.insert(decided.assumed.end(), job.assumed.begin(), job.assumed.end());
}

}  // namespace post_training_job_detail

GPUMEM_INLINE core::Result<Decided> decide(const PostTrainingJob& job) {
  Decided decided;
  decided.algorithm = row_of(job.options.algorithm);
  decided.program = row_of(job.options.program);
  if (job.policy.graph == nullptr)
    return post_training_job_detail::refused("a post-training job needs its policy's model");
  if (job.policy.graph->recording() != nullptr) {
    return post_training_job_detail::refused("a recorded step has a loss of its own; give the model's config.json");
  }
  const std::string_view foreign = post_training_job_detail::foreign_option(job.options, decided.algorithm);
  if (!foreign.empty()) {
    return post_training_job_detail::refused("the algorithm " + std::string(decided.algorithm.name) + " has no " +
                                             std::string(foreign) + "; leave it out");
  }
  const core::Result<Reference> reference =
      post_training_job_detail::reference_of(job, decided.algorithm, decided.program);
  if (!reference) return reference.error();
  decided.reference = *reference;
  // TRL's online DPO has a function of its own for each model's log-probabilities, which has returned by then.
  if (decided.algorithm.in_step) decided.program.reference = ReferencePlace::after;
  decided.rollout = job.options.rollout;
  if (decided.rollout == Rollout::usual) {
    const bool own = post_training_job_detail::loop_of(decided.program) == model::Loop::hf_trainer;
    decided.rollout = own ? Rollout::generate : Rollout::colocated;
  }
  const bool sizes = decided.algorithm.generates && decided.rollout != Rollout::elsewhere;
  if (sizes && job.served == nullptr) {
    return post_training_job_detail::refused(
        "who generates needs the sizes of a config.json; give one as the model, or say "
        "rollout=server");
  }
  if (const core::Status filled = post_training_job_detail::fill_policy(job, decided); !filled) return filled.error();
  decided.reading = post_training_job_detail::reading_of(job, decided);
  post_training_job_detail::say_assumed(job, decided);
  return decided;
}

GPUMEM_INLINE model::TrainingJob frozen_job(const Decided& decided, std::shared_ptr<const model::ModelGraph> graph) {
  model::TrainingJob job = decided.reading;
  if (graph != nullptr) job.graph = std::move(graph);
  job.lora.reset();
  job.peft = model::PeftMethod::none;
  job.lora_targets.clear();
  job.lora_dropout = 0.0;
  job.quantize = model::Quantization::none;
  job.base_dtype = model::BaseType::precision;
  job.freeze.clear();
  job.train.clear();
  job.optimizer = model::Optimizer::sgd;
  job.fused = false;
  job.offload = model::Offload::none;
  // DeepSpeed's and Megatron's masters are the optimizer's, which is left out; FSDP's shards are what is loaded.
  const model::Shardings sharding = job.layout.sharding.kind;
  const bool fsdp =
      sharding == model::Shardings::fsdp1 || sharding == model::Shardings::fsdp2 || sharding == model::Shardings::hsdp;
  const bool adapts = decided.policy.has_adapters() && decided.policy.base_dtype == model::BaseType::bf16;
  // What LLaMA-Factory only reads is not made float32 (model/adapter.py: init_adapter, is_trainable).
  const bool narrow = decided.program.value == Program::llama_factory && job.precision == model::Precision::amp_bf16;
  if (narrow || adapts || (fsdp && job.precision == model::Precision::bf16_mixed))
    job.precision = model::Precision::bf16;
  return job;
}

/// Unit by unit, as fully_shard() has it over one rank, too. Source: verl 0.7, workers/fsdp_workers.py:
/// _build_model_optimizer and, of a reward model, _build_model (cpu_offload); workers/engine/fsdp/transformer_impl.py:
/// forward_only.
GPUMEM_INLINE void stream_from_host(model::TrainingJob& frozen) {
  if (frozen.layout.data_parallel == 1) frozen.layout.sharding.kind = model::Shardings::fsdp2;
  frozen.precision = model::Precision::bf16;
  frozen.offload = model::Offload::parameters;
}

/// The reference's weights ask for no gradients where TRL copies the policy, so that autocast's cache holds no copies
/// of them. A pass without gradients is planned for a model that has some: its smallest layer's, a norm's. Source:
/// TRL 1.9, experimental/utils.py: create_reference_model, of PPO, online DPO and BCO.
inline void freeze_copied_reference(const Decided& decided, model::TrainingJob& reference) {
  const Algorithm algorithm = decided.algorithm.value;
  const bool copies = algorithm == Algorithm::ppo || algorithm == Algorithm::online_dpo || algorithm == Algorithm::bco;
  if (!copies || !post_training_job_detail::runs_trl(decided.program)) return;
  if (!model::is_autocast(decided.policy.precision)) return;
  const model::ModelGraph& graph = *reference.graph;
  const model::Layer* smallest = nullptr;
  for (const model::Layer& layer : graph.layers()) {
    const bool has = layer.parameters > 0 && layer.tied_parameters == 0 && !graph.path(layer).empty();
    if (has && (smallest == nullptr || layer.parameters < smallest->parameters)) smallest = &layer;
  }
  if (smallest == nullptr) return;
  reference.freeze = "*";
  reference.train = graph.path(*smallest);
}

/// Where adapters are switched off, their weights stay, and are not read; a quantised base is read as it is, and so is
/// one in float32, of whose frozen weights autocast caches no copies. ROLL's hf_infer loads the model whole. Source:
/// ROLL (2026-08), distributed/strategy/hf_strategy.py: initialize.
GPUMEM_INLINE model::TrainingJob reference_job(const PostTrainingJob& job, const Decided& decided) {
  if (decided.reference == Reference::base) {
    const bool whole =
        model::is_autocast(decided.policy.precision) && decided.policy.base_dtype == model::BaseType::precision;
    if (whole || decided.policy.quantize != model::Quantization::none) return decided.reading;
    return frozen_job(decided, nullptr);
  }
  model::TrainingJob reference = frozen_job(decided, job.reference);
  freeze_copied_reference(decided, reference);
  model::Layout& layout = reference.layout;
  layout.reshard_after_forward = {};  // its own setting, which is true where nobody says it
  if (decided.reference == Reference::whole) {
    layout = {};
    reference.precision = model::Precision::bf16;
  } else if (decided.program.streams_reference) {
    stream_from_host(reference);
  }
  return reference;
}

}  // namespace gpumem::posttrain
