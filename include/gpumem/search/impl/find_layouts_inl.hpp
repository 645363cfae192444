#pragma once

#include "gpumem/search/find_layouts.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/estimate/replay.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/search/block_work.hpp"

namespace gpumem::search {

namespace find_layouts_detail {

GPUMEM_INLINE core::Error refused(std::string message) {
  return {core::ErrorCode::invalid_argument, std::move(message), {}};
}

GPUMEM_INLINE core::Error stages_given(std::string_view file) {
  return {core::ErrorCode::invalid_argument,
          "gives the first or the last pipeline stage a number of blocks of its own, and a plan chooses the stages "
          "itself; leave these arguments out (decoder_first_pipeline_num_layers, "
          "account_for_embedding_in_pipeline_split and their like)",
          {std::string(file), 0, {}}};
}

GPUMEM_INLINE core::Error recorded(std::string_view file) {
  return {
      core::ErrorCode::invalid_argument,
      "is a recording of one layout, and a plan compares layouts; give it a config.json, or another summary with the "
      "model's layers",
      {std::string(file), 0, {}}};
}

class Search {
 public:
  Search(const model::TrainingJob& job, const device::GpuProfile& gpu, const Question& question, LayoutSpace space,
         analysis::Analysis& analysis, const connect::WiredGraph& whole)
      : job_(job),
        gpu_(gpu),
        question_(question),
        space_(std::move(space)),
        analysis_(analysis),
        estimator_(question.allocator),
        bound_(whole, gpu) {
    for (const Candidate& candidate : space_.candidates) {
      const auto [smallest, fresh] = smallest_.try_emplace(runs_of(candidate), &candidate);
      if (!fresh && candidate.micro_batch.size < smallest->second->micro_batch.size) smallest->second = &candidate;
    }
  }

  core::Result<LayoutPlan> run() {
    LayoutPlan plan;
    plan.candidates = static_cast<std::int64_t>(space_.candidates.size());
    plan.refused = std::move(space_.refused);
    std::size_t at = 0;
    for (; at < space_.candidates.size() && !found_enough(); ++at) {
      if (core::deadline_passed()) return core::deadline_error();
      if (question_.progress) question_.progress(at, space_.candidates.size());
      const Candidate& candidate = space_.candidates[at];
      if (question_.prune && (too_large(candidate) || first_rank_too_large(candidate))) {
        ++plan.too_large;
        continue;
      }
      ++plan.estimated;
      look_at(candidate, plan);
    }
    plan.slower = static_cast<std::int64_t>(space_.candidates.size() - at);
    plan.fitting = static_cast<std::int64_t>(with_headroom_ + without_headroom_);
    // Those that may run out of memory come last: nobody should paste one of them because it is the first.
    std::stable_partition(plan.layouts.begin(), plan.layouts.end(),
                          [&](const PlannedLayout& layout) { return headroom(layout.memory, gpu_).count() > 0; });
    if (plan.layouts.size() > question_.show) {
      plan.layouts.erase(plan.layouts.begin() + static_cast<std::ptrdiff_t>(question_.show), plan.layouts.end());
    }
    return plan;
  }

 private:
  /// One without headroom does not count, as a slower one may have some; but not all of a world can be tried for that.
  [[nodiscard]] bool found_enough() const {
    constexpr std::size_t kTried = 64;
    if (with_headroom_ >= question_.show) return true;
    return without_headroom_ >= question_.show && without_headroom_ - question_.show >= kTried;
  }

  /// A size from which on no micro-batch of these runs fits is remembered.
  bool too_large(const Candidate& candidate) {
    const Runs runs = runs_of(candidate);
    if (known_too_large(runs, candidate) || known_too_large({candidate.least_family, runs.passes}, candidate))
      return true;
    const Candidate& smallest = *smallest_.at(runs);
    if (tested_.try_emplace(runs, true).second && bounded_out(smallest)) {
      too_large_from_[runs] = smallest.micro_batch.size;
      return true;
    }
    if (&smallest == &candidate || !bounded_out(candidate)) return false;
    too_large_from_[runs] = candidate.micro_batch.size;
    return true;
  }

