// StarCoder2: Llama's attention with biases, layer norms, a plain feed-forward layer.
// Source: transformers 4.48, models/starcoder2/modeling_starcoder2.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& starcoder2();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/starcoder2_inl.hpp"
#endif
