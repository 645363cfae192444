#include "gpumem_datasets/zip_archive.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace gpumem::datasets {

namespace {

constexpr std::uint32_t kLocalHeader = 0x04034B50;
constexpr std::uint32_t kCentralHeader = 0x02014B50;
constexpr std::uint32_t kDescriptor = 0x08074B50;
constexpr std::uint32_t kZip64End = 0x06064B50;
constexpr std::uint32_t kZip64Locator = 0x07064B50;
constexpr std::uint32_t kEnd = 0x06054B50;

constexpr std::size_t kLocalHeaderSize = 30;
constexpr std::size_t kCentralHeaderSize = 46;
constexpr std::size_t kZip64EndSize = 56;
constexpr std::size_t kZip64LocatorSize = 20;
constexpr std::size_t kEndSize = 22;
constexpr std::uint16_t kZip64Extra = 1;

/// A figure that is elsewhere, in a zip64 field.
constexpr std::uint64_t kElsewhere16 = 0xFFFF;
constexpr std::uint64_t kElsewhere32 = 0xFFFFFFFF;

/// Flags of an entry: sizes follow the data; the name is UTF-8. Any other would change what the data means.
constexpr std::uint16_t kSizesBehind = 1U << 3U;
constexpr std::uint16_t kUtf8Name = 1U << 11U;

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0xEDB88320U : 0U);
    table[byte] = value;
  }
  return table;
}();

/// What the two headers of an entry both say.
struct Facts {
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t compressed = 0;
  std::uint64_t size = 0;
  std::string_view name;
};

struct Central {
  Facts facts;
  std::uint64_t offset = 0;  ///< of the local header
};

/// Where the central directory lies.
struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
};

