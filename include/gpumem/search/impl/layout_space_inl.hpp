#pragma once

#include "gpumem/search/layout_space.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "gpumem/core/deadline.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::search {

namespace layout_space_detail {

/// In rising order.
GPUMEM_INLINE std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> below;
  std::vector<std::int64_t> above;
  for (std::int64_t at = 1; at <= number / at; ++at) {
    if (number % at != 0) continue;
    below.push_back(at);
    if (at != number / at) above.push_back(number / at);
  }
  below.insert(below.end(), above.rbegin(), above.rend());
  return below;
}

GPUMEM_INLINE std::int64_t experts_of(const model::ModelGraph& graph) {
  std::uint32_t most = 0;
  for (const model::Layer& layer : graph.layers()) most = std::max(most, layer.expert);
  return most;
}

/// The program that trains: the job's own, or where it names none the framework's.
GPUMEM_INLINE model::Loop loop_of(const model::TrainingJob& job, const Framework& framework) {
  return job.loop == model::Loop::script ? framework.loop : job.loop;
}

/// How the layers of a model are shared.
struct Split {
  std::int64_t tensor = 1;
  std::int64_t context = 1;
  std::int64_t experts = 1;
};

/// Stages of a pipeline, and of the model on each.
struct Pipeline {
  std::int64_t ranks = 1;
  std::int64_t virtual_stages = 1;
  parallel::Shares shares = parallel::Shares::even;
};

class Space {
 public:
  Space(analysis::Analysis& analysis, const model::TrainingJob& job, const SpaceLimits& limits, const Links& links,
        const utilisation::GpuPeaks& peaks)
      : analysis_(analysis), job_(job), limits_(limits), links_(links), peaks_(peaks) {}

  core::Result<LayoutSpace> run() {
    const auto wired = analysis_.adapted();
    if (!wired) return wired.error();
    whole_ = **wired;
    blocks_ = static_cast<std::int64_t>(connect::repeated_blocks(whole_->graph()).size());
    find_representatives();
    name_checkpointings();
    find_pipelines();
    const std::int64_t experts = std::max<std::int64_t>(experts_of(whole_->graph()), 1);
    for (const std::int64_t tensor : divisors(limits_.gpus)) {
      if (tensor > links_.gpus_per_node || links_.gpus_per_node % tensor != 0) continue;
      for (const std::int64_t context : divisors(limits_.gpus / tensor)) {
        for (const std::int64_t part : divisors(experts)) {
          model::Layout split;
          split.tensor_parallel = tensor;
          split.context_parallel = context;
          split.expert_parallel = part;
          if (beyond(limits_.most, split).empty()) add_split({tensor, context, part});
          if (core::deadline_passed()) return core::deadline_error();
        }
      }
    }
    std::stable_sort(space_.candidates.begin(), space_.candidates.end(),
                     [](const Candidate& left, const Candidate& right) { return left.step < right.step; });
    return std::move(space_);
  }

 private:
  using Family = std::tuple<const Framework*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                            model::Shardings, std::int64_t, bool, model::Checkpoints>;

  [[nodiscard]] static bool has(const Framework& framework, const Split& split) {
    return (split.tensor == 1 || framework.tensor_parallel) && (split.context == 1 || framework.context_parallel) &&
           (split.experts == 1 || framework.expert_parallel);
  }

  void refuse(Rule rule, const core::Error& why) { ++space_.refused[{why.message, rule}]; }
  void refuse_batch() {
    ++space_.refused[{"`global_batch` is not a multiple of the data parallel ranks", Rule::batch}];
  }

  /// All kinds of the frameworks, each once.
  void name_checkpointings() {
    for (const Framework* framework : limits_.frameworks) {
      for (const Checkpointing& kind : framework->checkpointings()) {
        if (std::find(kinds_.begin(), kinds_.end(), kind) == kinds_.end()) kinds_.push_back(kind);
      }
    }
  }

  /// Those whose stages share the model's blocks.
  void find_pipelines() {
    const bool any = std::any_of(limits_.frameworks.begin(), limits_.frameworks.end(),
                                 [](const Framework* framework) { return framework->pipeline_parallel; });
    const bool uneven = std::any_of(
        limits_.frameworks.begin(), limits_.frameworks.end(),
        [&](const Framework* framework) { return framework->pipeline_parallel && has_uneven_stages(*framework); });
    for (const std::int64_t ranks : divisors(limits_.gpus)) {
      if (ranks > 1 && (!any || ranks > limits_.most.pipeline_parallel.value_or(ranks))) break;
      if (const core::Status even = add_pipeline({ranks, 1}); !even) {
        const bool shared = uneven && add_pipeline({ranks, 1, parallel::Shares::uneven});
        if (!shared) refuse(Rule::stages, even.error());
      } else if (ranks > 1) {
        add_virtual_stages(ranks);
      }
    }
  }