  [[nodiscard]] bool known_too_large(const Runs& runs, const Candidate& candidate) const {
    const auto known = too_large_from_.find(runs);
    return known != too_large_from_.end() && candidate.micro_batch.size >= known->second;
  }

  bool bounded_out(const Candidate& candidate) {
    return bound_.too_large(job_of(job_, candidate), space_.work[candidate.work]);
  }

  /// A pipeline's other ranks need no plan then. Of groups that shard, all ranks' sharding is tried first: it rules out
  /// groups of every size.
  bool first_rank_too_large(const Candidate& candidate) {
    if (candidate.family != candidate.least_family) {
      Candidate least = candidate;
      least.layout.sharding = {model::Shardings::fsdp2, 0};
      least.family = candidate.least_family;
      if (plan_too_large(least)) return true;
    }
    return plan_too_large(candidate);
  }

  bool plan_too_large(const Candidate& candidate) {
    const Runs runs = runs_of(candidate);
    const std::tuple key(runs.family, runs.passes, candidate.micro_batch.size);
    if (planned_.contains(key)) return false;
    const model::TrainingJob job = job_of(job_, candidate);
    if (bound_.first_rank_too_large(analysis_of(job), job)) {
      remember(candidate);
      return true;
    }
    planned_.insert(key);
    return false;
  }

  void remember(const Candidate& candidate) {
    const auto [known, fresh] = too_large_from_.try_emplace(runs_of(candidate), candidate.micro_batch.size);
    if (!fresh) known->second = std::min(known->second, candidate.micro_batch.size);
  }

  /// One for each program and either checkpointing, which make the model's stages anew: candidates come in the order of
  /// their times. One of them plans at a time.
  analysis::Analysis& analysis_of(const model::TrainingJob& job) {
    constexpr std::size_t kLayers = std::size_t{1} << 17;
    std::unique_ptr<analysis::Analysis>& known = analyses_[{job.loop, job.activation_checkpointing}];
    if (known == nullptr) {
      known = std::make_unique<analysis::Analysis>(job);
      known->take_stages_of(analysis_);
      for (const auto& [of, other] : analyses_) {
        if (other != nullptr && other != known) known->take_stages_of(*other);
      }
      known->keep_parts(kLayers);
    }
    if (last_ != nullptr && last_ != known.get()) last_->hand_memory_to(*known);
    last_ = known.get();
    return *known;
  }

  /// The estimate decides.
  void look_at(const Candidate& candidate, LayoutPlan& plan) {
    const model::TrainingJob job = job_of(job_, candidate);
    analysis::Analysis& analysis = analysis_of(job);
    analysis.set_job(job);
    core::Result<estimate::MemoryEstimate> memory = estimator_.estimate(analysis, gpu_);
    if (!memory) {
      ++plan.refused[{memory.error().message, Rule::estimate}];
      return;
    }
    if (!memory->fits) return note(candidate, *memory);
    const bool has_headroom = headroom(*memory, gpu_).count() > 0;
    ++(has_headroom ? with_headroom_ : without_headroom_);
    if (!has_headroom && without_headroom_ > question_.show) return;
    PlannedLayout layout{candidate.framework, job, *std::move(memory), candidate.time, candidate.step, 0.0, 0.0};
    layout.samples = static_cast<double>(global_batch(job)) / candidate.step;
    const core::Result<std::int64_t> gpus = parallel::world_size(job.layout);
    if (gpus && job.sequence_length) {
      layout.tokens = layout.samples * static_cast<double>(*job.sequence_length) / static_cast<double>(*gpus);
    }
    plan.layouts.push_back(std::move(layout));
  }

