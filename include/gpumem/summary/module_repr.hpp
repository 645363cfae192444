// Input: one line of print(model).
// Output: what it says: a module opened, closed or both, its arguments and its printed parameter count.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/op_traits.hpp"
#include "gpumem/summary/text.hpp"

namespace gpumem::summary {

/// One line, cut but not yet understood.
struct ModuleLine {
  enum class Kind : std::uint8_t {
    leaf,    ///< (conv1): Conv2d(3, 64)
    opens,   ///< (layer1): Sequential(
    closes,  ///< )
    tensor,  ///< (0): Parameter containing: [torch.float32 of size 4x4]
    text,    ///< anything else: arguments of a module that also has children
  };
  Kind kind = Kind::text;
  std::string_view name;                   ///< "conv1"; empty for the root
  std::string_view class_name;             ///< "Conv2d"
  std::string_view arguments;              ///< "3, 64"
  std::int64_t repeats = 1;                ///< 12 for "(0-11): 12 x BertLayer("
  std::optional<std::int64_t> parameters;  ///< from ", 9,408 params", or a tensor's elements
};

/// Elements of all tensors that a text shows as "... of size 4x4]"; invalid if they do not fit 64 bits.
[[nodiscard]] core::Checked tensor_elements(std::string_view text);

/// Errors (without a place): malformed_input for a count that is not one, overflow.
[[nodiscard]] core::Result<ModuleLine> cut_module_line(std::string_view line);

/// The arguments as attributes: named ones by their names, the others by the op's positional names. What is
/// neither number, list of numbers, boolean nor quoted text is left out.
void parse_arguments(std::string_view arguments, model::Names positional, std::vector<model::Attribute>& attributes);

/// Whether a whole number is among a module's arguments: parameters are made of these ("Linear4bit(in_features=64", as
/// against "Snake(p=0.1)").
[[nodiscard]] bool prints_sizes(const model::Attributes& arguments);

/// The elements of a matrix from in_features to out_features; nothing if the arguments do not tell both.
[[nodiscard]] std::optional<std::int64_t> printed_matrix(const model::Attributes& arguments);

namespace module_repr_detail {

/// Follows brackets and quotes along a line.
class Nesting {
 public:
  /// Takes the next byte in.
  void step(char byte) {
    if (quote_ != 0) {
      if (byte == quote_) quote_ = 0;
      return;
    }
    if (byte == '\'' || byte == '"') quote_ = byte;
    if (byte == '(' || byte == '[' || byte == '{') ++depth_;
    if (byte == ')' || byte == ']' || byte == '}') --depth_;
  }
  /// Neither in a bracket nor in quotes.
  [[nodiscard]] bool outside() const { return depth_ == 0 && quote_ == 0; }

 private:
  std::int64_t depth_ = 0;
  char quote_ = 0;
};

/// Position of the bracket that closes the one at `open`; npos if the line ends before.
inline std::size_t closing_bracket(std::string_view text, std::size_t open) {
  Nesting nesting;
  for (std::size_t at = open; at < text.size(); ++at) {
    nesting.step(text[at]);
    if (nesting.outside()) return at;
  }
  return std::string_view::npos;
}

/// Reads ", 9,408 params" (or nothing) after a closing bracket.
inline core::Result<std::optional<std::int64_t>> suffix_count(std::string_view suffix) {
  suffix = trim(suffix);
  constexpr std::string_view kUnit = " params";
  if (suffix.empty() || suffix == ",") return std::optional<std::int64_t>();
  if (!suffix.starts_with(",") || !suffix.ends_with(kUnit)) {
    return core::Error{core::ErrorCode::malformed_input,
                       core::quoted(suffix) + " after a module is not ', N params'; the file is cut off or edited",
                       {}};
  }
  suffix.remove_suffix(kUnit.size());
  const core::Result<std::int64_t> count = parse_count(trim(suffix.substr(1)));
  if (!count) return count.error();
  return std::optional<std::int64_t>(*count);
}

/// Takes "12 x " off the front; 1 if it is not there, nothing if the number is no usable one.
inline std::optional<std::int64_t> take_repeats(std::string_view& rest) {
  std::size_t at = 0;
  const auto count = read_digits(rest, at);
  if (at == 0 || !rest.substr(at).starts_with(" x ")) return 1;
  rest.remove_prefix(at + 3);
  return count && *count > 0 ? count : std::nullopt;
}

inline std::optional<model::AttributeValue> scalar_value(std::string_view text) {
  if (text == "True") return model::AttributeValue(true);
  if (text == "False") return model::AttributeValue(false);
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front()) {
    return model::AttributeValue(std::string(text.substr(1, text.size() - 2)));
  }
  std::int64_t integer = 0;
  const char* end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data(), end, integer); read.ec == std::errc() && read.ptr == end) {
    return model::AttributeValue(integer);
  }
  double real = 0.0;
  if (const auto read = std::from_chars(text.data(), end, real); read.ec == std::errc() && read.ptr == end) {
    // inf and nan are no sizes, and JSON has no word for them.
    return std::isfinite(real) ? std::optional(model::AttributeValue(real)) : std::nullopt;
  }
  // print() drops the quotes of some words: padding=same.
  if (is_identifier(text) && text != "None") return model::AttributeValue(std::string(text));
  return std::nullopt;
}

