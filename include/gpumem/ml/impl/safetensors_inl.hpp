#pragma once

#include "gpumem/ml/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "gpumem/core/checked.hpp"
#include "gpumem/core/json_document.hpp"

namespace gpumem::ml {

namespace safetensors_detail {

using core::JsonValue;
using Kind = JsonValue::Kind;

inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::size_t kLongestHeader = 100'000'000;        // the limit of the format's own reader
inline constexpr std::size_t kMostValues = std::size_t{1} << 22;  // about half a million tensors
inline constexpr std::size_t kHeaderDepth = 3;
inline constexpr std::size_t kAlignment = 8;
inline constexpr std::string_view kMetadata = "__metadata__";

/// A dtype of the format, and the bytes of an element.
struct DType {
  std::string_view name;
  std::int64_t bytes;
};
inline constexpr std::array<DType, 15> kDTypes = {{{"F32", 4},
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

/// A tensor as the header describes it; `begin` and `end` count from the first byte of data.
struct Entry {
  std::string_view name;
  const DType* dtype = nullptr;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

using core::malformed;

GPUMEM_INLINE core::Error malformed(const Entry& entry, std::string message) {
  core::Error error = malformed(std::move(message));
  error.place.element = entry.name;
  return error;
}

template <typename Word>
Word little_endian(std::string_view bytes, std::size_t at) {
  Word word = 0;
  for (std::size_t index = 0; index < sizeof(Word); ++index) {
    word |= static_cast<Word>(static_cast<unsigned char>(bytes[at + index])) << (8 * index);
  }
  return word;
}

template <typename Word>
void append_little_endian(std::string& bytes, Word word) {
  for (std::size_t index = 0; index < sizeof(Word); ++index) {
    bytes += static_cast<char>(static_cast<unsigned char>(word >> (8 * index)));
  }
}

/// The header's text.
GPUMEM_INLINE core::Result<std::string_view> header_of(std::string_view bytes) {
  if (bytes.size() < kLengthBytes) {
    return malformed("is " + std::to_string(bytes.size()) +
                     " bytes long; a safetensors file begins with the length of its header in 8 bytes");
  }
  const auto length = little_endian<std::uint64_t>(bytes, 0);
  if (length > kLongestHeader) {
    return malformed("says that its header has " + std::to_string(length) +
                     " bytes; at most 100,000,000 are allowed, so this is no safetensors file");
  }
  if (length > bytes.size() - kLengthBytes) {
    return malformed("is cut off: its header has " + std::to_string(length) + " bytes, and " +
                     std::to_string(bytes.size() - kLengthBytes) + " follow");
  }
  const std::string_view header = bytes.substr(kLengthBytes, length);
  if (!header.starts_with('{')) return malformed("is no safetensors file: byte 8 must be '{'");
  return header;
}

GPUMEM_INLINE std::optional<std::vector<std::int64_t>> counts_from(const JsonValue& json) {
  if (!json.is(Kind::list)) return std::nullopt;
  std::vector<std::int64_t> counts;
  counts.reserve(json.size());
  for (const JsonValue& item : json.items()) {
    if (!item.is(Kind::integer) || item.integer() < 0) return std::nullopt;
    counts.push_back(item.integer());
  }
  return counts;
}

GPUMEM_INLINE core::Status read_dtype(const JsonValue& json, Entry& entry) {
  if (json.is(Kind::text)) {
    for (const DType& dtype : kDTypes) {
      if (dtype.name == json.text()) entry.dtype = &dtype;
    }
  }
  if (entry.dtype != nullptr) return core::Done{};
  return malformed(entry, json.is(Kind::text) ? "has an unknown dtype, " + core::quoted(json.text())
                                              : "has a \"dtype\" that is not text");
}

GPUMEM_INLINE core::Status read_shape(const JsonValue& json, Entry& entry) {
  auto shape = counts_from(json);
  if (!shape) return malformed(entry, "has a \"shape\" that is not a list of whole numbers");
  entry.shape = *std::move(shape);
  return core::Done{};
}

GPUMEM_INLINE core::Status read_offsets(const JsonValue& json, Entry& entry) {
  const auto offsets = counts_from(json);
  if (!offsets || offsets->size() != 2 || offsets->front() > offsets->back()) {
    return malformed(entry, "has \"data_offsets\" that are not [begin, end], whole numbers with begin <= end");
  }
  entry.begin = offsets->front();
  entry.end = offsets->back();
  return core::Done{};
}

/// Done if the tensor's elements take just the bytes that its offsets span.
GPUMEM_INLINE core::Status check_size(const Entry& entry) {
  core::Checked bytes = entry.dtype->bytes;
  for (const std::int64_t size : entry.shape) bytes *= size;
  if (bytes.value() == entry.end - entry.begin) return core::Done{};
  return malformed(entry, "has " + std::to_string(entry.end - entry.begin) + " bytes of data; its shape needs " +
                              (bytes.valid() ? std::to_string(*bytes.value()) : "more than 64 bits can count"));
}

GPUMEM_INLINE core::Result<Entry> entry_from(const JsonValue& json) {
  Entry entry;
  entry.name = json.key();
  if (entry.name.empty()) return malformed("holds a tensor without a name");
  if (!json.is(Kind::object)) return malformed(entry, "must be described by an object");
  std::size_t known = 0;
  for (const JsonValue& field : json.items()) {
    core::Status read = core::Done{};
    if (field.key() == "dtype") {
      read = read_dtype(field, entry);
    } else if (field.key() == "shape") {
      read = read_shape(field, entry);
    } else if (field.key() == "data_offsets") {
      read = read_offsets(field, entry);
    } else {
      read = malformed(entry, "has an unknown field " + core::quoted(field.key()));
    }
    if (!read) return std::move(read.error());
    ++known;
  }
  constexpr std::size_t kFields = 3;
  if (known != kFields) return malformed(entry, R"(lacks one of "dtype", "shape" and "data_offsets")");
  if (core::Status sound = check_size(entry); !sound) return std::move(sound.error());
  return entry;
}

GPUMEM_INLINE core::Status read_metadata(const JsonValue& json, TensorFile& file) {
  const core::Error fault = malformed("has a \"__metadata__\" that is not an object of texts");
  if (!json.is(Kind::object)) return fault;
  for (const JsonValue& field : json.items()) {
    if (!field.is(Kind::text)) return fault;
    file.metadata.emplace_back(field.key(), field.text());
  }
  return core::Done{};
}

/// Puts the entries into the order of their data. Each must begin where the one before it ends, the first at 0 and the
/// last before the end of the file.
GPUMEM_INLINE core::Status put_in_order(std::vector<Entry>& entries, std::int64_t data_bytes) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& left, const Entry& right) {
    return std::pair(left.begin, left.end) < std::pair(right.begin, right.end);
  });
  std::int64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at) {
      return malformed(entry, "has data from byte " + std::to_string(entry.begin) +
                                  " of all data on; the tensor before it ends at byte " + std::to_string(at));
    }
    at = entry.end;
    if (at > data_bytes) {
      return malformed(entry, "has data up to byte " + std::to_string(at) + " of all data, of which the file has " +
                                  std::to_string(data_bytes));
    }
  }
  if (at == data_bytes) return core::Done{};
  return malformed("has " + std::to_string(data_bytes - at) + " bytes behind its last tensor");
}

