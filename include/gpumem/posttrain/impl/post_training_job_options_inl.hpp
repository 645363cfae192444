#pragma once

#include "gpumem/posttrain/post_training_job.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/job/option_places.hpp"

namespace gpumem::posttrain {

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
    {"label_loss", "", "distillation and pairs: the loss has the cross entropy of labels, too",
     &set_flag<&Options::label_loss>},
    {"old_log_probs", "", "a pass computes the policy's log-probabilities before the update",
     &set_flag<&Options::old_log_probs>},
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