  void add_virtual_stages(std::int64_t ranks) {
    for (const std::int64_t stages : divisors(blocks_ / ranks)) {
      if (stages == 1) continue;
      if (const core::Status even = add_pipeline({ranks, stages}); !even) refuse(Rule::stages, even.error());
    }
  }

  /// Errors: the rule by which its stages cannot share the blocks.
  core::Status add_pipeline(const Pipeline& pipeline) {
    model::Layout layout;
    layout.pipeline_parallel = pipeline.ranks;
    layout.virtual_stages = pipeline.virtual_stages;
    const auto layers = parallel::stage_layers(*whole_, layout, 0, pipeline.shares);
    if (!layers) return layers.error();
    pipelines_.push_back(pipeline);
    return core::Done{};
  }

  /// The samples of a micro-batch that some layout of the split can have, in rising order.
  [[nodiscard]] std::vector<std::int64_t> sizes_of(const Split& split) const {
    const std::int64_t rest = limits_.gpus / (split.tensor * split.context);
    std::vector<std::int64_t> sizes;
    for (const Pipeline& pipeline : pipelines_) {
      if (rest % pipeline.ranks != 0 || limits_.global_batch % (rest / pipeline.ranks) != 0) continue;
      for (const std::int64_t size : divisors(limits_.global_batch / (rest / pipeline.ranks))) {
        sizes.push_back(size);
      }
    }
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
  }

  /// A mixture of experts has a thousand times as many layers as blocks: three of these are enough.
  void find_representatives() {
    const auto plain = analysis_.wired();
    auto few = plain ? representative_blocks(**plain) : nullptr;
    if (few != nullptr) few_.emplace(of_fewer_blocks(job_, std::move(few)));
  }

  /// Of the whole model, by three of its blocks where these are told apart.
  [[nodiscard]] core::Result<std::vector<BlockWork>> work_of(const model::TrainingJob& job,
                                                             const std::vector<MicroBatch>& micro_batches) {
    if (few_) {
      auto work = block_work(*few_, of_fewer_blocks(job, few_->job().graph), micro_batches, peaks_);
      if (!work) return work;
      if (work->front().apart) {
        for (BlockWork& one : *work) one.blocks = blocks_;
        return work;
      }
    }
    return block_work(analysis_, job, micro_batches, peaks_);
  }

  /// What the split computes for each micro-batch; the rule that refuses it otherwise. With sequence parallelism, where
  /// that can be.
  [[nodiscard]] core::Result<std::vector<BlockWork>> work_of(model::Layout& layout,
                                                             const std::vector<MicroBatch>& micro_batches) {
    model::TrainingJob job = job_;
    layout.sequence_parallel = layout.tensor_parallel > 1;
    job.layout = layout;
    auto work = work_of(job, micro_batches);
    if (work || !layout.sequence_parallel) return work;
    layout.sequence_parallel = false;
    job.layout = layout;
    return work_of(job, micro_batches);
  }

  /// Leaves those kinds that the model has a place for: it may show no blocks, or no attention.
  void drop_checkpointings(const model::Layout& split, std::vector<MicroBatch>& micro_batches) {
    for (const Checkpointing& kind : kinds_) {
      model::Layout layout = split;
      if (work_of(layout, {{micro_batches.front().size, kind}})) continue;
      std::erase_if(micro_batches, [&](const MicroBatch& one) { return one.checkpointing == kind; });
      if (micro_batches.empty()) return;
    }
  }

  /// Leaves the sizes whose work can be counted, which come before those that are too large for that.
  void drop_uncountable(const model::Layout& split, std::vector<MicroBatch>& micro_batches) {
    const auto can_be_counted = [&](const MicroBatch& one) {
      model::Layout layout = split;
      return static_cast<bool>(work_of(layout, {one}));
    };
    micro_batches.erase(std::partition_point(micro_batches.begin(), micro_batches.end(), can_be_counted),
                        micro_batches.end());
  }