  /// What tensors hold rules larger micro-batches out; how an allocator's cache falls to pieces does not.
  void note(const Candidate& candidate, const estimate::MemoryEstimate& memory) {
    if (memory.allocated && bound_.too_large(job_of(job_, candidate), memory.allocated->count())) remember(candidate);
  }

  const model::TrainingJob& job_;
  const device::GpuProfile& gpu_;
  const Question& question_;
  LayoutSpace space_;
  analysis::Analysis& analysis_;
  std::map<std::pair<model::Loop, bool>, std::unique_ptr<analysis::Analysis>> analyses_;
  analysis::Analysis* last_ = nullptr;
  estimate::Replay estimator_;
  MemoryBound bound_;
  std::size_t with_headroom_ = 0;  ///< of those that fit
  std::size_t without_headroom_ = 0;
  std::unordered_map<Runs, const Candidate*, RunsHash> smallest_;
  std::unordered_map<Runs, bool, RunsHash> tested_;  ///< whether the smallest was bounded
  std::unordered_map<Runs, std::int64_t, RunsHash> too_large_from_;
  /// Whose first rank is not too large: runs with their micro-batch.
  std::set<std::tuple<std::uint32_t, std::int64_t, std::int64_t>> planned_;
};

inline constexpr std::string_view kReadsNone = " trains models that read tokens, and this one reads none";

/// The question of those of its frameworks that train such a model.
GPUMEM_INLINE core::Result<Question> of_model(const Question& question, const model::TrainingJob& job) {
  Question asked = question;
  if (job.graph == nullptr || job.graph->reads_tokens()) return asked;
  std::erase_if(asked.frameworks, [](const Framework* framework) { return framework->tokens_alone; });
  if (!asked.frameworks.empty()) return asked;
  return refused(std::string(question.frameworks.front()->name) + std::string(kReadsNone) + "; say `framework=any`");
}

/// The layouts of this many GPUs.
GPUMEM_INLINE core::Result<LayoutPlan> layouts_of(std::int64_t gpus, const model::TrainingJob& job,
                                                  const device::GpuProfile& gpu, const Question& question,
                                                  const Links& links, const utilisation::GpuPeaks& peaks) {
  analysis::Analysis analysis(job);
  const auto adapted = analysis.adapted();
  if (!adapted) return adapted.error();
  const connect::WiredGraph whole = **adapted;
  if (!parallel::stages_are_alike(whole)) return stages_given(whole.graph().file());
  core::Result<LayoutSpace> space =
      layout_space(analysis, job, {gpus, question.global_batch, question.frameworks, question.most}, links, peaks);
  if (!space) return space.error();
  core::Result<LayoutPlan> plan = Search(job, gpu, question, *std::move(space), analysis, whole).run();
  if (!plan) return plan;
  plan->gpus = gpus;
  plan->blocks = static_cast<std::int64_t>(connect::repeated_blocks(whole.graph()).size());
  plan->gpus_per_node = links.gpus_per_node;
  plan->overlap = links.overlap;
  plan->assumed = links.assumed;
  plan->assumed.push_back(
      {"times", "from a roofline of kernels and links, not measured: use them only to compare layouts"});
  return plan;
}

/// What a question about a job is answered with.
struct Grounds {
  model::TrainingJob plain;  ///< without the layout, which the question is about
  Question asked;
  Links links;
  utilisation::GpuPeaks peaks;
};

/// Whether the framework's settings can say that this is in the host's memory.
GPUMEM_INLINE bool writes(const Framework& framework, model::TrainingJob job, model::Offload offload) {
  constexpr std::int64_t kNode = 8;
  job.layout.sharding = framework.shardings(kNode, 1, kNode).front();
  const std::string without = framework.settings_of(job, 1, {});
  job.offload = offload;
  return framework.settings_of(job, 1, {}) != without;
}

/// What each rank of the layout keeps in the host's memory: what it would hold on the GPU otherwise.
GPUMEM_INLINE std::optional<core::Bytes> host_memory(const PlannedLayout& layout, const device::GpuProfile& gpu,
                                                     const Question& question) {
  model::TrainingJob here = layout.job;
  here.offload = model::Offload::none;
  analysis::Analysis analysis(std::move(here));
  const auto memory = estimate::Replay(question.allocator).estimate(analysis, gpu);
  if (!memory) return std::nullopt;
  const auto held = [](const estimate::Breakdown& parts) {
    return parts.parameters.count() + parts.gradients.count() + parts.optimizer.count();
  };
  return core::Bytes(std::max<std::int64_t>(held(memory->breakdown) - held(layout.memory.breakdown), 0));
}

GPUMEM_INLINE std::string offload_text(model::Offload offload, std::optional<core::Bytes> host) {
  std::string text =
      "no layout fits without it, so `offload=" + std::string(model::name_of(model::kOffloads, offload)) + "` keeps " +
      (offload == model::Offload::optimizer ? "the optimizer's states" : "shards, gradients and states") +
      " in the host's memory";
  if (host) {
    const auto gib = static_cast<std::int64_t>(std::ceil(host->gib()));
    text += ", about " + core::with_separators(gib) + " GiB a GPU in the first layout";
  }
  return text + "; times are without the copies to the host and its updates, which take longer";
}

/// The layouts that fit with the optimizer's states on the host, or else with all that is sharded there; `none`: what
/// was found without.
GPUMEM_INLINE core::Result<LayoutPlan> layouts_with_host(LayoutPlan none, const Grounds& grounds,
                                                         const device::GpuProfile& gpu) {
  const auto& [plain, asked, links, peaks] = grounds;
  if (plain.offload != model::Offload::none) return none;
  for (const model::Offload offload : {model::Offload::optimizer, model::Offload::parameters}) {
    Question question = asked;
    std::erase_if(question.frameworks, [&](const Framework* one) { return !writes(*one, grounds.plain, offload); });
    if (question.frameworks.empty()) continue;
    model::TrainingJob job = plain;
    job.offload = offload;
    core::Result<LayoutPlan> plan = layouts_of(none.gpus, job, gpu, question, links, peaks);
    if (!plan && plan.error().code == core::ErrorCode::deadline_exceeded) return plan;
    if (!plan || plan->layouts.empty()) continue;
    plan->assumed.insert(plan->assumed.begin(),
                         {"sharding", offload_text(offload, host_memory(plan->layouts.front(), gpu, asked))});
    return plan;
  }
  return none;
}

GPUMEM_INLINE core::Status check_question(const Question& question) {
  if (question.global_batch < 1 || question.global_batch > kMostSamples) {
    return refused("`global_batch` counts samples from 1 to " + std::to_string(kMostSamples));
  }
  if (question.gpus && (*question.gpus < 1 || *question.gpus > kMostGpus)) {
    return refused("`gpus` counts from 1 to " + std::to_string(kMostGpus));
  }
  if (question.frameworks.empty()) return refused("no framework is named");
  for (const auto& most : {question.most.tensor_parallel, question.most.context_parallel,
                           question.most.pipeline_parallel, question.most.expert_parallel}) {
    if (most.value_or(1) < 1) return refused("`at_most_tensor_parallel` and its like count ranks from 1");
  }
  return core::Done{};
}

GPUMEM_INLINE core::Result<Grounds> grounds_of(const model::TrainingJob& job, const device::GpuProfile& gpu,
                                               const Question& question) {
  if (const core::Status sound = check_question(question); !sound) return sound.error();
  if (job.graph != nullptr && job.graph->recording() != nullptr) return recorded(job.graph->file());
  const core::Result<Question> asked = of_model(question, job);
  if (!asked) return asked.error();
  const core::Result<Links> links = links_of(gpu, question.links);
  if (!links) return links.error();
  const auto peaks = utilisation::peaks_of(gpu);
  if (!peaks) return peaks.error();
  model::TrainingJob plain = job;
  plain.layout = {.reshard_after_forward = job.layout.reshard_after_forward,
                  .semi_sync = job.layout.semi_sync,
                  .expert_imbalance = job.layout.expert_imbalance,
                  .zero_reduce_bucket = job.layout.zero_reduce_bucket,
                  .zero_prefetch_bucket = job.layout.zero_prefetch_bucket,
                  .zero_persistence_threshold = job.layout.zero_persistence_threshold,
                  .zero_reuse_distance = job.layout.zero_reuse_distance};
  plain.batch_size = 1;
  plain.gradient_accumulation = 1;
  plain.activation_checkpointing = false;
  plain.checkpoints = {};
  return Grounds{std::move(plain), *asked, *links, utilisation::for_large_products(*peaks, gpu)};
}

}  // namespace find_layouts_detail

GPUMEM_INLINE core::Result<LayoutPlan> find_layouts(const model::TrainingJob& job, const device::GpuProfile& gpu,
                                                    const Question& question) {
  namespace detail = find_layouts_detail;
  const core::Result<detail::Grounds> grounds = detail::grounds_of(job, gpu, question);
  if (!grounds) return grounds.error();
  const auto& [plain, asked, links, peaks] = *grounds;
  if (question.gpus) {
    core::Result<LayoutPlan> plan = detail::layouts_of(*question.gpus, plain, gpu, asked, links, peaks);
    if (!plan || !plan->layouts.empty() || plan->candidates == 0) return plan;
    return detail::layouts_with_host(*std::move(plan), *grounds, gpu);
  }
  LayoutPlan most;  // on the most GPUs on which there are layouts
  for (std::int64_t gpus = 1;; gpus *= 2) {
    core::Result<LayoutPlan> plan = detail::layouts_of(gpus, plain, gpu, asked, links, peaks);
    if (!plan || !plan->layouts.empty()) return plan;
    if (plan->candidates > 0 || gpus == 1) most = *std::move(plan);
    if (gpus == kMostGpus) return most;
  }
}

namespace find_layouts_detail {

/// The rules by which a search has no such layout: those of the question, then those of the search itself.
class Outside {
 public:
  Outside(const Grounds& grounds, const Candidate& asked, const model::TrainingJob& job)
      : question_(grounds.asked), node_(grounds.links.gpus_per_node), asked_(asked), job_(job) {}

