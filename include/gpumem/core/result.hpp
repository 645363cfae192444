// A value or an Error: always one of the two, never both.
#pragma once

#include <cassert>
#include <utility>
#include <variant>

#include "gpumem/core/error.hpp"

namespace gpumem::core {

/// A value, or the reason why there is none. Dereferencing without a check is a bug, as with
/// std::expected (C++23), whose subset this is.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: converts by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: converts by design

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  [[nodiscard]] T& operator*() & { return *value_pointer(); }
  [[nodiscard]] const T& operator*() const& { return *value_pointer(); }
  [[nodiscard]] T&& operator*() && { return std::move(*value_pointer()); }
  [[nodiscard]] T* operator->() { return value_pointer(); }
  [[nodiscard]] const T* operator->() const { return value_pointer(); }

  [[nodiscard]] Error& error() & { return *error_pointer(); }
  [[nodiscard]] const Error& error() const& { return *error_pointer(); }
  [[nodiscard]] Error&& error() && { return std::move(*error_pointer()); }

 private:
  [[nodiscard]] T* value_pointer() {
    assert(has_value());
    return std::get_if<0>(&state_);
  }
  [[nodiscard]] const T* value_pointer() const {
    assert(has_value());
    return std::get_if<0>(&state_);
  }
  [[nodiscard]] Error* error_pointer() {
    assert(!has_value());
    return std::get_if<1>(&state_);
  }
  [[nodiscard]] const Error* error_pointer() const {
    assert(!has_value());
    return std::get_if<1>(&state_);
  }

  std::variant<T, Error> state_;
};

/// Success without a value.
struct Done {};
using Status = Result<Done>;

}  // namespace gpumem::core
