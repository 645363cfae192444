// Image transformers in stages, each as its forward() joins its layers: LeViT, GCViT, MaxViT, MetaFormer,
// Visformer.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

// LeViT: linear layers whose batch norm sees every token as a sample, attention with a narrow query that may read every
// second pixel, and a mean of all tokens. Source: timm 1.0.9, timm.models.levit.

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

// Global context transformers: a stage makes one small image of its input, whose side is that of its windows; every
// second block's queries are this image, repeated for each window, the others' their own. Scores are written out, with
// a learned bias. Source: timm 1.0.9, timm.models.gcvit.

namespace gcvit_detail {

using tokens_detail::fixed;

inline constexpr std::int64_t kHeadWidth = 32;

/// What the blocks of a stage share.
struct Stage {
  Tensor global = 0;         ///< [N, s s, C]
  std::int64_t side = 1;     ///< of a window
  std::int64_t windows = 1;  ///< of an image
};

/// The stage's image for each window: [N W, s s, C].
inline Tensor repeated(Wiring& wiring, const Stage& stage) {
  const std::vector<core::Dim> every = {core::Dim::batch(stage.windows), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  return wiring.operation("repeat", {&stage.global, 1}, {{"shape", every}});
}

inline Tensor attend(Wiring& wiring, const Container& block, const Stage& stage, Tensor windows) {
  const Calls calls(wiring, block);
  const Tensor packed = calls("qkv", windows);
  if (wiring.failed()) return windows;
  const std::int64_t width = fixed(wiring.shape(windows), 2);
  const bool global = fixed(wiring.shape(packed), 2) == 2 * width;
  std::vector<Tensor> qkv = tokens_detail::parts_of(wiring, packed, global ? 2 : 3, 2);
  if (global) qkv.insert(qkv.begin(), repeated(wiring, stage));
  const std::int64_t heads = width % kHeadWidth == 0 ? width / kHeadWidth : 1;
  for (Tensor& each : qkv) each = tokens_detail::heads_of(wiring, each, heads);
  const Tensor scaled = wiring.operation("mul", {&qkv[0], 1});
  const Tensor turned = tokens_detail::permuted(wiring, qkv[1], {0, 1, 3, 2});
  const Tensor keys = wiring.operation("contiguous", {&turned, 1});
  const Tensor scores = wiring.operation("matmul", std::array<Tensor, 2>{scaled, keys});
  const std::int64_t tokens = stage.side * stage.side;
  const Tensor biased = wiring.add(scores, tokens_detail::parameter(wiring, {1, heads, tokens, tokens}), false);
  const Tensor weights = wiring.operation("softmax", {&biased, 1}, {{"dim", std::int64_t{3}}});
  const Tensor output = wiring.operation("matmul", std::array<Tensor, 2>{calls("attn_drop", weights), qkv[2]});
  return calls("proj_drop", calls("proj", tokens_detail::merged(wiring, output)));
}

/// A block on images [N, h, w, C].
inline Tensor wire_block(Wiring& wiring, const Container& block, const Stage& stage, Tensor input) {
  const Calls calls(wiring, block);
  const auto attention = wiring.child(block, "attn");
  const core::Shape shape = wiring.shape(input);
  if (!attention || !attention->container) return wiring.chain(block.parts, input);
  const Tensor windows = tokens_detail::windows_of(wiring, calls("norm1", input), stage.side);
  Tensor output = attend(wiring, wiring.container(*attention), stage, windows);
  if (wiring.failed()) return input;
  output = tokens_detail::unwindowed(wiring, output, fixed(shape, 1), fixed(shape, 2), stage.side);
  const Tensor sum = wiring.add(input, calls("drop_path1", calls("ls1", output)), false);
  return wiring.add(sum, calls("drop_path2", calls("ls2", calls("mlp", calls("norm2", sum)))), false);
}

inline Tensor wire_stage(Wiring& wiring, const Container& container, Tensor input) {
  const Calls calls(wiring, container);
  const auto blocks = wiring.child(container, "blocks");
  const bool known = calls.has("global_block") && blocks && blocks->container;
  if (wiring.called() || !known) return wiring.chain(container.parts, input);
  const Tensor images = calls("downsample", input);
  const Tensor small = calls("global_block", images);
  if (wiring.failed() || wiring.shape(images).rank() != 4 || wiring.shape(small).rank() != 4) return small;
  Stage stage;
  stage.side = std::max<std::int64_t>(fixed(wiring.shape(small), 2), 1);
  stage.global = calls("global_norm", tokens_detail::tokens_of(wiring, small));
  Tensor output = tokens_detail::channels_behind(wiring, images);
  const core::Shape shape = wiring.shape(output);
  const std::int64_t height = fixed(shape, 1);
  const std::int64_t width = fixed(shape, 2);
  if (height % stage.side != 0 || width % stage.side != 0) return wiring.chain(container.parts, input);
  stage.windows = (height / stage.side) * (width / stage.side);
  for (const Part& part : wiring.container(*blocks).parts) {
    if (wiring.failed() || !part.container) return output;
    output = wire_block(wiring, wiring.container(part), stage, output);
  }
  output = calls("norm", output);
  return wiring.failed() ? output : tokens_detail::permuted(wiring, output, {0, 3, 1, 2});
}

inline constexpr std::array<std::string_view, 1> kStages = {"GlobalContextVitStage"};

}  // namespace gcvit_detail

inline constexpr std::array<BlockRule, 1> kGcvitBlocks = {{{gcvit_detail::kStages, gcvit_detail::wire_stage, nullptr}}};

// CoAtNet's and MaxViT's blocks: a convolution, then attention with the channels after the pixels; a
// TransformerBlock2d has two shortcuts, of which the first may pool. Source: timm 1.0.9, timm.models.maxxvit.

namespace maxvit_detail {

/// MaxxVitBlock, ParallelMaxxVitBlock.
inline Tensor wire_block(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 3> kAttention = {"attn_block", "attn_grid", "attn"};
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has_any(kAttention)) return wiring.chain(block.parts, input);
  const Tensor images = calls("conv", input);
  const Tensor last = tokens_detail::channels_behind(wiring, images);
  if (wiring.failed()) return input;
  return tokens_detail::channels_in_front(wiring, wiring.chain_named(block, kAttention, last));
}

/// x = shortcut(x) + ls1(attn(norm1(x))), x + ls2(mlp(norm2(x))).
inline Tensor wire_transformer(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("attn")) return wiring.chain(block.parts, input);
  const Tensor shortcut = calls("shortcut", input);
  Tensor output = calls("drop_path1", calls("ls1", calls("attn", calls("norm1", input))));
  if (wiring.failed()) return input;
  if (wiring.shape(output) == wiring.shape(shortcut)) output = wiring.add(shortcut, output, false);
  const Tensor more = calls("drop_path2", calls("ls2", calls("mlp", calls("norm2", output))));
  const bool same = !wiring.failed() && wiring.shape(output) == wiring.shape(more);
  return same ? wiring.add(output, more, false) : more;
}

