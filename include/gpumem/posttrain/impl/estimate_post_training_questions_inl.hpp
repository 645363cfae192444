#pragma once

#include "gpumem/posttrain/estimate_post_training.hpp"
#include "gpumem/posttrain/impl/estimate_post_training_inl.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/estimate/advise.hpp"
#include "gpumem/posttrain/phases.hpp"

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

/// Why a job does not fit: it does not run at all, or it takes too much.
struct Obstacle {
  bool runs = false;
  std::string text;  ///< of one that runs, what it "takes"
};

inline core::Result<Obstacle> obstacle_of(const Asked& asked, const PostTrainingJob& job) {
  const core::Result<PostTrainingEstimate> estimate = estimate_post_training(job, asked.gpu, asked.options);
  if (core::deadline_passed()) return core::deadline_error();
  if (!estimate) return Obstacle{false, estimate.error().message};
  const estimate::MemoryEstimate& memory = estimate->memory;
  for (const estimate::Assumption& line : memory.assumed) {
    if (line.text.find(kDoesNotStart) != std::string::npos) return Obstacle{false, line.text};
  }
  return Obstacle{true, "takes " + core::to_string(memory.expected) + " in \"" +
                            estimate->phases[estimate->peak_phase].name + "\", and up to " +
                            core::to_string(memory.upper)};
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
inline constexpr std::int64_t kMostGroup = 4096;
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
  const bool own = is_own(decided.reference);
  const double share = options.gpu_memory_utilization.value_or(decided.program.utilization);
  const double less = std::max(share - 0.1, share / 2);
  const std::int64_t half = job.policy.batch_size / 2;
  const std::int64_t half_read = options.packing ? 0 : options.log_prob_batch.value_or(0) / 2;
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
      {"log_prob_batch", std::to_string(half_read), "more passes for log-probabilities", half_read > 0,
       [half_read](PostTrainingJob& to) { to.options.log_prob_batch = half_read; }},
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
  if (program == Program::prime_rl) return {fsdp2};
  const bool fsdp = row_of(program).optimizer_only_updates && program != Program::openrlhf;
  if (fsdp) return {ranks == 1 || now == fsdp2 || now == hsdp ? fsdp2 : fsdp1};
  if (ranks == 1) return {none};
  if (program == Program::areal) return {fsdp2};
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

inline bool fits(const PostTrainingEstimate& estimate) { return estimate.memory.verdict == estimate::Verdict::fits; }

/// Finds what several changes do together. What is returned is empty where they are not enough.
class Together {
 public:
  using Found = core::Result<std::optional<PostTrainingChange>>;
  Together(const Asked& asked, const std::vector<Candidate>& candidates) : asked_(asked), candidates_(candidates) {}

  /// The two cheapest that are enough.
  [[nodiscard]] Found two() const {
    return estimate::cheapest_pair(candidates_, [&](const Candidate& cheaper, const Candidate& dearer) -> Found {
      const std::optional<PostTrainingChange> none;
      if (!cheaper.possible || !dearer.possible || cheaper.option == dearer.option) return none;
      auto estimate = after({&cheaper, &dearer});
      if (!estimate) return estimate.error();
      if (!estimate->has_value() || !fits(**estimate)) return none;
      return std::optional(change_of({&cheaper, &dearer}, **std::move(estimate)));
    });
  }

  /// The cheapest one after another, until the job fits. One after which it does not take less is left out, and of one
  /// option the last that helps counts.
  [[nodiscard]] Found more(core::Bytes needed) const {
    std::vector<const Candidate*> taken;
    for (const Candidate& next : candidates_) {
      if (!next.possible) continue;
      std::vector<const Candidate*> tried = taken;
      std::erase_if(tried, [&](const Candidate* at) { return at->option == next.option; });
      tried.push_back(&next);
      auto estimate = after(tried);
      if (!estimate) return estimate.error();
      if (!estimate->has_value() || (*estimate)->memory.most_needed >= needed) continue;
      needed = (*estimate)->memory.most_needed;
      taken = std::move(tried);
      if (fits(**estimate)) return change_of(taken, **std::move(estimate));
    }
    return std::optional<PostTrainingChange>();
  }

 private:
  using Several = std::vector<const Candidate*>;
  [[nodiscard]] core::Result<std::optional<PostTrainingEstimate>> after(const Several& all) const {
    return asked_.after([&](PostTrainingJob& job) {
      for (const Candidate* each : all) each->change(job);
    });
  }
  [[nodiscard]] static std::optional<PostTrainingChange> change_of(const Several& all, PostTrainingEstimate estimate) {
    PostTrainingChange made{all.front()->option, all.front()->value, std::string(all.front()->costs),
                            std::move(estimate)};
    for (const Candidate* each : all) {
      if (each == all.front()) continue;
      made.also.emplace_back(each->option, each->value);
      made.costs.append("; ").append(each->costs);
    }
    return made;
  }

  const Asked& asked_;
  const std::vector<Candidate>& candidates_;
};

/// Each limit in turn, with the reason where there is none.
class LimitFinder {
 public:
  LimitFinder(const Asked& asked, const Decided& decided) : asked_(asked), decided_(decided) {}

  core::Result<PostTrainingLimits> find() {
    const auto set_batch = [](PostTrainingJob& to, std::int64_t batch) { to.policy.batch_size = batch; };
    if (core::Status found = limit("largest_batch", kMostBatch, set_batch, made_.largest_batch); !found) {
      return found.error();
    }
    if (core::Status found = find_group(); !found) return found.error();
    if (core::Status found = find_lengths(); !found) return found.error();
    if (core::Status found = find_utilization(); !found) return found.error();
    return std::move(made_);
  }

 private:
  template <typename Change>
  core::Status limit(std::string_view name, std::int64_t most, const Change& change, std::optional<std::int64_t>& to) {
    const auto found = largest(most, fits_after(asked_, change));
    if (!found) return found.error();
    to = *found;
    if (to) return core::Done{};
    PostTrainingJob least = asked_.job;
    change(least, 1);
    const auto obstacle = obstacle_of(asked_, least);
    if (!obstacle) return obstacle.error();
    say(name, obstacle->runs ? "even 1 " + obstacle->text : obstacle->text);
    return core::Done{};
  }
  void say(std::string_view name, std::string reason) { made_.reasons.emplace_back(name, std::move(reason)); }

  /// As many prompts as now, each with more completions. They are trained in micro-batches of the same size.
  core::Status find_group() {
    const PostTrainingOptions& options = asked_.job.options;
    if (!decided_.algorithm.generates) return say("largest_group", "nobody generates"), core::Done{};
    if (!options.num_generations) {
      return say("largest_group", "nobody says how many completions a prompt has; give num_generations"), core::Done{};
    }
    const std::int64_t passes = decided_.algorithm.in_step ? 1 : decided_.policy.gradient_accumulation;
    const std::int64_t at_once =
        options.rollout_batch.value_or(core::bounded_product({decided_.policy.batch_size, passes}));
    const std::int64_t group = std::max<std::int64_t>(*options.num_generations, 1);
    const auto set_group = [=](PostTrainingJob& to, std::int64_t each) {
      to.options.rollout_batch = std::max<std::int64_t>(core::bounded_product({at_once, each}) / group, 1);
      to.options.num_generations = each;
    };
    if (core::Status found = limit("largest_group", kMostGroup, set_group, made_.largest_group); !found) return found;
    if (made_.largest_group.value_or(0) < kMostGroup) return core::Done{};
    made_.largest_group.reset();
    say("largest_group", "memory does not limit it: completions are generated in turn, and trained in micro-batches");
    return core::Done{};
  }

  core::Status find_lengths() {
    const PostTrainingOptions& options = asked_.job.options;
    if (options.completion_length && options.prompt_length) {
      const auto set_length = [](PostTrainingJob& to, std::int64_t tokens) {
        to.options.completion_length = tokens;
        const std::int64_t whole = core::bounded_sum({*to.options.prompt_length, tokens});
        // A row is at least as long as a sample.
        to.policy.sequence_length = std::max(to.options.packing ? to.policy.sequence_length.value_or(0) : 0, whole);
        if (to.options.length_limit) to.options.length_limit = std::max(*to.options.length_limit, whole);
      };
      return limit("longest_completion", kMostTokens, set_length, made_.longest_completion);
    }
    if (decided_.algorithm.generates) {
      say("longest_completion", "nobody says how long prompts are; give prompt_length and completion_length");
    }
    // A sequence of one token has no next one.
    const auto set_sequence = [](PostTrainingJob& to, std::int64_t following) {
      to.policy.sequence_length = core::bounded_sum({following, 1});
      to.options.length_limit.reset();
    };
    core::Status found = limit("longest_sequence", kMostTokens, set_sequence, made_.longest_sequence);
    if (found && made_.longest_sequence) ++*made_.longest_sequence;
    return found;
  }

  core::Status find_utilization() {
    if (!decided_.algorithm.generates || decided_.rollout != Rollout::colocated) {
      return say("largest_utilization", "no engine generates on the same GPUs"), core::Done{};
    }
    const auto share = largest_utilization(asked_);
    if (!share) return share.error();
    made_.largest_utilization = *share;
    if (made_.largest_utilization) return core::Done{};
    // With the share as it is: what is in the way is the training, or the engine.
    const auto obstacle = obstacle_of(asked_, asked_.job);
    if (!obstacle) return obstacle.error();
    say("largest_utilization",
        obstacle->runs ? "the rest does not fit with any share: it " + obstacle->text : obstacle->text);
    return core::Done{};
  }

  const Asked& asked_;
  const Decided& decided_;
  PostTrainingLimits made_;
};

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

GPUMEM_INLINE PostTrainingRequest with_a_batch(PostTrainingRequest request) {
  if (request.training.training.batch_size != 0) return request;
  request.training.training.batch_size = 1;
  request.assumed.push_back({"batch", "the other limits are those of one sample a forward pass; nobody says how many"});
  return request;
}

GPUMEM_INLINE core::Result<PostTrainingLimits> find_post_training_limits(const PostTrainingJob& job,
                                                                         const device::GpuProfile& gpu,
                                                                         const device::AllocatorOptions& options) {
  namespace detail = post_training_questions_detail;
  const core::Result<Decided> decided = decide(job);
  if (!decided) return decided.error();
  analysis::Analyses analyses;
  const detail::Asked asked{job, gpu, options, &analyses};
  return detail::LimitFinder(asked, *decided).find();
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
  const std::vector<detail::Candidate> candidates = detail::candidates(job, *decided);
  bool enough = detail::fits(*now);
  for (const detail::Candidate& candidate : candidates) {
    if (!candidate.possible) continue;
    auto estimate = asked.after(candidate.change);
    if (!estimate) return estimate.error();
    const bool helps = estimate->has_value() && (*estimate)->memory.most_needed < now->memory.most_needed;
    if (!helps) continue;
    enough = enough || detail::fits(**estimate);
    changes.push_back({candidate.option, candidate.value, std::string(candidate.costs), **std::move(estimate)});
  }
  if (enough) return changes;
  const detail::Together together(asked, candidates);
  auto several = together.two();
  if (several && !*several) several = together.more(now->memory.most_needed);
  if (!several) return several.error();
  if (*several) changes.push_back(**std::move(several));
  return changes;
}

}  // namespace gpumem::posttrain
