// Enters: a layer's attributes and the shapes of its inputs. Leaves: Op, the rule object that answers every
// question about one kind of layer. PyTorch's semantics are the reference: each family names the function
// it follows.
#pragma once

#include <span>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/op_traits.hpp"

namespace gpumem::ops {

struct OpInput {
  model::Attributes attributes;
  std::span<const core::Shape> inputs;  ///< at least one, unless the op reads nothing
};

/// The output shape for these inputs. Errors carry no place: the caller knows the layer.
using ShapeRule = core::Result<core::Shape> (*)(const OpInput&);

/// The axis that an attribute of the op fixes in its input: a convolution's in_channels stand on axis 1, a
/// linear layer's in_features on the last one.
struct ExpectedWidth {
  enum class Axis : std::uint8_t { none, channels, last };
  Axis axis = Axis::none;
  std::string_view attribute = {};
};

struct Op {
  model::OpTraits traits;
  ShapeRule output_shape = nullptr;  ///< null: no tensor leaves the op
  ExpectedWidth expects = {};
  bool reads_token_ids = false;  ///< its input is integer ids, so without edges it reads the graph's input
  bool reads_nothing = false;    ///< its tensor's shape is its attribute "shape"; without one no tensor leaves it
};

/// The input's shape, unchanged: activations, dropout, normalisation.
[[nodiscard]] inline core::Result<core::Shape> same_shape(const OpInput& input) { return input.inputs[0]; }

/// An error without a place, for use in shape rules.
[[nodiscard]] inline core::Error missing(std::string_view attribute) {
  return {core::ErrorCode::missing_information, "does not say its " + std::string(attribute), {}};
}
[[nodiscard]] inline core::Error unfit(const core::Shape& input, std::string_view needs) {
  return {core::ErrorCode::missing_information,
          "cannot take an input of shape " + core::to_string(input) + ": it needs " + std::string(needs),
          {}};
}

/// For ops whose output only a printed shape tells.
[[nodiscard]] inline core::Result<core::Shape> printed_shape_only(const OpInput&) {
  return core::Error{core::ErrorCode::missing_information, "needs a summary that prints its output shape", {}};
}

}  // namespace gpumem::ops
