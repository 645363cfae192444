// Output: every architecture that gpumem knows. To add one: a file in this folder and a row in
// impl/architecture_list_inl.hpp.
#pragma once

#include <vector>

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

using Architectures = std::vector<const Architecture*>;

[[nodiscard]] const Architectures& architectures();

}  // namespace gpumem::architectures
