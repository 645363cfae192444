// Input: patterns of names, separated by commas: "model.layers.0, *.bias".
// Output: whether a module or one of its parameters matches. A star matches any text, a question mark one letter. A
// pattern that names a container matches all modules in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpumem::adapt {

class NamePatterns {
 public:
  explicit NamePatterns(std::string_view text);

  [[nodiscard]] bool empty() const { return patterns_.empty(); }
  /// Whether one of them means this name: "model.norm", "model.norm.weight". Notes which ones did.
  [[nodiscard]] bool match(std::string_view name);
  /// The first one that has meant nothing so far; empty: there is none.
  [[nodiscard]] std::string_view unused() const;

 private:
  struct Pattern {
    std::string text;
    bool used = false;
  };
  std::vector<Pattern> patterns_;
};

}  // namespace gpumem::adapt
