// Enters: a graph without edges, part by part in the order in which they are called, each with the tensor that it
// reads. Leaves: the same layers with edges and shapes, and the operations between them that no row shows.
//
// A layer in a table is completed from its shapes; one in a tree gets its shape from its op's rule. Where a row of
// one axis per sample follows images, the pooling and flattening between them are added, which models do in
// forward(). An activation overwrites what it reads (inplace=True, as torchvision's models have it) where a table does
// not say: if it reads a convolution, a batch norm or a sum, and nothing else has read that before.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/connect/containers.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/graph_builder.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::connect {

/// A tensor of the wired graph: the layer that makes it, or a graph input.
using Tensor = model::LayerIndex;

/// The shape of a layer's first output as the table prints it, channels in front of pixels as PyTorch has them.
[[nodiscard]] core::Shape printed_shape(const model::ModelGraph& graph, const model::Layer& layer);
/// A shape of a format that has channels last (Keras), as PyTorch has it.
[[nodiscard]] core::Shape channels_first(const model::ModelGraph& graph, core::Shape shape);

/// Whether the first layer of a part, as a table prints it, can read this shape, in the usual way (see complete.hpp).
[[nodiscard]] bool readable(const model::ModelGraph& graph, const Containers& containers, Part part,
                            const core::Shape& shape);

class Wiring;

/// Wires one container, called with this input; returns what it returns.
using WireContainer = Tensor (*)(Wiring&, const Container&, Tensor input);
/// The rule for containers of a class; null: their parts are called one after the other.
using WireRules = WireContainer (*)(std::string_view class_name);

/// Remembers the first error and does nothing after it, so that rules need not look.
class Wiring {
 public:
  Wiring(const model::TrainingJob& job, const ops::Catalogue& ops, const Containers& containers, WireRules rules,
         model::GraphInput input);

  /// Calls a layer, or a container by its rule.
  Tensor call(Part part, Tensor input);
  /// Calls parts one after the other.
  Tensor chain(std::span<const Part> parts, Tensor input);
  /// Calls the children of these names that the container has, one after the other.
  Tensor chain_named(const Container& container, std::span<const std::string_view> names, Tensor input);
  /// An operation that no row shows; its shape follows from its inputs.
  Tensor operation(std::string_view op, std::span<const Tensor> inputs, std::vector<model::Attribute> attributes = {});
  /// Two tensors made one: a join. `in_place`: left += right.
  Tensor add(Tensor left, Tensor right, bool in_place);
  Tensor multiply(Tensor left, Tensor right);
  Tensor concatenate(std::span<const Tensor> tensors);

  /// Images [N, D, h, w] as a sequence of so many tokens, [N, T, D]: h w of them, and one more in front where T counts
  /// it, which a vision transformer learns (its parameters are counted where the table has them). Else the input.
  Tensor as_sequence(Tensor images, std::int64_t tokens, std::int64_t width);

  /// Whether the rows stand in the order of their calls, one a call (tables); a tree has one a module.
  [[nodiscard]] bool called() const { return graph_.shapes_printed(); }
  [[nodiscard]] const core::Shape& shape(Tensor tensor) const;
  [[nodiscard]] const Container& container(Part part) const { return containers_[part.index]; }
  [[nodiscard]] std::optional<Part> child(const Container& container, std::string_view name) const;
  [[nodiscard]] std::string_view name(Part part) const;
  /// The op of a layer; empty for a container or an unknown layer.
  [[nodiscard]] std::string_view op(Part part) const;
  /// Whether the part's first layer can read this tensor.
  [[nodiscard]] bool fits(Part part, Tensor tensor) const { return readable(graph_, containers_, part, shape(tensor)); }

  void fail(core::Error error);
  [[nodiscard]] bool failed() const { return builder_.failed(); }
  [[nodiscard]] std::int64_t joins() const { return joins_; }
  /// Layers whose printed shape does not follow from what they were chained to.
  [[nodiscard]] std::int64_t misfits() const { return misfits_; }
  [[nodiscard]] core::Result<model::ModelGraph> build() && { return std::move(builder_).build(); }

 private:
  struct Made {
    core::Shape shape;
    const model::OpTraits* op = nullptr;  ///< of the layer whose memory it is
    Tensor memory = 0;                    ///< the tensor whose memory it is: itself, or what an identity looks at
    std::int64_t reads = 0;
    std::optional<std::uint32_t> gate;  ///< made of a pooling to one pixel in this scope of the source
  };

  Tensor call_layer(std::uint32_t index, Tensor input);
  Tensor call_printed(const model::Layer& layer, const ops::Op& op, Tensor input);
  Tensor call_declared(const model::Layer& layer, const ops::Op& op, Tensor input);
  /// LayerNorm2d: a layer norm with the channels behind the pixels, and back.
  Tensor call_channels_last(const model::Layer& layer, const ops::Op& op, Tensor input);
  void hold_parameters(const model::Layer& layer);
  /// The input with what must stand between it and a layer that reads a row of these many features a sample: pooling
  /// and flattening of images, the first token of a sequence. `biased`: one feature less does too.
  Tensor bridged(Tensor input, std::int64_t features, bool biased = false);
  /// The features that a layer of a tree, or what follows the dropouts from it on, reads of each row.
  [[nodiscard]] std::optional<std::int64_t> declared_features(const model::Layer& layer) const;
  Tensor emit(const model::Layer& layer, const ops::Op& op, std::span<const Tensor> inputs,
              std::span<const core::Shape> outputs, std::vector<model::Attribute> attributes);
  [[nodiscard]] bool overwrites(const model::Layer& layer, const ops::Op& op, Tensor input) const;
  void fail_at(const model::Layer& layer, core::Error error);
  Made& made(Tensor tensor) { return tensor < 0 ? input_ : made_[static_cast<std::size_t>(tensor)]; }
  [[nodiscard]] const Made& made(Tensor tensor) const {
    return tensor < 0 ? input_ : made_[static_cast<std::size_t>(tensor)];
  }

  const model::ModelGraph& graph_;
  const ops::Catalogue& ops_;
  const Containers& containers_;
  WireRules container_rule_;
  std::vector<const ops::Op*> rules_;  ///< by the graph's op index
  model::GraphBuilder builder_;
  Made input_;
  std::vector<Made> made_;  ///< one a layer of the wired graph
  std::int64_t joins_ = 0;
  std::int64_t misfits_ = 0;
};

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/wiring_inl.hpp"
#endif
