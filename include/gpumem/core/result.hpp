// Result: a value, or an Error that says what went wrong, where, and what to do about it.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace gpumem::core {

/// What kind of failure it is. The command line maps these to its exit codes (see exit_code).
enum class ErrorCode : std::uint8_t {
  invalid_argument,     ///< a caller's value is out of range (batch 0, an unknown optimizer)
  unknown_gpu,          ///< no profile of that name
  unreadable_file,      ///< it does not exist, is a directory, or may not be read
  unknown_format,       ///< the text is none of the summary formats, or several
  malformed_input,      ///< a summary, profile or job that breaks its format
  unknown_layer,        ///< a layer that holds parameters and that no op describes
  missing_information,  ///< the input is sound but says too little for this estimate
  overflow,             ///< a size that does not fit 64 bits
  deadline_exceeded,    ///< the caller's deadline came before the answer (see deadline.hpp)
};

/// The name of a code as it is in JSON output, such as "malformed_input".
[[nodiscard]] std::string_view to_string(ErrorCode code);

/// The documented process exit code: 2 usage, 3 bad input, 4 an estimate that cannot be made.
[[nodiscard]] int exit_code(ErrorCode code);

/// Where it went wrong; each part may be missing.
struct Place {
  std::string file;       ///< path as the caller gave it; empty: unknown
  std::int64_t line = 0;  ///< 1-based; 0: unknown
  std::string element;    ///< layer path or JSON pointer; empty: unknown
};

/// A failure: its kind, its place, and a message that names the remedy.
struct Error {
  ErrorCode code = ErrorCode::invalid_argument;
  std::string message;
  Place place;

  /// This error, said to have happened in `file` if it names none itself.
  [[nodiscard]] Error in_file(std::string_view file) && {
    if (place.file.empty()) place.file = file;
    return std::move(*this);
  }
};

/// An input that breaks its format, at a place that the caller names.
[[nodiscard]] inline Error malformed(std::string message) {
  return {ErrorCode::malformed_input, std::move(message), {}};
}

/// "FILE:LINE: ELEMENT: message", leaving out what is unknown.
[[nodiscard]] std::string to_string(const Error& error);

/// The text, or its first `longest` bytes (no UTF-8 sequence cut in half) and "...".
[[nodiscard]] std::string shortened(std::string_view text, std::size_t longest);

/// A piece of untrusted text fit for a message: quoted, at most 60 bytes, control bytes replaced.
[[nodiscard]] std::string quoted(std::string_view text);

/// "a", "a and b", "a, b and c": several texts in a sentence.
template <typename Texts>
[[nodiscard]] std::string listed(const Texts& texts) {
  std::string list;
  for (std::size_t index = 0; index < texts.size(); ++index) {
    if (index > 0) list += index + 1 == texts.size() ? " and " : ", ";
    list += texts[index];
  }
  return list;
}

/// The name that somebody who wrote `word` most likely meant: upper and lower case, '-' and '_' alike, at most a third
/// of its letters otherwise. Empty: no name is so near, or two are equally near.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> names);

/// " (did you mean 'adamw'?)", or nothing where no name is near.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

// A value or an Error: always one of the two, never both.

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

/// Whether a setting has one of the `words` that it takes, which have a space between them. Errors: invalid_argument,
/// "vllm_mode: 'colocat' is none of server, colocate", with the nearest of them.
[[nodiscard]] Status check_word(std::string_view setting, std::string_view word, std::string_view words);

}  // namespace gpumem::core