inline constexpr std::array<std::string_view, 2> kBlocks = {"MaxxVitBlock", "ParallelMaxxVitBlock"};
inline constexpr std::array<std::string_view, 1> kTransformers = {"TransformerBlock2d"};

}  // namespace maxvit_detail

inline constexpr std::array<BlockRule, 2> kMaxvitBlocks = {
    {{maxvit_detail::kBlocks, maxvit_detail::wire_block, nullptr},
     {maxvit_detail::kTransformers, maxvit_detail::wire_transformer, nullptr}}};

// MetaFormers (PoolFormer, ConvFormer, CAFormer): stages of images, and stages of tokens where the mixer is attention;
// their activation has a scale and a bias of its own. Source: timm 1.0.9, timm.models.metaformer.

namespace metaformer_detail {

/// StarReLU: scale * relu(x) ** 2 + bias.
inline Tensor wire_star(Wiring& wiring, const Container& block, Tensor input) {
  const Tensor active = wiring.chain(block.parts, input);
  if (wiring.called() || wiring.failed()) return active;
  const Tensor square = wiring.operation("square", {&active, 1});
  const Tensor scale = tokens_detail::parameter(wiring, {1});
  const Tensor scaled = wiring.operation("mul", std::array<Tensor, 2>{square, scale});
  return wiring.operation("add", std::array<Tensor, 2>{scaled, tokens_detail::parameter(wiring, {1})});
}

/// SquaredReLU: relu(x) ** 2.
inline Tensor wire_squared(Wiring& wiring, const Container& block, Tensor input) {
  const Tensor active = wiring.chain(block.parts, input);
  return wiring.called() || wiring.failed() ? active : wiring.operation("square", {&active, 1});
}

/// Pooling: what the pooling changes, pool(x) - x.
inline Tensor wire_pooling(Wiring& wiring, const Container& block, Tensor input) {
  const Tensor output = wiring.chain(block.parts, input);
  const bool same = !wiring.called() && !wiring.failed() && wiring.shape(output) == wiring.shape(input);
  return same ? wiring.operation("sub", std::array<Tensor, 2>{output, input}) : output;
}

inline bool holds_attention(const Wiring& wiring, const Container& container) {
  for (const Part& part : container.parts) {
    if (!part.container) continue;
    const std::string_view inner = wiring.class_name(part);
    if (inner == "Attention" || holds_attention(wiring, wiring.container(part))) return true;
  }
  return false;
}

/// MetaFormerStage: its blocks see tokens where one of them is attention.
inline Tensor wire_stage(Wiring& wiring, const Container& stage, Tensor input) {
  const Calls calls(wiring, stage);
  const auto blocks = wiring.child(stage, "blocks");
  if (wiring.called() || !blocks || !blocks->container) return wiring.chain(stage.parts, input);
  const Tensor images = calls("downsample", input);
  if (!holds_attention(wiring, wiring.container(*blocks)) || wiring.failed()) return calls("blocks", images);
  const core::Shape shape = wiring.shape(images);
  const Tensor tokens = calls("blocks", tokens_detail::tokens_of(wiring, images));
  return tokens_detail::images_of(wiring, tokens, tokens_detail::fixed(shape, 2), tokens_detail::fixed(shape, 3));
}

inline constexpr std::array<std::string_view, 1> kStar = {"StarReLU"};
inline constexpr std::array<std::string_view, 1> kSquared = {"SquaredReLU"};
inline constexpr std::array<std::string_view, 1> kPooling = {"Pooling"};
inline constexpr std::array<std::string_view, 1> kStages = {"MetaFormerStage"};

}  // namespace metaformer_detail

