#pragma once

#include "gpumem/connect/block_rules.hpp"

#include <algorithm>
#include <array>

#include "gpumem/connect/aggregation.hpp"
#include "gpumem/connect/attention_block.hpp"
#include "gpumem/connect/branches.hpp"
#include "gpumem/connect/convnext.hpp"
#include "gpumem/connect/dense.hpp"
#include "gpumem/connect/detection.hpp"
#include "gpumem/connect/fire.hpp"
#include "gpumem/connect/gate.hpp"
#include "gpumem/connect/gated_mlp.hpp"
#include "gpumem/connect/gcvit.hpp"
#include "gpumem/connect/ghost.hpp"
#include "gpumem/connect/hiera.hpp"
#include "gpumem/connect/high_resolution.hpp"
#include "gpumem/connect/inception.hpp"
#include "gpumem/connect/inception_v4.hpp"
#include "gpumem/connect/levit.hpp"
#include "gpumem/connect/maxvit.hpp"
#include "gpumem/connect/metaformer.hpp"
#include "gpumem/connect/mixed_convolution.hpp"
#include "gpumem/connect/nested.hpp"
#include "gpumem/connect/norm_act.hpp"
#include "gpumem/connect/normalizer_free.hpp"
#include "gpumem/connect/plain_blocks.hpp"
#include "gpumem/connect/pyramid.hpp"
#include "gpumem/connect/rep_block.hpp"
#include "gpumem/connect/residual.hpp"
#include "gpumem/connect/split_attention.hpp"
#include "gpumem/connect/swin.hpp"
#include "gpumem/connect/token_models.hpp"
#include "gpumem/connect/transformer.hpp"
#include "gpumem/connect/visformer.hpp"

namespace gpumem::connect {

namespace block_rules_detail {

/// One row a file.
inline constexpr std::array<std::span<const BlockRule>, 31> kFamilies = {{
    kAggregationBlocks,
    kAttentionBlocks,
    kBranchBlocks,
    kConvnextBlocks,
    kDenseBlocks,
    kDetectionBlocks,
    kFireBlocks,
    kGateBlocks,
    kGatedMlpBlocks,
    kGcvitBlocks,
    kGhostBlocks,
    kHieraBlocks,
    kHighResolutionBlocks,
    kInceptionBlocks,
    kInceptionV4Blocks,
    kLevitBlocks,
    kMaxvitBlocks,
    kMetaformerBlocks,
    kMixedConvolutionBlocks,
    kNestedBlocks,
    kNormActBlocks,
    kNormalizerFreeBlocks,
    kPlainBlocks,
    kPyramidBlocks,
    kRepBlocks,
    kResidualBlocks,
    kSplitAttentionBlocks,
    kSwinBlocks,
    kTokenModels,
    kTransformerBlocks,
    kVisformerBlocks,
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
