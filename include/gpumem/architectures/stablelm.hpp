// StableLM 2 and StableLM 3B-4E1T: Llama's block with layer norms, and rotary positions on part of each head.
// Source: transformers 4.48, models/stablelm/modeling_stablelm.py (StableLmSdpaAttention).
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& stablelm();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/stablelm_inl.hpp"
#endif
