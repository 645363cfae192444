// Swin: attention within windows, which every other block shifts, in stages of fewer and wider patches. Images whose
// patches do not fill the windows are not known.
// Source: transformers 4.48, models/swin/modeling_swin.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& swin();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/swin_inl.hpp"
#endif
