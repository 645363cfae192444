// Input: bytes of a zip archive (PKWARE's APPNOTE 6.3.10) as torch.save writes it: its entries are stored, not
// compressed; padding in extra fields aligns their data; sizes may follow the data; the end record may be one of zip64.
// Output: ZipArchive, the entries' names and data, as views of these bytes; and numbers of any binary file.
//
// Strict, for the file may come from anywhere: what is compressed, encrypted, split or followed by a comment is
// refused; so are a local header that says something else than the central directory, entries that overlap or leave the
// file, a name that occurs twice, and data whose CRC-32 is another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpumem/core/result.hpp"

namespace gpumem::datasets {

/// The unsigned number of `width` bytes (at most 8) that begins at `at`. All of them must be there.
[[nodiscard]] constexpr std::uint64_t little_endian(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t index = width; index > 0; --index) {
    value = (value << 8U) | static_cast<unsigned char>(bytes[at + index - 1]);
  }
  return value;
}

inline constexpr std::size_t kMostZipEntries = 100'000;

struct ZipEntry {
  std::string_view name;
  std::string_view data;
};

/// Must not outlive the bytes that it was read from.
class ZipArchive {
 public:
  /// Errors: malformed_input, naming the byte or the entry. `file` is for messages.
  [[nodiscard]] static core::Result<ZipArchive> open(std::string_view bytes, std::string_view file = {});

  /// In the order of the central directory.
  [[nodiscard]] const std::vector<ZipEntry>& entries() const { return entries_; }

  /// The entry of this name; null if there is none.
  [[nodiscard]] const ZipEntry* find(std::string_view name) const;

 private:
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

/// The checksum of the format (reflected polynomial EDB88320).
[[nodiscard]] std::uint32_t crc32(std::string_view bytes);

}  // namespace gpumem::datasets
