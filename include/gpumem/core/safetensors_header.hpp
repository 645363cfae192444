// Input: the first bytes of a safetensors file (huggingface.co/docs/safetensors: 8 bytes of header length,
// little-endian; a JSON object of names to dtype, shape and data_offsets; the data).
// Output: the tensors that it describes, without their data. Strict: the offsets are in range, do not overlap and leave
// no holes; the header is at most 100 MB (as in the format's own reader); dtypes are known; a shape's elements times
// their size is the length of the data.
// Units: elements, bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"

namespace gpumem::core {

/// A dtype of the format, and the bytes of an element.
struct StoredType {
  std::string_view name;
  std::int64_t bytes = 1;
};

/// A tensor as the header describes it; `begin` and `end` count from the first byte of data.
struct StoredTensor {
  std::string name;
  const StoredType* dtype = nullptr;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t elements() const { return (end - begin) / dtype->bytes; }
};

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;                          ///< in the order of their data
  std::vector<std::pair<std::string, std::string>> metadata;  ///< "__metadata__"
  std::size_t data_begin = 0;                                 ///< the file's byte at which the data begins
};

/// From a whole file's bytes. Errors: malformed_input, naming the byte or the tensor.
[[nodiscard]] Result<SafetensorsHeader> parse_safetensors_header(std::string_view bytes);
/// From a regular file; only its header is read. Errors: also unreadable_file.
[[nodiscard]] Result<SafetensorsHeader> read_safetensors_header(const std::string& path);

namespace safetensors_detail {

using Kind = JsonValue::Kind;

inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::size_t kLongestHeader = 100'000'000;        // the limit of the format's own reader
inline constexpr std::size_t kMostValues = std::size_t{1} << 22;  // about half a million tensors
inline constexpr std::size_t kHeaderDepth = 3;
inline constexpr std::string_view kMetadata = "__metadata__";

inline constexpr std::array<StoredType, 15> kStoredTypes = {{{"F32", 4},
                                                             {"F64", 8},
                                                             {"F16", 2},
                                                             {"BF16", 2},
                                                             {"F8_E4M3", 1},
                                                             {"F8_E5M2", 1},
                                                             {"I64", 8},
                                                             {"I32", 4},
                                                             {"I16", 2},
                                                             {"I8", 1},
                                                             {"U64", 8},
                                                             {"U32", 4},
                                                             {"U16", 2},
                                                             {"U8", 1},
                                                             {"BOOL", 1}}};

inline Error fault(const StoredTensor& entry, std::string message) {
  Error error = malformed(std::move(message));
  error.place.element = entry.name;
  return error;
}

inline std::uint64_t length_of(std::string_view bytes) {
  std::uint64_t word = 0;
  for (std::size_t index = 0; index < kLengthBytes; ++index) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[index])) << (8 * index);
  }
  return word;
}

inline std::optional<std::vector<std::int64_t>> counts_from(const JsonValue& json) {
  if (!json.is(Kind::list)) return std::nullopt;
  std::vector<std::int64_t> counts;
  counts.reserve(json.size());
  for (const JsonValue& item : json.items()) {
    if (!item.is(Kind::integer) || item.integer() < 0) return std::nullopt;
    counts.push_back(item.integer());
  }
  return counts;
}

inline Status read_dtype(const JsonValue& json, StoredTensor& entry) {
  if (json.is(Kind::text)) {
    for (const StoredType& dtype : kStoredTypes) {
      if (dtype.name == json.text()) entry.dtype = &dtype;
    }
  }
  if (entry.dtype != nullptr) return Done{};
  return fault(
      entry, json.is(Kind::text) ? "has an unknown dtype, " + quoted(json.text()) : "has a \"dtype\" that is not text");
}

inline Status read_shape(const JsonValue& json, StoredTensor& entry) {
  auto shape = counts_from(json);
  if (!shape) return fault(entry, "has a \"shape\" that is not a list of whole numbers");
  entry.shape = *std::move(shape);
  return Done{};
}

inline Status read_offsets(const JsonValue& json, StoredTensor& entry) {
  const auto offsets = counts_from(json);
  if (!offsets || offsets->size() != 2 || offsets->front() > offsets->back()) {
    return fault(entry, "has \"data_offsets\" that are not [begin, end], whole numbers with begin <= end");
  }
  entry.begin = offsets->front();
  entry.end = offsets->back();
  return Done{};
}

/// Done if the tensor's elements take just the bytes that its offsets span.
inline Status check_size(const StoredTensor& entry) {
  Checked bytes = entry.dtype->bytes;
  for (const std::int64_t size : entry.shape) bytes *= size;
  if (bytes.value() == entry.end - entry.begin) return Done{};
  return fault(entry, "has " + std::to_string(entry.end - entry.begin) + " bytes of data; its shape needs " +
                          (bytes.valid() ? std::to_string(*bytes.value()) : "more than 64 bits can count"));
}

