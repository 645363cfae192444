// Input: tensors of images [N, C, h, w], [N, h, w, C] or tokens [N, T, C], as the forward() of an image model has them.
// Output: the steps that these models share and no tree shows: pixels to tokens and back, windows, attention, the order
// of a block's branches.
// Source: timm 1.0.9, timm.models.vision_transformer, timm.layers.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_rules.hpp"
#include "gpumem/architectures/printed_module.hpp"

namespace gpumem::architectures {

/// Of a model that sees images alone: with a classifier of an image, or without a head. Any other head is a fault.
inline void check_classifies(ConfigFields& config, Head head) {
  if (head == Head::none || head == Head::sequence_classification) return;
  config.fail("only the model that classifies, and that without a head, are known");
}

/// What a model of images of any size reads: squares of the config's image_size.
inline PictureSize picture_read(ConfigFields& config, std::int64_t usual) {
  const std::int64_t side = config.size_or({"image_size"}, usual);
  if (side > model::Images::kLargestSide) config.fail("is more than gpumem takes", "image_size");
  return {side, side};
}

/// The side that a convolution or a pooling leaves of this one.
inline std::int64_t convolved_side(std::int64_t side, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return std::max<std::int64_t>((side + 2 * padding - kernel) / stride + 1, 1);
}

/// A convolution of square windows.
struct Convolution {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;
  bool bias = true;
};
inline Tensor convolution(Forward& f, std::string_view name, Tensor image, const Convolution& of) {
  return f.layer(name, "Conv2d", "conv2d", {image},
                 {{"in_channels", of.in},
                  {"out_channels", of.out},
                  {"kernel_size", Sizes(2, of.kernel)},
                  {"stride", Sizes(2, of.stride)},
                  {"padding", Sizes(2, of.padding)},
                  {"groups", of.groups},
                  {"bias", of.bias}});
}

inline Tensor reshaped(Forward& f, Tensor tensor, const Sizes& shape) {
  return f.call("reshape", {tensor}, {{"shape", shape}});
}

/// How a convolution cuts images into patches.
struct PatchCut {
  std::int64_t channels = 3;
  std::int64_t width = 1;  ///< of a token
  std::int64_t patch = 16;
  Sizes step = {};  ///< empty: patches lie side by side
  bool bias = true;
};
/// [N, C, h, w] -> [N, patches, width], a view of what the convolution leaves.
inline Tensor cut_patches(Forward& f, std::string_view name, Tensor image, const PatchCut& cut) {
  std::vector<model::Attribute> attributes = {{"in_channels", cut.channels},
                                              {"out_channels", cut.width},
                                              {"kernel_size", Sizes(2, cut.patch)},
                                              {"stride", cut.step.empty() ? Sizes(2, cut.patch) : cut.step}};
  if (!cut.bias) attributes.push_back({"bias", false});
  const Tensor made = f.layer(name, "Conv2d", "conv2d", {image}, std::move(attributes));
  return f.permute(f.flatten(made, 2, 3), {0, 2, 1});
}
/// A learned token of this name for each sample, `count` of them.
inline Tensor learned_tokens(Forward& f, std::string_view name, std::int64_t width, std::int64_t count = 1) {
  const std::vector<core::Dim> each = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  return f.call("expand", {f.parameter(name, {1, count, width})}, {{"shape", each}});
}

/// [N, C, h, w] -> [N, h w, C]: flatten(2).transpose(1, 2).
inline Tensor tokens_of(Forward& f, Tensor images) {
  if (f.rank(images) != 4) return images;
  if (f.channels_last(images)) return reshaped(f, images, {-1, f.size(images, 3)});
  return f.permute(f.flatten(images, 2, 3), {0, 2, 1});
}

/// [N, T, C] -> [N, C, h, w] where T = h w.
inline Tensor images_of(Forward& f, Tensor tokens, std::int64_t height, std::int64_t width) {
  if (f.rank(tokens) != 3) return tokens;
  const std::int64_t channels = f.size(tokens, 2);
  return reshaped(f, f.permute(tokens, {0, 2, 1}), {channels, height, width});
}

inline Tensor channels_behind(Forward& f, Tensor images) {
  return f.rank(images) == 4 && !f.channels_last(images) ? f.permute(images, {0, 2, 3, 1}) : images;
}

inline Tensor channels_in_front(Forward& f, Tensor images) {
  return f.rank(images) == 4 && f.channels_last(images) ? f.permute(images, {0, 3, 1, 2}) : images;
}

/// The side of a square of this many tokens; 0 if they make no square.
inline std::int64_t side_of(std::int64_t tokens) {
  const auto side =
      static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(std::max<std::int64_t>(tokens, 0)))));
  return side * side == tokens ? side : 0;
}

