#pragma once

#include "gpumem/plan/output_shapes.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "gpumem/core/deadline.hpp"

namespace gpumem::plan {

namespace output_shapes_detail {

using core::Shape;
using ops::ExpectedWidth;

GPUMEM_INLINE core::Place place_of(const model::ModelGraph& graph, const model::Layer& layer) {
  return {graph.file(), layer.line, graph.path(layer)};
}

/// The rule of every op that occurs in the graph, by the graph's op index; null for unknown ops. Of two of a name the
/// later.
GPUMEM_INLINE std::vector<const ops::Op*> resolve(const model::ModelGraph& graph, const ops::Catalogue& all) {
  std::vector<const ops::Op*> rules(graph.ops().size(), nullptr);
  for (std::size_t index = 0; index < rules.size(); ++index) {
    const std::string_view name = graph.ops()[index];
    const auto found =
        std::find_if(all.rbegin(), all.rend(), [&](const ops::Op* op) { return op->traits.name == name; });
    if (found != all.rend()) rules[index] = *found;
  }
  return rules;
}

GPUMEM_INLINE Shape with_batch(std::span<const std::int64_t> sample) {
  Shape shape;
  shape.push_back(core::Dim::batch());
  for (const std::int64_t size : sample) shape.push_back(core::Dim::fixed(size));
  return shape;
}

/// The shape of a graph input for this job: one sample's shape or the sequence length, where the job gives them,
/// take the place of what the graph says.
GPUMEM_INLINE Shape graph_input_shape(const model::TrainingJob& job, std::size_t index) {
  const model::GraphInput& input = job.graph->graph_inputs()[index];
  if (index == 0 && !job.input_shape.empty()) return with_batch(job.input_shape);
  Shape shape = input.shape;
  const bool token_ids = input.dtype == core::DType::int64 || input.dtype == core::DType::int32;
  if (job.sequence_length && token_ids && shape.rank() >= 2) shape.set(1, core::Dim::fixed(*job.sequence_length));
  return shape;
}

/// The width that the layer was built for, if it says one.
GPUMEM_INLINE std::optional<std::int64_t> expected_width(const ops::Op& op, const model::Attributes& attributes) {
  if (op.expects.axis == ExpectedWidth::Axis::none) return std::nullopt;
  return attributes.integer(op.expects.attribute);
}

/// The width that a shape has on the axis in question; nothing if it has no such axis or it is not fixed.
GPUMEM_INLINE std::optional<std::int64_t> width_of(const Shape& shape, ExpectedWidth::Axis axis) {
  const std::size_t least = axis == ExpectedWidth::Axis::channels ? 2 : 1;
  if (shape.rank() < least) return std::nullopt;
  const core::Dim dim = shape[axis == ExpectedWidth::Axis::channels ? 1 : shape.rank() - 1];
  return dim.kind == core::Dim::Kind::fixed ? std::optional(dim.size) : std::nullopt;
}

/// Everything behind the batch as one axis.
GPUMEM_INLINE std::optional<Shape> flattened(const Shape& shape) {
  if (shape.rank() < 2) return std::nullopt;
  core::Checked size = 1;
  for (std::size_t axis = 1; axis < shape.rank(); ++axis) {
    if (shape[axis].kind != core::Dim::Kind::fixed) return std::nullopt;
    size *= shape[axis].size;
  }
  if (!size.valid()) return std::nullopt;
  Shape flat;
  flat.push_back(shape[0]);
  flat.push_back(core::Dim::fixed(*size.value()));
  return flat;
}

GPUMEM_INLINE bool one_pixel(const Shape& shape) {
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) {
    if (shape[axis] != core::Dim::fixed(1)) return false;
  }
  return shape.rank() > 2;
}

/// Finds the input of each layer of a graph without edges, from the widths of what came before.
class Chain {
 public:
  Chain(const model::TrainingJob& job, const model::ModelGraph& graph) : job_(job), graph_(graph) {
    if (!graph.graph_inputs().empty()) remember(graph_input_shape(job, 0));
    else if (!job.input_shape.empty()) remember(with_batch(job.input_shape));
  }

