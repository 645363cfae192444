// Llamas with experts in place of the feed-forward layer: Mixtral, Qwen2-MoE (with a shared expert), Qwen3-MoE.
// Source: transformers 4.48 (Qwen3-MoE: 4.51), models/mixtral/modeling_mixtral.py, qwen2_moe, qwen3_moe: a loop over
// the experts. Which tokens go where depends on the data; here every expert gets as many.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& mixtral();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/mixtral_inl.hpp"
#endif
