#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/ops/collective.hpp"
#include "gpumem/parallel/rank_graph.hpp"
#include "gpumem/search/block_work.hpp"

namespace gpumem::search {

namespace block_work_detail {

/// Where parts are told apart: a first rank, one between, a last one.
inline constexpr std::int64_t kLeastBlocks = 3;

GPUMEM_INLINE double kernels_seconds(const plan::StepWork& work, plan::Phase phase, const model::TrainingJob& job,
                                     const utilisation::GpuPeaks& peaks, double& launches) {
  plan::StepWork some;
  for (const plan::Kernel& kernel : work.kernels) {
    if (kernel.phase == phase) some.kernels.push_back(kernel);
  }
  if (some.kernels.empty()) return 0.0;
  const utilisation::StepTime time = utilisation::step_time(some, job, peaks);
  launches += time.launches;
  return time.kernels;
}

GPUMEM_INLINE core::Result<PartWork> part_of(analysis::Analysis& analysis, const utilisation::GpuPeaks& peaks) {
  const auto work = analysis.work();
  if (!work) return work.error();
  const auto ranked = analysis.ranked();
  if (!ranked) return ranked.error();
  PartWork part;
  double of_step = 0.0;
  const model::TrainingJob& job = analysis.job();
  part.forward = kernels_seconds(**work, plan::Phase::forward, job, peaks, part.launches);
  part.backward = kernels_seconds(**work, plan::Phase::backward, job, peaks, part.launches);
  part.optimizer = kernels_seconds(**work, plan::Phase::optimizer, job, peaks, of_step);
  part.parameters = (*ranked)->graph().parameters();
  return part;
}

GPUMEM_INLINE double elements_of(const core::Shape& shape, std::int64_t batch) {
  const auto elements = shape.elements(batch);
  return elements ? static_cast<double>(elements->value().value_or(0)) : 0.0;
}

/// What the tensor that a layer reads as its `input`-th has; 0 if it reads none.
GPUMEM_INLINE double elements_read(const connect::WiredGraph& wired, std::size_t layer, std::size_t input,
                                   std::int64_t batch) {
  const auto inputs = wired.inputs(layer);
  if (input >= inputs.size()) return 0.0;
  const model::LayerIndex from = inputs[input];
  if (from < 0) return 0.0;
  const auto outputs = wired.outputs(static_cast<std::size_t>(from));
  return outputs.empty() ? 0.0 : elements_of(outputs[0], batch);
}

/// Of the rank between, which has one block.
GPUMEM_INLINE BlockMessages messages_of(const connect::WiredGraph& wired, const model::TrainingJob& job) {
  const auto bytes = static_cast<double>(core::element_size(model::parameter_dtype(job.precision)));
  const model::ModelGraph& graph = wired.graph();
  BlockMessages sent;
  bool expert_sums = false;
  double most_received = 0.0;
  for (std::size_t at = 0; at < graph.layers().size(); ++at) {
    const model::Layer& layer = graph.layers()[at];
    const model::OpTraits* op = graph.op_traits(layer);
    const auto outputs = wired.outputs(at);
    if (graph.op(layer) == ops::kReceived && !outputs.empty()) {
      most_received = std::max(most_received, elements_of(outputs[0], job.batch_size));
    }
    if (op != nullptr && op->family == model::OpFamily::attention && !op->projects()) {
      sent.keys_values +=
          bytes * (elements_read(wired, at, 1, job.batch_size) + elements_read(wired, at, 2, job.batch_size));
    }
    const bool gathers = layer.expert > 0 && graph.attributes(layer).find("per_token") != nullptr;
    if (gathers && !outputs.empty()) sent.routed += bytes * elements_of(outputs[0], job.batch_size);
    if (layer.split != model::TensorSplit::rows) continue;
    if (layer.expert == 0) ++sent.sums;
    expert_sums = expert_sums || layer.expert > 0;
  }
  if (expert_sums) ++sent.sums;
  const std::int64_t parts = job.layout.sequence_parallel ? job.layout.tensor_parallel : 1;
  sent.hidden = bytes * most_received * static_cast<double>(parts);
  return sent;
}

/// Whether the blocks have as many layers each, of which no shape was printed.
GPUMEM_INLINE bool blocks_alike(const model::ModelGraph& graph, std::span<const connect::Range> blocks) {
  const auto size = [](const connect::Range& range) { return range.end - range.first; };
  return !graph.shapes_printed() && std::all_of(blocks.begin(), blocks.end(), [&](const connect::Range& range) {
    return size(range) == size(blocks.front());
  });
}

/// The same model with only some of its blocks, which are alike: what reads a block that is left out reads the last one
/// before it that is not. `kept`: in rising order, from 0 on.
GPUMEM_INLINE std::shared_ptr<const model::ModelGraph> some_blocks(const connect::WiredGraph& whole,
                                                                   std::span<const connect::Range> blocks,
                                                                   std::span<const std::size_t> kept) {
  connect::GraphCopy copy(whole, ops::catalogue());
  std::size_t block = 0;
  std::size_t last = 0;
  for (std::size_t at = 0; at < whole.graph().layers().size(); ++at) {
    while (block < blocks.size() && at >= blocks[block].end) ++block;
    const bool within = block < blocks.size() && at >= blocks[block].first;
    if (within && std::binary_search(kept.begin(), kept.end(), block)) last = block;
    if (within && last != block) {
      copy.omit(copy.now(static_cast<model::LayerIndex>(blocks[last].first + (at - blocks[block].first))));
    } else {
      copy.copy(whole.weights(at), whole.graph().layers()[at].frozen);
    }
  }
  const auto made = std::move(copy).finish();
  return made ? made->shared_graph() : nullptr;
}

/// Never below 0: kernels of more blocks can be less than the sum.
GPUMEM_INLINE PartWork less(const PartWork& whole, const PartWork& part) {
  return {std::max(0.0, whole.forward - part.forward), std::max(0.0, whole.backward - part.backward),
          std::max(0.0, whole.optimizer - part.optimizer), std::max(0.0, whole.launches - part.launches),
          std::max<std::int64_t>(0, whole.parameters - part.parameters)};
}

/// A model of so few blocks that no rank has a whole one: each has its share of all.
GPUMEM_INLINE BlockWork shared_out(const PartWork& whole, std::int64_t blocks) {
  BlockWork work;
  work.blocks = std::max<std::int64_t>(blocks, 1);
  work.apart = false;
  const auto share = static_cast<double>(work.blocks);
  work.block = {whole.forward / share, whole.backward / share, whole.optimizer / share, whole.launches / share,
                whole.parameters / work.blocks};
  return work;
}

/// One micro-batch of the layout, whose stages have a block each; of a pipeline rank of these.
GPUMEM_INLINE model::TrainingJob one_pass(model::TrainingJob job, std::int64_t stages) {
  job.layout = split_of(job.layout);
  job.layout.data_parallel = job.layout.expert_parallel;  // so that the experts' ranks are there
  job.layout.pipeline_parallel = stages;
  job.gradient_accumulation = 1;
  return job;
}

/// The work of one rank for each micro-batch. Those whose checkpointing is that of the analysis' job come first: the
/// other ones connect the model anew. The error is that of the first micro-batch that has one.
GPUMEM_INLINE core::Result<std::vector<PartWork>> parts_of_rank(analysis::Analysis& analysis, model::TrainingJob job,
                                                                std::span<const MicroBatch> micro_batches,
                                                                const utilisation::GpuPeaks& peaks) {
  std::vector<std::size_t> order(micro_batches.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_partition(order.begin(), order.end(), [&, now = analysis.job().activation_checkpointing](std::size_t at) {
    return micro_batches[at].checkpointing.on == now;
  });
  std::vector<PartWork> parts(micro_batches.size());
  std::size_t failed = micro_batches.size();
  std::optional<core::Error> why;
  for (const std::size_t at : order) {
    if (at > failed) continue;
    job.batch_size = micro_batches[at].size;
    job.activation_checkpointing = micro_batches[at].checkpointing.on;
    job.checkpoints = micro_batches[at].checkpointing.policy;
    analysis.set_job(job);
    core::Result<PartWork> part = part_of(analysis, peaks);
    if (part) {
      parts[at] = *part;
    } else {
      failed = at;
      why = part.error();
    }
  }
  if (why) return *why;
  return parts;
}

/// Of a model of at least three blocks: of a rank between, the first and the last.
GPUMEM_INLINE core::Result<std::vector<BlockWork>> told_apart(analysis::Analysis& analysis, model::TrainingJob job,
                                                              std::span<const MicroBatch> micro_batches,
                                                              const utilisation::GpuPeaks& peaks, std::int64_t blocks) {
  job = one_pass(std::move(job), blocks);
  const std::int64_t a_stage = job.layout.data_parallel * job.layout.tensor_parallel * job.layout.context_parallel;
  const std::array<std::int64_t, 3> stages = {blocks / 2, 0, blocks - 1};
  std::array<std::vector<PartWork>, 3> found;
  std::vector<BlockMessages> sent;
  sent.reserve(micro_batches.size());
  for (std::size_t at = 0; at < stages.size(); ++at) {
    if (core::deadline_passed()) return core::deadline_error();
    job.layout.rank = {model::Ranks::one, stages[at] * a_stage};
    auto parts = parts_of_rank(analysis, job, micro_batches, peaks);
    if (!parts) return parts.error();
    found[at] = *std::move(parts);
    if (at > 0) continue;
    const auto block = analysis.ranked();
    if (!block) return block.error();
    for (const MicroBatch& micro_batch : micro_batches) {
      job.batch_size = micro_batch.size;
      sent.push_back(messages_of(**block, job));
    }
  }
  std::vector<BlockWork> all;
  all.reserve(micro_batches.size());
  for (std::size_t at = 0; at < micro_batches.size(); ++at) {
    const PartWork& block = found[0][at];
    all.push_back({blocks, true, less(found[1][at], block), block, less(found[2][at], block), sent[at]});
  }
  return all;
}

}  // namespace block_work_detail

GPUMEM_INLINE std::shared_ptr<const model::ModelGraph> representative_blocks(const connect::WiredGraph& whole) {
  const auto blocks = connect::repeated_blocks(whole.graph());
  const std::array<std::size_t, 3> kept = {0, blocks.size() / 2, blocks.size() - 1};
  if (blocks.size() <= kept.size() || !block_work_detail::blocks_alike(whole.graph(), blocks)) return nullptr;
  auto few = block_work_detail::some_blocks(whole, blocks, kept);
  // An image tower may have more blocks than are left.
  if (few != nullptr && connect::repeated_blocks(*few).size() != kept.size()) few.reset();
  return few;
}

GPUMEM_INLINE model::TrainingJob of_fewer_blocks(model::TrainingJob job, std::shared_ptr<const model::ModelGraph> few) {
  job.graph = std::move(few);
  job.image.clear();
  job.images.reset();
  job.frames.reset();
  job.seconds.reset();
  job.parts = model::TrainingJob().parts;
  return job;
}

GPUMEM_INLINE model::Layout split_of(const model::Layout& layout) {
  model::Layout split;
  split.tensor_parallel = layout.tensor_parallel;
  split.sequence_parallel = layout.sequence_parallel;
  split.context_parallel = layout.context_parallel;
  split.expert_parallel = layout.expert_parallel;
  return split;
}

GPUMEM_INLINE core::Result<std::vector<BlockWork>> block_work(analysis::Analysis& analysis, model::TrainingJob job,
                                                              std::span<const MicroBatch> micro_batches,
                                                              const utilisation::GpuPeaks& peaks) {
  namespace detail = block_work_detail;
  const auto wired = analysis.adapted();
  if (!wired) return wired.error();
  const auto blocks = static_cast<std::int64_t>(connect::repeated_blocks((*wired)->graph()).size());
  if (blocks >= detail::kLeastBlocks) {
    auto apart = detail::told_apart(analysis, job, micro_batches, peaks, blocks);
    if (apart || parallel::splits_model(job.layout)) return apart;
  }
  const auto parts = detail::parts_of_rank(analysis, detail::one_pass(std::move(job), 1), micro_batches, peaks);
  if (!parts) return parts.error();
  std::vector<BlockWork> all;
  all.reserve(parts->size());
  for (const PartWork& whole : *parts) all.push_back(detail::shared_out(whole, blocks));
  return all;
}

}  // namespace gpumem::search
