// ModernBERT: no biases, rotary positions, gated feed-forward layers, and masks that let most layers see only near
// tokens. Attention is PyTorch's scaled_dot_product_attention, and nothing is compiled (reference_compile=False).
// Source: transformers 4.48, models/modernbert/modeling_modernbert.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& modernbert();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/modernbert_inl.hpp"
#endif
