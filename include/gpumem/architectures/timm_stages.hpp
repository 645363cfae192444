// timm's image transformers in stages of fewer and wider tokens: Hiera, LeViT, GCViT, ConvNeXt, MaxViT and CoAtNet,
// MetaFormers, Visformer, PVT V2, Twins.
// Source: timm 1.0.9, timm.models.hiera, levit, gcvit, convnext, inception_next, edgenext, maxxvit, metaformer,
// visformer, pvt_v2, twins.
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

}  // namespace timm_hiera_detail

inline constexpr std::array<ModuleForward, 1> kTimmHiera = {{{names<"Hiera">, timm_hiera_detail::call_model}}};

// LeViT: linear layers whose batch norm sees every token as a sample, attention with a narrow query that may read every
// second pixel, and a mean of all tokens.

namespace timm_levit_detail {

/// LinearNorm: bn(linear(x).flatten(0, 1)).reshape_as(x)
inline Tensor call_linear_norm(Forward& f, const Module& block, Tensor input) {
  const Tensor output = block("linear", input);
  if (f.rank(output) != 3) return block("bn", output);
  return f.unflatten(block("bn", f.flatten(output, 0, 1)), 0, {-1, f.size(output, 1)});
}

/// AttentionDownsample: queries of every second pixel of a square, keys and values of all.
inline Tensor call_attention(Forward& f, const Module& block, Tensor input) {
  constexpr ImageAttention kSmall = {.fused = false, .head_width = 16};
  if (!block.has("kv") || !block.has("q")) return block.in_order(input);
  const bool images = f.rank(input) == 4;  // of which `q` takes every second pixel itself
  const std::int64_t side = images ? f.size(input, 2) : side_of(f.size(input, 1));
  const std::int64_t half = (side + 1) / 2;
  const Tensor packed = tokens_of(f, block("kv", input));
  const Tensor thinned = images || half == 0 ? input : f.slice(input, 1, 0, half * half);
  const Tensor query = tokens_of(f, block("q", thinned));
  const std::int64_t width = f.size(packed, 2);
  const std::int64_t keys = f.size(query, 2);
  if (keys >= width) return block.in_order(input);
  const Tensor key = f.slice(packed, 2, 0, keys);
  const Tensor output = attend_in_heads(f, block, kSmall, {query, key, f.slice(packed, 2, keys, width - keys)});
  return block("proj", images ? images_of(f, output, half, half) : output);
}

/// The attention that makes the image smaller, and a sum with what the MLP makes of it.
inline Tensor call_downsample(Forward& f, const Module& block, Tensor input) {
  const Tensor small = block("attn_downsample", input);
  return added(f, small, block({"mlp", "drop_path"}, small));
}

inline Tensor call_model(Forward& f, const Module& model, Tensor input) {
  const auto stages = model.find("stages");
  if (!stages) return model.in_order(input);
  const bool tokens = stages->first_op() == "linear";
  const Tensor images = model("stem", input);
  const Tensor output = stages->call(tokens ? tokens_of(f, images) : images);
  return model("head", f.call("mean", {output}, {{"dim", tokens ? Sizes{1} : Sizes{2, 3}}}));
}

}  // namespace timm_levit_detail

inline constexpr std::array<ModuleForward, 4> kTimmLevit = {
    {{names<"LinearNorm", "LinearBN">, timm_levit_detail::call_linear_norm},
     {names<"AttentionDownsample">, timm_levit_detail::call_attention},
     {names<"LevitDownsample">, timm_levit_detail::call_downsample},
     {names<"Levit", "LevitDistilled">, timm_levit_detail::call_model}}};

// Global context transformers: a stage makes one small image of its input, whose side is that of its windows; every
// second block's queries are this image, repeated for each window, the others' their own. Scores are written out, with
// a learned bias.

