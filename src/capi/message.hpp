// Enters: what went wrong, and the caller's buffer. Leaves: one line of it in the buffer, cut where it must be.
#pragma once

#include <cstddef>
#include <string_view>

namespace gpumem::capi {

/// The text and a NUL, or as much as fits in front of "..." and a NUL, with no UTF-8 sequence cut. Bytes that would
/// move a terminal become '?'. Does nothing without a buffer.
void write_text(std::string_view text, char* buffer, std::size_t size) noexcept;

}  // namespace gpumem::capi
