// Input: a linear layer of the frozen base that gets an adapter of one of PEFT's methods.
// Output: PeftLayer, with which a method writes its calls: parameters, buffers, and functions of tensors. What a method
// shares among layers lies in PeftShared.
// Units: features.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/adapt/base_linears.hpp"
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
  PeftTensor input_;
  PeftTensor output_;
  PeftTensor weight_;
  std::optional<PeftTensor> bias_ = {};
};

}  // namespace gpumem::adapt