namespace timm_gcvit_detail {

inline constexpr std::int64_t kHeadWidth = 32;

/// What the blocks of a stage share.
struct Stage {
  Tensor global = 0;         ///< [N, s s, C]
  std::int64_t side = 1;     ///< of a window
  std::int64_t windows = 1;  ///< of an image
};

inline Tensor attend(Forward& f, const Module& attention, const Stage& stage, Tensor windows) {
  const Tensor packed = attention("qkv", windows);
  const std::int64_t width = f.size(windows, 2);
  const bool global = f.size(packed, 2) == 2 * width;
  std::vector<Tensor> qkv = parts_of(f, packed, global ? 2 : 3, 2);
  if (global) {  // the stage's image for each window: [N W, s s, C]
    const std::vector<core::Dim> every = {core::Dim::batch(stage.windows), core::Dim::fixed(-1), core::Dim::fixed(-1)};
    qkv.insert(qkv.begin(), f.call("repeat", {stage.global}, {{"shape", every}}));
  }
  const std::int64_t heads = width % kHeadWidth == 0 ? std::max<std::int64_t>(width / kHeadWidth, 1) : 1;
  for (Tensor& each : qkv) each = heads_of(f, each, heads);
  const Tensor scaled = f.scale(qkv[0]);
  const Tensor scores = f.call("matmul", {scaled, f.contiguous(f.permute(qkv[1], {0, 1, 3, 2}))});
  const std::int64_t tokens = stage.side * stage.side;
  const Tensor biased = f.add(scores, f.parameter("relative_position_bias", {1, heads, tokens, tokens}));
  const Tensor weights = attention("attn_drop", f.call("softmax", {biased}, {{"dim", std::int64_t{3}}}));
  return attention({"proj", "proj_drop"}, merged(f, f.call("matmul", {weights, qkv[2]})));
}

/// A block on images [N, h, w, C].
inline Tensor call_block(Forward& f, const Module& block, const Stage& stage, Tensor input) {
  const auto attention = block.find("attn");
  if (!attention || !attention->is_container()) return block.in_order(input);
  const Tensor windows = cut_windows(f, block("norm1", input), stage.side);
  const Tensor output = attend(f, *attention, stage, windows);
  const Tensor images = join_windows(f, output, f.size(input, 1), f.size(input, 2), stage.side);
  const Tensor sum = f.add(input, block({"ls1", "drop_path1"}, images));
  return f.add(sum, block({"norm2", "mlp", "ls2", "drop_path2"}, sum));
}

inline Tensor call_stage(Forward& f, const Module& module, Tensor input) {
  if (!module.has("global_block") || !module.has("blocks")) return module.in_order(input);
  const Tensor images = module("downsample", input);
  const Tensor small = module("global_block", images);
  if (f.rank(images) != 4 || f.rank(small) != 4) return small;
  Stage stage = {.side = std::max<std::int64_t>(f.size(small, 2), 1)};
  stage.global = module("global_norm", tokens_of(f, small));
  Tensor output = channels_behind(f, images);
  const std::int64_t height = f.size(output, 1);
  const std::int64_t width = f.size(output, 2);
  if (height % stage.side != 0 || width % stage.side != 0) return module.in_order(input);
  stage.windows = (height / stage.side) * (width / stage.side);
  for (const Module& block : module.parts("blocks")) output = call_block(f, block, stage, output);
  return channels_in_front(f, module("norm", output));
}

}  // namespace timm_gcvit_detail

inline constexpr std::array<ModuleForward, 1> kTimmGcvit = {
    {{names<"GlobalContextVitStage">, timm_gcvit_detail::call_stage}}};

// ConvNeXt and what is made of its block: x = mlp(norm(conv_dw(x))) with the channels after the pixels where the norm
// is a plain one; then a layer scale, which no line shows, and the shortcut.

namespace timm_convnext_detail {

inline Tensor call_block(Forward& f, const Module& block, Tensor input) {
  const auto norm = block.find("norm");
  const auto mlp = block.find("mlp");
  if (!mlp) return block.in_order(input);
  Tensor output = block({"pre_norm", "down", "conv_dw", "token_mixer"}, input);
  const bool last = norm && norm->class_name() == "LayerNorm";
  output = block({"norm", "mlp"}, last ? channels_behind(f, output) : output);
  if (last) output = channels_in_front(f, output);
  const bool scales = !block.has("ls") && mlp->class_name() != "GlobalResponseNormMlp";
  if (scales) output = f.multiply(output, f.parameter("gamma", {f.channels(output), 1, 1}));
  output = block({"ls", "drop_path"}, output);
  const Tensor shortcut = block("shortcut", input);
  return f.shape(output) == f.shape(shortcut) ? f.add(output, shortcut) : output;
}

}  // namespace timm_convnext_detail

inline constexpr std::array<ModuleForward, 1> kTimmConvnext = {
    {{names<"ConvNeXtBlock", "MetaNeXtBlock", "ConvBlock">, timm_convnext_detail::call_block}}};

