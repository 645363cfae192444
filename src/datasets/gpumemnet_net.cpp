#include "gpumem_datasets/runs_tables.hpp"

#include <charconv>
#include <cmath>

#include "gpumem/core/bytes.hpp"
#include "gpumem/model/graph_builder.hpp"

namespace gpumem::datasets {

namespace {

/// Reads a Python literal piece by piece, blanks ignored.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  [[nodiscard]] bool take(char mark) {
    skip();
    if (at_ == text_.size() || text_[at_] != mark) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] bool take_name(std::string_view& to) {
    if (!take('\'')) return false;
    const std::size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) return false;
    to = text_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }
  [[nodiscard]] bool take_count(std::int64_t& to) {
    skip();
    const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), to);
    at_ = static_cast<std::size_t>(read.ptr - text_.data());
    return read.ec == std::errc() && to >= 0;
  }
  [[nodiscard]] bool at_end() {
    skip();
    return at_ == text_.size();
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Layers that keep their input's shape and list no parameters, and the ops they are.
struct Activation {
  std::string_view listed;
  std::string_view op;
};
constexpr std::array<Activation, 13> kActivations = {{{"ReLU", "relu"},
                                                      {"LeakyReLU", "leaky_relu"},
                                                      {"PReLU", "prelu"},
                                                      {"ELU", "elu"},
                                                      {"SELU", "selu"},
                                                      {"GELU", "gelu"},
                                                      {"Tanh", "tanh"},
                                                      {"SiLU", "silu"},
                                                      {"Softplus", "softplus"},
                                                      {"Mish", "mish"},
                                                      {"Sigmoid", "sigmoid"},
                                                      {"Softmax", "softmax"},
                                                      {"Identity", "identity"}}};

const Activation* find_activation(std::string_view listed) {
  for (const Activation& row : kActivations) {
    if (row.listed == listed) return &row;
  }
  return nullptr;
}

bool is_batch_norm(std::string_view listed) { return listed == "batch_norm2d" || listed == "batch_normalization"; }

/// The side of a square of this area; 0 if it is none.
std::int64_t side_of(std::int64_t area) {
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(area))));
  return (core::Checked(side) * core::Checked(side)).value() == area ? side : 0;
}

/// A tensor on its way through the net: [N, channels, side, side], or [N, channels] where side is 0.
struct Tensor {
  model::LayerIndex index = model::kFirstGraphInput;
  std::int64_t channels = 0;
  std::int64_t side = 0;

  [[nodiscard]] core::Shape shape() const {
    core::Shape shape;
    shape.push_back(core::Dim::batch());
    shape.push_back(core::Dim::fixed(channels));
    if (side > 0) shape.push_back(core::Dim::fixed(side));
    if (side > 0) shape.push_back(core::Dim::fixed(side));
    return shape;
  }
};

/// Follows the list from its first row to its last, adding to the graph what each row means. After a failure every
/// step does nothing, and the builder holds the error.
class NetWriter {
 public:
  NetWriter(const GpumemnetNet& net, const model::Vocabulary& vocabulary, std::string_view file, std::int64_t line)
      : net_(net), vocabulary_(vocabulary), file_(file), line_(line), builder_("gpumemnet", file) {}

  core::Result<model::ModelGraph> write() && {
    if (net_.layers.empty()) fail("is all it holds");
    if (!plausible()) fail("follows an input of no usable size");
    const Tensor input{model::kFirstGraphInput, net_.channels, net_.side};
    if (!builder_.failed()) builder_.add_input({"input", input.shape(), core::DType::float32});
    if (net_.side == 0) mlp(input);
    else classifier(body(input));
    if (going() && at_ < net_.layers.size()) fail("is listed after the net's end");
    return std::move(builder_).build();
  }

 private:
  /// Far beyond any net of the sets, and far from overflow.
  static constexpr std::int64_t kLargest = std::int64_t{1} << 24;

