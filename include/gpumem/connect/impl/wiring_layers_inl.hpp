#pragma once

#include "gpumem/connect/wiring.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/connect/cut_blocks.hpp"
#include "gpumem/connect/impl/wiring_inl.hpp"
#include "gpumem/connect/infer_shapes.hpp"
#include "gpumem/connect/repair.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/op_traits.hpp"

namespace gpumem::connect {

// Layers of a tree, whose attributes are declared and whose shapes follow from what they read.

namespace wiring_detail {

GPUMEM_INLINE bool one_pixel(const core::Shape& shape) {
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) {
    if (shape[axis] != core::Dim::fixed(1)) return false;
  }
  return shape.rank() > 2;
}

}  // namespace wiring_detail

GPUMEM_INLINE std::optional<std::int64_t> Wiring::printed_width(Part part) const {
  if (part.container) return std::nullopt;
  const model::Layer& layer = graph_.layers()[part.index];
  const ops::Op* op = rules_[layer.op];
  return op == nullptr || op->traits.norm == model::NormKind::none ? std::nullopt : wanted_by(layer, *op).width;
}

GPUMEM_INLINE std::optional<std::int64_t> Wiring::first_width(Part part, std::string_view attribute,
                                                              std::string_view other) const {
  if (!part.container) {
    const auto found = integer(part, attribute);
    return found ? found : integer(part, other);
  }
  for (const Part& inner : containers_[part.index].parts) {
    if (const auto found = first_width(inner, attribute, other)) return found;
  }
  return std::nullopt;
}

GPUMEM_INLINE void Wiring::guess(Part where, std::string message) {
  ++guesses_;
  const Part layer = first_layer(where);
  const std::int64_t line = layer.container ? 0 : graph_.layers()[layer.index].line;
  const std::string subject = layer.container ? std::string(name(where)) : graph_.path(graph_.layers()[layer.index]);
  if (first_guess_ == 0) first_guess_ = line;
  if (strict_) {
    fail({core::ErrorCode::missing_information,
          message + "; use graph JSON, or a recording",
          {graph_.file(), line, subject}});
    return;
  }
  builder_.warn(core::quoted(subject) + " " + std::move(message), line);
}

GPUMEM_INLINE void Wiring::contradict() {
  if (contradicted_) return;
  contradicted_ = made_.size();
  contradicting_ = latest_;
}

GPUMEM_INLINE std::optional<core::Error> Wiring::contradicted() const {
  if (!contradicted_) return std::nullopt;
  std::int64_t before = 0;
  std::int64_t after = 0;
  for (std::size_t layer = 0; layer < made_.size(); ++layer) {
    std::int64_t& sum = layer < *contradicted_ ? before : after;
    sum = core::bounded_sum({sum, elements_of(made_[layer].shape)});
  }
  constexpr std::int64_t kFewest = 10;  // of so many parts one
  if (after <= before / kFewest) return std::nullopt;
  const model::Layer& layer = graph_.layers()[contradicting_];
  return core::Error{core::ErrorCode::missing_information,
                     "reads what code between the layers joins, and no line shows how; the memory depends on it: call "
                     "gpumem.estimate_module() with the model, or record a training step",
                     {graph_.file(), layer.line, graph_.path(layer)}};
}

GPUMEM_INLINE void Wiring::count_unknown(Part part) {
  constexpr std::array<std::string_view, 4> kBare = {"Sequential", "ModuleList", "ModuleDict", ""};
  const Container& container = containers_[part.index];
  const bool bare = std::find(kBare.begin(), kBare.end(), container.class_name) != kBare.end();
  if (bare || called() || container.parts.size() < 2) return;
  ++unknown_containers_;
  constexpr std::size_t kMostNamed = 64;
  const bool named = std::find(named_.begin(), named_.end(), container.class_name) != named_.end();
  if (named || named_.size() >= kMostNamed) return;
  named_.push_back(container.class_name);
  const Part layer = first_layer(part);
  builder_.warn("the class " + core::quoted(container.class_name) +
                    " is not known: what its parts read is taken to follow from their order and sizes",
                layer.container ? 0 : graph_.layers()[layer.index].line);
}

GPUMEM_INLINE Part Wiring::first_layer(Part part) const {
  while (part.container && !containers_[part.index].parts.empty()) part = containers_[part.index].parts.front();
  return part;
}

GPUMEM_INLINE std::int64_t Wiring::parameters_of(const model::Layer& layer, const ops::Op& op, Tensor input) const {
  if (op.figures_a_channel == 0 || layer.parameters > 0) return layer.parameters;
  return (core::Checked(op.figures_a_channel) * core::Checked(channels(input))).value().value_or(0);
}

