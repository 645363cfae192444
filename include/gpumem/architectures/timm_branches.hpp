// timm's image transformers whose blocks compute on several tensors of tokens, or on several sizes of them: CrossViT
// (two sizes of patches), CoaT (four sizes of images), MViTv2 (pooled queries, keys and values). No tree prints their
// heads, learned tokens and positions. A module that blocks share is printed at each place, and is called by its first
// name. Source: timm 1.0.9, timm.models.crossvit, coat, mvitv2.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/architectures/image_tokens.hpp"

namespace gpumem::architectures {

namespace timm_branches_detail {

/// The first token, and all others.
inline std::pair<Tensor, Tensor> token_and_rest(Forward& f, Tensor tokens) {
  const Tensor token = f.slice(tokens, 1, 0, 1);
  return {token, f.slice(tokens, 1, 1, Forward::kRest)};
}

/// flatten(2).transpose(1, 2) of images that were made of tokens.
inline Tensor tokens_again(Forward& f, Tensor images) { return f.permute(f.flatten(images, 2, 3), {0, 2, 1}); }

/// torch.stack of tensors.
inline Tensor stacked(Forward& f, std::vector<Tensor> tensors, std::int64_t dim) {
  for (Tensor& each : tensors) each = f.call("unsqueeze", {each}, {{"dim", dim}});
  return f.concatenate(tensors, dim);
}

}  // namespace timm_branches_detail

// CrossViT: two branches of tokens, of larger and smaller patches; after some blocks of its own, the class token of
// each branch attends to the tokens of the other one. Both have equally many heads; the wider branch's are 64 wide.

namespace timm_crossvit_detail {

/// The side to which a branch's image is scaled: that of published models (img_scale).
inline std::int64_t scaled_side(std::size_t branch, std::int64_t side) {
  if (branch == 0) return side;
  switch (side) {
    case 240: return 224;
    case 408: return 384;
    default: return side;
  }
}

inline Tensor tokens_of_branch(Forward& f, const Module& model, std::size_t branch, const Module& patches,
                               Tensor images) {
  const std::int64_t height = scaled_side(branch, f.size(images, 2));
  const std::int64_t width = scaled_side(branch, f.size(images, 3));
  if (height != f.size(images, 2) || width != f.size(images, 3)) {
    images = f.call("upsample", {images}, {{"size", Sizes{height, width}}});
  }
  const Tensor tokens = tokens_of(f, patches.call(images));
  return model("pos_drop", with_positions(f, with_class_token(f, tokens)));
}

/// Block: attention of a branch's own tokens, and an MLP.
inline Tensor attend_within(Forward& f, const Module& block, std::int64_t heads, Tensor input) {
  const auto attention = block.find("attn");
  if (!attention || !attention->has("qkv")) return block.in_order(input);
  const ImageAttention kind = {.head_width = std::max<std::int64_t>(f.size(input, 2) / heads, 1)};
  const std::vector<Tensor> qkv = parts_of(f, (*attention)("qkv", block("norm1", input)), 3, 2);
  const Tensor found = attend_in_heads(f, *attention, kind, {qkv[0], qkv[1], qkv[2]});
  const Tensor sum = f.add(input, block({"ls1", "drop_path1"}, (*attention)({"proj", "proj_drop"}, found)));
  return f.add(sum, block({"norm2", "mlp", "ls2", "drop_path2"}, sum));
}

/// CrossAttentionBlock: the class token and what it finds in the others.
inline Tensor cross(Forward& f, const Module& block, std::int64_t heads, Tensor input) {
  const auto attention = block.find("attn");
  if (!attention) return block.in_order(input);
  const Tensor token = f.slice(input, 1, 0, 1);
  const Tensor normed = block("norm1", input);
  const Tensor query = heads_of(f, (*attention)("wq", f.slice(normed, 1, 0, 1)), heads);
  const Tensor key = heads_of(f, (*attention)("wk", normed), heads);
  const Tensor value = heads_of(f, (*attention)("wv", normed), heads);
  const Tensor scores = f.scale(f.call("matmul", {query, f.permute(key, {0, 1, 3, 2})}));
  const Tensor weights = (*attention)("attn_drop", f.call("softmax", {scores}, {{"dim", std::int64_t{3}}}));
  const Tensor found = merged(f, f.call("matmul", {weights, value}));
  return f.add(token, block("drop_path", (*attention)({"proj", "proj_drop"}, found)));
}

/// CrossAttentionBlock, or several of them.
inline Tensor fused(Forward& f, const Module& fusion, std::int64_t heads, Tensor input) {
  if (fusion.has("attn")) return cross(f, fusion, heads, input);
  for (const Module& block : fusion.parts()) input = cross(f, block, heads, input);
  return f.slice(input, 1, 0, 1);
}

/// MultiScaleBlock.
inline std::vector<Tensor> call_block(Forward& f, const Module& block, std::int64_t heads, std::vector<Tensor> tokens) {
  const std::vector<Module> own = block.parts("blocks");
  const std::vector<Module> projs = block.parts("projs");
  const std::vector<Module> fusion = block.parts("fusion");
  const std::vector<Module> back = block.parts("revert_projs");
  const std::size_t count = std::min({tokens.size(), projs.size(), fusion.size(), back.size()});
  for (std::size_t branch = 0; branch < std::min(own.size(), count); ++branch) {
    for (const Module& each : own[branch].parts()) tokens[branch] = attend_within(f, each, heads, tokens[branch]);
  }
  std::vector<Tensor> projected;
  for (std::size_t branch = 0; branch < count; ++branch) {
    projected.push_back(projs[branch].call(f.slice(tokens[branch], 1, 0, 1)));
  }
  std::vector<Tensor> results;
  for (std::size_t branch = 0; branch < count && !f.failed(); ++branch) {
    const Tensor others = f.slice(tokens[(branch + 1) % count], 1, 1, Forward::kRest);
    const Tensor found = fused(f, fusion[branch], heads, f.concatenate({projected[branch], others}, 1));
    const Tensor token = back[branch].call(found);
    results.push_back(f.concatenate({token, f.slice(tokens[branch], 1, 1, Forward::kRest)}, 1));
  }
  return results;
}

inline Tensor call_model(Forward& f, const Module& model, Tensor input) {
  const std::vector<Module> patches = model.parts("patch_embed");
  const std::vector<Module> norms = model.parts("norm");
  const std::vector<Module> classifiers = model.parts("head");
  if (patches.empty() || norms.size() != patches.size() || classifiers.size() != patches.size()) {
    return model.in_order(input);
  }
  std::vector<Tensor> tokens;
  for (std::size_t branch = 0; branch < patches.size(); ++branch) {
    tokens.push_back(tokens_of_branch(f, model, branch, patches[branch], input));
  }
  const std::int64_t heads = heads_in(f.size(tokens.back(), 2), 64);
  for (const Module& block : model.parts("blocks")) {
    if (!f.failed()) tokens = call_block(f, block, heads, std::move(tokens));
    if (tokens.size() != patches.size()) return input;
  }
  for (std::size_t branch = 0; branch < tokens.size(); ++branch) tokens[branch] = norms[branch].call(tokens[branch]);
  for (Tensor& each : tokens) each = f.select(each, 1, 0);
  for (Tensor& each : tokens) each = model("head_drop", each);
  for (std::size_t branch = 0; branch < tokens.size(); ++branch) {
    tokens[branch] = classifiers[branch].call(tokens[branch]);
  }
  return f.call("mean", {timm_branches_detail::stacked(f, tokens, 0)}, {{"dim", std::int64_t{0}}});
}

}  // namespace timm_crossvit_detail

inline constexpr std::array<ModuleForward, 1> kTimmCrossvit = {{{names<"CrossVit">, timm_crossvit_detail::call_model}}};

// CoaT: attention without scores (keys through a softmax times values first), a convolution of the values as relative
// positions, and one of the tokens before each block. Its serial stages follow each other; the parallel blocks of the
// larger models compute on three sizes at once and exchange what they found.

namespace timm_coat_detail {

/// The tokens behind the class token as images.
inline Tensor pixels(Forward& f, Tensor rest) {
  const std::int64_t side = side_of(f.size(rest, 1));
  return images_of(f, rest, side, side);
}

inline std::string numbered(std::string_view name, int number) { return std::string(name) + std::to_string(number); }

/// ConvPosEnc.
inline Tensor with_conv_positions(Forward& f, const Module& model, int scale, Tensor tokens) {
  const auto [token, rest] = timm_branches_detail::token_and_rest(f, tokens);
  const Tensor images = pixels(f, rest);
  const Tensor sum = f.add(model(numbered("cpe", scale) + ".proj", images), images);
  return f.concatenate({token, timm_branches_detail::tokens_again(f, sum)}, 1);
}

/// ConvRelPosEnc: queries times what convolutions of different windows make of the values, each of some heads.
inline Tensor relative_positions(Forward& f, const std::vector<Module>& convs, Tensor query, Tensor value) {
  const std::int64_t heads = f.size(value, 1);
  const std::int64_t width = f.size(value, 3);
  const Tensor seen = f.slice(query, 2, 1, Forward::kRest);
  const Tensor values = f.permute(f.slice(value, 2, 1, Forward::kRest), {0, 1, 3, 2});
  const std::int64_t side = side_of(f.size(values, 3));
  const Tensor images = reshaped(f, values, {heads * width, side, side});
  Sizes widths;
  for (const Module& conv : convs) widths.push_back(conv.width("in_channels").value_or(0));
  std::vector<Tensor> made = f.split(images, 1, widths);
  for (std::size_t part = 0; part < convs.size(); ++part) made[part] = convs[part].call(made[part]);
  const Tensor joined = reshaped(f, f.concatenate(made, 1), {heads, width, side * side});
  const Tensor scaled = f.multiply(seen, f.permute(joined, {0, 1, 3, 2}));
  return f.call("pad", {scaled}, {{"padding", Sizes{0, 0, 1, 0, 0, 0}}});
}

/// FactorAttnConvRelPosEnc. The convolutions' widths are multiples of a head's.
inline Tensor attend(Forward& f, const Module& attention, const std::vector<Module>& convs, Tensor tokens) {
  std::int64_t head_width = 0;
  for (const Module& conv : convs) head_width = std::gcd(head_width, conv.width("in_channels").value_or(0));
  const std::int64_t width = f.size(tokens, 2);
  const std::int64_t heads = head_width > 0 && width % head_width == 0 ? width / head_width : 1;
  std::vector<Tensor> qkv = parts_of(f, attention("qkv", tokens), 3, 2);
  for (Tensor& each : qkv) each = heads_of(f, each, heads);
  const Tensor keys = f.permute(f.call("softmax", {qkv[1]}, {{"dim", std::int64_t{2}}}), {0, 1, 3, 2});
  const Tensor found = f.call("matmul", {qkv[0], f.call("matmul", {keys, qkv[2]})});
  const Tensor positions = relative_positions(f, convs, qkv[0], qkv[2]);
  return attention({"proj", "proj_drop"}, merged(f, f.add(f.scale(found), positions)));
}

/// SerialBlock.
inline Tensor serial(Forward& f, const Module& model, int scale, const Module& block, Tensor tokens) {
  const auto attention = block.find("factoratt_crpe");
  if (!attention) return block.in_order(tokens);
  const Tensor placed = with_conv_positions(f, model, scale, tokens);
  const std::vector<Module> convs = model.parts(numbered("crpe", scale) + ".conv_list");
  const Tensor found = attend(f, *attention, convs, block("norm1", placed));
  const Tensor sum = f.add(placed, block("drop_path", found));
  return f.add(sum, block({"norm2", "mlp", "drop_path"}, sum));
}

/// The tokens of an image of another side (ParallelBlock.interpolate).
inline Tensor resized(Forward& f, Tensor tokens, std::int64_t side) {
  const auto [token, rest] = timm_branches_detail::token_and_rest(f, tokens);
  const Tensor images = f.call("upsample", {pixels(f, rest)}, {{"size", Sizes{side, side}}});
  return f.concatenate({token, timm_branches_detail::tokens_again(f, images)}, 1);
}

/// What the three smaller sizes have; the first is not among them.
using Scales = std::array<Tensor, 3>;
inline constexpr int kFirstParallel = 2;  ///< the number of the first of them in names

/// ParallelBlock, after the convolution of each size's tokens.
inline Scales parallel(Forward& f, const Module& model, const Module& block, Scales tokens) {
  const auto number = [](std::size_t scale) { return kFirstParallel + static_cast<int>(scale); };
  Scales found = {};
  std::array<std::int64_t, 3> sides = {};
  for (std::size_t scale = 0; scale < tokens.size(); ++scale) {
    tokens[scale] = with_conv_positions(f, model, number(scale), tokens[scale]);
    sides[scale] = side_of(f.size(tokens[scale], 1) - 1);
  }
  for (std::size_t scale = 0; scale < tokens.size(); ++scale) {
    found[scale] = block(numbered("norm1", number(scale)), tokens[scale]);
  }
  for (std::size_t scale = 0; scale < tokens.size(); ++scale) {
    const auto attention = block.find(numbered("factoratt_crpe", number(scale)));
    if (!attention) return tokens;
    const std::vector<Module> convs = model.parts(numbered("crpe", number(scale)) + ".conv_list");
    found[scale] = attend(f, *attention, convs, found[scale]);
  }
  const auto from = [&](std::size_t source, std::size_t target) { return resized(f, found[source], sides[target]); };
  const Tensor from_third = from(1, 0);
  const Scales nearer = {from_third, from(2, 1), 0};
  const Tensor from_fourth = from(2, 0);
  const Tensor to_third = from(0, 1);
  const Tensor to_fourth = from(1, 2);
  const Tensor farther = from(0, 2);
  const Scales sums = {f.add(f.add(found[0], nearer[0]), from_fourth), f.add(f.add(found[1], nearer[1]), to_third),
                       f.add(f.add(found[2], to_fourth), farther)};
  for (std::size_t scale = 0; scale < tokens.size(); ++scale) {
    tokens[scale] = f.add(tokens[scale], block("drop_path", sums[scale]));
  }
  for (std::size_t scale = 0; scale < tokens.size(); ++scale) {
    found[scale] = block(numbered("norm2", number(scale)), tokens[scale]);
  }
  for (Tensor& each : found) each = block("mlp2", each);  // which all three share
  for (std::size_t scale = 0; scale < tokens.size(); ++scale) {
    tokens[scale] = f.add(tokens[scale], block("drop_path", found[scale]));
  }
  return tokens;
}

/// The class token of the last size, or one of three sizes.
inline Tensor class_token(Forward& f, const Module& model, const Scales& tokens) {
  if (!model.has("aggregate")) return f.select(model("norm4", tokens[2]), 1, 0);
  std::vector<Tensor> each;
  for (std::size_t scale = 0; scale < tokens.size(); ++scale) {
    each.push_back(model(numbered("norm", kFirstParallel + static_cast<int>(scale)), tokens[scale]));
  }
  for (Tensor& token : each) token = f.select(token, 1, 0);
  return f.call("squeeze", {model("aggregate", timm_branches_detail::stacked(f, each, 1))}, {{"dim", std::int64_t{1}}});
}

inline Tensor call_model(Forward& f, const Module& model, Tensor input) {
  constexpr int kScales = 4;
  Scales smaller = {};
  Tensor images = input;
  for (int scale = 1; scale <= kScales; ++scale) {
    Tensor tokens = with_class_token(f, tokens_of(f, model(numbered("patch_embed", scale), images)));
    if (f.failed() || side_of(f.size(tokens, 1) - 1) == 0) return model.in_order(input);
    for (const Module& block : model.parts(numbered("serial_blocks", scale))) {
      tokens = serial(f, model, scale, block, tokens);
    }
    if (f.failed()) return input;
    images = f.contiguous(pixels(f, f.slice(tokens, 1, 1, Forward::kRest)));
    if (scale >= kFirstParallel) smaller.at(static_cast<std::size_t>(scale - kFirstParallel)) = tokens;
  }
  for (const Module& block : model.parts("parallel_blocks")) {
    if (!f.failed()) smaller = parallel(f, model, block, smaller);
  }
  return model({"head_drop", "head"}, class_token(f, model, smaller));
}

}  // namespace timm_coat_detail

inline constexpr std::array<ModuleForward, 1> kTimmCoat = {{{names<"CoaT">, timm_coat_detail::call_model}}};

// MViTv2: queries, keys and values are pooled by convolutions of each head's images; scores are written out, with
// learned positions of rows and columns that are made of the queries; the pooled queries are added to what is found.

namespace timm_mvit_detail {

struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// Heads [N, H, T, d] through a convolution of images, and its norm (reshape_pre_pool, reshape_post_pool).
inline Tensor pooled(Forward& f, const Module& attention, std::string_view name, Tensor heads, Image& image) {
  const std::string pool = "pool_" + std::string(name);
  const std::string norm = "norm_" + std::string(name);
  if (!attention.has(pool)) return attention(norm, heads);
  const std::int64_t count = f.size(heads, 1);
  const std::int64_t width = f.size(heads, 3);
  const Tensor flat = reshaped(f, f.flatten(heads, 0, 1), {image.height, image.width, width});
  const Tensor small = attention(pool, f.contiguous(f.permute(flat, {0, 3, 1, 2})));
  image = {f.size(small, 2), f.size(small, 3)};
  const Tensor again = f.unflatten(f.flatten(small, 2, 3), 0, {-1, count});
  return attention(norm, f.permute(again, {0, 1, 3, 2}));
}

/// What the queries [N, H, h, w, d] make of the positions of rows (axis 2) or columns (3): [N, H, h, w, keys].
inline Tensor of_positions(Forward& f, Tensor queries, std::size_t axis, std::int64_t keys) {
  const std::int64_t count = f.size(queries, axis);
  const std::int64_t width = f.size(queries, 4);
  const Tensor table = f.parameter(axis == 2 ? "rel_pos_h" : "rel_pos_w", {2 * std::max(count, keys) - 1, width});
  const Tensor distances = f.constant("distances", {count * keys}, "int64");
  const Tensor chosen = f.unflatten(f.call("index", {table, distances}, {{"dim", std::int64_t{0}}}), 0, {count, keys});
  const std::int64_t heads = f.size(queries, 1);
  const std::int64_t other = f.size(queries, axis == 2 ? 3 : 2);
  // einsum("byhwc,hkc->byhwk"): the axis comes first, and all others are rows of one product
  const Tensor front = f.permute(queries, axis == 2 ? Sizes{2, 0, 1, 3, 4} : Sizes{3, 0, 1, 2, 4});
  const Tensor product = f.call("matmul", {f.flatten(front, 1, 3), f.permute(chosen, {0, 2, 1})});
  const Tensor parted = f.unflatten(product, 1, {-1, heads, other});
  return f.permute(parted, axis == 2 ? Sizes{1, 2, 0, 3, 4} : Sizes{1, 2, 3, 0, 4});
}

/// MultiScaleAttention; `image` becomes that of the queries.
inline Tensor attend(Forward& f, const Module& attention, Tensor tokens, Image& image) {
  const auto norm = attention.find("norm_k");
  const Tensor packed = attention("qkv", tokens);
  const std::int64_t width = f.size(packed, 2) / 3;
  const std::int64_t heads = heads_in(width, std::max<std::int64_t>(norm ? norm->normed_width().value_or(96) : 96, 1));
  std::vector<Tensor> qkv = parts_of(f, packed, 3, 2);
  for (Tensor& each : qkv) each = heads_of(f, each, heads);
  Image keys = image;
  Image values = image;
  const Tensor query = pooled(f, attention, "q", qkv[0], image);
  const Tensor key = pooled(f, attention, "k", qkv[1], keys);
  const Tensor value = pooled(f, attention, "v", qkv[2], values);
  const Tensor scores = f.call("matmul", {f.scale(query), f.permute(key, {0, 1, 3, 2})});
  const Tensor queries = f.unflatten(query, 2, {image.height, image.width});
  const Tensor rows = of_positions(f, queries, 2, keys.height);
  const Tensor columns = of_positions(f, queries, 3, keys.width);
  const auto apart = [&](Tensor tensor, std::int64_t dim) { return f.call("unsqueeze", {tensor}, {{"dim", dim}}); };
  const Tensor parted = f.unflatten(f.unflatten(scores, 3, {keys.height, keys.width}), 2, {image.height, image.width});
  const Tensor placed = f.add(f.add(parted, apart(rows, 5)), apart(columns, 4));
  const Tensor biased = f.flatten(f.flatten(placed, 4, 5), 2, 3);
  const Tensor weights = f.call("softmax", {biased}, {{"dim", std::int64_t{3}}});
  const Tensor found = f.add(f.call("matmul", {weights, value}), query);
  return attention("proj", merged(f, found));
}

/// MultiScaleBlock.
inline Tensor call_block(Forward& f, const Module& block, Tensor input, Image& image) {
  const auto attention = block.find("attn");
  if (!attention) return block.in_order(input);
  const Tensor normed = block("norm1", input);
  Tensor shortcut = block.has("shortcut_proj_attn") ? block("shortcut_proj_attn", normed) : input;
  if (block.has("shortcut_pool_attn")) {
    const Tensor images = f.contiguous(images_of(f, shortcut, image.height, image.width));
    shortcut = timm_branches_detail::tokens_again(f, block("shortcut_pool_attn", images));
  }
  const Tensor sum = f.add(shortcut, block("drop_path1", attend(f, *attention, normed, image)));
  const Tensor again = block("norm2", sum);
  const Tensor straight = block.has("shortcut_proj_mlp") ? block("shortcut_proj_mlp", again) : sum;
  return f.add(straight, block({"mlp", "drop_path2"}, again));
}

inline Tensor call_model(Forward& f, const Module& model, Tensor input) {
  const Tensor images = model("patch_embed.proj", input);
  const std::vector<Module> stages = model.parts("stages");
  if (f.rank(images) != 4 || stages.empty()) return model.in_order(input);
  Image image = {f.size(images, 2), f.size(images, 3)};
  Tensor output = tokens_of(f, images);
  for (const Module& stage : stages) {
    for (const Module& block : stage.parts("blocks")) {
      if (!f.failed()) output = call_block(f, block, output, image);
    }
  }
  return model("head", mean_token(f, model("norm", output)));
}

}  // namespace timm_mvit_detail

inline constexpr std::array<ModuleForward, 1> kTimmMvit = {{{names<"MultiScaleVit">, timm_mvit_detail::call_model}}};

}  // namespace gpumem::architectures
