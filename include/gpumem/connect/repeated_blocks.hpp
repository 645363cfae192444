// Input: a graph.
// Output: its repeated blocks as runs of layers: what activation checkpointing wraps, and what pipeline stages are made
// of.
// Units: indices.
//
// The architecture that wrote the graph may say which classes are blocks (architectures/architecture.hpp). Else a block
// is a container that has siblings of its own class (GPT2Block, Bottleneck) and holds at least two layers with weights.
// Of several such classes it is the one with the most siblings under one parent, wherever that class occurs. In a graph
// without containers, dotted names tell: "layer1.0.conv1" is in "layer1.0", and names that differ only in digits are of
// one class.
#pragma once

#include <cstdint>
#include <vector>

#include "gpumem/model/model_graph.hpp"

namespace gpumem::connect {

/// Layers or functions from `first` to before `end`.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t end = 0;

  friend bool operator==(const Range&, const Range&) = default;
};

/// The layers of each repeated block, in order and apart from each other; none if nothing repeats. No part of a
/// mixture's expert is a block: of some mixtures a layer has more experts than the model has layers.
[[nodiscard]] std::vector<Range> repeated_blocks(const model::ModelGraph& graph);

/// The same, and the blocks of every other class whose siblings in a list hold attention: of an image tower or an
/// encoder beside the decoder. What transformers checkpoints (modeling_layers.py, GradientCheckpointingLayer) and FSDP
/// wraps (`_no_split_modules`).
[[nodiscard]] std::vector<Range> blocks_of_all_stacks(const model::ModelGraph& graph);

}  // namespace gpumem::connect
