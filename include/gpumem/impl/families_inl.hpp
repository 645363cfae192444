#pragma once

#include "gpumem/connect/families.hpp"

namespace gpumem::connect {

GPUMEM_INLINE std::span<const Family* const> families() { return {}; }

}  // namespace gpumem::connect