GPUMEM_INLINE core::Result<Tensor> tensor_of(Entry& entry, std::string_view data) {
  if (entry.dtype->name != "F32") {
    return malformed(entry, "has dtype " + std::string(entry.dtype->name) +
                                "; the weights of a model are F32, so convert it to float32");
  }
  Tensor tensor{std::string(entry.name), std::move(entry.shape), {}};
  tensor.values.resize(static_cast<std::size_t>(entry.end - entry.begin) / sizeof(float));
  auto at = static_cast<std::size_t>(entry.begin);
  for (float& value : tensor.values) {
    value = std::bit_cast<float>(little_endian<std::uint32_t>(data, at));
    at += sizeof(float);
  }
  return tensor;
}

GPUMEM_INLINE core::Result<TensorFile> file_from(const JsonValue& header, std::string_view data) {
  TensorFile file;
  std::vector<Entry> entries;
  entries.reserve(header.size());
  for (const JsonValue& field : header.items()) {
    if (field.key() == kMetadata) {
      if (core::Status read = read_metadata(field, file); !read) return std::move(read.error());
      continue;
    }
    core::Result<Entry> entry = entry_from(field);
    if (!entry) return std::move(entry.error());
    entries.push_back(*std::move(entry));
  }
  core::Status ordered = put_in_order(entries, static_cast<std::int64_t>(data.size()));
  if (!ordered) return std::move(ordered.error());
  file.tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    core::Result<Tensor> tensor = tensor_of(entry, data);
    if (!tensor) return std::move(tensor.error());
    file.tensors.push_back(*std::move(tensor));
  }
  return file;
}

