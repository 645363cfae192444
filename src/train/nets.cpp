#include "nets.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpumem/model/graph_builder.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::train {

namespace {

using model::Attribute;
using AttributeList = std::vector<Attribute>;
using Widths = std::vector<std::int64_t>;

/// No net of this kind has more channels in a layer.
constexpr std::int64_t kMostFilters = 2048;
/// Images are not made smaller than this.
constexpr std::int64_t kLeastSide = 7;
/// Deeper ones are a mistake.
constexpr std::int64_t kDeepest = 1024;

const ops::Op* find_op(std::string_view name) {
  static const auto kOps = [] {
    std::unordered_map<std::string_view, const ops::Op*> all;
    for (const ops::Op* op : ops::catalogue()) all.emplace(op->traits.name, op);
    return all;
  }();
  const auto found = kOps.find(name);
  return found == kOps.end() ? nullptr : found->second;
}

struct Tensor {
  model::LayerIndex index = model::kFirstGraphInput;
  core::Shape shape;

  [[nodiscard]] std::int64_t size(std::size_t axis) const { return shape[axis].size; }
  [[nodiscard]] std::int64_t width() const { return size(shape.rank() - 1); }
};

/// Adds layers; their shapes and parameters follow from the ops' own rules. After a failure every call does nothing,
/// and build() tells.
class NetWriter {
 public:
  explicit NetWriter(std::string_view format) : builder_(format) {}

  Tensor input(std::initializer_list<std::int64_t> sample, core::DType dtype = core::DType::float32) {
    Tensor tensor;
    tensor.shape.push_back(core::Dim::batch());
    for (const std::int64_t size : sample) tensor.shape.push_back(core::Dim::fixed(size));
    builder_.add_input({"input", tensor.shape, dtype});
    return tensor;
  }

  Tensor add(std::string_view op_name, std::span<const Tensor> inputs, const AttributeList& attributes = {},
             std::string_view class_name = {}) {
    if (builder_.failed()) return {};
    const ops::Op* op = find_op(op_name);
    if (op == nullptr) return fail("there is no op " + core::quoted(op_name));
    std::vector<model::LayerIndex> edges;
    std::vector<core::Shape> shapes;
    for (const Tensor& input : inputs) {
      edges.push_back(input.index);
      shapes.push_back(input.shape);
    }
    const std::string name = std::string(op_name) + "_" + std::to_string(++added_);
    Tensor output;
    auto shape = op->output_shape({model::Attributes(attributes), shapes});
    if (!shape) return fail(name + ": " + shape.error().message, shape.error().code);
    output.shape = *shape;
    output.index = builder_.add({.name = name,
                                 .class_name = class_name,
                                 .op = &op->traits,
                                 .outputs = {&output.shape, 1},
                                 .inputs = edges,
                                 .attributes = attributes});
    return output;
  }
  Tensor add(std::string_view op_name, const Tensor& input, const AttributeList& attributes = {},
             std::string_view class_name = {}) {
    return add(op_name, std::span(&input, 1), attributes, class_name);
  }

  Tensor fail(std::string message, core::ErrorCode code = core::ErrorCode::invalid_argument) {
    builder_.fail({code, std::move(message), {}});
    return {};
  }
  /// Fails unless the sizes are such as nets have; far from overflow.
  void check(std::initializer_list<model::Named<std::int64_t>> sizes, std::int64_t largest = std::int64_t{1} << 24) {
    for (const auto& size : sizes) {
      if (size.value >= 1 && size.value <= largest) continue;
      fail(std::string(size.name) + " is " + std::to_string(size.value) + "; it must be from 1 to " +
           std::to_string(largest));
    }
  }
  [[nodiscard]] bool going() const { return !builder_.failed(); }

  // What several kinds of nets have.