/// Parts of one size, of the last axis or another one.
inline std::vector<Tensor> parts_of(Forward& f, Tensor packed, std::int64_t count, std::size_t axis) {
  return f.split(packed, static_cast<std::int64_t>(axis),
                 Sizes(static_cast<std::size_t>(count), f.size(packed, axis) / count));
}

/// x + y where both have one shape; else y.
inline Tensor added(Forward& f, Tensor input, Tensor output) {
  return f.shape(input) == f.shape(output) ? f.add(input, output) : output;
}

/// x += y.
inline Tensor add_into(Forward& f, Tensor left, Tensor right) {
  return f.call("add", {left, right}, {{"inplace", true}});
}

/// x + shortcut where both have one shape; else x.
inline Tensor with_shortcut(Forward& f, Tensor output, Tensor shortcut) {
  return f.shape(output) == f.shape(shortcut) ? f.add(output, shortcut) : output;
}

/// One learned token in front of the others.
inline Tensor with_class_token(Forward& f, Tensor tokens) {
  const std::vector<core::Dim> every = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const Tensor token = f.parameter("cls_token", {1, 1, f.size(tokens, 2)});
  return f.concatenate({f.call("expand", {token}, {{"shape", every}}), tokens}, 1);
}

inline Tensor with_positions(Forward& f, Tensor tokens) {
  return f.add(tokens, f.parameter("pos_embed", {1, f.size(tokens, 1), f.size(tokens, 2)}));
}

inline Tensor mean_token(Forward& f, Tensor tokens) { return f.call("mean", {tokens}, {{"dim", std::int64_t{1}}}); }

/// [N, h, w, C] -> [N h/s w/s, s s, C], copied.
inline Tensor cut_windows(Forward& f, Tensor images, std::int64_t side) {
  const std::int64_t width = f.size(images, 3);
  const Tensor parted = reshaped(f, images, {f.size(images, 1) / side, side, f.size(images, 2) / side, side, width});
  const Tensor turned = f.contiguous(f.permute(parted, {0, 1, 3, 2, 4, 5}));
  return reshaped(f, f.flatten(turned, 0, 2), {side * side, width});
}

/// The learned bias of attention within windows of `side` pixels, a row of a table for each distance: [1, H, s s, s s].
inline Tensor window_bias(Forward& f, Tensor table, std::int64_t side) {
  const std::int64_t area = side * side;
  const Tensor index = f.constant("relative_position_index", {area * area}, "int64");
  const Tensor chosen = f.unflatten(f.call("index", {table, index}, {{"dim", std::int64_t{0}}}), 0, {area, area});
  const Tensor bias = f.contiguous(f.permute(chosen, {2, 0, 1}));
  return f.call("unsqueeze", {bias}, {{"dim", std::int64_t{0}}});
}

/// And back: [N h/s w/s, s s, C] -> [N, h, w, C].
inline Tensor join_windows(Forward& f, Tensor windows, std::int64_t height, std::int64_t width, std::int64_t side) {
  const std::int64_t channels = f.size(windows, 2);
  const Tensor parted = f.unflatten(f.unflatten(windows, 0, {-1, height / side, width / side}), 3, {side, side});
  return reshaped(f, f.permute(parted, {0, 1, 3, 2, 4, 5}), {height, width, channels});
}

