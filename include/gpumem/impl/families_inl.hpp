#pragma once

#include <array>

#include "gpumem/connect/families.hpp"
#include "gpumem/connect/gpt2.hpp"

namespace gpumem::connect {

GPUMEM_INLINE std::span<const Family* const> families() {
  static const std::array<const Family*, 1> kFamilies = {&gpt2()};
  return kFamilies;
}

}  // namespace gpumem::connect
