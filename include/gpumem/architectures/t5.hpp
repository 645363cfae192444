// T5, T5 1.1, flan-T5, mT5 and UMT5's kind: encoder and decoder with relative positions, attention written out. The
// decoder gets as many tokens as the encoder. Source: transformers 4.48, models/t5/modeling_t5.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& t5();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/t5_inl.hpp"
#endif
