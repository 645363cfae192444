// Input: an error, and the caller's buffer.
// Output: one line about the error in the buffer, cut if it is too long.
#pragma once

#include <cstddef>
#include <string_view>

namespace gpumem::capi {

/// The text and a NUL, or as much as fits in front of "..." and a NUL, with no UTF-8 sequence cut. Bytes that would
/// move a terminal become '?'. Does nothing without a buffer.
void write_text(std::string_view text, char* buffer, std::size_t size) noexcept;

}  // namespace gpumem::capi
