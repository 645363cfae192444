// The list of blocks that gpumem can wire. To add one: a row in its family's file, or a new file here and a row in the
// list of block_rules_inl.hpp.
#pragma once

#include <string_view>

#include "gpumem/connect/block_rule.hpp"

namespace gpumem::connect {

/// The rule for containers of this class; null if there is none.
[[nodiscard]] const BlockRule* find_block_rule(std::string_view class_name);

}  // namespace gpumem::connect
