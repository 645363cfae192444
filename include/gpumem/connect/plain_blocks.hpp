// Containers whose forward() calls their parts one after the other, in the order in which they are declared: stages,
// stems, classifiers, and models that are made of these. What is in no list is called so too, and counted as a guess
// (Guesses::containers). Source: torchvision.models, timm 1.0.9.
#pragma once

#include <array>
#include <vector>

#include "gpumem/connect/block_rules.hpp"

namespace gpumem::connect {

namespace plain_blocks_detail {

inline Tensor wire(Wiring& wiring, const Container& block, Tensor input) { return wiring.chain(block.parts, input); }

inline constexpr std::array<std::string_view, 96> kClasses = {"AlexNet",
                                                              "AnyStage",
                                                              "BlockParams",
                                                              "BnActConv2d",
                                                              "ByobNet",
                                                              "CatBnAct",
                                                              "ClassifierHead",
                                                              "Conv2dNormActivation",
                                                              "Conv3dNormActivation",
                                                              "ConvBNAct",
                                                              "ConvBNActivation",
                                                              "ConvBNReLU",
                                                              "ConvMixer",
                                                              "ConvMlp",
                                                              "ConvNeXt",
                                                              "ConvNeXtStage",
                                                              "ConvNorm",
                                                              "ConvNormAct",
                                                              "ConvNormActivation",
                                                              "CspNet",
                                                              "DPN",
                                                              "DSConv",
                                                              "DarkStage",
                                                              "DenseLayer",
                                                              "DenseNet",
                                                              "DenseTransition",
                                                              "Downsample2d",
                                                              "DownsampleAvg",
                                                              "DownsampleConv",
                                                              "Downsampling",
                                                              "EfficientNet",
                                                              "EfficientNetV2",
                                                              "Encoder",
                                                              "FastRCNNConvFCHead",
                                                              "FastVit",
                                                              "FastVitStage",
                                                              "FocalNet",
                                                              "FocalNetStage",
                                                              "GhostNet",
                                                              "GoogLeNet",
                                                              "HighPerfGpuNet",
                                                              "HighPerfGpuStage",
                                                              "Inception3",
                                                              "InceptionV3",
                                                              "KeypointRCNNHeads",
                                                              "KeypointRCNNPredictor",
                                                              "LevitMlp",
                                                              "LevitStage",
                                                              "LightConvBNAct",
                                                              "LinearBottleneck",
                                                              "MLP",
                                                              "MLPBlock",
                                                              "MNASNet",
                                                              "MaskRCNNHeads",
                                                              "MaskRCNNPredictor",
                                                              "MaxVit",
                                                              "MaxVitBlock",
                                                              "MaxxVit",
                                                              "MaxxVitStage",
                                                              "MetaFormer",
                                                              "MetaNeXt",
                                                              "MetaNeXtStage",
                                                              "Mlp",
                                                              "MlpHead",
                                                              "MobileNetV2",
                                                              "MobileNetV3",
                                                              "NormFreeNet",
                                                              "NormLinear",
                                                              "NormMlpClassifierHead",
                                                              "OsaStage",
                                                              "RegNet",
                                                              "RegStage",
                                                              "RelPosMlp",
                                                              "RepGhostNet",
                                                              "RepVitMlp",
                                                              "RepVitStage",
                                                              "RepVitStem",
                                                              "ResNet",
                                                              "ResNetStage",
                                                              "ResNetV2",
                                                              "RexNet",
                                                              "SENet",
                                                              "SepConv",
                                                              "SeparableConvNormAct",
                                                              "SequentialAppendList",
                                                              "ShuffleNetV2",
                                                              "SimpleStemIN",
                                                              "SqueezeNet",
                                                              "Stem",
                                                              "Stem16",
                                                              "SwinTransformerStage",
                                                              "SwinTransformerV2CrStage",
                                                              "SwinTransformerV2Stage",
                                                              "TResNet",
                                                              "VGG",
                                                              "VovNet"};

}  // namespace plain_blocks_detail

inline constexpr std::array<BlockRule, 1> kPlainBlocks = {
    {{plain_blocks_detail::kClasses, plain_blocks_detail::wire, nullptr}}};

// torchvision's vision transformer: x = input + attention(ln_1(input)), x + mlp(ln_2(x)). PyTorch's own encoder
// layer: x = norm1(input + attention(input)), norm2(x + linear2(relu(linear1(x)))), or with each norm first where the
// order of a table's rows says so; a tree does not tell, and PyTorch's default is last. Source:
// torchvision.models.vision_transformer.EncoderBlock, torch.nn.TransformerEncoderLayer.

namespace transformer_detail {

inline Tensor wire_encoder_block(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::size_t kParts = 5;  // ln_1, self_attention, dropout, ln_2, mlp
  const std::span<const Part> parts = block.parts;
  if (parts.size() != kParts) return wiring.chain(parts, input);
  const core::Shape images = wiring.shape(input);  // a tree shows nothing between the projection and the first block
  if (images.rank() == 4) {
    const core::Checked tokens = core::Checked(images[2].size) * core::Checked(images[3].size) + 1;
    input = wiring.as_sequence(input, tokens.value().value_or(0), images[1].size);
  }
  const Tensor attended = wiring.chain(parts.first(3), input);
  const Tensor sum = wiring.add(attended, input, false);
  return wiring.add(sum, wiring.chain(parts.subspan(3), sum), false);
}

/// A tree shows the output projection before the attention whose output it reads.
inline Tensor wire_attention(Wiring& wiring, const Container& block, Tensor input) {
  for (const bool attention : {true, false}) {
    for (const Part& part : block.parts) {
      if ((wiring.op(part) == "multihead_attention") == attention) input = wiring.call(part, input);
    }
  }
  return input;
}

/// The parts of an encoder layer in the order of their calls, as its names or a table's rows tell.
inline std::vector<Part> encoder_calls(const Wiring& wiring, const Container& block) {
  constexpr std::array<std::string_view, 8> kOrder = {"self_attn", "dropout1", "norm1",    "linear1",
                                                      "dropout",   "linear2",  "dropout2", "norm2"};
  if (wiring.called()) return block.parts;
  std::vector<Part> parts;
  for (const std::string_view name : kOrder) {
    if (const auto part = wiring.child(block, name)) parts.push_back(*part);
  }
  return parts;
}

inline Tensor wire_encoder_layer(Wiring& wiring, const Container& block, Tensor input) {
  constexpr std::size_t kParts = 8;
  const std::vector<Part> parts = encoder_calls(wiring, block);
  if (parts.size() != kParts) return wiring.chain(block.parts, input);
  const std::span<const Part> all = parts;
  const bool norm_first = wiring.op(parts[0]) == "layer_norm";
  const auto feed_forward = [&](std::size_t from, Tensor tensor) {
    tensor = wiring.call(all[from], tensor);
    tensor = wiring.operation("relu", {&tensor, 1});
    return wiring.chain(all.subspan(from + 1, 3), tensor);
  };
  if (norm_first) {  // norm, attention, dropout, norm, linear, dropout, linear, dropout
    const Tensor sum = wiring.add(input, wiring.chain(all.first(3), input), false);
    return wiring.add(sum, feed_forward(4, wiring.call(all[3], sum)), false);
  }
  const Tensor sum = wiring.call(all[2], wiring.add(input, wiring.chain(all.first(2), input), false));
  return wiring.call(all[7], wiring.add(sum, feed_forward(3, sum), false));
}

inline constexpr std::array<std::string_view, 1> kAttention = {"MultiheadAttention"};
inline constexpr std::array<std::string_view, 1> kEncoderLayer = {"TransformerEncoderLayer"};
inline constexpr std::array<std::string_view, 1> kEncoderBlock = {"EncoderBlock"};

}  // namespace transformer_detail

inline constexpr std::array<BlockRule, 3> kTransformerBlocks = {
    {{transformer_detail::kAttention, transformer_detail::wire_attention, nullptr},
     {transformer_detail::kEncoderLayer, transformer_detail::wire_encoder_layer, nullptr},
     {transformer_detail::kEncoderBlock, transformer_detail::wire_encoder_block, nullptr}}};

}  // namespace gpumem::connect
