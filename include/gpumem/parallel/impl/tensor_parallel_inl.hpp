#pragma once

#include "gpumem/parallel/tensor_parallel.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace gpumem::parallel {

namespace tensor_parallel_detail {

using model::TensorSplit;

/// All tensor parallel ranks, or as many as the layer says.
GPUMEM_INLINE std::int64_t ranks_of(const model::Attributes& attributes, const model::Layout& layout) {
  const std::int64_t all = layout.tensor_parallel;
  return std::clamp<std::int64_t>(attributes.integer("tensor_ranks").value_or(all), 1, all);
}

GPUMEM_INLINE core::Error uneven(std::string_view what, std::int64_t size, std::int64_t ranks) {
  return {core::ErrorCode::invalid_argument,
          "has " + std::to_string(size) + " " + std::string(what) + ", which " + std::to_string(ranks) +
              " tensor parallel ranks cannot share evenly; choose a `tensor_parallel` that divides them",
          {}};
}

/// One size among the attributes.
struct SplitSize {
  std::string_view attribute;
  std::string_view what;    ///< for messages
  std::size_t element = 0;  ///< of a list
};

GPUMEM_INLINE SplitSize split_size(TensorSplit split, const model::Attributes& attributes) {
  switch (split) {
    case TensorSplit::columns: return {"out_features", "output features"};
    case TensorSplit::rows: return {"in_features", "input features"};
    case TensorSplit::vocabulary: return {"num_embeddings", "words in its vocabulary"};
    case TensorSplit::heads:
      if (attributes.find("shape") != nullptr) return {"shape", "heads", 1};
      return {"sizes", "heads of keys and values"};
    case TensorSplit::whole:
    case TensorSplit::sequence: break;
  }
  return {};
}

/// The size becomes the rank's part of it. Errors: it cannot be shared.
GPUMEM_INLINE core::Status divide(std::vector<model::Attribute>& attributes, const SplitSize& size,
                                  std::int64_t ranks) {
  for (model::Attribute& attribute : attributes) {
    if (attribute.name != size.attribute) continue;
    std::int64_t* value = std::get_if<std::int64_t>(&attribute.value);
    if (auto* list = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
      if (size.element < list->size()) value = &(*list)[size.element];
    }
    if (value == nullptr || *value % ranks != 0) return uneven(size.what, value == nullptr ? 0 : *value, ranks);
    *value /= ranks;
  }
  return core::Done{};
}

}  // namespace tensor_parallel_detail

GPUMEM_INLINE bool says_split(const model::ModelGraph& graph, model::TensorSplit split) {
  const auto layers = graph.layers();
  return std::any_of(layers.begin(), layers.end(), [&](const model::Layer& layer) { return layer.split == split; });
}

GPUMEM_INLINE std::int64_t expert_tensor_ranks(const model::ModelGraph& graph, const model::Layout& layout) {
  for (const model::Layer& layer : graph.layers()) {
    if (layer.expert == 0 || layer.split != model::TensorSplit::columns) continue;
    return tensor_parallel_detail::ranks_of(graph.attributes(layer), layout);
  }
  return 1;
}

GPUMEM_INLINE core::Result<std::optional<std::vector<model::Attribute>>> tensor_parallel_attributes(
    const model::ModelGraph& graph, const model::Layer& layer, const model::Layout& layout, const SplitWay& way) {
  using model::TensorSplit;
  const std::int64_t ranks = tensor_parallel_detail::ranks_of(graph.attributes(layer), layout);
  std::optional<std::vector<model::Attribute>> changed;
  if (layout.tensor_parallel % ranks != 0) {
    return tensor_parallel_detail::uneven("ranks that share its weights", ranks, layout.tensor_parallel);
  }
  if (ranks == 1 || way.split == TensorSplit::whole || way.split == TensorSplit::sequence) return changed;
  const auto all = graph.attributes(layer).all();
  changed.emplace(all.begin(), all.end());
  const auto size = tensor_parallel_detail::split_size(way.split, graph.attributes(layer));
  if (const core::Status shared = tensor_parallel_detail::divide(*changed, size, ranks); !shared) {
    return shared.error();
  }
  const bool tokens = layout.sequence_parallel && layer.expert == 0;  // experts are sent their tokens
  if (tokens && way.gathers && way.split == TensorSplit::columns) changed->push_back({"gathered", ranks});
  if (tokens && way.split == TensorSplit::rows) changed->push_back({"scattered", ranks});
  return changed;
}

}  // namespace gpumem::parallel