  Tensor linear(const Tensor& input, std::int64_t outputs, std::string_view class_name = {}) {
    if (!going()) return input;
    return add("linear", input, {{"in_features", input.width()}, {"out_features", outputs}}, class_name);
  }
  Tensor activation(const Tensor& input, std::string_view op) {
    if (std::find(kActivations.begin(), kActivations.end(), op) == kActivations.end()) {
      return fail("there is no activation " + core::quoted(op));
    }
    if (op == "prelu") return add(op, input, {{"num_parameters", std::int64_t{1}}});
    return add(op, input, {{"inplace", false}});
  }
  Tensor dropout(const Tensor& input, std::int64_t percent) {
    if (percent == 0) return input;
    return add("dropout", input, {{"p", share(percent)}, {"inplace", false}});
  }
  Tensor batch_norm(const Tensor& input, bool wanted) {
    if (!wanted || !going()) return input;
    return add("batch_norm", input, {{"num_features", input.size(1)}});
  }
  Tensor sum(const Tensor& left, const Tensor& right) {
    const Tensor both[] = {left, right};
    return add("add", both);
  }
  /// The classes' shares.
  Tensor head(const Tensor& input, std::int64_t outputs) {
    const Tensor classes = linear(input, outputs);
    return outputs == 1 ? add("sigmoid", classes) : add("softmax", classes, {{"dim", std::int64_t{1}}});
  }

  [[nodiscard]] static double share(std::int64_t percent) { return static_cast<double>(percent) / 100.0; }

  core::Result<model::ModelGraph> build() && { return std::move(builder_).build(); }

 private:
  model::GraphBuilder builder_;
  std::int64_t added_ = 0;
};

// MLPs.

Widths hidden_widths(const MlpNet& net) {
  Widths widths;
  const std::int64_t hidden = net.depth + (net.architecture == Architecture::bottleneck ? 1 : 0);
  const std::int64_t step = (net.inputs - net.outputs) / net.depth;
  std::int64_t width = net.inputs;
  for (std::int64_t layer = 0; layer < hidden; ++layer) {
    if (net.architecture == Architecture::gradual) width = std::max(width - step, net.outputs);
    else if (net.architecture != Architecture::uniform) width = std::max(width / 2, net.outputs);
    widths.push_back(width);
  }
  return widths;
}

// CNNs.

/// floor(base (2048 / base)^(step / steps)), at most 2048. Where this is a whole number it may come out of pow() a
/// rounding short of it. For 16 to 512 filters and up to 58 steps no other value comes within 1.4e-6 below a whole
/// number, so that the result is exact, and the same with every library.
std::int64_t grown(std::int64_t base, std::int64_t step, std::int64_t steps) {
  constexpr double kRounding = 1e-9;
  const double growth = static_cast<double>(kMostFilters) / static_cast<double>(base);
  const double exponent = static_cast<double>(step) / static_cast<double>(steps);
  const double width = static_cast<double>(base) * std::pow(growth, exponent);
  return std::min(static_cast<std::int64_t>(width + kRounding), kMostFilters);
}

std::int64_t hourglass_filters(const CnnNet& net, std::int64_t block) {
  const std::int64_t rising = net.depth / 2;
  if (block < rising) return grown(net.base_filters, block, rising);
  return std::max(grown(net.base_filters, net.depth - block - 1, net.depth - rising), net.base_filters);
}

std::int64_t bottleneck_filters(const CnnNet& net, std::int64_t block) {
  if (block == 0) return 2 * net.base_filters;
  return grown(net.base_filters, block - 1, std::max<std::int64_t>(net.depth - 1, 1));
}

std::int64_t filters(const CnnNet& net, std::int64_t block) {
  switch (net.architecture) {
    case Architecture::pyramid:
    case Architecture::residual: return grown(net.base_filters, block, net.depth);
    case Architecture::gradual: return grown(net.base_filters, block, 2 * net.depth);
    case Architecture::bottleneck: return bottleneck_filters(net, block);
    case Architecture::hourglass: return hourglass_filters(net, block);
    case Architecture::uniform:
    case Architecture::dense: break;
  }
  return net.base_filters;
}

class CnnWriter {
 public:
  explicit CnnWriter(const CnnNet& net) : net_(net) {}

  core::Result<model::ModelGraph> write() && {
    writer_.check({{net_.channels, "channels"},
                   {net_.side, "side"},
                   {net_.classes, "classes"},
                   {net_.base_filters, "base_filters"},
                   {net_.kernel, "kernel"},
                   {net_.pooling_interval, "pooling_interval"}});
    writer_.check({{net_.depth, "depth"}}, kDeepest);
    if (net_.kernel % 2 == 0) writer_.fail("kernel is even; it must be odd");
    const Tensor image = writer_.input({net_.channels, net_.side, net_.side});
    if (writer_.going()) classifier(body(image));
    return std::move(writer_).build();
  }