  [[nodiscard]] core::Result<Shape> input_of(const model::Layer& layer, const ops::Op& op) {
    if (auto fault = leave_branch(layer)) return std::move(*fault);
    enter_scopes(layer);
    if (op.reads_token_ids) return token_ids();
    const auto width = expected_width(op, graph_.attributes(layer));
    if (!current_) {
      return missing("its input size is not printed; give one sample's shape (--input 3x224x224)");
    }
    if (!width || width_of(*current_, op.expects.axis) == width) return outside_gate(layer, op, *current_);
    const bool last = op.expects.axis == ExpectedWidth::Axis::last;
    if (last) {
      const auto flat = flattened(*current_);
      if (flat && width_of(*flat, op.expects.axis) == width) return *flat;
    }
    if (!any_produced_) {
      return missing("reads " + std::to_string(*width) + (last ? " features" : " channels") +
                     ", and the input has the shape " + core::to_string(*current_) +
                     (last ? "" : "; PyTorch has channels first, such as --input 3x224x224"));
    }
    const auto source = branch_source(layer, op, *width);
    if (source) {
      if (!branch_) open_branch(layer);
      return outside_gate(layer, op, *source);
    }
    return missing("reads " + std::to_string(*width) + (last ? " features" : " channels") +
                   ", and no earlier output has them; this summary has no edges: use a summary "
                   "that prints output shapes, such as torchinfo");
  }

  void produced(const model::Layer& layer, const Shape& shape) {
    // A pooling to one pixel inside a block may be a gate (squeeze-and-excitation): what follows the block
    // reads the gated tensor, which no row shows.
    if (one_pixel(shape) && current_ && !one_pixel(*current_)) gate_ = layer.scope;
    producer_ = layer.scope;
    any_produced_ = true;
    remember(shape);
    if (branch_ && branch_->scope == layer.scope && branch_->single) branch_->done = true;
  }

 private:
  /// A layer that does not read its predecessor begins a branch: what the branch leaves must meet the tensor it
  /// left on every axis but the width, or else they can be neither added nor joined.
  struct Branch {
    std::uint32_t scope = 0;  ///< the branch's own container
    bool single = false;      ///< it is one layer, in the container of the layers before it
    bool done = false;
    Shape left;  ///< what was current where it began
    std::int64_t line = 0;
  };

  static bool meets(const Shape& one, const Shape& other) {
    if (one.rank() < 3 || one.rank() != other.rank()) return true;
    const bool channels_first = one.rank() > 3;
    for (std::size_t axis = 0; axis < one.rank(); ++axis) {
      const bool wide = axis == (channels_first ? 1 : one.rank() - 1);
      if (!wide && one[axis] != other[axis]) return false;
    }
    return true;
  }

  std::optional<core::Error> leave_branch(const model::Layer& layer) {
    if (!branch_) return std::nullopt;
    const bool inside = branch_->single ? !branch_->done : graph_.within(layer.scope, branch_->scope);
    if (inside) return std::nullopt;
    const Branch branch = *branch_;
    branch_.reset();
    if (!current_ || meets(*current_, branch.left)) return std::nullopt;
    return missing("follows a branch (from line " + std::to_string(branch.line) + ") that leaves " +
                   core::to_string(*current_) + " beside " + core::to_string(branch.left) +
                   ": what joins them is not printed; use a summary that prints output shapes, such as torchinfo");
  }

  void open_branch(const model::Layer& layer) {
    // The outermost container of this layer that does not hold the layer before it.
    std::uint32_t scope = layer.scope;
    const bool single = graph_.within(producer_, scope);
    while (!single && scope != 0 && !graph_.within(producer_, graph_.scope(scope).parent))
      scope = graph_.scope(scope).parent;
    branch_ = Branch{scope, single, false, *current_, layer.line};
  }

  void enter_scopes(const model::Layer& layer) {
    for (std::uint32_t scope = layer.scope;; scope = graph_.scope(scope).parent) {
      if (current_ && !entered_.try_emplace(scope, *current_).second) break;
      if (scope == 0) break;
    }
  }

  /// What a branch reads: its container's input, if it has the width, or else the latest output that has.
  std::optional<Shape> branch_source(const model::Layer& layer, const ops::Op& op, std::int64_t width) const {
    for (std::uint32_t scope = layer.scope;; scope = graph_.scope(scope).parent) {
      const auto found = entered_.find(scope);
      if (found != entered_.end() && width_of(found->second, op.expects.axis) == width) return found->second;
      if (scope == 0) break;
    }
    const auto& seen = op.expects.axis == ExpectedWidth::Axis::last ? by_last_ : by_channels_;
    const auto found = seen.find(width);
    return found == seen.end() ? std::nullopt : std::optional(found->second);
  }

