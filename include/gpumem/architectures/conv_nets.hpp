// The modules of convolutional nets of torchvision and timm that compute more than their parts in a row: dense blocks,
// Fire, Ghost, squeeze-and-excitation, mixed convolutions, norms with an activation, normalizer-free nets, ConvNeXt's
// block; and those that do not. Residual blocks are in residual_nets.hpp, branches in branching_nets.hpp.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "gpumem/architectures/image_tokens.hpp"

namespace gpumem::architectures {

// Containers whose forward() calls their parts one after the other, in the order in which they are declared: models,
// stages, stems, classifiers. Source: torchvision.models, timm 1.0.9.

namespace plain_detail {

inline Tensor call(Forward&, const Module& block, Tensor input) { return block.in_order(input); }

inline constexpr std::array<std::string_view, 36> kModels = {
    "AlexNet",     "ByobNet",      "ConvMixer",      "ConvNeXt",       "CspNet",      "DLA",
    "DPN",         "DenseNet",     "EfficientNet",   "EfficientNetV2", "FastVit",     "FocalNet",
    "GhostNet",    "GoogLeNet",    "HighPerfGpuNet", "Inception3",     "InceptionV3", "MNASNet",
    "MaxVit",      "MaxxVit",      "MetaFormer",     "MetaNeXt",       "MobileNetV2", "MobileNetV3",
    "NormFreeNet", "RegNet",       "RepGhostNet",    "ResNet",         "ResNetV2",    "RexNet",
    "SENet",       "ShuffleNetV2", "SqueezeNet",     "TResNet",        "VGG",         "VovNet"};
inline constexpr std::array<std::string_view, 17> kStages = {"AnyStage",
                                                             "ConvNeXtStage",
                                                             "DarkStage",
                                                             "Encoder",
                                                             "FastVitStage",
                                                             "FocalNetStage",
                                                             "HighPerfGpuStage",
                                                             "LevitStage",
                                                             "MaxxVitStage",
                                                             "MetaNeXtStage",
                                                             "OsaStage",
                                                             "RegStage",
                                                             "RepVitStage",
                                                             "ResNetStage",
                                                             "SwinTransformerStage",
                                                             "SwinTransformerV2CrStage",
                                                             "SwinTransformerV2Stage"};
inline constexpr std::array<std::string_view, 44> kParts = {"BlockParams",
                                                            "BnActConv2d",
                                                            "CatBnAct",
                                                            "ClassifierHead",
                                                            "Conv2dNormActivation",
                                                            "Conv3dNormActivation",
                                                            "ConvBNAct",
                                                            "ConvBNActivation",
                                                            "ConvBNReLU",
                                                            "ConvMlp",
                                                            "ConvNorm",
                                                            "ConvNormAct",
                                                            "ConvNormActivation",
                                                            "DSConv",
                                                            "DenseLayer",
                                                            "DenseTransition",
                                                            "Downsample2d",
                                                            "DownsampleAvg",
                                                            "DownsampleConv",
                                                            "Downsampling",
                                                            "FastRCNNConvFCHead",
                                                            "KeypointRCNNHeads",
                                                            "KeypointRCNNPredictor",
                                                            "LevitMlp",
                                                            "LightConvBNAct",
                                                            "LinearBottleneck",
                                                            "MLP",
                                                            "MLPBlock",
                                                            "MaskRCNNHeads",
                                                            "MaskRCNNPredictor",
                                                            "MaxVitBlock",
                                                            "Mlp",
                                                            "MlpHead",
                                                            "NormLinear",
                                                            "NormMlpClassifierHead",
                                                            "RelPosMlp",
                                                            "RepVitMlp",
                                                            "RepVitStem",
                                                            "SepConv",
                                                            "SeparableConvNormAct",
                                                            "SequentialAppendList",
                                                            "SimpleStemIN",
                                                            "Stem",
                                                            "Stem16"};

}  // namespace plain_detail

inline constexpr std::array<ModuleForward, 3> kPlainModules = {{{plain_detail::kModels, plain_detail::call},
                                                                {plain_detail::kStages, plain_detail::call},
                                                                {plain_detail::kParts, plain_detail::call}}};

// DenseNet's blocks: each layer reads all that the block has made so far, concatenated. Source: torchvision.models
// .densenet: _DenseBlock, _DenseLayer (batch norm, activation, convolution, twice).

namespace dense_detail {

/// How many tensors a block joins at most: joins grow with the square of their number.
inline constexpr std::size_t kMost = 1000;

inline Tensor call_block(Forward& f, const Module& block, Tensor input) {
  const std::vector<Module> layers = block.parts();
  if (layers.size() > kMost) {
    f.fail("holds a dense block of more than 1,000 layers");
    return input;
  }
  std::vector<Tensor> features = {input};
  for (const Module& layer : layers) {
    const Tensor all = f.concatenate(features, 1);
    features.push_back(layer.call(all));
  }
  return f.concatenate(features, 1);
}

inline Tensor call_layer(Forward&, const Module& layer, Tensor input) { return layer.in_order(input); }

inline constexpr std::array<std::string_view, 2> kBlock = {"_DenseBlock", "DenseBlock"};
inline constexpr std::array<std::string_view, 1> kLayer = {"_DenseLayer"};

}  // namespace dense_detail

inline constexpr std::array<ModuleForward, 2> kDenseBlocks = {
    {{dense_detail::kBlock, dense_detail::call_block}, {dense_detail::kLayer, dense_detail::call_layer}}};

// SqueezeNet's Fire: a convolution, and two that both read what it leaves, side by side. Source:
// torchvision.models.squeezenet.

namespace fire_detail {

inline constexpr std::size_t kParts = 6;  // squeeze, expand1x1, expand3x3, an activation after each

inline Tensor call(Forward& f, const Module& block, Tensor input) {
  const std::vector<Module> parts = block.parts();
  if (parts.size() != kParts) return block.in_order(input);
  const auto pair = [&](std::size_t first, Tensor read) { return parts[first + 1].call(parts[first].call(read)); };
  const Tensor squeezed = pair(0, input);
  const Tensor small = pair(2, squeezed);
  return f.concatenate({small, pair(4, squeezed)}, 1);
}

inline constexpr std::array<std::string_view, 1> kFire = {"Fire"};

}  // namespace fire_detail

inline constexpr std::array<ModuleForward, 1> kFireBlocks = {{{fire_detail::kFire, fire_detail::call}}};

// GhostNet's and RepGhost's blocks: half of the channels by a convolution, half by a cheap one of the first half.
// Source: timm 1.0.9, timm.models.ghostnet, repghost.

namespace ghost_detail {

inline Tensor call_module(Forward& f, const Module& block, Tensor input) {
  if (!block.has("cheap_operation")) return block.in_order(input);
  const Tensor first = block("primary_conv", input);
  const Tensor second = block("cheap_operation", first);
  const Tensor both = f.concatenate({first, second}, 1);
  if (!block.has("short_conv")) return both;
  // GhostModuleV2: a gate of the whole block's input, at half the size.
  Tensor gate = f.call("avg_pool2d", {input}, {{"kernel_size", std::int64_t{2}}, {"stride", std::int64_t{2}}});
  gate = block("gate_fn", block("short_conv", gate));
  gate = f.call("upsample", {gate}, {{"size", Sizes{f.size(both, 2), f.size(both, 3)}}});
  return f.multiply(both, gate);
}

/// The fusion's branches, each after its norm, are added to the cheap half.
inline Tensor call_rep_module(Forward& f, const Module& block, Tensor input) {
  if (!block.has("cheap_operation")) return block.in_order(input);
  const Tensor first = block("primary_conv", input);
  Tensor second = block("cheap_operation", first);
  if (block.has("fusion_bn")) second = f.add(second, block("fusion_bn", first));
  return block("relu", second);
}

inline Tensor call_bottleneck(Forward& f, const Module& block, Tensor input) {
  if (!block.has("ghost1")) return block.in_order(input);
  const Tensor depthwise = block("bn_dw", block("conv_dw", block("ghost1", input)));
  const Tensor output = block("ghost2", block("se", depthwise));
  const Tensor shortcut = block("shortcut", input);
  return f.shape(output) == f.shape(shortcut) ? add_into(f, output, shortcut) : output;
}

}  // namespace ghost_detail

inline constexpr std::array<ModuleForward, 3> kGhostBlocks = {
    {{names<"GhostModule", "GhostModuleV2">, ghost_detail::call_module},
     {names<"RepGhostModule">, ghost_detail::call_rep_module},
     {names<"GhostBottleneck", "RepGhostBottleneck">, ghost_detail::call_bottleneck}}};

// Blocks that scale their input by what they compute of it: squeeze-and-excitation (pool to one pixel, two
// convolutions, a sigmoid). timm pools by Tensor.mean, which no row shows. Source: torchvision.ops.SqueezeExcitation
// (scale * input), timm 1.0.9: timm.layers.squeeze_excite, timm.layers.eca, timm.models.senet.SEModule.

namespace gate_detail {

/// torchvision declares its modules as it calls them, except the activation between the convolutions.
inline Tensor call_squeeze(Forward& f, const Module& block, Tensor input) {
  const bool declared = block.has("avgpool") && !block.rows_are_calls();
  const Tensor scale =
      declared ? block({"avgpool", "fc1", "activation", "fc2", "scale_activation"}, input) : block.in_order(input);
  return f.multiply(scale, input);
}

inline bool one_pixel(const core::Shape& shape) {
  return shape.rank() == 4 && shape[2] == core::Dim::fixed(1) && shape[3] == core::Dim::fixed(1);
}

inline Tensor pooled(Forward& f, Tensor input) {
  if (one_pixel(f.shape(input))) return input;
  return f.call("adaptive_avg_pool2d", {input}, {{"output_size", std::int64_t{1}}});
}

/// x * gate(mean of x's pixels), the mean taken without a module.
inline Tensor call_excite(Forward& f, const Module& block, Tensor input) {
  const std::vector<Module> parts = block.parts();
  if (f.rank(input) != 4 || parts.empty()) return block.in_order(input);
  if (f.channels_last(input)) {
    const Tensor mean = f.call("mean", {input}, {{"dim", Sizes{1, 2}}, {"keepdim", true}});
    return f.multiply(input, block.in_order(mean));
  }
  const bool pools = parts.front().op() == "adaptive_avg_pool2d";
  return f.multiply(input, block.in_order(pools ? input : pooled(f, input)));
}

/// timm.layers.EcaModule: a convolution along the channels of one pixel.
inline Tensor call_eca(Forward& f, const Module& block, Tensor input) {
  if (f.rank(input) != 4 || !block.has("conv")) return block.in_order(input);
  const std::int64_t channels = f.size(input, 1);
  Tensor scale = f.call("mean", {input}, {{"dim", Sizes{2, 3}}});
  scale = f.call("unsqueeze", {scale}, {{"dim", std::int64_t{1}}});
  return f.multiply(input, reshaped(f, block.in_order(scale), {channels, 1, 1}));
}

inline constexpr std::array<std::string_view, 5> kExcite = {"SEModule", "SqueezeExcite", "EffectiveSEModule",
                                                            "SqueezeExciteCl", "SEWithNorm"};
inline constexpr std::array<std::string_view, 1> kSqueeze = {"SqueezeExcitation"};

}  // namespace gate_detail

inline constexpr std::array<ModuleForward, 3> kGateBlocks = {
    {{gate_detail::kSqueeze, gate_detail::call_squeeze},
     {gate_detail::kExcite, gate_detail::call_excite},
     {names<"EcaModule", "CecaModule">, gate_detail::call_eca}}};

// Convolutions of several kernel sizes side by side, each on its part of the channels (MixNet), and GCNet's gate, which
// weighs pixels by a softmax. Source: timm 1.0.9, timm.layers.mixed_conv2d, timm.layers.global_context.

namespace mixed_convolution_detail {

inline Tensor call_mixed(Forward& f, const Module& block, Tensor input) {
  const std::vector<Module> parts = block.parts();
  std::int64_t sum = 0;
  for (const Module& part : parts) sum += part.width("in_channels").value_or(0);
  if (sum != f.channels(input) || parts.size() < 2) return block.in_order(input);
  std::vector<Tensor> outputs;
  std::int64_t start = 0;
  for (const Module& part : parts) {
    const std::int64_t width = part.width("in_channels").value_or(0);
    outputs.push_back(part.call(f.slice(input, 1, start, width)));
    start += width;
  }
  return f.concatenate(outputs, 1);
}

/// GlobalContext: a mean of all pixels by learned weights, which scales or is added to each pixel.
inline Tensor call_context(Forward& f, const Module& block, Tensor input) {
  if (f.rank(input) != 4 || !block.has("conv_attn")) return block.in_order(input);
  const std::int64_t channels = f.size(input, 1);
  const std::int64_t pixels = f.size(input, 2) * f.size(input, 3);
  Tensor weights = reshaped(f, block("conv_attn", input), {pixels, 1});
  weights = f.call("softmax", {weights}, {{"dim", std::int64_t{1}}});
  const Tensor flat = reshaped(f, input, {channels, pixels});
  Tensor context = f.call("matmul", {flat, weights});
  context = reshaped(f, context, {channels, 1, 1});
  Tensor output = input;
  if (block.has("mlp_scale")) output = f.multiply(output, block("gate", block("mlp_scale", context)));
  if (block.has("mlp_add")) output = f.add(output, block("mlp_add", context));
  return output;
}

}  // namespace mixed_convolution_detail

inline constexpr std::array<ModuleForward, 2> kMixedConvolutions = {
    {{names<"MixedConv2d">, mixed_convolution_detail::call_mixed},
     {names<"GlobalContext">, mixed_convolution_detail::call_context}}};

// A normalisation and the activation after it in one module: timm's BatchNormAct2d, GroupNormAct, LayerNormAct2d. The
// module is the normalisation; what it holds (drop, act) is called after it. A tree prints the parts first. Source:
// timm 1.0.9, timm.layers.norm_act.

namespace norm_act_detail {

inline Tensor call(Forward&, const Module& block, Tensor input) {
  for (const bool norm : {true, false}) {
    for (const Module& part : block.parts()) {
      if (part.normed_width().has_value() == norm) input = part.call(input);
    }
  }
  return input;
}

}  // namespace norm_act_detail

inline constexpr std::array<ModuleForward, 1> kNormActBlocks = {
    {{names<"BatchNormAct2d", "GroupNormAct", "LayerNormAct2d", "LayerNormAct", "SyncBatchNormAct",
            "FrozenBatchNormAct2d">,
      norm_act_detail::call}}};

// NFNet's block: the activation first, scaled; the shortcut reads it; a gain, a product and a sum at the end. Source:
// timm 1.0.9, timm.models.nfnet.NormFreeBlock.

namespace normalizer_free_detail {

inline Tensor call(Forward& f, const Module& block, Tensor input) {
  constexpr std::array<std::string_view, 9> kMain = {"conv1", "act2", "conv2", "act2b",    "conv2b",
                                                     "attn",  "act3", "conv3", "attn_last"};
  if (!block.has("act1")) return block.in_order(input);
  const Tensor active = f.scale(block("act1", input));
  const Tensor shortcut = block.has("downsample") ? block("downsample", active) : input;
  Tensor output = active;
  for (const std::string_view name : kMain) {
    output = block(name, output);
    const bool gate = name.starts_with("attn") && block.has(name);
    if (gate) output = f.scale(output);
  }
  output = block("drop_path", output);
  output = f.scale(output);
  return f.shape(output) == f.shape(shortcut) ? f.add(output, shortcut) : output;
}

}  // namespace normalizer_free_detail

inline constexpr std::array<ModuleForward, 1> kNormalizerFree = {
    {{names<"NormFreeBlock">, normalizer_free_detail::call}}};

// ConvNeXt's block: input += stochastic_depth(layer_scale * block(input)), where the block permutes images to
// channels last and back; no summary shows layer_scale's product, and a tree not the axes. Source:
// torchvision.models.convnext.CNBlock.

namespace convnext_detail {

/// The layers of the block, then the parameter that scales what they leave.
inline std::vector<Module> layers_of(const Module& block) {
  std::vector<Module> layers;
  for (const Module& part : block.parts()) {
    if (!part.is_container()) layers.push_back(part);
    for (const Module& inner : part.parts()) layers.push_back(inner);
  }
  return layers;
}

inline Tensor call(Forward& f, const Module& block, Tensor input) {
  Tensor output = input;
  int permutes = 0;
  for (const Module& layer : layers_of(block)) {
    const std::string_view op = layer.op();
    if (op == model::kParameterOp) continue;  // layer_scale, where a table counts it
    if (op != "permute") {
      output = layer.call(output);
      continue;
    }
    output = f.permute(output, permutes == 0 ? Sizes{0, 2, 3, 1} : Sizes{0, 3, 1, 2});
    if (++permutes != 2) continue;
    output = f.multiply(f.parameter("layer_scale", {f.size(output, 1), 1, 1}), output);
  }
  return permutes == 2 ? add_into(f, output, input) : output;
}

inline constexpr std::array<std::string_view, 1> kBlock = {"CNBlock"};

}  // namespace convnext_detail

inline constexpr std::array<ModuleForward, 1> kConvnextBlocks = {{{convnext_detail::kBlock, convnext_detail::call}}};

}  // namespace gpumem::architectures
