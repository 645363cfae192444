#pragma once

#include "gpumem/plan/forward_pass.hpp"

#include <algorithm>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/ops/collective.hpp"
#include "gpumem/ops/language_loss.hpp"

namespace gpumem::plan {

namespace forward_pass_detail {

using ops::kNoTensor;
using ops::TensorId;

/// Beyond what anybody trains: a text of a few MiB may ask for recurrent layers of 65,536 steps each, and every call
/// takes about half a KiB here and in a plan.
inline constexpr std::int64_t kMostCalls = std::int64_t{1} << 22;

class ForwardPassBuilder {
 public:
  ForwardPassBuilder(const connect::WiredGraph& wired, const model::TrainingJob& job, ops::Backend backend)
      : wired_(wired), graph_(wired.graph()), job_(job), pass_{.wired = wired}, recorded_(wired) {
    pass_.tape = ops::Tape(job.precision, backend);
    pass_.tape.reserve(graph_.layers().size());
  }

  core::Result<ForwardPass> run(const ops::Catalogue& ops) {
    if (auto fault = add_graph_inputs()) return std::move(*fault);
    if (auto fault = find_language_loss()) return std::move(*fault);
    if (job_.attention == model::AttentionBackend::flash) moved_ = attention_inputs(wired_);
    tensors_.assign(graph_.layers().size(), kNoTensor);
    consumed_.assign(graph_.layers().size(), false);
    core::Pace pace;
    for (std::size_t index = 0; index < graph_.layers().size(); ++index) {
      if (pace.late()) return core::deadline_error();
      if (auto fault = add_layer(index)) {
        fault->place = wired_.place_of(graph_.layers()[index]);
        return std::move(*fault);
      }
      if (static_cast<std::int64_t>(tape().functions().size()) > kMostCalls) {
        return core::Error{core::ErrorCode::overflow,
                           "up to here the model makes more than " + core::with_separators(kMostCalls) +
                               " calls; give shorter sequences, or a part of the model",
                           wired_.place_of(graph_.layers()[index])};
      }
    }
    if (core::deadline_passed()) return core::deadline_error();  // a layer of many steps ends early
    convert_outputs();
    pass_.model_inputs = tape().inputs().size();
    pass_.model_functions = returned_ > 0 ? returned_ : tape().functions().size();
    for (const ops::Function& function : tape().functions()) {
      if (function.gradient == ops::Gradient::joined) pass_.splits.push_back(function.output);
    }
    begin_stages();
    if (auto fault = add_losses(ops)) return std::move(*fault);
    pass_.stages.back().functions.end = static_cast<std::uint32_t>(tape().functions().size());
    pass_.loss = pass_.stages.back().loss;
    return std::move(pass_);
  }

 private:
  ops::Tape& tape() { return pass_.tape; }

  static core::Error unknown_size(std::string_view what, const core::Shape& shape) {
    return {core::ErrorCode::missing_information,
            std::string(what) + " has the shape " + core::to_string(shape) +
                ", which does not say its size; give one sample's shape (`input=3x224x224`) or the length "
                "(`seq_length=512`)",
            {}};
  }

  std::optional<core::Error> add_graph_inputs() {
    const auto shapes = wired_.input_shapes();
    for (std::size_t index = 0; index < shapes.size(); ++index) {
      core::DType type = wired_.input_dtype(index);
      if (type == core::DType::float32) type = tape().dtype();
      const auto size = ops::size_of(shapes[index], type);
      if (!size) return unknown_size("the model's input", shapes[index]);
      tape().add_input(*size);
    }
    return std::nullopt;
  }