  void remember(const Shape& shape) {
    current_ = shape;
    if (const auto width = width_of(shape, ExpectedWidth::Axis::channels)) by_channels_[*width] = shape;
    if (const auto width = width_of(shape, ExpectedWidth::Axis::last)) by_last_[*width] = shape;
  }

  [[nodiscard]] static core::Error missing(std::string message) {
    return {core::ErrorCode::missing_information, std::move(message), {}};
  }

  [[nodiscard]] core::Result<Shape> token_ids() const {
    if (job_.sequence_length) return with_batch({&*job_.sequence_length, 1});
    if (!graph_.graph_inputs().empty()) return graph_input_shape(job_, 0);
    if (job_.input_shape.size() == 1) return with_batch(job_.input_shape);
    return missing("reads token ids, and their number is not printed; give the sequence length (--seq 512)");
  }

  [[nodiscard]] core::Result<Shape> outside_gate(const model::Layer& layer, const ops::Op& op,
                                                 const Shape& input) const {
    const bool spatial = op.expects.axis == ExpectedWidth::Axis::channels;
    if (!spatial || !one_pixel(input) || !gate_ || graph_.within(layer.scope, *gate_)) return input;
    return missing(
        "follows a block that pools to one pixel, and no row shows what the block returns; use graph "
        "JSON, or a summary that prints output shapes");
  }

  const model::TrainingJob& job_;
  const model::ModelGraph& graph_;
  std::optional<Shape> current_;
  std::optional<Branch> branch_;
  std::uint32_t producer_ = 0;                           ///< the container of the layer that made current_
  bool any_produced_ = false;                            ///< false: current_ is the model's input
  std::unordered_map<std::uint32_t, Shape> entered_;     ///< what was current where a container began
  std::optional<std::uint32_t> gate_;                    ///< the scope that last pooled to one pixel
  std::unordered_map<std::int64_t, Shape> by_channels_;  ///< the latest output of each width
  std::unordered_map<std::int64_t, Shape> by_last_;
};

/// The shapes on a layer's edges; nothing (an empty list) if the graph has none for it.
GPUMEM_INLINE core::Result<std::vector<Shape>> edge_shapes(const model::TrainingJob& job,
                                                           const model::ModelGraph& graph, const model::Layer& layer,
                                                           const std::vector<Shape>& outputs) {
  std::vector<Shape> shapes;
  for (const model::LayerIndex input : graph.inputs(layer)) {
    if (input >= 0) {
      shapes.push_back(outputs[static_cast<std::size_t>(input)]);
      continue;
    }
    shapes.push_back(graph_input_shape(job, static_cast<std::size_t>(model::kFirstGraphInput - input)));
  }
  return shapes;
}

/// A width on an edge that is not the one the layer was built for, in words; nothing if all is well.
GPUMEM_INLINE std::optional<core::Error> width_fault(const ops::Op& op, const model::Attributes& attributes,
                                                     const Shape& input) {
  const auto wanted = expected_width(op, attributes);
  const auto found = wanted ? width_of(input, op.expects.axis) : std::nullopt;
  if (!wanted || found == wanted) return std::nullopt;
  return core::Error{core::ErrorCode::malformed_input,
                     "has " + std::string(op.expects.attribute) + " " + std::to_string(*wanted) +
                         ", but its input has the shape " + core::to_string(input),
                     {}};
}

/// Whether the layer can read this one tensor.
GPUMEM_INLINE bool fits(const ops::Op& op, const model::Attributes& attributes, const Shape& input) {
  if (width_fault(op, attributes, input)) return false;
  return op.output_shape({attributes, {&input, 1}}).has_value();
}

/// The first layer whose printed input has not the width that it was built for; nothing if all is well.
GPUMEM_INLINE std::optional<core::Error> printed_fault(const model::TrainingJob& job, const model::ModelGraph& graph,
                                                       const std::vector<const ops::Op*>& rules) {
  for (const model::Layer& layer : graph.layers()) {
    const ops::Op* op = rules[layer.op];
    const auto edges = graph.inputs(layer);
    if (op == nullptr || op->expects.axis == ExpectedWidth::Axis::none || edges.empty()) continue;
    const model::LayerIndex source = edges.front();
    std::optional<core::Error> fault;
    if (source < 0) {
      const auto index = static_cast<std::size_t>(model::kFirstGraphInput - source);
      fault = width_fault(*op, graph.attributes(layer), graph_input_shape(job, index));
    } else {
      const auto printed = graph.outputs(graph.layers()[static_cast<std::size_t>(source)]);
      if (printed.size() != 1) continue;  // which of several it reads is not told
      fault = width_fault(*op, graph.attributes(layer), printed.front());
    }
    if (fault) {
      fault->place = place_of(graph, layer);
      return fault;
    }
  }
  return std::nullopt;
}

/// Attributes may be any numbers (out_features=-5): what they make of a shape must still be a tensor's.
GPUMEM_INLINE std::optional<core::Error> size_fault(const Shape& shape) {
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis].kind == core::Dim::Kind::unknown || shape[axis].size > 0) continue;
    return core::Error{core::ErrorCode::malformed_input,
                       "its sizes give an output of shape " + core::to_string(shape) + "; each must be positive",
                       {}};
  }
  return std::nullopt;
}

}  // namespace output_shapes_detail

