// Containers whose forward() calls their parts one after the other, in the order in which they are declared: stages,
// stems, classifiers, and models that are made of these. What is in no list is called so too, and counted as a guess
// (Guesses::containers). Source: torchvision.models, timm 1.0.9.
#pragma once

#include <array>

#include "gpumem/connect/block_rule.hpp"

namespace gpumem::connect {

namespace plain_blocks_detail {

inline Tensor wire(Wiring& wiring, const Container& block, Tensor input) { return wiring.chain(block.parts, input); }

inline constexpr std::array<std::string_view, 89> kClasses = {"AlexNet",
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
                                                              "LevitMlp",
                                                              "LevitStage",
                                                              "LightConvBNAct",
                                                              "LinearBottleneck",
                                                              "MLP",
                                                              "MLPBlock",
                                                              "MNASNet",
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

}  // namespace gpumem::connect