  std::vector<Refusal> rules() {
    ask();
    search();
    if (const core::Status known = parallel::check_modelled(job_, "a plan"); !known) {
      add(Rule::modelled, known.error().message);
    }
    return std::move(rules_);
  }

 private:
  void add(Rule rule, std::string text) { rules_.push_back({std::move(text), rule}); }

  void ask() {
    const model::Layout& layout = job_.layout;
    const auto world = parallel::world_size(layout);
    if (question_.gpus && world && *world != *question_.gpus) {
      add(Rule::asked, "it has " + core::with_separators(*world) + " GPUs, and the question is about " +
                           core::with_separators(*question_.gpus));
    }
    const core::Checked samples = core::Checked(layout.data_parallel) * core::Checked(job_.batch_size) *
                                  core::Checked(job_.gradient_accumulation);
    if (samples.value() != question_.global_batch) {
      add(Rule::batch, "its steps do not have the " + core::with_separators(question_.global_batch) +
                           " samples that the question says (data parallel ranks x micro-batch x passes)");
    }
    if (const std::string_view limit = beyond(question_.most, layout); !limit.empty()) {
      add(Rule::asked, "it has more ranks than `" + std::string(limit) + "` allows");
    }
  }

  void search() {
    const model::Layout& layout = job_.layout;
    const Framework& framework = *asked_.framework;
    const std::string name(framework.name);
    if (layout.tensor_parallel > node_ || node_ % layout.tensor_parallel != 0) {
      add(Rule::search, "a search keeps tensor parallel ranks within a node of " + std::to_string(node_) + " GPUs");
    }
    if (framework.tokens_alone && job_.graph != nullptr && !job_.graph->reads_tokens()) {
      add(Rule::search, name + std::string(kReadsNone));
    }
    const auto needs = [&](bool has, std::int64_t ranks, std::string_view what) {
      if (!has && ranks > 1) add(Rule::search, name + " has no " + std::string(what) + " here");
    };
    needs(framework.tensor_parallel, layout.tensor_parallel, "tensor parallelism");
    needs(framework.context_parallel, layout.context_parallel, "context parallelism");
    needs(framework.pipeline_parallel, layout.pipeline_parallel, "pipelines");
    needs(framework.expert_parallel, layout.expert_parallel, "expert parallelism");
    if (framework.experts_fit != nullptr && !framework.experts_fit(layout)) {
      add(Rule::search, name + " cannot cut the ranks that shard into groups of " +
                            std::to_string(layout.expert_parallel) + " that share the experts");
    }
    const auto shardings = framework.shardings(parallel::sharing_ranks(layout), layout.tensor_parallel, node_);
    if (std::find(shardings.begin(), shardings.end(), layout.sharding) == shardings.end()) {
      add(Rule::search,
          "a search takes no `sharding=" + parallel::name_of(layout.sharding) + "` on so many ranks of " + name);
    }
    const auto kinds = framework.checkpointings();
    if (std::find(kinds.begin(), kinds.end(), asked_.micro_batch.checkpointing) == kinds.end()) {
      add(Rule::search, "a search takes no such checkpointing for " + name);
    }
    if (!layout.pipeline_layers.empty() || layout.first_stage_layers || layout.last_stage_layers) {
      add(Rule::search, "a search shares a pipeline's layers as the framework does by itself");
    }
    if (model::keeps_all(layout.schedule) || model::splits_backward(layout.schedule)) {
      const std::string schedule(model::name_of(model::kSchedules, layout.schedule));
      add(Rule::search, "a search takes no `schedule=" + schedule + "`");
    }
  }

