// Input: the macro GPUMEM_HEADER_ONLY, which the CMake target gpumem::headers sets.
// Output: GPUMEM_INLINE, which marks every body under impl/, and the version.
#pragma once

#include "gpumem/core/version.hpp"

// The bodies are written once. Compiled into the library they are ordinary functions; included from
// the headers they must be inline, or two translation units would define them twice.
#if defined(GPUMEM_HEADER_ONLY)
#define GPUMEM_INLINE inline
#else
#define GPUMEM_INLINE
#endif
