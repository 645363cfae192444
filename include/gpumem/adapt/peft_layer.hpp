// Input: a linear layer of the frozen base that gets an adapter of one of PEFT's methods.
// Output: PeftLayer, with which a method writes its calls: parameters, buffers, and functions of tensors. What a method
// shares among layers lies in PeftShared.
// Units: features.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/adapt/adapters.hpp"
#include "gpumem/adapt/peft_methods.hpp"
#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::adapt {

/// A tensor of the copy.
struct PeftTensor {
  model::LayerIndex at = 0;
  core::Shape shape = {};
};

/// What the adapters of one model have in common.
struct PeftShared {
  std::int64_t widest_in = 0;  ///< of the layers with adapters
  std::int64_t widest_out = 0;
  std::int64_t heads = 0;                                           ///< of queries, where the method needs them
  std::map<std::string, PeftTensor, std::less<>> tensors = {};      ///< by name, once they are made
  std::map<std::string, std::int64_t, std::less<>> layers_of = {};  ///< how many layers of a name have been written
  std::set<std::string, std::less<>> remarks = {};
};

class PeftLayer {
 public:
  using Attributes = std::vector<model::Attribute>;
  using Sizes = std::vector<std::int64_t>;

  /// The layer was copied last, or is the next one, if the method replaces it. All must outlive it.
  PeftLayer(connect::GraphCopy& copy, const connect::WiredGraph& source, const BaseLinear& base,
            const model::WeightStorage& storage, const model::TrainingJob& job, const PeftSettings& settings,
            PeftShared& shared);

  [[nodiscard]] const PeftSettings& settings() const { return settings_; }
  [[nodiscard]] PeftShared& shared() { return shared_; }
  [[nodiscard]] const BaseLinear& base() const { return base_; }
  [[nodiscard]] std::int64_t in() const { return base_.in; }
  [[nodiscard]] std::int64_t out() const { return base_.out; }
  [[nodiscard]] std::int64_t rank() const { return settings_.rank_of(base_.leaf()); }

  /// What the base reads, and what it leaves.
  [[nodiscard]] const PeftTensor& input() const { return input_; }
  [[nodiscard]] const PeftTensor& output() const { return output_; }
  /// The base's weight, of a method that replaces it. F.linear of its weight, or another one, with its bias.
  [[nodiscard]] const PeftTensor& weight() const { return weight_; }
  PeftTensor base_linear(const PeftTensor& x, const PeftTensor& weight);
  /// The base itself, of a method that replaces it, with another input: held in fewer bits, if it is.
  PeftTensor base_call(const PeftTensor& x);
  [[nodiscard]] bool has_bias() const { return has_bias_; }
  /// The type of the base's weight, by PyTorch's name.
  [[nodiscard]] std::string_view base_type() const { return core::to_string(base_type_); }
  /// Whether the base's weight needs no copy in the adapters' type.
  [[nodiscard]] bool holds_base_in_own_type() const { return base_type_ == type_; }

  /// The input in the adapters' type; then with the adapters' dropout.
  PeftTensor cast_input();
  PeftTensor dropped(const PeftTensor& x);
  PeftTensor cast(const PeftTensor& x, std::string_view dtype);
  PeftTensor cast_like(const PeftTensor& x, const PeftTensor& like);

  PeftTensor parameter(std::string_view name, Sizes sizes, bool trained = true);
  PeftTensor base_parameter(std::string_view name, Sizes sizes);  ///< trained, in the base's type
  PeftTensor buffer(std::string_view name, Sizes sizes, std::string_view dtype = "float32");
  /// One for all layers, made by the first of them.
  PeftTensor shared_parameter(std::string_view name, Sizes sizes);
  PeftTensor shared_buffer(std::string_view name, Sizes sizes, std::string_view dtype = "float32");

