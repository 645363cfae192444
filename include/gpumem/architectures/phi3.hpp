// Phi-3, Phi-3.5 and Phi-4: queries, keys and values from one projection, gate and values of the feed-forward layer
// from another. Source: transformers 4.48, models/phi3/modeling_phi3.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& phi3();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/phi3_inl.hpp"
#endif
