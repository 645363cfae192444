// ViT and DeiT: images cut into patches, a class token (DeiT: and one for distillation) before them, learned positions.
// Source: transformers 4.48, models/vit/modeling_vit.py (ViTSdpaSelfAttention), deit.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& vit();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/vit_inl.hpp"
#endif
