// OLMo 1 and 2: Llama's block with layer norms that hold no parameters (1), or with norms after attention and
// feed-forward layer and over all queries and keys (2). Source: transformers 4.48, models/olmo/modeling_olmo.py, olmo2.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& olmo();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/olmo_inl.hpp"
#endif
