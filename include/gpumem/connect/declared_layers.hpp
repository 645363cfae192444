// What Wiring does with layers of a tree, whose attributes are declared and whose shapes follow from what they read:
// the bodies of its members for these.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "gpumem/connect/infer_shapes.hpp"
#include "gpumem/connect/opaque.hpp"
#include "gpumem/connect/repair.hpp"
#include "gpumem/connect/wiring.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/op_traits.hpp"

namespace gpumem::connect {

namespace wiring_detail {

/// timm's pooling of a classifier, which prints its kind, and whether its channels lie last does not show.
inline constexpr std::string_view kPoolOfTrees = "SelectAdaptivePool2d";

inline bool one_pixel(const core::Shape& shape) {
  for (std::size_t axis = 2; axis < shape.rank(); ++axis) {
    if (shape[axis] != core::Dim::fixed(1)) return false;
  }
  return shape.rank() > 2;
}

inline bool is_linear(const model::OpTraits* op) {
  return op != nullptr && op->completion == model::Completion::linear;
}

}  // namespace wiring_detail

inline std::optional<std::int64_t> Wiring::printed_width(Part part) const {
  if (part.container) return std::nullopt;
  const model::Layer& layer = graph_.layers()[part.index];
  const ops::Op* op = rules_[layer.op];
  return op == nullptr || op->traits.norm == model::NormKind::none ? std::nullopt : wanted_by(layer, *op).width;
}

inline std::optional<std::int64_t> Wiring::first_width(Part part, std::string_view attribute,
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

inline void Wiring::guess(Part where, std::string message) {
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

inline void Wiring::contradict() {
  if (contradicted_) return;
  contradicted_ = made_.size();
  contradicting_ = latest_;
}

inline std::optional<core::Error> Wiring::contradicted() const {
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

inline void Wiring::count_unknown(Part part) {
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

inline Part Wiring::first_layer(Part part) const {
  while (part.container && !containers_[part.index].parts.empty()) part = containers_[part.index].parts.front();
  return part;
}

inline std::int64_t Wiring::parameters_of(const model::Layer& layer, const ops::Op& op, Tensor input) const {
  if (op.figures_a_channel == 0 || layer.parameters > 0) return layer.parameters;
  return (core::Checked(op.figures_a_channel) * core::Checked(channels(input))).value().value_or(0);
}

inline bool Wiring::leaves_last(const model::OpTraits& op, std::span<const Tensor> inputs,
                                const model::Attributes& attributes) const {
  if (op.completion == model::Completion::linear || op.norm == model::NormKind::layer) return true;
  const bool channels_second = op.family == model::OpFamily::conv || op.norm == model::NormKind::batch;
  if (channels_second || inputs.empty()) return false;
  const bool last = made(inputs[0]).last;
  const auto moved = attributes.per_axis("dims", 1);
  if (!moved || shape(inputs[0]).rank() != 4) return last;
  return last ? *moved != 3 : attributes.per_axis("dims", 3) == std::optional<std::int64_t>(1);
}

inline std::optional<std::int64_t> Wiring::declared_features(const model::Layer& layer) const {
  for (auto index = static_cast<std::size_t>(&layer - graph_.layers().data()); index < graph_.layers().size();
       ++index) {
    const model::Layer& next = graph_.layers()[index];
    const model::OpTraits* op = graph_.op_traits(next);
    if (wiring_detail::is_linear(op)) return graph_.attributes(next).integer("in_features");
    if (op == nullptr || op->family != model::OpFamily::dropout) break;
  }
  return std::nullopt;
}

inline Tensor Wiring::call_channels_last(const model::Layer& layer, const ops::Op& op, Tensor input) {
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
inline Tensor Wiring::prepared(const model::Layer& layer, const ops::Op& op, Tensor input,
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

inline Wanted Wiring::wanted_by(const model::Layer& layer, const ops::Op& op) const {
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

inline std::optional<std::int64_t> Wiring::width_of(Tensor tensor, const Wanted& wanted) const {
  const core::Shape& from = shape(tensor);
  const bool second = wanted.axis == ops::ExpectedWidth::Axis::channels;
  if (from.rank() < (second ? 2U : 1U)) return std::nullopt;
  const core::Dim dim = from[second ? 1 : from.rank() - 1];
  return dim.kind == core::Dim::Kind::fixed ? std::optional(dim.size) : std::nullopt;
}

inline Tensor Wiring::call_declared(const model::Layer& layer, const ops::Op& op, Tensor input) {
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

inline Tensor Wiring::resolved(const model::Layer& layer, const Wanted& wanted, Tensor input, bool leaves_gate) {
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

}  // namespace gpumem::connect