  /// The tensors that a layer reads.
  std::optional<core::Error> gather_inputs(std::size_t index) {
    read_tensors_.clear();
    consume(graph_.inputs(graph_.layers()[index]));
    consume(wired_.inputs(index));
    for (const model::LayerIndex input : wired_.inputs(index)) {
      const TensorId read = input < 0 ? tape().inputs()[static_cast<std::size_t>(model::kFirstGraphInput - input)]
                                      : tensors_[static_cast<std::size_t>(input)];
      if (read == kNoTensor) {
        return core::Error{core::ErrorCode::malformed_input, "reads a layer that no tensor leaves", {}};
      }
      read_tensors_.push_back(read);
    }
    return std::nullopt;
  }

  /// Its parameters are known, and no more. What it would read is no output of the model.
  void skip(const model::Layer& layer) {
    if (layer.parameters > 0) tape().add_parameter(layer.parameters, false, layer.frozen);
    consume(graph_.inputs(layer));
  }

  void consume(std::span<const model::LayerIndex> inputs) {
    for (const model::LayerIndex input : inputs) {
      if (input >= 0) consumed_[static_cast<std::size_t>(input)] = true;
    }
  }

  /// Chunked and fused losses replace a head and all layers between it and its cross entropy; compiled ones what is
  /// between them only.
  std::optional<core::Error> find_language_loss() {
    const model::LossForms form = job_.loss_form.kind;
    const bool compiled = form == model::LossForms::compiled;
    const bool chunked = form == model::LossForms::chunked;
    if (!chunked && !model::joins_head(form) && !compiled && !has_objective()) return std::nullopt;
    core::Result<HeadAndLoss> found = find_head_and_loss(wired_);
    // A pipeline stage that hands on what it makes has neither head nor loss; a compiled loss may be the only one.
    if (!found && (compiled || sends_on())) return std::nullopt;
    if (!found) return found.error();
    language_ = *std::move(found);
    if (compiled) language_.replaced[static_cast<std::size_t>(language_.head)] = false;
    // The model returns chunks of logits, and the loop computes their loss: the model's names have ended by then.
    in_loop_ = (chunked || has_objective()) && language_.end >= 0;
    if (in_loop_) language_.replaced[static_cast<std::size_t>(language_.end)] = true;
    return std::nullopt;
  }

  /// Whether something else is computed than the loss. Fused and chunked forms of log-probabilities are those of the
  /// loss.
  [[nodiscard]] bool has_objective() const {
    const model::Objective objective = job_.objective.kind;
    if (objective == model::Objective::scores) return true;
    return objective != model::Objective::loss && job_.loss_form == model::LossForm();
  }

  [[nodiscard]] bool sends_on() const {
    return std::any_of(graph_.ops().begin(), graph_.ops().end(),
                       [](const std::string& op) { return op == ops::kSent; });
  }

  /// The parameters of a replaced layer stay; what reads the layer then reads what the head reads.
  std::optional<core::Error> replace_layer(std::size_t index) {
    tape().begin_layer(static_cast<std::uint32_t>(index));
    if (auto fault = gather_inputs(index)) return fault;
    tensors_[index] = read_tensors_[0];
    const model::Layer& layer = graph_.layers()[index];
    if (layer.returned && job_.loss_form.kind == model::LossForms::compiled) hold(tensors_[index]);
    if (static_cast<model::LayerIndex>(index) != language_.head) return std::nullopt;
    ops::OpCall call;
    call.attributes = graph_.attributes(layer);
    call.parameters = layer.parameters;
    call.tied_parameters = layer.tied_parameters;
    call.frozen = layer.frozen;
    head_.hidden = read_tensors_[0];
    head_.shape = wired_.shape_on(wired_.inputs(index)[0]);
    head_.width = call.attributes.integer("in_features").value_or(0);
    head_.vocabulary = call.attributes.integer("out_features").value_or(0);
    call.weights = wired_.weights(index);
    head_.weights = call.weights;
    if (job_.objective.kind == model::Objective::scores) return add_score_head();
    if (auto fault = add_head_parameters(call)) return fault;
    head_parameters_.assign(tape().layer_parameters().begin(), tape().layer_parameters().end());
    head_.parameters = head_parameters_;
    return std::nullopt;
  }

