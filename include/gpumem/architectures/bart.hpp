// BART and mBART's kind: encoder and decoder with learned positions, norms after each part. The decoder gets as many
// tokens as the encoder. Source: transformers 4.48, models/bart/modeling_bart.py (BartSdpaAttention).
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& bart();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/bart_inl.hpp"
#endif
