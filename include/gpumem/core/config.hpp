// Enters: the macro GPUMEM_HEADER_ONLY, set by the CMake target gpumem::headers.
// Leaves: GPUMEM_INLINE, which marks every body under impl/, and the version.
#pragma once

#define GPUMEM_VERSION_MAJOR 0
#define GPUMEM_VERSION_MINOR 1
#define GPUMEM_VERSION_PATCH 0
#define GPUMEM_VERSION_STRING "0.1.0"

// The bodies are written once. Compiled into the library they are ordinary functions; included from
// the headers they must be inline, or two translation units would define them twice.
#if defined(GPUMEM_HEADER_ONLY)
#define GPUMEM_INLINE inline
#else
#define GPUMEM_INLINE
#endif
