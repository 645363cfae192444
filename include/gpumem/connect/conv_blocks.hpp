// Blocks of convolutional nets, each as its forward() joins its layers: dense blocks, Fire, Ghost,
// squeeze-and-excitation, mixed convolutions, norms with an activation, normalizer-free nets, blocks of several
// branches that become one.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/block_rules.hpp"

namespace gpumem::connect {

// DenseNet's blocks: each layer reads all that the block has made so far, concatenated. Source: torchvision.models
// .densenet: _DenseBlock, _DenseLayer (batch norm, activation, convolution, twice).

namespace dense_detail {

inline Tensor wire_block(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::size_t kMost = 1000;  // the concatenations grow with the square of the layers
  if (block.parts.size() > kMost) {
    wiring.fail({core::ErrorCode::malformed_input, "holds a dense block of more than 1,000 layers", {}});
    return input;
  }
  std::vector<Tensor> features = {input};
  for (const Part& layer : block.parts) {
    const Tensor all = wiring.concatenate(features);
    features.push_back(wiring.call(layer, all));
  }
  return wiring.concatenate(features);
}

inline Tensor wire_layer(Wiring& wiring, const Container& layer, Tensor input) {
  return wiring.chain(layer.parts, input);
}

/// The second batch norm before the row.
inline std::optional<std::size_t> begin_layer(const OpenRows& rows) {
  bool second = false;
  for (std::size_t part = rows.parts.size(); part > 0; --part) {
    if (rows.op(part - 1) != "batch_norm") continue;
    if (second) return part - 1;
    second = true;
  }
  return std::nullopt;
}

/// All layers in a row before it.
inline std::optional<std::size_t> begin_block(const OpenRows& rows) {
  std::size_t begin = rows.parts.size();
  while (begin > 0 && rows.class_name(begin - 1) == "_DenseLayer") --begin;
  return begin < rows.parts.size() ? std::optional(begin) : std::nullopt;
}

inline constexpr std::array<std::string_view, 2> kBlock = {"_DenseBlock", "DenseBlock"};
inline constexpr std::array<std::string_view, 1> kLayer = {"_DenseLayer"};

}  // namespace dense_detail

inline constexpr std::array<BlockRule, 2> kDenseBlocks = {
    {{dense_detail::kBlock, dense_detail::wire_block, dense_detail::begin_block},
     {dense_detail::kLayer, dense_detail::wire_layer, dense_detail::begin_layer}}};

// SqueezeNet's Fire: a convolution, and two that both read what it leaves, side by side. Source:
// torchvision.models.squeezenet.

namespace fire_detail {

inline constexpr std::size_t kParts = 6;  // squeeze, expand1x1, expand3x3, an activation after each

inline Tensor wire(Wiring& wiring, const Container& block, Tensor input) {
  const std::span<const Part> parts = block.parts;
  if (parts.size() != kParts) return wiring.chain(parts, input);
  const Tensor squeezed = wiring.chain(parts.first(2), input);
  const Tensor small = wiring.chain(parts.subspan(2, 2), squeezed);
  const Tensor large = wiring.chain(parts.subspan(4, 2), squeezed);
  return wiring.concatenate(std::array<Tensor, 2>{small, large});
}

inline std::optional<std::size_t> begin(const OpenRows& rows) {
  return rows.parts.size() < kParts ? std::nullopt : std::optional(rows.parts.size() - kParts);
}

inline constexpr std::array<std::string_view, 1> kFire = {"Fire"};

}  // namespace fire_detail

inline constexpr std::array<BlockRule, 1> kFireBlocks = {{{fire_detail::kFire, fire_detail::wire, fire_detail::begin}}};

// GhostNet's and RepGhost's blocks: half of the channels by a convolution, half by a cheap one of the first half.
// Source: timm 1.0.9, timm.models.ghostnet, repghost.

namespace ghost_detail {

inline Tensor wire_module(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("cheap_operation")) return wiring.chain(block.parts, input);
  const Tensor first = calls("primary_conv", input);
  const Tensor second = calls("cheap_operation", first);
  if (wiring.failed()) return input;
  const Tensor both = wiring.concatenate(std::array<Tensor, 2>{first, second});
  if (!calls.has("short_conv")) return both;
  // GhostModuleV2: a gate of the whole block's input, at half the size.
  Tensor gate =
      wiring.operation("avg_pool2d", {&input, 1}, {{"kernel_size", std::int64_t{2}}, {"stride", std::int64_t{2}}});
  gate = calls("gate_fn", calls("short_conv", gate));
  if (wiring.failed()) return input;
  const core::Shape& shape = wiring.shape(both);
  gate = wiring.operation(
      "upsample", {&gate, 1},
      {{"size", std::vector<std::int64_t>{blocks_detail::fixed(shape, 2), blocks_detail::fixed(shape, 3)}}});
  return wiring.multiply(both, gate);
}

/// The fusion's branches, each after its norm, are added to the cheap half.
inline Tensor wire_rep_module(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("cheap_operation")) return wiring.chain(block.parts, input);
  const Tensor first = calls("primary_conv", input);
  Tensor second = calls("cheap_operation", first);
  if (calls.has("fusion_bn") && !wiring.failed()) second = wiring.add(second, calls("fusion_bn", first), false);
  return calls("relu", second);
}

