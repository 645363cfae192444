// Embeddings: torch.nn.functional.embedding (ids of any shape -> that shape + [embedding_dim]) and
// embedding_bag (a bag of ids a row -> [rows, embedding_dim]).
//
// What depends on the positions of tokens, not on their values: their positions (torch.arange), the tables of rotary
// embeddings and of distances, additive causal masks, pairs of segments, windows of tokens and the masks of these; and
// what distances choose of scores. Each reads only the number of tokens of a tensor [N, S, ...].
#pragma once

#include <algorithm>
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

inline constexpr std::array<std::string_view, 25> kTorch = {"Embedding",
                                                            "VisualEmbedding",
                                                            "OPTLearnedPositionalEmbedding",
                                                            "BartLearnedPositionalEmbedding",
                                                            "MBartLearnedPositionalEmbedding",
                                                            "BartScaledWordEmbedding",
                                                            "Ovis2VisualEmbeddingTable",
                                                            "MBartScaledWordEmbedding",
                                                            "GemmaTextScaledWordEmbedding",
                                                            "Gemma2TextScaledWordEmbedding",
                                                            "Gemma3TextScaledWordEmbedding",
                                                            "VaultGemmaTextScaledWordEmbedding",
                                                            "WhisperPositionalEmbedding",
                                                            "TimeSeriesSinusoidalPositionalEmbedding",
                                                            "MarianSinusoidalPositionalEmbedding",
                                                            "PegasusSinusoidalPositionalEmbedding",
                                                            "MiniCPM3ScaledWordEmbedding",
                                                            "M2M100ScaledWordEmbedding",
                                                            "PLBartLearnedPositionalEmbedding",
                                                            "PLBartScaledWordEmbedding",
                                                            "BlenderbotLearnedPositionalEmbedding",
                                                            "BlenderbotScaledWordEmbedding",
                                                            "BlenderbotSmallLearnedPositionalEmbedding",
                                                            "InformerSinusoidalPositionalEmbedding",
                                                            "AutoformerSinusoidalPositionalEmbedding"};
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

