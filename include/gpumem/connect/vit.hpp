// Input: the module tree of a HuggingFace ViT (ViTForImageClassification, ViTModel).
// Output: its wiring, with the class token and the positions, which are parameters that print(model) does not show.
// Heads are 64 wide in every published ViT up to ViT-L, 80 in ViT-H.
// Source: transformers 4.51, models/vit/modeling_vit.py.
#pragma once

#include "gpumem/connect/family.hpp"

namespace gpumem::connect {

[[nodiscard]] const Family& vit();

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/vit_inl.hpp"
#endif