  [[nodiscard]] bool plausible() const {
    return net_.channels >= 1 && net_.channels <= kLargest && net_.side >= 0 && net_.side <= kLargest;
  }

  // The list.

  [[nodiscard]] bool going() const { return !builder_.failed(); }
  /// The type listed `ahead` rows from here; empty behind the end.
  [[nodiscard]] std::string_view type(std::size_t ahead = 0) const {
    return at_ + ahead < net_.layers.size() ? net_.layers[at_ + ahead].type : std::string_view();
  }
  /// Whether rows are left, up to the pooling that ends a CNN's body.
  [[nodiscard]] bool in_body() const { return going() && !type().empty() && type() != "adaptive_avg_pool2d"; }
  /// The next row if it is of this type; else the net fails.
  const ListedLayer& take(std::string_view wanted) {
    static constexpr ListedLayer kNone;
    if (going() && type() != wanted) fail("is where a " + std::string(wanted) + " should be");
    return going() ? net_.layers[at_++] : kNone;
  }
  void fail(std::string_view why) {
    const std::string row =
        type().empty() ? "its end" : "layer " + std::to_string(at_ + 1) + ", " + core::quoted(type()) + ",";
    builder_.fail({core::ErrorCode::malformed_input, "the list of layers does not fit: " + row + " " + std::string(why),
                   core::Place{std::string(file_), line_, {}}});
  }
  /// Fails the row taken last.
  void fail_taken(std::string_view why) {
    if (!going()) return;
    --at_;
    fail(why);
  }

  // The graph.

  Tensor add(std::string_view op, std::span<const Tensor> inputs, Tensor output,
             std::span<const model::Attribute> attributes = {}, std::optional<std::int64_t> parameters = {}) {
    if (!going()) return output;
    std::vector<model::LayerIndex> edges;
    for (const Tensor& input : inputs) edges.push_back(input.index);
    const std::string name = std::string(op) + "_" + std::to_string(++added_);
    const core::Shape shape = output.shape();
    output.index = builder_.add({.name = name,
                                 .op = vocabulary_.find_op(op),
                                 .outputs = {&shape, 1},
                                 .inputs = edges,
                                 .attributes = attributes,
                                 .parameters = parameters,
                                 .line = line_});
    return output;
  }
  Tensor add(std::string_view op, const Tensor& input, Tensor output, std::span<const model::Attribute> attributes = {},
             std::optional<std::int64_t> parameters = {}) {
    return add(op, std::span(&input, 1), output, attributes, parameters);
  }

  // One row each.

  /// out channels out of parameters = out (in k^2 + 1), and the stride out of the sizes.
  Tensor convolution(const Tensor& input, std::int64_t kernel) {
    const ListedLayer& row = take("conv2d");
    if (!going()) return input;
    const std::int64_t per_output = input.channels * kernel * kernel + 1;
    Tensor output{0, row.parameters / per_output, side_of(row.activations)};
    if (output.channels < 1 || output.channels > kLargest || row.parameters % per_output != 0) {
      fail_taken("has parameters that no number of output channels gives");
    }
    const std::int64_t stride = output.side == input.side ? 1 : 2;
    if (going() && (output.side < 1 || output.side != (input.side - 1) / stride + 1)) {
      fail_taken("has an output that is neither its input's size nor half of it");
    }
    const model::Attribute attributes[] = {{"in_channels", input.channels},
                                           {"out_channels", output.channels},
                                           {"kernel_size", std::vector{kernel, kernel}},
                                           {"stride", std::vector{stride, stride}},
                                           {"padding", std::vector{kernel / 2, kernel / 2}}};
    return add("conv2d", input, output, attributes, row.parameters);
  }