/// Res2Net's hierarchy of splits of the channels, side by side again: each convolution ("convs", "bns") reads its part
/// and what the one before it left; the last part is none's, or pooled.
inline Tensor in_hierarchy(Forward& f, const Module& block, Tensor input) {
  const std::vector<Module> convs = block.parts("convs");
  const std::vector<Module> norms = block.parts("bns");
  const std::vector<Tensor> splits = parts_of(f, input, static_cast<std::int64_t>(convs.size()) + 1, 1);
  std::vector<Tensor> outputs;
  for (std::size_t at = 0; at < convs.size() && at < norms.size(); ++at) {
    const bool adds = at > 0 && !block.has("pool");
    const Tensor read = adds ? f.add(outputs.back(), splits[at]) : splits[at];
    outputs.push_back(block("relu", norms[at].call(convs[at].call(read))));
  }
  outputs.push_back(block("pool", splits.back()));
  return f.concatenate(outputs, 1);
}

// Attention of tokens [N, T, C]: split into heads, their norms, the fused kernel or written-out scores, heads merged.
// No tree prints the width of a head: it is the usual one of the class.

/// How a class computes: whether its scores are materialised, how wide a head is.
struct ImageAttention {
  bool fused = true;
  std::int64_t head_width = 64;
  bool talks = false;  ///< heads are mixed before and after the softmax
};

inline std::int64_t heads_in(std::int64_t width, std::int64_t head_width) {
  for (const std::int64_t each : {head_width, std::int64_t{64}, std::int64_t{80}, std::int64_t{72}, std::int64_t{48},
                                  std::int64_t{32}, std::int64_t{16}}) {
    if (width > 0 && width % each == 0) return width / each;
  }
  return 1;
}

/// [N, T, heads d] -> [N, heads, T, d].
inline Tensor heads_of(Forward& f, Tensor tokens, std::int64_t heads) {
  return f.permute(f.unflatten(tokens, 2, {heads, f.size(tokens, 2) / heads}), {0, 2, 1, 3});
}

/// [N, heads, T, d] -> [N, T, heads d].
inline Tensor merged(Forward& f, Tensor heads) { return f.flatten(f.permute(heads, {0, 2, 1, 3}), 2, 3); }

/// scaled_dot_product_attention; `fused` false: written out, the scores are materialised.
inline Tensor attended(Forward& f, const Heads& of, bool fused) {
  const model::Attribute dropout = {"dropout_p", 0.0};
  if (fused) return f.call("scaled_dot_product_attention", {of.query, of.key, of.value}, {dropout});
  return f.call("scaled_dot_product_attention", {of.query, of.key, of.value},
                {dropout, {"backend", std::string("math")}});
}

/// Scores [N, heads, T, T], mixed between heads by a linear layer before the softmax and by another after it (cait).
inline Tensor talking_heads(Forward& f, const Module& block, const Heads& of) {
  const auto mixed = [&](std::string_view name, Tensor scores) {
    return f.permute(block(name, f.permute(scores, {0, 2, 3, 1})), {0, 3, 1, 2});
  };
  const Tensor scaled = f.scale(of.query);
  const Tensor scores = mixed("proj_l", f.call("matmul", {scaled, f.permute(of.key, {0, 1, 3, 2})}));
  const Tensor weights = f.call("softmax", {scores}, {{"dim", std::int64_t{3}}});
  return f.call("matmul", {block("attn_drop", mixed("proj_w", weights)), of.value});
}

/// Queries or keys [N, heads, T, d], all but the first token turned (EvaAttention: apply_rot_embed_cat).
inline Tensor turned_heads(Forward& f, Tensor heads) {
  const std::int64_t tokens = f.size(heads, 2) - 1;
  const std::int64_t width = f.size(heads, 3);
  const Tensor rest = f.slice(heads, 2, 1, std::max<std::int64_t>(tokens, 1));
  const auto half = [&](std::int64_t start) {
    return f.call("slice", {rest}, {{"dim", std::int64_t{3}}, {"start", start}, {"step", std::int64_t{2}}});
  };
  const auto last = [&](Tensor tensor) { return f.call("unsqueeze", {tensor}, {{"dim", std::int64_t{4}}}); };
  const Tensor straight = f.multiply(rest, f.constant("cos", {tokens, width}, "float32"));
  const Tensor odd = last(f.call("neg", {half(1)}));
  const Tensor crossed = f.flatten(f.concatenate({odd, last(half(0))}, 4), 3, 4);
  const Tensor turned = f.add(straight, f.multiply(crossed, f.constant("sin", {tokens, width}, "float32")));
  return f.concatenate({f.slice(heads, 2, 0, 1), turned}, 2);
}

