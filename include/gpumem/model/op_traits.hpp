// Enters: one row an op, written in ops/. Leaves: what a reader of summaries must know of an op: the
// class names frameworks print for it, what its printed arguments are called, and how many parameters
// follow from them. Shapes and memory are the business of ops/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpumem/core/checked.hpp"
#include "gpumem/model/attribute.hpp"

namespace gpumem::model {

using Names = std::span<const std::string_view>;

/// How many parameters follow from an op's attributes alone; nothing if they say too little. The count
/// may be invalid: the attributes of an unchecked file can multiply beyond 64 bits.
using ParameterCount = std::optional<core::Checked> (*)(const Attributes&);

struct OpTraits {
  std::string_view name;                ///< the op in graph JSON and in ModelGraph: "conv2d"
  Names torch_classes = {};             ///< "Conv2d", and what timm, torchvision and HuggingFace derive from it
  Names keras_classes = {};             ///< "Conv2D"
  Names positional = {};                ///< names of the arguments that print(module) gives without a name
  ParameterCount parameters = nullptr;  ///< null: the op never holds parameters
  /// Its parameters are not called weight and bias, so torchsummary prints 0 for them.
  bool parameters_of_other_names = false;
  Names torch_endings = {};  ///< endings of class names that stand for it: "RMSNorm" in "Gemma3RMSNorm"
};

/// Finds ops by their own name or by a framework's class name. Immutable; views the traits it was made of,
/// which must outlive it.
class Vocabulary {
 public:
  Vocabulary() = default;
  explicit Vocabulary(std::span<const OpTraits* const> ops);

  [[nodiscard]] const OpTraits* find_op(std::string_view name) const { return find(ops_, name); }
  /// By the class name, by what torch.nn.utils.parametrize made of it ("ParametrizedLinear"), or by its ending.
  [[nodiscard]] const OpTraits* find_torch(std::string_view class_name) const;
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
  Index keras_;
  std::vector<std::pair<std::string_view, const OpTraits*>> torch_endings_;
};

}  // namespace gpumem::model

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/model/impl/op_traits_inl.hpp"
#endif