inline Tensor wire_bottleneck(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("ghost1")) return wiring.chain(block.parts, input);
  const Tensor depthwise = calls("bn_dw", calls("conv_dw", calls("ghost1", input)));
  const Tensor output = calls("ghost2", calls("se", depthwise));
  const Tensor shortcut = calls("shortcut", input);
  if (wiring.failed() || !(wiring.shape(output) == wiring.shape(shortcut))) return output;
  return wiring.add(output, shortcut, true);
}

inline constexpr std::array<std::string_view, 2> kModule = {"GhostModule", "GhostModuleV2"};
inline constexpr std::array<std::string_view, 1> kRepModule = {"RepGhostModule"};
inline constexpr std::array<std::string_view, 2> kBottleneck = {"GhostBottleneck", "RepGhostBottleneck"};

}  // namespace ghost_detail

inline constexpr std::array<BlockRule, 3> kGhostBlocks = {
    {{ghost_detail::kModule, ghost_detail::wire_module, nullptr},
     {ghost_detail::kRepModule, ghost_detail::wire_rep_module, nullptr},
     {ghost_detail::kBottleneck, ghost_detail::wire_bottleneck, nullptr}}};

// Blocks that scale their input by what they compute of it: squeeze-and-excitation (pool to one pixel, two
// convolutions, a sigmoid). timm pools by Tensor.mean, which no row shows. Source: torchvision.ops.SqueezeExcitation
// (scale * input), timm 1.0.9: timm.layers.squeeze_excite, timm.layers.eca, timm.models.senet.SEModule.

namespace gate_detail {

/// torchvision declares its modules as it calls them, except the activation between the convolutions.
inline Tensor wire_squeeze(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 5> kOrder = {"avgpool", "fc1", "activation", "fc2", "scale_activation"};
  const bool named = !wiring.called() && wiring.child(block, "avgpool").has_value();
  const Tensor scale = named ? wiring.chain_named(block, kOrder, input) : wiring.chain(block.parts, input);
  return wiring.multiply(scale, input);
}

/// The pooling nearest before.
inline std::optional<std::size_t> begin_squeeze(const OpenRows& rows) {
  for (std::size_t part = rows.parts.size(); part > 0; --part) {
    if (rows.op(part - 1) == "adaptive_avg_pool2d") return part - 1;
  }
  return std::nullopt;
}

inline bool one_pixel(const core::Shape& shape) {
  return shape.rank() == 4 && shape[2] == core::Dim::fixed(1) && shape[3] == core::Dim::fixed(1);
}

inline Tensor pooled(Wiring& wiring, Tensor input) {
  if (wiring.failed() || one_pixel(wiring.shape(input))) return input;
  return wiring.operation("adaptive_avg_pool2d", {&input, 1}, {{"output_size", std::int64_t{1}}});
}

/// x * gate(mean of x's pixels), the mean taken without a module.
inline Tensor wire_excite(Wiring& wiring, const Container& block, Tensor input) {
  const core::Shape& shape = wiring.shape(input);
  if (shape.rank() != 4 || block.parts.empty()) return wiring.chain(block.parts, input);
  if (wiring.channels_last(input)) {
    const Tensor mean =
        wiring.operation("mean", {&input, 1}, {{"dim", std::vector<std::int64_t>{1, 2}}, {"keepdim", true}});
    return wiring.multiply(input, wiring.chain(block.parts, mean));
  }
  const bool pools = wiring.op(block.parts.front()) == "adaptive_avg_pool2d";
  return wiring.multiply(input, wiring.chain(block.parts, pools ? input : pooled(wiring, input)));
}

/// The rows of one pixel before it.
inline std::optional<std::size_t> begin_excite(const OpenRows& rows) {
  std::size_t begin = rows.parts.size();
  while (begin > 0 && one_pixel(rows.shapes[begin])) --begin;
  return begin < rows.parts.size() ? std::optional(begin) : std::nullopt;
}

/// timm.layers.EcaModule: a convolution along the channels of one pixel.
inline Tensor wire_eca(Wiring& wiring, const Container& block, Tensor input) {
  const core::Shape shape = wiring.shape(input);
  const auto conv = wiring.child(block, "conv");
  if (wiring.called() || shape.rank() != 4 || !conv) return wiring.chain(block.parts, input);
  Tensor scale = wiring.operation("mean", {&input, 1}, {{"dim", std::vector<std::int64_t>{2, 3}}});
  scale = wiring.operation("unsqueeze", {&scale, 1}, {{"dim", std::int64_t{1}}});
  scale = wiring.chain(block.parts, scale);
  const std::vector<std::int64_t> pixel = {shape[1].size, 1, 1};
  return wiring.multiply(input, wiring.operation("reshape", {&scale, 1}, {{"shape", pixel}}));
}

inline constexpr std::array<std::string_view, 1> kSqueeze = {"SqueezeExcitation"};
inline constexpr std::array<std::string_view, 5> kExcite = {"SEModule", "SqueezeExcite", "EffectiveSEModule",
                                                            "SqueezeExciteCl", "SEWithNorm"};
inline constexpr std::array<std::string_view, 2> kEca = {"EcaModule", "CecaModule"};

}  // namespace gate_detail