  Tensor linear(const Tensor& input) {
    const ListedLayer& row = take("linear");
    if (!going()) return input;
    const Tensor output{0, row.activations, 0};
    const core::Checked parameters = core::Checked(output.channels) * (core::Checked(input.channels) + 1);
    if (output.channels < 1 || output.channels > kLargest || parameters.value() != row.parameters)
      fail_taken("has parameters that its sizes do not give");
    const model::Attribute attributes[] = {{"in_features", input.channels}, {"out_features", output.channels}};
    return add("linear", input, output, attributes, row.parameters);
  }

  /// A row that keeps its input's shape.
  void check_kept(const Tensor& input, const ListedLayer& row, std::int64_t parameters) {
    const std::int64_t listed = input.side > 0 ? input.side * input.side : input.channels;
    if (row.activations != listed) fail_taken("has an output of another size than its input");
    if (going() && row.parameters != parameters) fail_taken("has parameters that its sizes do not give");
  }

  Tensor batch_norm(const Tensor& input) {
    if (!going() || !is_batch_norm(type())) return input;
    const ListedLayer& row = take(type());
    check_kept(input, row, 2 * input.channels);
    const model::Attribute attributes[] = {{"num_features", input.channels}};
    return add("batch_norm", input, input, attributes, row.parameters);
  }

  Tensor activation(const Tensor& input) {
    const Activation* known = find_activation(type());
    if (known == nullptr) fail("is where an activation should be");
    if (!going()) return input;
    check_kept(input, take(type()), 0);
    if (known->op == "softmax") {
      const model::Attribute attributes[] = {{"dim", std::int64_t{1}}};
      return add(known->op, input, input, attributes);
    }
    if (known->op == "prelu") {
      const model::Attribute attributes[] = {{"num_parameters", std::int64_t{1}}};
      return add(known->op, input, input, attributes);
    }
    const model::Attribute attributes[] = {{"inplace", false}};
    return add(known->op, input, input, attributes);
  }

  Tensor dropout(const Tensor& input) {
    if (!going() || type() != "dropout") return input;
    check_kept(input, take("dropout"), 0);
    const model::Attribute attributes[] = {{"p", net_.dropout}, {"inplace", false}};
    return add("dropout", input, input, attributes);
  }

  /// A window of 2 x 2 that halves the image.
  Tensor pooling(std::string_view op, const Tensor& input) {
    const ListedLayer& row = take(type());
    const Tensor output{0, input.channels, input.side / 2};
    if (going() && (output.side < 1 || row.activations != output.side * output.side)) {
      fail_taken("has an output that is not half its input");
    }
    const model::Attribute attributes[] = {{"kernel_size", std::int64_t{2}}, {"stride", std::int64_t{2}}};
    return add(op, input, output, attributes);
  }

  // Several rows.

  Tensor block(const Tensor& input, std::int64_t kernel) {
    return dropout(activation(batch_norm(convolution(input, kernel))));
  }

  Tensor concatenation(std::span<const Tensor> parts) {
    Tensor whole{0, 0, parts[0].side};
    for (const Tensor& part : parts) {
      whole.channels += part.channels;
      if (part.side != whole.side) fail("is over images of different sizes");
    }
    const model::Attribute attributes[] = {{"dim", std::int64_t{1}}};
    return add("concat", parts, whole, attributes);
  }

  /// Whether the convolution listed here belongs to a shortcut: the next one follows without an activation.
  [[nodiscard]] bool at_shortcut() const {
    const std::size_t next = is_batch_norm(type(1)) || type(1) == "Identity" ? 2 : 1;
    return type() == "conv2d" && type(next) == "conv2d";
  }

  Tensor residual_block(const Tensor& input) {
    Tensor shortcut = input;
    if (at_shortcut()) shortcut = batch_norm(convolution(input, 1));
    if (going() && type() == "Identity") shortcut = activation(shortcut);
    const Tensor output = block(block(input, 3), 3);
    if (going() && (output.channels != shortcut.channels || output.side != shortcut.side)) {
      fail_taken("ends a block with an output of another shape than its shortcut");
    }
    const Tensor sum[] = {output, shortcut};
    return add("add", sum, output);
  }

