#pragma once

#include "gpumem/posttrain/estimate_post_training.hpp"
#include "gpumem/posttrain/impl/estimate_post_training_inl.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>

#include "gpumem/core/deadline.hpp"

namespace gpumem::posttrain {

namespace post_training_questions_detail {

using estimate_post_training_detail::RunJob;

/// A job on a GPU, asked about again and again.
struct Asked {
  const PostTrainingJob& job;
  const device::GpuProfile& gpu;
  const device::AllocatorOptions& options;
  analysis::Analyses* analyses;  ///< of the jobs so far: most changes leave most models' forward passes as they are

  /// What the job takes after this change. One that overflows or that does not go together is nothing.
  template <typename Change>
  [[nodiscard]] core::Result<std::optional<PostTrainingEstimate>> after(const Change& change) const {
    PostTrainingJob changed = job;
    change(changed);
    const auto run = RunJob::of(changed, gpu, options, analyses);
    core::Result<PostTrainingEstimate> estimate =
        run ? run->estimate() : core::Result<PostTrainingEstimate>(run.error());
    if (core::deadline_passed()) return core::deadline_error();
    if (!estimate) return std::optional<PostTrainingEstimate>();
    return std::optional(*std::move(estimate));
  }
};

/// The largest of 1, 2, ... `most` that `fits`; fits get fewer as it grows. Nothing: not even 1.
template <typename Fits>
core::Result<std::optional<std::int64_t>> largest(std::int64_t most, const Fits& fits) {
  std::int64_t good = 0;
  std::int64_t step = 1;
  while (step > 0 && good < most) {
    const std::int64_t next = std::min(good + step, most);
    const core::Result<bool> does = fits(next);
    if (!does) return does.error();
    if (*does) {
      good = next;
      step = good;
      continue;
    }
    // Between `good` and `next`.
    std::int64_t bad = next;
    while (bad - good > 1) {
      const std::int64_t middle = good + (bad - good) / 2;
      const core::Result<bool> middle_does = fits(middle);
      if (!middle_does) return middle_does.error();
      (*middle_does ? good : bad) = middle;
    }
    break;
  }
  return good > 0 ? std::optional(good) : std::nullopt;
}

template <typename Change>
auto fits_after(const Asked& asked, const Change& change) {
  return [&asked, &change](std::int64_t value) -> core::Result<bool> {
    const auto estimate = asked.after([&](PostTrainingJob& job) { change(job, value); });
    if (!estimate) return estimate.error();
    return estimate->has_value() && (*estimate)->memory.verdict == estimate::Verdict::fits;
  };
}

inline constexpr std::int64_t kMostBatch = 4096;
inline constexpr std::int64_t kMostTokens = 1 << 20;

/// In hundredths, from above: vLLM does not start with too small a share. The training is the same with all of them.
inline core::Result<std::optional<double>> largest_utilization(const Asked& asked) {
  constexpr int kHundredths = 100;
  const auto run = RunJob::of(asked.job, asked.gpu, asked.options, asked.analyses);
  for (int hundredths = kHundredths - 1; run && hundredths > 0; --hundredths) {
    const double share = static_cast<double>(hundredths) / static_cast<double>(kHundredths);
    const auto estimate = run->estimate(share);
    if (core::deadline_passed()) return core::deadline_error();
    if (estimate && estimate->memory.verdict == estimate::Verdict::fits) return std::optional(share);
  }
  if (core::deadline_passed()) return core::deadline_error();
  return std::optional<double>();
}

/// A change that may help, and whether the job can be changed so.
struct Candidate {
  std::string_view option;
  std::string value;
  std::string_view costs;
  bool possible = false;
  std::function<void(PostTrainingJob&)> change;
};

inline std::string hundredths_text(double share) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.2f", share);
  return text.data();
}

/// In the order of what they cost.
inline std::vector<Candidate> candidates(const PostTrainingJob& job, const Decided& decided) {
  const PostTrainingOptions& options = job.options;
  const bool engine = decided.algorithm.generates && decided.rollout == Rollout::colocated;
  const bool own = decided.reference == Reference::own;
  const double share = options.gpu_memory_utilization.value_or(decided.program.utilization);
  const double less = std::max(share - 0.1, share / 2);
  const std::int64_t half = job.policy.batch_size / 2;
  return {
      {"sleep_level", "1", "a copy of the engine's weights in the host's memory", engine && options.sleep_level == 0,
       [](PostTrainingJob& to) { to.options.sleep_level = 1; }},
      {"reference", "precomputed", "one pass over the data set before training", own && !decided.algorithm.generates,
       [](PostTrainingJob& to) { to.options.reference = Reference::precomputed; }},
      {"loss", "fused", "Liger's kernels",
       !decided.algorithm.scores && !decided.algorithm.teacher && job.policy.loss_form == model::LossForm() &&
           !decided.program.megatron,
       [](PostTrainingJob& to) {
         to.policy.loss_form = {model::LossForms::fused, 0};
       }},
      {"entropy", "chunked", "a little more time a step", options.entropy == Entropy::whole,
       [](PostTrainingJob& to) { to.options.entropy = Entropy::chunked; }},
      {"checkpointing", "full", "about a third more time a step", !job.policy.activation_checkpointing,
       [](PostTrainingJob& to) { to.policy.activation_checkpointing = true; }},
      {"reference_offload", "true", "copies the reference to the GPU in every pass", own && !options.reference_offload,
       [](PostTrainingJob& to) { to.options.reference_offload = true; }},
      {"gpu_memory_utilization", hundredths_text(less), "fewer completions at once", engine,
       [less](PostTrainingJob& to) { to.options.gpu_memory_utilization = less; }},
      {"offload_policy", "optimizer", "copies the optimizer's states in every iteration",
       decided.algorithm.generates && options.offload == Waiting::none,
       [](PostTrainingJob& to) { to.options.offload = Waiting::optimizer; }},
      {"offload_policy", "both", "copies the policy and its optimizer's states in every iteration",
       decided.algorithm.generates && options.offload != Waiting::both,
       [](PostTrainingJob& to) { to.options.offload = Waiting::both; }},
      {"batch_size", std::to_string(half), "more passes a step", half > 0,
       [half](PostTrainingJob& to) { to.policy.batch_size = half; }},
      {"offload", "optimizer", "the step runs on the host", job.policy.offload == model::Offload::none,
       [](PostTrainingJob& to) { to.policy.offload = model::Offload::optimizer; }},
  };
}

/// How a program shards, from what moves least between GPUs to what moves most.
inline std::vector<model::Shardings> shardings_of(Program program, model::Shardings now, std::int64_t ranks) {
  using enum model::Shardings;
  if (row_of(program).megatron) return {distributed_optimizer};
  if (ranks == 1) return {none};
  if (program == Program::verl) return {now == fsdp2 ? fsdp2 : fsdp1};
  return {ddp, zero_2, zero_3};
}

/// DeepSpeed keeps float32 masters of what is trained. Without it a program trains in what the job says, or where that
/// has masters too, in autocast.
inline void set_sharding(PostTrainingJob& job, model::Shardings kind, std::int64_t ranks) {
  model::TrainingJob& policy = job.policy;
  policy.layout.data_parallel = ranks;
  policy.layout.sharding = {};
  policy.layout.sharding.kind = kind;
  const bool zero = kind == model::Shardings::zero_2 || kind == model::Shardings::zero_3;
  if (zero && !model::has_masters(policy.precision)) {
    policy.precision =
        policy.precision == model::Precision::amp_fp16 ? model::Precision::fp16_mixed : model::Precision::bf16_mixed;
    policy.base_dtype = model::BaseType::precision;
  }
}

/// 1, 2, 4, ... GPUs that share the engine's layers, where there is an engine on the same GPUs.
inline std::vector<std::int64_t> engine_ranks(const PostTrainingJob& job, const Decided& decided, std::int64_t gpus) {
  if (!decided.algorithm.generates || decided.rollout != Rollout::colocated) {
    return {job.options.rollout_tensor_parallel};
  }
  constexpr std::int64_t kMost = 8;  // of one server
  std::vector<std::int64_t> ranks;
  for (std::int64_t each = 1; each <= std::min(gpus, kMost) && gpus % each == 0; each *= 2) ranks.push_back(each);
  return ranks;
}

inline core::Error no_layout(std::string message) {
  return {core::ErrorCode::invalid_argument, std::move(message), {}};
}

}  // namespace post_training_questions_detail

