// What tests of a library that reports by value say again and again: this failed, so, there.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"

namespace gpumem::testing {

/// Whether `result` is an error of this code in this line (0: no line) whose message holds `part`.
template <typename T>
::testing::AssertionResult fails(const core::Result<T>& result, core::ErrorCode code, std::int64_t line,
                                 std::string_view part) {
  if (result) return ::testing::AssertionFailure() << "succeeded; expected " << core::to_string(code);
  const core::Error& error = result.error();
  const bool same = error.code == code && error.place.line == line && error.message.find(part) != std::string::npos;
  if (same) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << core::to_string(error.code) << " in line " << error.place.line << ": "
                                       << error.message << "; expected " << core::to_string(code) << " in line " << line
                                       << " with \"" << part << "\"";
}

/// Whether `result` has a value, with the error as the message if not.
template <typename T>
::testing::AssertionResult succeeds(const core::Result<T>& result) {
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << core::to_string(result.error().code) << ": "
                                       << core::to_string(result.error());
}

inline constexpr core::Dim N = core::Dim::batch();

/// A dimension of a shape in a test: a number is a fixed size.
struct DimLiteral {
  core::Dim dim;
  constexpr DimLiteral(std::int64_t size) : dim(core::Dim::fixed(size)) {}  // NOLINT: literals convert
  constexpr DimLiteral(core::Dim other) : dim(other) {}                     // NOLINT: literals convert
};

/// shape({N, 3, 224, 224})
inline core::Shape shape(std::initializer_list<DimLiteral> dims) {
  core::Shape result;
  for (const DimLiteral& literal : dims) result.push_back(literal.dim);
  return result;
}

}  // namespace gpumem::testing