  Tensor dense_group(const Tensor& input) {
    constexpr int kBlocks = 4;
    std::vector<Tensor> features = {input};
    for (int count = 0; count < kBlocks && going(); ++count) {
      features.push_back(block(concatenation(features), 3));
    }
    return concatenation(features);
  }

  /// Whether the row here is the 1 x 1 convolution to half the channels.
  [[nodiscard]] bool at_transition(const Tensor& input) const {
    if (!going() || type() != "conv2d" || input.channels < 2) return false;
    const core::Checked parameters = core::Checked(input.channels / 2) * (core::Checked(input.channels) + 1);
    return parameters.value() == net_.layers[at_].parameters;
  }

  Tensor transition(const Tensor& input) {
    const Tensor halved = block(input, 1);
    return type() == "d" ? pooling("avg_pool2d", halved) : halved;
  }

  Tensor body(Tensor tensor) {
    while (in_body()) {
      if (net_.architecture == "residual") tensor = residual_block(tensor);
      else if (net_.architecture == "dense" && at_transition(tensor)) tensor = transition(tensor);
      else if (net_.architecture == "dense") tensor = dense_group(tensor);
      else if (type() == "d" || type() == "max_pool2d") tensor = pooling("max_pool2d", tensor);
      else tensor = block(tensor, 3);
    }
    return tensor;
  }

  void classifier(const Tensor& input) {
    const ListedLayer& row = take("adaptive_avg_pool2d");
    if (going() && (row.activations != 1 || row.parameters != 0)) fail_taken("should pool to 1 x 1");
    const model::Attribute one[] = {{"output_size", std::vector<std::int64_t>{1, 1}}};
    const Tensor pooled = add("adaptive_avg_pool2d", input, Tensor{0, input.channels, 1}, one);
    const model::Attribute from[] = {{"start_dim", std::int64_t{1}}};
    const Tensor flat = add("flatten", pooled, Tensor{0, input.channels, 0}, from);
    const Tensor classes = linear(flat);
    if (going() && !type().empty()) activation(classes);
  }

  void mlp(Tensor tensor) {
    while (going() && !type().empty()) {
      if (type() == "linear") tensor = linear(tensor);
      else if (is_batch_norm(type())) tensor = batch_norm(tensor);
      else if (type() == "dropout") tensor = dropout(tensor);
      else tensor = activation(tensor);
    }
  }

  const GpumemnetNet& net_;
  const model::Vocabulary& vocabulary_;
  std::string_view file_;
  std::int64_t line_;
  model::GraphBuilder builder_;
  std::size_t at_ = 0;  ///< the next row of the list
  std::int64_t added_ = 0;
};

}  // namespace

core::Result<std::vector<ListedLayer>> parse_layer_list(std::string_view text) {
  Literal literal(text);
  std::vector<ListedLayer> layers;
  const core::Error broken{
      core::ErrorCode::malformed_input, "the list of layers is not of the form [('linear', 10, 110), ...]", {}};
  if (!literal.take('[')) return broken;
  while (!literal.take(']')) {
    if (!layers.empty() && !literal.take(',')) return broken;
    ListedLayer layer;
    const bool read = literal.take('(') && literal.take_name(layer.type) && literal.take(',') &&
                      literal.take_count(layer.activations) && literal.take(',') &&
                      literal.take_count(layer.parameters) && literal.take(')');
    if (!read) return broken;
    layers.push_back(layer);
  }
  if (!literal.at_end()) return broken;
  return layers;
}

core::Result<model::ModelGraph> build_net(const GpumemnetNet& net, const model::Vocabulary& vocabulary,
                                          std::string_view file, std::int64_t line) {
  return NetWriter(net, vocabulary, file, line).write();
}

}  // namespace gpumem::datasets