  void add_split(const Split& split) {
    const bool any = std::any_of(limits_.frameworks.begin(), limits_.frameworks.end(),
                                 [&](const Framework* framework) { return has(*framework, split); });
    if (!any) return;
    std::vector<MicroBatch> micro_batches;
    for (const std::int64_t size : sizes_of(split)) {
      for (const Checkpointing& kind : kinds_) micro_batches.push_back({size, kind});
    }
    if (micro_batches.empty()) return refuse_batch();
    model::Layout layout = job_.layout;
    layout.tensor_parallel = split.tensor;
    layout.context_parallel = split.context;
    layout.expert_parallel = split.experts;
    auto work = work_of(layout, micro_batches);
    if (!work) {
      refuse(Rule::split, work.error());
      drop_checkpointings(layout, micro_batches);
      drop_uncountable(layout, micro_batches);
      if (micro_batches.empty()) return;
      work = work_of(layout, micro_batches);
      if (!work) return;
    }
    first_work_ = space_.work.size();
    space_.work.insert(space_.work.end(), work->begin(), work->end());
    for (const Framework* framework : limits_.frameworks) {
      if (!has(*framework, split)) continue;
      for (const Pipeline& pipeline : pipelines_) {
        if (pipeline.ranks > 1 && !work->front().apart) continue;
        add_layouts(*framework, layout, pipeline, micro_batches);
      }
    }
  }

  void add_layouts(const Framework& framework, model::Layout layout, const Pipeline& pipeline,
                   const std::vector<MicroBatch>& micro_batches) {
    const std::int64_t rest = limits_.gpus / (layout.tensor_parallel * layout.context_parallel);
    if (rest % pipeline.ranks != 0 || (pipeline.ranks > 1 && !framework.pipeline_parallel)) return;
    if (pipeline.shares == parallel::Shares::uneven && !has_uneven_stages(framework)) return;
    layout.pipeline_parallel = pipeline.ranks;
    layout.virtual_stages = pipeline.virtual_stages;
    layout.schedule = pipeline.virtual_stages > 1 ? model::Schedule::interleaved : layout.schedule;
    layout.data_parallel = rest / pipeline.ranks;
    if (limits_.global_batch % layout.data_parallel != 0) {
      return refuse_batch();
    }
    const std::int64_t ranks = parallel::sharing_ranks(layout);
    for (const model::Sharding& sharding : framework.shardings(ranks, layout.tensor_parallel, links_.gpus_per_node)) {
      // A mesh of groups has whole context parallel groups in each.
      if (sharding.kind == model::Shardings::hsdp && sharding.count % layout.context_parallel != 0) continue;
      layout.sharding = sharding;
      const bool fully = sharding.kind == model::Shardings::fsdp2 || sharding.kind == model::Shardings::hsdp;
      layout.reshard_after_forward = fully ? job_.layout.reshard_after_forward : model::Layout().reshard_after_forward;
      if (framework.experts_fit != nullptr && !framework.experts_fit(layout)) continue;
      const std::vector<Checkpointing> kinds = framework.checkpointings();
      for (std::size_t at = 0; at < micro_batches.size(); ++at) {
        const auto kind = std::find(kinds.begin(), kinds.end(), micro_batches[at].checkpointing);
        if (kind == kinds.end()) continue;
        add_candidate(framework, layout, micro_batches[at], first_work_ + at);
      }
    }
  }

  [[nodiscard]] bool has_uneven_stages(const Framework& framework) const {
    model::TrainingJob job;
    job.loop = loop_of(job_, framework);
    return parallel::shares_of(job) != parallel::Shares::even;
  }