  /// A linear layer without bias to one figure, in place of the head (transformers 4.48, modeling_layers.py and
  /// models/llama/modeling_llama.py: LlamaForSequenceClassification.score).
  std::optional<core::Error> add_score_head() {
    head_.vocabulary = 1;
    head_.weights = {};
    head_parameters_ = {tape().add_parameter(head_.width)};
    head_.parameters = head_parameters_;
    return std::nullopt;
  }

  std::optional<core::Error> add_head_parameters(const ops::OpCall& call) {
    const core::Checked weight = core::Checked(head_.width) * core::Checked(head_.vocabulary);
    const bool bias = call.parameters > 0 && weight.value() != call.parameters;
    if (call.weights.quantization == model::Quantization::none) {
      ops::add_parameters(call, tape(),
                          {{weight, core::Checked(head_.width) + core::Checked(head_.vocabulary)},
                           bias ? core::Checked(head_.vocabulary) : core::Checked(0)});
      return std::nullopt;
    }
    if (model::joins_head(job_.loss_form.kind)) {
      return core::Error{core::ErrorCode::invalid_argument,
                         "the fused loss multiplies with the head's own weight, which is quantised here; give "
                         "`loss=chunked:128`, or `quantize=none`",
                         {}};
    }
    ops::add_quantized_parameters(call, tape(), head_.width, head_.vocabulary, bias);
    return std::nullopt;
  }

  /// The cross entropy in a job's form; nothing for the standard one.
  std::optional<core::Result<TensorId>> record_language_loss(const ops::OpCall& call, bool replaced) {
    const auto rows = ops::rows_of(call.shapes[0]);
    const bool fused = job_.loss_form.kind == model::LossForms::fused_ce;
    if (fused && call.attributes.flag(ops::kVocabularyParallel, false)) {
      return ops::record_vocabulary_parallel(tape(), call.tensors[0], true);
    }
    if (fused && rows) {
      return ops::record_fused_cross_entropy(tape(), call.tensors[0], *rows);
    }
    if (job_.loss_form == model::LossForm() && call.attributes.flag(ops::kLossParallel, false)) {
      return ops::record_loss_parallel(tape(), call.tensors[0]);
    }
    if (job_.loss_form.kind == model::LossForms::compiled && rows) {
      return ops::record_compiled_cross_entropy(tape(), call.tensors[0], *rows);
    }
    if (!replaced) return std::nullopt;
    if (has_objective()) return record_objective();
    const bool known = head_.shape.rank() == 3 && head_.shape[1].kind == core::Dim::Kind::fixed;
    if (!rows || !known) return unknown_size("what the head reads", head_.shape);
    head_.rows = *rows;
    if (job_.loss_form.kind == model::LossForms::checkpointed) {
      const core::DType type = hands_out_float() ? tape().product_dtype() : core::DType::float32;
      return ops::record_checkpointed_cross_entropy(tape(), head_, job_.loss_form.count, type);
    }
    if (model::joins_head(job_.loss_form.kind)) {
      return ops::record_fused_linear_cross_entropy(tape(), head_, ops::chunks_of(job_.loss_form));
    }
    const bool upcasts = model::row_of(job_.loop).upcasts;
    const ops::ChunkedLoss how = {job_.loss_form.count, hands_out_float(), upcasts,
                                  job_.compile && upcasts ? head_.vocabulary : 0};
    const std::vector<TensorId> logits = ops::record_chunked_logits(tape(), head_, how);
    if (in_loop_) returned_ = tape().functions().size();
    for (const TensorId part : logits) hold(part);
    return ops::record_chunked_cross_entropy(tape(), logits, how);
  }