 private:
  Tensor body(const Tensor& image) {
    if (net_.architecture == Architecture::residual) return residual(image);
    if (net_.architecture == Architecture::dense) return dense(image);
    Tensor tensor = image;
    for (std::int64_t at = 0; at < net_.depth; ++at) tensor = block(tensor, filters(net_, at));
    return tensor;
  }

  Tensor convolution(const Tensor& input, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
    if (!writer_.going()) return input;
    return writer_.add("conv2d", input,
                       {{"in_channels", input.size(1)},
                        {"out_channels", out},
                        {"kernel_size", std::vector{kernel, kernel}},
                        {"stride", std::vector{stride, stride}},
                        {"padding", std::vector{kernel / 2, kernel / 2}}});
  }

  Tensor block(const Tensor& input, std::int64_t out, std::int64_t stride = 1) {
    const Tensor convolved = convolution(input, out, net_.kernel, stride);
    const Tensor normed = writer_.batch_norm(convolved, net_.batch_norm);
    return writer_.dropout(writer_.activation(normed, net_.activation), net_.dropout_percent);
  }

  /// The shortcut, called first.
  Tensor shortcut(const Tensor& input, std::int64_t out, std::int64_t stride) {
    if (!writer_.going()) return input;
    if (input.size(1) == out && stride == 1) return writer_.activation(input, "identity");
    const Tensor fitted = convolution(input, out, 1, stride);
    return net_.batch_norm ? writer_.batch_norm(fitted, true) : writer_.activation(fitted, "identity");
  }

  Tensor residual(Tensor tensor) {
    std::int64_t side = net_.side;  // halved and rounded down, as the scripts reckon; a convolution rounds up
    for (std::int64_t pair = 0; pair < net_.depth / 2; ++pair) {
      const std::int64_t stride = pair % 2 == 1 && side > kLeastSide ? 2 : 1;
      const std::int64_t out = filters(net_, pair);
      const Tensor skipped = shortcut(tensor, out, stride);
      tensor = writer_.sum(block(block(tensor, out, stride), out), skipped);
      if (stride == 2) side /= 2;
      if (side <= kLeastSide) break;
    }
    return tensor;
  }

  Tensor concatenation(std::span<const Tensor> parts) {
    return writer_.add("concat", parts, {{"dim", std::int64_t{1}}});
  }

  Tensor dense_group(const Tensor& input) {
    constexpr int kBlocks = 4;
    constexpr std::int64_t kGrowth = 32;
    std::vector<Tensor> features = {input};
    for (int at = 0; at < kBlocks; ++at) features.push_back(block(concatenation(features), kGrowth));
    return concatenation(features);
  }

  Tensor transition(const Tensor& input) {
    if (!writer_.going()) return input;
    const Tensor halved = writer_.batch_norm(convolution(input, input.size(1) / 2, 1), net_.batch_norm);
    const Tensor active = writer_.activation(halved, "relu");
    if (!writer_.going() || active.width() < 2) return active;
    return writer_.add("avg_pool2d", active, {{"kernel_size", std::int64_t{2}}, {"stride", std::int64_t{2}}});
  }

  Tensor dense(Tensor tensor) {
    const std::int64_t groups = net_.depth / 4;
    for (std::int64_t group = 0; group < groups; ++group) {
      tensor = dense_group(tensor);
      const bool last = group == groups - 1;
      if (!last && group % net_.pooling_interval == 0) tensor = transition(tensor);
    }
    return tensor;
  }

  void classifier(const Tensor& features) {
    const Tensor pooled =
        writer_.add("adaptive_avg_pool2d", features, {{"output_size", std::vector<std::int64_t>{1, 1}}});
    writer_.head(writer_.add("flatten", pooled, {{"start_dim", std::int64_t{1}}}), net_.classes);
  }

  const CnnNet& net_;
  NetWriter writer_{"cnn"};
};

// Transformers.

class TransformerWriter {
 public:
  explicit TransformerWriter(const TransformerNet& net) : net_(net) {}

  core::Result<model::ModelGraph> write() && {
    writer_.check({{net_.vocabulary, "vocabulary"},
                   {net_.sequence, "sequence"},
                   {net_.embedding, "embedding"},
                   {net_.heads, "heads"},
                   {net_.feed_forward, "feed_forward"},
                   {net_.classes, "classes"}});
    writer_.check({{net_.layers, "layers"}}, kDeepest);
    if (writer_.going() && net_.embedding % net_.heads != 0) writer_.fail("heads do not divide the embedding");
    const Tensor ids = writer_.input({net_.sequence}, core::DType::int64);
    if (!writer_.going()) return std::move(writer_).build();
    Tensor tensor = embedded(ids);
    for (std::int64_t layer = 0; layer < net_.layers; ++layer) tensor = encoder_layer(tensor);
    const Tensor mean = writer_.add("mean", tensor, {{"dim", std::int64_t{1}}});
    writer_.linear(mean, net_.classes);
    return std::move(writer_).build();
  }

