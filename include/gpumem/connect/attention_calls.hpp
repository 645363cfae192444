// Input: queries, keys and values as tokens [N, T, C].
// Output: the result of attention, [N, T, C]: split into heads, their norms, the fused kernel or written-out scores,
// heads merged. No summary prints the width of a head: it is the usual one of the class.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace attention_calls_detail {

using tokens_detail::Sizes;

/// How a class computes: whether its scores are materialised, how wide a head is.
struct Kind {
  bool fused = true;
  std::int64_t head_width = 64;
  bool talks = false;  ///< heads are mixed before and after the softmax
};

inline constexpr Kind kPlain = {};
inline constexpr Kind kNarrow = {.head_width = 32};
inline constexpr Kind kTalking = {.fused = false, .head_width = 48, .talks = true};

inline std::int64_t heads_in(std::int64_t width, std::int64_t head_width) {
  constexpr std::array<std::int64_t, 6> kWidths = {64, 80, 72, 48, 32, 16};
  if (width > 0 && width % head_width == 0) return width / head_width;
  for (const std::int64_t each : kWidths) {
    if (width > 0 && width % each == 0) return width / each;
  }
  return 1;
}

/// Queries and keys after their norms, which see heads ([N, heads, T, d]).
inline Tensor heads_normed(Wiring& wiring, const Calls& calls, std::string_view norm, Tensor tokens,
                           std::int64_t heads) {
  return calls(norm, tokens_detail::heads_of(wiring, tokens, heads));
}

/// The width of a head that a norm of queries prints; else by the class.
inline std::int64_t head_width(const Wiring& wiring, const Container& block, const Kind& kind) {
  const auto norm = wiring.child(block, "q_norm");
  const auto printed = norm && !norm->container ? wiring.printed_width(*norm) : std::nullopt;
  return printed.value_or(kind.head_width);
}

/// Scores [N, heads, T, T], mixed between heads by a linear layer before the softmax and by another after it (cait).
inline Tensor talking(Wiring& wiring, const Calls& calls, Tensor query, Tensor key, Tensor value) {
  const auto mixed = [&](std::string_view name, Tensor scores) {
    const Tensor turned = tokens_detail::permuted(wiring, scores, {0, 2, 3, 1});
    return tokens_detail::permuted(wiring, calls(name, turned), {0, 3, 1, 2});
  };
  const Tensor scaled = wiring.operation("mul", {&query, 1});
  const Tensor turned = tokens_detail::permuted(wiring, key, {0, 1, 3, 2});
  Tensor weights = mixed("proj_l", wiring.operation("matmul", std::array<Tensor, 2>{scaled, turned}));
  weights = wiring.operation("softmax", {&weights, 1}, {{"dim", std::int64_t{3}}});
  weights = calls("attn_drop", mixed("proj_w", weights));
  return wiring.operation("matmul", std::array<Tensor, 2>{weights, value});
}

inline Tensor attend(Wiring& wiring, const Container& block, const Kind& kind, Tensor query, Tensor key, Tensor value) {
  const Calls calls(wiring, block);
  const std::int64_t width = tokens_detail::fixed(wiring.shape(query), 2);
  const std::int64_t heads = heads_in(width, head_width(wiring, block, kind));
  query = heads_normed(wiring, calls, "q_norm", query, heads);
  key = heads_normed(wiring, calls, "k_norm", key, heads);
  const bool parts = tokens_detail::fixed(wiring.shape(value), 2) % heads == 0;
  value = tokens_detail::heads_of(wiring, value, parts ? heads : 1);
  const bool talks = kind.talks && calls.has("proj_l") && calls.has("proj_w");
  const Tensor output = talks ? talking(wiring, calls, query, key, value)
                              : tokens_detail::attended(wiring, std::array<Tensor, 3>{query, key, value}, kind.fused);
  return tokens_detail::merged(wiring, output);
}

inline Tensor projected(Wiring& wiring, const Container& block, Tensor output) {
  const Calls calls(wiring, block);
  return calls("proj_drop", calls("proj", calls.has("q_norm") || calls.has("sr") ? output : calls("norm", output)));
}

/// What keys and values are made of: the input, or a smaller image of it.
inline Tensor reduced(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (!calls.has("sr")) return input;
  const std::int64_t side = tokens_detail::side_of(tokens_detail::fixed(wiring.shape(input), 1));
  if (side == 0) return input;
  Tensor images = tokens_detail::images_of(wiring, input, side, side);
  images = calls("sr", calls("pool", images));
  return calls("act", calls("norm", tokens_detail::tokens_of(wiring, images)));
}

}  // namespace attention_calls_detail

}  // namespace gpumem::connect
