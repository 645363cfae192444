#pragma once

#include "gpumem/connect/block_rules.hpp"

#include <algorithm>
#include <array>

#include "gpumem/connect/conv_blocks.hpp"
#include "gpumem/connect/detection.hpp"
#include "gpumem/connect/inception.hpp"
#include "gpumem/connect/plain_blocks.hpp"
#include "gpumem/connect/pyramid.hpp"
#include "gpumem/connect/residual.hpp"
#include "gpumem/connect/segmentation.hpp"

namespace gpumem::connect {

namespace block_rules_detail {

/// One row a file.
inline constexpr std::array<std::span<const BlockRule>, 20> kFamilies = {{
    kAggregationBlocks,
    kConvnextBlocks,
    kDenseBlocks,
    kDetectionBlocks,
    kFireBlocks,
    kGateBlocks,
    kGhostBlocks,
    kHighResolutionBlocks,
    kInceptionBlocks,
    kInceptionV4Blocks,
    kMixedConvolutionBlocks,
    kNormActBlocks,
    kNormalizerFreeBlocks,
    kPlainBlocks,
    kRepBlocks,
    kResidualBlocks,
    kSegmentationBlocks,
    kSplitAttentionBlocks,
    kTransformerBlocks,
    kXceptionBlocks,
}};

}  // namespace block_rules_detail

GPUMEM_INLINE const BlockRule* find_block_rule(std::string_view class_name) {
  for (const std::span<const BlockRule> family : block_rules_detail::kFamilies) {
    for (const BlockRule& rule : family) {
      if (std::find(rule.classes.begin(), rule.classes.end(), class_name) != rule.classes.end()) return &rule;
    }
  }
  return nullptr;
}

}  // namespace gpumem::connect
