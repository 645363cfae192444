// Input: the text of a trainer's file, in JSON, TOML or YAML.
// Output: Setting, one tree of plain values for all. Files are untrusted: their size, depth and number of values are
// bounded. YAML's aliases are refused, because a few of them can expand to any number of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"

namespace gpumem::trainer_files {

/// Bounds of a file; no trainer's file comes near them.
inline constexpr std::size_t kLargestTrainerFile = std::size_t{256} << 10;
inline constexpr std::size_t kMostSettings = 4'000;
inline constexpr std::size_t kDeepestSetting = 16;

struct Setting {
  enum class Kind : std::uint8_t { null, boolean, integer, real, text, list, object };

  Kind kind = Kind::null;
  std::string key;  ///< of a field of an object
  /// A number as it is written, "true" or "false", a text; empty of null, lists and objects.
  std::string word;
  std::vector<Setting> items;  ///< of a list or an object
  std::int64_t line = 0;       ///< 1-based; 0: unknown

  /// The field of this key; null: there is none, or this is no object.
  [[nodiscard]] const Setting* field(std::string_view name) const;
  /// The field at "optimizer.params.lr".
  [[nodiscard]] const Setting* at(std::string_view path) const;
};

/// Text that begins with '{' is JSON; where its first line is a key with '=' or a table's name it is TOML; all else is
/// YAML. The root is an object. Errors: malformed_input, with the line;
/// invalid_argument for YAML where gpumem was built without yaml-cpp.
[[nodiscard]] core::Result<Setting> parse_settings(std::string_view text);

[[nodiscard]] core::Result<Setting> parse_json_settings(std::string_view text);
[[nodiscard]] core::Result<Setting> parse_yaml_settings(std::string_view text);
[[nodiscard]] core::Result<Setting> parse_toml_settings(std::string_view text);
/// Whether its first line is one of TOML.
[[nodiscard]] bool is_toml(std::string_view text);

/// Whether this build reads YAML.
[[nodiscard]] bool reads_yaml();

}  // namespace gpumem::trainer_files