GPUMEM_INLINE bool Wiring::leaves_last(const model::OpTraits& op, std::span<const Tensor> inputs,
                                       const model::Attributes& attributes) const {
  if (op.completion == model::Completion::linear || op.norm == model::NormKind::layer) return true;
  const bool channels_second = op.family == model::OpFamily::conv || op.norm == model::NormKind::batch;
  if (channels_second || inputs.empty()) return false;
  const bool last = made(inputs[0]).last;
  const auto moved = attributes.per_axis("dims", 1);
  if (!moved || shape(inputs[0]).rank() != 4) return last;
  return last ? *moved != 3 : attributes.per_axis("dims", 3) == std::optional<std::int64_t>(1);
}

GPUMEM_INLINE std::optional<std::int64_t> Wiring::declared_features(const model::Layer& layer) const {
  for (auto index = static_cast<std::size_t>(&layer - graph_.layers().data()); index < graph_.layers().size();
       ++index) {
    const model::Layer& next = graph_.layers()[index];
    const model::OpTraits* op = graph_.op_traits(next);
    if (wiring_detail::is_linear(op)) return graph_.attributes(next).integer("in_features");
    if (op == nullptr || op->family != model::OpFamily::dropout) break;
  }
  return std::nullopt;
}

GPUMEM_INLINE Tensor Wiring::call_channels_last(const model::Layer& layer, const ops::Op& op, Tensor input) {
  const core::Dim channels = shape(input)[1];
  input = operation("permute", {&input, 1}, {{"dims", std::vector<std::int64_t>{0, 2, 3, 1}}});
  if (failed()) return input;
  const core::Shape last = shape(input);
  const auto known = graph_.attributes(layer).all();
  std::vector<model::Attribute> attributes(known.begin(), known.end());
  if (graph_.attributes(layer).find("normalized_shape") == nullptr) {
    attributes.push_back({"normalized_shape", std::vector<std::int64_t>{channels.size}});
  }
  const Tensor normal = emit(layer, op, {&input, 1}, {&last, 1}, std::move(attributes));
  return operation("permute", {&normal, 1}, {{"dims", std::vector<std::int64_t>{0, 3, 1, 2}}});
}

/// timm's "same" convolutions and poolings pad by what their input lacks; SelectAdaptivePool2d pools to one pixel.
GPUMEM_INLINE Tensor Wiring::prepared(const model::Layer& layer, const ops::Op& op, Tensor input,
                                      std::vector<model::Attribute>& attributes) {
  const std::string_view class_name = graph_.class_name(layer);
  if (class_name == wiring_detail::kPoolOfTrees) {
    attributes = {{"output_size", std::int64_t{1}}};
    return input;
  }
  const bool windowed = op.traits.family == model::OpFamily::conv || op.traits.family == model::OpFamily::pool;
  if (!windowed || !class_name.ends_with("Same") || shape(input).rank() != 4) return input;
  const auto printed = model::Attributes(attributes).per_axis("padding", 0);
  if (printed.value_or(0) != 0) return input;  // the same at every size, and so printed
  const std::vector<std::int64_t> sides = same_padding(shape(input), model::Attributes(attributes));
  return sides.empty() ? input : operation("pad", {&input, 1}, {{"padding", sides}});
}

GPUMEM_INLINE Wanted Wiring::wanted_by(const model::Layer& layer, const ops::Op& op) const {
  const model::Attributes attributes = graph_.attributes(layer);
  Wanted wanted{op.expects.axis, std::nullopt};
  if (op.traits.norm == model::NormKind::layer) {
    wanted.axis = ops::ExpectedWidth::Axis::last;
    const model::AttributeValue* value = attributes.find("normalized_shape");
    const auto* sizes = value == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(value);
    wanted.width = sizes == nullptr || sizes->empty() ? attributes.integer("normalized_shape") : sizes->back();
    wanted.optional = true;
  } else if (op.expects.axis != ops::ExpectedWidth::Axis::none) {
    wanted.width = attributes.integer(op.expects.attribute);
  }
  const model::AttributeValue* kernel = attributes.find("kernel_size");
  const auto* sides = kernel == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(kernel);
  wanted.image = op.traits.family == model::OpFamily::conv && sides != nullptr && sides->size() == 2;
  return wanted;
}

