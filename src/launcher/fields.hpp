// Input: a JSON object of the journal.
// Output: its fields by name and type. Every field must be there and have its type, and no other field may be left at
// the end. The first fault is kept and reported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"

namespace gpumem::launcher {

class Fields {
 public:
  /// Views `object`.
  explicit Fields(const core::JsonValue& object);

  /// 0 to 2^63 - 1.
  [[nodiscard]] std::int64_t whole(std::string_view key);
  /// Finite, 0 or more.
  [[nodiscard]] double number(std::string_view key);
  [[nodiscard]] std::string text(std::string_view key);
  [[nodiscard]] bool flag(std::string_view key);
  [[nodiscard]] core::Bytes bytes(std::string_view key) { return core::Bytes(whole(key)); }
  /// Nothing for null.
  [[nodiscard]] std::optional<core::Bytes> bytes_or_null(std::string_view key);
  [[nodiscard]] std::optional<double> number_or_null(std::string_view key);
  /// The values of a list or an object; null where it is none, which is a fault then.
  [[nodiscard]] const core::JsonValue* list(std::string_view key);
  [[nodiscard]] const core::JsonValue* object(std::string_view key);

  void refuse(std::string_view key, const std::string& why);
  /// Errors: malformed_input with the first fault, or with a field that nobody took.
  [[nodiscard]] core::Status finish() const;

 private:
  /// The field of this name, which is taken now. Null: it is not there, which is a fault.
  [[nodiscard]] const core::JsonValue* take(std::string_view key);

  const core::JsonValue& object_;
  std::vector<std::string_view> names_;
  std::optional<core::Error> fault_;
};

}  // namespace gpumem::launcher