  /// What the program computes of the logits of the last positions, which the model returns.
  core::Result<TensorId> record_objective() {
    const bool known = head_.shape.rank() == 3 && head_.shape[1].kind == core::Dim::Kind::fixed;
    if (!known) return unknown_size("what the head reads", head_.shape);
    const bool last = model::reads_last(job_.objective.kind);
    TensorId logits = ops::record_last_logits(tape(), head_, last ? 0 : job_.objective.count);
    // accelerate's autocast is around the model's forward() alone.
    const bool accelerates = model::row_of(job_.loop).outputs == model::OutputType::float_under_autocast;
    if (accelerates) pass_.autocast_functions = tape().functions().size();
    if (model::reads_whole(job_.objective.kind) || hands_out_float())
      logits = tape().cast(logits, core::DType::float32);
    if (in_loop_) returned_ = tape().functions().size();
    hold(logits);
    return ops::record_of_logits(tape(), head_, job_.objective, logits);
  }

  std::optional<core::Error> add_layer(std::size_t index) {
    if (language_.replaces(index)) return replace_layer(index);
    if (!moved_.empty() && moved_[index]) {
      if (auto fault = gather_inputs(index)) return fault;
      tensors_[index] = read_tensors_[0];
      return std::nullopt;
    }
    const model::Layer& layer = graph_.layers()[index];
    const ops::Op* op = wired_.op(layer);
    const bool wide = graph_.attributes(layer).flag("wide_autocast", false);
    tape().begin_layer(static_cast<std::uint32_t>(index), wide);
    if (op == nullptr) {  // unknown, in a graph that was read leniently
      if (layer.parameters > 0) tape().add_parameter(layer.parameters, false, layer.frozen);
      return std::nullopt;
    }
    if (op->record == nullptr) {
      return core::Error{core::ErrorCode::missing_information,
                         "is a " + std::string(op->traits.name) +
                             ", and no rule describes its memory; use a summary that prints its parts",
                         {}};
    }
    const auto outputs = wired_.outputs(index);
    const bool reads = op->output_shape != nullptr && !op->reads_nothing;
    if (reads && outputs.empty()) {  // it never runs, or follows an unknown layer
      if (graph_.unknown_layers() > 0) ++pass_.skipped_layers;
      skip(layer);
      return std::nullopt;
    }
    if (auto fault = gather_inputs(index)) return fault;
    const bool in_forms = op->loss == model::Loss::cross_entropy;  // of which the job says one
    const auto repeated = in_forms ? std::nullopt : recorded_.repeat(tape(), index, read_tensors_);
    if (!repeated) return record_layer(index, *op, outputs);
    note_output(index, *op, *repeated);
    return std::nullopt;
  }

  void note_output(std::size_t index, const ops::Op& op, TensorId output) {
    pass_.convolves = pass_.convolves || op.traits.family == model::OpFamily::conv;
    pass_.normalises = pass_.normalises || op.traits.norm == model::NormKind::batch;
    tensors_[index] = output;
    if (graph_.layers()[index].returned && output != kNoTensor) hold(output);
  }

  std::optional<core::Error> record_layer(std::size_t index, const ops::Op& op, std::span<const core::Shape> outputs) {
    const model::Layer& layer = graph_.layers()[index];
    read_shapes_.clear();
    for (const model::LayerIndex input : wired_.inputs(index)) read_shapes_.push_back(wired_.shape_on(input));
    ops::OpCall call;
    call.attributes = graph_.attributes(layer);
    call.class_name = graph_.class_name(layer);
    call.shapes = read_shapes_;
    call.tensors = read_tensors_;
    call.parameters = layer.parameters;
    call.tied_parameters = layer.tied_parameters;
    call.frozen = layer.frozen;
    call.attention = job_.attention;
    call.transformers = job_.transformers;
    call.cudnn_attention = job_.cudnn_attention;
    call.weights = wired_.weights(index);
    if (!outputs.empty()) {
      const auto size = ops::size_of(outputs[0]);
      if (!size) return unknown_size("its output", outputs[0]);
      call.output = outputs[0];
      call.size = *size;
    }
    core::Result<TensorId> output = record_call(index, op, call);
    if (!output) return output.error();
    note_output(index, op, *output);
    return std::nullopt;
  }

