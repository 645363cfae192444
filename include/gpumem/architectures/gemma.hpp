// Gemma 1, 2 and 3 (text): wide heads, norms that multiply in float32, embeddings times a number; Gemma 2 and 3 with a
// norm after each part too, Gemma 2 with logits below a cap, Gemma 3 with normed queries and keys. Source:
// transformers 4.48 and 4.51, models/gemma/modeling_gemma.py, gemma2, gemma3.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& gemma();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/gemma_inl.hpp"
#endif