  const Question& question_;
  std::int64_t node_;
  const Candidate& asked_;
  const model::TrainingJob& job_;
  std::vector<Refusal> rules_;
};

}  // namespace find_layouts_detail

GPUMEM_INLINE core::Result<Explanation> explain_layout(const model::TrainingJob& job, const device::GpuProfile& gpu,
                                                       const Question& question, const Candidate& asked) {
  namespace detail = find_layouts_detail;
  const core::Result<detail::Grounds> grounds = detail::grounds_of(job, gpu, question);
  if (!grounds) return grounds.error();
  analysis::Analysis analysis(grounds->plain);
  if (const auto adapted = analysis.adapted(); !adapted) return adapted.error();
  Explanation told{.framework = asked.framework, .job = job_of(grounds->plain, asked)};
  if (const core::Status possible = parallel::check(told.job); !possible) {
    told.outside.push_back({possible.error().message, Rule::modelled});
    return told;
  }
  told.outside = detail::Outside(*grounds, asked, told.job).rules();
  const std::vector<MicroBatch> one = {asked.micro_batch};
  model::TrainingJob split = grounds->plain;  // as the search counts the work of a split, for all frameworks
  split.layout = told.job.layout;
  const auto work = block_work(analysis, std::move(split), one, grounds->peaks);
  if (work) {
    const auto time = layout_time(told.job, work->front(), grounds->links);
    if (time) told.time = *time;
    else told.outside.push_back({time.error().message, Rule::time});
  } else {
    told.outside.push_back({work.error().message, Rule::split});
  }
  analysis.set_job(told.job);
  auto memory = estimate::Replay(question.allocator).estimate(analysis, gpu);
  if (core::deadline_passed()) return core::deadline_error();
  if (memory) told.memory = *std::move(memory);
  else told.outside.push_back({memory.error().message, Rule::estimate});
  return told;
}

}  // namespace gpumem::search