inline constexpr std::array<BlockRule, 3> kGateBlocks = {
    {{gate_detail::kSqueeze, gate_detail::wire_squeeze, gate_detail::begin_squeeze},
     {gate_detail::kExcite, gate_detail::wire_excite, gate_detail::begin_excite},
     {gate_detail::kEca, gate_detail::wire_eca, nullptr}}};

// Convolutions of several kernel sizes side by side, each on its part of the channels (MixNet), and GCNet's gate, which
// weighs pixels by a softmax. Source: timm 1.0.9, timm.layers.mixed_conv2d, timm.layers.global_context.

namespace mixed_convolution_detail {

inline Tensor wire_mixed(Wiring& wiring, const Container& block, Tensor input) {
  std::int64_t sum = 0;
  for (const Part& part : block.parts) sum += wiring.first_width(part, "in_channels").value_or(0);
  if (wiring.called() || sum != wiring.channels(input) || block.parts.size() < 2) {
    return wiring.chain(block.parts, input);
  }
  std::vector<Tensor> outputs;
  std::int64_t start = 0;
  for (const Part& part : block.parts) {
    const std::int64_t width = wiring.first_width(part, "in_channels").value_or(0);
    const Tensor read =
        wiring.operation("slice", {&input, 1}, {{"dim", std::int64_t{1}}, {"start", start}, {"length", width}});
    outputs.push_back(wiring.call(part, read));
    start += width;
  }
  return wiring.failed() ? input : wiring.concatenate(outputs);
}

/// GlobalContext: a mean of all pixels by learned weights, which scales or is added to each pixel.
inline Tensor wire_context(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  const core::Shape shape = wiring.shape(input);
  if (wiring.called() || shape.rank() != 4 || !calls.has("conv_attn")) return wiring.chain(block.parts, input);
  const std::int64_t channels = blocks_detail::fixed(shape, 1);
  const std::int64_t pixels = blocks_detail::fixed(shape, 2) * blocks_detail::fixed(shape, 3);
  Tensor weights = blocks_detail::reshaped(wiring, calls("conv_attn", input), {pixels, 1});
  weights = wiring.operation("softmax", {&weights, 1}, {{"dim", std::int64_t{1}}});
  const Tensor flat = blocks_detail::reshaped(wiring, input, {channels, pixels});
  Tensor context = wiring.operation("matmul", std::array<Tensor, 2>{flat, weights});
  context = blocks_detail::reshaped(wiring, context, {channels, 1, 1});
  if (wiring.failed()) return input;
  Tensor output = input;
  if (calls.has("mlp_scale")) output = wiring.multiply(output, calls("gate", calls("mlp_scale", context)));
  if (calls.has("mlp_add")) output = wiring.add(output, calls("mlp_add", context), false);
  return output;
}

inline constexpr std::array<std::string_view, 1> kMixed = {"MixedConv2d"};
inline constexpr std::array<std::string_view, 1> kContext = {"GlobalContext"};

}  // namespace mixed_convolution_detail

