// Input: the wired graph of a whole model and the layout of a job.
// Output: the wired graph of one rank: the layers of its pipeline stages with its part of each, its experts and its
// part of the tokens. What it receives is an input of the graph; what it sends takes the place of a loss.
// Units: elements.
//
// One file a way of splitting: tensor_parallel, pipeline_parallel; here experts (whole ones, of which each rank has as
// many) and context (each rank has a part of every sequence).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/layout.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::parallel {

/// The fields of a job that it depends on, in addition to the graph.
template <typename Job>
[[nodiscard]] auto rank_key(Job& job) {
  return std::tie(job.layout, job.sequence_length, job.input_shape, job.lora, job.peft, job.quantize, job.loop);
}

/// Whether the layout splits the model itself.
[[nodiscard]] bool splits_model(const model::Layout& layout);

/// Whether two jobs of one graph have the same rank_graph(): of a layout count the ways in which it splits the model
/// and the rank's pipeline stage, not how many ranks are alike. Of a schedule counts which stages a rank has, of a
/// sharding how stages share the blocks.
[[nodiscard]] bool same_rank_graph(const model::TrainingJob& left, const model::TrainingJob& right);

/// Errors: invalid_argument for a layout that the model cannot have, naming the layer and the rule; missing_information
/// for a model that does not say how ranks share its layers.
[[nodiscard]] core::Result<connect::WiredGraph> rank_graph(const connect::WiredGraph& whole,
                                                           const model::TrainingJob& job, const ops::Catalogue& ops);

// Input: a layer, how tensor parallel ranks split it (model::TensorSplit), and a layout.
// Output: the layer of one rank: its attributes with the sizes that the rank has.
// Units: elements.
//
// Linear layers are split by columns and then by rows, so that a block needs one sum over the ranks a half; embeddings
// and the head by the vocabulary; attention by heads. Under sequence parallelism what lies between them (norms,
// dropout, sums) holds a part of the tokens: column layers gather these, row layers scatter the sum. Source:
// Megatron-LM core r0.12, core/tensor_parallel/layers.py, core/transformer/attention.py; Korthikanti et al., Reducing
// Activation Recomputation in Large Transformer Models (2022).

/// How a layer is split in this layout.
struct SplitWay {
  model::TensorSplit split = model::TensorSplit::whole;
  bool gathers = false;  ///< sequence parallel columns gather their tokens themselves, as Megatron's do
};

/// The attributes that the rank's layer has; nothing if it has all of the layer. Errors: invalid_argument, without a
/// place, naming what the ranks cannot share evenly.
[[nodiscard]] core::Result<std::optional<std::vector<model::Attribute>>> tensor_parallel_attributes(
    const model::ModelGraph& graph, const model::Layer& layer, const model::Layout& layout, const SplitWay& way);

/// Whether ranks can share the graph's layers at all: somebody has said how.
[[nodiscard]] inline bool says_split(const model::ModelGraph& graph, model::TensorSplit split) {
  const auto layers = graph.layers();
  return std::any_of(layers.begin(), layers.end(), [&](const model::Layer& layer) { return layer.split == split; });
}

/// Whether a table has so many words, as a head has outputs. Where these are no multiple of the ranks that share them,
/// both are padded, or the last rank has fewer (mcore-bridge 1.2, model/gpt_model.py; DTensor's chunks). Megatron-LM
/// pads further, to a multiple of 128 for each rank.
[[nodiscard]] inline bool has_words(const model::ModelGraph& graph, std::int64_t words) {
  const auto layers = graph.layers();
  return std::any_of(layers.begin(), layers.end(), [&](const model::Layer& layer) {
    return graph.op(layer) == "embedding" && graph.attributes(layer).integer("num_embeddings") == words;
  });
}

/// How many tensor parallel ranks share the weights of each expert (Megatron's expert_tensor_parallel_size); at least
/// 1, at most all.
[[nodiscard]] std::int64_t expert_tensor_ranks(const model::ModelGraph& graph, const model::Layout& layout);

/// The same of a job whose graph is still as it was read: in Megatron, another's config has whole experts
/// (adapt/trainer_models.hpp).
[[nodiscard]] inline std::int64_t expert_tensor_ranks(const model::TrainingJob& job) {
  return model::is_megatron_model(*job.graph, job) ? 1 : expert_tensor_ranks(*job.graph, job.layout);
}

/// A group of ranks that the job's steps make a communicator for, and how many of them each rank sends to by itself.
struct RankGroup {
  std::int64_t ranks = 1;
  std::int64_t peers = 0;
  std::int64_t apart = 1;  ///< how many ranks from one to the next: a node has 8 / apart of them
};
/// All of them. PyTorch makes one when a group is first used, also where two groups have the same ranks. The default
/// group is always used. Megatron has one for each dimension, its norm of gradients, what a model's ranks agree on, and
/// the counts of experts' tokens (Megatron-Core 0.12 to 0.17: core/parallel_state.py; core/optimizer/__init__.py:
/// grad_stats_parallel_group; core/transformer/moe/token_dispatcher.py: tp_ep_group). DeepSpeed copies the default
/// group (0.16, utils/groups.py: _clone_world_group). Others have one for each dimension of a mesh with several. The
/// ranks of a tensor parallel group follow each other, then those of context, data and pipeline (parallel_state.py,
/// `order`; torchtitan's parallel_dims.py).
[[nodiscard]] inline std::vector<RankGroup> communicators(const model::TrainingJob& job) {
  const model::Layout& of = job.layout;
  const model::Shardings kind = of.sharding.kind;
  const bool megatron = job.loop == model::Loop::megatron || kind == model::Shardings::distributed_optimizer;
  // The Trainer has no pipelines: one process lays the blocks on its GPUs (device_map).
  const std::int64_t stages = job.loop == model::Loop::hf_trainer ? 1 : of.pipeline_parallel;
  const std::int64_t model_ranks = core::bounded_product({of.tensor_parallel, stages});
  const std::int64_t sharing = sharing_ranks(of);
  const std::int64_t all = core::bounded_product({sharing, model_ranks});
  const std::int64_t of_stage = all / stages;
  std::vector<RankGroup> made;
  const auto add = [&made](const RankGroup& group) {
    if (group.ranks > 1) made.push_back(group);
  };
  const auto add_dimension = [&](const RankGroup& group) {
    if (megatron || group.ranks < all) add(group);
  };
  add({all, 0});
  if (kind >= model::Shardings::zero_1) add({all, 0});  // DeepSpeed's and Megatron's
  add_dimension({of.tensor_parallel, 0});
  add_dimension({sharing, 0, of.tensor_parallel});
  if (kind == model::Shardings::hsdp) {
    const std::int64_t shards = std::max<std::int64_t>(of.sharding.count, 1);
    add_dimension({shards, 0, of.tensor_parallel});
    add_dimension({sharing / shards, 0, core::bounded_product({of.tensor_parallel, shards})});
  }
  add({stages, std::min<std::int64_t>(stages - 1, 2), of_stage});
  add({of.context_parallel, std::min<std::int64_t>(of.context_parallel - 1, 2), of.tensor_parallel});
  if (megatron) add({model_ranks, 0, of.tensor_parallel > 1 ? 1 : of_stage});
  add({of.expert_parallel, of.expert_parallel - 1});
  if (megatron) add({of.expert_parallel, 0});
  if (of.expert_parallel > 1) add_dimension({expert_sharing_ranks(of, 1), 0, of.expert_parallel});
  return made;
}

}  // namespace gpumem::parallel
