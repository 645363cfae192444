#pragma once

#include "gpumem/search/memory_bound.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "gpumem/adapt/adapt.hpp"
#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/estimate/evidence.hpp"
#include "gpumem/parallel/layout.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::search {

namespace memory_bound_detail {

/// Blocks a stage of the shorter models.
inline constexpr std::int64_t kShort = 2;
inline constexpr std::int64_t kLong = 3;

/// The same model with its first blocks alone: what reads a block that is left out reads the last one that is not.
GPUMEM_INLINE std::shared_ptr<const model::ModelGraph> first_blocks(const connect::WiredGraph& whole,
                                                                    std::span<const connect::Range> blocks,
                                                                    std::size_t count) {
  connect::GraphCopy copy(whole, ops::catalogue());
  const std::size_t layers = whole.graph().layers().size();
  const connect::Range& last = blocks[count - 1];
  std::size_t block = 0;
  for (std::size_t at = 0; at < layers; ++at) {
    while (block < blocks.size() && at >= blocks[block].end) ++block;
    const bool left_out = block < blocks.size() && block >= count && at >= blocks[block].first;
    if (left_out) {
      copy.omit(copy.now(static_cast<model::LayerIndex>(last.first + (at - blocks[block].first))));
    } else {
      copy.copy(whole.weights(at), whole.graph().layers()[at].frozen);
    }
  }
  const auto made = std::move(copy).finish();
  return made ? made->shared_graph() : nullptr;
}

/// Bytes that one parameter takes between steps, at the least.
GPUMEM_INLINE double held_bytes(const model::TrainingJob& job, const parallel::Sharing& sharing) {
  constexpr double kFloat = 4.0;
  const auto own = static_cast<double>(core::element_size(model::parameter_dtype(job.precision)));
  const double shard = sharing.float32_shards ? kFloat : own;
  double bytes = shard / static_cast<double>(sharing.parameter_ranks);
  if (sharing.masters) bytes += kFloat / static_cast<double>(sharing.state_ranks);
  if (sharing.reduction == parallel::Reduction::main_buffer) bytes += kFloat;
  const model::OptimizerRow& row = model::row_of(job.optimizer);
  const bool whole_states = row.state_shape == model::OptimizerRow::StateShape::whole && !row.paged;
  const double state = sharing.masters || sharing.float32_shards ? kFloat : own;
  if (whole_states) bytes += row.states * state / static_cast<double>(sharing.state_ranks);
  return bytes;
}

/// The first rank keeps the most micro-batches, the last one has the head.
GPUMEM_INLINE std::vector<model::Rank> ends_of(const model::Layout& layout) {
  const std::vector<model::Rank> all = parallel::ranks_of_stages(layout);
  if (all.size() == 1) return all;
  return {all.front(), all.back()};
}

}  // namespace memory_bound_detail

GPUMEM_INLINE MemoryBound::MemoryBound(const connect::WiredGraph& whole, const device::GpuProfile& gpu)
    : whole_(whole), gpu_(gpu) {
  const auto blocks = connect::repeated_blocks(whole.graph());
  blocks_ = static_cast<std::int64_t>(blocks.size());
  const auto size = [](const connect::Range& range) { return range.end - range.first; };
  alike_ = !blocks.empty() && !whole.graph().shapes_printed() &&
           std::all_of(blocks.begin(), blocks.end(),
                       [&](const connect::Range& range) { return size(range) == size(blocks.front()); });
}

GPUMEM_INLINE MemoryBound::Graph MemoryBound::shortened(std::int64_t blocks) {
  const auto [known, fresh] = shortened_.try_emplace(blocks, nullptr);
  if (fresh) {
    known->second = memory_bound_detail::first_blocks(whole_, connect::repeated_blocks(whole_.graph()),
                                                      static_cast<std::size_t>(blocks));
  }
  return known->second;
}

/// The job needs so much room for sure; the context stands beside.
GPUMEM_INLINE bool MemoryBound::too_much(analysis::Analysis& analysis, std::int64_t peak) const {
  const auto source = analysis.source();
  const auto context = analysis.context(gpu_);
  if (!source || !context) return false;
  const estimate::Margin margin = estimate::margin_of(analysis.job(), *source, gpu_);
  if (peak > gpu_.capacity().count() - context->expected.count()) return true;
  if (margin.coverage) return false;
  const double needed = static_cast<double>(peak) * margin.upper + static_cast<double>(context->upper.count());
  return needed > static_cast<double>(gpu_.capacity().count());
}

GPUMEM_INLINE bool MemoryBound::held_too_much(const model::TrainingJob& job, const BlockWork& work) const {
  if (adapt::adapts(job) || job.offload != model::Offload::none) return false;
  const auto sharing = parallel::sharing_of(job);
  if (!sharing) return false;
  const std::int64_t of_blocks = work.blocks / job.layout.pipeline_parallel * work.block.parameters;
  const bool whole = job.layout.pipeline_parallel == 1;
  const std::int64_t ends = whole ? work.before.parameters + work.behind.parameters
                                  : std::max(work.before.parameters, work.behind.parameters);
  const double held = static_cast<double>(of_blocks + ends) * memory_bound_detail::held_bytes(job, *sharing);
  return held > static_cast<double>(gpu_.capacity().count());
}

/// What tensors hold at the peak on this rank of a model with so many blocks a stage.
GPUMEM_INLINE std::optional<std::int64_t> MemoryBound::peak_of(const model::TrainingJob& job, const model::Rank& rank,
                                                               std::int64_t blocks) {
  const std::int64_t count = blocks * job.layout.pipeline_parallel * job.layout.virtual_stages;
  model::TrainingJob fewer = job;
  fewer.graph = shortened(count);
  if (fewer.graph == nullptr) return std::nullopt;
  fewer.layout.rank = rank;
  auto& analysis = analyses_[blocks];
  if (analysis == nullptr) analysis = std::make_unique<analysis::Analysis>(fewer);
  else analysis->set_job(std::move(fewer));
  const auto steps = analysis->steps();
  if (!steps) return std::nullopt;
  return (*steps)->peak_bytes;
}

GPUMEM_INLINE bool MemoryBound::blocks_too_much(const model::TrainingJob& job) {
  namespace detail = memory_bound_detail;
  const std::int64_t stages = job.layout.pipeline_parallel * job.layout.virtual_stages;
  const std::int64_t each = blocks_ / stages;
  const bool counted = job.activation_checkpointing && (job.checkpoints.kind == model::Checkpoints::first ||
                                                        job.checkpoints.kind == model::Checkpoints::every);
  if (!alike_ || adapt::adapts(job) || counted || each <= detail::kLong) return false;
  const auto sharing = parallel::sharing_of(job);
  if (!sharing) return false;
  const bool grows = sharing->reduction != parallel::Reduction::partitioned && sharing->reuse_elements == 0;
  for (const model::Rank& rank : detail::ends_of(job.layout)) {
    const auto more = peak_of(job, rank, detail::kLong);
    if (!more) return false;
    std::int64_t bound = *more;
    if (grows) {
      const auto less = peak_of(job, rank, detail::kShort);
      if (!less) return false;
      bound += (each - detail::kLong) * std::max<std::int64_t>(*more - *less, 0);
    }
    if (too_much(*analyses_[detail::kLong], bound)) return true;
  }
  return false;
}

}  // namespace gpumem::search