  core::Result<TensorId> record_call(std::size_t index, const ops::Op& op, const ops::OpCall& call) {
    if (op.loss == model::Loss::cross_entropy) {
      auto in_form = record_language_loss(call, static_cast<model::LayerIndex>(index) == language_.loss);
      if (in_form) return *std::move(in_form);
    }
    return recorded_.record(tape(), index, op, call);
  }

  /// Each tensor once: a model may return one under two names.
  void hold(TensorId tensor) {
    auto& held = pass_.held;
    if (std::find(held.begin(), held.end(), tensor) == held.end()) held.push_back(tensor);
  }

  /// Each stage has the functions of its layers; the first one also those that all of them share.
  void begin_stages() {
    const auto functions = tape().functions();
    std::uint32_t at = 0;
    const auto begin = [&] {
      if (!pass_.stages.empty()) pass_.stages.back().functions.end = at;
      pass_.stages.push_back({{at, at}, kNoTensor});
    };
    begin();
    const auto marks = wired_.stages();
    for (const std::uint32_t first : marks.subspan(std::min<std::size_t>(marks.size(), 1))) {
      while (at < functions.size() && functions[at].layer < first) ++at;
      begin();
    }
  }
  [[nodiscard]] StagePart& stage_of(std::size_t layer) {
    const auto marks = wired_.stages();
    const auto behind = std::upper_bound(marks.begin(), marks.end(), layer) - marks.begin();
    return pass_.stages[static_cast<std::size_t>(std::max<std::ptrdiff_t>(behind - 1, 0))];
  }

  /// Whether the loop gets what the model returns in float32.
  [[nodiscard]] bool hands_out_float() const {
    const model::OutputType outputs = model::row_of(job_.loop).outputs;
    const bool casts = model::is_autocast(job_.precision) || job_.float_outputs;
    return outputs == model::OutputType::always_float || (casts && outputs == model::OutputType::float_under_autocast);
  }

  /// Whether the model itself makes a float32 copy of the tensor. Up to transformers 4.45 that one is returned.
  [[nodiscard]] bool has_float_copy(TensorId tensor) {
    return std::ranges::any_of(tape().functions(), [&](const ops::Function& function) {
      const ops::TensorSize& made = tape().tensor(function.output).size;
      return function.inputs.count == 1 && tape().list(function.inputs)[0] == tensor &&
             function.kind == ops::Output::fresh && made.dtype == core::DType::float32 &&
             made.elements.value() == tape().tensor(tensor).size.elements.value();
    });
  }

  /// Not the keys and values of a cache, which is an object of its own.
  void convert_outputs() {
    if (!hands_out_float()) return;
    std::vector<TensorId> handed_out;
    for (const TensorId held : pass_.held) {
      const std::uint32_t layer = tape().tensor(held).layer;
      const model::Attributes attributes = graph_.attributes(graph_.layers()[layer]);
      const bool float_already = job_.transformers == model::Transformers::v4_45 && has_float_copy(held);
      if (attributes.flag("cache", false) || float_already) {
        handed_out.push_back(held);
        continue;
      }
      if (attributes.flag("outlives_loss", false)) handed_out.push_back(held);
      tape().begin_layer(layer);
      const TensorId copy = tape().cast(held, core::DType::float32);
      if (handed_out.empty() || handed_out.back() != copy) handed_out.push_back(copy);
    }
    pass_.held = std::move(handed_out);
  }

  /// By tensor: whether it is a parameter.
  [[nodiscard]] std::vector<bool> parameters() {
    std::vector<bool> found(tape().tensors().size(), false);
    for (const auto& parameter : tape().parameters()) found[static_cast<std::size_t>(parameter.tensor)] = true;
    return found;
  }