inline constexpr std::array<BlockRule, 2> kMixedConvolutionBlocks = {
    {{mixed_convolution_detail::kMixed, mixed_convolution_detail::wire_mixed, nullptr},
     {mixed_convolution_detail::kContext, mixed_convolution_detail::wire_context, nullptr}}};

// A normalisation and the activation after it in one module: timm's BatchNormAct2d, GroupNormAct, LayerNormAct2d. The
// module is the normalisation; what it holds (drop, act) is called after it. A tree prints the parts first. Source:
// timm 1.0.9, timm.layers.norm_act.

namespace norm_act_detail {

inline Tensor wire(Wiring& wiring, const Container& block, Tensor input) {
  if (wiring.called()) return wiring.chain(block.parts, input);
  for (const bool norm : {true, false}) {
    for (const Part& part : block.parts) {
      if (wiring.printed_width(part).has_value() == norm) input = wiring.call(part, input);
    }
  }
  return input;
}

inline constexpr std::array<std::string_view, 6> kClasses = {
    "BatchNormAct2d", "GroupNormAct", "LayerNormAct2d", "LayerNormAct", "SyncBatchNormAct", "FrozenBatchNormAct2d"};

}  // namespace norm_act_detail

inline constexpr std::array<BlockRule, 1> kNormActBlocks = {
    {{norm_act_detail::kClasses, norm_act_detail::wire, nullptr}}};

// NFNet's block: the activation first, scaled; the shortcut reads it; a gain, a product and a sum at the end. Source:
// timm 1.0.9, timm.models.nfnet.NormFreeBlock.

namespace normalizer_free_detail {

inline Tensor scaled(Wiring& wiring, Tensor tensor) { return wiring.operation("mul", {&tensor, 1}); }

inline Tensor wire(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 9> kMain = {"conv1", "act2", "conv2", "act2b",    "conv2b",
                                                     "attn",  "act3", "conv3", "attn_last"};
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("act1")) return wiring.chain(block.parts, input);
  const Tensor active = scaled(wiring, calls("act1", input));
  const Tensor shortcut = calls.has("downsample") ? calls("downsample", active) : input;
  Tensor output = active;
  for (const std::string_view name : kMain) {
    output = calls(name, output);
    const bool gate = name.starts_with("attn") && calls.has(name);
    if (gate && !wiring.failed()) output = scaled(wiring, output);
  }
  output = calls("drop_path", output);
  if (wiring.failed()) return input;
  output = scaled(wiring, output);
  return wiring.shape(output) == wiring.shape(shortcut) ? wiring.add(output, shortcut, false) : output;
}

inline constexpr std::array<std::string_view, 1> kBlocks = {"NormFreeBlock"};

}  // namespace normalizer_free_detail

inline constexpr std::array<BlockRule, 1> kNormalizerFreeBlocks = {
    {{normalizer_free_detail::kBlocks, normalizer_free_detail::wire, nullptr}}};

// Blocks that are trained as several branches side by side, which are summed and run as one convolution later: RepVGG,
// MobileOne, FastViT, RepGhost, RepViT. Source: timm 1.0.9, timm.models.byobnet, fastvit, repghost, repvit.

namespace rep_block_detail {

/// The sum of what these parts make of one input; parts of a list are branches of their own.
inline std::optional<Tensor> summed(Wiring& wiring, const Container& block, std::span<const std::string_view> names,
                                    Tensor input) {
  std::optional<Tensor> sum;
  const auto add = [&](Part part) {
    const Tensor output = wiring.call(part, input);
    if (!wiring.failed()) sum = sum ? wiring.add(*sum, output, true) : output;
  };
  for (const std::string_view name : names) {
    const auto part = wiring.child(block, name);
    if (!part) continue;
    const bool list = part->container && wiring.class_name(*part) == "ModuleList";
    if (!list) add(*part);
    for (std::size_t at = 0; list && at < wiring.container(*part).parts.size(); ++at) {
      add(wiring.container(*part).parts[at]);
    }
  }
  return sum;
}

/// RepVggBlock, MobileOneBlock, ReparamLargeKernelConv: branches, a gate, an activation.
inline Tensor wire_rep(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 6> kBranches = {"identity", "conv_scale", "conv_1x1",
                                                         "conv_kxk", "large_conv", "small_conv"};
  const Calls calls(wiring, block);
  if (wiring.called()) return wiring.chain(block.parts, input);
  const auto sum = summed(wiring, block, kBranches, input);
  return calls("act", calls("se", calls("attn", sum.value_or(input))));
}

/// RepVggDw of repvit: bn(conv(x) + conv1(x) + x).
inline Tensor wire_depthwise(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::array<std::string_view, 2> kBranches = {"conv", "conv1"};
  const Calls calls(wiring, block);
  const auto sum = wiring.called() ? std::nullopt : summed(wiring, block, kBranches, input);
  if (!sum || wiring.failed()) return wiring.chain(block.parts, input);
  return calls("bn", wiring.add(*sum, input, false));
}

/// RepMixer: x + layer_scale(mixer(x) - norm(x)).
inline Tensor wire_mixer(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("mixer")) return wiring.chain(block.parts, input);
  const Tensor mixed = calls("mixer", input);
  const Tensor difference = wiring.add(mixed, calls("norm", input), false);
  return wiring.add(input, calls("layer_scale", difference), false);
}