GPUMEM_INLINE core::Result<std::vector<PostTrainingLayout>> find_post_training_layouts(
    const PostTrainingJob& job, const device::GpuProfile& gpu, std::int64_t gpus,
    const device::AllocatorOptions& options) {
  namespace detail = post_training_questions_detail;
  constexpr std::int64_t kMostGpus = 1024;
  if (gpus < 1 || gpus > kMostGpus) return detail::no_layout("a plan is of 1 to 1,024 GPUs");
  const model::Layout& layout = job.policy.layout;
  const std::int64_t split =
      core::bounded_product({layout.tensor_parallel, layout.pipeline_parallel, layout.context_parallel});
  if (split < 1 || gpus % split != 0) {
    return detail::no_layout("the model is split over " + std::to_string(split) + " GPUs, which do not divide " +
                             std::to_string(gpus));
  }
  const core::Result<Decided> decided = decide(job);
  if (!decided) return decided.error();
  const std::int64_t ranks = gpus / split;
  std::vector<Waiting> waitings = {job.options.offload};
  const bool moves = decided->algorithm.generates && job.options.offload != Waiting::both;
  if (moves) waitings.push_back(Waiting::both);
  analysis::Analyses analyses;
  const detail::Asked asked{job, gpu, options, &analyses};
  std::vector<PostTrainingLayout> found;
  for (const model::Shardings kind : detail::shardings_of(decided->program.value, layout.sharding.kind, ranks)) {
    for (const Waiting waiting : waitings) {
      for (const std::int64_t engine : detail::engine_ranks(job, *decided, gpus)) {
        model::Precision precision = job.policy.precision;
        auto estimate = asked.after([&](PostTrainingJob& to) {
          detail::set_sharding(to, kind, ranks);
          precision = to.policy.precision;
          to.options.offload = waiting;
          to.options.rollout_tensor_parallel = engine;
        });
        if (!estimate) return estimate.error();
        const bool runs = estimate->has_value() && (*estimate)->memory.verdict != estimate::Verdict::does_not_fit;
        if (!runs) continue;
        model::Sharding sharding;
        sharding.kind = kind;
        found.push_back({sharding, ranks, precision, engine, waiting, **std::move(estimate)});
      }
    }
  }
  const auto fits = [](const PostTrainingLayout& at) { return at.estimate.memory.verdict == estimate::Verdict::fits; };
  std::stable_partition(found.begin(), found.end(), fits);
  return found;
}

