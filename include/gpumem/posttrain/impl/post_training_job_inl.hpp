#pragma once

#include "gpumem/posttrain/post_training_job.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/job/option_places.hpp"

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

/// The rank's part, in two bytes each.
inline std::int64_t logits_bytes(const Decided& decided, const model::TrainingJob& of) {
  const std::int64_t positions = of.objective.count > 0 ? of.objective.count : of.sequence_length.value_or(0);
  const std::int64_t words =
      vocabulary_of(*decided.policy.graph) / std::max<std::int64_t>(of.layout.tensor_parallel, 1);
  return core::bounded_product({of.batch_size, positions, words, 2});
}

/// A chunk's logits, probabilities and their product in float32.
inline std::int64_t entropy_chunk(const Decided& decided) {
  constexpr std::int64_t kPositions = 2048;
  return core::bounded_product({kPositions, vocabulary_of(*decided.policy.graph), 3, 4});
}

inline std::int64_t whole_weights(const model::TrainingJob& policy) {
  std::int64_t elements = 0;
  for (const model::Layer& layer : policy.graph->layers()) {
    elements = core::bounded_sum({elements, layer.parameters - layer.tied_parameters});
  }
  return core::bounded_product({elements, core::element_size(model::parameter_dtype(policy.precision))});
}

/// An option that the algorithm does not have; empty: there is none.
inline std::string_view foreign_option(const PostTrainingOptions& options, const AlgorithmRow& algorithm) {
  const PostTrainingOptions usual;
  if (!algorithm.critic && !options.critic_model.empty()) return "critic_model";
  if (!algorithm.teacher && !options.teacher_model.empty()) return "teacher_model";
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

inline model::Objective objective_of(const AlgorithmRow& algorithm, const ProgramRow& program) {
  if (algorithm.scores) return model::Objective::scores;
  if (program.megatron) return model::Objective::loss;  // its own, a figure a token
  return program.fused_logits ? model::Objective::fused_log_probabilities : model::Objective::log_probabilities;
}

/// The loop whose variables hold what the program's do. verl and OpenRLHF compute a micro-batch in a function of its
/// own, and take its logits in the type in which they are.
inline model::Loop loop_of(const ProgramRow& program) {
  switch (program.value) {
    case Program::trl:
    case Program::ms_swift:
    case Program::unsloth: return model::Loop::hf_trainer;
    case Program::megatron:
    case Program::nemo_rl_megatron:
    case Program::slime:
    case Program::areal_megatron:
    case Program::roll_megatron:
    case Program::verl_megatron: return model::Loop::megatron;
    case Program::nemo_rl:
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
  const bool some = (generated || answers) && !all;
  return some ? job.options.completion_length.value_or(0) + (job.options.completion_length ? 1 : 0) : 0;
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
  if (policy.batch_size == 1 && policy.objective.kind == model::Objective::log_probabilities) {
    policy.objective.kind = model::Objective::one_log_probabilities;
  }
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
  if (reading.objective.kind == model::Objective::log_probabilities ||
      reading.objective.kind == model::Objective::one_log_probabilities) {
    reading.objective.kind = model::Objective::read_log_probabilities;
  }
  reading.gradient_accumulation = 1;
  return reading;
}

inline void say_assumed(const PostTrainingJob& job, Decided& decided) {
  const auto say = [&](std::string about, std::string text) {
    decided.assumed.push_back({std::move(about), std::move(text)});
  };
  say("phases", "in the order of " + std::string(decided.program.name) + "; how wide the range is, is a guess");
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
  decided.rollout = job.options.rollout;
  if (decided.rollout == Rollout::usual) {
    const bool own = job.options.program == Program::trl || job.options.program == Program::ms_swift ||
                     job.options.program == Program::unsloth;
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
  if (adapts || (fsdp && job.precision == model::Precision::bf16_mixed)) job.precision = model::Precision::bf16;
  return job;
}

/// Where adapters are switched off, their weights stay, and are not read; a quantised base is read as it is. verl has
/// FSDP keep the shards of what it only reads on the host, whatever the settings say, and so on one GPU.
/// ROLL's hf_infer loads the model whole. Source: verl 0.7, workers/fsdp_workers.py: _build_model_optimizer
/// (cpu_offload); workers/engine/fsdp/transformer_impl.py: forward_only; ROLL (2026-08),
/// distributed/strategy/hf_strategy.py: initialize.
GPUMEM_INLINE model::TrainingJob reference_job(const PostTrainingJob& job, const Decided& decided) {
  if (decided.reference == Reference::base) {
    if (decided.policy.quantize != model::Quantization::none) return decided.reading;
    return frozen_job(decided, nullptr);
  }
  model::TrainingJob reference = frozen_job(decided, job.reference);
  model::Layout& layout = reference.layout;
  layout.reshard_after_forward = {};  // its own setting, which is true where nobody says it
  if (decided.reference == Reference::whole) {
    layout = {};
    reference.precision = model::Precision::bf16;
  } else if (decided.program.streams_reference) {
    // Unit by unit, as fully_shard() has it over one rank, too.
    if (layout.data_parallel == 1) layout.sharding.kind = model::Shardings::fsdp2;
    reference.precision = model::Precision::bf16;
    reference.offload = model::Offload::parameters;
  }
  return reference;
}

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

inline constexpr PostTrainingOption kOptions[] = {
    {"algorithm", "NAME", "what is trained on: pairs of answers, or completions of the model's own",
     &set_choice<&Options::algorithm, kAlgorithms>, &names<kAlgorithms>},
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
};

}  // namespace post_training_options_detail

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
                       "the " + std::string(name) + " cannot be " + core::quoted(word) + "; it is " +
                           (option->value.empty() ? "true or false" : help_of(*option)),
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
