// Input: one job a line, "GRAPH BATCH": a graph JSON and a batch size.
// Output: one line each, "PEAK SECONDS", or "error WHY": the most bytes of live tensors in the second of two training
// steps (Adam, the cross-entropy) on libtorch's meta device, which computes shapes and no values, and how long that
// took.
//
// It is what a program in C++ could do without gpumem: tensors' bytes are counted by an allocator in the place of the
// meta device's own, to the byte, without any rounding. Ops that have no kernel for the meta device in libtorch 1.13
// get one here (kernels of Python's FakeTensorMode are Python's). gpumem reads the graph, and says into what shape a
// reshape goes.
#include <ATen/native/ConvUtils.h>
#include <c10/core/Allocator.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>

#include "gpumem/all.hpp"
#include "gpumem/connect/connect.hpp"

namespace {

using gpumem::model::Attributes;
using gpumem::model::Layer;
using torch::Tensor;
using Sizes = std::vector<std::int64_t>;

// The bytes of live tensors.

struct Books {
  std::int64_t live = 0;
  std::int64_t peak = 0;
};
Books& books() {
  static Books kept;
  return kept;
}

void strike_out(void* size) {
  books().live -= *static_cast<std::int64_t*>(size);
  delete static_cast<std::int64_t*>(size);  // NOLINT: an allocator's deleter
}

/// Hands out no memory, as the meta device's own, and keeps the books.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) const override {
    const auto size = static_cast<std::int64_t>(bytes);
    books().live += size;
    books().peak = std::max(books().peak, books().live);
    return {nullptr, new std::int64_t(size), &strike_out, c10::Device(c10::DeviceType::Meta)};  // NOLINT: see above
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
};

// Kernels that libtorch's meta device lacks. They make what the real ones return.

