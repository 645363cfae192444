// BLOOM: no positions but a bias that falls with the distance (ALiBi), attention written out.
// Source: transformers 4.48, models/bloom/modeling_bloom.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& bloom();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/bloom_inl.hpp"
#endif
