// DeBERTa-v2 and v3: disentangled attention. Scores of content with content, of content with distances and of distances
// with content are written out, and gathered by how far tokens are from each other.
// Source: transformers 4.48, models/deberta_v2/modeling_deberta_v2.py; arXiv:2006.03654.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& deberta();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/deberta_inl.hpp"
#endif
