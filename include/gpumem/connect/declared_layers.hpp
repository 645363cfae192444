// What Wiring does with layers of a tree, whose attributes are declared and whose shapes follow from what they read:
// the bodies of its members for these.
#pragma once

#include "gpumem/connect/wiring.hpp"

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/declared_layers_inl.hpp"
#endif
