// Manifold-constrained hyper-connections: a block's residual is several streams [N, S, streams, width]. Weights that
// are computed of all streams mix them to what the block reads, and what it makes back into them; a matrix that a few
// rounds make doubly stochastic mixes the streams themselves, all in float32.
// Input: the streams. Output: the calls before and after a block.
// Source: transformers 5.x, models/deepseek_v4/modeling_deepseek_v4.py: DeepseekV4HyperConnection, DeepseekV4HyperHead;
// openPangu's own modeling_pangu_v2_moe.py: PanguV2MoEMHC, whose norm has a weight.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/config_fields.hpp"
#include "gpumem/architectures/forward.hpp"

namespace gpumem::architectures {

struct HyperConnections {
  std::int64_t width = 1;
  std::int64_t streams = 4;
  std::int64_t rounds = 20;  ///< that make the matrix doubly stochastic
  std::string class_name = {};
  std::string norm_class = {};   ///< of the norm without a weight; empty: it is no module, and has one
  std::string_view matrix = {};  ///< parameters: of the product, of the offsets and of the factors
  std::string_view offsets = {};
  std::string_view factors = {};
  bool as_linear = false;  ///< the product is a linear layer's, in the model's type
  bool in_float = false;   ///< what a block makes is spread in float32
};

/// What a block reads, and how its output goes back into the streams.
struct Mixed {
  Tensor input = 0;
  Tensor spread = 0;  ///< [N, S, streams]
  Tensor mixing = 0;  ///< [N, S, streams, streams]
};

/// Each round is some layers of the graph: more in all layers than any model has are a fault of this field.
inline void check_rounds(ConfigFields& config, const HyperConnections& hc, std::int64_t layers,
                         std::string_view field) {
  constexpr std::int64_t kMostInAll = 1 << 13;
  if (hc.rounds > kMostInAll / layers) config.fail("no model has this many rounds", field);
}

namespace hyper_connections_detail {

inline Tensor with_axis(Forward& f, Tensor tensor, std::int64_t dim) {
  return f.call("unsqueeze", {tensor}, {{"dim", dim}});
}

inline Tensor sum_of(Forward& f, Tensor tensor, std::int64_t dim, bool keeps) {
  return f.call("sum", {tensor}, {{"dim", dim}, {"keepdim", keeps}});
}

/// The scores [N, S, out] of the normed streams.
inline Tensor scores_of(Forward& f, const HyperConnections& hc, Tensor streams, std::int64_t out) {
  const std::int64_t all = hc.streams * hc.width;
  const Tensor wide = f.to(f.flatten(streams, 2, 3), "float32");
  Tensor normed = f.layer(hc.norm_class.empty() ? "norm" : "input_norm", hc.norm_class, "rms_norm", {wide},
                          {{"normalized_shape", all}, {"elementwise_affine", false}});
  if (hc.norm_class.empty()) normed = f.multiply(normed, f.parameter("norm_gamma", {all}));
  if (hc.as_linear) {
    return f.to(f.linear(hc.matrix, f.as_type_of(normed, streams), all, out, {.bias = false}), "float32");
  }
  return f.call("linear_function", {normed, f.to(f.parameter(hc.matrix, {out, all}), "float32")});
}

/// factor · score + offset.
inline Tensor scaled(Forward& f, Tensor scores, Tensor factor, Tensor offset) {
  return f.add(f.multiply(scores, factor), offset);
}

/// Streams summed with their weights, in their type.
inline Tensor collapsed(Forward& f, Tensor streams, Tensor weights) {
  const Tensor products = f.multiply(with_axis(f, weights, 3), streams);
  return f.as_type_of(sum_of(f, products, 2, false), streams);
}

/// Rows and columns divided by their sums, in turns.
inline Tensor doubly_stochastic(Forward& f, Tensor matrix, std::int64_t rounds) {
  const auto divided = [&](Tensor tensor, std::int64_t dim) {
    return f.call("div", {tensor, f.call("add", {sum_of(f, tensor, dim, true)})});
  };
  Tensor made = divided(f.call("add", {f.call("softmax", {matrix})}), 2);
  for (std::int64_t round = 1; round < rounds && !f.failed(); ++round) made = divided(divided(made, 3), 2);
  return made;
}

}  // namespace hyper_connections_detail

/// The token's streams in front of the first block: copies of its embedding.
inline Tensor first_streams(Forward& f, Tensor embedded, std::int64_t streams, bool copies) {
  const std::vector<core::Dim> all = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(streams),
                                      core::Dim::fixed(-1)};
  const Tensor spread = f.call("expand", {hyper_connections_detail::with_axis(f, embedded, 2)}, {{"shape", all}});
  return copies ? f.contiguous(spread) : spread;
}

inline Mixed enter_streams(Forward& f, const HyperConnections& hc, std::string_view name, Tensor streams) {
  namespace detail = hyper_connections_detail;
  const InModule inside(f, name, hc.class_name);
  const std::int64_t n = hc.streams;
  const std::vector<Tensor> scores = f.split(detail::scores_of(f, hc, streams, (2 + n) * n), 2, {n, n, n * n});
  const std::vector<Tensor> offsets = f.split(f.parameter(hc.offsets, {(2 + n) * n}), 0, {n, n, n * n});
  const std::vector<Tensor> factors = f.split(f.parameter(hc.factors, {3}), 0, {1, 1, 1});
  const Tensor gather = f.call("add", {f.call("sigmoid", {detail::scaled(f, scores[0], factors[0], offsets[0])})});
  Mixed mixed;
  mixed.spread = f.scale(f.call("sigmoid", {detail::scaled(f, scores[1], factors[1], offsets[1])}));
  const Tensor square = f.unflatten(scores[2], 2, {n, n});
  mixed.mixing = detail::doubly_stochastic(f, detail::scaled(f, square, factors[2], f.unflatten(offsets[2], 0, {n, n})),
                                           hc.rounds);
  mixed.input = detail::collapsed(f, streams, gather);
  return mixed;
}

/// What the block made of mixed.input, in each of the mixed streams.
inline Tensor leave_streams(Forward& f, const HyperConnections& hc, const Mixed& mixed, Tensor made, Tensor streams) {
  namespace detail = hyper_connections_detail;
  const auto typed = [&](Tensor weights) { return hc.in_float ? weights : f.as_type_of(weights, streams); };
  const Tensor spread = f.multiply(detail::with_axis(f, typed(mixed.spread), 3), detail::with_axis(f, made, 2));
  if (!hc.in_float) {
    const Tensor turned = f.permute(typed(mixed.mixing), {0, 1, 3, 2});
    return f.add(spread, f.call("matmul", {turned, streams}));
  }
  const Tensor products = f.multiply(detail::with_axis(f, mixed.mixing, 4), detail::with_axis(f, streams, 2));
  return f.as_type_of(f.add(spread, detail::sum_of(f, products, 3, false)), streams);
}

/// The streams behind the last block, as one.
inline Tensor last_stream(Forward& f, const HyperConnections& hc, std::string_view name, std::string_view class_name,
                          Tensor streams) {
  namespace detail = hyper_connections_detail;
  const InModule inside(f, name, class_name);
  const Tensor scores = detail::scores_of(f, hc, streams, hc.streams);
  const Tensor factor = f.to(f.parameter(hc.factors, {1}), "float32");
  const Tensor offset = f.to(f.parameter(hc.offsets, {hc.streams}), "float32");
  const Tensor weights = f.call("add", {f.call("sigmoid", {detail::scaled(f, scores, factor, offset)})});
  return detail::collapsed(f, streams, weights);
}

}  // namespace gpumem::architectures
