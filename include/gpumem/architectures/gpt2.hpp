// GPT-2: learned positions, one projection for queries, keys and values, plain feed-forward layers, dropout.
// Source: transformers 4.48, models/gpt2/modeling_gpt2.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& gpt2();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/gpt2_inl.hpp"
#endif
