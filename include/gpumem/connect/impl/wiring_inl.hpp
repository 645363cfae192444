#pragma once

#include "gpumem/connect/wiring.hpp"

#include <algorithm>
#include <array>

#include "gpumem/connect/complete.hpp"
#include "gpumem/connect/cut_blocks.hpp"
#include "gpumem/connect/repair.hpp"

namespace gpumem::connect {

namespace wiring_detail {

using core::Shape;

/// timm's pooling of a classifier, which prints its kind, and whether its channels lie last does not show.
inline constexpr std::string_view kPoolOfTrees = "SelectAdaptivePool2d";

GPUMEM_INLINE bool is_linear(const model::OpTraits* op) {
  return op != nullptr && op->completion == model::Completion::linear;
}

GPUMEM_INLINE const ops::Op* find(const ops::Catalogue& all, std::string_view name) {
  const auto named = [&](const ops::Op* op) { return op->traits.name == name; };
  const auto found = std::find_if(all.begin(), all.end(), named);
  return found == all.end() ? nullptr : *found;
}

/// The product of the axes from the second on; nothing if one is not fixed.
GPUMEM_INLINE std::optional<std::int64_t> sample_elements(const Shape& shape) {
  core::Checked count = 1;
  for (std::size_t axis = 1; axis < shape.rank(); ++axis) {
    if (shape[axis].kind != core::Dim::Kind::fixed) return std::nullopt;
    count *= shape[axis].size;
  }
  return count.value();
}

/// The features of one row a sample that a layer must read; nothing if it does not read such a row.
GPUMEM_INLINE std::optional<std::int64_t> row_features(const PrintedLayer& layer, bool keeps_shape) {
  if (layer.output.rank() != 2 || layer.output[1].kind != core::Dim::Kind::fixed) return std::nullopt;
  const std::int64_t out = layer.output[1].size;
  if (keeps_shape) return out;
  if (!is_linear(layer.op) || out <= 0) return std::nullopt;
  if (layer.parameters % out != 0) return std::nullopt;
  return layer.parameters / out;  // with a bias one more than it reads
}

GPUMEM_INLINE bool before_batch_norm(const model::ModelGraph& graph, const model::Layer& layer) {
  const auto next = static_cast<std::size_t>(&layer - graph.layers().data()) + 1;
  const model::OpTraits* op = next < graph.layers().size() ? graph.op_traits(graph.layers()[next]) : nullptr;
  return op != nullptr && op->norm == model::NormKind::batch;
}

GPUMEM_INLINE PrintedLayer printed_layer(const model::ModelGraph& graph, const model::Layer& layer) {
  return {graph.op_traits(layer), graph.attributes(layer), printed_shape(graph, layer), layer.parameters,
          before_batch_norm(graph, layer)};
}

}  // namespace wiring_detail

GPUMEM_INLINE core::Shape printed_shape(const model::ModelGraph& graph, const model::Layer& layer) {
  return graph.outputs(layer)[0];
}

GPUMEM_INLINE bool readable(const model::ModelGraph& graph, const Containers& containers, Part part,
                            const core::Shape& shape) {
  while (part.container && !containers[part.index].parts.empty()) part = containers[part.index].parts.front();
  if (part.container) return true;
  const model::Layer& layer = graph.layers()[part.index];
  if (!graph.outputs(layer).empty() && graph.op(layer) == kCutBlock) {
    return expands_exactly({printed_shape(graph, layer), layer.parameters, graph.class_name(layer)}, shape);
  }
  return graph.outputs(layer).empty() || can_read(wiring_detail::printed_layer(graph, layer), shape);
}

GPUMEM_INLINE Wiring::Wiring(const model::TrainingJob& job, const ops::Catalogue& ops, const Containers& containers,
                             RowRules rules, model::GraphInput input)
    : graph_(*job.graph),
      ops_(ops),
      containers_(containers),
      row_rules_(rules),
      strict_(job.strict),
      builder_(graph_.format(), graph_.file()),
      forward_(builder_, ops::vocabulary(), *this) {
  for (const std::string& name : graph_.ops()) rules_.push_back(wiring_detail::find(ops, name));
  input_.shape = input.shape;
  input_.memory = model::kFirstGraphInput;
  builder_.add_input(std::move(input));
  // A table's layers get theirs from their shapes: a convolution 7, a batch norm 2.
  constexpr std::size_t kAttributesALayer = 3;
  const std::size_t layers = graph_.layers().size();
  told_ = told_by_foot(graph_);
  builder_.reserve(layers, called() ? kAttributesALayer * layers : 0);
  made_.reserve(layers);
  emitted_.resize(layers, false);
}

GPUMEM_INLINE const core::Shape& Wiring::shape(Tensor tensor) const { return made(tensor).shape; }

GPUMEM_INLINE std::string_view Wiring::name(Part part) const {
  return part.container ? containers_[part.index].name : graph_.name(graph_.layers()[part.index]);
}

GPUMEM_INLINE std::string_view Wiring::op(Part part) const {
  if (part.container) return {};
  const ops::Op* rule = rules_[graph_.layers()[part.index].op];
  return rule == nullptr ? std::string_view() : rule->traits.name;
}

GPUMEM_INLINE void Wiring::fail(core::Error error) { builder_.fail(std::move(error)); }

GPUMEM_INLINE void Wiring::fail_at(const model::Layer& layer, core::Error error) {
  error.place = {graph_.file(), layer.line, graph_.path(layer)};
  fail(std::move(error));
}

GPUMEM_INLINE Tensor Wiring::call(Part part, Tensor input) {
  if (failed()) return input;
  if (!part.container) {
    const Tensor output = call_layer(part.index, input);
    if (!frames_.empty()) frames_.back().results.push_back(output);
    return output;
  }
  const Container& container = containers_[part.index];
  builder_.open_scope({}, container.class_name);  // without its name: layers are named by their whole paths
  frames_.push_back({input, {}, {}});
  Tensor output = call_container(part, container, input);
  output = join_left_over(*this, frames_.back(), output);
  frames_.pop_back();
  if (!frames_.empty()) frames_.back().results.push_back(output);
  builder_.close_scope();
  return output;
}

GPUMEM_INLINE Tensor Wiring::call_container(Part part, const Container& container, Tensor input) {
  const auto* known = called() ? nullptr : architectures::module_forward(container.class_name);
  const CallContainer rows = called() ? row_rules_(container.class_name) : nullptr;
  const CallContainer code = known != nullptr ? known->call : rows;
  if (code != nullptr) return code(forward_, architectures::Module(*this, part), input);
  count_unknown(part);
  return chain(container.parts, input);
}

GPUMEM_INLINE std::int64_t Wiring::channels(Tensor tensor) const {
  const core::Shape& from = shape(tensor);
  if (from.rank() < 2) return 0;
  const core::Dim dim = from[from.rank() == 4 && !made(tensor).last ? 1 : from.rank() - 1];
  return dim.kind == core::Dim::Kind::fixed ? dim.size : 0;
}

GPUMEM_INLINE bool Wiring::stands_in(std::string_view class_name) const {
  const model::ModelGraph& built = builder_.graph();
  for (std::uint32_t scope = builder_.current_scope(); scope != 0; scope = built.scope(scope).parent) {
    if (built.class_name(built.scope(scope)) == class_name) return true;
  }
  return false;
}

GPUMEM_INLINE Tensor Wiring::chain(std::span<const Part> parts, Tensor input) {
  for (const Part& part : parts) input = call(part, input);
  return input;
}

GPUMEM_INLINE std::vector<Tensor> Wiring::left_around() const {
  std::vector<Tensor> all;
  for (std::size_t depth = frames_.size(); depth > 1; --depth) {
    const std::vector<Tensor>& results = frames_[depth - 2].results;
    all.insert(all.end(), results.rbegin(), results.rend());
  }
  return all;
}

GPUMEM_INLINE void Wiring::hold_parameters(const model::Layer& layer) {
  builder_.add({.name = graph_.path(layer),
                .class_name = graph_.class_name(layer),
                .op = &wiring_detail::find(ops_, model::kParameterOp)->traits,
                .parameters = layer.parameters,
                .tied_parameters = layer.tied_parameters,
                .frozen = layer.frozen,
                .line = layer.line});
  made_.emplace_back();
}

GPUMEM_INLINE Tensor Wiring::call_layer(std::uint32_t index, Tensor input) {
  const model::Layer& layer = graph_.layers()[index];
  latest_ = index;
  const ops::Op* op = rules_[layer.op];
  if (op != nullptr && op->traits.name == model::kOpaqueOp) return call_opaque(layer, *op, input);
  const bool reads = op != nullptr && op->output_shape != nullptr && !op->reads_nothing;
  if (!reads || (called() && graph_.outputs(layer).empty())) {
    if (op == nullptr && graph_.op(layer) == model::kUnknownOp) ++misfits_;
    if (layer.parameters > 0) hold_parameters(layer);
    return input;
  }
  if (op->reads_token_ids) input = model::kFirstGraphInput;
  if (graph_.class_name(layer) == wiring_detail::kPoolOfTrees && !called()) {
    if (shape(input).rank() != 4 || graph_.attributes(layer).find("pool_type") == nullptr) return input;
    if (made(input).last) return operation("mean", {&input, 1}, {{"dim", std::vector<std::int64_t>{1, 2}}});
  }
  const std::string_view class_name = graph_.class_name(layer);
  const bool turns = class_name.starts_with("LayerNorm") && class_name.find("2d") != std::string_view::npos;
  if (turns && shape(input).rank() == 4 && !made(input).last) {
    return call_channels_last(layer, *op, input);
  }
  if (op->traits.name == kCutBlock && called()) {
    return expand_block(*this, part_of(layer), {printed_shape(graph_, layer), layer.parameters, class_name}, input);
  }
  return called() ? call_printed(layer, *op, input) : call_declared(layer, *op, input);
}

GPUMEM_INLINE Tensor Wiring::call_hidden(Part row, Tensor input) {
  return call_opaque(graph_.layers()[row.index], *wiring_detail::find(ops_, model::kOpaqueOp), input);
}

GPUMEM_INLINE Tensor Wiring::bridged(Tensor input, std::int64_t features, bool biased) {
  const core::Shape from = shape(input);
  const auto elements = wiring_detail::sample_elements(from);
  const bool fixed = from.rank() >= 3 && elements && from[1].kind == core::Dim::Kind::fixed;
  if (!fixed) return input;
  const auto wanted = [&](std::int64_t size) { return size == features || (biased && size + 1 == features); };
  if (!wanted(*elements) && from.rank() == 3 && wanted(from[2].size)) {  // a transformer's class token
    return operation("select", {&input, 1}, {{"dim", std::int64_t{1}}, {"index", std::int64_t{0}}});
  }
  const bool pooled = !wanted(*elements) && wanted(from[1].size) && from.rank() == 4;
  if (!wanted(*elements) && !pooled) return input;
  // A last batch norm has its activation in forward() too (DenseNet).
  const bool normal = made(input).op != nullptr && made(input).op->norm == model::NormKind::batch;
  if (pooled && normal) input = operation("relu", {&input, 1}, {{"inplace", true}});
  if (pooled) input = operation("adaptive_avg_pool2d", {&input, 1}, {{"output_size", std::int64_t{1}}});
  return operation("flatten", {&input, 1}, {{"start_dim", std::int64_t{1}}});
}

GPUMEM_INLINE Tensor Wiring::as_sequence(Tensor input, std::int64_t tokens, std::int64_t width) {
  const core::Shape from = shape(input);
  const auto elements = wiring_detail::sample_elements(from);
  if (from.rank() != 4 || !elements || width <= 0 || from[1] != core::Dim::fixed(width)) return input;
  const std::int64_t pixels = *elements / width;
  const std::int64_t more = tokens - pixels;
  if (more != 0 && more != 1) return input;
  input = operation("reshape", {&input, 1}, {{"shape", std::vector<std::int64_t>{width, pixels}}});
  input = operation("permute", {&input, 1}, {{"dims", std::vector<std::int64_t>{0, 2, 1}}});
  if (more == 0) return input;
  Tensor token = operation(model::kConstantOp, {},
                           {{"shape", std::vector<std::int64_t>{1, 1, width}}, {"dtype", std::string("parameters")}});
  const std::vector<core::Dim> every = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  token = operation("expand", {&token, 1}, {{"shape", every}});
  return concatenate(std::array<Tensor, 2>{token, input});
}

GPUMEM_INLINE bool Wiring::overwrites(const model::Layer& layer, const ops::Op& op, Tensor input) const {
  const Made& read = made(made(input).memory);
  return op.traits.overwrites && read.reads == 0 && read.op != nullptr && read.op->overwritten &&
         (!called() || printed_shape(graph_, layer) == read.shape);
}

GPUMEM_INLINE Tensor Wiring::call_printed(const model::Layer& layer, const ops::Op& op, Tensor input) {
  const PrintedLayer printed = wiring_detail::printed_layer(graph_, layer);
  const auto features = wiring_detail::row_features(printed, op.output_shape == ops::same_shape);
  if (features) input = bridged(input, *features, wiring_detail::is_linear(&op.traits));
  if (op.output_shape == ops::same_shape && printed.output.rank() == 3) {
    input = as_sequence(input, printed.output[1].size, printed.output[2].size);
  }
  auto attributes = complete(printed, shape(input));
  const bool same = op.output_shape != ops::same_shape || shape(input) == printed.output;
  const bool convolves = op.traits.family == model::OpFamily::conv;
  const bool contradicts = convolves && graph_.unknown_layers() == 0;
  if (!attributes && contradicts) {
    const std::string reason = "leaves " + core::to_string(printed.output) + " with " +
                               core::with_separators(layer.parameters) + " parameters, which does not follow from " +
                               core::to_string(shape(input)) + " before it: what it reads is not printed";
    if (strict_ || !begun_) {  // what the job feeds is no guess of ours
      fail_at(layer, {core::ErrorCode::missing_information, reason + "; use graph JSON", {}});
      return input;
    }
    input = printed_source(*this, read_by_convolutions_, printed, input).value_or(input);
    attributes = complete(printed, shape(input));
    guess(part_of(layer), reason + (attributes ? "; it is taken to read what fits its sizes" : ""));
  }
  if (convolves) read_by_convolutions_.push_back(input);
  if (!attributes || !same) {
    ++misfits_;
    // Something that no row shows makes what it reads, and may keep that too.
    if (!same) bounds_.more_elements = core::bounded_sum({bounds_.more_elements, elements_of(printed.output)});
    const auto known = printed.attributes.all();
    attributes.emplace(known.begin(), known.end());
  }
  // Groups keep two figures each, so that their number, which no column shows, decides nothing.
  const bool grouped = !op.traits.positional.empty() && op.traits.positional[0] == "num_groups";
  if (grouped && printed.attributes.find("num_groups") == nullptr) {
    attributes->push_back({"num_groups", std::int64_t{32}});
  }
  const bool says = printed.attributes.find("inplace") != nullptr;
  if (!says && overwrites(layer, op, input)) attributes->push_back({"inplace", true});
  const auto all = graph_.outputs(layer);
  const std::span<const core::Shape> outputs = all.size() == 1 ? std::span(&printed.output, 1) : all;
  return emit(layer, op, {&input, 1}, outputs, *std::move(attributes));
}

GPUMEM_INLINE Tensor Wiring::emit(const model::Layer& layer, const ops::Op& op, std::span<const Tensor> inputs,
                                  std::span<const core::Shape> outputs, std::vector<model::Attribute> attributes) {
  // A module of a tree that is called again has its parameters already.
  const auto index = static_cast<std::size_t>(&layer - graph_.layers().data());
  const bool again = !called() && emitted_[index];
  emitted_[index] = true;
  begun_ = true;
  const std::int64_t parameters = parameters_of(layer, op, inputs[0]);
  const Tensor result = builder_.add({.name = graph_.path(layer),
                                      .class_name = graph_.class_name(layer),
                                      .op = &op.traits,
                                      .outputs = outputs,
                                      .inputs = inputs,
                                      .parameters = parameters,
                                      .tied_parameters = again ? parameters : layer.tied_parameters,
                                      .frozen = layer.frozen,
                                      .line = layer.line},
                                     std::move(attributes));
  if (failed()) return inputs[0];
  const Made& read = made(inputs[0]);
  Made record{outputs[0], &op.traits, result, 0, std::nullopt, leaves_last(op.traits, inputs, {})};
  if (op.traits.hands_through) {
    record.op = read.op;
    record.memory = read.memory;
  } else {
    for (const Tensor input : inputs) ++made(made(input).memory).reads;
  }
  made_.push_back(record);
  return result;
}

GPUMEM_INLINE Tensor Wiring::operation(std::string_view name, std::span<const Tensor> inputs,
                                       std::vector<model::Attribute> attributes) {
  const Tensor first = inputs.empty() ? model::kFirstGraphInput : inputs[0];
  if (failed()) return first;
  const ops::Op* op = wiring_detail::find(ops_, name);
  // Attention reads three parts of one projection: nothing meets there.
  if (inputs.size() > 1 && op->traits.family == model::OpFamily::other) ++joins_;
  std::vector<core::Shape> shapes;
  for (const Tensor input : inputs) shapes.push_back(shape(input));
  core::Result<core::Shape> output =
      op->output_shape(ops::OpInput{std::span<const model::Attribute>(attributes), shapes});
  if (!output) {
    core::Error error = output.error();
    error.message = "an operation between the layers, " + std::string(name) + ", " + error.message;
    if (strict_) {
      error.place = {graph_.file(), 0, {}};
      fail(std::move(error));
      return first;
    }
    guess({latest_, false}, "is followed by something else: " + error.message + "; it is left out");
    return first;
  }
  const Tensor result = builder_.add({.name = name,
                                      .op = &op->traits,
                                      .outputs = {&*output, 1},
                                      .inputs = inputs,
                                      .attributes = attributes,
                                      .inferred = true});
  if (failed()) return first;
  for (const Tensor input : inputs) ++made(made(input).memory).reads;
  made_.push_back(
      {*output, &op->traits, result, 0, std::nullopt, leaves_last(op->traits, inputs, model::Attributes(attributes))});
  return result;
}

GPUMEM_INLINE Tensor Wiring::add(Tensor left, Tensor right, bool in_place) {
  const std::array<Tensor, 2> both = {left, right};
  std::vector<model::Attribute> attributes;
  if (in_place) attributes.push_back({"inplace", true});
  return operation("add", both, std::move(attributes));
}

GPUMEM_INLINE Tensor Wiring::multiply(Tensor left, Tensor right) {
  const std::array<Tensor, 2> both = {left, right};
  return operation("mul", both);
}

GPUMEM_INLINE Tensor Wiring::concatenate(std::span<const Tensor> tensors) {
  return operation("concat", tensors, {{"dim", std::int64_t{1}}});
}

}  // namespace gpumem::connect
