#pragma once

#include "gpumem/parallel/pipeline_parallel.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/parallel/layout.hpp"

namespace gpumem::parallel {

namespace schedule_detail {

/// The rank's passes in one direction, in order.
GPUMEM_INLINE std::vector<StagePass> passes_of(std::int64_t ranks, std::int64_t stages, std::int64_t micro_batches,
                                               bool backward) {
  std::vector<StagePass> passes;
  for (std::int64_t first = 0; first < micro_batches; first += ranks) {
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      for (std::int64_t at = first; at < std::min(first + ranks, micro_batches); ++at) {
        const std::int64_t which = backward ? stages - 1 - stage : stage;
        passes.push_back({backward, static_cast<std::uint32_t>(which), static_cast<std::uint32_t>(at)});
      }
    }
  }
  return passes;
}

/// How many forward passes come before the first backward pass, not counting the one that belongs to it.
GPUMEM_INLINE std::int64_t ahead(const model::Layout& layout, std::int64_t rank) {
  const std::int64_t behind = layout.pipeline_parallel - 1 - rank;
  if (layout.virtual_stages == 1) return behind;
  return behind * 2 + (layout.virtual_stages - 1) * layout.pipeline_parallel;
}

/// Micro-batches that differ in memory: in the steady state gradients are held, and one more micro-batch runs.
GPUMEM_INLINE std::int64_t distinct(const model::Layout& layout, std::int64_t rank, std::int64_t micro_batches) {
  if (layout.schedule == model::Schedule::gpipe) return micro_batches;
  const std::int64_t ranks = layout.pipeline_parallel;
  return std::min(micro_batches, layout.virtual_stages == 1 ? ranks - rank + 2 : 2 * ranks);
}

}  // namespace schedule_detail

GPUMEM_INLINE std::int64_t forwards_before_backward(const model::Layout& layout, std::int64_t rank,
                                                    std::int64_t micro_batches) {
  const std::int64_t all = schedule_detail::distinct(layout, rank, micro_batches) * layout.virtual_stages;
  if (layout.schedule == model::Schedule::gpipe) return all;
  return std::min(schedule_detail::ahead(layout, rank) + 1, all);
}

GPUMEM_INLINE std::vector<StagePass> schedule_of(const model::Layout& layout, std::int64_t rank,
                                                 std::int64_t micro_batches) {
  const std::int64_t ranks = layout.pipeline_parallel;
  const std::int64_t stages = layout.virtual_stages;
  const bool all_first = layout.schedule == model::Schedule::gpipe;
  const std::int64_t count = schedule_detail::distinct(layout, rank, micro_batches);
  const std::vector<StagePass> forward = schedule_detail::passes_of(ranks, stages, count, false);
  const std::vector<StagePass> backward = schedule_detail::passes_of(ranks, stages, count, true);
  const auto all = static_cast<std::int64_t>(forward.size());
  const std::int64_t warmup = all_first ? all : std::min(schedule_detail::ahead(layout, rank), all);
  std::vector<StagePass> passes(forward.begin(), forward.begin() + warmup);
  for (std::int64_t at = 0; at < all; ++at) {
    if (warmup + at < all) passes.push_back(forward[static_cast<std::size_t>(warmup + at)]);
    passes.push_back(backward[static_cast<std::size_t>(at)]);
  }
  return passes;
}

