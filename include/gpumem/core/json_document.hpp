// Input: the text of one JSON value (RFC 8259).
// Output: JsonDocument, its values in one flat array (json_value.hpp), fields in the order of the text. Stricter than
// the RFC: an object has a key only once.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/json_value.hpp"
#include "gpumem/core/result.hpp"

namespace gpumem::core {

/// What goes beyond is refused before it takes memory.
struct JsonLimits {
  std::size_t depth = 16;
  std::size_t values = std::size_t{1} << 20;
  /// Takes what Python's json.dump() writes beyond the RFC: NaN for null, Infinity for the largest number.
  bool python_numbers = false;
};

/// Views the text that it was parsed from, which must outlive it.
class JsonDocument {
 public:
  /// Errors: malformed_input with a line (text that is not JSON, naming the byte) or with the JSON pointer of what
  /// occurs twice or goes beyond the limits.
  [[nodiscard]] static Result<JsonDocument> parse(std::string_view text, const JsonLimits& limits = {});

  JsonDocument(JsonDocument&&) = default;
  JsonDocument& operator=(JsonDocument&&) = default;
  JsonDocument(const JsonDocument&) = delete;  // its values would view the texts of the other
  JsonDocument& operator=(const JsonDocument&) = delete;
  ~JsonDocument() = default;

  [[nodiscard]] const JsonValue& root() const { return values_.front(); }

 private:
  friend class JsonDocumentBuilder;
  JsonDocument() = default;

  std::vector<JsonValue> values_;
  std::deque<std::string> kept_;  ///< texts that had escapes, and so are not in the input
};

/// One step of a JSON pointer (RFC 6901): "/features", "/0"; "~" and "/" in it are escaped. Long keys are cut.
[[nodiscard]] std::string pointer_step(std::string_view key);
[[nodiscard]] std::string pointer_step(std::size_t index);

/// The error with this step before the pointer that is its place: values report what is wrong with them, and what holds
/// them adds their place.
[[nodiscard]] Error below(std::string_view key, Error error);
[[nodiscard]] Error below(std::size_t index, Error error);

}  // namespace gpumem::core
