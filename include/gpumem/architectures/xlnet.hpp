// XLNet: relative attention, whose scores are of content with content, of content with distances and of content with
// whether two tokens are of one segment. Tensors have the tokens on their first axis, so that products read heads where
// they lie. Without permutations and memories of earlier batches, as it is fine-tuned.
// Source: transformers 4.48, models/xlnet/modeling_xlnet.py; arXiv:1906.08237.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& xlnet();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/xlnet_inl.hpp"
#endif