namespace pipeline_parallel_detail {

using connect::Range;

/// Whether a parameter has a part in what each layer leaves: then it is computed once, and sent.
GPUMEM_INLINE std::vector<bool> trained_layers(const connect::WiredGraph& wired) {
  const auto layers = wired.graph().layers();
  std::vector<bool> trained(layers.size(), false);
  for (std::size_t at = 0; at < layers.size(); ++at) {
    const auto inputs = wired.inputs(at);
    trained[at] = layers[at].parameters > 0 || std::any_of(inputs.begin(), inputs.end(), [&](model::LayerIndex input) {
                    return input >= 0 && trained[static_cast<std::size_t>(input)];
                  });
  }
  return trained;
}

/// The blocks of each stage where the first or the last rank has a number of its own; none: they cannot be shared so.
GPUMEM_INLINE std::vector<std::int64_t> blocks_as_said(const model::RunSettings& run, const model::Layout& layout,
                                                       std::int64_t all) {
  const std::int64_t ranks = layout.pipeline_parallel;
  const std::int64_t chunks = layout.virtual_stages;
  const std::int64_t others = ranks - (run.first_stage_blocks ? 1 : 0) - (run.last_stage_blocks ? 1 : 0);
  const std::int64_t rest = all - run.first_stage_blocks.value_or(0) - run.last_stage_blocks.value_or(0);
  if (rest < 0 || (others == 0 ? rest != 0 : rest == 0 || rest % (others * chunks) != 0)) return {};
  std::vector<std::int64_t> blocks;
  for (std::int64_t stage = 0; stage < ranks * chunks; ++stage) {
    const std::int64_t rank = stage % ranks;
    const std::optional<std::int64_t> own = rank == 0           ? run.first_stage_blocks
                                            : rank == ranks - 1 ? run.last_stage_blocks
                                                                : std::nullopt;
    if (own && *own % chunks != 0) return {};
    blocks.push_back(own ? *own / chunks : rest / (others * chunks));
  }
  return blocks;
}

/// The blocks of each stage, of which each rank has every pipeline_parallel-th; none: they cannot be shared.
/// Source: Megatron-LM core r0.12, core/transformer/transformer_block.py: get_num_layers_to_build().
GPUMEM_INLINE std::vector<std::int64_t> blocks_of_stages(const model::RunSettings& run, const model::Layout& layout,
                                                         std::int64_t all) {
  if (layout.pipeline_parallel > 1 && (run.first_stage_blocks || run.last_stage_blocks))
    return blocks_as_said(run, layout, all);
  const std::int64_t count = layout.pipeline_parallel * layout.virtual_stages;
  const std::int64_t before = run.embedding_counts ? 1 : 0;
  const std::int64_t behind = run.head_counts ? 1 : 0;
  const std::int64_t counted = all + before + behind;
  if (counted % count != 0) return {};
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(count), counted / count);
  blocks.front() -= before;
  blocks.back() -= behind;
  return blocks;
}

GPUMEM_INLINE core::Error cannot_share(std::int64_t blocks, std::int64_t stages, std::string_view file) {
  return {core::ErrorCode::invalid_argument,
          "has " + std::to_string(blocks) + " repeated blocks, which " + std::to_string(stages) +
              " pipeline stages cannot share evenly; choose a `pipeline_parallel` (times "
              "`virtual_stages`) that divides them",
          {std::string(file), 0, {}}};
}

/// The runs of layers of the stages on one rank, which has every pipeline_parallel-th of them.
GPUMEM_INLINE core::Result<std::vector<Range>> stages_of(const connect::WiredGraph& wired, const model::Layout& layout,
                                                         std::int64_t rank) {
  const std::vector<Range> blocks = connect::repeated_blocks(wired.graph());
  if (blocks.empty()) {
    return core::Error{core::ErrorCode::missing_information,
                       "a pipeline's stages are made of a model's repeated blocks, and this model shows none",
                       {wired.graph().file(), 0, {}}};
  }
  const std::int64_t count = layout.pipeline_parallel * layout.virtual_stages;
  const auto all = static_cast<std::int64_t>(blocks.size());
  const std::vector<std::int64_t> shares = blocks_of_stages(wired.graph().run_settings(), layout, all);
  const bool full = !shares.empty() && std::all_of(shares.begin(), shares.end(), [](auto share) { return share > 0; });
  if (!full) return cannot_share(all, count, wired.graph().file());
  std::vector<Range> stages;
  std::int64_t first = 0;
  for (std::int64_t stage = 0; stage < count; ++stage) {
    const std::int64_t end = first + shares[static_cast<std::size_t>(stage)];
    if (stage % layout.pipeline_parallel == rank) {
      Range range{blocks[static_cast<std::size_t>(first)].first, blocks[static_cast<std::size_t>(end) - 1].end};
      if (stage == 0) range.first = 0;
      if (stage + 1 == count) range.end = static_cast<std::uint32_t>(wired.graph().layers().size());
      stages.push_back(range);
    }
    first = end;
  }
  return stages;
}

}  // namespace pipeline_parallel_detail

