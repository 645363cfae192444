#pragma once

#include "gpumem/ops/catalogue.hpp"

#include "gpumem/ops/activation.hpp"
#include "gpumem/ops/adapter.hpp"
#include "gpumem/ops/arithmetic.hpp"
#include "gpumem/ops/attention.hpp"
#include "gpumem/ops/collective.hpp"
#include "gpumem/ops/composite.hpp"
#include "gpumem/ops/conv.hpp"
#include "gpumem/ops/embedding.hpp"
#include "gpumem/ops/experts.hpp"
#include "gpumem/ops/linear.hpp"
#include "gpumem/ops/loss.hpp"
#include "gpumem/ops/norm.hpp"
#include "gpumem/ops/opaque.hpp"
#include "gpumem/ops/pointwise.hpp"
#include "gpumem/ops/pool.hpp"
#include "gpumem/ops/recurrent.hpp"
#include "gpumem/ops/resample.hpp"
#include "gpumem/ops/scan.hpp"
#include "gpumem/ops/view.hpp"

namespace gpumem::ops {

namespace catalogue_detail {

/// The families, one row a file.
inline constexpr std::array<std::span<const Op>, 24> kFamilies = {{
    kActivationOps, kAdapterOps,   kArithmeticOps, kAttentionOps, kCollectiveOps, kCompositeOps,
    kConvOps,       kDropoutOps,   kEmbeddingOps,  kExpertsOps,   kImagesOps,     kLinearOps,
    kLossOps,       kNormOps,      kOpaqueOps,     kParameterOps, kPointwiseOps,  kPoolOps,
    kPositionsOps,  kRecurrentOps, kResampleOps,   kRoiOps,       kScanOps,       kViewOps,
}};

GPUMEM_INLINE Catalogue all() {
  Catalogue result;
  for (const std::span<const Op> family : kFamilies) {
    for (const Op& op : family) result.push_back(&op);
  }
  return result;
}

}  // namespace catalogue_detail

GPUMEM_INLINE const Catalogue& catalogue() {
  static const Catalogue kAll = catalogue_detail::all();
  return kAll;
}

GPUMEM_INLINE model::Vocabulary vocabulary_of(const Catalogue& ops) {
  std::vector<const model::OpTraits*> traits;
  traits.reserve(ops.size());
  for (const Op* op : ops) traits.push_back(&op->traits);
  return model::Vocabulary(traits);
}

GPUMEM_INLINE const model::Vocabulary& vocabulary() {
  static const model::Vocabulary kAll = vocabulary_of(catalogue());
  return kAll;
}

}  // namespace gpumem::ops
