// Enters: nothing. Leaves: the list of all summary formats. Adding one is one file beside this one and one
// row in the list of formats_inl.hpp; a program with a format of its own passes a longer list to read().
#pragma once

#include <span>
#include <vector>

#include "gpumem/summary/format.hpp"

namespace gpumem::summary {

using Formats = std::vector<const Format*>;

/// Every format that gpumem reads.
[[nodiscard]] const Formats& formats();

}  // namespace gpumem::summary

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/summary/impl/formats_inl.hpp"
#endif