GPUMEM_INLINE std::span<const core::Shape> OutputShapes::of(std::size_t layer) const {
  if (inferred_.empty()) return graph_->outputs(graph_->layers()[layer]);
  return leaves_[layer] ? std::span<const core::Shape>(&inferred_[layer], 1) : std::span<const core::Shape>();
}

GPUMEM_INLINE core::Result<OutputShapes> infer_output_shapes(const model::TrainingJob& job, const ops::Catalogue& ops) {
  namespace detail = output_shapes_detail;
  const model::ModelGraph& graph = *job.graph;
  OutputShapes shapes;
  shapes.graph_ = &graph;
  const std::vector<const ops::Op*> rules = detail::resolve(graph, ops);
  if (graph.shapes_printed()) {
    auto fault = graph.edges_inferred() ? std::nullopt : detail::printed_fault(job, graph, rules);
    if (fault) return *std::move(fault);
    return shapes;
  }

  detail::Chain chain(job, graph);
  shapes.inferred_.reserve(graph.layers().size());
  shapes.leaves_.reserve(graph.layers().size());
  std::optional<std::size_t> latest;  // the last layer that a known tensor leaves
  core::Pace pace;
  for (const model::Layer& layer : graph.layers()) {
    if (pace.late()) return core::deadline_error();
    const ops::Op* op = rules[layer.op];
    const model::Attributes attributes = graph.attributes(layer);
    const bool no_tensor = op != nullptr && op->reads_nothing && attributes.find("shape") == nullptr;
    const bool leaves = op != nullptr && op->output_shape != nullptr && !no_tensor;
    shapes.leaves_.push_back(leaves);
    shapes.inferred_.emplace_back();
    if (!leaves) continue;

    const auto at_layer = [&](core::Error error) {
      error.place = detail::place_of(graph, layer);
      return error;
    };
    auto inputs = detail::edge_shapes(job, graph, layer, shapes.inferred_);
    if (!inputs) return at_layer(inputs.error());
    const auto unknown = [&](model::LayerIndex input) {
      return input >= 0 && !shapes.leaves_[static_cast<std::size_t>(input)];
    };
    const auto edges = graph.inputs(layer);
    if (std::any_of(edges.begin(), edges.end(), unknown)) {
      if (graph.unknown_layers() == 0) {
        return at_layer({core::ErrorCode::malformed_input, "reads a layer that no tensor leaves", {}});
      }
      const bool fits = latest && detail::fits(*op, attributes, shapes.inferred_[*latest]);
      if (!fits) {
        shapes.leaves_.back() = false;
        continue;
      }
      *inputs = {shapes.inferred_[*latest]};
    }
    if (inputs->empty() && !op->reads_nothing) {
      core::Result<core::Shape> input = chain.input_of(layer, *op);
      if (!input) return at_layer(input.error());
      inputs->push_back(*input);
    }
    if (const auto fault = inputs->empty() ? std::nullopt : detail::width_fault(*op, attributes, inputs->front()))
      return at_layer(*fault);
    core::Result<core::Shape> output = op->output_shape({attributes, *inputs});
    if (!output) return at_layer(output.error());
    if (const auto fault = detail::size_fault(*output)) return at_layer(*fault);
    shapes.inferred_.back() = *output;
    if (op->reads_nothing) continue;
    chain.produced(layer, *output);
    latest = shapes.inferred_.size() - 1;
  }
  return shapes;
}

}  // namespace gpumem::plan