namespace positions_detail {

/// How many tokens the input has: its axis 1.
inline core::Result<core::Dim> tokens_of(const OpInput& input) {
  const core::Shape& shape = input.inputs[0];
  if (shape.rank() < 2 || shape[1].kind != core::Dim::Kind::fixed) {
    return core::Error{core::ErrorCode::missing_information,
                       "the model reads tokens: say how many a sample has, such as `seq_length=512`",
                       {}};
  }
  return shape[1];
}

/// [1, S]
inline core::Result<core::Shape> positions_shape(const OpInput& input) {
  const core::Result<core::Dim> tokens = tokens_of(input);
  if (!tokens) return tokens.error();
  const auto most = input.attributes.integer("most");
  if (most && tokens->size > *most) {
    return core::Error{core::ErrorCode::malformed_input,
                       "the model has " + std::to_string(*most) + " positions, and samples have " +
                           std::to_string(tokens->size) + " tokens",
                       {}};
  }
  core::Shape shape;
  shape.push_back(core::Dim::fixed(1));
  shape.push_back(*tokens);
  return shape;
}

/// [1, 1, S, width]: as heads are multiplied by them; or [N, 1, S, width], where samples have positions of their own
/// ("padded").
inline core::Result<core::Shape> table_shape(const OpInput& input) {
  const core::Result<core::Dim> tokens = tokens_of(input);
  if (!tokens) return tokens.error();
  const auto width = input.attributes.integer("width");
  if (!width) return missing("width");
  const core::Dim samples = input.attributes.flag("padded", false) ? input.inputs[0][0] : core::Dim::fixed(1);
  core::Shape shape;
  for (const core::Dim dim : {samples, core::Dim::fixed(1), *tokens, core::Dim::fixed(*width)}) {
    shape.push_back(dim);
  }
  return shape;
}

/// [1, 1, S, S], or [N, 1, S, S] where each sample has its own padding ("padded").
inline core::Result<core::Shape> mask_shape(const OpInput& input) {
  const core::Result<core::Dim> tokens = tokens_of(input);
  if (!tokens) return tokens.error();
  const core::Dim samples = input.attributes.flag("padded", false) ? input.inputs[0][0] : core::Dim::fixed(1);
  const core::Checked keys = core::Checked(tokens->size) + input.attributes.integer("more_keys").value_or(0);
  if (!keys.valid()) return unfit(input.inputs[0], "a number of keys that fits 64 bits");
  core::Shape shape;
  for (const core::Dim dim : {samples, core::Dim::fixed(1), *tokens, core::Dim::fixed(*keys.value())}) {
    shape.push_back(dim);
  }
  return shape;
}

/// [S, S]: how far each token is from each other.
inline core::Result<core::Shape> distances_shape(const OpInput& input) {
  const core::Result<core::Dim> tokens = tokens_of(input);
  if (!tokens) return tokens.error();
  core::Shape shape;
  shape.push_back(*tokens);
  shape.push_back(*tokens);
  return shape;
}

/// [2 S, N, width]: of each distance between two tokens, with a copy for each sample.
inline core::Result<core::Shape> distance_table_shape(const OpInput& input) {
  const core::Result<core::Dim> tokens = tokens_of(input);
  if (!tokens) return tokens.error();
  const auto width = input.attributes.integer("width");
  if (!width) return missing("width");
  const core::Checked distances = core::Checked(tokens->size) * 2;
  if (!distances.valid()) return core::Error{core::ErrorCode::overflow, "has too many tokens", {}};
  core::Shape shape;
  for (const core::Dim dim : {core::Dim::fixed(*distances.value()), input.inputs[0][0], core::Dim::fixed(*width)}) {
    shape.push_back(dim);
  }
  return shape;
}

/// [S, S, N, 2]: whether two tokens are of one segment, as one of two figures that is 1.
inline core::Result<core::Shape> segment_pairs_shape(const OpInput& input) {
  const core::Result<core::Dim> tokens = tokens_of(input);
  if (!tokens) return tokens.error();
  core::Shape shape;
  for (const core::Dim dim : {*tokens, *tokens, input.inputs[0][0], core::Dim::fixed(2)}) shape.push_back(dim);
  return shape;
}

/// [1, heads, S, S]: a bias of zeros.
inline core::Result<core::Shape> zeros_shape(const OpInput& input) {
  const core::Result<core::Dim> tokens = tokens_of(input);
  if (!tokens) return tokens.error();
  const auto heads = input.attributes.integer("heads");
  if (!heads) return missing("heads");
  core::Shape shape;
  for (const core::Dim dim : {core::Dim::fixed(1), core::Dim::fixed(*heads), *tokens, *tokens}) shape.push_back(dim);
  return shape;
}

inline core::Result<TensorId> record_positions(const OpCall& call, Tape& tape) {
  return tape.record({.output = call.size.as(core::DType::int64), .differentiable = false});
}

/// Made in float32 and cast to the type of the model's activations; or of the type "dtype" (masks of booleans).
inline core::Result<TensorId> record_table(const OpCall& call, Tape& tape) {
  const model::AttributeValue* named = call.attributes.find("dtype");
  const auto* name = named == nullptr ? nullptr : std::get_if<std::string>(named);
  const auto dtype = name == nullptr ? std::nullopt : core::dtype_from(*name);
  return tape.record(
      {.output = dtype ? call.size.as(*dtype) : call.size, .typed = dtype.has_value(), .differentiable = false});
}

/// [.., S, distances] and [S, S] -> [.., S, S]: of each row what is at each distance.
inline core::Result<core::Shape> gathered_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  if (input.inputs.size() != 2 || shape.rank() < 2 || input.inputs[1].rank() != 2) return unfit(shape, "two inputs");
  shape.set(shape.rank() - 1, input.inputs[1][1]);
  return shape;
}

/// aten::gather keeps its input and the indices, which are clamped first; gather_backward adds into zeros of the input.
inline core::Result<TensorId> record_gather(const OpCall& call, Tape& tape) {
  const TensorSize indices = tape.tensor(call.tensors[1]).size;
  return tape.record({.inputs = call.tensors,
                      .output = call.size,
                      .saved_inputs = 1,
                      .extras = {&indices, 1},
                      .extras_first = true,
                      .scratch = {&indices, 1},
                      .no_gradient = 2});
}

/// torch.nn.functional.one_hot of integers, cast to the type of the model's activations.
inline core::Result<TensorId> record_segment_pairs(const OpCall& call, Tape& tape) {
  const TensorSize chosen = call.size.as(core::DType::int64);
  return tape.record({.output = call.size, .scratch = {&chosen, 1}, .differentiable = false});
}

/// [.., S, 2 S] -> [.., S, S]: of each row the S distances that its token sees, one step further each row.
inline core::Result<core::Shape> shifted_shape(const OpInput& input) {
  core::Shape shape = input.inputs[0];
  const std::size_t last = shape.rank() - 1;
  const bool fits = shape.rank() >= 2 && shape[last].kind == core::Dim::Kind::fixed &&
                    shape[last - 1].kind == core::Dim::Kind::fixed && shape[last].size / 2 == shape[last - 1].size &&
                    shape[last].size % 2 == 0;
  if (!fits) return unfit(shape, "rows of twice as many columns as there are rows");
  shape.set(last, shape[last - 1]);
  return shape;
}

