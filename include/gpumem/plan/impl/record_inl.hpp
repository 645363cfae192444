#pragma once

#include <algorithm>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/plan/output_shapes.hpp"
#include "gpumem/plan/record.hpp"

namespace gpumem::plan {

namespace record_detail {

using ops::kNoTensor;
using ops::TensorId;

/// Beyond what anybody trains: a text of a few MiB may ask for recurrent layers of 65,536 steps each, and every call
/// takes about half a KiB here and in a plan.
inline constexpr std::int64_t kMostCalls = std::int64_t{1} << 22;

class Recorder {
 public:
  Recorder(const model::TrainingJob& job, const ops::Catalogue& ops, const OutputShapes& shapes, ops::Backend backend)
      : job_(job), graph_(*job.graph), shapes_(shapes), rules_(rules_of(graph_, ops)) {
    recording_.tape = ops::Tape(job.precision, backend);
  }

  core::Result<Recording> run(const ops::Catalogue& ops) {
    if (auto fault = add_graph_inputs()) return std::move(*fault);
    tensors_.assign(graph_.layers().size(), kNoTensor);
    consumed_.assign(graph_.layers().size(), false);
    core::Pace pace;
    for (std::size_t index = 0; index < graph_.layers().size(); ++index) {
      if (pace.late()) return core::deadline_error();
      if (auto fault = add_layer(index)) {
        fault->place = shape_place(graph_.layers()[index]);
        return std::move(*fault);
      }
      if (static_cast<std::int64_t>(tape().functions().size()) > kMostCalls) {
        return core::Error{core::ErrorCode::overflow,
                           "up to here the model makes more than " + core::with_separators(kMostCalls) +
                               " calls; give shorter sequences, or a part of the model",
                           shape_place(graph_.layers()[index])};
      }
    }
    if (core::deadline_passed()) return core::deadline_error();  // a layer of many steps ends early
    recording_.model_inputs = tape().inputs().size();
    recording_.model_functions = tape().functions().size();
    for (const ops::Function& function : tape().functions()) {
      if (function.gradient == ops::Gradient::joined) recording_.splits.push_back(function.output);
    }
    if (auto fault = add_losses(ops)) return std::move(*fault);
    return std::move(recording_);
  }

 private:
  static std::vector<const ops::Op*> rules_of(const model::ModelGraph& graph, const ops::Catalogue& all) {
    return output_shapes_detail::resolve(graph, all);
  }

  [[nodiscard]] core::Place shape_place(const model::Layer& layer) const {
    return output_shapes_detail::place_of(graph_, layer);
  }

  ops::Tape& tape() { return recording_.tape; }

  static core::Error unknown_size(std::string_view what, const core::Shape& shape) {
    return {core::ErrorCode::missing_information,
            std::string(what) + " has the shape " + core::to_string(shape) +
                ", which does not say its size; give one sample's shape (--input 3x224x224) or the length (--seq 512)",
            {}};
  }

  std::optional<core::Error> add_graph_inputs() {
    std::size_t count = graph_.graph_inputs().size();
    if (count == 0 && !job_.input_shape.empty()) {
      input_shapes_.push_back(output_shapes_detail::with_batch(job_.input_shape));
    }
    for (std::size_t index = 0; index < count; ++index) {
      input_shapes_.push_back(output_shapes_detail::graph_input_shape(job_, index));
    }
    for (std::size_t index = 0; index < input_shapes_.size(); ++index) {
      core::DType type = count == 0 ? core::DType::float32 : graph_.graph_inputs()[index].dtype;
      if (type == core::DType::float32) type = tape().dtype();
      const auto size = ops::size_of(input_shapes_[index], type);
      if (!size) return unknown_size("the model's input", input_shapes_[index]);
      tape().add_input(*size);
    }
    return std::nullopt;
  }