inline Result<StoredTensor> entry_from(const JsonValue& json) {
  StoredTensor entry;
  entry.name = json.key();
  if (entry.name.empty()) return malformed("holds a tensor without a name");
  if (!json.is(Kind::object)) return fault(entry, "must be described by an object");
  std::size_t known = 0;
  for (const JsonValue& field : json.items()) {
    Status read = Done{};
    if (field.key() == "dtype") {
      read = read_dtype(field, entry);
    } else if (field.key() == "shape") {
      read = read_shape(field, entry);
    } else if (field.key() == "data_offsets") {
      read = read_offsets(field, entry);
    } else {
      read = fault(entry, "has an unknown field " + quoted(field.key()));
    }
    if (!read) return std::move(read.error());
    ++known;
  }
  constexpr std::size_t kFields = 3;
  if (known != kFields) return fault(entry, R"(lacks one of "dtype", "shape" and "data_offsets")");
  if (Status sound = check_size(entry); !sound) return std::move(sound.error());
  return entry;
}

/// Puts the entries into the order of their data. Each must begin where the one before it ends, the first at 0 and the
/// last before the end of the file.
inline Status put_in_order(std::vector<StoredTensor>& entries, std::int64_t data_bytes) {
  std::stable_sort(entries.begin(), entries.end(), [](const StoredTensor& left, const StoredTensor& right) {
    return std::pair(left.begin, left.end) < std::pair(right.begin, right.end);
  });
  std::int64_t at = 0;
  for (const StoredTensor& entry : entries) {
    if (entry.begin != at) {
      return fault(entry, "has data from byte " + std::to_string(entry.begin) +
                              " of all data on; the tensor before it ends at byte " + std::to_string(at));
    }
    at = entry.end;
    if (at > data_bytes) {
      return fault(entry, "has data up to byte " + std::to_string(at) + " of all data, of which the file has " +
                              std::to_string(data_bytes));
    }
  }
  if (at == data_bytes) return Done{};
  return malformed("has " + std::to_string(data_bytes - at) + " bytes after its last tensor");
}

inline Status read_metadata(const JsonValue& json, SafetensorsHeader& header) {
  const Error fault = malformed("has a \"__metadata__\" that is not an object of texts");
  if (!json.is(Kind::object)) return fault;
  for (const JsonValue& field : json.items()) {
    if (!field.is(Kind::text)) return fault;
    header.metadata.emplace_back(field.key(), field.text());
  }
  return Done{};
}

/// How long the header is that these first bytes of a file of `size` bytes announce.
inline Result<std::size_t> announced(std::string_view bytes, std::uint64_t size) {
  if (size < kLengthBytes || bytes.size() < kLengthBytes) {
    return malformed("is " + std::to_string(size) +
                     " bytes long; a safetensors file begins with the length of its header in 8 bytes");
  }
  const std::uint64_t length = length_of(bytes);
  if (length > kLongestHeader) {
    return malformed("says that its header has " + std::to_string(length) +
                     " bytes; at most 100,000,000 are allowed, so this is not a safetensors file");
  }
  if (length > size - kLengthBytes) {
    return malformed("is cut off: its header has " + std::to_string(length) + " bytes, and " +
                     std::to_string(size - kLengthBytes) + " follow");
  }
  return static_cast<std::size_t>(length);
}

inline Result<SafetensorsHeader> parse(std::string_view bytes, std::uint64_t size) {
  const Result<std::size_t> length = announced(bytes, size);
  if (!length) return length.error();
  const std::string_view text = bytes.substr(kLengthBytes, *length);
  if (!text.starts_with('{')) return malformed("is not a safetensors file: byte 8 must be '{'");
  Result<JsonDocument> json = JsonDocument::parse(text, {kHeaderDepth, kMostValues});
  if (!json) {
    Error error = std::move(json.error());
    if (error.place.element.empty()) error.message = "its header " + error.message;
    error.place.line = 0;  // of the header, not of the file
    return error;
  }
  SafetensorsHeader header;
  header.data_begin = kLengthBytes + *length;
  header.tensors.reserve(json->root().size());
  for (const JsonValue& field : json->root().items()) {
    if (field.key() == kMetadata) {
      if (Status read = read_metadata(field, header); !read) return std::move(read.error());
      continue;
    }
    Result<StoredTensor> entry = entry_from(field);
    if (!entry) return std::move(entry.error());
    header.tensors.push_back(*std::move(entry));
  }
  Status ordered = put_in_order(header.tensors, static_cast<std::int64_t>(size - header.data_begin));
  if (!ordered) return std::move(ordered.error());
  return header;
}

}  // namespace safetensors_detail

inline Result<SafetensorsHeader> parse_safetensors_header(std::string_view bytes) {
  return safetensors_detail::parse(bytes, bytes.size());
}

inline Result<SafetensorsHeader> read_safetensors_header(const std::string& path) {
  namespace detail = safetensors_detail;
  Result<FileFront> front = read_front(path, detail::kLengthBytes);
  if (!front) return std::move(front.error());
  const Result<std::size_t> length = detail::announced(front->bytes, front->size);
  if (!length) return Error(length.error()).in_file(path);
  front = read_front(path, detail::kLengthBytes + *length);
  if (!front) return std::move(front.error());
  Result<SafetensorsHeader> header = detail::parse(front->bytes, front->size);
  if (!header) return std::move(header.error()).in_file(path);
  return header;
}

}  // namespace gpumem::core
