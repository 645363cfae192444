// Phi-1, 1.5 and 2: attention and feed-forward layer side by side after one norm, rotary positions on part of
// each head, biases everywhere. Source: transformers 4.48, models/phi/modeling_phi.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& phi();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/phi_inl.hpp"
#endif