  /// The tensors and shapes that a layer reads; without edges, what the layer before it left.
  std::optional<core::Error> gather_inputs(const model::Layer& layer, const ops::Op& op) {
    input_tensors_.clear();
    input_layer_shapes_.clear();
    bool all_known = true;
    for (const model::LayerIndex input : graph_.inputs(layer)) {
      if (input < 0) {
        take_graph_input(static_cast<std::size_t>(model::kFirstGraphInput - input));
      } else {
        all_known = take_layer(static_cast<std::size_t>(input)) && all_known;
      }
    }
    if (op.reads_nothing || op.output_shape == nullptr) return std::nullopt;
    if (!all_known) return stand_in(layer, op);
    if (!input_tensors_.empty()) return std::nullopt;
    if (!graph_.edges_inferred() && graph_.unknown_layers() == 0 && !graph_.graph_inputs().empty()) {
      return core::Error{core::ErrorCode::malformed_input, "has no inputs; name the tensors that it reads", {}};
    }
    if (op.reads_token_ids || latest_ == kNoLayer) {
      if (input_shapes_.empty()) {
        return core::Error{core::ErrorCode::missing_information,
                           "its input size is not printed; give one sample's shape (--input 3x224x224) or the "
                           "sequence length (--seq 512)",
                           {}};
      }
      take_graph_input(0);
    } else {
      take_layer(latest_);
    }
    return std::nullopt;
  }

  void take_graph_input(std::size_t index) {
    input_tensors_.push_back(tape().inputs()[index]);
    input_layer_shapes_.push_back(input_shapes_[index]);
  }

  /// For what an unknown layer leaves: the latest known tensor if it fits, or none at all.
  std::optional<core::Error> stand_in(const model::Layer& layer, const ops::Op& op) {
    input_tensors_.clear();
    input_layer_shapes_.clear();
    if (graph_.unknown_layers() == 0) {
      return core::Error{core::ErrorCode::malformed_input, "reads a layer that no tensor leaves", {}};
    }
    const bool fits = latest_ != kNoLayer && !shapes_.of(latest_).empty() &&
                      output_shapes_detail::fits(op, graph_.attributes(layer), shapes_.of(latest_)[0]);
    if (fits) take_layer(latest_);
    return std::nullopt;
  }

  /// False if no tensor leaves the layer.
  bool take_layer(std::size_t layer) {
    if (tensors_[layer] == kNoTensor || shapes_.of(layer).empty()) return false;
    consumed_[layer] = true;
    input_tensors_.push_back(tensors_[layer]);
    input_layer_shapes_.push_back(shapes_.of(layer)[0]);
    return true;
  }

  std::optional<core::Error> add_layer(std::size_t index) {
    const model::Layer& layer = graph_.layers()[index];
    const ops::Op* op = rules_[layer.op];
    tape().begin_layer(static_cast<std::uint32_t>(index));
    if (op == nullptr) {  // unknown, in a graph that was read leniently: its parameters are known, and no more
      if (layer.parameters > 0) tape().add_parameter(layer.parameters, false, layer.frozen);
      return std::nullopt;
    }
    if (op->record == nullptr) {
      return core::Error{core::ErrorCode::missing_information,
                         "is a " + std::string(op->traits.name) +
                             ", whose memory no rule describes; use a summary that prints what it is made of",
                         {}};
    }
    if (auto fault = gather_inputs(layer, *op)) return fault;
    const bool reads = op->output_shape != nullptr && !op->reads_nothing;
    if (reads && (input_tensors_.empty() || shapes_.of(index).empty())) {
      if (graph_.unknown_layers() == 0 && input_tensors_.empty()) {
        return core::Error{core::ErrorCode::missing_information, "has no tensor to read", {}};
      }
      if (graph_.unknown_layers() > 0) ++recording_.skipped_layers;
      if (layer.parameters > 0) tape().add_parameter(layer.parameters, false, layer.frozen);
      return std::nullopt;
    }
    ops::OpCall call;
    call.attributes = graph_.attributes(layer);
    call.class_name = graph_.class_name(layer);
    call.shapes = input_layer_shapes_;
    call.tensors = input_tensors_;
    call.parameters = layer.parameters;
    call.tied_parameters = layer.tied_parameters;
    call.frozen = layer.frozen;
    const auto outputs = shapes_.of(index);
    if (!outputs.empty()) {
      const auto size = ops::size_of(outputs[0]);
      if (!size) return unknown_size("its output", outputs[0]);
      call.output = outputs[0];
      call.size = *size;
    }
    core::Result<TensorId> output = op->record(call, tape());
    if (!output) return output.error();
    recording_.convolves = recording_.convolves || op->traits.name.starts_with("conv");
    recording_.normalises = recording_.normalises || op->traits.name == "batch_norm";
    tensors_[index] = *output;
    if (layer.returned && *output != kNoTensor) hold(*output);
    if (*output != kNoTensor) latest_ = static_cast<std::uint32_t>(index);
    return std::nullopt;
  }

