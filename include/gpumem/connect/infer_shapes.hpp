// Input: a graph with edges, the rules of its ops, and the job that feeds it.
// Output: the shape of every graph input and of every layer: the printed one where the summary prints shapes, otherwise
// inferred from the inputs on.
// Units: elements, with the batch size as N.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/op_traits.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::connect {

/// One sample's shape with the batch N before it.
[[nodiscard]] core::Shape with_batch(std::span<const std::int64_t> sample);

/// `graph` is the job's, or what connect() made of it; `ops` has the row of each op, by the graph's op index. In a
/// graph that was read leniently a layer may read what an unknown one leaves: it is taken to read the latest known
/// tensor if that fits it, else no tensor leaves it either.
///
/// Errors: missing_information where a layer does not say its sizes, or cannot take its input; malformed_input where an
/// edge does not have the width that its reader was built for, printed or inferred, and where a layer reads nothing.
[[nodiscard]] core::Result<LayerShapes> infer_shapes(const model::TrainingJob& job, const model::ModelGraph& graph,
                                                     std::span<const ops::Op* const> ops);

// Input: the shape that one of timm's "same" convolutions and poolings reads (Conv2dSame, AvgPool2dSame), and the
// layer's attributes.
// Output: by how many pixels its input is padded first, so that its output has ceil(size / stride).
// Source: timm 1.0.9, timm.layers.padding.pad_same.

/// Left, right, top and bottom, as the op "pad" has them; none if nothing is padded.
[[nodiscard]] inline std::vector<std::int64_t> same_padding(const core::Shape& shape, const model::Attributes& window) {
  std::vector<std::int64_t> sides;
  std::int64_t all = 0;
  for (const std::size_t axis : {std::size_t{1}, std::size_t{0}}) {
    constexpr std::int64_t kMost = std::int64_t{1} << 20;
    const std::int64_t size = shape[axis + 2].size;
    const std::int64_t kernel = window.per_axis("kernel_size", axis).value_or(1);
    const std::int64_t stride = window.per_axis("stride", axis).value_or(1);
    const std::int64_t dilation = window.per_axis("dilation", axis).value_or(1);
    const bool sane = size < kMost && kernel > 0 && kernel < kMost && stride > 0 && stride < kMost && dilation > 0 &&
                      dilation < kMost;
    if (!sane) return {};
    const std::int64_t reach = ((size + stride - 1) / stride - 1) * stride + (kernel - 1) * dilation + 1;
    const std::int64_t lacks = reach > size ? reach - size : 0;
    sides.push_back(lacks / 2);
    sides.push_back(lacks - lacks / 2);
    all += lacks;
  }
  return all > 0 ? sides : std::vector<std::int64_t>();
}

namespace infer_shapes_detail {

using core::Shape;
using ops::ExpectedWidth;

/// One sample's shape or the sequence length, where the job gives them, take the place of what the graph says.
inline Shape input_shape(const model::TrainingJob& job, const model::GraphInput& input, std::size_t index) {
  if (index == 0 && !job.input_shape.empty()) return with_batch(job.input_shape);
  Shape shape = input.shape;
  const bool token_ids = input.dtype == core::DType::int64 || input.dtype == core::DType::int32;
  if (job.sequence_length && token_ids && shape.rank() >= 2) shape.set(1, core::Dim::fixed(*job.sequence_length));
  return shape;
}

inline std::vector<Shape> input_shapes(const model::TrainingJob& job, const model::ModelGraph& graph) {
  std::vector<Shape> shapes;
  const auto inputs = graph.graph_inputs();
  for (std::size_t index = 0; index < inputs.size(); ++index) {
    shapes.push_back(input_shape(job, inputs[index], index));
  }
  if (inputs.empty() && !job.input_shape.empty()) shapes.push_back(with_batch(job.input_shape));
  return shapes;
}

/// The width that a shape has on the axis in question; nothing if it has no such axis or it is not fixed.
inline std::optional<std::int64_t> width_of(const Shape& shape, ExpectedWidth::Axis axis) {
  const std::size_t least = axis == ExpectedWidth::Axis::channels ? 2 : 1;
  if (shape.rank() < least) return std::nullopt;
  const core::Dim dim = shape[axis == ExpectedWidth::Axis::channels ? 1 : shape.rank() - 1];
  return dim.kind == core::Dim::Kind::fixed ? std::optional(dim.size) : std::nullopt;
}

/// A width on an edge that is not the one the layer was built for, in words; nothing if all is well.
inline std::optional<core::Error> width_fault(const ops::Op& op, const model::Attributes& attributes,
                                              const Shape& input) {
  if (op.expects.axis == ExpectedWidth::Axis::none) return std::nullopt;
  const auto wanted = attributes.integer(op.expects.attribute);
  if (!wanted || width_of(input, op.expects.axis) == wanted) return std::nullopt;
  return core::Error{core::ErrorCode::malformed_input,
                     "has " + std::string(op.expects.attribute) + " " + std::to_string(*wanted) +
                         ", but its input has the shape " + core::to_string(input),
                     {}};
}

/// Attributes may be any numbers (out_features=-5): what they make of a shape must still be a tensor's.
inline std::optional<core::Error> size_fault(const Shape& shape) {
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis].kind == core::Dim::Kind::unknown || shape[axis].size > 0) continue;
    return core::Error{core::ErrorCode::malformed_input,
                       "its sizes give an output of shape " + core::to_string(shape) + "; each must be positive",
                       {}};
  }
  return std::nullopt;
}