  PeftTensor call(std::string_view op, std::initializer_list<PeftTensor> inputs, core::Shape shape,
                  Attributes attributes = {});
  PeftTensor linear(const PeftTensor& x, const PeftTensor& weight);  ///< [.., in] x [out, in]
  PeftTensor matmul(const PeftTensor& x, const PeftTensor& right);   ///< [.., k] x [k, out]
  PeftTensor mul(const PeftTensor& a, const PeftTensor& b);          ///< of the first one's shape
  PeftTensor scale(const PeftTensor& a);                             ///< by a number
  PeftTensor add(const PeftTensor& a, const PeftTensor& b);
  PeftTensor turned(const PeftTensor& matrix);  ///< the transpose of a matrix, or of several: a view
  /// A part of a matrix, or the same figures in another shape, from the first one on: a view.
  PeftTensor part(const PeftTensor& matrix, const Sizes& sizes);
  /// ops/adapter.hpp. `shape`: empty is that of the rows, with "out_features".
  PeftTensor function(std::string_view name, std::initializer_list<PeftTensor> inputs, Sizes shape,
                      Attributes attributes);
  /// A tensor that a function's name keeps until it returns, besides those that it made it of.
  PeftTensor returned(const PeftTensor& result, std::initializer_list<PeftTensor> names);

  /// Keeps what this layer reads, its weight and its bias for layers that are written later, under its name.
  void lend();
  /// What a layer of this name that was lent last reads; F.linear of its weight and bias.
  [[nodiscard]] PeftTensor lent_input(std::string_view leaf) const;
  PeftTensor lent_linear(std::string_view leaf, const PeftTensor& x);
  /// As many rows for each sample, all alike (Tensor.repeat), as a look-up that makes tensors of the same sizes.
  PeftTensor for_each_sample(const PeftTensor& rows);
  /// Said once for all layers.
  void remark(std::string text);

  /// A base's output + the update, in the base's type. `name`: what the adapter read, by a name that lasts.
  PeftTensor sum(const PeftTensor& base, const PeftTensor& update, const PeftTensor& name);
  void add_to_output(const PeftTensor& update, const PeftTensor& name) { leave(sum(output_, update, name)); }
  /// The same in place, as `result += update`.
  void add_in_place(const PeftTensor& update);
  /// What others read in place of the base's output.
  void leave(const PeftTensor& result);

  [[nodiscard]] core::Shape rows(std::int64_t width) const;  ///< the input's shape, with another last axis
  [[nodiscard]] static core::Shape fixed(const Sizes& sizes);

 private:
  void take_base(const model::WeightStorage& storage);
  /// Whether the base's weight is no tensor to compute with.
  [[nodiscard]] bool calls_base() const { return model::holds_in_fewer_bits(storage_.quantization) && read_ >= 0; }
  PeftTensor typed_parameter(std::string_view name, Sizes sizes, core::DType type, bool trained);
  PeftTensor insert(std::string_view name, std::string_view op, std::initializer_list<PeftTensor> inputs,
                    const core::Shape& shape, Attributes attributes);

  connect::GraphCopy& copy_;
  const BaseLinear& base_;
  const model::TrainingJob& job_;
  const PeftSettings& settings_;
  PeftShared& shared_;
  std::string name_;
  core::DType type_;
  core::DType base_type_;
  bool has_bias_;
  bool no_grad_;  ///< the layer runs without gradients, and its adapter with it
  model::WeightStorage storage_;
  model::LayerIndex read_ = 0;  ///< the source's layer that the base reads
  PeftTensor input_;
  PeftTensor output_;
  PeftTensor weight_;
  std::optional<PeftTensor> bias_ = {};
};

