// Input: a layer, how tensor parallel ranks split it (model::TensorSplit), and a layout.
// Output: the layer of one rank: its attributes with the sizes that the rank has.
// Units: elements.
//
// Linear layers are split by columns and then by rows, so that a block needs one sum over the ranks a half; embeddings
// and the head by the vocabulary; attention by heads. Under sequence parallelism what lies between them (norms,
// dropout, sums) holds a part of the tokens: column layers gather these, row layers scatter the sum. Source:
// Megatron-LM core r0.12, core/tensor_parallel/layers.py, core/transformer/attention.py; Korthikanti et al., Reducing
// Activation Recomputation in Large Transformer Models (2022).
#pragma once

#include <optional>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/layout.hpp"
#include "gpumem/model/model_graph.hpp"

namespace gpumem::parallel {

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
[[nodiscard]] bool says_split(const model::ModelGraph& graph, model::TensorSplit split);

/// How many tensor parallel ranks share the weights of each expert (Megatron's expert_tensor_parallel_size); at least
/// 1, at most all.
[[nodiscard]] std::int64_t expert_tensor_ranks(const model::ModelGraph& graph, const model::Layout& layout);

}  // namespace gpumem::parallel
