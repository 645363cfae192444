// timm's image transformers in stages of fewer and wider tokens: Hiera.
// Source: timm 1.0.9, timm.models.hiera.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "gpumem/architectures/image_tokens.hpp"

namespace gpumem::architectures {

// Hiera: tokens in mask units of 8 x 8, within which the first two stages attend; each stage but the first begins by
// taking the largest of every four tokens, of queries and of the shortcut. Attention has five axes, which no fused
// kernel takes, so that its scores are materialised. Heads are not printed: their width follows from the first block's.

namespace timm_hiera_detail {

inline constexpr std::int64_t kUnit = 64;          ///< tokens of a mask unit
inline constexpr std::int64_t kPooled = 4;         ///< tokens of which the largest is taken
inline constexpr std::int64_t kStagesOfUnits = 2;  ///< whose blocks attend within units

/// How a block attends.
struct Attending {
  std::int64_t head_width = 96;
  std::int64_t windows = 1;
  bool pools = false;
};

inline std::int64_t head_width_of(std::int64_t width) {
  switch (width) {
    case 112: return 56;
    case 144: return 72;
    case 256: return 64;
    default: return 96;
  }
}

/// One of every four tokens on an axis: the largest, or their mean.
inline Tensor pooled(Forward& f, Tensor tokens, std::int64_t axis, std::string_view op = "amax") {
  const std::int64_t count = f.size(tokens, static_cast<std::size_t>(axis)) / kPooled;
  return f.call(op, {f.unflatten(tokens, axis, {kPooled, count})}, {{"dim", axis}});
}

inline Tensor attend(Forward& f, const Module& attention, const Attending& how, Tensor input) {
  const bool cuts = how.windows > 1;
  Tensor packed = attention("qkv", input);
  if (cuts) packed = f.flatten(f.unflatten(packed, 1, {how.windows, f.size(packed, 1) / how.windows}), 0, 1);
  const std::vector<Tensor> parts = parts_of(f, packed, 3, 2);
  const std::int64_t width = f.size(parts[0], 2);
  const std::int64_t heads = width % how.head_width == 0 ? std::max<std::int64_t>(width / how.head_width, 1) : 1;
  const Tensor query = heads_of(f, parts[0], heads);
  const Tensor key = heads_of(f, parts[1], heads);
  const Tensor value = heads_of(f, parts[2], heads);
  Tensor output = merged(f, attended(f, {how.pools ? pooled(f, query, 2) : query, key, value}, false));
  if (cuts) output = f.flatten(f.unflatten(output, 0, {-1, how.windows}), 1, 2);
  return attention("proj", output);
}

/// What the attention is added to: the input, or every fourth token of it, projected.
inline Tensor shortcut_of(Forward& f, const Module& block, Tensor input, Tensor normed, bool pools) {
  if (!pools) return input;
  if (block.has("proj")) return pooled(f, block("proj", normed), 1);
  const Tensor largest = pooled(f, input, 1);
  return f.concatenate({largest, pooled(f, input, 1, "mean")}, 2);
}

inline Tensor call_block(Forward& f, const Module& block, const Attending& how, Tensor input) {
  const auto attention = block.find("attn");
  const Tensor normed = block("norm1", input);
  const Tensor shortcut = shortcut_of(f, block, input, normed, how.pools);
  if (!attention || !attention->is_container()) return input;
  const Tensor output = f.add(shortcut, block({"ls1", "drop_path1"}, attend(f, *attention, how, normed)));
  return f.add(output, block({"norm2", "mlp", "ls2", "drop_path2"}, output));
}

/// Whether the block begins a stage: its projection is wider than three times what it reads.
inline bool begins_stage(const Module& block) {
  const auto attention = block.find("attn");
  const auto in = attention ? attention->width("in_features") : std::nullopt;
  const auto out = attention ? attention->width("out_features") : std::nullopt;
  return in && out && *out / 3 > *in;
}

inline Tensor call_model(Forward& f, const Module& model, Tensor input) {
  Tensor output = tokens_of(f, model("patch_embed", input));
  if (f.rank(output) != 3 || !model.has("blocks")) return model.in_order(input);
  const std::int64_t tokens = f.size(output, 1);
  Attending how = {.head_width = head_width_of(f.size(output, 2))};
  output = f.call("clone", {with_positions(f, output)});  // unroll(): the tokens of a unit side by side
  std::int64_t stage = 0;
  for (const Module& block : model.parts("blocks")) {
    if (f.failed() || !block.is_container()) return output;
    how.pools = begins_stage(block);
    how.windows = stage < kStagesOfUnits && tokens % kUnit == 0 ? std::max<std::int64_t>(tokens / kUnit, 1) : 1;
    output = call_block(f, block, how, output);
    if (how.pools) ++stage;
  }
  return model("head", mean_token(f, model("norm", output)));
}

inline constexpr std::array<std::string_view, 1> kModels = {"Hiera"};

}  // namespace timm_hiera_detail

inline constexpr std::array<ModuleForward, 1> kTimmHiera = {
    {{timm_hiera_detail::kModels, timm_hiera_detail::call_model}}};

}  // namespace gpumem::architectures