  void add_candidate(const Framework& framework, const model::Layout& layout, const MicroBatch& micro_batch,
                     std::size_t work) {
    const std::int64_t of_rank = limits_.global_batch / layout.data_parallel;
    if (of_rank % micro_batch.size != 0) return;
    Candidate candidate{.framework = &framework,
                        .layout = layout,
                        .micro_batch = micro_batch,
                        .micro_batches = of_rank / micro_batch.size,
                        .time = {},
                        .work = work};
    const model::TrainingJob job = job_of(job_, candidate);
    // No published run has both, so no plan was compared with one: an estimate answers, and a search leaves it out.
    const bool keeps = job.activation_checkpointing && job.checkpoints.kind == model::Checkpoints::selective_op;
    if (keeps && layout.pipeline_parallel > 1) {
      return refuse(Rule::modelled,
                    {core::ErrorCode::invalid_argument,
                     "a plan does not model `checkpointing=selective-op` in a pipeline; say full, or none",
                     {}});
    }
    // torchtitan calls fully_shard() where ranks share parameters (parallel_dims.fsdp_enabled), which alone offloads
    // them.
    const bool alone = layout.sharding.kind == model::Shardings::fsdp2 && parallel::sharing_ranks(layout) == 1;
    if (alone && job.offload == model::Offload::parameters) {
      return refuse(Rule::modelled, {core::ErrorCode::invalid_argument,
                                     "`offload=parameters` needs ranks that share parameters, by `data_parallel` or "
                                     "`context_parallel`",
                                     {}});
    }
    if (const core::Status known = parallel::check_modelled(job, "a plan"); !known) {
      return refuse(Rule::modelled, known.error());
    }
    const auto time = layout_time(job, space_.work[work], links_);
    if (!time) return refuse(Rule::time, time.error());
    candidate.time = *time;
    candidate.step = time->step();
    candidate.family = family_of(framework, layout, micro_batch.checkpointing);
    model::Layout least = layout;
    if (layout.sharding.kind == model::Shardings::hsdp) least.sharding = {model::Shardings::fsdp2, 0};
    candidate.least_family = family_of(framework, least, micro_batch.checkpointing);
    space_.candidates.push_back(candidate);
  }

  std::uint32_t family_of(const Framework& framework, const model::Layout& layout, const Checkpointing& kind) {
    const Family key{&framework,
                     layout.tensor_parallel,
                     layout.context_parallel,
                     layout.expert_parallel,
                     layout.pipeline_parallel,
                     layout.virtual_stages,
                     layout.sharding.kind,
                     layout.sharding.count,
                     kind.on,
                     kind.policy.kind};
    return families_.try_emplace(key, static_cast<std::uint32_t>(families_.size())).first->second;
  }

  analysis::Analysis& analysis_;
  std::optional<analysis::Analysis> few_;  ///< of the model with three of its blocks
  std::int64_t blocks_ = 0;                ///< of the whole model
  const model::TrainingJob& job_;
  const SpaceLimits& limits_;
  const Links& links_;
  const utilisation::GpuPeaks& peaks_;
  std::optional<connect::WiredGraph> whole_;
  std::vector<Checkpointing> kinds_;
  std::vector<Pipeline> pipelines_;
  std::map<Family, std::uint32_t> families_;
  std::size_t first_work_ = 0;  ///< of the split that is being added
  LayoutSpace space_;
};

}  // namespace layout_space_detail

GPUMEM_INLINE std::string_view beyond(const MostRanks& most, const model::Layout& layout) {
  if (layout.tensor_parallel > most.tensor_parallel.value_or(layout.tensor_parallel)) return "at_most_tensor_parallel";
  if (layout.context_parallel > most.context_parallel.value_or(layout.context_parallel)) {
    return "at_most_context_parallel";
  }
  if (layout.pipeline_parallel > most.pipeline_parallel.value_or(layout.pipeline_parallel)) {
    return "at_most_pipeline_parallel";
  }
  if (layout.expert_parallel > most.expert_parallel.value_or(layout.expert_parallel)) return "at_most_expert_parallel";
  return {};
}

GPUMEM_INLINE model::TrainingJob job_of(const model::TrainingJob& job, const Candidate& candidate) {
  model::TrainingJob one = job;
  one.layout = candidate.layout;
  one.batch_size = candidate.micro_batch.size;
  one.gradient_accumulation = candidate.micro_batches;
  one.activation_checkpointing = candidate.micro_batch.checkpointing.on;
  one.checkpoints = candidate.micro_batch.checkpointing.policy;
  if (one.loop != model::Loop::script) return one;
  const bool usual_place = one.zero_grad == model::row_of(model::Loop::script).zero_grad;
  one.loop = layout_space_detail::loop_of(job, *candidate.framework);
  if (usual_place) one.zero_grad = model::row_of(one.loop).zero_grad;
  return one;
}

GPUMEM_INLINE Runs runs_of(const Candidate& candidate) {
  const std::int64_t ranks = candidate.layout.pipeline_parallel;
  const std::int64_t distinct = ranks == 1 ? 3 : 2 * ranks + 2;
  return {candidate.family, std::min(candidate.micro_batches, distinct)};
}

GPUMEM_INLINE core::Result<LayoutSpace> layout_space(analysis::Analysis& analysis, const model::TrainingJob& job,
                                                     const SpaceLimits& limits, const Links& links,
                                                     const utilisation::GpuPeaks& peaks) {
  return layout_space_detail::Space(analysis, job, limits, links, peaks).run();
}

}  // namespace gpumem::search