// CoAtNet's and MaxViT's blocks: a convolution, then attention with the channels after the pixels; a
// TransformerBlock2d has two shortcuts, of which the first may pool.

namespace timm_maxvit_detail {

/// MaxxVitBlock, ParallelMaxxVitBlock.
inline Tensor call_block(Forward& f, const Module& block, Tensor input) {
  if (!block.has("attn_block") && !block.has("attn_grid") && !block.has("attn")) return block.in_order(input);
  const Tensor images = channels_behind(f, block("conv", input));
  return channels_in_front(f, block({"attn_block", "attn_grid", "attn"}, images));
}

/// x = shortcut(x) + ls1(attn(norm1(x))), x + ls2(mlp(norm2(x))).
inline Tensor call_transformer(Forward& f, const Module& block, Tensor input) {
  if (!block.has("attn")) return block.in_order(input);
  const Tensor shortcut = block("shortcut", input);
  const Tensor output = added(f, shortcut, block({"norm1", "attn", "ls1", "drop_path1"}, input));
  return added(f, output, block({"norm2", "mlp", "ls2", "drop_path2"}, output));
}

}  // namespace timm_maxvit_detail

inline constexpr std::array<ModuleForward, 2> kTimmMaxvit = {
    {{names<"MaxxVitBlock", "ParallelMaxxVitBlock">, timm_maxvit_detail::call_block},
     {names<"TransformerBlock2d">, timm_maxvit_detail::call_transformer}}};

// MetaFormers (PoolFormer, ConvFormer, CAFormer): stages of images, and stages of tokens where the mixer is attention;
// their activation has a scale and a bias of its own.

namespace timm_metaformer_detail {

/// StarReLU: scale * relu(x) ** 2 + bias.
inline Tensor call_star(Forward& f, const Module& block, Tensor input) {
  const Tensor square = f.call("square", {block.in_order(input)});
  const Tensor scaled = f.multiply(square, f.parameter("scale", {1}));
  return f.add(scaled, f.parameter("bias", {1}));
}

/// SquaredReLU: relu(x) ** 2.
inline Tensor call_squared(Forward& f, const Module& block, Tensor input) {
  return f.call("square", {block.in_order(input)});
}

/// Pooling: what the pooling changes, pool(x) - x.
inline Tensor call_pooling(Forward& f, const Module& block, Tensor input) {
  const Tensor output = block.in_order(input);
  return f.shape(output) == f.shape(input) ? f.call("sub", {output, input}) : output;
}

inline bool holds_attention(const Module& module) {
  const std::vector<Module> parts = module.parts();
  return module.class_name() == "Attention" || std::any_of(parts.begin(), parts.end(), holds_attention);
}

/// MetaFormerStage: its blocks see tokens where one of them is attention.
inline Tensor call_stage(Forward& f, const Module& stage, Tensor input) {
  const auto blocks = stage.find("blocks");
  if (!blocks || !blocks->is_container()) return stage.in_order(input);
  const Tensor images = stage("downsample", input);
  if (!holds_attention(*blocks)) return blocks->call(images);
  const std::int64_t height = f.size(images, 2);
  const std::int64_t width = f.size(images, 3);
  return images_of(f, blocks->call(tokens_of(f, images)), height, width);
}

}  // namespace timm_metaformer_detail

inline constexpr std::array<ModuleForward, 4> kTimmMetaformer = {
    {{names<"StarReLU">, timm_metaformer_detail::call_star},
     {names<"SquaredReLU">, timm_metaformer_detail::call_squared},
     {names<"Pooling">, timm_metaformer_detail::call_pooling},
     {names<"MetaFormerStage">, timm_metaformer_detail::call_stage}}};

// Visformer: patches stay images through every stage, each with positions that no line shows.

namespace timm_visformer_detail {

inline Tensor call_model(Forward& f, const Module& model, Tensor input) {
  constexpr std::array<std::array<std::string_view, 3>, 3> kStages = {
      {{"patch_embed1.proj", "patch_embed1.norm", "stage1"},
       {"patch_embed2.proj", "patch_embed2.norm", "stage2"},
       {"patch_embed3.proj", "patch_embed3.norm", "stage3"}}};
  if (!model.has("stage1")) return model.in_order(input);
  Tensor output = model("stem", input);
  for (const auto& [proj, norm, stage] : kStages) {
    if (model.has(proj)) {
      const Tensor images = model({proj, norm}, output);
      const Sizes positions = {1, f.size(images, 1), f.size(images, 2), f.size(images, 3)};
      output = model("pos_drop", f.add(images, f.parameter("pos_embed", positions)));
    }
    output = model(stage, output);
  }
  return model({"norm", "global_pool", "head_drop", "head"}, output);
}

}  // namespace timm_visformer_detail