/// Goes through the layers once, in order.
class Inference {
 public:
  Inference(const model::TrainingJob& job, const model::ModelGraph& graph, std::span<const ops::Op* const> ops)
      : graph_(graph),
        ops_(ops),
        printed_(graph.shapes_printed()),
        no_sequence_(graph.reads_tokens() && !job.sequence_length) {
    shapes_.inputs = input_shapes(job, graph);
    shapes_.leaves.reserve(graph.layers().size());
    if (printed_) return;
    shapes_.inferred.reserve(graph.layers().size());
    for (const Shape& input : shapes_.inputs) input_numbers_.push_back(shapes_.inferred.number_of(input));
  }

  core::Result<LayerShapes> run() {
    core::Pace pace;
    for (const model::Layer& layer : graph_.layers()) {
      if (pace.late()) return core::deadline_error();
      shapes_.leaves.push_back(false);
      if (!printed_) shapes_.inferred.add_layer();
      if (auto fault = add(layer)) {
        // How many tokens a sample has is the caller's to say: no layer is at fault.
        const bool open = no_sequence_ && fault->code == core::ErrorCode::missing_information;
        fault->place = open ? core::Place{graph_.file(), 0, {}} : place_of(layer);
        return *std::move(fault);
      }
    }
    return std::move(shapes_);
  }

 private:
  [[nodiscard]] core::Place place_of(const model::Layer& layer) const {
    return {graph_.file(), layer.line, graph_.path(layer)};
  }
  [[nodiscard]] std::uint32_t self() const { return static_cast<std::uint32_t>(shapes_.leaves.size() - 1); }

  /// The shape of the tensor on an edge.
  [[nodiscard]] const Shape& shape_of(model::LayerIndex input) const {
    if (input < 0) return shapes_.inputs[static_cast<std::size_t>(model::kFirstGraphInput - input)];
    const auto layer = static_cast<std::size_t>(input);
    return printed_ ? graph_.outputs(graph_.layers()[layer])[0] : shapes_.inferred[layer];
  }

  std::optional<core::Error> add(const model::Layer& layer) {
    const ops::Op* op = ops_[layer.op];
    if (op == nullptr || op->output_shape == nullptr) return std::nullopt;
    if (op->reads_nothing && graph_.attributes(layer).find("shape") == nullptr) return std::nullopt;
    if (printed_ && graph_.outputs(layer).empty()) return std::nullopt;  // it never runs
    if (op->reads_nothing) {
      shapes_.leaves.back() = true;
      return printed_ ? std::nullopt : infer(layer, *op, {});
    }
    return printed_ ? add_printed(layer, *op) : add_inferred(layer, *op);
  }

  std::optional<core::Error> add_printed(const model::Layer& layer, const ops::Op& op) {
    const auto edges = graph_.inputs(layer);
    if (edges.empty()) return no_inputs();
    const bool several =
        edges[0] >= 0 && graph_.outputs(graph_.layers()[static_cast<std::size_t>(edges[0])]).size() != 1;
    if (!several) {  // which of several it reads is not told
      if (auto fault = width_fault(op, graph_.attributes(layer), shape_of(edges[0]))) return fault;
    }
    return reads_unknown(edges) ? stand_in(layer, op) : settle();
  }

  std::optional<core::Error> add_inferred(const model::Layer& layer, const ops::Op& op) {
    const auto edges = graph_.inputs(layer);
    if (edges.empty()) return no_inputs();
    if (reads_unknown(edges)) {
      auto fault = stand_in(layer, op);
      if (fault || !shapes_.leaves.back()) return fault;
      return infer(layer, op, {&shapes_.behind_unknown.back().source, 1});
    }
    numbers_.clear();
    for (const model::LayerIndex input : edges) numbers_.push_back(number_of(input));
    Recent& recent = recent_[recent_at(layer)];
    if (!recent.answers(layer, numbers_)) {
      if (auto fault = width_fault(op, graph_.attributes(layer), shape_of(edges[0]))) return fault;
      if (auto fault = infer(layer, op, edges)) return fault;
      recent = {layer.op, layer.attributes, numbers_, shapes_.inferred.number(self())};
    }
    shapes_.inferred.set_last(recent.output);
    return settle();
  }

