// Falcon: attention and feed-forward layer side by side; one key and value for all heads (7B), one a group (40B,
// 180B), or one a head with ALiBi (RW).
// Source: transformers 4.48, models/falcon/modeling_falcon.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& falcon();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/falcon_inl.hpp"
#endif
