// Input: the first bytes of a safetensors file (huggingface.co/docs/safetensors: 8 bytes of header length,
// little-endian; a JSON object of names to dtype, shape and data_offsets; the data).
// Output: the tensors that it describes, without their data. Strict: the offsets are in range, do not overlap and leave
// no holes; the header is at most 100 MB (as in the format's own reader); dtypes are known; a shape's elements times
// their size is the length of the data.
// Units: elements, bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace gpumem::core