/// Queries, keys and values as tokens, through the heads of a block that may norm them.
inline Tensor attend_in_heads(Forward& f, const Module& block, const ImageAttention& kind, const Heads& flat) {
  const auto norm = block.find("q_norm");
  const auto normed = norm && !norm->is_container() ? norm->normed_width() : std::nullopt;
  const std::int64_t heads =
      heads_in(f.size(flat.query, 2), std::max<std::int64_t>(normed.value_or(kind.head_width), 1));
  Heads of;
  of.query = block("q_norm", heads_of(f, flat.query, heads));
  of.key = block("k_norm", heads_of(f, flat.key, heads));
  if (f.turns()) of = {turned_heads(f, of.query), turned_heads(f, of.key), 0};
  of.value = heads_of(f, flat.value, f.size(flat.value, 2) % heads == 0 ? heads : 1);
  const bool talks = kind.talks && block.has("proj_l") && block.has("proj_w");
  return merged(f, talks ? talking_heads(f, block, of) : attended(f, of, kind.fused));
}

/// The projection after the heads. A norm that is not of queries or of a smaller image comes before it (eva).
inline Tensor projected(const Module& block, Tensor output) {
  const bool other = block.has("q_norm") || block.has("sr");
  return block({"proj", "proj_drop"}, other ? output : block("norm", output));
}

// A block that is a sum of branches: a norm before each mixer (attention, an MLP, a convolution), or after it if the
// block declares it there.

enum class BranchRole : std::uint8_t { norm, mixer, tail };

inline BranchRole role_of(std::string_view name) {
  const auto begins = [&](std::initializer_list<std::string_view> beginnings) {
    return std::any_of(beginnings.begin(), beginnings.end(), [&](auto each) { return name.starts_with(each); });
  };
  if (name.ends_with("_post")) return BranchRole::tail;
  if (begins({"norm", "ln"})) return BranchRole::norm;
  return begins({"ls", "layer_scale", "drop_path", "gamma", "res_scale"}) ? BranchRole::tail : BranchRole::mixer;
}

/// A block's parts in the order of their calls: those before any branch, those of each branch, those after all.
struct Branches {
  std::vector<Module> first;
  std::vector<std::vector<Module>> branches;
  std::vector<Module> last;
};

/// Norms come before their mixers if the last of both is a mixer. A branch then begins at each norm, else at each
/// mixer; a third norm comes after the last sum.
inline Branches branches_of(const Module& block) {
  const std::vector<Module> parts = block.parts();
  BranchRole last = BranchRole::mixer;
  bool norms = false;
  for (const Module& part : parts) {
    const BranchRole role = role_of(part.name());
    norms = norms || role == BranchRole::norm;
    if (role != BranchRole::tail && part.name() != "norm3") last = role;
  }
  const bool normed_first = last == BranchRole::mixer && norms;
  const BranchRole opener = normed_first ? BranchRole::norm : BranchRole::mixer;
  Branches result;
  for (const Module& part : parts) {
    if (!normed_first && part.name() == "norm3") {
      result.last.push_back(part);
      continue;
    }
    if (role_of(part.name()) == opener) result.branches.emplace_back();
    (result.branches.empty() ? result.first : result.branches.back()).push_back(part);
  }
  return result;
}

inline Tensor call_all(const std::vector<Module>& parts, Tensor input) {
  for (const Module& part : parts) input = part.call(input);
  return input;
}

}  // namespace gpumem::architectures
