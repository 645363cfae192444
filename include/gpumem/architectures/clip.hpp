// CLIP: a tower for texts and one for images, projected to one width, and the contrastive loss of their products. Texts
// are taken to be without padding.
// Source: transformers 4.48, models/clip/modeling_clip.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& clip();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/clip_inl.hpp"
#endif
