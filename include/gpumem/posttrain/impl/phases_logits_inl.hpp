// What programs make of logits beside what the model's own forward pass does with them.
#pragma once

#include "gpumem/posttrain/impl/post_training_job_inl.hpp"
#include "gpumem/posttrain/phases.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace gpumem::posttrain::post_training_job_detail {

/// A chunk's logits, probabilities and their product in float32.
inline std::int64_t entropy_chunk(const Decided& decided) {
  constexpr std::int64_t kPositions = 2048;
  return core::bounded_product({kPositions, vocabulary_of(*decided.policy.graph), 3, 4});
}

/// verl computes the entropy of completions with their log-probabilities, whether or not the loss has it. Source:
/// verl 0.7, workers/actor/dp_actor.py: _forward_micro_batch; utils/torch_functional.py: entropy_from_logits.
inline std::int64_t read_entropy(const Decided& decided, const PostTrainingOptions& options) {
  const std::int64_t logits = logits_bytes(decided, decided.reading);
  if (options.entropy == Entropy::whole) return 3 * logits;  // they, probabilities, both multiplied
  return options.entropy == Entropy::chunked ? core::bounded_sum({logits, entropy_chunk(decided)}) : 0;
}

/// Where backward begins, the gradient of the log-probabilities is no longer written over the logits, and the
/// entropy's is added to it.
inline std::int64_t entropy_gradients(const Decided& decided, const PostTrainingOptions& options) {
  constexpr std::int64_t kGradients = 2;
  const std::int64_t logits = logits_bytes(decided, decided.policy);
  switch (options.entropy) {
    case Entropy::none: break;
    case Entropy::fused: return kGradients * logits;
    case Entropy::whole: return (kGradients + 2) * logits;  // and what it kept
    case Entropy::chunked: return core::bounded_sum({kGradients * logits, entropy_chunk(decided)});
  }
  return 0;
}

/// What a loss has beside its log-probabilities: kept until backward, for a moment in forward, and in backward.
struct MoreLoss {
  std::int64_t kept = 0;
  std::int64_t passing = 0;
  std::int64_t backward = 0;
  std::int64_t chosen = 0;  ///< of chosen answers' logits alone: how large these are; else 0
};
/// The cross entropy of the chosen answers: a shifted copy of their logits for a moment, their log-probabilities until
/// backward, and there the gradients of copy and slices. Autocast computes it in float32. The model's own of its labels
/// makes all logits float32 first, and so do the models of LLaMA-Factory that give rewards, which nobody reads. Source:
/// TRL 1.9, experimental/cpo/cpo_trainer.py and experimental/orpo/orpo_trainer.py: concatenated_forward; ms-swift 3.5
/// to 4, gkd_trainer.py: compute_loss (sft_alpha); transformers 4.57, loss/loss_utils.py: ForCausalLMLoss; TRL 0.9,
/// models/modeling_value_head.py: AutoModelForCausalLMWithValueHead.forward.
inline MoreLoss more_loss(const Decided& decided, const PostTrainingOptions& options) {
  const model::TrainingJob& policy = decided.policy;
  const std::int64_t logits = logits_bytes(decided, policy);
  const auto times = [](std::int64_t count, std::int64_t bytes) { return core::bounded_product({count, bytes}); };
  if (decided.algorithm.scores) return {0, decided.program.whole_logits ? times(3, logits) : 0, 0};
  if (policy.loss_form != model::LossForm()) return {};
  if (options.label_loss && decided.algorithm.teacher) return {times(2, logits), times(2, logits), times(4, logits)};
  const bool chosen_too = decided.algorithm.likelihood || options.label_loss;
  if (!chosen_too || decided.program.whole_logits) return {};
  const std::int64_t chosen = makes_float_logits(policy) ? logits : logits / 2;
  return {chosen, chosen, times(3, chosen), chosen};
}

/// What TRL's DPO and KTO make of logits beside the loss, while those of policy and reference have names, in bytes.
struct LoggedLogits {
  std::int64_t cache = 0;             ///< keys and values that the reference returns with its logits
  std::int64_t reference = 0;         ///< its logits
  std::vector<std::int64_t> entropy;  ///< tensors that are there at once
  std::vector<std::int64_t> means;    ///< likewise, after that
};
/// The entropy of each position goes over 128 rows at a time of a copy of all logits but the last of each sample:
/// log-probabilities, exponentials, and both multiplied. KTO then copies the logits of good and of bad answers, and of
/// one of these the rows of completions; its model of reference returns a cache, since only the policy's config is told
/// not to. Source: TRL 1.9, trainer/dpo_trainer.py and trainer/kto_trainer.py: _compute_loss; trainer/utils.py:
/// entropy_from_logits; transformers 5.17, trainer.py: Trainer.__init__ (use_cache).
inline LoggedLogits logged_logits(const PostTrainingJob& job, const Decided& decided) {
  constexpr std::int64_t kRows = 128;
  const model::TrainingJob& policy = decided.policy;
  const Algorithm algorithm = decided.algorithm.value;
  const bool logs = algorithm == Algorithm::dpo || algorithm == Algorithm::kto;
  LoggedLogits logged;
  if (!logs || !runs_trl(decided.program) || policy.loss_form != model::LossForm()) return logged;
  const std::int64_t all = returned_bytes(decided);
  const std::int64_t length = std::max<std::int64_t>(policy.sequence_length.value_or(1), 1);
  const std::int64_t samples = std::max<std::int64_t>(policy.batch_size, 1);
  const std::int64_t rows = core::bounded_product({samples, length});
  if (samples > 1) logged.entropy.push_back(all);
  logged.entropy.insert(logged.entropy.end(), 3, all / rows * std::min(rows, kRows));
  if (decided.reference != Reference::none && decided.reference != Reference::precomputed) logged.reference = all;
  if (algorithm != Algorithm::kto) return logged;
  const std::int64_t completion = std::min(job.options.completion_length.value_or(length), length);
  const std::int64_t half = all / samples * ((samples + 1) / 2);
  logged.means = {half, all - half, half / length * completion};
  if (!is_own(decided.reference) || job.served == nullptr) return logged;
  const plan::GrowingCache cache = cache_of(job, decided, *job.served);
  const std::int64_t tokens =
      core::bounded_sum({cache.keys, cache.values}) / std::max<std::int64_t>(cache.sequences, 1);
  logged.cache = core::bounded_product({cache.layers, tokens, rows});
  return logged;
}