struct Extent {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class ZipReader {
 public:
  ZipReader(std::string_view bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  [[nodiscard]] core::Result<Directory> directory() const {
    if (bytes_.size() < kEndSize || number(bytes_.size() - kEndSize, 4) != kEnd) {
      return malformed("does not end as a zip archive does; a checkpoint of torch.save is one: is the file whole?");
    }
    const std::size_t end = bytes_.size() - kEndSize;
    Directory found = {number(end + 10, 2), number(end + 12, 4), number(end + 16, 4)};
    if (number(end + 20, 2) != 0) return malformed("is a zip archive with a comment, which torch.save never writes");
    if (number(end + 4, 2) != 0 || number(end + 6, 2) != 0 || number(end + 8, 2) != found.entries) return split();
    std::size_t limit = end;
    if (end >= kZip64LocatorSize && number(end - kZip64LocatorSize, 4) == kZip64Locator) {
      const auto large = zip64_directory(end - kZip64LocatorSize);
      if (!large) return large.error();
      const bool agrees = agree(found.entries, large->entries, kElsewhere16) &&
                          agree(found.size, large->size, kElsewhere32) &&
                          agree(found.offset, large->offset, kElsewhere32);
      if (!agrees) return malformed("has two end records that say different things");
      found = *large;
      limit = end - kZip64LocatorSize - kZip64EndSize;
    }
    if (found.offset > limit || found.size != limit - found.offset) {
      return malformed("has a central directory that does not end where its end record begins");
    }
    if (found.entries > kMostZipEntries) return malformed("has more than 100,000 entries");
    return found;
  }

  /// The entry of the directory that begins at `at`, and moves behind it; the directory ends at `end`.
  [[nodiscard]] core::Result<Central> central(std::size_t& at, std::size_t end) const {
    if (end - at < kCentralHeaderSize || number(at, 4) != kCentralHeader) return malformed_at(at, "no directory entry");
    const std::size_t name = number(at + 28, 2);
    const std::size_t extra = number(at + 30, 2);
    const std::size_t comment = number(at + 32, 2);
    if (end - at - kCentralHeaderSize < name + extra + comment) {
      return malformed_at(at, "a directory entry that leaves the directory");
    }
    Central entry;
    entry.facts = facts(at + 8, at + kCentralHeaderSize, name);
    entry.offset = number(at + 42, 4);
    const std::string_view extras = bytes_.substr(at + kCentralHeaderSize + name, extra);
    if (number(at + 34, 2) != 0) return split();
    if (!widen(extras, {&entry.facts.size, &entry.facts.compressed, &entry.offset})) {
      return malformed_at(at, "a directory entry with broken extra fields");
    }
    at += kCentralHeaderSize + name + extra + comment;
    return entry;
  }

  /// What may be said against an entry for itself.
  [[nodiscard]] core::Status readable(const Facts& entry) const {
    if (entry.name.empty()) return malformed("has an entry without a name");
    if ((entry.flags & ~(kSizesBehind | kUtf8Name)) != 0) {
      return malformed_in(entry.name, "is encrypted, or of a kind that torch.save does not write");
    }
    if (entry.method != 0 || entry.compressed != entry.size) {
      return malformed_in(entry.name, "is compressed; torch.save stores entries as they are");
    }
    return core::Done{};
  }

  /// Data of an entry, and the bytes that all of it takes; the directory begins at `limit`.
  [[nodiscard]] core::Result<std::pair<ZipEntry, Extent>> entry(const Central& central, std::size_t limit) const {
    const Facts& said = central.facts;
    if (limit < kLocalHeaderSize || central.offset > limit - kLocalHeaderSize) {
      return malformed_in(said.name, "begins outside of the file");
    }
    const auto begin = static_cast<std::size_t>(central.offset);
    if (number(begin, 4) != kLocalHeader) return malformed_in(said.name, "has no header where it should begin");
    const std::size_t name = number(begin + 26, 2);
    const std::size_t extra = number(begin + 28, 2);
    const std::size_t room = limit - begin - kLocalHeaderSize;
    if (room < name + extra || room - name - extra < said.size) {
      return malformed_in(said.name, "reaches beyond the entries of the file");
    }
    Facts local = facts(begin + 6, begin + kLocalHeaderSize, name);
    const std::string_view extras = bytes_.substr(begin + kLocalHeaderSize + name, extra);
    if (!widen(extras, {&local.size, &local.compressed})) {
      return malformed_in(said.name, "has broken extra fields in its header");
    }
    if (!same(local, said)) return malformed_in(said.name, "has a header that differs from the central directory");
    const std::size_t data = begin + kLocalHeaderSize + name + extra;
    const auto end = data + static_cast<std::size_t>(said.size);
    const auto behind = descriptor(said, end, limit);
    if (!behind)
      return malformed_in(said.name, "has no sizes after its data, or sizes that differ from the central directory");
    return std::pair(ZipEntry{said.name, bytes_.substr(data, end - data)}, Extent{begin, end + *behind});
  }

  [[nodiscard]] core::Error malformed(std::string message) const {
    return {core::ErrorCode::malformed_input, std::move(message), core::Place{std::string(file_), 0, {}}};
  }
  [[nodiscard]] core::Error malformed_in(std::string_view entry, const char* what) const {
    return malformed("its zip entry " + core::quoted(entry) + " " + what);
  }

 private:
  [[nodiscard]] std::uint64_t number(std::size_t at, std::size_t width) const {
    return little_endian(bytes_, at, width);
  }
  [[nodiscard]] core::Error malformed_at(std::size_t at, const char* what) const {
    return malformed("has " + std::string(what) + " at byte " + std::to_string(at));
  }
  [[nodiscard]] core::Error split() const { return malformed("is a part of a zip archive of several files"); }

  /// Whether an old record's figure is the new one's, or says that it is there.
  static bool agree(std::uint64_t old, std::uint64_t large, std::uint64_t elsewhere) {
    return old == large || old == elsewhere;
  }

  [[nodiscard]] core::Result<Directory> zip64_directory(std::size_t locator) const {
    if (locator < kZip64EndSize || number(locator + 8, 8) != locator - kZip64EndSize) {
      return malformed("has a zip64 end record that is not directly before its locator");
    }
    const std::size_t record = locator - kZip64EndSize;
    constexpr std::uint64_t kRest = kZip64EndSize - 12;  // it counts what follows its own field
    if (number(record, 4) != kZip64End || number(record + 4, 8) != kRest) {
      return malformed("has a zip64 end record of an unknown kind");
    }
    const Directory found = {number(record + 32, 8), number(record + 40, 8), number(record + 48, 8)};
    const bool whole = number(locator + 4, 4) == 0 && number(locator + 16, 4) == 1 && number(record + 16, 4) == 0 &&
                       number(record + 20, 4) == 0 && number(record + 24, 8) == found.entries;
    if (!whole) return split();
    return found;
  }

  /// The fields that both headers hold in the same order: from the flags at `at` on.
  [[nodiscard]] Facts facts(std::size_t at, std::size_t name, std::size_t name_size) const {
    Facts found;
    found.flags = static_cast<std::uint16_t>(number(at, 2));
    found.method = static_cast<std::uint16_t>(number(at + 2, 2));
    found.crc = static_cast<std::uint32_t>(number(at + 8, 4));
    found.compressed = number(at + 12, 4);
    found.size = number(at + 16, 4);
    found.name = bytes_.substr(name, name_size);
    return found;
  }

  /// Takes the figures that are in the zip64 extra field from there. False if the extra fields are broken.
  static bool widen(std::string_view extras, const std::vector<std::uint64_t*>& figures) {
    constexpr std::size_t kHead = 4;
    std::optional<std::string_view> zip64;
    while (!extras.empty()) {
      if (extras.size() < kHead) return false;
      const std::size_t size = little_endian(extras, 2, 2);
      if (extras.size() - kHead < size) return false;
      if (little_endian(extras, 0, 2) == kZip64Extra) {
        if (zip64) return false;
        zip64 = extras.substr(kHead, size);
      }
      extras.remove_prefix(kHead + size);
    }
    for (std::uint64_t* figure : figures) {
      if (*figure != kElsewhere32) continue;
      if (!zip64 || zip64->size() < 8) return false;
      *figure = little_endian(*zip64, 0, 8);
      zip64->remove_prefix(8);
    }
    return true;
  }

  static bool same(const Facts& local, const Facts& central) {
    if (local.flags != central.flags || local.method != central.method || local.name != central.name) return false;
    const bool sizes = local.crc == central.crc && local.compressed == central.compressed && local.size == central.size;
    const bool left_out = local.crc == 0 && local.compressed == 0 && local.size == 0;
    return sizes || ((local.flags & kSizesBehind) != 0 && left_out);
  }

  /// How many bytes the figures after the data take, which ends at `at`; nothing if they are not as said.
  [[nodiscard]] std::optional<std::size_t> descriptor(const Facts& said, std::size_t at, std::size_t limit) const {
    if ((said.flags & kSizesBehind) == 0) return 0;
    constexpr std::size_t kHead = 8;
    for (const std::size_t width : {std::size_t{4}, std::size_t{8}}) {
      const std::size_t size = kHead + 2 * width;
      if (limit - at < size || number(at, 4) != kDescriptor || number(at + 4, 4) != said.crc) continue;
      if (number(at + kHead, width) == said.size && number(at + kHead + width, width) == said.size) return size;
    }
    return std::nullopt;
  }

  std::string_view bytes_;
  std::string_view file_;
};

bool overlap(std::vector<Extent> extents) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (std::size_t index = 1; index < extents.size(); ++index) {
    if (extents[index].begin < extents[index - 1].end) return true;
  }
  return false;
}

}  // namespace

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t value = 0xFFFFFFFFU;
  for (const char byte : bytes) {
    value = (value >> 8U) ^ kCrcTable[(value ^ static_cast<unsigned char>(byte)) & 0xFFU];
  }
  return ~value;
}

