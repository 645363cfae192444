// Input: a framework's name.
// Output: its row. To add one: a file here and a line in the list of frameworks_inl.hpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/search/framework.hpp"

namespace gpumem::search {

/// Every framework whose layouts are known.
[[nodiscard]] std::span<const Framework> frameworks();

/// The framework of this name, or with "any" all of them. They live as long as the program. Errors: invalid_argument,
/// listing the names.
[[nodiscard]] core::Result<std::vector<const Framework*>> frameworks_of(std::string_view name);

}  // namespace gpumem::search

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/search/impl/frameworks_inl.hpp"
#endif
