// Input: the name of an element type.
// Output: the type and its size.
// Units: bytes an element.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpumem::core {

enum class DType : std::uint8_t { float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8, boolean };

struct DTypeFacts {
  DType dtype;
  std::string_view name;  ///< PyTorch's name without "torch."
  std::int64_t size;      ///< bytes an element
};

inline constexpr std::array<DTypeFacts, 10> kDTypes = {{{DType::float64, "float64", 8},
                                                        {DType::float32, "float32", 4},
                                                        {DType::float16, "float16", 2},
                                                        {DType::bfloat16, "bfloat16", 2},
                                                        {DType::int64, "int64", 8},
                                                        {DType::int32, "int32", 4},
                                                        {DType::int16, "int16", 2},
                                                        {DType::int8, "int8", 1},
                                                        {DType::uint8, "uint8", 1},
                                                        {DType::boolean, "bool", 1}}};

[[nodiscard]] constexpr const DTypeFacts& facts(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }
[[nodiscard]] constexpr std::int64_t element_size(DType dtype) { return facts(dtype).size; }
[[nodiscard]] constexpr std::string_view to_string(DType dtype) { return facts(dtype).name; }

[[nodiscard]] constexpr std::optional<DType> dtype_from(std::string_view name) {
  for (const DTypeFacts& row : kDTypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace gpumem::core