/// "(3, 3)" or "[1, 2]" as a list of integers; None, which leaves an axis as it is, becomes -1.
inline std::optional<model::AttributeValue> list_value(std::string_view text) {
  std::vector<std::int64_t> values;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = trim(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (item.empty() && text.empty()) break;
    const auto value = item == "None" ? model::AttributeValue(std::int64_t{-1}) : scalar_value(item);
    const auto* integer = value ? std::get_if<std::int64_t>(&*value) : nullptr;
    if (integer == nullptr) return std::nullopt;
    values.push_back(*integer);
  }
  return model::AttributeValue(std::move(values));
}

inline std::optional<model::AttributeValue> value_of(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const bool list = (text.front() == '(' && text.back() == ')') || (text.front() == '[' && text.back() == ']');
  return list ? list_value(text) : scalar_value(text);
}

/// Length of the argument at the front: up to the comma that is in no bracket and no quotes.
inline std::size_t argument_length(std::string_view text) {
  Nesting nesting;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == ',' && nesting.outside()) return at;
    nesting.step(text[at]);
  }
  return text.size();
}

}  // namespace module_repr_detail

inline core::Checked tensor_elements(std::string_view text) {
  constexpr std::string_view kMark = " of size ";
  core::Checked all = 0;
  for (std::size_t at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark, at)) {
    at += kMark.size();
    core::Checked elements = 1;
    do {
      elements *= core::Checked(read_digits(text, at).value_or(-1));
    } while (at < text.size() && text[at++] == 'x');
    all += elements;
  }
  return all;
}

inline core::Result<ModuleLine> cut_module_line(std::string_view line) {
  namespace detail = module_repr_detail;
  ModuleLine result;
  std::string_view rest = trim(line);
  if (rest.starts_with(")")) {
    const auto count = detail::suffix_count(rest.substr(1));
    if (!count) return count.error();
    result.kind = ModuleLine::Kind::closes;
    result.parameters = *count;
    return result;
  }
  if (rest.starts_with("(")) {
    const std::size_t end = rest.find("): ");
    if (end == std::string_view::npos) return result;
    result.name = rest.substr(1, end - 1);
    rest.remove_prefix(end + 3);
    const auto repeats = detail::take_repeats(rest);
    if (!repeats)
      return core::Error{core::ErrorCode::malformed_input, "repeats a module an unusable number of times", {}};
    result.repeats = *repeats;
  }
  if (rest.starts_with("Parameter containing:")) {
    const auto elements = tensor_elements(rest).value();
    if (!elements) return core::Error{core::ErrorCode::overflow, "holds a tensor beyond 64 bits", {}};
    result.kind = ModuleLine::Kind::tensor;
    result.parameters = *elements;
    return result;
  }
  const std::size_t open = rest.find('(');
  if (open == std::string_view::npos || !is_identifier(rest.substr(0, open))) return result;
  result.class_name = rest.substr(0, open);
  const std::size_t close = detail::closing_bracket(rest, open);
  if (close == std::string_view::npos) {
    // Only a bracket at the line's end opens a module; "Linear(in_features=3, out" is cut off.
    if (open + 1 == rest.size()) result.kind = ModuleLine::Kind::opens;
    return result;
  }
  result.kind = ModuleLine::Kind::leaf;
  result.arguments = rest.substr(open + 1, close - open - 1);
  const auto count = detail::suffix_count(rest.substr(close + 1));
  if (!count) return count.error();
  result.parameters = *count;
  return result;
}

inline void parse_arguments(std::string_view arguments, model::Names positional,
                            std::vector<model::Attribute>& attributes) {
  namespace detail = module_repr_detail;
  constexpr std::size_t kMostArguments = 64;  // no module has as many; a line of millions is not a module
  std::size_t index = 0;
  while (!trim(arguments).empty() && attributes.size() < kMostArguments) {
    const std::size_t length = detail::argument_length(arguments);
    std::string_view argument = trim(arguments.substr(0, length));
    arguments.remove_prefix(std::min(length + 1, arguments.size()));
    const std::size_t equals = argument.find('=');
    std::string_view name;
    if (equals != std::string_view::npos && is_identifier(argument.substr(0, equals))) {
      name = argument.substr(0, equals);
      argument = argument.substr(equals + 1);
    } else if (index < positional.size()) {
      name = positional[index++];
    }
    const auto value = detail::value_of(argument);
    const bool known = model::Attributes(attributes).find(name) != nullptr;
    if (!name.empty() && value && !known) attributes.push_back({std::string(name), *value});
  }
}

inline bool prints_sizes(const model::Attributes& arguments) {
  const auto all = arguments.all();
  return std::any_of(all.begin(), all.end(), [](const model::Attribute& argument) {
    return std::holds_alternative<std::int64_t>(argument.value) ||
           std::holds_alternative<std::vector<std::int64_t>>(argument.value);
  });
}

inline std::optional<std::int64_t> printed_matrix(const model::Attributes& arguments) {
  const auto in = arguments.integer("in_features");
  const auto out = arguments.integer("out_features");
  if (!in || !out) return std::nullopt;
  return (core::Checked(*in) * core::Checked(*out)).value();
}

}  // namespace gpumem::summary
