// Input: one row an op, written in ops/.
// Output: what every room may ask about an op: the class names that frameworks print for it, what its printed arguments
// are called, how many parameters follow from them, what kind of work it does. No other file lists ops by their names.
// Shapes and memory are the business of ops/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/shape.hpp"

namespace gpumem::model {

// Input: what a summary says about a layer in addition to its shape (kernel_size=(3, 3), bias=False, ...).
// Output: named values. Their names are PyTorch's keywords, whatever the format was.

/// A list of dimensions is one in which at least one grows with the batch size; others are lists of integers.
using AttributeValue =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<core::Dim>>;

struct Attribute {
  std::string name;
  AttributeValue value;

  friend bool operator==(const Attribute&, const Attribute&) = default;
};

/// A layer's attributes, read by name. Views the graph (or array) they come from.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::span<const Attribute> all) : all_(all) {}  // NOLINT: a view converts

  [[nodiscard]] std::span<const Attribute> all() const { return all_; }
  [[nodiscard]] const AttributeValue* find(std::string_view name) const;

  /// The value if it is there and an integer.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const;
  /// The value if it is there and a boolean; `otherwise` if not.
  [[nodiscard]] bool flag(std::string_view name, bool otherwise) const;
  /// Element `axis` of a list, or the integer that holds for every axis (kernel_size=3).
  [[nodiscard]] std::optional<std::int64_t> per_axis(std::string_view name, std::size_t axis) const;

 private:
  std::span<const Attribute> all_;
};

using Names = std::span<const std::string_view>;

/// How many parameters follow from only an op's attributes; nothing if they say too little. The count may be invalid:
/// the attributes of an unchecked file can multiply beyond 64 bits.
using ParameterCount = std::optional<core::Checked> (*)(const Attributes&);

/// What kind of work an op does.
enum class OpFamily : std::uint8_t {
  linear,
  conv,  ///< transposed ones too
  norm,
  activation,
  softmax,
  dropout,
  pool,
  embedding,
  attention,
  recurrent,
  view,   ///< no memory of its own: flatten, reshape, a bare parameter
  other,  ///< computes, and is of no family above: sums, products, copies, reductions, losses
};

/// A family that must be given: a row that leaves it out does not compile.
class GivenFamily {
 public:
  constexpr GivenFamily(OpFamily family) : family_(family) {}  // NOLINT: families convert
  constexpr operator OpFamily() const { return family_; }      // NOLINT: and back

 private:
  OpFamily family_;
};

/// What backward reads of a layer again, roughly: for learned models. The op's record rule decides the replay.
enum class Keeps : std::uint8_t { nothing, input, output };

/// The activation functions that learned models tell apart.
enum class ActivationFunction : std::uint8_t {
  elu,
  gelu,
  identity,
  leaky_relu,
  mish,
  prelu,
  relu,
  selu,
  silu,
  softplus,
  tanh,
  none,  ///< of another name
};

/// What a normalisation takes its statistics over.
enum class NormKind : std::uint8_t { none, batch, layer, rms, other };

/// How connect/ finds out what a table does not print of the op (connect/complete.hpp).
enum class Completion : std::uint8_t {
  none,
  convolution,
  transposed_convolution,
  linear,
  batch_norm,
  layer_norm,
  attention,
};

struct OpTraits {
  std::string_view name;  ///< the op in graph JSON and in ModelGraph: "conv2d"
  GivenFamily family;
  Names torch_classes = {};             ///< "Conv2d", and what timm, torchvision and HuggingFace derive from it
  Names keras_classes = {};             ///< "Conv2D"
  Names positional = {};                ///< names of the arguments that print(module) gives without a name
  ParameterCount parameters = nullptr;  ///< null: the op never holds parameters
  /// Its parameters are not called weight and bias, so torchsummary prints 0 for them.
  bool parameters_of_other_names = false;
  Names torch_endings = {};  ///< endings of class names that mean it: "RMSNorm" in "Gemma3RMSNorm"
  /// Classes that only print(model) shows on one line: a table has rows for their parts, or the name is a common one.
  Names tree_classes = {};
  /// Blocks that a table cut at a depth shows on one line, with their output and the parameters of all their layers.
  Names cut_classes = {};

  Keeps keeps = Keeps::nothing;
  ActivationFunction function = ActivationFunction::none;
  NormKind norm = NormKind::none;
  Completion completion = Completion::none;
  bool multiplies = false;      ///< holds matrices that its input is multiplied by: a block has two such layers
  bool overwrites = false;      ///< torchvision and most others build it with inplace=True
  bool overwritten = false;     ///< its output may be overwritten by such a layer: backward does not read it
  bool hides_in_place = false;  ///< print() shows the same whether it is in place or not
  bool hands_through = false;   ///< its output is its input
  bool computes = true;         ///< Horus counts its output (estimate/published.hpp)

  /// Whether it projects what it reads itself, as torch.nn.MultiheadAttention does.
  [[nodiscard]] constexpr bool projects() const { return family == OpFamily::attention && parameters != nullptr; }
};

/// Finds ops by their own name or by a framework's class name. Immutable; views the traits it was made of,
/// which must outlive it.
/// Thread safety: immutable; any number of threads may use one.
class Vocabulary {
 public:
  Vocabulary() = default;
  explicit Vocabulary(std::span<const OpTraits* const> ops);

  [[nodiscard]] const OpTraits* find_op(std::string_view name) const { return find(ops_, name); }
  /// By the class name, by what torch.nn.utils.parametrize made of it ("ParametrizedLinear"), or by its ending.
  [[nodiscard]] const OpTraits* find_torch(std::string_view class_name) const;
  /// The op of a class that print(model) shows on one line.
  [[nodiscard]] const OpTraits* find_tree(std::string_view class_name) const {
    const OpTraits* op = find(tree_, class_name);
    return op == nullptr ? find_torch(class_name) : op;
  }
  /// The op of a block that a table shows without its layers.
  [[nodiscard]] const OpTraits* find_cut(std::string_view class_name) const { return find(cut_, class_name); }
  [[nodiscard]] const OpTraits* find_keras(std::string_view class_name) const { return find(keras_, class_name); }
  /// The op of a Keras class whose name was cut: of all names that begin so, the shortest's.
  [[nodiscard]] const OpTraits* find_keras_prefix(std::string_view beginning) const;

 private:
  using Index = std::unordered_map<std::string_view, const OpTraits*>;

  [[nodiscard]] static const OpTraits* find(const Index& index, std::string_view name) {
    const auto found = index.find(name);
    return found == index.end() ? nullptr : found->second;
  }

  Index ops_;
  Index torch_;
  Index tree_;
  Index cut_;
  Index keras_;
  std::vector<std::pair<std::string_view, const OpTraits*>> torch_endings_;
};

}  // namespace gpumem::model
