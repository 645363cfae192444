#pragma once

#include "gpumem/connect/graph_copy.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "gpumem/connect/infer_shapes.hpp"
#include "gpumem/connect/repeated_blocks.hpp"

namespace gpumem::connect {

GPUMEM_INLINE GraphCopy::GraphCopy(const WiredGraph& source, const ops::Catalogue& ops, CopiedShapes shapes)
    : source_(source),
      ops_(ops),
      builder_(source.graph().format(), source.graph().file()),
      copies_shapes_(shapes == CopiedShapes::of_source) {
  const model::ModelGraph& graph = source.graph();
  builder_.reserve(graph.layers().size());
  builder_.architecture(graph.architecture(), graph.model_type());
  for (const model::GraphInput& input : graph.graph_inputs()) builder_.add_input(input);
  if (const auto batch = graph.printed_batch_size()) builder_.printed_batch_size(*batch);
  if (graph.printed_input()) builder_.printed_input(*graph.printed_input());
  builder_.run_settings(graph.run_settings());
  for (const std::string& remark : graph.remarks()) builder_.remark(remark);
  for (const std::string& module : graph.whole_modules()) builder_.leave_whole(module);
  for (const std::string& path : graph.left_out()) builder_.leave_out(path);
  remarks_.assign(source.remarks().begin(), source.remarks().end());
  for (const model::Warning& warning : graph.warnings()) builder_.warn(warning.message, warning.place.line);
  const auto inputs = source.input_shapes();
  shapes_.inputs.assign(inputs.begin(), inputs.end());
  now_.reserve(graph.layers().size());
  weights_.reserve(graph.layers().size());
  if (copies_shapes_) shapes_.leaves.reserve(graph.layers().size());
  if (copies_shapes_ && !graph.shapes_printed()) shapes_.inferred.reserve(graph.layers().size());
}

/// Scopes are numbered as they were opened, so the copy opens them in this order too.
GPUMEM_INLINE void GraphCopy::open_next() {
  const model::ModelGraph& graph = source_.graph();
  const std::uint32_t next = ++opened_;
  while (builder_.current_scope() != graph.scope(next).parent) builder_.close_scope();
  builder_.open_scope(graph.scope_name(next), graph.class_name(graph.scope(next)));
}

/// Closes the scope that is open now, with those in it that no layer is in.
GPUMEM_INLINE void GraphCopy::leave() {
  const std::uint32_t scope = builder_.current_scope();
  const auto end = static_cast<std::uint32_t>(source_.graph().scopes());
  while (opened_ + 1 < end && source_.graph().within(opened_ + 1, scope)) open_next();
  while (builder_.current_scope() != scope) builder_.close_scope();
  builder_.close_scope();
}

GPUMEM_INLINE void GraphCopy::enter(std::uint32_t scope) {
  while (!source_.graph().within(scope, builder_.current_scope())) leave();
  while (opened_ < scope) open_next();
  while (builder_.current_scope() != scope) leave();
}

GPUMEM_INLINE void GraphCopy::mark_blocks() {
  const auto marks = source_.graph().block_marks();
  for (; marked_ < marks.size() && marks[marked_].layers <= now_.size(); ++marked_) {
    builder_.mark_block(source_.graph().class_name(marks[marked_]), marks[marked_].output);
  }
}

/// What follows an unknown layer reads what connecting took it to read.
GPUMEM_INLINE void GraphCopy::note_unknown(std::size_t layer) {
  if (!source_.has_stand_ins()) return;
  const auto read = source_.inputs(layer);
  const auto edges = source_.graph().inputs(source_.graph().layers()[layer]);
  if (std::ranges::equal(read, edges)) return;
  const auto index = static_cast<std::uint32_t>(weights_.size());
  shapes_.behind_unknown.push_back({index, !read.empty(), read.empty() ? 0 : now(read[0])});
}

/// The tensor that leaves the layer added last.
GPUMEM_INLINE void GraphCopy::note_shape(bool leaves, const core::Shape& output) {
  if (!copies_shapes_) return;
  shapes_.leaves.push_back(leaves);
  if (source_.graph().shapes_printed()) return;
  shapes_.inferred.add_layer();
  shapes_.inferred.set_last(shapes_.inferred.number_of(output));
}

GPUMEM_INLINE model::LayerIndex GraphCopy::add_input(model::GraphInput input) {
  shapes_.inputs.push_back(input.shape);
  builder_.add_input(std::move(input));
  return model::kFirstGraphInput - static_cast<model::LayerIndex>(shapes_.inputs.size() - 1);
}

/// A layer of the copy that is what this one's copy will be, but for its name, its place and its inputs.
GPUMEM_INLINE std::optional<model::LayerIndex> GraphCopy::twin_of(const model::Layer& layer, bool frozen, bool tied) {
  Copied& recent = recent_[(layer.attributes.first * 31U + layer.op) % recent_.size()];
  const auto copies = builder_.graph().layers();
  if (recent.from != nullptr && !builder_.failed() && model::same_but_for_place(*recent.from, layer)) {
    const model::Layer& copy = copies[static_cast<std::size_t>(recent.to)];
    const std::int64_t shared = tied ? layer.tied_parameters : 0;
    if (copy.frozen == frozen && copy.tied_parameters == shared) return recent.to;
  }
  recent = {&layer, static_cast<model::LayerIndex>(copies.size())};
  return std::nullopt;
}

GPUMEM_INLINE model::LayerIndex GraphCopy::copy(const model::WeightStorage& weights, bool frozen,
                                                const std::optional<ChangedLayer>& change, bool tied) {
  const std::size_t at = now_.size();
  const model::ModelGraph& graph = source_.graph();
  const model::Layer& layer = graph.layers()[at];
  mark_blocks();
  enter(layer.scope);
  inputs_.clear();
  for (const model::LayerIndex input : graph.inputs(layer)) inputs_.push_back(now(input));
  note_unknown(at);
  const model::LayerIndex index = add_copy(layer, frozen, change, tied);
  if (copies_shapes_) {
    const auto leaving = source_.outputs(at);
    note_shape(!leaving.empty(), leaving.empty() ? core::Shape() : leaving[0]);
  }
  weights_.push_back(weights);
  now_.push_back(index);
  return index;
}

GPUMEM_INLINE model::LayerIndex GraphCopy::add_copy(const model::Layer& layer, bool frozen,
                                                    const std::optional<ChangedLayer>& change, bool tied) {
  const model::ModelGraph& graph = source_.graph();
  if (!change) {
    const std::optional<model::LayerIndex> twin = twin_of(layer, frozen, tied);
    if (twin) return builder_.add_like(*twin, graph.name(layer), graph.outputs(layer), inputs_, layer.line);
  }
  const std::span<const model::Attribute> attributes =
      change ? std::span<const model::Attribute>(change->attributes) : graph.attributes(layer).all();
  return builder_.add({.name = graph.name(layer),
                       .class_name = graph.class_name(layer),
                       .op = graph.op_traits(layer),
                       .outputs = graph.outputs(layer),
                       .inputs = inputs_,
                       .attributes = attributes,
                       .parameters = change ? std::optional<std::int64_t>() : layer.parameters,
                       .tied_parameters = !tied    ? 0
                                          : change ? change->tied_parameters
                                                   : layer.tied_parameters,
                       .frozen = frozen,
                       .returned = layer.returned,
                       .inferred = layer.inferred,
                       .split = layer.split,
                       .expert = layer.expert,
                       .line = layer.line});
}

GPUMEM_INLINE model::LayerIndex GraphCopy::put(NewLayer layer) {
  mark_blocks();
  enter(source_.graph().layers()[now_.size()].scope);
  now_.push_back(insert(std::move(layer)));
  return now_.back();
}

GPUMEM_INLINE model::LayerIndex GraphCopy::insert(NewLayer layer) {
  const auto named = [&](const ops::Op* op) { return op->traits.name == layer.op; };
  const auto found = std::find_if(ops_.rbegin(), ops_.rend(), named);
  if (found == ops_.rend()) {
    builder_.fail({core::ErrorCode::missing_information, "the catalogue has no op " + core::quoted(layer.op), {}});
    return 0;
  }
  const bool printed = source_.graph().shapes_printed();
  const model::LayerIndex index = builder_.add({.name = layer.name,
                                                .op = &(*found)->traits,
                                                .outputs = {&layer.output, printed ? 1U : 0U},
                                                .inputs = layer.inputs,
                                                .tied_parameters = layer.tied_parameters,
                                                .frozen = layer.frozen,
                                                .inferred = true,
                                                .split = layer.split,
                                                .expert = layer.expert},
                                               std::move(layer.attributes));
  note_shape(true, layer.output);
  weights_.push_back(layer.weights);
  return index;
}

/// Of two of a name the later, as in connecting.
GPUMEM_INLINE std::vector<const ops::Op*> GraphCopy::rules_of(const model::ModelGraph& graph) const {
  std::vector<const ops::Op*> rules;
  for (const std::string& name : graph.ops()) {
    const auto named = [&](const ops::Op* op) { return op->traits.name == name; };
    const auto found = std::find_if(ops_.rbegin(), ops_.rend(), named);
    rules.push_back(found == ops_.rend() ? nullptr : *found);
  }
  return rules;
}

GPUMEM_INLINE core::Result<model::ModelGraph> GraphCopy::build() {
  mark_blocks();
  while (opened_ + 1 < source_.graph().scopes()) open_next();
  while (builder_.current_scope() != 0) builder_.close_scope();
  return std::move(builder_).build();
}

GPUMEM_INLINE core::Result<WiredGraph> GraphCopy::wired(model::ModelGraph graph, std::vector<const ops::Op*> rules) {
  return WiredGraph({.graph = std::make_shared<const model::ModelGraph>(std::move(graph)),
                     .edges = source_.edges(),
                     .ops = std::move(rules),
                     .shapes = std::move(shapes_),
                     .guesses = source_.guesses(),
                     .weights = std::move(weights_),
                     .remarks = std::move(remarks_),
                     .stages = std::move(stages_)});
}

GPUMEM_INLINE core::Result<WiredGraph> GraphCopy::finish() && {
  core::Result<model::ModelGraph> graph = build();
  if (!graph) return graph.error();
  std::vector<const ops::Op*> rules = rules_of(*graph);
  return wired(*std::move(graph), std::move(rules));
}

GPUMEM_INLINE core::Result<WiredGraph> GraphCopy::finish(const model::TrainingJob& job) && {
  core::Result<model::ModelGraph> graph = build();
  if (!graph) return graph.error();
  std::vector<const ops::Op*> rules = rules_of(*graph);
  core::Result<LayerShapes> shapes = infer_shapes(job, *graph, rules);
  if (!shapes) return shapes.error();
  shapes_ = *std::move(shapes);
  return wired(*std::move(graph), std::move(rules));
}

GPUMEM_INLINE std::optional<std::uint32_t> head_behind(const WiredGraph& wired, const Range& last) {
  const model::ModelGraph& graph = wired.graph();
  std::optional<std::uint32_t> head;
  std::int64_t widest = 0;
  for (std::uint32_t at = last.end; at < graph.layers().size(); ++at) {
    const model::Layer& layer = graph.layers()[at];
    const ops::Op* const op = wired.op(layer);
    if (op == nullptr || op->traits.completion != model::Completion::linear) continue;
    const std::int64_t width = graph.attributes(layer).integer("out_features").value_or(0);
    if (head && width <= widest) continue;
    head = at;
    widest = width;
  }
  return head;
}

}  // namespace gpumem::connect
