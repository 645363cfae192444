// Input: tensors of images [N, C, h, w], [N, h, w, C] or tokens [N, T, C].
// Output: the steps between them that forward() takes and no summary shows: pixels to tokens and back, windows, heads,
// attention.
// Source: timm 1.0.9, timm.models.vision_transformer, timm.layers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "gpumem/connect/block_rules.hpp"

namespace gpumem::connect {

/// The parts of a container by name, as forward() calls them. A part that is not there hands its input through.
class Calls {
 public:
  Calls(Wiring& wiring, const Container& container) : wiring_(wiring), container_(container) {}

  Tensor operator()(std::string_view name, Tensor input) const {
    const auto part = wiring_.child(container_, name);
    return part ? wiring_.call(*part, input) : input;
  }
  [[nodiscard]] bool has(std::string_view name) const { return wiring_.child(container_, name).has_value(); }
  [[nodiscard]] bool has_any(std::span<const std::string_view> names) const {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return has(name); });
  }

 private:
  Wiring& wiring_;
  const Container& container_;
};

namespace tokens_detail {

using Sizes = std::vector<std::int64_t>;

inline std::int64_t fixed(const core::Shape& shape, std::size_t axis) {
  return axis < shape.rank() && shape[axis].kind == core::Dim::Kind::fixed ? shape[axis].size : 0;
}

inline Tensor permuted(Wiring& wiring, Tensor tensor, Sizes dims) {
  return wiring.operation("permute", {&tensor, 1}, {{"dims", std::move(dims)}});
}

inline Tensor reshaped(Wiring& wiring, Tensor tensor, Sizes shape) {
  return wiring.operation("reshape", {&tensor, 1}, {{"shape", std::move(shape)}});
}

/// [N, C, h, w] -> [N, h w, C]: flatten(2).transpose(1, 2).
inline Tensor tokens_of(Wiring& wiring, Tensor images) {
  if (wiring.failed() || wiring.shape(images).rank() != 4) return images;
  if (wiring.channels_last(images)) {
    return reshaped(wiring, images, {-1, fixed(wiring.shape(images), 3)});
  }
  const Tensor flat = wiring.operation("flatten", {&images, 1}, {{"start_dim", std::int64_t{2}}});
  return permuted(wiring, flat, {0, 2, 1});
}

inline Tensor channels_behind(Wiring& wiring, Tensor images) {
  const bool turn = !wiring.failed() && wiring.shape(images).rank() == 4 && !wiring.channels_last(images);
  return turn ? permuted(wiring, images, {0, 2, 3, 1}) : images;
}

inline Tensor channels_in_front(Wiring& wiring, Tensor images) {
  const bool turn = !wiring.failed() && wiring.shape(images).rank() == 4 && wiring.channels_last(images);
  return turn ? permuted(wiring, images, {0, 3, 1, 2}) : images;
}

/// [N, T, C] -> [N, C, h, w] where T = h w.
inline Tensor images_of(Wiring& wiring, Tensor tokens, std::int64_t height, std::int64_t width) {
  if (wiring.failed() || wiring.shape(tokens).rank() != 3) return tokens;
  const std::int64_t channels = fixed(wiring.shape(tokens), 2);
  return reshaped(wiring, permuted(wiring, tokens, {0, 2, 1}), {channels, height, width});
}

/// The side of a square of this many tokens; 0 if they make no square.
inline std::int64_t side_of(std::int64_t tokens) {
  const auto side =
      static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(std::max<std::int64_t>(tokens, 0)))));
  return side * side == tokens ? side : 0;
}

/// Elements [start, start + length) of the last axis: a part of a packed projection.
inline std::vector<Tensor> parts_of(Wiring& wiring, Tensor packed, std::int64_t count, std::size_t axis) {
  const std::int64_t width = fixed(wiring.shape(packed), axis) / count;
  const auto dim = static_cast<std::int64_t>(axis);
  const Tensor split =
      wiring.operation("split", {&packed, 1}, {{"sizes", Sizes(static_cast<std::size_t>(count), width)}, {"dim", dim}});
  std::vector<Tensor> parts;
  for (std::int64_t part = 0; part < count; ++part) {
    parts.push_back(wiring.operation("item", {&split, 1}, {{"dim", dim}, {"start", part * width}, {"length", width}}));
  }
  return parts;
}

/// [N, T, heads d] -> [N, heads, T, d].
inline Tensor heads_of(Wiring& wiring, Tensor tokens, std::int64_t heads) {
  const std::int64_t width = fixed(wiring.shape(tokens), 2);
  const Tensor parted =
      wiring.operation("unflatten", {&tokens, 1}, {{"dim", std::int64_t{2}}, {"sizes", Sizes{heads, width / heads}}});
  return permuted(wiring, parted, {0, 2, 1, 3});
}

/// [N, heads, T, d] -> [N, T, heads d].
inline Tensor merged(Wiring& wiring, Tensor heads) {
  const Tensor turned = permuted(wiring, heads, {0, 2, 1, 3});
  return wiring.operation("flatten", {&turned, 1}, {{"start_dim", std::int64_t{2}}, {"end_dim", std::int64_t{3}}});
}

/// scaled_dot_product_attention; `fused` false: written out, the scores are materialised.
inline Tensor attended(Wiring& wiring, std::span<const Tensor> qkv, bool fused) {
  std::vector<model::Attribute> attributes = {{"dropout_p", 0.0}};
  if (!fused) attributes.push_back({"backend", std::string("math")});
  return wiring.operation("scaled_dot_product_attention", qkv, std::move(attributes));
}

