// Input: paths of files; bytes that gzip has packed.
// Output: what the files hold, up to a limit of size and time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "gpumem/core/result.hpp"

namespace gpumem::core {

// Input: a path, and bytes to write.
// Output: the file's bytes, or a written file, or the reason why not.

/// The most bytes that read_file() takes of a regular file: no model summary and no recording is that long.
inline constexpr std::size_t kLargestFile = std::size_t{1}
                                            << (sizeof(std::size_t) > 4 ? 32U : 30U);  // memory of 32 bits
/// The same for a pipe or a device: its size is not known beforehand, and it may have no end.
inline constexpr std::size_t kLargestStream = std::size_t{256} << 20;

/// The whole file; "-" reads standard input. Errors: unreadable_file with the system's reason, also for directories and
/// for what is longer than kLargestFile or kLargestStream.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

/// The same for a path that somebody else chose, who may mean ill: only a regular file of at most `largest` bytes is
/// read, also behind symbolic links. Nothing else is opened, because opening may already block (a FIFO) or act (a
/// device); "-" is a file of that name. Errors: also deadline_exceeded.
[[nodiscard]] Result<std::string> read_regular_file(const std::string& path, std::size_t largest);

/// The front of a file, and how long the whole is.
struct FileFront {
  std::string bytes;
  std::uint64_t size = 0;
};

/// The first `most` bytes of a regular file, or all if there are fewer; as careful as read_regular_file().
[[nodiscard]] Result<FileFront> read_front(const std::string& path, std::size_t most);

/// Makes a file of these bytes, or replaces the one that is there, in one step: the bytes are written to a file next to
/// it, which is renamed, so that nobody ever sees half of it. Errors: unreadable_file with the system's reason; the old
/// file then stays.
[[nodiscard]] Status write_file(const std::string& path, std::string_view content);

/// Becomes another when the file changes, as far as its size and time tell; of a folder, when a file in it or in one of
/// its own folders does, as those of a diffusers pipeline's parts. 0: no such file.
[[nodiscard]] std::uint64_t stamp_of(const std::string& path);

// Input: bytes that may be a gzip file (RFC 1952).
// Output: what is packed in it.
// Units: bytes.

/// Whether the bytes begin as a gzip file does.
[[nodiscard]] constexpr bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1F\x8B"); }

/// All that is packed. Errors: malformed_input for what is damaged, cut off, or unpacks to more than `most` bytes.
[[nodiscard]] Result<std::string> unpack_gzip(std::string_view bytes, std::size_t most);

}  // namespace gpumem::core