GPUMEM_INLINE std::optional<std::int64_t> Wiring::width_of(Tensor tensor, const Wanted& wanted) const {
  const core::Shape& from = shape(tensor);
  const bool second = wanted.axis == ops::ExpectedWidth::Axis::channels;
  if (from.rank() < (second ? 2U : 1U)) return std::nullopt;
  const core::Dim dim = from[second ? 1 : from.rank() - 1];
  return dim.kind == core::Dim::Kind::fixed ? std::optional(dim.size) : std::nullopt;
}

GPUMEM_INLINE Tensor Wiring::call_declared(const model::Layer& layer, const ops::Op& op, Tensor input) {
  const auto all = graph_.attributes(layer).all();
  std::vector<model::Attribute> known(all.begin(), all.end());
  const Wanted wanted = wanted_by(layer, op);
  // A linear layer on images reads them flat, or pooled; on one pixel a dropout before it may see it as it is.
  const auto features = declared_features(layer);
  const bool images = shape(input).rank() == 4;
  const bool flat = wiring_detail::is_linear(&op.traits) || !wiring_detail::one_pixel(shape(input));
  const bool rows =
      shape(input).rank() > 0 && shape(input)[shape(input).rank() - 1] == core::Dim::fixed(features.value_or(0));
  if (features && images && flat && !rows) input = bridged(input, *features);
  const auto gate = made(input).gate;
  const bool leaves_gate =
      gate && op.expects.axis == ops::ExpectedWidth::Axis::channels && !graph_.within(layer.scope, *gate);
  const bool fits = !wanted.width || width_of(input, wanted) == wanted.width;
  const bool ranked = !wanted.image || shape(input).rank() == 4;
  if (!fits || !ranked || leaves_gate) input = resolved(layer, wanted, input, leaves_gate);
  input = prepared(layer, op, input, known);
  if (failed()) return input;
  const core::Shape from = shape(input);
  const core::Result<core::Shape> output = op.output_shape(ops::OpInput{model::Attributes(known), {&from, 1}});
  if (!output) {
    if (strict_) fail_at(layer, output.error());
    guess(part_of(layer), output.error().message + "; it is left out");
    return input;
  }
  const bool pools = wiring_detail::one_pixel(*output) && !wiring_detail::one_pixel(shape(input));
  // PyTorch prints Hardswish() whether it is in place or not.
  const bool silent = op.traits.hides_in_place && graph_.attributes(layer).find("inplace") == nullptr;
  if (silent && overwrites(layer, op, input)) known.push_back({"inplace", true});
  const Tensor result = emit(layer, op, {&input, 1}, {&*output, 1}, std::move(known));
  if (pools) made(result).gate = layer.scope;
  if (gate && wiring_detail::one_pixel(*output)) made(result).gate = gate;
  return result;
}

GPUMEM_INLINE Tensor Wiring::resolved(const model::Layer& layer, const Wanted& wanted, Tensor input, bool leaves_gate) {
  if (wanted.optional && strict_) return input;
  // What the job feeds is no guess of ours.
  const bool fed = !begun_ && !wanted.optional;
  if (strict_ || fed) {
    fail_at(layer, {core::ErrorCode::missing_information,
                    "reads " + std::to_string(*wanted.width) +
                        (wanted.axis == ops::ExpectedWidth::Axis::last ? " features" : " channels") + ", and follows " +
                        core::to_string(shape(input)) + (leaves_gate ? " of a block that pools to one pixel" : "") +
                        ": how its block is wired is not printed; use graph JSON, or torchsummary",
                    {}});
    return input;
  }
  return repair(*this, part_of(layer), wanted, input, leaves_gate);
}

// Layers and rows of an unknown class.

