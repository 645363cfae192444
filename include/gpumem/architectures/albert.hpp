// ALBERT: one block, which the hidden states go through as often as there are layers; narrow embeddings.
// Source: transformers 4.48, models/albert/modeling_albert.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& albert();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/albert_inl.hpp"
#endif
