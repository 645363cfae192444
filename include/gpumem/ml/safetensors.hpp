// Input: bytes of a safetensors file (huggingface.co/docs/safetensors: 8 bytes of header length, little-endian; a JSON
// object of names to dtype, shape and data_offsets; the data).
// Output: TensorFile, its tensors as values; and from these a file again. Strict: the offsets are in range, do not
// overlap and leave no holes; the header is at most 100 MB (as in the format's own reader); dtypes are known; a shape's
// elements times their size is the length of the data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/core/result.hpp"

namespace gpumem::ml {

/// A tensor of float32, row-major. Other dtypes are valid in a file, but no model here holds them.
struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

struct TensorFile {
  std::vector<Tensor> tensors;                                ///< in the order of their data
  std::vector<std::pair<std::string, std::string>> metadata;  ///< "__metadata__"

  /// The tensor of this name; null if there is none.
  [[nodiscard]] const Tensor* find(std::string_view name) const;
};

/// Errors: malformed_input, naming the byte or the tensor. `file` is for messages.
[[nodiscard]] core::Result<TensorFile> parse_safetensors(std::string_view bytes, std::string_view file = {});

/// The file's bytes: the header padded with spaces to 8 bytes, tensors in the order given.
[[nodiscard]] std::string write_safetensors(const TensorFile& file);

}  // namespace gpumem::ml