namespace opaque_detail {

inline constexpr double kTensorsASquare = 1.4;
inline constexpr double kFewestTensors = 2.0;
inline constexpr double kMostTensors = 64.0;
inline constexpr double kMoreAtMost = 3.0;

/// Of what the foot tells, of images and of rows of tokens.
struct Told {
  double least = 0.0;
  double expected = 0.0;
  double most = 0.0;
};
inline constexpr Told kImages = {0.75, 1.2, 3.0};
inline constexpr Told kCopies = {0.75, 1.7, 4.0};
inline constexpr Told kTokens = {1.0, 2.25, 4.0};
/// Multiplications an output, of a depthwise convolution and a narrow one beside it.
inline constexpr double kFewProducts = 64.0;

/// Channels of the output: the second axis of images, else the last.
GPUMEM_INLINE double width_of(const core::Shape& shape) {
  if (shape.rank() < 2) return 1.0;
  const core::Dim dim = shape[shape.rank() == 4 ? 1 : shape.rank() - 1];
  return dim.kind == core::Dim::Kind::fixed ? static_cast<double>(std::max<std::int64_t>(dim.size, 1)) : 1.0;
}

/// How many tensors of its output's size the row keeps, by its parameters.
GPUMEM_INLINE double tensors_of(const core::Shape& output, std::int64_t parameters) {
  const double width = width_of(output);
  return std::clamp(kTensorsASquare * static_cast<double>(parameters) / (width * width), kFewestTensors, kMostTensors);
}

/// Whether the first images have more rows of pixels than the second.
GPUMEM_INLINE bool larger(const core::Shape& image, const core::Shape& than) {
  const bool images = image.rank() == 4 && than.rank() == 4 && image[2].kind == than[2].kind;
  return images && image[2].kind == core::Dim::Kind::fixed && image[2].size > than[2].size;
}

/// A list's modules are called one by one, and it itself never: a table prints no shape for it.
GPUMEM_INLINE bool lists(std::string_view class_name) {
  return class_name == "ModuleList" || class_name == "ModuleDict";
}

/// A double as elements, within what a plan can count.
GPUMEM_INLINE std::int64_t elements(double count) {
  constexpr double kMost = static_cast<double>(core::kMostBytes) / 16.0;
  return std::llround(std::clamp(count, 0.0, kMost));
}

}  // namespace opaque_detail

GPUMEM_INLINE std::int64_t elements_of(const core::Shape& shape) {
  core::Checked count = shape.rank() > 0 ? 1 : 0;
  for (std::size_t axis = 1; axis < shape.rank(); ++axis) {
    if (shape[axis].kind != core::Dim::Kind::fixed) return 0;
    count *= shape[axis].size;
  }
  return count.value().value_or(0);
}

GPUMEM_INLINE std::optional<ToldByFoot> told_by_foot(const model::ModelGraph& graph) {
  const std::span<const std::string> ops = graph.ops();
  const auto hides = [](std::string_view op) { return op == model::kOpaqueOp || op == kCutBlock; };
  const bool asked = std::any_of(ops.begin(), ops.end(), hides);
  if (!asked || !graph.printed_outputs()) return std::nullopt;
  auto hidden = static_cast<double>(*graph.printed_outputs());
  double by_parameters = 0.0;
  double products = 0.0;  // of parameters and the pixels that the rows leave
  bool enlarges = false;
  bool listed = false;  // the row before is a list
  core::Shape before;
  for (const model::Layer& layer : graph.layers()) {
    const bool hidden_layers = hides(graph.op(layer));
    const bool prints = !graph.outputs(layer).empty();
    if (!prints && !(hidden_layers && opaque_detail::lists(graph.class_name(layer)))) continue;
    const core::Shape output = prints ? printed_shape(graph, layer) : before;
    enlarges = enlarges || ((hidden_layers || listed) && opaque_detail::larger(output, before));
    listed = !prints;
    before = output;
    if (layer.parameters == 0) continue;
    const auto left = static_cast<double>(elements_of(output));
    if (hidden_layers) {
      by_parameters += left * opaque_detail::tensors_of(output, layer.parameters);
      products += static_cast<double>(layer.parameters) * left / opaque_detail::width_of(output);
    }
    if (!hidden_layers) hidden -= left;
  }
  if (hidden <= 0.0 || by_parameters <= 0.0) return std::nullopt;
  return ToldByFoot{hidden / by_parameters, enlarges || products < opaque_detail::kFewProducts * hidden};
}

GPUMEM_INLINE KeptElements kept_by(const OpaqueRow& row, const std::optional<ToldByFoot>& told) {
  namespace detail = opaque_detail;
  const auto output = static_cast<double>(elements_of(row.output));
  const double tensors = detail::tensors_of(row.output, row.parameters);
  if (told) {
    const double hidden = told->share * tensors * output;
    const detail::Told& images = told->copies ? detail::kCopies : detail::kImages;
    const detail::Told& of = row.output.rank() == 3 ? detail::kTokens : images;
    const auto beside = [&](double share) { return detail::elements(share * hidden - output); };
    return {beside(of.least), beside(of.expected), beside(of.most)};
  }
  const double larger = std::max(output, static_cast<double>(elements_of(row.input)));
  const double most = std::max(detail::kMoreAtMost * tensors, row.hides ? detail::kMostTensors : 0.0);
  return {0, detail::elements(tensors * output), detail::elements(most * larger)};
}