Tensor convolution(const Tensor& x, const Tensor& weight, const c10::optional<Tensor>& /*bias*/, at::IntArrayRef stride,
                   at::IntArrayRef padding, at::IntArrayRef dilation, bool /*transposed*/, at::IntArrayRef /*extra*/,
                   std::int64_t /*groups*/) {
  return at::empty(at::native::conv_output_size(x.sizes(), weight.sizes(), padding, stride, dilation), x.options());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& gradient, const Tensor& x, const Tensor& weight,
                                                        at::OptionalIntArrayRef bias, at::IntArrayRef /*stride*/,
                                                        at::IntArrayRef /*padding*/, at::IntArrayRef /*dilation*/,
                                                        bool /*transposed*/, at::IntArrayRef /*extra*/,
                                                        std::int64_t /*groups*/, std::array<bool, 3> wanted) {
  return {wanted[0] ? at::empty_like(x) : Tensor(), wanted[1] ? at::empty_like(weight) : Tensor(),
          wanted[2] ? at::empty(*bias, gradient.options()) : Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm(const Tensor& x, const c10::optional<Tensor>& /*weight*/,
                                              const c10::optional<Tensor>& /*bias*/,
                                              const c10::optional<Tensor>& /*mean*/,
                                              const c10::optional<Tensor>& /*variance*/, bool /*training*/,
                                              double /*momentum*/, double /*epsilon*/) {
  const auto row = at::empty({x.size(1)}, x.options());
  return {at::empty_like(x), row, at::empty_like(row)};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward(const Tensor& /*gradient*/, const Tensor& x,
                                                       const c10::optional<Tensor>& weight,
                                                       const c10::optional<Tensor>& /*mean*/,
                                                       const c10::optional<Tensor>& /*variance*/,
                                                       const c10::optional<Tensor>& /*saved_mean*/,
                                                       const c10::optional<Tensor>& /*saved_invstd*/, bool /*training*/,
                                                       double /*epsilon*/, std::array<bool, 3> wanted) {
  return {wanted[0] ? at::empty_like(x) : Tensor(), wanted[1] ? at::empty_like(*weight) : Tensor(),
          wanted[2] ? at::empty_like(*weight) : Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm(const Tensor& x, at::IntArrayRef normalised,
                                              const c10::optional<Tensor>& /*weight*/,
                                              const c10::optional<Tensor>& /*bias*/, double /*epsilon*/) {
  Sizes rows = x.sizes().vec();
  std::fill(rows.end() - static_cast<std::ptrdiff_t>(normalised.size()), rows.end(), 1);
  const auto mean = at::empty(rows, x.options());
  return {at::empty_like(x), mean, at::empty_like(mean)};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor& /*gradient*/, const Tensor& x,
                                                       at::IntArrayRef /*normalised*/, const Tensor& /*mean*/,
                                                       const Tensor& /*rstd*/, const c10::optional<Tensor>& weight,
                                                       const c10::optional<Tensor>& bias, std::array<bool, 3> wanted) {
  return {wanted[0] ? at::empty_like(x) : Tensor(), wanted[1] ? at::empty_like(*weight) : Tensor(),
          wanted[2] ? at::empty_like(*bias) : Tensor()};
}

Tensor adaptive_pool(const Tensor& x, at::IntArrayRef size) {
  return at::empty({x.size(0), x.size(1), size[0], size[1]}, x.options());
}
Tensor adaptive_pool_backward(const Tensor& /*gradient*/, const Tensor& x) { return at::empty_like(x); }

Tensor embedding(const Tensor& weight, const Tensor& ids, std::int64_t /*padding*/, bool /*scale*/, bool /*sparse*/) {
  Sizes sizes = ids.sizes().vec();
  sizes.push_back(weight.size(1));
  return at::empty(sizes, weight.options());
}
Tensor embedding_backward(const Tensor& gradient, const Tensor& /*ids*/, std::int64_t rows, std::int64_t /*padding*/,
                          bool /*scale*/) {
  return at::empty({rows, gradient.size(-1)}, gradient.options());
}

Tensor relu(const Tensor& x) { return at::empty_like(x); }
Tensor hardtanh_backward(const Tensor& gradient, const Tensor& /*x*/, const at::Scalar& /*least*/,
                         const at::Scalar& /*most*/) {
  return at::empty_like(gradient);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, Meta, library) {
  library.impl("convolution", &convolution);
  library.impl("convolution_backward", &convolution_backward);
  library.impl("native_batch_norm", &batch_norm);
  library.impl("native_batch_norm_backward", &batch_norm_backward);
  library.impl("native_layer_norm", &layer_norm);
  library.impl("native_layer_norm_backward", &layer_norm_backward);
  library.impl("_adaptive_avg_pool2d", &adaptive_pool);
  library.impl("_adaptive_avg_pool2d_backward", &adaptive_pool_backward);
  library.impl("embedding", &embedding);
  library.impl("embedding_dense_backward", &embedding_backward);
  library.impl("relu", &relu);
  library.impl("hardtanh_backward", &hardtanh_backward);
}

namespace {

// A graph, layer by layer.

const at::TensorOptions kMeta = at::TensorOptions().device(at::kMeta).dtype(at::kFloat);

Sizes per_axis(const Attributes& attributes, std::string_view name, std::int64_t otherwise) {
  return {attributes.per_axis(name, 0).value_or(otherwise), attributes.per_axis(name, 1).value_or(otherwise)};
}

/// The shape at this batch size.
Sizes sizes_of(const gpumem::core::Shape& shape, std::int64_t batch) {
  Sizes sizes;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    const gpumem::core::Dim dim = shape[axis];
    if (dim.kind == gpumem::core::Dim::Kind::unknown) throw std::runtime_error("a shape of the graph is not known");
    sizes.push_back(dim.kind == gpumem::core::Dim::Kind::batch ? dim.size * batch : dim.size);
  }
  return sizes;
}

/// A model of parameters that are on the meta device.
class Model {
 public:
  Model(const gpumem::connect::WiredGraph& wired, std::int64_t batch)
      : wired_(wired), graph_(wired.graph()), batch_(batch) {
    for (const Layer& layer : graph_.layers()) parameters_.push_back(parameters_of(layer));
    const std::vector<std::int32_t> last = last_readers();
    dying_.resize(graph_.layers().size());
    for (std::size_t index = 0; index < last.size(); ++index) {
      if (last[index] >= 0) dying_[static_cast<std::size_t>(last[index])].push_back(index);
    }
  }

  [[nodiscard]] std::vector<Tensor> parameters() const {
    std::vector<Tensor> all;
    for (const auto& of_layer : parameters_) {
      for (const Tensor& parameter : of_layer) {
        const bool known =
            std::any_of(all.begin(), all.end(), [&](const Tensor& old) { return old.is_same(parameter); });
        if (!known && parameter.requires_grad()) all.push_back(parameter);
      }
    }
    return all;
  }

  [[nodiscard]] Tensor forward(const Tensor& input) {
    values_.assign(graph_.layers().size(), Tensor());
    input_ = input;
    for (std::size_t index = 0; index < values_.size(); ++index) {
      values_[index] = run(index);
      for (const std::size_t dead : dying_[index]) values_[dead] = Tensor();
    }
    Tensor output = std::move(values_.back());
    values_.clear();
    return output;
  }

 private:
  /// By layer, the last one that reads it; -1: none.
  [[nodiscard]] std::vector<std::int32_t> last_readers() const {
    std::vector<std::int32_t> last(graph_.layers().size(), -1);
    for (std::size_t index = 0; index < last.size(); ++index) {
      for (const auto input : graph_.inputs(graph_.layers()[index])) {
        if (input >= 0) last[static_cast<std::size_t>(input)] = static_cast<std::int32_t>(index);
      }
    }
    return last;
  }

  [[nodiscard]] static Tensor parameter(Sizes sizes) { return at::empty(sizes, kMeta).requires_grad_(true); }

  std::vector<Tensor> parameters_of(const Layer& layer) {
    const Attributes attributes = graph_.attributes(layer);
    const std::string_view op = graph_.op(layer);
    const auto integer = [&](std::string_view name) { return attributes.integer(name).value_or(0); };
    const bool bias = attributes.flag("bias", true);
    std::vector<Tensor> all;
    if (op == "linear") {
      const Sizes sizes = {integer("out_features"), integer("in_features")};
      const bool tied = layer.tied_parameters > 0 && sizes[0] * sizes[1] == layer.tied_parameters;
      all.push_back(tied ? tied_to(sizes) : parameter(sizes));
      if (bias) all.push_back(parameter({sizes[0]}));
    } else if (op == "conv2d") {
      const Sizes kernel = per_axis(attributes, "kernel_size", 1);
      const std::int64_t groups = attributes.integer("groups").value_or(1);
      all.push_back(parameter({integer("out_channels"), integer("in_channels") / groups, kernel[0], kernel[1]}));
      if (bias) all.push_back(parameter({integer("out_channels")}));
    } else if (op == "batch_norm") {
      const Sizes sizes = {integer("num_features")};
      all = {parameter(sizes), parameter(sizes), at::empty(sizes, kMeta), at::empty(sizes, kMeta),
             at::empty({}, kMeta.dtype(at::kLong))};
    } else if (op == "layer_norm") {
      const Sizes sizes = {layer.parameters / 2};
      all = {parameter(sizes), parameter(sizes)};
    } else if (op == "embedding") {
      all = {parameter({integer("num_embeddings"), integer("embedding_dim")})};
    } else if (op == "constant") {
      all = {at::empty(shape_of(static_cast<std::size_t>(&layer - graph_.layers().data())), kMeta.dtype(at::kLong))};
    }
    return all;
  }

  /// The weight of this shape that an earlier layer holds.
  [[nodiscard]] Tensor tied_to(const Sizes& sizes) const {
    for (const auto& of_layer : parameters_) {
      for (const Tensor& known : of_layer) {
        if (known.sizes() == at::IntArrayRef(sizes)) return known;
      }
    }
    return parameter(sizes);
  }

  [[nodiscard]] Sizes shape_of(std::size_t index) const { return sizes_of(wired_.outputs(index)[0], batch_); }

  [[nodiscard]] const Tensor& input(std::size_t index, std::size_t which) const {
    const auto from = graph_.inputs(graph_.layers()[index])[which];
    return from < 0 ? input_ : values_[static_cast<std::size_t>(from)];
  }

  Tensor run(std::size_t index) {
    const Layer& layer = graph_.layers()[index];
    const Attributes attributes = graph_.attributes(layer);
    const std::string_view op = graph_.op(layer);
    const std::vector<Tensor>& own = parameters_[index];
    if (op == "constant") return own[0];
    const Tensor& x = input(index, 0);
    const bool in_place = attributes.flag("inplace", false);
    if (op == "linear") return at::linear(x, own[0], own.size() > 1 ? own[1] : Tensor());
    if (op == "conv2d") {
      return at::conv2d(x, own[0], own.size() > 1 ? own[1] : Tensor(), per_axis(attributes, "stride", 1),
                        per_axis(attributes, "padding", 0), per_axis(attributes, "dilation", 1),
                        attributes.integer("groups").value_or(1));
    }
    if (op == "batch_norm") return at::batch_norm(x, own[0], own[1], own[2], own[3], true, 0.1, 1e-5, false);
    if (op == "layer_norm") return at::layer_norm(x, own[0].sizes(), own[0], own[1]);
    if (op == "embedding") return at::embedding(own[0], x);
    if (op == "relu") return in_place ? at::relu_(const_cast<Tensor&>(x)) : at::relu(x);
    if (op == "relu6") return in_place ? at::hardtanh_(const_cast<Tensor&>(x), 0, 6) : at::hardtanh(x, 0, 6);
    if (op == "gelu") return at::gelu(x, index_of_text(attributes) ? "tanh" : "none");
    if (op == "tanh") return at::tanh(x);
    if (op == "dropout") return at::dropout(x, 0.1, true);
    if (op == "add") {
      return in_place ? const_cast<Tensor&>(x).add_(input(index, 1)) : at::add(x, input(index, 1));
    }
    if (op == "max_pool2d") {
      const Sizes kernel = per_axis(attributes, "kernel_size", 1);
      const Sizes stride = {attributes.per_axis("stride", 0).value_or(kernel[0]),
                            attributes.per_axis("stride", 1).value_or(kernel[1])};
      return at::max_pool2d(x, kernel, stride, per_axis(attributes, "padding", 0));
    }
    if (op == "adaptive_avg_pool2d") return at::adaptive_avg_pool2d(x, per_axis(attributes, "output_size", 1));
    if (op == "flatten") return at::flatten(x, 1);
    if (op == "reshape") return x.reshape(shape_of(index));
    if (op == "expand") return x.expand(shape_of(index));
    if (op == "slice") return x.slice(1, 0, shape_of(index)[1]);
    if (op == "select") return x.select(1, attributes.integer("index").value_or(0));
    if (op == "permute") return x.transpose(1, 2);
    if (op == "split") return x;
    if (op == "item") {
      const auto start = attributes.integer("start").value_or(0);
      return x.slice(2, start, start + attributes.integer("length").value_or(0));
    }
    if (op == "scaled_dot_product_attention") {
      return attention(x, input(index, 1), input(index, 2), attributes.flag("is_causal", false));
    }
    throw std::runtime_error("no rule for the op " + std::string(op));
  }

  [[nodiscard]] static bool index_of_text(const Attributes& attributes) {
    const auto* value = attributes.find("approximate");
    const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
    return text != nullptr && *text == "tanh";
  }

  /// As the models in examples/pytorch compute it with PyTorch 1.13.
  [[nodiscard]] static Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, bool causal) {
    Tensor scores = at::div(at::matmul(query, key.transpose(-2, -1)), 8.0);
    if (causal) {
      const auto length = scores.size(-1);
      const Tensor hidden = at::bitwise_not(at::tril(at::ones({length, length}, kMeta.dtype(at::kBool))));
      scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
    }
    return at::matmul(at::dropout(at::softmax(scores, -1), 0.1, true), value);
  }

  const gpumem::connect::WiredGraph& wired_;
  const gpumem::ModelGraph& graph_;
  std::int64_t batch_;
  std::vector<std::vector<Tensor>> parameters_;
  std::vector<std::vector<std::size_t>> dying_;  ///< by layer, whose outputs nobody reads after it
  std::vector<Tensor> values_;
  Tensor input_;
};

Tensor input_of(const gpumem::ModelGraph& graph, std::int64_t batch) {
  const auto& input = graph.graph_inputs()[0];
  const Sizes sizes = sizes_of(input.shape, batch);
  return at::empty(sizes, kMeta.dtype(input.dtype == gpumem::core::DType::int64 ? at::kLong : at::kFloat));
}

/// The peak of the second step.
std::int64_t peak_of(const std::string& file, std::int64_t batch) {
  const auto graph = gpumem::read_summary(file);
  if (!graph) throw std::runtime_error(to_string(graph.error()));
  const gpumem::TrainingJob job(*graph, batch);
  const auto wired = gpumem::connect::connect(job, gpumem::ops::catalogue());
  if (!wired) throw std::runtime_error(to_string(wired.error()));
  Model model(*wired, batch);
  const std::vector<Tensor> parameters = model.parameters();
  torch::optim::Adam optimizer(parameters);
  const Tensor input = input_of(*job.graph, batch);
  Tensor output;
  Tensor loss;
  Tensor labels;
  for (int step = 0; step < 2; ++step) {
    books().peak = books().live;
    for (const Tensor& parameter : parameters) parameter.mutable_grad() = Tensor();
    output = model.forward(input);
    const Tensor rows = output.dim() == 3 ? output.flatten(0, 1) : output;
    if (!labels.defined()) labels = at::empty({rows.size(0)}, kMeta.dtype(at::kLong));
    loss = at::cross_entropy_loss(rows, labels);
    loss.backward();
    optimizer.step();
  }
  return books().peak;
}

void answer(const std::string& line) {
  std::istringstream words(line);
  std::string file;
  std::int64_t batch = 0;
  words >> file >> batch;
  const auto begin = std::chrono::steady_clock::now();
  try {
    const std::int64_t peak = peak_of(file, batch);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("%lld %.9f\n", static_cast<long long>(peak), seconds.count());
  } catch (const std::exception& error) {
    const std::string text = error.what();
    std::printf("error %s\n", text.substr(0, text.find_first_of(".\n")).c_str());
  }
  std::fflush(stdout);
}

}  // namespace

int main() {
  static CountingAllocator allocator;
  c10::SetAllocator(c10::DeviceType::Meta, &allocator);
  at::set_num_threads(1);
  for (std::string line; std::getline(std::cin, line);) answer(line);
  return 0;
}
