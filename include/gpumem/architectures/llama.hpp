// Llama 1 to 3.3, and the models that are built like it: Mistral, Qwen2 and Qwen2.5, Qwen3, Granite.
// Source: transformers 4.48 (Qwen3: 4.51), models/llama/modeling_llama.py and what the others' modular_*.py change in
// it.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& llama();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/llama_inl.hpp"
#endif