inline PeftLayer::PeftLayer(connect::GraphCopy& copy, const connect::WiredGraph& source, const BaseLinear& base,
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
      has_bias_(source.graph().layers()[base.layer].parameters > base.in * base.out),
      no_grad_(source.graph().attributes(source.graph().layers()[base.layer]).flag(model::kNoGrad, false)),
      storage_(storage),
      read_(source.inputs(base.layer)[0]) {
  input_.at = copy.now(read_);
  input_.shape = read_ < 0 ? source.input_shapes()[static_cast<std::size_t>(model::kFirstGraphInput - read_)]
                           : source.outputs(static_cast<std::size_t>(read_))[0];
  output_.shape = source.outputs(base.layer)[0];
  if (settings.row().replaces_base) {
    if (!calls_base()) take_base(storage);
  } else {
    output_.at = copy.now(static_cast<model::LayerIndex>(base.layer));
  }
}

/// The base's weight and bias as tensors of their own, in the layer's place.
inline void PeftLayer::take_base(const model::WeightStorage& storage) {
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

inline core::Shape PeftLayer::rows(std::int64_t width) const {
  core::Shape shape = input_.shape;
  shape.set(shape.rank() - 1, core::Dim::fixed(width));
  return shape;
}

inline core::Shape PeftLayer::fixed(const Sizes& sizes) {
  core::Shape shape;
  for (const std::int64_t size : sizes) shape.push_back(core::Dim::fixed(size));
  return shape;
}

inline PeftTensor PeftLayer::insert(std::string_view name, std::string_view op,
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

inline PeftTensor PeftLayer::typed_parameter(std::string_view name, Sizes sizes, core::DType type, bool trained) {
  PeftTensor made;
  made.shape = fixed(sizes);
  made.at = copy_.insert({.name = name_ + "." + std::string(name) + ".default",
                          .op = model::kParameterOp,
                          .inputs = {},
                          .output = made.shape,
                          .attributes = {{"shape", std::move(sizes)}},
                          .weights = {.dtype = type},
                          .frozen = !trained || no_grad_});
  return made;
}

inline PeftTensor PeftLayer::parameter(std::string_view name, Sizes sizes, bool trained) {
  return typed_parameter(name, std::move(sizes), type_, trained);
}

inline PeftTensor PeftLayer::base_parameter(std::string_view name, Sizes sizes) {
  return typed_parameter(name, std::move(sizes), base_type_, true);
}

inline PeftTensor PeftLayer::buffer(std::string_view name, Sizes sizes, std::string_view dtype) {
  const core::Shape shape = fixed(sizes);
  return insert(name, model::kConstantOp, {}, shape, {{"shape", std::move(sizes)}, {"dtype", std::string(dtype)}});
}

inline PeftTensor PeftLayer::shared_parameter(std::string_view name, Sizes sizes) {
  const auto found = shared_.tensors.find(name);
  if (found != shared_.tensors.end()) return found->second;
  return shared_.tensors[std::string(name)] = parameter(name, std::move(sizes));
}

inline PeftTensor PeftLayer::shared_buffer(std::string_view name, Sizes sizes, std::string_view dtype) {
  const auto found = shared_.tensors.find(name);
  if (found != shared_.tensors.end()) return found->second;
  return shared_.tensors[std::string(name)] = buffer(name, std::move(sizes), dtype);
}

inline PeftTensor PeftLayer::call(std::string_view op, std::initializer_list<PeftTensor> inputs, core::Shape shape,
                                  Attributes attributes) {
  return insert(op, op, inputs, shape, std::move(attributes));
}

inline PeftTensor PeftLayer::base_linear(const PeftTensor& x, const PeftTensor& weight) {
  if (bias_) return call("linear_function", {x, weight, *bias_}, rows(base_.out));
  return call("linear_function", {x, weight}, rows(base_.out));
}

inline PeftTensor PeftLayer::base_call(const PeftTensor& x) {
  if (!calls_base()) return base_linear(x, weight_);
  const auto read = static_cast<std::size_t>(read_);
  copy_.replace(read, x.at);
  const model::LayerIndex made = copy_.copy(storage_, true);
  copy_.replace(read, input_.at);
  return {made, rows(base_.out)};
}

inline PeftTensor PeftLayer::cast(const PeftTensor& x, std::string_view dtype) {
  return call("cast", {x}, x.shape, {{"dtype", std::string(dtype)}});
}

inline PeftTensor PeftLayer::cast_like(const PeftTensor& x, const PeftTensor& like) {
  return call("cast", {x, like}, x.shape);
}

inline PeftTensor PeftLayer::cast_input() { return cast(input_, core::to_string(type_)); }

inline PeftTensor PeftLayer::dropped(const PeftTensor& x) {
  if (!(job_.lora_dropout > 0.0)) return x;
  return call("dropout", {x}, x.shape, {{"p", job_.lora_dropout}});
}

inline PeftTensor PeftLayer::linear(const PeftTensor& x, const PeftTensor& weight) {
  core::Shape shape = x.shape;
  shape.set(shape.rank() - 1, weight.shape[0]);
  return call("linear_function", {x, weight}, shape);
}

inline PeftTensor PeftLayer::matmul(const PeftTensor& x, const PeftTensor& right) {
  core::Shape shape = x.shape;
  shape.set(shape.rank() - 1, right.shape[right.shape.rank() - 1]);
  return call("matmul", {x, right}, shape);
}

inline PeftTensor PeftLayer::mul(const PeftTensor& a, const PeftTensor& b) { return call("mul", {a, b}, a.shape); }

inline PeftTensor PeftLayer::scale(const PeftTensor& a) { return call("mul", {a}, a.shape); }

inline PeftTensor PeftLayer::add(const PeftTensor& a, const PeftTensor& b) { return call("add", {a, b}, a.shape); }

inline PeftTensor PeftLayer::turned(const PeftTensor& matrix) {
  const std::size_t rank = matrix.shape.rank();
  core::Shape shape = matrix.shape;
  shape.set(rank - 2, matrix.shape[rank - 1]);
  shape.set(rank - 1, matrix.shape[rank - 2]);
  return call("permute", {matrix}, shape, {{"dims", rank == 2 ? Sizes{1, 0} : Sizes{0, 2, 1}}});
}

inline PeftTensor PeftLayer::part(const PeftTensor& matrix, const Sizes& sizes) {
  if (matrix.shape == fixed(sizes)) return matrix;
  return call("adapter_part", {matrix}, fixed(sizes), {{"shape", sizes}});
}

inline PeftTensor PeftLayer::function(std::string_view name, std::initializer_list<PeftTensor> inputs, Sizes shape,
                                      Attributes attributes) {
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

inline PeftTensor PeftLayer::returned(const PeftTensor& result, std::initializer_list<PeftTensor> names) {
  std::vector<model::LayerIndex> read = {result.at};
  for (const PeftTensor& name : names) read.push_back(name.at);
  return {copy_.insert({.name = name_ + ".return", .op = "return", .inputs = std::move(read), .output = result.shape}),
          result.shape};
}

inline void PeftLayer::lend() {
  const std::string leaf(base_.leaf());
  shared_.tensors[leaf + ".input"] = input_;
  shared_.tensors[leaf + ".weight"] = weight_;
  shared_.tensors.erase(leaf + ".bias");
  if (bias_) shared_.tensors[leaf + ".bias"] = *bias_;
}

inline PeftTensor PeftLayer::lent_input(std::string_view leaf) const {
  return shared_.tensors.at(std::string(leaf) + ".input");
}

inline PeftTensor PeftLayer::lent_linear(std::string_view leaf, const PeftTensor& x) {
  const PeftTensor& weight = shared_.tensors.at(std::string(leaf) + ".weight");
  const auto bias = shared_.tensors.find(std::string(leaf) + ".bias");
  if (bias == shared_.tensors.end()) return linear(x, weight);
  core::Shape shape = x.shape;
  shape.set(shape.rank() - 1, weight.shape[0]);
  return call("linear_function", {x, weight, bias->second}, shape);
}

inline PeftTensor PeftLayer::for_each_sample(const PeftTensor& rows) {
  core::Shape shape;
  shape.push_back(input_.shape[0]);
  shape.push_back(rows.shape[0]);
  const PeftTensor ids = call("adapter_rows", {input_}, shape, {{"rows", rows.shape[0].size}});
  shape.push_back(rows.shape[1]);
  return call("adapter_lookup", {rows, ids}, shape);
}

inline void PeftLayer::remark(std::string text) {
  if (shared_.remarks.insert(text).second) copy_.remark(std::move(text));
}

inline void PeftLayer::leave(const PeftTensor& result) { copy_.replace(base_.layer, result.at); }

inline PeftTensor PeftLayer::sum(const PeftTensor& base, const PeftTensor& update, const PeftTensor& name) {
  return call("adapter_sum", {base, update, name}, base.shape);
}

inline void PeftLayer::add_in_place(const PeftTensor& update) {
  const PeftTensor typed = cast_like(update, output_);
  output_ = call("add", {output_, typed}, output_.shape, {{"inplace", true}});
  leave(output_);
}

}  // namespace gpumem::adapt