/// Parameters outside of the layers that no summary shows, which something is added to or concatenated with.
inline Tensor parameter(Wiring& wiring, Sizes shape) {
  return wiring.operation(model::kParameterOp, {}, {{"shape", std::move(shape)}});
}

/// One learned token in front of the others.
inline Tensor with_class_token(Wiring& wiring, Tensor tokens) {
  const std::int64_t width = fixed(wiring.shape(tokens), 2);
  const Tensor token = parameter(wiring, {1, 1, width});
  const std::vector<core::Dim> every = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const Tensor expanded = wiring.operation("expand", {&token, 1}, {{"shape", every}});
  return wiring.concatenate(std::array<Tensor, 2>{expanded, tokens});
}

inline Tensor with_positions(Wiring& wiring, Tensor tokens) {
  const core::Shape& shape = wiring.shape(tokens);
  const Tensor positions = parameter(wiring, {1, fixed(shape, 1), fixed(shape, 2)});
  return wiring.add(tokens, positions, false);
}

inline Tensor first_token(Wiring& wiring, Tensor tokens) {
  return wiring.operation("select", {&tokens, 1}, {{"dim", std::int64_t{1}}, {"index", std::int64_t{0}}});
}

inline Tensor mean_token(Wiring& wiring, Tensor tokens) {
  return wiring.operation("mean", {&tokens, 1}, {{"dim", std::int64_t{1}}});
}

/// [N, h, w, C] -> [N h/s w/s, s s, C].
inline Tensor windows_of(Wiring& wiring, Tensor images, std::int64_t side) {
  const core::Shape shape = wiring.shape(images);
  const std::int64_t rows = fixed(shape, 1) / side;
  const std::int64_t columns = fixed(shape, 2) / side;
  const std::int64_t width = fixed(shape, 3);
  Tensor parted = reshaped(wiring, images, {rows, side, columns, side, width});
  parted = permuted(wiring, parted, {0, 1, 3, 2, 4, 5});
  parted = wiring.operation("contiguous", {&parted, 1});
  parted = wiring.operation("flatten", {&parted, 1}, {{"start_dim", std::int64_t{0}}, {"end_dim", std::int64_t{2}}});
  return reshaped(wiring, parted, {side * side, width});
}

/// What windows_of() makes, back: [N h/s w/s, s s, C] -> [N, h, w, C].
inline Tensor unwindowed(Wiring& wiring, Tensor windows, std::int64_t height, std::int64_t width, std::int64_t side) {
  const std::int64_t channels = fixed(wiring.shape(windows), 2);
  Tensor parted = wiring.operation("unflatten", {&windows, 1},
                                   {{"dim", std::int64_t{0}}, {"sizes", Sizes{-1, height / side, width / side}}});
  parted = wiring.operation("unflatten", {&parted, 1}, {{"dim", std::int64_t{3}}, {"sizes", Sizes{side, side}}});
  parted = permuted(wiring, parted, {0, 1, 3, 2, 4, 5});
  return reshaped(wiring, parted, {height, width, channels});
}

}  // namespace tokens_detail

// Input: queries, keys and values as tokens [N, T, C].
// Output: the result of attention, [N, T, C]: split into heads, their norms, the fused kernel or written-out scores,
// heads merged. No summary prints the width of a head: it is the usual one of the class.

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

// Input: a block that is a sum of branches, as a module tree declares it.
// Output: the parts of each branch in the order of their calls: a norm before each mixer (attention, an MLP, a
// convolution), or after it if the block declares it there.

namespace branch_order_detail {

enum class Role : std::uint8_t { norm, mixer, tail };

inline bool begins_with_any(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return name.starts_with(beginning); });
}

inline Role role_of(std::string_view name) {
  if (name.ends_with("_post")) return Role::tail;
  if (begins_with_any(name, {"norm", "ln"})) return Role::norm;
  if (begins_with_any(name, {"ls", "layer_scale", "drop_path", "gamma", "res_scale"})) return Role::tail;
  return Role::mixer;
}

/// The block's parts: those that are called before any branch, and those of each branch.
struct Branches {
  std::vector<Part> first;
  std::vector<std::vector<Part>> branches;
  std::vector<Part> last;
};

/// Norms come before their mixers if the last of both is a mixer. A branch then begins at each norm, else at each
/// mixer.
inline Branches branches_of(const Wiring& wiring, const Container& block) {
  Role last = Role::mixer;
  for (const Part& part : block.parts) {
    const Role role = role_of(wiring.name(part));
    const bool again = wiring.name(part) == "norm3";  // after the last sum, where there is one
    if (role != Role::tail && !again) last = role;
  }
  const bool normed_first =
      last == Role::mixer && std::any_of(block.parts.begin(), block.parts.end(),
                                         [&](const Part& part) { return role_of(wiring.name(part)) == Role::norm; });
  const Role opener = normed_first ? Role::norm : Role::mixer;
  Branches result;
  for (const Part& part : block.parts) {
    const Role role = role_of(wiring.name(part));
    if (!normed_first && wiring.name(part) == "norm3") {
      result.last.push_back(part);
      continue;
    }
    if (role == opener) result.branches.emplace_back();
    (result.branches.empty() ? result.first : result.branches.back()).push_back(part);
  }
  return result;
}

}  // namespace branch_order_detail

}  // namespace gpumem::connect