GPUMEM_INLINE bool stages_are_alike(const connect::WiredGraph& wired) {
  const model::RunSettings& run = wired.graph().run_settings();
  return !run.first_stage_blocks && !run.last_stage_blocks && !run.embedding_counts && !run.head_counts;
}

GPUMEM_INLINE core::Result<StageLayers> stage_layers(const connect::WiredGraph& wired, const model::Layout& layout,
                                                     std::int64_t stage) {
  const auto count = wired.graph().layers().size();
  StageLayers found;
  found.has.assign(count, true);
  found.stages = {{0, static_cast<std::uint32_t>(count)}};
  if (layout.pipeline_parallel == 1) return found;
  core::Result<std::vector<connect::Range>> stages = pipeline_parallel_detail::stages_of(wired, layout, stage);
  if (!stages) return stages.error();
  found.stages = *std::move(stages);
  found.trained = pipeline_parallel_detail::trained_layers(wired);
  found.has.assign(count, false);
  for (const connect::Range& range : found.stages) {
    std::fill(found.has.begin() + range.first, found.has.begin() + range.end, true);
  }
  for (std::size_t at = count; at-- > 0;) {
    if (!found.has[at]) continue;
    for (const model::LayerIndex input : wired.inputs(at)) {
      if (input < 0 || found.trained[static_cast<std::size_t>(input)]) continue;
      found.has[static_cast<std::size_t>(input)] = true;
    }
  }
  return found;
}

GPUMEM_INLINE std::int64_t stage_of_rank(const model::Layout& layout) {
  if (layout.rank.kind == model::Ranks::last) return layout.pipeline_parallel - 1;
  if (layout.rank.kind != model::Ranks::one) return 0;
  const std::int64_t a_stage = layout.data_parallel * layout.tensor_parallel * layout.context_parallel;
  return std::min(layout.rank.count / a_stage, layout.pipeline_parallel - 1);
}

GPUMEM_INLINE std::string rank_text(const model::Layout& layout) {
  const std::int64_t a_stage = layout.data_parallel * layout.tensor_parallel * layout.context_parallel;
  const std::int64_t world = a_stage * layout.pipeline_parallel;
  const bool splits = layout.data_parallel != world || layout.expert_parallel > 1;
  if (!splits) return {};
  const std::int64_t stage = stage_of_rank(layout);
  const bool named = layout.rank.kind == model::Ranks::one;
  const std::string rank = std::to_string(named ? layout.rank.count : (stage + 1) * a_stage - 1);
  if (layout.pipeline_parallel == 1) return "rank " + rank + " of " + std::to_string(world) + "; all ranks are alike";
  return "rank " + rank + " of " + std::to_string(world) + ": pipeline stage " + std::to_string(stage + 1) + " of " +
         std::to_string(layout.pipeline_parallel);
}

GPUMEM_INLINE std::vector<model::Rank> ranks_of_stages(const model::Layout& layout) {
  const std::int64_t a_stage = layout.data_parallel * layout.tensor_parallel * layout.context_parallel;
  std::vector<model::Rank> ranks;
  ranks.reserve(static_cast<std::size_t>(layout.pipeline_parallel));
  for (std::int64_t stage = 0; stage < layout.pipeline_parallel; ++stage) {
    ranks.push_back({model::Ranks::one, stage * a_stage});
  }
  return ranks;
}

GPUMEM_INLINE std::vector<model::Rank> ranks_to_compare(const model::Layout& layout) {
  const std::int64_t a_stage = layout.data_parallel * layout.tensor_parallel * layout.context_parallel;
  std::vector<model::Rank> ranks;
  for (const std::int64_t stage : {std::int64_t{0}, std::int64_t{1}, layout.pipeline_parallel - 1}) {
    const model::Rank rank{model::Ranks::one, stage * a_stage};
    const bool known = std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    if (stage < layout.pipeline_parallel && !known) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace gpumem::parallel
