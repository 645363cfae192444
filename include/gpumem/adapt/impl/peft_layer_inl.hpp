#pragma once

#include "gpumem/adapt/peft_layer.hpp"

#include <algorithm>
#include <utility>

namespace gpumem::adapt {

GPUMEM_INLINE PeftLayer::PeftLayer(connect::GraphCopy& copy, const connect::WiredGraph& source, const BaseLinear& base,
                                   const model::WeightStorage& storage, const model::TrainingJob& job,
                                   const PeftSettings& settings, PeftShared& shared)
    : copy_(copy),
      base_(base),
      job_(job),
      settings_(settings),
      shared_(shared),
      name_(source.graph().name(source.graph().layers()[base.layer])),
      type_(model::dtype_of(job.lora_dtype)),
      base_type_(storage.dtype.value_or(model::parameter_dtype(job.precision))),
      has_bias_(source.graph().layers()[base.layer].parameters > base.in * base.out) {
  const model::LayerIndex read = source.inputs(base.layer)[0];
  input_.at = copy.now(read);
  input_.shape = read < 0 ? source.input_shapes()[static_cast<std::size_t>(model::kFirstGraphInput - read)]
                          : source.outputs(static_cast<std::size_t>(read))[0];
  output_.shape = source.outputs(base.layer)[0];
  if (settings.row().replaces_base) {
    take_base(storage);
  } else {
    output_.at = copy.now(static_cast<model::LayerIndex>(base.layer));
  }
}

/// The base's weight and bias as tensors of their own, in the layer's place.
GPUMEM_INLINE void PeftLayer::take_base(const model::WeightStorage& storage) {
  const auto tensor = [&](std::string name, Sizes sizes, std::size_t index) {
    PeftTensor made;
    made.shape = fixed(sizes);
    connect::NewLayer layer{.name = std::move(name),
                            .op = model::kParameterOp,
                            .inputs = {},
                            .output = made.shape,
                            .attributes = {{"shape", std::move(sizes)}},
                            .weights = storage,
                            .frozen = storage.freezes(index)};
    layer.weights.frozen = 0;
    made.at = index == 0 ? copy_.put(std::move(layer)) : copy_.insert(std::move(layer));
    return made;
  };
  // FroD without dropout multiplies with what it makes of the weight, which may stay on the CPU.
  const bool on_cpu = settings_.flag("runtime_offload_base_weight") && !(job_.lora_dropout > 0.0);
  weight_ = tensor(name_, on_cpu ? Sizes{1} : Sizes{base_.out, base_.in}, 0);
  if (has_bias_) bias_ = tensor(name_ + ".bias", {base_.out}, 1);
}

GPUMEM_INLINE core::Shape PeftLayer::rows(std::int64_t width) const {
  core::Shape shape = input_.shape;
  shape.set(shape.rank() - 1, core::Dim::fixed(width));
  return shape;
}

GPUMEM_INLINE core::Shape PeftLayer::fixed(const Sizes& sizes) {
  core::Shape shape;
  for (const std::int64_t size : sizes) shape.push_back(core::Dim::fixed(size));
  return shape;
}

GPUMEM_INLINE PeftTensor PeftLayer::insert(std::string_view name, std::string_view op,
                                           std::initializer_list<PeftTensor> inputs, const core::Shape& shape,
                                           Attributes attributes) {
  std::vector<model::LayerIndex> read;
  for (const PeftTensor& input : inputs) read.push_back(input.at);
  return {copy_.insert({.name = name_ + "." + std::string(name),
                        .op = op,
                        .inputs = std::move(read),
                        .output = shape,
                        .attributes = std::move(attributes)}),
          shape};
}

GPUMEM_INLINE PeftTensor PeftLayer::typed_parameter(std::string_view name, Sizes sizes, core::DType type,
                                                    bool trained) {
  PeftTensor made;
  made.shape = fixed(sizes);
  made.at = copy_.insert({.name = name_ + "." + std::string(name) + ".default",
                          .op = model::kParameterOp,
                          .inputs = {},
                          .output = made.shape,
                          .attributes = {{"shape", std::move(sizes)}},
                          .weights = {.dtype = type},
                          .frozen = !trained});
  return made;
}

GPUMEM_INLINE PeftTensor PeftLayer::parameter(std::string_view name, Sizes sizes, bool trained) {
  return typed_parameter(name, std::move(sizes), type_, trained);
}

GPUMEM_INLINE PeftTensor PeftLayer::base_parameter(std::string_view name, Sizes sizes) {
  return typed_parameter(name, std::move(sizes), base_type_, true);
}

GPUMEM_INLINE PeftTensor PeftLayer::buffer(std::string_view name, Sizes sizes, std::string_view dtype) {
  const core::Shape shape = fixed(sizes);
  return insert(name, model::kConstantOp, {}, shape, {{"shape", std::move(sizes)}, {"dtype", std::string(dtype)}});
}

GPUMEM_INLINE PeftTensor PeftLayer::shared_parameter(std::string_view name, Sizes sizes) {
  const auto found = shared_.tensors.find(name);
  if (found != shared_.tensors.end()) return found->second;
  return shared_.tensors[std::string(name)] = parameter(name, std::move(sizes));
}

GPUMEM_INLINE PeftTensor PeftLayer::shared_buffer(std::string_view name, Sizes sizes, std::string_view dtype) {
  const auto found = shared_.tensors.find(name);
  if (found != shared_.tensors.end()) return found->second;
  return shared_.tensors[std::string(name)] = buffer(name, std::move(sizes), dtype);
}

GPUMEM_INLINE PeftTensor PeftLayer::call(std::string_view op, std::initializer_list<PeftTensor> inputs,
                                         core::Shape shape, Attributes attributes) {
  return insert(op, op, inputs, shape, std::move(attributes));
}

GPUMEM_INLINE PeftTensor PeftLayer::base_linear(const PeftTensor& x, const PeftTensor& weight) {
  if (bias_) return call("linear_function", {x, weight, *bias_}, rows(base_.out));
  return call("linear_function", {x, weight}, rows(base_.out));
}

GPUMEM_INLINE PeftTensor PeftLayer::cast(const PeftTensor& x, std::string_view dtype) {
  return call("cast", {x}, x.shape, {{"dtype", std::string(dtype)}});
}

GPUMEM_INLINE PeftTensor PeftLayer::cast_like(const PeftTensor& x, const PeftTensor& like) {
  return call("cast", {x, like}, x.shape);
}

GPUMEM_INLINE PeftTensor PeftLayer::cast_input() { return cast(input_, core::to_string(type_)); }

GPUMEM_INLINE PeftTensor PeftLayer::dropped(const PeftTensor& x) {
  if (!(job_.lora_dropout > 0.0)) return x;
  return call("dropout", {x}, x.shape, {{"p", job_.lora_dropout}});
}

GPUMEM_INLINE PeftTensor PeftLayer::linear(const PeftTensor& x, const PeftTensor& weight) {
  core::Shape shape = x.shape;
  shape.set(shape.rank() - 1, weight.shape[0]);
  return call("linear_function", {x, weight}, shape);
}

GPUMEM_INLINE PeftTensor PeftLayer::matmul(const PeftTensor& x, const PeftTensor& right) {
  core::Shape shape = x.shape;
  shape.set(shape.rank() - 1, right.shape[right.shape.rank() - 1]);
  return call("matmul", {x, right}, shape);
}

GPUMEM_INLINE PeftTensor PeftLayer::mul(const PeftTensor& a, const PeftTensor& b) {
  return call("mul", {a, b}, a.shape);
}

GPUMEM_INLINE PeftTensor PeftLayer::scale(const PeftTensor& a) { return call("mul", {a}, a.shape); }

GPUMEM_INLINE PeftTensor PeftLayer::add(const PeftTensor& a, const PeftTensor& b) {
  return call("add", {a, b}, a.shape);
}

GPUMEM_INLINE PeftTensor PeftLayer::turned(const PeftTensor& matrix) {
  const std::size_t rank = matrix.shape.rank();
  core::Shape shape = matrix.shape;
  shape.set(rank - 2, matrix.shape[rank - 1]);
  shape.set(rank - 1, matrix.shape[rank - 2]);
  return call("permute", {matrix}, shape, {{"dims", rank == 2 ? Sizes{1, 0} : Sizes{0, 2, 1}}});
}

GPUMEM_INLINE PeftTensor PeftLayer::part(const PeftTensor& matrix, const Sizes& sizes) {
  if (matrix.shape == fixed(sizes)) return matrix;
  return call("adapter_part", {matrix}, fixed(sizes), {{"shape", sizes}});
}

GPUMEM_INLINE PeftTensor PeftLayer::function(std::string_view name, std::initializer_list<PeftTensor> inputs,
                                             Sizes shape, Attributes attributes) {
  core::Shape output = inputs.begin()->shape;
  if (!shape.empty()) {
    output = fixed(shape);
    attributes.push_back({"shape", std::move(shape)});
  } else {
    for (const model::Attribute& attribute : attributes) {
      const auto* width = std::get_if<std::int64_t>(&attribute.value);
      if (attribute.name == "out_features" && width != nullptr) {
        output.set(output.rank() - 1, core::Dim::fixed(*width));
      }
    }
  }
  return insert(name, "adapter_function", inputs, output, std::move(attributes));
}

GPUMEM_INLINE PeftTensor PeftLayer::returned(const PeftTensor& result, std::initializer_list<PeftTensor> names) {
  std::vector<model::LayerIndex> read = {result.at};
  for (const PeftTensor& name : names) read.push_back(name.at);
  return {copy_.insert({.name = name_ + ".return", .op = "return", .inputs = std::move(read), .output = result.shape}),
          result.shape};
}

GPUMEM_INLINE void PeftLayer::lend() {
  const std::string leaf(base_.leaf());
  shared_.tensors[leaf + ".input"] = input_;
  shared_.tensors[leaf + ".weight"] = weight_;
  shared_.tensors.erase(leaf + ".bias");
  if (bias_) shared_.tensors[leaf + ".bias"] = *bias_;
}

GPUMEM_INLINE PeftTensor PeftLayer::lent_input(std::string_view leaf) const {
  return shared_.tensors.at(std::string(leaf) + ".input");
}

GPUMEM_INLINE PeftTensor PeftLayer::lent_linear(std::string_view leaf, const PeftTensor& x) {
  const PeftTensor& weight = shared_.tensors.at(std::string(leaf) + ".weight");
  const auto bias = shared_.tensors.find(std::string(leaf) + ".bias");
  if (bias == shared_.tensors.end()) return linear(x, weight);
  core::Shape shape = x.shape;
  shape.set(shape.rank() - 1, weight.shape[0]);
  return call("linear_function", {x, weight, bias->second}, shape);
}

GPUMEM_INLINE PeftTensor PeftLayer::for_each_sample(const PeftTensor& rows) {
  core::Shape shape;
  shape.push_back(input_.shape[0]);
  shape.push_back(rows.shape[0]);
  const PeftTensor ids = call("adapter_rows", {input_}, shape, {{"rows", rows.shape[0].size}});
  shape.push_back(rows.shape[1]);
  return call("adapter_lookup", {rows, ids}, shape);
}

GPUMEM_INLINE void PeftLayer::remark(std::string text) {
  if (shared_.remarks.insert(text).second) copy_.remark(std::move(text));
}

GPUMEM_INLINE void PeftLayer::leave(const PeftTensor& result) { copy_.replace(base_.layer, result.at); }

GPUMEM_INLINE PeftTensor PeftLayer::sum(const PeftTensor& base, const PeftTensor& update, const PeftTensor& name) {
  return call("adapter_sum", {base, update, name}, base.shape);
}

GPUMEM_INLINE void PeftLayer::add_in_place(const PeftTensor& update) {
  const PeftTensor typed = cast_like(update, output_);
  output_ = call("add", {output_, typed}, output_.shape, {{"inplace", true}});
  leave(output_);
}

}  // namespace gpumem::adapt