/// Tensors that are there at the same time, for a moment.
inline void take_at_once(plan::PhaseWriter& writer, plan::PhaseWriter::Model model,
                         const std::vector<std::int64_t>& bytes) {
  std::vector<std::uint32_t> taken;
  taken.reserve(bytes.size());
  for (const std::int64_t each : bytes) {
    if (each > 0) taken.push_back(writer.allocate(model, each, plan::Category::temporary));
  }
  for (const std::uint32_t slot : taken) writer.release(slot);
}
inline void take_at_once(plan::PhaseWriter& writer, plan::PhaseWriter::Model model, std::int64_t bytes, int count) {
  take_at_once(writer, model, std::vector<std::int64_t>(static_cast<std::size_t>(count), bytes));
}

/// TRL's divergence of student and teacher from their mixture, in tensors of the shifted logits' size; returns what
/// backward keeps. Both are divided by the temperature; these, the teacher's log-probabilities, both divergences and
/// their sum are names of the function. Backward keeps seven: the student's log-probabilities, the two that are stacked
/// for the mixture, the mixture, both exponentials, and the student's difference from the mixture. PyTorch 2.6 was seen
/// to hold 15 in forward beside what the models return, and 12 in backward. Source: TRL 0.19 to 1.9, gkd_trainer.py:
/// generalized_jsd_loss, compute_loss (which ends with empty_cache); ATen/native/Loss.cpp: kl_div.
inline std::vector<std::uint32_t> diverge(plan::PhaseWriter& writer, plan::PhaseWriter::Model model,
                                          std::int64_t logits, std::int64_t shifted) {
  std::vector<std::uint32_t> names;
  std::vector<std::uint32_t> kept;
  const auto take = [&](std::vector<std::uint32_t>& into, std::int64_t bytes, plan::Category category, int count) {
    for (int each = 0; each < count; ++each) into.push_back(writer.allocate(model, bytes, category));
  };
  take(names, logits, plan::Category::temporary, 1);  // the teacher's
  take(names, shifted, plan::Category::temporary, 3);
  take(kept, shifted, plan::Category::activation, 1);
  take(kept, core::bounded_product({2, shifted}), plan::Category::activation, 1);
  take_at_once(writer, model, core::bounded_product({2, shifted}), 1);  // exponentials of the stacked
  take(kept, shifted, plan::Category::activation, 4);
  take(names, shifted, plan::Category::temporary, 5);  // both divergences, each one weighted, their sum
  for (const std::uint32_t slot : names) writer.release(slot);
  return kept;
}

/// From an event to before another one.
using Span = std::pair<std::size_t, std::size_t>;

/// Where the gradient of all logits is there and what it was made of is gone; the first event if there is none.
inline std::size_t end_of_log_probabilities(const std::vector<plan::Event>& events, Span span, std::int64_t logits) {
  std::size_t made = 0;
  for (std::size_t at = span.first; at < span.second; ++at) {
    const bool gradient = events[at].kind == plan::Event::Kind::allocate &&
                          events[at].category == plan::Category::activation_gradient && events[at].bytes == logits;
    if (gradient) ++made;
    if (made == 2 && events[at].kind == plan::Event::Kind::release) return at + 1;
  }
  return span.first;
}

/// A backward pass with the one of what the loss has beside its log-probabilities. The cross entropy of chosen answers
/// was computed first, so that its backward comes after theirs: gradients of the loss and of log_softmax, of a slice,
/// and of all logits, which is added to the one that stands. Source: as of more_loss(); derivatives.yaml: nll_loss,
/// _log_softmax, slice.
inline void play_backward(plan::PhaseWriter& writer, plan::PhaseWriter::Model model, Span events, const MoreLoss& more,
                          std::int64_t logits) {
  if (more.chosen == 0) {
    if (more.backward > 0) take_at_once(writer, model, more.backward, 1);
    return writer.play(model, events.first, events.second);
  }
  const std::size_t at = end_of_log_probabilities(writer.plan_of(model).events, events, logits);
  writer.play(model, events.first, at);
  take_at_once(writer, model, more.chosen, 2);
  take_at_once(writer, model, {more.chosen, core::bounded_product({2, more.chosen})});
  writer.play(model, at, events.second);
}

/// What calls have taken for a moment has no name: of the releases from `returns` to before `end`, these come at once.
inline void release_temporaries(plan::PhaseWriter& writer, plan::PhaseWriter::Model model, std::size_t first,
                                std::size_t returns, std::size_t end) {
  const auto& events = writer.plan_of(model).events;
  for (std::size_t at = returns; at < end; ++at) {
    const auto taken = [&](const plan::Event& event) {
      return event.kind == plan::Event::Kind::allocate && event.slot == events[at].slot;
    };
    std::size_t made = returns;
    while (made > first && !taken(events[made - 1])) --made;
    if (made > first && events[made - 1].category == plan::Category::temporary) writer.play(model, at, at + 1);
  }
}

}  // namespace gpumem::posttrain::post_training_job_detail
