// Input: a block of a known class that a table cut at a depth shows on one line: what it reads, what it returns, and
// the parameters of all its layers.
// Output: its layers, with widths that follow from these: the blocks of ResNet, RegNet, MobileNetV2 and V3 and
// EfficientNet, DenseNet's layers, a convolution with its norm and activation. If no widths give the exact count, the
// nearest smaller count is taken, the rest counts as bare parameters, and a warning says so. If more than a third is
// left over, the block gets the bounds of an unknown class (opaque.hpp).
// Source: torchvision.models.resnet, regnet, mobilenetv2, mobilenetv3, efficientnet, densenet.
#pragma once

#include <string_view>

#include "gpumem/connect/containers.hpp"
#include "gpumem/core/shape.hpp"

namespace gpumem::connect {

class Wiring;  // whose bodies use this file

inline constexpr std::string_view kCutBlock = "cut_block";

struct CutBlock {
  core::Shape output;
  std::int64_t parameters = 0;
  std::string_view class_name;
};

/// Whether a layout of the block gives its parameters exactly.
[[nodiscard]] bool expands_exactly(const CutBlock& block, const core::Shape& input);

/// What the block leaves.
[[nodiscard]] Tensor expand_block(Wiring& wiring, Part row, const CutBlock& block, Tensor input);

}  // namespace gpumem::connect
