#pragma once

#include "gpumem/connect/opaque.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/connect/cut_blocks.hpp"
#include "gpumem/connect/wiring.hpp"
#include "gpumem/core/bytes.hpp"

namespace gpumem::connect {

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