/// RepMixerBlock: the mixer, and a sum with what the MLP makes of it. AttentionBlock: two such sums.
inline Tensor wire_mixer_block(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called()) return wiring.chain(block.parts, input);
  const bool attention = calls.has("layer_scale_1");
  Tensor mixed = calls("token_mixer", attention ? calls("norm", input) : input);
  if (wiring.failed()) return input;
  if (attention) mixed = wiring.add(input, calls("drop_path1", calls("layer_scale_1", mixed)), false);
  const Tensor output = calls(attention ? "layer_scale_2" : "layer_scale", calls("mlp", mixed));
  return wiring.add(mixed, calls(attention ? "drop_path2" : "drop_path", output), false);
}

/// RepConditionalPosEnc: x + pos_enc(x).
inline Tensor wire_positions(Wiring& wiring, const Container& block, Tensor input) {
  const Tensor output = wiring.chain(block.parts, input);
  const bool sum = !wiring.called() && !wiring.failed() && wiring.shape(output) == wiring.shape(input);
  return sum ? wiring.add(output, input, false) : output;
}

/// RepViTBlock: token_mixer, se, x + channel_mixer(x).
inline Tensor wire_repvit(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("channel_mixer")) return wiring.chain(block.parts, input);
  const Tensor mixed = calls("se", calls("token_mixer", input));
  return wiring.add(mixed, calls("channel_mixer", mixed), false);
}

/// RepVitDownsample: pre_block, two convolutions, x + ffn(x).
inline Tensor wire_repvit_downsample(Wiring& wiring, const Container& block, Tensor input) {
  const Calls calls(wiring, block);
  if (wiring.called() || !calls.has("ffn")) return wiring.chain(block.parts, input);
  const Tensor small = calls("channel_downsample", calls("spatial_downsample", calls("pre_block", input)));
  return wiring.failed() ? input : wiring.add(small, calls("ffn", small), false);
}

inline constexpr std::array<std::string_view, 3> kRep = {"RepVggBlock", "MobileOneBlock", "ReparamLargeKernelConv"};
inline constexpr std::array<std::string_view, 1> kDepthwise = {"RepVggDw"};
inline constexpr std::array<std::string_view, 1> kMixer = {"RepMixer"};
inline constexpr std::array<std::string_view, 2> kMixerBlock = {"RepMixerBlock", "AttentionBlock"};
inline constexpr std::array<std::string_view, 3> kPositions = {"RepConditionalPosEnc", "ConvPosEnc", "PosConv"};
inline constexpr std::array<std::string_view, 1> kRepvit = {"RepViTBlock"};
inline constexpr std::array<std::string_view, 1> kRepvitDownsample = {"RepVitDownsample"};

}  // namespace rep_block_detail

inline constexpr std::array<BlockRule, 7> kRepBlocks = {
    {{rep_block_detail::kRep, rep_block_detail::wire_rep, nullptr},
     {rep_block_detail::kDepthwise, rep_block_detail::wire_depthwise, nullptr},
     {rep_block_detail::kMixer, rep_block_detail::wire_mixer, nullptr},
     {rep_block_detail::kMixerBlock, rep_block_detail::wire_mixer_block, nullptr},
     {rep_block_detail::kPositions, rep_block_detail::wire_positions, nullptr},
     {rep_block_detail::kRepvit, rep_block_detail::wire_repvit, nullptr},
     {rep_block_detail::kRepvitDownsample, rep_block_detail::wire_repvit_downsample, nullptr}}};

}  // namespace gpumem::connect
