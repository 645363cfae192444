// Input: the words of a call of gpumem_post_training().
// Output: the job's figures in the caller's struct.
#pragma once

#include <cstddef>

#include "gpumem/core/result.hpp"
#include "gpumem/gpumem.h"

namespace gpumem::capi {

/// Errors: invalid_argument for a null pointer, a struct of a wrong size and an option that is none; those of
/// posttrain::read_words() and Session::post_training().
[[nodiscard]] core::Status make_post_training(const char* model, const char* gpu, const char* const* options,
                                              std::size_t option_count, const char* const* words, std::size_t count,
                                              gpumem_post_training_result* result);

}  // namespace gpumem::capi
