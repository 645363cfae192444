#pragma once

#include "gpumem/architectures/forward.hpp"

#include <array>

#include "gpumem/architectures/printed_module.hpp"

namespace gpumem::architectures {

namespace forward_detail {

inline model::Attribute integer(std::string_view name, std::int64_t value) {
  return {std::string(name), model::AttributeValue(value)};
}
inline model::Attribute list(std::string_view name, Sizes values) {
  return {std::string(name), model::AttributeValue(std::move(values))};
}

/// What transformers' ACT2FN makes of a config's hidden_act.
struct Activation {
  std::string_view function;
  std::string_view op;
  std::string_view class_name;
};
inline constexpr std::array<Activation, 17> kActivations = {{{"silu", "silu", "SiLU"},
                                                             {"swish", "silu", "SiLU"},
                                                             {"gelu", "gelu", "GELUActivation"},
                                                             {"gelu_new", "gelu", "NewGELUActivation"},
                                                             {"gelu_fast", "gelu", "FastGELUActivation"},
                                                             {"quick_gelu", "gelu", "QuickGELUActivation"},
                                                             {"gelu_pytorch_tanh", "gelu", "PytorchGELUTanh"},
                                                             {"gelu_python", "gelu", "GELUActivation"},
                                                             {"gelu_accurate", "gelu", "NewGELUActivation"},
                                                             {"relu", "relu", "ReLU"},
                                                             {"relu2", "relu_squared", "ReLUSquaredActivation"},
                                                             {"relu6", "relu6", "ReLU6"},
                                                             {"tanh", "tanh", "Tanh"},
                                                             {"sigmoid", "sigmoid", "Sigmoid"},
                                                             {"mish", "mish", "MishActivation"},
                                                             {"leaky_relu", "leaky_relu", "LeakyReLU"},
                                                             {"bloom_gelu", "gelu", "BloomGelu"}}};

}  // namespace forward_detail

GPUMEM_INLINE void TreeFields::activation(std::string_view field, std::string_view path) {
  for (const forward_detail::Activation& row : forward_detail::kActivations) {
    if (row.class_name == class_of(path)) return set_string(field, row.function);
  }
}

GPUMEM_INLINE Forward::Forward(model::GraphBuilder& builder, const model::Vocabulary& vocabulary,
                               const ModuleTree& tree, std::string_view body)
    : builder_(builder),
      vocabulary_(vocabulary),
      tree_(&tree),
      body_(body),
      called_(tree.graph().layers().size(), false) {}

GPUMEM_INLINE const core::Shape& Forward::shape(Tensor tensor) const { return calls_->shape(tensor); }

GPUMEM_INLINE std::int64_t Forward::size(Tensor tensor, std::size_t axis) const {
  const core::Shape& of = calls_->shape(tensor);
  return axis < of.rank() && of[axis].kind == core::Dim::Kind::fixed ? of[axis].size : 0;
}

GPUMEM_INLINE bool Forward::channels_last(Tensor tensor) const { return calls_->channels_last(tensor); }

GPUMEM_INLINE void Forward::open(std::string_view name, std::string_view class_name) {
  if (tree_ != nullptr) modules_.emplace_back(name);
  builder_.open_scope(name, class_name);
}

GPUMEM_INLINE void Forward::close() {
  if (tree_ != nullptr) modules_.pop_back();
  builder_.close_scope();
}

GPUMEM_INLINE void Forward::enter(std::string_view name, std::string_view class_name) {
  const TextPart* part = text_part();
  if (part == nullptr) return open(name, class_name);
  if (in_text_.empty()) {
    for (const auto& [outer, outer_class] : part->modules) open(outer, outer_class);
  } else {
    open(name, class_name);
  }
  in_text_.emplace_back(name, class_name);
}

GPUMEM_INLINE void Forward::leave() {
  const TextPart* part = text_part();
  if (part == nullptr) return close();
  in_text_.pop_back();
  const std::size_t count = in_text_.empty() ? part->modules.size() : 1;
  for (std::size_t closed = 0; closed < count; ++closed) close();
}

GPUMEM_INLINE void Forward::begin_text(const TextPart& part) {
  text_ = &part;
  embedded_ = false;
}

GPUMEM_INLINE void Forward::end_text() {
  if (text_ != nullptr && text_->embed && !embedded_ && !failed()) fail("has a text model that embeds no tokens");
  text_ = nullptr;
  text_mask_.reset();
}

GPUMEM_INLINE std::optional<Tensor> Forward::text_mask() const {
  return text_part() == nullptr ? std::nullopt : text_mask_;
}

GPUMEM_INLINE Tensor Forward::after_block(Tensor hidden, std::int64_t block) {
  const TextPart* part = text_part();
  // Two modules are open: the model and its list of blocks; what is deeper is part of a block.
  if (part == nullptr || !part->after_block || in_text_.size() != 2) return hidden;
  text_hidden_ = true;
  hidden = part->after_block(hidden, block);
  text_hidden_ = false;
  return hidden;
}

GPUMEM_INLINE const model::Images& Forward::images() {
  reads_images_ = true;
  return images_;
}

GPUMEM_INLINE const model::Images& Forward::sounds() {
  makes_sounds_ = true;
  return images_;
}

/// The text model's own modules close while the model around it computes what the part reads, and open again.
GPUMEM_INLINE Tensor Forward::embed_text(Tensor ids, Tensor embedded) {
  embedded_ = true;
  const std::size_t own = text_->modules.size() - text_->around + in_text_.size() - 1;
  for (std::size_t closed = 0; closed < own; ++closed) close();
  text_hidden_ = true;
  const Tensor joined = text_->embed(ids, embedded);
  if (text_->masks) text_mask_ = call("causal_mask", {ids}, {{"padded", true}, {"dtype", std::string("bool")}});
  text_hidden_ = false;
  for (std::size_t at = text_->around; at < text_->modules.size(); ++at) {
    open(text_->modules[at].first, text_->modules[at].second);
  }
  for (std::size_t at = 1; at < in_text_.size(); ++at) open(in_text_[at].first, in_text_[at].second);
  return joined;
}

GPUMEM_INLINE std::string Forward::path_of(std::string_view name) const {
  std::string path;
  for (std::size_t at = 0; at < modules_.size(); ++at) {
    if (at == 0 && modules_[at] == body_) continue;
    path += (path.empty() ? "" : ".") + modules_[at];
  }
  if (!name.empty()) path += (path.empty() ? "" : ".") + std::string(name);
  return path;
}

GPUMEM_INLINE const model::Layer* Forward::printed(std::string_view name) {
  if (tree_ == nullptr) return nullptr;
  const auto at = tree_->layer(path_of(name));
  return at ? &tree_->graph().layers()[*at] : nullptr;
}

GPUMEM_INLINE void Forward::hold_printed(std::string_view name) {
  if (tree_ == nullptr) return;
  const auto scope = tree_->scope(path_of(name));
  if (const auto layer = tree_->layer(path_of(name))) called_[*layer] = true;
  for (const std::uint32_t index : tree_->layers()) {
    if (scope && tree_->graph().within(tree_->graph().layers()[index].scope, *scope)) called_[index] = true;
  }
}

GPUMEM_INLINE Tensor Forward::add_layer(std::string_view name, std::string_view class_name, std::string_view op,
                                        std::span<const Tensor> inputs, std::span<const model::Attribute> attributes,
                                        const Kind& kind) {
  if (calls_ != nullptr) return calls_->operation(op, inputs, {attributes.begin(), attributes.end()});
  const model::OpTraits* traits = vocabulary_.find_op(op);
  if (traits == nullptr) fail("the vocabulary has no op " + core::quoted(op));
  std::int64_t tied = kind.tied;
  if (repeats_ && traits != nullptr && traits->parameters != nullptr) {
    const std::optional<core::Checked> held = traits->parameters(model::Attributes(attributes));
    tied = held ? held->value().value_or(0) : 0;
  }
  std::string outside;
  if (text_part() != nullptr && in_text_.empty() && !text_->head.empty()) {
    outside = text_->head + std::string(name);
    name = outside;
  }
  const model::Layer* shown = printed(name);
  if (tree_ != nullptr && traits != nullptr) check_printed(shown, name, *traits, attributes);
  std::vector<model::Attribute> more;
  const bool plain = outside_autocast_ && traits != nullptr && traits->family == model::OpFamily::norm;
  if (plain || wide_autocast_ || no_grad_) {
    more.assign(attributes.begin(), attributes.end());
    if (plain || wide_autocast_) more.push_back({plain ? "outside_autocast" : "wide_autocast", true});
    if (no_grad_) more.push_back({std::string(model::kNoGrad), true});
    attributes = more;
  }
  return builder_.add({.name = name,
                       .class_name = class_name,
                       .op = traits,
                       .inputs = inputs,
                       .attributes = attributes,
                       .tied_parameters = tied,
                       .frozen = kind.frozen || freezes_,
                       .returned = kind.returned,
                       .split = kind.split == Split::whole ? shared_ : kind.split,
                       .expert = expert_,
                       .line = shown == nullptr ? 0 : shown->line});
}

GPUMEM_INLINE Tensor Forward::token_input(std::string_view name) {
  core::Shape shape;
  shape.push_back(core::Dim::batch());
  shape.push_back(usual_tokens_ > 0 ? core::Dim::fixed(usual_tokens_) : core::Dim::unknown());
  builder_.add_input({std::string(name), shape, core::DType::int64});
  return next_input_--;
}

/// A job's number of tokens is that of every input of integers, so these ids are given as other numbers.
GPUMEM_INLINE Tensor Forward::fixed_token_input(std::string_view name, std::int64_t tokens) {
  return sample_input(name, {tokens});
}

GPUMEM_INLINE Tensor Forward::rows_input(std::string_view name, std::int64_t rows, const Sizes& sizes) {
  core::Shape shape;
  shape.push_back(core::Dim::batch(rows));
  for (const std::int64_t size : sizes) shape.push_back(core::Dim::fixed(size));
  builder_.add_input({std::string(name), shape, core::DType::float32});
  return next_input_--;
}

GPUMEM_INLINE Tensor Forward::sample_input(std::string_view name, const Sizes& sample) {
  core::Shape shape;
  shape.push_back(core::Dim::batch());
  for (const std::int64_t size : sample) shape.push_back(core::Dim::fixed(size));
  builder_.add_input({std::string(name), shape, core::DType::float32});
  return next_input_--;
}

GPUMEM_INLINE Tensor Forward::linear(std::string_view name, Tensor input, std::int64_t in, std::int64_t out,
                                     const Linear& options) {
  std::vector<model::Attribute> attributes = {{"in_features", in}, {"out_features", out}, {"bias", options.bias}};
  if (options.fused_gradient) attributes.push_back({"fused_gradient", true});
  if (options.grouped) attributes.push_back({"grouped", true});
  if (options.tensor_ranks > 0) attributes.push_back({"tensor_ranks", options.tensor_ranks});
  if (options.recomputed) attributes.push_back({"recomputed", true});
  if (options.outlives_loss) attributes.push_back({"outlives_loss", true});
  if (options.out_of_order) attributes.push_back({"out_of_order", true});
  // Both sizes fit 32 bits.
  return add_layer(name, options.class_name, "linear", {&input, 1}, attributes,
                   {.tied = options.tied ? in * out : 0, .returned = options.returned, .split = options.split});
}

GPUMEM_INLINE Tensor Forward::embedding(std::string_view name, Tensor ids, std::int64_t rows, std::int64_t width,
                                        std::string_view class_name, Split split) {
  const std::array<model::Attribute, 2> attributes = {{{"num_embeddings", rows}, {"embedding_dim", width}}};
  const Tensor embedded = add_layer(name, class_name, "embedding", {&ids, 1}, attributes, {.split = split});
  const bool first = text_part() != nullptr && !embedded_ && !in_text_.empty() && text_->embed;
  return first ? embed_text(ids, embedded) : embedded;
}

GPUMEM_INLINE Tensor Forward::tied_embedding(std::string_view name, Tensor ids, std::int64_t rows, std::int64_t width) {
  const std::array<model::Attribute, 2> attributes = {{{"num_embeddings", rows}, {"embedding_dim", width}}};
  return add_layer(name, "Embedding", "embedding", {&ids, 1}, attributes, {.tied = rows * width});
}

GPUMEM_INLINE Tensor Forward::layer_norm(std::string_view name, Tensor input, std::int64_t width, bool bias) {
  const std::array<model::Attribute, 2> attributes = {{{"normalized_shape", width}, {"bias", bias}}};
  return add_layer(name, "LayerNorm", "layer_norm", {&input, 1}, attributes);
}

GPUMEM_INLINE Tensor Forward::rms_norm(std::string_view name, Tensor input, std::int64_t width,
                                       std::string_view class_name) {
  const std::array<model::Attribute, 1> attributes = {{{"normalized_shape", width}}};
  return add_layer(name, class_name, "rms_norm", {&input, 1}, attributes);
}

GPUMEM_INLINE Tensor Forward::parameter(std::string_view name, const Sizes& shape, bool frozen) {
  const std::array<model::Attribute, 1> attributes = {{forward_detail::list("shape", shape)}};
  return add_layer(name, {}, model::kParameterOp, {}, attributes, {.frozen = frozen});
}

GPUMEM_INLINE Tensor Forward::layer(std::string_view name, std::string_view class_name, std::string_view op,
                                    std::initializer_list<Tensor> inputs, std::vector<model::Attribute> attributes) {
  return add_layer(name, class_name, op, {inputs.begin(), inputs.size()}, attributes);
}

GPUMEM_INLINE Tensor Forward::activation(std::string_view name, Tensor input, std::string_view function) {
  if (const model::Layer* shown = printed(name)) {
    const model::OpTraits* op = tree_->graph().op_traits(*shown);
    if (op != nullptr && op->parameters == nullptr) {
      return add_layer(name, tree_->graph().class_name(*shown), op->name, {&input, 1}, {});
    }
  }
  for (const forward_detail::Activation& row : forward_detail::kActivations) {
    if (row.function == function) return add_layer(name, row.class_name, row.op, {&input, 1}, {});
  }
  fail("has the unknown activation " + core::quoted(function));
  return input;
}

GPUMEM_INLINE Tensor Forward::dropout(std::string_view name, Tensor input, double probability) {
  if (tree_ != nullptr) probability = tree_->number(path_of(name), "p").value_or(probability);
  if (!(probability > 0.0)) return input;
  const std::array<model::Attribute, 1> attributes = {{{"p", probability}}};
  return add_layer(name, "Dropout", "dropout", {&input, 1}, attributes);
}

GPUMEM_INLINE Tensor Forward::call(std::string_view op, std::initializer_list<Tensor> inputs,
                                   std::initializer_list<model::Attribute> attributes) {
  return add_layer(op, {}, op, {inputs.begin(), inputs.size()}, {attributes.begin(), attributes.size()});
}

GPUMEM_INLINE Tensor Forward::call(std::string_view op, std::initializer_list<Tensor> inputs,
                                   std::initializer_list<model::Attribute> attributes, std::optional<When> when) {
  std::vector<model::Attribute> all = attributes;
  if (when) all.push_back(condition(*when));
  return add_layer(op, {}, op, {inputs.begin(), inputs.size()}, all);
}

GPUMEM_INLINE Tensor Forward::to(Tensor tensor, std::string_view dtype) {
  return call("cast", {tensor}, {{"dtype", std::string(dtype)}});
}

GPUMEM_INLINE Tensor Forward::permute(Tensor tensor, Sizes dims) {
  return call("permute", {tensor}, {forward_detail::list("dims", std::move(dims))});
}

GPUMEM_INLINE Tensor Forward::flatten(Tensor tensor, std::int64_t start, std::int64_t end) {
  return call("flatten", {tensor},
              {forward_detail::integer("start_dim", start), forward_detail::integer("end_dim", end)});
}

GPUMEM_INLINE Tensor Forward::unflatten(Tensor tensor, std::int64_t dim, Sizes sizes) {
  return call("unflatten", {tensor},
              {forward_detail::integer("dim", dim), forward_detail::list("sizes", std::move(sizes))});
}

GPUMEM_INLINE Tensor Forward::unflatten_heads(Tensor tensor, std::int64_t dim, Sizes sizes) {
  const std::array<model::Attribute, 2> attributes = {
      {forward_detail::integer("dim", dim), forward_detail::list("sizes", std::move(sizes))}};
  return add_layer("unflatten", {}, "unflatten", {&tensor, 1}, attributes, {.split = Split::heads});
}

GPUMEM_INLINE Tensor Forward::expand_heads(Tensor tensor, Sizes shape) {
  const std::array<model::Attribute, 1> attributes = {{forward_detail::list("shape", std::move(shape))}};
  return add_layer("expand", {}, "expand", {&tensor, 1}, attributes, {.split = Split::heads});
}

GPUMEM_INLINE Tensor Forward::enter_sequence(Tensor tensor) {
  return add_layer("clone", {}, "clone", {&tensor, 1}, {}, {.split = Split::sequence});
}

GPUMEM_INLINE Tensor Forward::join_features(Tensor tensor) {
  return add_layer("gather_features", {}, "gather_features", {&tensor, 1}, {}, {.split = Split::features});
}

GPUMEM_INLINE Tensor Forward::unsqueeze_all_tokens(Tensor tensor, std::int64_t dim) {
  const std::array<model::Attribute, 1> attributes = {{forward_detail::integer("dim", dim)}};
  return add_layer("unsqueeze", {}, "unsqueeze", {&tensor, 1}, attributes, {.split = Split::tokens});
}

GPUMEM_INLINE Tensor Forward::slice(Tensor tensor, std::int64_t dim, std::int64_t start, std::int64_t length) {
  if (length == kRest) {
    return call("slice", {tensor}, {forward_detail::integer("dim", dim), forward_detail::integer("start", start)});
  }
  return call("slice", {tensor},
              {forward_detail::integer("dim", dim), forward_detail::integer("start", start),
               forward_detail::integer("length", length)});
}

GPUMEM_INLINE Tensor Forward::shift(Tensor tensor, std::int64_t start, std::int64_t length) {
  std::vector<model::Attribute> part = {forward_detail::integer("dim", 1), forward_detail::integer("start", start)};
  if (length != kRest) part.push_back(forward_detail::integer("length", length));
  part.push_back({"shifts", true});
  return call("contiguous", {add_layer("slice", {}, "slice", {&tensor, 1}, part)}, {{"shifts", true}});
}

GPUMEM_INLINE Tensor Forward::select(Tensor tensor, std::int64_t dim, std::int64_t index) {
  return call("select", {tensor}, {forward_detail::integer("dim", dim), forward_detail::integer("index", index)});
}

GPUMEM_INLINE Tensor Forward::concatenate(std::span<const Tensor> tensors, std::int64_t dim) {
  const std::array<model::Attribute, 1> attributes = {{forward_detail::integer("dim", dim)}};
  return add_layer("concat", {}, "concat", tensors, attributes);
}

GPUMEM_INLINE Tensor Forward::constant(std::string_view name, const Sizes& shape, std::string_view dtype) {
  const std::array<model::Attribute, 2> attributes = {
      {forward_detail::list("shape", shape), {"dtype", std::string(dtype)}}};
  return add_layer(name, {}, model::kConstantOp, {}, attributes);
}

GPUMEM_INLINE Tensor Forward::positions(Tensor ids, std::int64_t most) {
  return call("positions", {ids}, {forward_detail::integer("most", most)});
}

GPUMEM_INLINE std::vector<Tensor> Forward::split(Tensor tensor, std::int64_t dim, const Sizes& sizes) {
  const Tensor whole =
      call("split", {tensor}, {forward_detail::integer("dim", dim), forward_detail::list("sizes", sizes)});
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(call("item", {whole},
                         {forward_detail::integer("dim", dim), forward_detail::integer("start", start),
                          forward_detail::integer("length", size)}));
    start += size;
  }
  return parts;
}

