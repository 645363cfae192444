// Input: bytes that may be a gzip file (RFC 1952).
// Output: what is packed in it.
// Units: bytes.
#pragma once

#include <string>
#include <string_view>

#include "gpumem/core/result.hpp"

namespace gpumem::core {

/// Whether the bytes begin as a gzip file does.
[[nodiscard]] constexpr bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1F\x8B"); }

/// All that is packed. Errors: malformed_input for what is damaged, cut off, or unpacks to more than `most` bytes.
[[nodiscard]] Result<std::string> unpack_gzip(std::string_view bytes, std::size_t most);

}  // namespace gpumem::core