  /// A loss for every output that nothing else reads. A parameter is none: what reads it (a router's bias, which picks
  /// experts and gets no gradient) may be no call.
  std::optional<core::Error> add_losses(const ops::Catalogue& ops) {
    const ops::Op* loss = nullptr;
    for (const ops::Op* op : ops) {
      if (op->loss == job_.loss) loss = op;
    }
    const std::vector<bool> is_parameter = parameters();
    core::Pace pace;
    for (std::size_t index = 0; index < tensors_.size(); ++index) {
      if (pace.late()) return core::deadline_error();
      const bool output = tensors_[index] != kNoTensor && !consumed_[index] && !graph_.layers()[index].returned &&
                          tape().tensor(tensors_[index]).requires_grad &&
                          !is_parameter[static_cast<std::size_t>(tensors_[index])];
      if (!output) continue;
      hold(tensors_[index]);
      const core::Shape shape = wired_.outputs(index)[0];
      tape().begin_layer(static_cast<std::uint32_t>(index));
      const TensorId value = shape.rank() == 0 ? tensors_[index] : add_loss(*loss, tensors_[index], shape);
      TensorId& of_stage = stage_of(index).loss;
      if (of_stage != kNoTensor && pass_.stages.size() > 1) {
        return core::Error{core::ErrorCode::invalid_argument,
                           "`virtual_stages` needs a model in which each stage passes on one tensor",
                           wired_.place_of(graph_.layers()[index])};
      }
      of_stage = of_stage == kNoTensor ? value : ops::sum_of(tape(), of_stage, value);
    }
    const auto idle = [](const StagePart& stage) { return stage.loss == kNoTensor; };
    if (std::any_of(pass_.stages.begin(), pass_.stages.end(), idle)) {
      return core::Error{core::ErrorCode::missing_information,
                         "the model has nothing to train: there is no loss to take gradients of",
                         {graph_.file(), 0, {}}};
    }
    // A model that computes its loss itself has it among its outputs.
    for (const StagePart& stage : pass_.stages) hold(stage.loss);
    return std::nullopt;
  }

  TensorId add_loss(const ops::Op& loss, TensorId output, const core::Shape& shape) {
    add_labels(labels_of(shape));
    ops::OpCall call;
    call.shapes = {&shape, 1};
    call.tensors = {&output, 1};
    call.size = {1, 0, core::DType::float32};
    if (const auto in_form = record_language_loss(call, false)) return **in_form;
    return *loss.record(call, tape());
  }

  /// Outputs of one size are compared with the same labels.
  void add_labels(const ops::TensorSize& size) {
    for (const TensorId input : tape().inputs().subspan(pass_.model_inputs)) {
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

  const connect::WiredGraph& wired_;
  const model::ModelGraph& graph_;
  const model::TrainingJob& job_;
  ForwardPass pass_;
  RecordedLayers recorded_;
  std::vector<TensorId> tensors_;  ///< one a layer
  std::vector<bool> consumed_;
  std::vector<TensorId> read_tensors_;  ///< what the layer at hand reads
  std::vector<core::Shape> read_shapes_;
  std::vector<bool> moved_;  ///< layers that flash attention does without
  HeadAndLoss language_;     ///< of a chunked or fused loss
  ops::LanguageHead head_;
  std::vector<TensorId> head_parameters_;
  bool in_loop_ = false;      ///< the model returns logits, and the loop computes their loss
  std::size_t returned_ = 0;  ///< then: how many functions the model has
};

}  // namespace forward_pass_detail

GPUMEM_INLINE core::Result<ForwardPass> make_forward_pass(const connect::WiredGraph& wired,
                                                          const model::TrainingJob& job, const ops::Catalogue& ops,
                                                          ops::Backend backend) {
  return forward_pass_detail::ForwardPassBuilder(wired, job, backend).run(ops);
}

}  // namespace gpumem::plan