GPUMEM_INLINE void Wiring::bounded(Part where, std::string message, std::int64_t fewer, std::int64_t more) {
  if (failed()) return;
  const Part layer = first_layer(where);
  const std::int64_t line = layer.container ? 0 : graph_.layers()[layer.index].line;
  const std::string subject = layer.container ? std::string(name(where)) : graph_.path(graph_.layers()[layer.index]);
  if (strict_) {
    fail({core::ErrorCode::missing_information,
          std::move(message) + "; use a recording, or leave out `strict`",
          {graph_.file(), line, subject}});
    return;
  }
  builder_.warn(core::quoted(subject) + " " + std::move(message), line);
  ++bounds_.bounded;
  bounds_.fewer_elements = core::bounded_sum({bounds_.fewer_elements, fewer});
  bounds_.more_elements = core::bounded_sum({bounds_.more_elements, more});
}

GPUMEM_INLINE void Wiring::name_opaque(const model::Layer& layer) {
  const std::string_view class_name = graph_.class_name(layer);
  constexpr std::size_t kMostNamed = 64;
  const bool named = std::find(opaque_classes_.begin(), opaque_classes_.end(), class_name) != opaque_classes_.end();
  if (named || opaque_classes_.size() >= kMostNamed) return;
  opaque_classes_.push_back(class_name);
  builder_.warn(core::quoted(graph_.path(layer)) + " has the unknown class " + core::quoted(class_name) +
                    " and holds " + core::with_separators(layer.parameters) +
                    " parameters: what its layers keep is a guess" +
                    (told_ ? " from the sizes below the table" : ", which nothing printed bounds above"),
                layer.line);
}

GPUMEM_INLINE Tensor Wiring::call_opaque(const model::Layer& layer, const ops::Op& op, Tensor input) {
  if (strict_) {
    fail_at(layer,
            {core::ErrorCode::unknown_layer,
             "holds " + core::with_separators(layer.parameters) + " parameters, and the layers of its class " +
                 core::quoted(graph_.class_name(layer)) +
                 " are not known; print the summary with a greater depth, use a recording, or leave out `strict`",
             {}});
    return input;
  }
  name_opaque(layer);
  const bool prints = called() && !graph_.outputs(layer).empty();
  const bool listed = told_ && opaque_detail::lists(graph_.class_name(layer));
  if (called() && !prints && !listed) {  // never called
    hold_parameters(layer);
    return input;
  }
  const core::Shape output = prints ? printed_shape(graph_, layer) : core::Shape(shape(input));
  const KeptElements kept = kept_by({shape(input), output, layer.parameters, called()}, told_);
  ++bounds_.bounded;
  bounds_.fewer_elements = core::bounded_sum({bounds_.fewer_elements, kept.expected - kept.least});
  bounds_.more_elements = core::bounded_sum({bounds_.more_elements, kept.most - kept.expected});
  if (!told_) guessed_elements_ = core::bounded_sum({guessed_elements_, kept.expected});
  const auto printed = graph_.attributes(layer).all();
  std::vector<model::Attribute> attributes(printed.begin(), printed.end());
  attributes.push_back({"kept", kept.expected});
  return emit(layer, op, {&input, 1}, {&output, 1}, std::move(attributes));
}

GPUMEM_INLINE std::optional<core::Error> Wiring::mostly_opaque() const {
  if (guessed_elements_ == 0) return std::nullopt;
  // Weights, gradients and two states, of one sample in a batch of 32.
  constexpr std::int64_t kSamplesAParameter = 8;
  std::int64_t known = graph_.parameters() / kSamplesAParameter;
  const model::ModelGraph& built = builder_.graph();
  for (const model::Layer& layer : built.layers()) {
    if (!built.outputs(layer).empty()) known = core::bounded_sum({known, elements_of(built.outputs(layer)[0])});
  }
  if (guessed_elements_ <= known) return std::nullopt;
  constexpr double kPercent = 100.0;
  const double whole = static_cast<double>(guessed_elements_) + static_cast<double>(known);
  const auto share = static_cast<std::int64_t>(kPercent * static_cast<double>(guessed_elements_) / whole);
  std::string classes;
  for (const std::string_view name : opaque_classes_) classes += (classes.empty() ? "" : ", ") + core::quoted(name);
  constexpr std::size_t kLongest = 200;
  return core::Error{
      core::ErrorCode::unknown_layer,
      std::to_string(share) +
          " % of what the model takes would be a guess, because the layers of these classes are not known (" +
          core::shortened(classes, kLongest) +
          "); print the summary with a greater depth, use a recording, or read it leniently (`lenient`) "
          "for a lower bound",
      {graph_.file(), 0, {}}};
}

}  // namespace gpumem::connect