  /// Each tensor once: a model may return one under two names.
  void hold(TensorId tensor) {
    auto& held = recording_.held;
    if (std::find(held.begin(), held.end(), tensor) == held.end()) held.push_back(tensor);
  }

  /// A loss for every output that nothing else reads.
  std::optional<core::Error> add_losses(const ops::Catalogue& ops) {
    const std::string_view name = job_.loss == model::Loss::mse               ? "mse_loss"
                                  : job_.loss == model::Loss::bce_with_logits ? "bce_with_logits"
                                                                              : "cross_entropy";
    const ops::Op* loss = nullptr;
    for (const ops::Op* op : ops) {
      if (op->traits.name == name) loss = op;
    }
    for (std::size_t index = 0; index < tensors_.size(); ++index) {
      const bool output = tensors_[index] != kNoTensor && !consumed_[index] && !graph_.layers()[index].returned &&
                          tape().tensor(tensors_[index]).requires_grad;
      if (!output) continue;
      hold(tensors_[index]);
      const core::Shape shape = shapes_.of(index)[0];
      tape().begin_layer(static_cast<std::uint32_t>(index));
      const TensorId value = shape.rank() == 0 ? tensors_[index] : add_loss(*loss, tensors_[index], shape);
      recording_.loss = recording_.loss == kNoTensor ? value : ops::sum_of(tape(), recording_.loss, value);
    }
    if (recording_.loss == kNoTensor) {
      return core::Error{core::ErrorCode::missing_information,
                         "no layer of the model has anything to train: there is no loss to take gradients of",
                         {graph_.file(), 0, {}}};
    }
    recording_.held.push_back(recording_.loss);
    return std::nullopt;
  }

  TensorId add_loss(const ops::Op& loss, TensorId output, const core::Shape& shape) {
    add_labels(labels_of(shape));
    ops::OpCall call;
    call.shapes = {&shape, 1};
    call.tensors = {&output, 1};
    call.size = {1, 0, core::DType::float32};
    return *loss.record(call, tape());
  }

  /// Outputs of one size are compared with the same labels.
  void add_labels(const ops::TensorSize& size) {
    for (const TensorId input : tape().inputs().subspan(recording_.model_inputs)) {
      const ops::TensorSize& other = tape().tensor(input).size;
      const bool same = other.elements.value() == size.elements.value() && other.batch_power == size.batch_power;
      if (same && other.dtype == size.dtype) return;
    }
    tape().add_input(size);
  }

  /// Class ids lose the class axis: the last one of rows and of sequences, axis 1 of images.
  [[nodiscard]] ops::TensorSize labels_of(const core::Shape& shape) const {
    const ops::TensorSize whole = *ops::size_of(shape);
    if (job_.loss != model::Loss::cross_entropy || shape.rank() < 2) return whole;
    if (shape.rank() <= 3) return ops::rows_of(shape)->as(core::DType::int64);
    ops::TensorSize pixels = whole.as(core::DType::int64);
    const std::int64_t classes = std::max<std::int64_t>(shape[1].size, 1);
    pixels.elements = whole.elements.value().value_or(0) / classes;
    return pixels;
  }

  const model::TrainingJob& job_;
  const model::ModelGraph& graph_;
  const OutputShapes& shapes_;
  std::vector<const ops::Op*> rules_;
  Recording recording_;
  std::vector<core::Shape> input_shapes_;
  std::vector<TensorId> tensors_;  ///< one a layer
  std::vector<bool> consumed_;
  std::vector<TensorId> input_tensors_;
  std::vector<core::Shape> input_layer_shapes_;
  static constexpr std::uint32_t kNoLayer = UINT32_MAX;
  std::uint32_t latest_ = kNoLayer;
};

}  // namespace record_detail

GPUMEM_INLINE core::Result<Recording> record(const model::TrainingJob& job, const ops::Catalogue& ops,
                                             ops::Backend backend) {
  const core::Result<OutputShapes> shapes = infer_output_shapes(job, ops);
  if (!shapes) return shapes.error();
  return record_detail::Recorder(job, ops, *shapes, backend).run(ops);
}

}  // namespace gpumem::plan
