// GPT-J: attention and feed-forward layer side by side after one norm, rotary positions on part of each head,
// attention written out in float32. Source: transformers 4.48, models/gptj/modeling_gptj.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& gptj();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/gptj_inl.hpp"
#endif