inline constexpr std::array<BlockRule, 4> kMetaformerBlocks = {
    {{metaformer_detail::kStar, metaformer_detail::wire_star, nullptr},
     {metaformer_detail::kSquared, metaformer_detail::wire_squared, nullptr},
     {metaformer_detail::kPooling, metaformer_detail::wire_pooling, nullptr},
     {metaformer_detail::kStages, metaformer_detail::wire_stage, nullptr}}};

// Visformer: patches stay images through every stage, each with positions that no line shows. Source: timm 1.0.9,
// timm.models.visformer.

namespace visformer_detail {

/// The convolution of a patch embedding and its norm, without tokens; positions are added.
inline Tensor embedded(Wiring& wiring, const Container& model, std::string_view name, Tensor input) {
  const auto patches = wiring.child(model, name);
  if (!patches || !patches->container) return input;
  const Calls calls(wiring, wiring.container(*patches));
  const Tensor images = calls("norm", calls("proj", input));
  const core::Shape shape = wiring.shape(images);
  if (wiring.failed() || shape.rank() != 4) return images;
  const Tensor positions = tokens_detail::parameter(
      wiring, {1, tokens_detail::fixed(shape, 1), tokens_detail::fixed(shape, 2), tokens_detail::fixed(shape, 3)});
  return Calls(wiring, model)("pos_drop", wiring.add(images, positions, false));
}

inline Tensor wire_model(Wiring& wiring, const Container& model, Tensor input) {
  constexpr std::array<std::array<std::string_view, 2>, 3> kStages = {
      {{"patch_embed1", "stage1"}, {"patch_embed2", "stage2"}, {"patch_embed3", "stage3"}}};
  const Calls calls(wiring, model);
  if (wiring.called() || !calls.has("stage1")) return wiring.chain(model.parts, input);
  Tensor output = calls("stem", input);
  for (const auto& [patches, stage] : kStages) output = calls(stage, embedded(wiring, model, patches, output));
  constexpr std::array<std::string_view, 4> kLast = {"norm", "global_pool", "head_drop", "head"};
  return wiring.chain_named(model, kLast, output);
}

inline constexpr std::array<std::string_view, 1> kModels = {"Visformer"};

}  // namespace visformer_detail

inline constexpr std::array<BlockRule, 1> kVisformerBlocks = {
    {{visformer_detail::kModels, visformer_detail::wire_model, nullptr}}};

}  // namespace gpumem::connect
