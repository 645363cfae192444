// Embeddings: torch.nn.functional.embedding (ids of any shape -> that shape + [embedding_dim]) and
// embedding_bag (a bag of ids a row -> [rows, embedding_dim]).
#pragma once

#include <array>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace embedding_detail {

inline core::Result<core::Shape> output_shape(const OpInput& input) {
  const auto width = input.attributes.integer("embedding_dim");
  if (!width) return missing("embedding_dim");
  core::Shape shape = input.inputs[0];
  if (!shape.push_back(core::Dim::fixed(*width))) return unfit(shape, "fewer axes");
  return shape;
}

inline core::Result<core::Shape> bag_output_shape(const OpInput& input) {
  const auto width = input.attributes.integer("embedding_dim");
  if (!width) return missing("embedding_dim");
  if (input.inputs[0].rank() == 0) return unfit(input.inputs[0], "at least one axis");
  core::Shape shape;
  shape.push_back(input.inputs[0][0]);
  shape.push_back(core::Dim::fixed(*width));
  return shape;
}

inline std::optional<core::Checked> parameters(const model::Attributes& attributes) {
  const auto rows = attributes.integer("num_embeddings");
  const auto width = attributes.integer("embedding_dim");
  if (!rows || !width) return std::nullopt;
  return core::Checked(*rows) * core::Checked(*width);
}

/// aten::embedding keeps the ids. embedding_dense_backward makes the whole table's gradient; beyond 3,072 ids it
/// sorts them first (two copies of the ids and as much for the sort).
inline core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  constexpr std::int64_t kSortedIds = 4;
  const core::Checked sides = core::Checked(call.attributes.integer("num_embeddings").value_or(0)) +
                              core::Checked(call.attributes.integer("embedding_dim").value_or(0));
  add_parameters(call, tape, {{core::Checked(call.parameters), sides}});
  const TensorSize ids = tape.tensor(call.tensors[0]).size.as(core::DType::int64);
  const std::array<TensorSize, 1> sorted = {ids.times(kSortedIds)};
  // Rows of the table, in its type; of one that is held in another type than the precision's, in that one.
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size.as(call.weights.dtype.value_or(call.size.dtype)),
                      .saved_inputs = 1,
                      .backward_scratch = tape.own_scratch(sorted),
                      .parameters = tape.layer_parameters(),
                      .no_gradient = ~0U});
}

/// aten::_embedding_bag keeps, in addition to the ids, where each bag begins and how long it is, and the bag of each
/// id.
inline core::Result<TensorId> record_bag(const OpCall& call, Tape& tape) {
  add_parameters(call, tape, {core::Checked(call.parameters)});
  const TensorSize ids = tape.tensor(call.tensors[0]).size.as(core::DType::int64);
  const auto bags = rows_of(call.output);
  if (!bags) return unfit(call.output, "a known batch axis");
  const TensorSize a_bag = bags->as(core::DType::int64);
  const std::array<TensorSize, 3> extras = {a_bag, a_bag, ids};
  const std::array<TensorSize, 1> sorted = {ids.times(4)};
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size,
                      .saved_inputs = 1,
                      .extras = extras,
                      .backward_scratch = tape.own_scratch(sorted),
                      .parameters = tape.layer_parameters(),
                      .no_gradient = ~0U});
}

inline constexpr std::array<std::string_view, 9> kTorch = {"Embedding",
                                                           "OPTLearnedPositionalEmbedding",
                                                           "BartLearnedPositionalEmbedding",
                                                           "MBartLearnedPositionalEmbedding",
                                                           "BartScaledWordEmbedding",
                                                           "MBartScaledWordEmbedding",
                                                           "GemmaTextScaledWordEmbedding",
                                                           "Gemma3TextScaledWordEmbedding",
                                                           "WhisperPositionalEmbedding"};
inline constexpr std::array<std::string_view, 1> kKeras = {"Embedding"};
inline constexpr std::array<std::string_view, 1> kBag = {"EmbeddingBag"};
inline constexpr std::array<std::string_view, 2> kPositional = {"num_embeddings", "embedding_dim"};

}  // namespace embedding_detail

inline constexpr std::array<Op, 2> kEmbeddingOps = {{
    {.traits = {.name = "embedding",
                .family = OpFamily::embedding,
                .torch_classes = embedding_detail::kTorch,
                .keras_classes = embedding_detail::kKeras,
                .positional = embedding_detail::kPositional,
                .parameters = embedding_detail::parameters},
     .output_shape = embedding_detail::output_shape,
     .record = embedding_detail::record,
     .reads_token_ids = true},
    {.traits = {.name = "embedding_bag",
                .family = OpFamily::embedding,
                .torch_classes = embedding_detail::kBag,
                .positional = embedding_detail::kPositional,
                .parameters = embedding_detail::parameters},
     .output_shape = embedding_detail::bag_output_shape,
     .record = embedding_detail::record_bag,
     .reads_token_ids = true},
}};

}  // namespace gpumem::ops
