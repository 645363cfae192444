// Hiera: tokens in mask units of 8 x 8, within which the first two stages attend; each stage but the first begins by
// taking the largest of every four tokens, of queries and of the shortcut. Attention has five axes, which no fused
// kernel takes, so that its scores are materialised. Heads are not printed: their width follows from the first block's.
// Source: timm 1.0.9, timm.models.hiera.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace hiera_detail {

using tokens_detail::fixed;
using tokens_detail::Sizes;

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

/// The largest of every four tokens on an axis.
inline Tensor pooled(Wiring& wiring, Tensor tokens, std::int64_t axis, std::string_view op = "amax") {
  const std::int64_t count = fixed(wiring.shape(tokens), static_cast<std::size_t>(axis)) / kPooled;
  const Tensor parted = wiring.operation("unflatten", {&tokens, 1}, {{"dim", axis}, {"sizes", Sizes{kPooled, count}}});
  return wiring.operation(op, {&parted, 1}, {{"dim", axis}});
}

/// [N, T, C] -> [N W, T / W, C]: a view.
inline Tensor windows_of(Wiring& wiring, Tensor tokens, std::int64_t windows) {
  if (windows == 1) return tokens;
  const std::int64_t each = fixed(wiring.shape(tokens), 1) / windows;
  const Tensor parted =
      wiring.operation("unflatten", {&tokens, 1}, {{"dim", std::int64_t{1}}, {"sizes", Sizes{windows, each}}});
  return wiring.operation("flatten", {&parted, 1}, {{"start_dim", std::int64_t{0}}, {"end_dim", std::int64_t{1}}});
}

/// Back again.
inline Tensor tokens_of_windows(Wiring& wiring, Tensor tokens, std::int64_t windows) {
  if (windows == 1) return tokens;
  const Tensor parted =
      wiring.operation("unflatten", {&tokens, 1}, {{"dim", std::int64_t{0}}, {"sizes", Sizes{-1, windows}}});
  return wiring.operation("flatten", {&parted, 1}, {{"start_dim", std::int64_t{1}}, {"end_dim", std::int64_t{2}}});
}

inline Tensor attend(Wiring& wiring, const Container& block, const Attending& how, Tensor input) {
  const Calls calls(wiring, block);
  const Tensor packed = windows_of(wiring, calls("qkv", input), how.windows);
  if (wiring.failed()) return input;
  const std::vector<Tensor> parts = tokens_detail::parts_of(wiring, packed, 3, 2);
  const std::int64_t width = fixed(wiring.shape(parts[0]), 2);
  const std::int64_t heads = width % how.head_width == 0 ? width / how.head_width : 1;
  std::vector<Tensor> qkv;
  qkv.reserve(parts.size());
  for (const Tensor part : parts) qkv.push_back(tokens_detail::heads_of(wiring, part, heads));
  if (how.pools) qkv[0] = pooled(wiring, qkv[0], 2);
  const Tensor output = tokens_detail::merged(wiring, tokens_detail::attended(wiring, qkv, false));
  return calls("proj", tokens_of_windows(wiring, output, how.windows));
}

/// What the attention is added to: the input, or every fourth token of it, projected.
inline Tensor shortcut_of(Wiring& wiring, const Container& block, Tensor input, Tensor normed, bool pools) {
  const Calls calls(wiring, block);
  if (!pools) return input;
  if (calls.has("proj")) return pooled(wiring, calls("proj", normed), 1);
  const std::array<Tensor, 2> both = {pooled(wiring, input, 1), pooled(wiring, input, 1, "mean")};
  return wiring.operation("concat", both, {{"dim", std::int64_t{2}}});
}

inline Tensor wire_block(Wiring& wiring, const Container& block, const Attending& how, Tensor input) {
  const Calls calls(wiring, block);
  const auto attention = wiring.child(block, "attn");
  const Tensor normed = calls("norm1", input);
  const Tensor shortcut = shortcut_of(wiring, block, input, normed, how.pools);
  if (wiring.failed() || !attention || !attention->container) return input;
  Tensor output = attend(wiring, wiring.container(*attention), how, normed);
  output = wiring.add(shortcut, calls("drop_path1", calls("ls1", output)), false);
  const Tensor hidden = calls("mlp", calls("norm2", output));
  return wiring.add(output, calls("drop_path2", calls("ls2", hidden)), false);
}

/// Whether the block begins a stage: its projection is wider than three times what it reads.
inline bool begins_stage(const Wiring& wiring, const Container& block) {
  const auto attention = wiring.child(block, "attn");
  if (!attention) return false;
  const auto in = wiring.first_width(*attention, "in_features");
  const auto out = wiring.first_width(*attention, "out_features");
  return in && out && *out > 3 * *in;
}

inline Tensor wire_model(Wiring& wiring, const Container& model, Tensor input) {
  const Calls calls(wiring, model);
  const auto blocks = wiring.child(model, "blocks");
  if (wiring.called() || !blocks || !blocks->container) return wiring.chain(model.parts, input);
  Tensor output = tokens_detail::tokens_of(wiring, calls("patch_embed", input));
  const core::Shape tokens = wiring.shape(output);
  if (wiring.failed() || tokens.rank() != 3) return wiring.chain(model.parts, input);
  output = tokens_detail::with_positions(wiring, output);
  output = wiring.operation("clone", {&output, 1});  // unroll(): the tokens of a unit side by side
  Attending how;
  how.head_width = head_width_of(fixed(tokens, 2));
  const std::int64_t units = fixed(tokens, 1) / kUnit;
  std::int64_t stage = 0;
  for (const Part& part : wiring.container(*blocks).parts) {
    if (wiring.failed() || !part.container) return output;
    const Container& block = wiring.container(part);
    how.pools = begins_stage(wiring, block);
    how.windows = stage < kStagesOfUnits && units > 1 && fixed(tokens, 1) % kUnit == 0 ? units : 1;
    output = wire_block(wiring, block, how, output);
    if (how.pools) ++stage;
  }
  output = calls("norm", output);
  return wiring.failed() ? output : calls("head", tokens_detail::mean_token(wiring, output));
}

inline constexpr std::array<std::string_view, 1> kModels = {"Hiera"};

}  // namespace hiera_detail

inline constexpr std::array<BlockRule, 1> kHieraBlocks = {{{hiera_detail::kModels, hiera_detail::wire_model, nullptr}}};

}  // namespace gpumem::connect
