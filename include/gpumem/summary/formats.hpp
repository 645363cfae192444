// The list of all summary formats. To add one: a file here and a row in the list of formats_inl.hpp. A program with a
// format of its own passes a longer list to read().
#pragma once

#include <span>
#include <vector>

#include "gpumem/summary/format.hpp"

namespace gpumem::summary {

using Formats = std::vector<const Format*>;

/// Every format that gpumem reads.
[[nodiscard]] const Formats& formats();

}  // namespace gpumem::summary
