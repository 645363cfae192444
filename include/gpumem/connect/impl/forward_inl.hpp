#pragma once

#include "gpumem/connect/forward.hpp"
#include "gpumem/core/bytes.hpp"

#include <array>

namespace gpumem::connect {

namespace forward_detail {

/// Beyond this no model has a width or a length; sums and products of two such sizes stay within 64 bits.
inline constexpr std::int64_t kLargestSize = INT32_MAX;

/// Attributes as a list of integers, whatever the value's type.
inline model::Attribute list(std::string name, std::vector<std::int64_t> values) {
  return {std::move(name), model::AttributeValue(std::move(values))};
}

}  // namespace forward_detail

GPUMEM_INLINE ForwardWiring::ForwardWiring(const model::TrainingJob& job, const ops::Catalogue& ops)
    : job_(job),
      source_(*job.graph),
      vocabulary_(ops::vocabulary_of(ops)),
      builder_(job.graph->format(), job.graph->file()),
      taken_(job.graph->layers().size(), false),
      names_(1) {
  for (const model::Warning& warning : source_.warnings()) builder_.warn(warning.message, warning.place.line);
}

GPUMEM_INLINE void ForwardWiring::enter(const Module& module) {
  if (!module.found()) missing(module, "");
  builder_.open_scope(module.name(), module.class_name());
  names_.emplace_back();
}

GPUMEM_INLINE void ForwardWiring::leave() {
  builder_.close_scope();
  names_.pop_back();
}

GPUMEM_INLINE std::string ForwardWiring::unique(std::string_view name) {
  const int count = names_.back()[std::string(name)]++;
  return count == 0 ? std::string(name) : std::string(name) + "_" + std::to_string(count);
}

GPUMEM_INLINE void ForwardWiring::fail(std::string message) {
  builder_.fail({core::ErrorCode::missing_information, std::move(message), {}});
}

GPUMEM_INLINE void ForwardWiring::missing(const Module& module, std::string_view name) {
  std::string path = module.found() ? std::string(module.name()) : module.missing();
  if (!name.empty()) path += (path.empty() ? "" : ".") + std::string(name);
  fail("the model is not built like its class: there is no module " + core::quoted(path) +
       "; graph JSON says what its layers read");
}

GPUMEM_INLINE std::int64_t ForwardWiring::sequence_length() {
  std::optional<std::int64_t> tokens = job_.sequence_length;
  if (!tokens && job_.input_shape.size() == 1) tokens = job_.input_shape[0];
  if (tokens && *tokens > 0 && *tokens <= forward_detail::kLargestSize) return *tokens;
  fail(tokens ? "no model reads samples of " + core::with_separators(*tokens) + " tokens"
              : "the model reads token ids, and their number is not printed; give the sequence length (--seq 512)");
  return 1;
}

GPUMEM_INLINE Tensor ForwardWiring::token_input(std::string_view name) {
  core::Shape shape;
  shape.push_back(core::Dim::batch());
  shape.push_back(core::Dim::fixed(sequence_length()));
  builder_.add_input({std::string(name), shape, core::DType::int64});
  return next_input_--;
}

GPUMEM_INLINE Tensor ForwardWiring::image_input(std::string_view name) {
  core::Shape shape;
  shape.push_back(core::Dim::batch());
  bool sound = job_.input_shape.size() == 3;
  for (const std::int64_t size : job_.input_shape) {
    sound = sound && size > 0 && size <= forward_detail::kLargestSize;
    shape.push_back(core::Dim::fixed(size));
  }
  if (!sound) {
    fail("the model reads images, and their size is not printed; give one sample's shape (--input 3x224x224)");
  }
  builder_.add_input({std::string(name), shape, core::DType::float32});
  return next_input_--;
}

GPUMEM_INLINE Tensor ForwardWiring::layer(const Module& module, std::string_view name,
                                          std::initializer_list<Tensor> inputs) {
  const auto index = module.layer(name);
  if (!index) {
    missing(module, name);
    return 0;
  }
  const model::Layer& layer = source_.layers()[*index];
  const bool again = taken_[*index];
  taken_[*index] = true;
  const std::string own_name = unique(name);
  return builder_.add({.name = own_name,
                       .class_name = source_.class_name(layer),
                       .op = vocabulary_.find_op(source_.op(layer)),
                       .inputs = std::span<const Tensor>(inputs.begin(), inputs.size()),
                       .attributes = source_.attributes(layer).all(),
                       .parameters = layer.parameters,
                       .tied_parameters = again ? layer.parameters : layer.tied_parameters,
                       .frozen = layer.frozen,
                       .line = layer.line});
}

GPUMEM_INLINE Tensor ForwardWiring::optional_layer(const Module& module, std::string_view name,
                                                   std::initializer_list<Tensor> inputs) {
  return module.has_layer(name) ? layer(module, name, inputs) : *inputs.begin();
}

GPUMEM_INLINE Tensor ForwardWiring::node(std::string_view op, std::initializer_list<Tensor> inputs,
                                         std::initializer_list<model::Attribute> attributes, bool returned) {
  const model::OpTraits* traits = vocabulary_.find_op(op);
  if (traits == nullptr) fail("the catalogue has no op " + core::quoted(op));
  const std::string name = unique(op);
  return builder_.add({.name = name,
                       .op = traits,
                       .inputs = std::span<const Tensor>(inputs.begin(), inputs.size()),
                       .attributes = std::span<const model::Attribute>(attributes.begin(), attributes.size()),
                       .parameters = 0,
                       .returned = returned,
                       .inferred = true});
}

GPUMEM_INLINE Tensor ForwardWiring::constant(std::string_view name, std::vector<std::int64_t> shape,
                                             core::DType dtype) {
  const std::vector<model::Attribute> attributes = {forward_detail::list("shape", std::move(shape)),
                                                    {"dtype", std::string(core::to_string(dtype))}};
  const std::string own_name = unique(name);
  return builder_.add({.name = own_name,
                       .op = vocabulary_.find_op(model::kConstantOp),
                       .attributes = attributes,
                       .parameters = 0,
                       .inferred = true});
}

GPUMEM_INLINE Tensor ForwardWiring::parameter(std::string_view name, std::vector<std::int64_t> shape) {
  const std::vector<model::Attribute> attributes = {forward_detail::list("shape", std::move(shape))};
  const std::string own_name = unique(name);
  return builder_.add({.name = own_name, .op = vocabulary_.find_op(model::kParameterOp), .attributes = attributes});
}

GPUMEM_INLINE Tensor ForwardWiring::projection(std::string_view name, Tensor input, std::int64_t in, std::int64_t out) {
  const std::array<model::Attribute, 3> attributes = {{{"in_features", in}, {"out_features", out}, {"bias", false}}};
  const std::string own_name = unique(name);
  return builder_.add(
      {.name = own_name, .op = vocabulary_.find_op("linear"), .inputs = {&input, 1}, .attributes = attributes});
}

GPUMEM_INLINE void ForwardWiring::own_parameters_taken(const Module& module) {
  if (const auto own = module.layer("")) taken_[*own] = true;
}

GPUMEM_INLINE Tensor ForwardWiring::dropout(Tensor tensor, double probability) {
  return probability > 0.0 ? node("dropout", {tensor}, {{"p", probability}}) : tensor;
}

GPUMEM_INLINE Tensor ForwardWiring::reshape(Tensor tensor, std::vector<std::int64_t> shape) {
  return node("reshape", {tensor}, {forward_detail::list("shape", std::move(shape))});
}

GPUMEM_INLINE Tensor ForwardWiring::permute(Tensor tensor, std::vector<std::int64_t> dims) {
  return node("permute", {tensor}, {forward_detail::list("dims", std::move(dims))});
}

GPUMEM_INLINE Tensor ForwardWiring::returned(Tensor tensor) { return node("identity", {tensor}, {}, true); }

GPUMEM_INLINE Tensor ForwardWiring::split_heads(Tensor tensor, std::int64_t heads, std::int64_t width) {
  return permute(node("unflatten", {tensor}, {{"dim", std::int64_t{2}}, forward_detail::list("sizes", {heads, width})}),
                 {0, 2, 1, 3});
}

GPUMEM_INLINE Tensor ForwardWiring::merge_heads(Tensor tensor, std::int64_t width) {
  return reshape(permute(tensor, {0, 2, 1, 3}), {-1, width});
}

GPUMEM_INLINE Tensor ForwardWiring::part(Tensor tensor, std::int64_t start, std::int64_t length) {
  return node("slice", {tensor}, {{"dim", std::int64_t{3}}, {"start", start}, {"length", length}});
}

GPUMEM_INLINE Tensor ForwardWiring::rotate(Tensor tensor, Tensor cosines, Tensor sines, std::int64_t width) {
  const std::int64_t half = width / 2;
  const Tensor straight = node("mul", {tensor, cosines});
  const Tensor first = part(tensor, 0, half);
  const Tensor second = node("neg", {part(tensor, half, half)});
  const Tensor turned = node("concat", {second, first}, {{"dim", std::int64_t{3}}});
  return add(straight, node("mul", {turned, sines}));
}

GPUMEM_INLINE Tensor ForwardWiring::mask_view(Tensor attention_mask) {
  const auto axis = [](std::int64_t dim) { return model::Attribute{"dim", dim}; };
  return node("unsqueeze", {node("unsqueeze", {attention_mask}, {axis(1)})}, {axis(1)});
}

GPUMEM_INLINE Tensor ForwardWiring::positions(const Module& module, std::string_view name) {
  const std::int64_t tokens = sequence_length();
  const std::int64_t known = required(module, name, "num_embeddings");
  if (tokens > known) {
    fail("the model has " + core::with_separators(known) + " positions, and samples have " +
         core::with_separators(tokens) + " tokens");
  }
  return layer(module, name, {constant("position_ids", {1, tokens}, core::DType::int64)});
}

GPUMEM_INLINE Tensor ForwardWiring::row_mask(Tensor attention_mask) {
  return node("masked_fill", {mask_view(attention_mask)});
}

GPUMEM_INLINE Tensor ForwardWiring::expanded_mask(Tensor attention_mask, std::int64_t rows) {
  const Tensor whole = node("expand", {mask_view(attention_mask)}, {forward_detail::list("shape", {-1, 1, rows, -1})});
  return node("masked_fill", {whole});
}

GPUMEM_INLINE Tensor ForwardWiring::fused_attention(const Heads& heads, Tensor mask, double dropout, bool copies) {
  Heads from = heads;
  if (copies) {
    from.query = node("contiguous", {heads.query});
    from.key = node("contiguous", {heads.key});
    from.value = node("contiguous", {heads.value});
  }
  const model::Attribute drops{"dropout_p", dropout};
  constexpr std::string_view kKernel = "scaled_dot_product_attention";
  if (mask == kNoMask) return node(kKernel, {from.query, from.key, from.value}, {drops});
  return node(kKernel, {from.query, from.key, from.value, mask}, {drops});
}

GPUMEM_INLINE double ForwardWiring::probability(const Module& module, std::string_view name) const {
  const auto index = module.layer(name);
  if (!index) return 0.0;
  const model::AttributeValue* p = source_.attributes(source_.layers()[*index]).find("p");
  const auto* value = p == nullptr ? nullptr : std::get_if<double>(p);
  return value == nullptr ? 0.0 : *value;
}

GPUMEM_INLINE std::int64_t ForwardWiring::required(const Module& module, std::string_view layer,
                                                   std::string_view attribute) {
  const auto value = module.integer(layer, attribute);
  if (value && *value > 0 && *value <= forward_detail::kLargestSize) return *value;
  if (module.has_layer(layer)) {
    fail("module " + core::quoted(layer) + " does not print a usable " + std::string(attribute));
  } else {
    missing(module, layer);
  }
  return 1;
}

GPUMEM_INLINE void ForwardWiring::check_all_taken() {
  for (std::size_t index = 0; index < taken_.size(); ++index) {
    const model::Layer& layer = source_.layers()[index];
    if (taken_[index] || layer.parameters == 0 || layer.parameters == layer.tied_parameters) continue;
    builder_.fail({core::ErrorCode::missing_information,
                   "holds parameters, and the code of its model's class has no such module; graph JSON says what it "
                   "reads",
                   {source_.file(), layer.line, source_.path(layer)}});
    return;
  }
}

GPUMEM_INLINE core::Result<model::ModelGraph> ForwardWiring::finish() && {
  check_all_taken();
  return std::move(builder_).build();
}

}  // namespace gpumem::connect
