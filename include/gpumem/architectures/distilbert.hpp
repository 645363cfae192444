// DistilBERT: BERT's encoder without token types and pooler. Source: transformers 4.48,
// models/distilbert/modeling_distilbert.py (DistilBertSdpaAttention).
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& distilbert();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/distilbert_inl.hpp"
#endif
