// Input: the macro GPUMEM_HEADER_ONLY, which the CMake target gpumem::headers sets.
// Output: GPUMEM_INLINE, which marks every body under impl/, and the version; compilers stop at once where C++ is older
// than C++20.
#pragma once

#if __cplusplus <= 201703L
#error "gpumem needs C++20: compile with -std=c++20 (CMake: target_compile_features(X PRIVATE cxx_std_20))"
#include "gpumem needs C++20"  // no such file: compilers stop at it, and say nothing about what follows
#endif

#include "gpumem/core/version.hpp"

// The bodies are written once. Compiled into the library they are ordinary functions; included from
// the headers they must be inline, or two translation units would define them twice.
#if defined(GPUMEM_HEADER_ONLY)
#define GPUMEM_INLINE inline
#else
#define GPUMEM_INLINE
#endif
