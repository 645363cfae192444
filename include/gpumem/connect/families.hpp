// The list of model families that gpumem can wire. To add one: a file here and a row in the list of families_inl.hpp.
#pragma once

#include <span>

#include "gpumem/connect/family.hpp"

namespace gpumem::connect {

/// In the order in which they are asked.
[[nodiscard]] std::span<const Family* const> families();

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/families_inl.hpp"
#endif
