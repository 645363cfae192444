#pragma once

#include "gpumem/ml/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "gpumem/core/safetensors_header.hpp"

namespace gpumem::ml {

namespace safetensors_detail {

inline constexpr std::size_t kAlignment = 8;
inline constexpr std::string_view kMetadata = "__metadata__";

using core::malformed;

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

GPUMEM_INLINE core::Result<Tensor> tensor_of(core::StoredTensor& entry, std::string_view data) {
  if (entry.dtype->name != "F32") {
    core::Error error = malformed("has dtype " + std::string(entry.dtype->name) +
                                  "; the weights of a model are F32, so convert it to float32");
    error.place.element = entry.name;
    return error;
  }
  Tensor tensor{std::move(entry.name), std::move(entry.shape), {}};
  tensor.values.resize(static_cast<std::size_t>(entry.end - entry.begin) / sizeof(float));
  auto at = static_cast<std::size_t>(entry.begin);
  for (float& value : tensor.values) {
    value = std::bit_cast<float>(little_endian<std::uint32_t>(data, at));
    at += sizeof(float);
  }
  return tensor;
}

GPUMEM_INLINE core::Result<TensorFile> parse(std::string_view bytes) {
  core::Result<core::SafetensorsHeader> header = core::parse_safetensors_header(bytes);
  if (!header) return std::move(header.error());
  TensorFile file;
  file.metadata = std::move(header->metadata);
  file.tensors.reserve(header->tensors.size());
  for (core::StoredTensor& entry : header->tensors) {
    core::Result<Tensor> tensor = tensor_of(entry, bytes.substr(header->data_begin));
    if (!tensor) return std::move(tensor.error());
    file.tensors.push_back(*std::move(tensor));
  }
  return file;
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
  bytes.reserve(sizeof(std::uint64_t) + header.size() + at);
  detail::append_little_endian<std::uint64_t>(bytes, header.size());
  bytes += header;
  for (const Tensor& tensor : file.tensors) {
    for (const float value : tensor.values) detail::append_little_endian(bytes, std::bit_cast<std::uint32_t>(value));
  }
  return bytes;
}

}  // namespace gpumem::ml
