// GLM-4 (glm), and the release of April 2025 (glm4), which has a norm after each half of a block too.
// Source: transformers 4.51, models/glm/modeling_glm.py, models/glm4/modeling_glm4.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& glm();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/glm_inl.hpp"
#endif
