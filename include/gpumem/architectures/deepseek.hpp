// DeepSeek-V2 and V3: attention over keys and values that are compressed (MLA), routed experts and shared ones after
// the first dense layers. The module that predicts further tokens (MTP) is not part of it, as transformers does not
// load it. Which groups experts are chosen from changes no memory here.
// Source: transformers 4.51, models/deepseek_v3/modeling_deepseek_v3.py; arXiv:2412.19437 for the sizes. V2 turns its
// positions as complex numbers; it is taken as V3 here.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& deepseek();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/deepseek_inl.hpp"
#endif
