// Input: the words of a call of gpumem_serve().
// Output: the server's figures in the caller's struct.
#pragma once

#include <cstddef>

#include "gpumem/core/result.hpp"
#include "gpumem/gpumem.h"

namespace gpumem::capi {

/// Errors: invalid_argument for a null pointer, a struct of a wrong size and a flag without a rule; those of
/// Session::serve().
[[nodiscard]] core::Status make_server(const char* config, const char* gpu, const char* engine_version,
                                       const char* const* words, std::size_t count, gpumem_serving_result* result);

}  // namespace gpumem::capi
