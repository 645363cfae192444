// Input: one line of print(model).
// Output: what it says: a module opened, closed or both, its arguments and its printed parameter count.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/op_traits.hpp"

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

}  // namespace gpumem::summary
