// Input: a framework's name.
// Output: its row, or a question for find_layouts() about it. To add one: a file here and a line in the list of
// frameworks_inl.hpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/search/find_layouts.hpp"
#include "gpumem/search/framework.hpp"

namespace gpumem::search {

/// Every framework whose layouts are known.
[[nodiscard]] std::span<const Framework> frameworks();

/// The framework of this name, or with "any" all of them. They live as long as the program. Errors: invalid_argument,
/// listing the names.
[[nodiscard]] core::Result<std::vector<const Framework*>> frameworks_of(std::string_view name);

/// A question about the layouts of `framework` (a name of frameworks(), or "any") with the allocator that
/// PYTORCH_CUDA_ALLOC_CONF sets; all else as it is where nobody asks for more. Errors: those of frameworks_of() and of
/// device::parse_allocator_options().
[[nodiscard]] core::Result<Question> question_about(std::string_view framework, std::string_view alloc_conf);

}  // namespace gpumem::search
