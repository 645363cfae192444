// Blocks that are sums of branches: x += drop_path(scale(mixer(norm(x)))), once a mixer (attention, an MLP, a
// convolution), as image transformers have them. The order in which a tree declares norms and mixers tells which comes
// first: norm1 before attn, or after it (Swin V2's res-post-norm). Source: timm 1.0.9, timm.models.vision_transformer,
// swin_transformer, swin_transformer_v2, maxxvit, metaformer, cait, xcit, mlp_mixer, nest, volo, focalnet, davit.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/branch_order.hpp"
#include "gpumem/connect/tokens.hpp"

namespace gpumem::connect {

namespace branches_detail {

using branch_order_detail::Branches;
using branch_order_detail::branches_of;

/// Tokens change places with channels around this part, which mixes tokens.
inline Tensor call_turned(Wiring& wiring, Part part, Tensor input) {
  const Tensor turned = tokens_detail::permuted(wiring, input, {0, 2, 1});
  return tokens_detail::permuted(wiring, wiring.call(part, turned), {0, 2, 1});
}

/// A part that sees tokens as images (xcit.LPI).
inline Tensor call_as_images(Wiring& wiring, Part part, Tensor input) {
  const std::int64_t side = tokens_detail::side_of(tokens_detail::fixed(wiring.shape(input), 1));
  if (side == 0) return wiring.call(part, input);
  const Tensor images = tokens_detail::images_of(wiring, input, side, side);
  return tokens_detail::tokens_of(wiring, wiring.call(part, images));
}

inline Tensor call_branch(Wiring& wiring, const std::vector<Part>& branch, Tensor input) {
  Tensor output = input;
  for (const Part& part : branch) {
    const std::string_view name = wiring.name(part);
    if (name.starts_with("res_scale") || wiring.failed()) continue;  // scales what the branch is added to
    const bool turned = (name == "mlp_tokens" || name == "linear_tokens") && wiring.shape(output).rank() == 3;
    const bool local = name == "local_mp" && wiring.shape(output).rank() == 3;
    output = turned  ? call_turned(wiring, part, output)
             : local ? call_as_images(wiring, part, output)
                     : wiring.call(part, output);
  }
  return output;
}

inline Tensor scaled_input(Wiring& wiring, const std::vector<Part>& branch, Tensor input) {
  for (const Part& part : branch) {
    if (wiring.name(part).starts_with("res_scale")) input = wiring.call(part, input);
  }
  return input;
}

/// pit.Transformer: its pooling sees images, its blocks tokens with a class token in front.
inline Tensor wire_pit_stage(Wiring& wiring, const Container& stage, Tensor input) {
  const Calls calls(wiring, stage);
  if (wiring.called() || !calls.has("blocks") || wiring.shape(input).rank() != 4)
    return wiring.chain(stage.parts, input);
  Tensor images = input;
  const auto pool = wiring.child(stage, "pool");
  if (pool && pool->container) images = Calls(wiring, wiring.container(*pool))("conv", input);
  const core::Shape shape = wiring.shape(images);
  const Tensor tokens = tokens_detail::with_class_token(wiring, tokens_detail::tokens_of(wiring, images));
  const Tensor output = calls("blocks", calls("norm", tokens));
  if (wiring.failed()) return input;
  const std::int64_t count = tokens_detail::fixed(wiring.shape(output), 1) - 1;
  const Tensor others = wiring.operation("slice", {&output, 1},
                                         {{"dim", std::int64_t{1}}, {"start", std::int64_t{1}}, {"length", count}});
  return tokens_detail::images_of(wiring, others, tokens_detail::fixed(shape, 2), tokens_detail::fixed(shape, 3));
}

/// beit.Block scales each branch by a parameter of its own, which no line shows.
inline Tensor scaled_branch(Wiring& wiring, const Container& block, Tensor output) {
  const std::int64_t width = wiring.channels(output);
  if (block.class_name != "Block" || !wiring.stands_in("Beit") || width == 0) return output;
  return wiring.multiply(output, tokens_detail::parameter(wiring, {width}));
}

inline Tensor wire(Wiring& wiring, const Container& block, Tensor input) {
  if (wiring.called()) return wiring.chain(block.parts, input);
  if (wiring.child(block, "blocks")) return wire_pit_stage(wiring, block, input);
  const Branches all = branches_of(wiring, block);
  input = wiring.chain(all.first, input);
  for (const std::vector<Part>& branch : all.branches) {
    const Tensor output = scaled_branch(wiring, block, call_branch(wiring, branch, input));
    if (wiring.failed()) return input;
    const bool same = wiring.shape(output) == wiring.shape(input);
    input = same ? wiring.add(scaled_input(wiring, branch, input), output, false) : output;
  }
  return wiring.chain(all.last, input);
}

inline constexpr std::array<std::string_view, 20> kClasses = {"Transformer",
                                                              "Block",
                                                              "ResPostBlock",
                                                              "EvaBlock",
                                                              "EvaBlockPostNorm",
                                                              "RelPosBlock",
                                                              "ResPostRelPosBlock",
                                                              "PartitionAttentionCl",
                                                              "LayerScaleBlock",
                                                              "XCABlock",
                                                              "SerialBlock",
                                                              "Outlooker",
                                                              "MetaFormerBlock",
                                                              "FocalNetBlock",
                                                              "HieraBlock",
                                                              "TransformerLayer",
                                                              "LinearTransformerBlock",
                                                              "MixerBlock",
                                                              "SpatialGatingBlock",
                                                              "LevitBlock"};

}  // namespace branches_detail

inline constexpr std::array<BlockRule, 1> kBranchBlocks = {
    {{branches_detail::kClasses, branches_detail::wire, nullptr}}};

}  // namespace gpumem::connect