GPUMEM_INLINE core::Result<TensorFile> parse(std::string_view bytes) {
  const core::Result<std::string_view> header = header_of(bytes);
  if (!header) return header.error();
  core::Result<core::JsonDocument> json = core::JsonDocument::parse(*header, {kHeaderDepth, kMostValues});
  if (!json) {
    core::Error error = std::move(json.error());
    if (error.place.element.empty()) error.message = "its header " + error.message;
    error.place.line = 0;  // of the header, not of the file
    return error;
  }
  return file_from(json->root(), bytes.substr(kLengthBytes + header->size()));
}

GPUMEM_INLINE std::string quoted_json(const std::string& text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

GPUMEM_INLINE std::string metadata_text(const TensorFile& file) {
  std::string text;
  for (const auto& [key, value] : file.metadata) {
    text += (text.empty() ? "{" : ",") + quoted_json(key) + ":" + quoted_json(value);
  }
  return text + "}";
}

GPUMEM_INLINE std::string entry_text(const Tensor& tensor, std::size_t begin, std::size_t end) {
  std::string shape;
  for (const std::int64_t size : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(size);
  return quoted_json(tensor.name) + ":{\"dtype\":\"F32\",\"shape\":[" + shape + "],\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

}  // namespace safetensors_detail

GPUMEM_INLINE const Tensor* TensorFile::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

GPUMEM_INLINE core::Result<TensorFile> parse_safetensors(std::string_view bytes, std::string_view file) {
  core::Result<TensorFile> parsed = safetensors_detail::parse(bytes);
  if (!parsed) return std::move(parsed.error()).in_file(file);
  return parsed;
}

GPUMEM_INLINE std::string write_safetensors(const TensorFile& file) {
  namespace detail = safetensors_detail;
  std::string header = "{";
  if (!file.metadata.empty())
    header += detail::quoted_json(std::string(detail::kMetadata)) + ":" + detail::metadata_text(file);
  std::size_t at = 0;
  for (const Tensor& tensor : file.tensors) {
    const std::size_t end = at + tensor.values.size() * sizeof(float);
    header += (header.size() > 1 ? "," : "") + detail::entry_text(tensor, at, end);
    at = end;
  }
  header += '}';
  while (header.size() % detail::kAlignment != 0) header += ' ';
  std::string bytes;
  bytes.reserve(detail::kLengthBytes + header.size() + at);
  detail::append_little_endian<std::uint64_t>(bytes, header.size());
  bytes += header;
  for (const Tensor& tensor : file.tensors) {
    for (const float value : tensor.values) detail::append_little_endian(bytes, std::bit_cast<std::uint32_t>(value));
  }
  return bytes;
}

}  // namespace gpumem::ml
