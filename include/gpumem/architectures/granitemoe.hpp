// GraniteMoe (Granite 3.0 and PowerMoE): Granite's decoder, whose experts hold their weights in one tensor. The tokens
// are copied in the order of their experts; each expert multiplies its own rows of them.
// Source: transformers 4.48, models/granitemoe/modeling_granitemoe.py; arXiv:2408.13359.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& granitemoe();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/granitemoe_inl.hpp"
#endif
