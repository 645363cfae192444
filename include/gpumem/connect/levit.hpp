// LeViT: linear layers whose batch norm sees every token as a sample, attention with a narrow query that may read every
// second pixel, and a mean of all tokens. Source: timm 1.0.9, timm.models.levit.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/attention_calls.hpp"
#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace levit_detail {

using tokens_detail::Sizes;

/// bn(linear(x).flatten(0, 1)).reshape_as(x)
inline Tensor wire_linear_norm(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("linear")) return wiring.chain(block.parts, input);
  const Tensor output = calls("linear", input);
  if (wiring.failed() || wiring.shape(output).rank() != 3) return calls("bn", output);
  const std::int64_t tokens = tokens_detail::fixed(wiring.shape(output), 1);
  const Tensor rows =
      wiring.operation("flatten", {&output, 1}, {{"start_dim", std::int64_t{0}}, {"end_dim", std::int64_t{1}}});
  const Tensor normal = calls("bn", rows);
  if (wiring.failed()) return input;
  return wiring.operation("unflatten", {&normal, 1}, {{"dim", std::int64_t{0}}, {"sizes", Sizes{-1, tokens}}});
}

/// Every second pixel of tokens that are a square.
inline Tensor thinned(Wiring& wiring, Tensor tokens) {
  const std::int64_t side = tokens_detail::side_of(tokens_detail::fixed(wiring.shape(tokens), 1));
  const std::int64_t half = (side + 1) / 2;
  if (half == 0) return tokens;
  return wiring.operation("slice", {&tokens, 1},
                          {{"dim", std::int64_t{1}}, {"start", std::int64_t{0}}, {"length", half * half}});
}

/// Queries of every second pixel, keys and values of all.
inline Tensor wire_downsample(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  const auto behind = wiring.child(block, "proj");
  const bool known = !wiring.called() && calls.has("kv") && calls.has("q") && behind;
  if (!known || wiring.shape(input).rank() != 3) return wiring.chain(block.parts, input);
  const Tensor packed = calls("kv", input);
  const Tensor query = calls("q", thinned(wiring, input));
  if (wiring.failed()) return input;
  const std::int64_t width = tokens_detail::fixed(wiring.shape(packed), 2);
  const std::int64_t keys = tokens_detail::fixed(wiring.shape(query), 2);
  const auto part = [&](std::int64_t start, std::int64_t length) {
    return wiring.operation("slice", {&packed, 1}, {{"dim", std::int64_t{2}}, {"start", start}, {"length", length}});
  };
  constexpr attention_calls_detail::Kind kSmall = {.fused = false, .head_width = 16};
  if (keys >= width) return wiring.chain(block.parts, input);
  const Tensor key = part(0, keys);
  const Tensor output = attention_calls_detail::attend(wiring, block, kSmall, query, key, part(keys, width - keys));
  return calls("proj", output);
}

/// The attention that makes the image smaller, and a sum with what the MLP makes of it.
inline Tensor wire_downsample_block(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("attn_downsample")) return wiring.chain(block.parts, input);
  const Tensor small = calls("attn_downsample", input);
  const Tensor output = calls("drop_path", calls("mlp", small));
  const bool same = !wiring.failed() && wiring.shape(output) == wiring.shape(small);
  return same ? wiring.add(small, output, false) : output;
}

inline Tensor wire_model(Wiring& wiring, const Container& model, Tensor input) {
  const Calls calls(wiring, model);
  const auto stages = wiring.child(model, "stages");
  if (wiring.called() || !stages) return wiring.chain(model.parts, input);
  Tensor output = calls("stem", input);
  const bool tokens = wiring.first_op(*stages) == "linear";
  if (tokens) output = tokens_detail::tokens_of(wiring, output);
  output = calls("stages", output);
  if (wiring.failed()) return input;
  const Sizes axes = tokens ? Sizes{1} : Sizes{2, 3};
  output = wiring.operation("mean", {&output, 1}, {{"dim", axes}});
  return calls("head", output);
}

inline constexpr std::array<std::string_view, 2> kLinearNorm = {"LinearNorm", "LinearBN"};
inline constexpr std::array<std::string_view, 1> kDownsample = {"AttentionDownsample"};
inline constexpr std::array<std::string_view, 1> kDownsampleBlock = {"LevitDownsample"};
inline constexpr std::array<std::string_view, 2> kModels = {"Levit", "LevitDistilled"};

}  // namespace levit_detail

inline constexpr std::array<BlockRule, 4> kLevitBlocks = {
    {{levit_detail::kLinearNorm, levit_detail::wire_linear_norm, nullptr},
     {levit_detail::kDownsample, levit_detail::wire_downsample, nullptr},
     {levit_detail::kDownsampleBlock, levit_detail::wire_downsample_block, nullptr},
     {levit_detail::kModels, levit_detail::wire_model, nullptr}}};

}  // namespace gpumem::connect