GPUMEM_INLINE core::Result<PostTrainingLimits> find_post_training_limits(const PostTrainingJob& job,
                                                                         const device::GpuProfile& gpu,
                                                                         const device::AllocatorOptions& options) {
  namespace detail = post_training_questions_detail;
  const core::Result<Decided> decided = decide(job);
  if (!decided) return decided.error();
  analysis::Analyses analyses;
  const detail::Asked asked{job, gpu, options, &analyses};
  PostTrainingLimits limits;
  const auto set_batch = [](PostTrainingJob& to, std::int64_t batch) { to.policy.batch_size = batch; };
  const auto batch = detail::largest(detail::kMostBatch, detail::fits_after(asked, set_batch));
  if (!batch) return batch.error();
  limits.largest_batch = *batch;
  if (job.options.completion_length && job.options.prompt_length) {
    const auto set_length = [](PostTrainingJob& to, std::int64_t tokens) {
      to.options.completion_length = tokens;
      const std::int64_t whole = core::bounded_sum({*to.options.prompt_length, tokens});
      // A row is at least as long as a sample.
      to.policy.sequence_length = std::max(to.options.packing ? to.policy.sequence_length.value_or(0) : 0, whole);
      if (to.options.length_limit) to.options.length_limit = std::max(*to.options.length_limit, whole);
    };
    const auto longest = detail::largest(detail::kMostTokens, detail::fits_after(asked, set_length));
    if (!longest) return longest.error();
    limits.longest_completion = *longest;
  }
  if (decided->algorithm.generates && decided->rollout == Rollout::colocated) {
    const auto utilization = detail::largest_utilization(asked);
    if (!utilization) return utilization.error();
    limits.largest_utilization = *utilization;
  }
  return limits;
}

GPUMEM_INLINE core::Result<std::vector<PostTrainingChange>> advise_post_training(
    const PostTrainingJob& job, const device::GpuProfile& gpu, const device::AllocatorOptions& options) {
  namespace detail = post_training_questions_detail;
  const core::Result<Decided> decided = decide(job);
  if (!decided) return decided.error();
  const core::Result<PostTrainingEstimate> now = estimate_post_training(job, gpu, options);
  if (!now) return now.error();
  std::vector<PostTrainingChange> changes;
  analysis::Analyses analyses;
  const detail::Asked asked{job, gpu, options, &analyses};
  for (detail::Candidate& candidate : detail::candidates(job, *decided)) {
    if (!candidate.possible) continue;
    auto estimate = asked.after(candidate.change);
    if (!estimate) return estimate.error();
    const bool helps = estimate->has_value() && (*estimate)->memory.most_needed < now->memory.most_needed;
    if (!helps) continue;
    changes.push_back({candidate.option, std::move(candidate.value), candidate.costs, **std::move(estimate)});
  }
  return changes;
}

}  // namespace gpumem::posttrain
