// GPT-NeoX, Pythia, and StableLM's first models: attention and feed-forward layer side by side, each after its
// own norm. Source: transformers 4.48, models/gpt_neox/modeling_gpt_neox.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& gpt_neox();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/gpt_neox_inl.hpp"
#endif
