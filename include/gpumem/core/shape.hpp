// Input: dimensions, of which some grow with the batch size and some may be unknown; names of element types.
// Output: a tensor's shape and its number of elements for a given batch size; an element's type and its size.
// Units: elements; bytes an element.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gpumem/core/bytes.hpp"

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

/// One dimension of a tensor: a fixed size, a multiple of the batch size N, or unknown.
struct Dim {
  enum class Kind : std::uint8_t { fixed, batch, unknown };

  std::int64_t size = 0;  ///< fixed: the size; batch: the factor before N; unknown: 0
  Kind kind = Kind::fixed;

  static constexpr Dim fixed(std::int64_t size) { return {size, Kind::fixed}; }
  static constexpr Dim batch(std::int64_t factor = 1) { return {factor, Kind::batch}; }
  static constexpr Dim unknown() { return {0, Kind::unknown}; }

  friend constexpr bool operator==(const Dim&, const Dim&) = default;
};

/// Up to kMaxRank dimensions, stored inline: a summary has many shapes, and none of them should cost an
/// allocation.
class Shape {
 public:
  static constexpr std::size_t kMaxRank = 8;

  constexpr Shape() = default;

  /// Appends a dimension; false (and no change) if the shape has kMaxRank already.
  constexpr bool push_back(Dim dim) {
    if (rank_ == kMaxRank) return false;
    sizes_[rank_] = dim.size;
    kinds_[rank_] = dim.kind;
    ++rank_;
    return true;
  }

  [[nodiscard]] constexpr std::size_t rank() const { return rank_; }
  [[nodiscard]] constexpr Dim operator[](std::size_t axis) const { return {sizes_[axis], kinds_[axis]}; }
  constexpr void set(std::size_t axis, Dim dim) {
    sizes_[axis] = dim.size;
    kinds_[axis] = dim.kind;
  }

  /// Number of elements at this batch size; nothing if a dimension is unknown. A scalar has one.
  [[nodiscard]] constexpr std::optional<Checked> elements(std::int64_t batch_size) const {
    Checked count = 1;
    for (std::size_t axis = 0; axis < rank_; ++axis) {
      if (kinds_[axis] == Dim::Kind::unknown) return std::nullopt;
      count *= sizes_[axis];
      if (kinds_[axis] == Dim::Kind::batch) count *= batch_size;
    }
    return count;
  }

  friend constexpr bool operator==(const Shape& left, const Shape& right) {
    if (left.rank_ != right.rank_) return false;
    for (std::size_t axis = 0; axis < left.rank_; ++axis) {
      if (left[axis] != right[axis]) return false;
    }
    return true;
  }

 private:
  std::array<std::int64_t, kMaxRank> sizes_{};
  std::array<Dim::Kind, kMaxRank> kinds_{};
  std::uint8_t rank_ = 0;
};

/// "[N, 64, 112, 112]", "[64N, 49, 96]", "[N, ?]".
[[nodiscard]] std::string to_string(const Shape& shape);

/// "N", "64N", "7" or "?".
[[nodiscard]] std::string to_string(const Dim& dim);

}  // namespace gpumem::core
