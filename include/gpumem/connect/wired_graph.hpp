// Input: the layers of a graph, and what is guessed about their edges.
// Output: the containers that hold them, by their names; counts of guesses, by kind.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/module_tree.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/adaptation.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/ops/op.hpp"

namespace gpumem::connect {

// Guesses: how much of a graph connect() had to guess. It tells how certain an answer is.
// Units: elements a sample, where elements are counted.

struct Guesses {
  std::int64_t edges = 0;       ///< layers whose input is a guess; each has a warning with its line
  std::int64_t first_line = 0;  ///< of the summary, of the first of these; 0: none
  std::int64_t stand_ins = 0;   ///< those of them that read a tensor that nothing in the summary makes
  std::int64_t containers = 0;  ///< of a class that is not known: their parts are called in the order of the tree
  std::int64_t layers = 0;      ///< layers of the summary that compute, for comparison

  /// Layers of which bounds are known and no more: of a class that is not known (connect/wiring.hpp), or run on regions
  /// whose number the images decide (architectures/detection_nets.hpp).
  std::int64_t bounded = 0;
  std::int64_t fewer_elements = 0;  ///< they may keep this much less than is planned,
  std::int64_t more_elements = 0;   ///< or this much more

  friend bool operator==(const Guesses&, const Guesses&) = default;
};

// Input: a graph without edges.
// Output: its containers, each with its parts in order: the scopes of a tree, or what torchsummary's marks tell.

/// A tensor of the wired graph: the layer that makes it, or a graph input.
using Tensor = model::LayerIndex;

/// A layer of the graph, or one of the containers.
using architectures::Part;

struct Container {
  std::string_view name;
  std::string_view class_name;
  std::vector<Part> parts;
};

/// The model itself comes first. A container without layers is left out.
using Containers = std::vector<Container>;

/// By scopes; one entry a scope.
[[nodiscard]] Containers containers_of(const model::ModelGraph& graph);

inline Containers containers_of(const model::ModelGraph& graph) {
  Containers all(graph.scopes());
  std::vector<bool> placed(all.size(), false);
  placed[0] = true;
  std::vector<std::uint32_t> above;
  for (std::uint32_t index = 0; index < graph.layers().size(); ++index) {
    const std::uint32_t own = graph.layers()[index].scope;
    above.clear();
    for (std::uint32_t scope = own; !placed[scope]; scope = graph.scope(scope).parent) above.push_back(scope);
    std::reverse(above.begin(), above.end());
    for (const std::uint32_t scope : above) {
      placed[scope] = true;
      all[scope].name = graph.scope_name(scope);
      all[scope].class_name = graph.class_name(graph.scope(scope));
      all[graph.scope(scope).parent].parts.push_back({scope, true});
    }
    all[own].parts.push_back({index, false});
  }
  return all;
}

// Input: a job's graph and what connect() finds out about it.
// Output: WiredGraph, the one form of a model that every stage after connect/ takes: each layer with its edges, its
// output shape and the rule of its op.
// Units: elements, with the batch size as N.
//
// It depends on four fields of the job: graph, input_shape, sequence_length and strict. Jobs that are equal in these
// have equal wired graphs. The sequence length is a number in its shapes; the batch size is not: it stays N.

/// A layer that reads what an unknown layer leaves, in a graph that was read leniently.
struct BehindUnknown {
  std::uint32_t layer = 0;
  bool reads = false;            ///< false: nothing fits it, so that no tensor leaves it either
  model::LayerIndex source = 0;  ///< what it is taken to read: the latest known tensor
};

/// One shape a layer. Equal ones are one: layers of repeated blocks have the same, and so the same number.
class InferredShapes {
 public:
  [[nodiscard]] bool empty() const { return numbers_.empty(); }
  void reserve(std::size_t layers) { numbers_.reserve(layers); }
  /// The next layer, which has a scalar's shape until another is set.
  void add_layer() { numbers_.push_back(0); }
  void set_last(std::uint32_t number) { numbers_.back() = number; }
  /// The shape's number; a shape that was not there lately gets a new one.
  std::uint32_t number_of(const core::Shape& shape);
  [[nodiscard]] std::uint32_t number(std::size_t layer) const { return numbers_[layer]; }
  [[nodiscard]] const core::Shape& operator[](std::size_t layer) const { return shapes_[numbers_[layer]]; }

 private:
  std::vector<core::Shape> shapes_ = {core::Shape()};  ///< by number
  std::vector<std::uint32_t> numbers_;                 ///< by layer
  std::array<std::uint32_t, 64> recent_{};             ///< numbers, by a mix of their shapes' sizes
};

inline std::uint32_t InferredShapes::number_of(const core::Shape& shape) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15;
  std::uint64_t mix = shape.rank();
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    mix = (mix ^ static_cast<std::uint64_t>(shape[axis].size)) * kFactor;
  }
  constexpr int kPlaceBits = 6;
  std::uint32_t& recent = recent_[mix >> (64 - kPlaceBits)];
  if (shapes_[recent] == shape) return recent;
  recent = static_cast<std::uint32_t>(shapes_.size());
  shapes_.push_back(shape);
  return recent;
}