inline constexpr std::array<ModuleForward, 1> kTimmVisformer = {
    {{names<"Visformer">, timm_visformer_detail::call_model}}};

// PVT V2 and Twins: tokens within a stage, images between stages.

namespace timm_pyramid_detail {

/// PyramidVisionTransformerStage: downsample, tokens through the blocks and a norm, images again.
inline Tensor call_stage(Forward& f, const Module& stage, Tensor input) {
  if (!stage.has("blocks")) return stage.in_order(input);
  const Tensor images = stage("downsample", input);
  if (f.rank(images) != 4) return stage({"blocks", "norm"}, images);
  const std::size_t first = f.channels_last(images) ? 1 : 2;
  const std::int64_t height = f.size(images, first);
  const std::int64_t width = f.size(images, first + 1);
  return images_of(f, stage({"blocks", "norm"}, tokens_of(f, images)), height, width);
}

/// OverlapPatchEmbed: a convolution, the channels after the pixels, a norm.
inline Tensor call_patches(Forward& f, const Module& block, Tensor input) {
  if (!block.has("proj")) return block.in_order(input);
  return block("norm", channels_behind(f, block("proj", input)));
}

/// PyramidVisionTransformerV2: patches, then stages; the head sees the mean of all pixels.
inline Tensor call_model(Forward& f, const Module& model, Tensor input) {
  if (!model.has("stages")) return model.in_order(input);
  const Tensor output = model({"patch_embed", "stages"}, input);
  if (f.rank(output) != 4) return model.in_order(input);
  return model({"head_drop", "head"}, f.call("mean", {output}, {{"dim", Sizes{2, 3}}}));
}

/// MlpWithDepthwiseConv: the convolution sees the tokens as images.
inline Tensor call_mlp(Forward& f, const Module& block, Tensor input) {
  const std::int64_t side = f.rank(input) == 3 ? side_of(f.size(input, 1)) : 0;
  if (side == 0) return block.in_order(input);
  const Tensor images = block({"relu", "dwconv"}, images_of(f, block("fc1", input), side, side));
  return block({"act", "fc2", "drop"}, tokens_of(f, images));
}

/// Twins: each patch embedding with its stage, and positions by a convolution after the first block.
inline Tensor call_twins(Forward& f, const Module& model, Tensor input) {
  const std::vector<Module> patches = model.parts("patch_embeds");
  const std::vector<Module> stages = model.parts("blocks");
  const std::vector<Module> positions = model.parts("pos_block");
  if (patches.empty() || stages.size() != patches.size()) return model.in_order(input);
  Tensor output = input;
  for (std::size_t stage = 0; stage < stages.size() && !f.failed(); ++stage) {
    output = tokens_of(f, patches[stage].call(output));
    const std::int64_t side = side_of(f.size(output, 1));
    bool first = true;
    for (const Module& block : stages[stage].parts()) {
      output = block.call(output);
      const bool placed = first && stage < positions.size() && side > 0;
      if (placed) output = tokens_of(f, positions[stage].call(images_of(f, output, side, side)));
      first = false;
    }
    const bool more = stage + 1 < stages.size();
    if (more && side > 0) output = images_of(f, output, side, side);
  }
  output = model("norm", output);
  if (f.rank(output) != 3) return output;
  return model({"head_drop", "head"}, mean_token(f, output));
}

}  // namespace timm_pyramid_detail

inline constexpr std::array<ModuleForward, 5> kTimmPyramids = {
    {{names<"PyramidVisionTransformerStage">, timm_pyramid_detail::call_stage},
     {names<"OverlapPatchEmbed">, timm_pyramid_detail::call_patches},
     {names<"PyramidVisionTransformerV2">, timm_pyramid_detail::call_model},
     {names<"MlpWithDepthwiseConv">, timm_pyramid_detail::call_mlp},
     {names<"Twins">, timm_pyramid_detail::call_twins}}};

}  // namespace gpumem::architectures