GPUMEM_INLINE void Forward::hand_out(Tensor tensor) {
  add_layer("returned", {}, "identity", {&tensor, 1}, {}, {.returned = true});
}

GPUMEM_INLINE void Forward::cache(Tensor tensor, Caches when) {
  const bool trains = caches_ && when != Caches::serving;
  const std::array<model::Attribute, 2> attributes = {{{"cache", trains}, {"checkpointed", when == Caches::always}}};
  add_layer("cached", {}, "cached", {&tensor, 1}, attributes, {.returned = trains});
}

GPUMEM_INLINE Tensor Forward::cache(Tensor key, Tensor value, Caches when) {
  const bool trains = caches_ && when == Caches::unless_checkpointed;
  const Tensor joined = trains ? as_type_of(value, key, When::cached) : value;
  cache(key, when);
  cache(joined, when);
  return joined;
}

GPUMEM_INLINE Tensor Forward::leave_function(Tensor result, std::initializer_list<Tensor> names,
                                             std::optional<When> when) {
  std::vector<Tensor> inputs = {result};
  inputs.insert(inputs.end(), names.begin(), names.end());
  std::vector<model::Attribute> attributes;
  if (when) attributes.push_back(condition(*when));
  return add_layer("return", {}, "return", inputs, attributes);
}

GPUMEM_INLINE void Forward::fail(std::string message) {
  builder_.fail({core::ErrorCode::malformed_input, std::move(message), {}});
}

}  // namespace gpumem::architectures