/// The shapes of every layer of a graph with edges.
struct LayerShapes {
  std::vector<core::Shape> inputs;            ///< of the graph's inputs, as the job feeds them
  InferredShapes inferred;                    ///< one a layer; empty: the graph prints them
  std::vector<bool> leaves;                   ///< by layer: whether a tensor leaves it
  std::vector<BehindUnknown> behind_unknown;  ///< ascending by layer
};

/// Immutable. A copy costs a pointer.
/// Thread safety: any number of threads may read one.
class WiredGraph {
 public:
  struct Parts {
    std::shared_ptr<const model::ModelGraph> graph;  ///< with an edge for everything that a layer reads
    std::string edges;                               ///< how these were found, see edges()
    std::vector<const ops::Op*> ops;                 ///< by the graph's op index; null for unknown ops
    LayerShapes shapes;
    Guesses guesses = {};
    /// By layer, how its weights are held (adapt/); empty: all as the graph and the job's precision say.
    std::vector<model::WeightStorage> weights = {};
    std::vector<std::string> remarks = {};  ///< what adapting it took as given
    /// For one pipeline rank's graph: the first layer of each of its stages (parallel/); empty: all is one stage.
    std::vector<std::uint32_t> stages = {};
  };
  explicit WiredGraph(Parts parts) : parts_(std::make_shared<const Parts>(std::move(parts))) {}

  /// The layers, with their edges, attributes and parameters.
  [[nodiscard]] const model::ModelGraph& graph() const { return *parts_->graph; }
  [[nodiscard]] const std::shared_ptr<const model::ModelGraph>& shared_graph() const { return parts_->graph; }

  /// The shapes of the graph's inputs, as this job feeds them. A graph that names no input has one where the job gives
  /// its shape.
  [[nodiscard]] std::span<const core::Shape> input_shapes() const { return parts_->shapes.inputs; }
  [[nodiscard]] core::DType input_dtype(std::size_t input) const {
    const auto inputs = graph().graph_inputs();
    return input < inputs.size() ? inputs[input].dtype : core::DType::float32;
  }

  /// The shapes of the tensors that leave a layer: as printed, or inferred. None for bare parameters, unknown ops,
  /// layers that never run, and layers after an unknown one that nothing known fits.
  [[nodiscard]] std::span<const core::Shape> outputs(std::size_t layer) const;
  /// What a layer reads: its edges. A layer after an unknown one reads the latest known tensor, or nothing.
  [[nodiscard]] std::span<const model::LayerIndex> inputs(std::size_t layer) const;

  /// How the layer's weights are held, and which of them are trained.
  [[nodiscard]] model::WeightStorage weights(std::size_t layer) const {
    return parts_->weights.empty() ? model::WeightStorage() : parts_->weights[layer];
  }

  /// The shape of the tensor on an edge, which something leaves.
  [[nodiscard]] const core::Shape& shape_on(model::LayerIndex edge) const {
    if (edge < 0) return input_shapes()[static_cast<std::size_t>(model::kFirstGraphInput - edge)];
    return outputs(static_cast<std::size_t>(edge))[0];
  }
  /// Whether layers read something other than their edges say, in a graph that was read leniently.
  [[nodiscard]] bool has_stand_ins() const { return !parts_->shapes.behind_unknown.empty(); }

  /// The rule of the layer's op; null if it is unknown.
  [[nodiscard]] const ops::Op* op(const model::Layer& layer) const { return parts_->ops[layer.op]; }

  /// How the edges were found: "given", "architecture: gpt2, 12 heads, ...", "chained, 16 joins inferred".
  [[nodiscard]] const std::string& edges() const { return parts_->edges; }
  /// How much of them is guessed; all zero where the edges are given or an architecture's. The graph's warnings say
  /// where.
  [[nodiscard]] const Guesses& guesses() const { return parts_->guesses; }

  /// The first layer of each pipeline stage that the graph holds; empty: all of it is one stage.
  [[nodiscard]] std::span<const std::uint32_t> stages() const { return parts_->stages; }

  /// What was taken as given when the graph was adapted to a job.
  [[nodiscard]] std::span<const std::string> remarks() const { return parts_->remarks; }

  /// The layer's place in the summary, for messages.
  [[nodiscard]] core::Place place_of(const model::Layer& layer) const;

 private:
  std::shared_ptr<const Parts> parts_;
};

inline std::span<const core::Shape> WiredGraph::outputs(std::size_t layer) const {
  const LayerShapes& shapes = parts_->shapes;
  if (!shapes.leaves[layer]) return {};
  if (shapes.inferred.empty()) return graph().outputs(graph().layers()[layer]);
  return {&shapes.inferred[layer], 1};
}

inline std::span<const model::LayerIndex> WiredGraph::inputs(std::size_t layer) const {
  const auto& odd = parts_->shapes.behind_unknown;
  if (!odd.empty()) {
    const auto found = std::ranges::lower_bound(odd, layer, {}, &BehindUnknown::layer);
    if (found != odd.end() && found->layer == layer) return {&found->source, found->reads ? 1U : 0U};
  }
  return graph().inputs(graph().layers()[layer]);
}

inline core::Place WiredGraph::place_of(const model::Layer& layer) const {
  return {graph().file(), layer.line, graph().path(layer)};
}

}  // namespace gpumem::connect
