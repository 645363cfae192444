// GPT-BigCode (SantaCoder, StarCoder): GPT-2's block with plain linear layers, and one head of keys and values for all.
// Source: transformers 4.48, models/gpt_bigcode/modeling_gpt_bigcode.py (GPTBigCodeSdpaAttention).
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& gpt_bigcode();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/gpt_bigcode_inl.hpp"
#endif
