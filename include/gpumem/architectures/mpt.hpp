// MPT: ALiBi, attention written out, no biases.
// Source: transformers 4.48, models/mpt/modeling_mpt.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& mpt();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/mpt_inl.hpp"
#endif