core::Result<ZipArchive> ZipArchive::open(std::string_view bytes, std::string_view file) {
  const ZipReader reader(bytes, file);
  const auto directory = reader.directory();
  if (!directory) return directory.error();
  auto at = static_cast<std::size_t>(directory->offset);
  const auto limit = at;
  const auto end = at + static_cast<std::size_t>(directory->size);
  ZipArchive archive;
  std::vector<Central> all;
  for (std::uint64_t index = 0; index < directory->entries; ++index) {
    auto central = reader.central(at, end);
    if (!central) return central.error();
    const core::Status readable = reader.readable(central->facts);
    if (!readable) return readable.error();
    if (!archive.by_name_.emplace(central->facts.name, all.size()).second) {
      return reader.malformed_in(central->facts.name, "is in it twice");
    }
    all.push_back(*central);
  }
  if (at != end) return reader.malformed("has a central directory that continues after its last entry");
  std::vector<Extent> extents;
  for (const Central& central : all) {
    const auto entry = reader.entry(central, limit);
    if (!entry) return entry.error();
    archive.entries_.push_back(entry->first);
    extents.push_back(entry->second);
  }
  // Before any checksum: overlapping entries could have the same bytes read again and again.
  if (overlap(std::move(extents))) return reader.malformed("has zip entries that overlap");
  for (std::size_t index = 0; index < all.size(); ++index) {
    const ZipEntry& entry = archive.entries_[index];
    if (crc32(entry.data) != all[index].facts.crc) {
      return reader.malformed_in(entry.name, "is damaged: its checksum differs");
    }
  }
  return archive;
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

}  // namespace gpumem::datasets