 private:
  Tensor embedded(const Tensor& ids) {
    const Tensor words =
        writer_.add("embedding", ids, {{"num_embeddings", net_.vocabulary}, {"embedding_dim", net_.embedding}});
    const Tensor positions = writer_.add(model::kParameterOp, std::span<const Tensor>(),
                                         {{"shape", std::vector<std::int64_t>{1, net_.sequence, net_.embedding}}});
    return writer_.sum(words, positions);
  }

  Tensor encoder_layer(const Tensor& input) {
    const Tensor middle = norm(writer_.sum(input, dropout(net_.packed ? packed_attention(input) : attention(input))));
    Tensor inner = writer_.activation(writer_.linear(middle, net_.feed_forward), net_.activation);
    if (net_.packed) inner = dropout(inner);  // nn.TransformerEncoderLayer's; BERT has none here
    return norm(writer_.sum(middle, dropout(writer_.linear(inner, net_.embedding))));
  }

  /// nn.MultiheadAttention.
  Tensor packed_attention(const Tensor& input) {
    const Tensor heads = writer_.add("multihead_attention", input,
                                     {{"embed_dim", net_.embedding},
                                      {"num_heads", net_.heads},
                                      {"dropout", NetWriter::share(net_.dropout_percent)},
                                      {"batch_first", true}});
    return writer_.linear(heads, net_.embedding, "NonDynamicallyQuantizableLinear");
  }

  /// Query, key and value apart, as HuggingFace's BERT has them.
  Tensor attention(const Tensor& input) {
    const Tensor qkv[] = {projection(input), projection(input), projection(input)};
    const Tensor heads = writer_.add("scaled_dot_product_attention", qkv,
                                     {{"dropout_p", NetWriter::share(net_.dropout_percent)}, {"is_causal", false}});
    const Tensor rows =
        writer_.add("reshape", exchanged(heads), {{"shape", std::vector<std::int64_t>{-1, net_.embedding}}});
    return writer_.linear(rows, net_.embedding);
  }

  /// [N, heads, S, d]
  Tensor projection(const Tensor& input) {
    const std::vector<std::int64_t> parted = {-1, net_.heads, net_.embedding / net_.heads};
    return exchanged(writer_.add("reshape", writer_.linear(input, net_.embedding), {{"shape", parted}}));
  }

  Tensor exchanged(const Tensor& input) {
    return writer_.add("permute", input, {{"dims", std::vector<std::int64_t>{0, 2, 1, 3}}});
  }

  Tensor norm(const Tensor& input) {
    return writer_.add("layer_norm", input, {{"normalized_shape", std::vector<std::int64_t>{net_.embedding}}});
  }

  Tensor dropout(const Tensor& input) { return writer_.dropout(input, net_.dropout_percent); }

  const TransformerNet& net_;
  NetWriter writer_{"transformer"};
};

}  // namespace

core::Result<model::ModelGraph> build(const MlpNet& net) {
  NetWriter writer("mlp");
  writer.check({{net.inputs, "inputs"}, {net.outputs, "outputs"}});
  writer.check({{net.depth, "depth"}}, kDeepest);
  if (net.architecture > Architecture::gradual) {
    writer.fail("an MLP is not " + std::string(model::name_of(kArchitectures, net.architecture)));
  }
  Tensor tensor = writer.input({net.inputs});
  if (writer.going()) {
    for (const std::int64_t width : hidden_widths(net)) {
      tensor = writer.batch_norm(writer.linear(tensor, width), net.batch_norm);
      tensor = writer.dropout(writer.activation(tensor, net.activation), net.dropout_percent);
    }
    writer.head(tensor, net.outputs);
  }
  return std::move(writer).build();
}

core::Result<model::ModelGraph> build(const CnnNet& net) { return CnnWriter(net).write(); }

core::Result<model::ModelGraph> build(const TransformerNet& net) { return TransformerWriter(net).write(); }

}  // namespace gpumem::train