/// XLNet's rel_shift_bnij: the rows seen one step aside, views, and aten::index_select of the first S columns, which
/// keeps its indices. Backward adds into zeros of what it selected from, and copies these into zeros of the whole.
inline core::Result<TensorId> record_shifted(const OpCall& call, Tape& tape) {
  const auto tokens = static_cast<std::size_t>(call.output.rank() - 1);
  const TensorSize columns = {call.output[tokens].size, 0, core::DType::int64};
  const TensorSize whole = tape.tensor(call.tensors[0]).size;
  return tape.record({.inputs = call.tensors.first(1),
                      .output = call.size,
                      .extras = {&columns, 1},
                      .extras_first = true,
                      .backward_scratch = {&whole, 1}});
}

/// [N, S, width] -> [N, windows, size, width]: whole windows of tokens, what is left over cut off; one at least.
inline core::Result<core::Shape> windows_shape(const OpInput& input) {
  const core::Result<core::Dim> tokens = tokens_of(input);
  if (!tokens) return tokens.error();
  const auto size = input.attributes.integer("size");
  if (!size || *size < 1 || input.inputs[0].rank() != 3) return missing("size");
  core::Shape shape;
  const core::Dim windows = core::Dim::fixed(std::max<std::int64_t>(tokens->size / *size, 1));
  for (const core::Dim dim : {input.inputs[0][0], windows, core::Dim::fixed(*size), input.inputs[0][2]}) {
    shape.push_back(dim);
  }
  return shape;
}

inline core::Result<TensorId> record_windows(const OpCall& call, Tape& tape) {
  return tape.record(
      {.inputs = call.tensors.first(1), .output = call.size, .kind = Output::view, .gradient = Gradient::fresh});
}

/// [N, 1, S, windows]: which windows a token sees, of tokens [N, S, ..] and windows [N, windows, ..].
inline core::Result<core::Shape> window_mask_shape(const OpInput& input) {
  const core::Result<core::Dim> tokens = tokens_of(input);
  if (!tokens) return tokens.error();
  if (input.inputs.size() < 2 || input.inputs[1].rank() < 2) return unfit(input.inputs[0], "windows");
  core::Shape shape;
  for (const core::Dim dim : {input.inputs[0][0], core::Dim::fixed(1), *tokens, input.inputs[1][1]}) {
    shape.push_back(dim);
  }
  return shape;
}

/// Without gradients. With "heads" an indexer's scores of each head choose the windows: in float32, rectified, and
/// times the heads' weights. Source: transformers 5.x, models/deepseek_v4/modeling_deepseek_v4.py:
/// DeepseekV4IndexerScorer.
inline core::Result<TensorId> record_window_mask(const OpCall& call, Tape& tape) {
  const TensorSize scores = call.size.times(call.attributes.integer("heads").value_or(1)).as(core::DType::float32);
  const std::array<TensorSize, 3> scratch = {scores, scores, scores};
  return tape.record({.output = call.size.as(tape.tensor(call.tensors[0]).size.dtype),
                      .scratch = std::span(scratch).first(call.attributes.integer("heads") ? 3 : 0),
                      .differentiable = false});
}

}  // namespace positions_detail

inline constexpr std::array<Op, 11> kPositionsOps = {{
    {.traits = {.name = "positions", .family = OpFamily::other, .computes = false},
     .output_shape = positions_detail::positions_shape,
     .record = positions_detail::record_positions},
    {.traits = {.name = "rotary_table", .family = OpFamily::other, .computes = false},
     .output_shape = positions_detail::table_shape,
     .record = positions_detail::record_table},
    {.traits = {.name = "relative_positions", .family = OpFamily::other, .computes = false},
     .output_shape = positions_detail::distances_shape,
     .record = positions_detail::record_positions},
    {.traits = {.name = "relative_zeros", .family = OpFamily::other, .computes = false},
     .output_shape = positions_detail::zeros_shape,
     .record = positions_detail::record_table},
    {.traits = {.name = "gather_distances", .family = OpFamily::other, .computes = false},
     .output_shape = positions_detail::gathered_shape,
     .record = positions_detail::record_gather},
    {.traits = {.name = "distance_table", .family = OpFamily::other, .computes = false},
     .output_shape = positions_detail::distance_table_shape,
     .record = positions_detail::record_table},
    {.traits = {.name = "segment_pairs", .family = OpFamily::other, .computes = false},
     .output_shape = positions_detail::segment_pairs_shape,
     .record = positions_detail::record_segment_pairs},
    {.traits = {.name = "relative_shift", .family = OpFamily::other, .computes = false},
     .output_shape = positions_detail::shifted_shape,
     .record = positions_detail::record_shifted},
    {.traits = {.name = "causal_mask", .family = OpFamily::other, .computes = false},
     .output_shape = positions_detail::mask_shape,
     .record = positions_detail::record_table},
    {.traits = {.name = "token_windows", .family = OpFamily::view, .computes = false},
     .output_shape = positions_detail::windows_shape,
     .record = positions_detail::record_windows},
    {.traits = {.name = "window_mask", .family = OpFamily::other, .computes = false},
     .output_shape = positions_detail::window_mask_shape,
     .record = positions_detail::record_window_mask},
}};

}  // namespace gpumem::ops
