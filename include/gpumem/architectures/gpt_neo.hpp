// GPT-Neo: GPT-2's block with unbiased queries, keys and values, and attention written out in float32.
// Source: transformers 4.48, models/gpt_neo/modeling_gpt_neo.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& gpt_neo();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/gpt_neo_inl.hpp"
#endif