  [[nodiscard]] std::uint32_t number_of(model::LayerIndex input) const {
    if (input < 0) return input_numbers_[static_cast<std::size_t>(model::kFirstGraphInput - input)];
    return shapes_.inferred.number(static_cast<std::size_t>(input));
  }

  /// What a layer left. Another one with its op and attributes, which the graph holds once (GraphBuilder), leaves the
  /// same where it reads the same: shapes of repeated blocks are inferred once.
  struct Recent {
    std::uint32_t op = 0;
    model::Slice attributes = {};
    std::vector<std::uint32_t> read = {};  ///< numbers of shapes; none: of no layer
    std::uint32_t output = 0;

    [[nodiscard]] bool answers(const model::Layer& layer, const std::vector<std::uint32_t>& reads) const {
      const bool same = attributes.first == layer.attributes.first || layer.attributes.count == 0;
      return op == layer.op && same && attributes.count == layer.attributes.count && read == reads;
    }
  };
  [[nodiscard]] std::size_t recent_at(const model::Layer& layer) const {
    std::uint64_t mix = layer.op + 97 * std::uint64_t{layer.attributes.first};
    for (const std::uint32_t number : numbers_) mix = mix * 31 + number;
    return mix % recent_.size();
  }

  static std::optional<core::Error> no_inputs() {
    return core::Error{core::ErrorCode::malformed_input, "has no inputs; name the tensors that it reads", {}};
  }

  std::optional<core::Error> infer(const model::Layer& layer, const ops::Op& op,
                                   std::span<const model::LayerIndex> edges) {
    read_.clear();
    for (const model::LayerIndex input : edges) read_.push_back(shape_of(input));
    core::Result<Shape> output = op.output_shape({graph_.attributes(layer), read_});
    if (!output) return output.error();
    if (auto fault = size_fault(*output)) return fault;
    shapes_.inferred.set_last(shapes_.inferred.number_of(*output));
    return std::nullopt;
  }

  /// A tensor leaves this layer, which layers after unknown ones may read.
  std::optional<core::Error> settle() {
    shapes_.leaves.back() = true;
    latest_ = self();
    return std::nullopt;
  }

  [[nodiscard]] bool reads_unknown(std::span<const model::LayerIndex> edges) const {
    return std::any_of(edges.begin(), edges.end(), [&](model::LayerIndex input) {
      return input >= 0 && !shapes_.leaves[static_cast<std::size_t>(input)];
    });
  }

  /// For what an unknown layer leaves: the latest known tensor if it fits, or none at all.
  std::optional<core::Error> stand_in(const model::Layer& layer, const ops::Op& op) {
    if (graph_.unknown_layers() == 0) {
      return core::Error{core::ErrorCode::malformed_input, "reads a layer that no tensor leaves", {}};
    }
    const bool fits = latest_ && readable(layer, op, shape_of(static_cast<model::LayerIndex>(*latest_)));
    shapes_.behind_unknown.push_back({self(), fits, fits ? static_cast<model::LayerIndex>(*latest_) : 0});
    return fits ? settle() : std::nullopt;
  }

  /// Whether the layer can read this one tensor.
  [[nodiscard]] bool readable(const model::Layer& layer, const ops::Op& op, const Shape& input) const {
    const model::Attributes attributes = graph_.attributes(layer);
    return !width_fault(op, attributes, input) && op.output_shape({attributes, {&input, 1}}).has_value();
  }

  const model::ModelGraph& graph_;
  std::span<const ops::Op* const> ops_;
  bool printed_;
  bool no_sequence_;  ///< a model of tokens, and nobody said how many
  LayerShapes shapes_;
  std::vector<Shape> read_;                   ///< what the layer at hand reads
  std::vector<std::uint32_t> input_numbers_;  ///< of the graph's inputs' shapes
  std::vector<std::uint32_t> numbers_;        ///< of the shapes that the layer at hand reads
  std::array<Recent, 257> recent_ = {};
  std::optional<std::uint32_t> latest_;  ///< the last layer that a known tensor leaves
};

}  // namespace infer_shapes_detail

inline core::Shape with_batch(std::span<const std::int64_t> sample) {
  core::Shape shape;
  shape.push_back(core::Dim::batch());
  for (const std::int64_t size : sample) shape.push_back(core::Dim::fixed(size));
  return shape;
}

inline core::Result<LayerShapes> infer_shapes(const model::TrainingJob& job, const model::ModelGraph& graph,
                                              std::span<const ops::Op* const> ops) {
  return infer_shapes_detail::Inference(job, graph, ops).run();
}

}  // namespace gpumem::connect
