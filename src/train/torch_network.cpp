// The one file that includes libtorch.
#include "torch_network.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

namespace gpumem::train {

namespace {

using ml::Attention;
using ml::Embedding;
using ml::Pooling;
using torch::Tensor;
using Sizes = std::vector<std::int64_t>;

constexpr double kNormEpsilon = 1e-5;
constexpr double kNormMomentum = 0.1;

/// Tensors of one kind (the trained parameters, the running figures) laid out in one flat tensor, so that an
/// optimizer's step is a handful of calls. An entry holds tensors of one shape that are computed with at once, one
/// behind the other.
class Layout {
 public:
  std::size_t add(std::vector<std::string> names, Sizes shape) {
    const std::int64_t each = std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    lengths_.push_back(each * static_cast<std::int64_t>(names.size()));
    entries_.push_back({std::move(names), std::move(shape), each});
    return entries_.size() - 1;
  }

  [[nodiscard]] std::int64_t size() const { return std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0}); }

  /// Each entry as a view [tensors, shape...].
  [[nodiscard]] std::vector<Tensor> views(const Tensor& flat) const {
    std::vector<Tensor> all = flat.split_with_sizes(lengths_);
    for (std::size_t index = 0; index < all.size(); ++index) {
      Sizes shape = {static_cast<std::int64_t>(entries_[index].names.size())};
      shape.insert(shape.end(), entries_[index].shape.begin(), entries_[index].shape.end());
      all[index] = all[index].view(shape);
    }
    return all;
  }

  void read(const Tensor& flat, const ml::TensorFile& file) const {
    float* at = flat.data_ptr<float>();
    for (const Entry& entry : entries_) {
      for (const std::string& name : entry.names) {
        const ml::Tensor* tensor = file.find(name);
        TORCH_CHECK(tensor != nullptr && tensor->shape == entry.shape, "no weights of the shape of ", name);
        at = std::copy(tensor->values.begin(), tensor->values.end(), at);
      }
    }
  }

  void write(const Tensor& flat, ml::TensorFile& file) const {
    const float* at = flat.data_ptr<float>();
    for (const Entry& entry : entries_) {
      for (const std::string& name : entry.names) {
        file.tensors.push_back({name, entry.shape, std::vector<float>(at, at + entry.each)});
        at += entry.each;
      }
    }
  }

  /// 1 for the figures of matrices, 0 for others.
  [[nodiscard]] Tensor matrices() const {
    Tensor mask = torch::zeros({size()});
    const std::vector<Tensor> parts = mask.split_with_sizes(lengths_);
    for (std::size_t index = 0; index < parts.size(); ++index) {
      if (entries_[index].shape.size() == 2) parts[index].fill_(1.0);
    }
    return mask;
  }

 private:
  struct Entry {
    std::vector<std::string> names;
    Sizes shape;
    std::int64_t each = 0;
  };
  std::vector<Entry> entries_;
  Sizes lengths_;
};

/// Where the parts of a network note their parameters and running figures.
struct Layouts {
  Layout parameters;
  Layout running;
};

/// One pass through the network: the views of its parameters, and whether it trains.
struct Pass {
  std::vector<Tensor> parameters;
  std::vector<Tensor> running;
  bool training = false;
  double dropout = 0.0;
  double encoder_dropout = 0.0;
  mutable at::Generator generator;

  [[nodiscard]] Tensor drop(const Tensor& input) const { return drop(input, dropout); }
  [[nodiscard]] Tensor drop_in_encoder(const Tensor& input) const { return drop(input, encoder_dropout); }

 private:
  [[nodiscard]] Tensor drop(const Tensor& input, double share) const {
    if (!training || share <= 0.0) return input;
    const Tensor kept = torch::empty_like(input).bernoulli_(1.0 - share, generator).div_(1.0 - share);
    return input * kept;
  }
};

/// The names of one tensor of several members.
std::vector<std::string> named(const std::vector<std::string>& prefixes, const std::string& name) {
  std::vector<std::string> all;
  for (const std::string& prefix : prefixes) all.push_back(prefix + name);
  return all;
}

struct Linear {
  std::size_t weight = 0;
  std::size_t bias = 0;

  Linear() = default;
  Linear(Layouts& layouts, const std::vector<std::string>& prefixes, std::int64_t in, std::int64_t out)
      : weight(layouts.parameters.add(named(prefixes, "weight"), {out, in})),
        bias(layouts.parameters.add(named(prefixes, "bias"), {out})) {}

  /// Of a single one, over the last axis.
  [[nodiscard]] Tensor operator()(const Pass& pass, const Tensor& input) const {
    return torch::linear(input, pass.parameters[weight][0], pass.parameters[bias][0]);
  }
  /// Of all members over the same input: [in, N] to [members, out, N].
  [[nodiscard]] Tensor of_shared(const Pass& pass, const Tensor& input) const {
    const Tensor& all = pass.parameters[weight];
    const std::int64_t rows = all.size(0) * all.size(1);
    const Tensor output = torch::addmm(pass.parameters[bias].view({rows, 1}), all.view({rows, all.size(2)}), input);
    return output.view({all.size(0), all.size(1), input.size(1)});
  }
  /// Of each member over its own: [members, in, N] to [members, out, N].
  [[nodiscard]] Tensor of_each(const Pass& pass, const Tensor& input) const {
    return torch::baddbmm(pass.parameters[bias].unsqueeze(2), pass.parameters[weight], input);
  }
};

struct BatchNorm {
  std::size_t weight = 0;
  std::size_t bias = 0;
  std::size_t mean = 0;
  std::size_t variance = 0;

  BatchNorm() = default;
  BatchNorm(Layouts& layouts, const std::vector<std::string>& prefixes, std::int64_t channels)
      : weight(layouts.parameters.add(named(prefixes, "weight"), {channels})),
        bias(layouts.parameters.add(named(prefixes, "bias"), {channels})),
        mean(layouts.running.add(named(prefixes, "running_mean"), {channels})),
        variance(layouts.running.add(named(prefixes, "running_var"), {channels})) {}

  /// The channels are axis 1, members' one behind the other.
  [[nodiscard]] Tensor operator()(const Pass& pass, const Tensor& input) const {
    return torch::batch_norm(input, pass.parameters[weight].view(-1), pass.parameters[bias].view(-1),
                             pass.running[mean].view(-1), pass.running[variance].view(-1), pass.training, kNormMomentum,
                             kNormEpsilon, false);
  }
};

struct LayerNorm {
  std::size_t weight = 0;
  std::size_t bias = 0;

  LayerNorm(Layouts& layouts, const std::string& prefix, std::int64_t width)
      : weight(layouts.parameters.add({prefix + "weight"}, {width})),
        bias(layouts.parameters.add({prefix + "bias"}, {width})) {}

  [[nodiscard]] Tensor operator()(const Pass& pass, const Tensor& input) const {
    return torch::layer_norm(input, {input.size(-1)}, pass.parameters[weight][0], pass.parameters[bias][0],
                             kNormEpsilon, false);
  }
};

// The ensemble. Figures stand as [members, width, examples]: the norms and the products of members of like width are
// then one call over contiguous memory.

/// Members of a branch whose layer at some depth has the same widths.
struct Stack {
  std::vector<std::size_t> members;
  std::int64_t in = 0;
  std::int64_t out = 0;
  Linear linear;
  BatchNorm norm;  ///< not for output layers

  [[nodiscard]] std::vector<std::string> prefixes(const std::string& branch, const std::string& layer) const {
    std::vector<std::string> all;
    for (const std::size_t member : members) all.push_back(branch + "members." + std::to_string(member) + "." + layer);
    return all;
  }
};

/// Adds a member to the stack of its widths.
void stack(std::vector<Stack>& stacks, std::size_t member, std::int64_t in, std::int64_t out) {
  const auto same =
      std::find_if(stacks.begin(), stacks.end(), [&](const Stack& one) { return one.in == in && one.out == out; });
  if (same != stacks.end()) same->members.push_back(member);
  else stacks.push_back({{member}, in, out, {}, {}});
}

/// What a level gave: one tensor a stack.
struct Given {
  const std::vector<Stack>* stacks = nullptr;
  std::vector<Tensor> outputs;

  /// The figures that this stack's members read, [members, in, N].
  [[nodiscard]] Tensor of(const Stack& wanted) const {
    std::vector<Tensor> parts;
    std::vector<std::size_t> present;
    for (std::size_t index = 0; index < stacks->size(); ++index) {
      const Stack& stack = (*stacks)[index];
      if (stack.out != wanted.in) continue;
      parts.push_back(outputs[index]);
      present.insert(present.end(), stack.members.begin(), stack.members.end());
    }
    const Tensor all = parts.size() == 1 ? parts[0] : torch::cat(parts);
    if (present == wanted.members) return all;
    Sizes places;
    for (const std::size_t member : wanted.members) {
      places.push_back(std::find(present.begin(), present.end(), member) - present.begin());
    }
    return all.index_select(0, torch::tensor(places));
  }
};

class Members {
 public:
  Members(Layouts& layouts, const std::string& branch, const std::vector<Sizes>& widths, std::int64_t in,
          std::int64_t outputs) {
    std::size_t deepest = 0;
    for (const Sizes& hidden : widths) deepest = std::max(deepest, hidden.size());
    hidden_.resize(deepest);
    outputs_.resize(deepest + 1);
    for (std::size_t member = 0; member < widths.size(); ++member) {
      std::int64_t width = in;
      for (std::size_t depth = 0; depth < widths[member].size(); ++depth) {
        stack(hidden_[depth], member, width, widths[member][depth]);
        width = widths[member][depth];
      }
      stack(outputs_[widths[member].size()], member, width, outputs);
    }
    note(layouts, branch);
  }

  /// [in, N] to what each member says, [members, outputs, N].
  [[nodiscard]] Tensor operator()(const Pass& pass, const Tensor& input) const {
    std::vector<Tensor> each;
    Given given;
    for (std::size_t depth = 0; depth < outputs_.size(); ++depth) {
      for (const Stack& stack : outputs_[depth]) each.push_back(read(pass, stack, given, input));
      if (depth < hidden_.size()) given = level(pass, hidden_[depth], given, input);
    }
    return torch::cat(each);
  }

 private:
  void note(Layouts& layouts, const std::string& branch) {
    for (std::size_t depth = 0; depth < hidden_.size(); ++depth) {
      const std::string layer = "hidden." + std::to_string(depth) + ".";
      for (Stack& stack : hidden_[depth]) {
        stack.linear = Linear(layouts, stack.prefixes(branch, layer + "linear."), stack.in, stack.out);
        stack.norm = BatchNorm(layouts, stack.prefixes(branch, layer + "norm."), stack.out);
      }
    }
    for (auto& stacks : outputs_) {
      for (Stack& stack : stacks) {
        stack.linear = Linear(layouts, stack.prefixes(branch, "output."), stack.in, stack.out);
      }
    }
  }

  static Tensor read(const Pass& pass, const Stack& stack, const Given& given, const Tensor& input) {
    if (given.stacks == nullptr) return stack.linear.of_shared(pass, input);
    return stack.linear.of_each(pass, given.of(stack));
  }

  static Given level(const Pass& pass, const std::vector<Stack>& stacks, const Given& given, const Tensor& input) {
    Given next{&stacks, {}};
    for (const Stack& stack : stacks) {
      const Tensor read_in = read(pass, stack, given, input);
      const Sizes shape = read_in.sizes().vec();
      const Tensor normed = stack.norm(pass, read_in.reshape({1, shape[0] * shape[1], shape[2]}));
      next.outputs.push_back(pass.drop(torch::relu(normed)).view(shape));
    }
    return next;
  }

  std::vector<std::vector<Stack>> hidden_;   ///< by depth
  std::vector<std::vector<Stack>> outputs_;  ///< by the hidden layers before them
};

/// Sinusoidal positions (Vaswani et al. 2017), [length, width].
Tensor positions(std::int64_t length, std::int64_t width) {
  constexpr double kBase = 10000.0;
  Tensor all = torch::zeros({length, width});
  auto figures = all.accessor<float, 2>();
  for (std::int64_t row = 0; row < length; ++row) {
    for (std::int64_t column = 0; column < width; ++column) {
      const double rate = std::pow(kBase, -static_cast<double>(column / 2 * 2) / static_cast<double>(width));
      const double angle = static_cast<double>(row) * rate;
      figures[row][column] = static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return all;
}

struct EncoderLayer {
  Linear in_proj, out_proj;
  LayerNorm norm1;
  Linear linear1, linear2;
  LayerNorm norm2;

  EncoderLayer(Layouts& layouts, const std::string& prefix, const ml::EncoderShape& shape)
      : in_proj(layouts, {prefix + "attention.in_proj."}, shape.width, 3 * shape.width),
        out_proj(layouts, {prefix + "attention.out_proj."}, shape.width, shape.width),
        norm1(layouts, prefix + "norm1.", shape.width),
        linear1(layouts, {prefix + "linear1."}, shape.width, shape.feed_forward),
        linear2(layouts, {prefix + "linear2."}, shape.feed_forward, shape.width),
        norm2(layouts, prefix + "norm2.", shape.width) {}

  /// [N, S, width]; `padding` is [N, 1, 1, S].
  [[nodiscard]] Tensor operator()(const Pass& pass, const Tensor& input, const Tensor& padding,
                                  const ml::EncoderShape& shape) const {
    const Tensor attended = out_proj(pass, attend(in_proj(pass, input), padding, shape));
    const Tensor middle = norm1(pass, input + pass.drop_in_encoder(attended));
    const Tensor forward = linear2(pass, pass.drop_in_encoder(torch::relu(linear1(pass, middle))));
    return norm2(pass, middle + pass.drop_in_encoder(forward));
  }

 private:
  static Tensor attend(const Tensor& projected, const Tensor& padding, const ml::EncoderShape& shape) {
    const std::int64_t examples = projected.size(0);
    const std::int64_t rows = projected.size(1);
    if (shape.attention == Attention::self) return projected.narrow(2, 2 * shape.width, shape.width);
    const std::int64_t each = shape.width / shape.heads;
    const Tensor parts = projected.view({examples, rows, 3, shape.heads, each}).permute({2, 0, 3, 1, 4});
    const Tensor scores = torch::matmul(parts[0] / std::sqrt(static_cast<double>(each)), parts[1].transpose(2, 3));
    // Not infinity: where all is padding, that would give no numbers. Such a sequence attends to zeros.
    constexpr double kNever = -1e30;
    const Tensor weights = torch::softmax(scores.masked_fill(padding, kNever), -1).masked_fill(padding, 0.0);
    return torch::matmul(weights, parts[2]).transpose(1, 2).reshape({examples, rows, shape.width});
  }
};

/// In parts: where padding may be cut, of sequences of like length, each padded only as far as it needs.
struct Sequences {
  struct Part {
    Tensor figures;  ///< [examples, S, columns]
    Tensor valid;    ///< [examples, S]
  };
  std::vector<Part> parts;
  Tensor places;  ///< where each example stands in the parts
};

class Encoder {
 public:
  Encoder(Layouts& layouts, const std::string& branch, const ml::EncoderShape& shape, std::int64_t length,
          std::int64_t columns)
      : shape_(shape), positions_(positions(length, shape.width)) {
    const std::string prefix = branch + "encoder.";
    const int embeddings = shape.embedding == Embedding::linear ? 1 : 2;
    for (int index = 0; index < embeddings; ++index) {
      const std::string embedding = prefix + "embedding." + std::to_string(index) + ".";
      embeddings_.emplace_back(layouts, std::vector{embedding + "linear."}, index == 0 ? columns : shape.width,
                               shape.width);
      if (embeddings == 2) norms_.emplace_back(layouts, std::vector{embedding + "norm."}, length);
    }
    for (std::int64_t index = 0; index < shape.layers; ++index) {
      layers_.emplace_back(layouts, prefix + "layers." + std::to_string(index) + ".", shape);
    }
  }

  /// Whether padding changes nothing, so that it may be cut.
  [[nodiscard]] bool ignores_padding() const { return norms_.empty() && shape_.pooling == Pooling::mean; }

  /// All examples' pooled figures, [N, width].
  [[nodiscard]] Tensor operator()(const Pass& pass, const Sequences& sequences) const {
    std::vector<Tensor> pooled;
    for (const Sequences::Part& part : sequences.parts) pooled.push_back((*this)(pass, part.figures, part.valid));
    return pass.drop_in_encoder(torch::cat(pooled).index_select(0, sequences.places));
  }

 private:
  /// [N, S, columns] to [N, width]; `valid` is [N, S], 1 for what is not padding.
  [[nodiscard]] Tensor operator()(const Pass& pass, const Tensor& sequences, const Tensor& valid) const {
    Tensor figures = embed(pass, sequences) + positions_.narrow(0, 0, sequences.size(1));
    const Tensor padding = valid.eq(0).unsqueeze(1).unsqueeze(2);
    for (const EncoderLayer& layer : layers_) figures = layer(pass, figures, padding, shape_);
    if (shape_.pooling == Pooling::sum) return figures.sum(1);
    return (figures * valid.unsqueeze(2)).sum(1) / valid.sum(1, true).clamp_min(1.0);
  }

  [[nodiscard]] Tensor embed(const Pass& pass, const Tensor& sequences) const {
    Tensor figures = sequences;
    for (std::size_t index = 0; index < embeddings_.size(); ++index) {
      figures = embeddings_[index](pass, figures);
      if (!norms_.empty()) figures = torch::relu(norms_[index](pass, figures));
    }
    return figures;
  }

  ml::EncoderShape shape_;
  Tensor positions_;
  std::vector<Linear> embeddings_;
  std::vector<BatchNorm> norms_;
  std::vector<EncoderLayer> layers_;
};

struct Branch {
  std::unique_ptr<Encoder> encoder;
  Members members;

  Branch(Layouts& layouts, const ml::NetworkShape& shape, std::size_t index)
      : encoder(make_encoder(layouts, shape, index)),
        members(layouts, prefix(index), shape.branches[index].members,
                shape.features + (shape.branches[index].encoder ? shape.branches[index].encoder->width : 0),
                shape.outputs) {}

  static std::string prefix(std::size_t index) { return "branches." + std::to_string(index) + "."; }
  static std::unique_ptr<Encoder> make_encoder(Layouts& layouts, const ml::NetworkShape& shape, std::size_t index) {
    const auto& encoder = shape.branches[index].encoder;
    if (!encoder) return nullptr;
    return std::make_unique<Encoder>(layouts, prefix(index), *encoder, shape.sequence_length, shape.sequence_columns);
  }
};

/// Some examples as tensors.
struct Inputs {
  Tensor features;  ///< [features, N]
  Sequences sequences;
};

/// A view of the caller's figures.
template <typename Value>
Tensor view_of(const std::vector<Value>& values, Sizes shape) {
  const auto type = std::is_same_v<Value, float> ? torch::kFloat32 : torch::kInt64;
  return torch::from_blob(const_cast<Value*>(values.data()), shape, type);  // never written to
}

Tensor loss_of(const Tensor& outputs, const Examples& examples, const Tensor& rows, const Objective& objective) {
  if (objective.loss == Loss::cross_entropy) {
    const Tensor classes = view_of(examples.classes, {examples.count}).index_select(0, rows);
    return torch::cross_entropy_loss(outputs, classes, {}, at::Reduction::Mean, -100, objective.label_smoothing);
  }
  const Tensor targets = view_of(examples.targets, {examples.count, outputs.size(1)}).index_select(0, rows);
  if (objective.loss == Loss::squared) return torch::mse_loss(outputs, targets);
  if (objective.loss == Loss::mixture) {
    const Tensor spreads = torch::tensor(objective.spreads).to(torch::kFloat32);
    const Tensor densities = torch::log_softmax(outputs, 1) - targets.abs() / spreads - (2.0 * spreads).log();
    return -torch::logsumexp(densities, 1).mean();
  }
  if (objective.loss == Loss::huber) return torch::huber_loss(outputs, targets);
  const Tensor quantiles = torch::tensor(objective.quantiles).to(torch::kFloat32);
  const Tensor over = targets - outputs;
  return torch::maximum(quantiles * over, (quantiles - 1.0) * over).mean();
}

}  // namespace

class TorchNetwork::Implementation {
 public:
  explicit Implementation(const ml::NetworkShape& shape) : shape_(shape) {
    // Process-wide, and the same for every network here.
    torch::set_num_threads(1);
    at::globalContext().setDeterministicAlgorithms(true, false);
    for (std::size_t index = 0; index < shape.branches.size(); ++index) branches_.emplace_back(layouts_, shape, index);
    flat_ = torch::zeros({layouts_.parameters.size()});
    running_ = torch::zeros({layouts_.running.size()});
    first_ = torch::zeros_like(flat_);
    second_ = torch::zeros_like(flat_);
    matrices_ = layouts_.parameters.matrices();
    flat_.requires_grad_(true);
  }

  void read(const ml::TensorFile& weights) {
    const torch::NoGradGuard no_grad;
    layouts_.parameters.read(flat_, weights);
    layouts_.running.read(running_, weights);
  }

  /// In the order of tensors_of().
  [[nodiscard]] ml::TensorFile weights() const {
    ml::TensorFile unordered;
    layouts_.parameters.write(flat_.detach(), unordered);
    layouts_.running.write(running_, unordered);
    ml::TensorFile ordered;
    for (const ml::TensorSpec& spec : ml::tensors_of(shape_)) ordered.tensors.push_back(*unordered.find(spec.name));
    return ordered;
  }

  [[nodiscard]] TrainingState state() const {
    TrainingState state;
    state.weights = weights();
    layouts_.parameters.write(first_, state.first_moment);
    layouts_.parameters.write(second_, state.second_moment);
    state.steps = steps_;
    return state;
  }
  void restore(const TrainingState& state) {
    read(state.weights);
    layouts_.parameters.read(first_, state.first_moment);
    layouts_.parameters.read(second_, state.second_moment);
    steps_ = state.steps;
  }

  double step(const Examples& examples, std::span<const std::int64_t> batch, const Objective& objective,
              const StepOptions& options) {
    const Tensor rows = torch::tensor(Sizes(batch.begin(), batch.end()));
    Pass pass = pass_of(true);
    pass.dropout = options.dropout;
    pass.encoder_dropout = options.encoder_dropout;
    pass.generator = at::detail::createCPUGenerator(options.seed);
    const Tensor loss = training_loss(pass, examples, rows, objective);
    flat_.mutable_grad() = Tensor();
    loss.backward();
    update(options);
    return loss.item<double>();
  }

  [[nodiscard]] std::vector<float> run(const Examples& examples) const {
    std::vector<float> all;
    for_each_part(examples, [&](const Tensor& outputs, const Tensor&) {
      const float* figures = outputs.data_ptr<float>();
      all.insert(all.end(), figures, figures + outputs.numel());
    });
    return all;
  }

  [[nodiscard]] double loss(const Examples& examples, const Objective& objective) const {
    double sum = 0.0;
    for_each_part(examples, [&](const Tensor& outputs, const Tensor& rows) {
      sum += loss_of(outputs, examples, rows, objective).item<double>() * static_cast<double>(rows.size(0));
    });
    return examples.count > 0 ? sum / static_cast<double>(examples.count) : 0.0;
  }

 private:
  [[nodiscard]] Pass pass_of(bool training) const {
    return {layouts_.parameters.views(flat_), layouts_.running.views(running_), training, 0.0, 0.0, {}};
  }

  template <typename Visit>
  void for_each_part(const Examples& examples, const Visit& visit) const {
    constexpr std::int64_t kAtOnce = 1024;
    const torch::NoGradGuard no_grad;
    const Pass pass = pass_of(false);
    for (std::int64_t first = 0; first < examples.count; first += kAtOnce) {
      const Tensor rows = torch::arange(first, std::min(first + kAtOnce, examples.count));
      visit(forward(pass, inputs_of(examples, rows)), rows);
    }
  }

  [[nodiscard]] Inputs inputs_of(const Examples& examples, const Tensor& rows) const {
    Inputs inputs;
    inputs.features =
        view_of(examples.features, {examples.count, shape_.features}).index_select(0, rows).t().contiguous();
    if (shape_.sequence_columns == 0) return inputs;
    inputs.sequences = sequences_of(examples, rows);
    return inputs;
  }

  [[nodiscard]] Sequences sequences_of(const Examples& examples, const Tensor& rows) const {
    constexpr std::int64_t kPart = 64;
    const Tensor all = view_of(examples.sequences, {examples.count, shape_.sequence_length, shape_.sequence_columns});
    const Tensor lengths = view_of(examples.lengths, {examples.count}).index_select(0, rows);
    const bool cut = padding_may_be_cut();
    const Tensor order = cut ? lengths.argsort(/*stable=*/true) : torch::arange(rows.size(0));
    Sequences sequences;
    sequences.places = order.argsort();
    for (const Tensor& part : order.split(cut ? kPart : order.size(0))) {
      const Tensor own = lengths.index_select(0, part);
      const std::int64_t longest =
          cut ? std::max<std::int64_t>(1, own.max().item<std::int64_t>()) : shape_.sequence_length;
      sequences.parts.push_back({all.narrow(1, 0, longest).index_select(0, rows.index_select(0, part)),
                                 torch::arange(longest).unsqueeze(0).lt(own.unsqueeze(1)).to(torch::kFloat32)});
    }
    return sequences;
  }

  [[nodiscard]] bool padding_may_be_cut() const {
    return std::all_of(branches_.begin(), branches_.end(), [](const Branch& branch) {
      return branch.encoder == nullptr || branch.encoder->ignores_padding();
    });
  }

  /// What the members of each branch say, [members, outputs, N].
  [[nodiscard]] std::vector<Tensor> forward_each(const Pass& pass, const Inputs& inputs) const {
    std::vector<Tensor> each;
    for (const Branch& branch : branches_) {
      Tensor read = inputs.features;
      if (branch.encoder != nullptr) {
        read = torch::cat({(*branch.encoder)(pass, inputs.sequences).t(), inputs.features});
      }
      each.push_back(branch.members(pass, read));
    }
    return each;
  }

  /// [N, outputs]
  [[nodiscard]] Tensor forward(const Pass& pass, const Inputs& inputs) const {
    Tensor sum;
    for (const Tensor& each : forward_each(pass, inputs)) {
      const Tensor part = each.mean(0);
      sum = sum.defined() ? sum + part : part;
    }
    return (sum / static_cast<double>(branches_.size())).t().contiguous();
  }

  /// The loss of the network's outputs, or the mean of its members' own.
  [[nodiscard]] Tensor training_loss(const Pass& pass, const Examples& examples, const Tensor& rows,
                                     const Objective& objective) const {
    const Inputs inputs = inputs_of(examples, rows);
    if (!objective.members_alone) return loss_of(forward(pass, inputs), examples, rows, objective);
    const Tensor each = torch::cat(forward_each(pass, inputs)).transpose(1, 2);  // [members, N, outputs]
    const Tensor outputs = each.reshape({each.size(0) * each.size(1), each.size(2)});
    return loss_of(outputs, examples, rows.repeat({each.size(0)}), objective);
  }

  void update(const StepOptions& options) {
    constexpr double kBeta1 = 0.9;
    constexpr double kBeta2 = 0.999;
    constexpr double kEpsilon = 1e-8;
    const torch::NoGradGuard no_grad;
    Tensor gradient = flat_.grad();
    if (options.gradient_clip > 0.0) {
      const double length = gradient.norm().item<double>();
      if (length > options.gradient_clip) gradient.mul_(options.gradient_clip / length);
    }
    ++steps_;
    first_.mul_(kBeta1).add_(gradient, 1.0 - kBeta1);
    second_.mul_(kBeta2).addcmul_(gradient, gradient, 1.0 - kBeta2);
    const auto power = static_cast<double>(steps_);
    const Tensor root = (second_ / (1.0 - std::pow(kBeta2, power))).sqrt_().add_(kEpsilon);
    if (options.weight_decay > 0.0) {
      flat_.addcmul_(flat_, matrices_, -options.learning_rate * options.weight_decay);
    }
    flat_.addcdiv_(first_, root, -options.learning_rate / (1.0 - std::pow(kBeta1, power)));
  }

  ml::NetworkShape shape_;
  Layouts layouts_;
  std::vector<Branch> branches_;
  Tensor flat_, running_, first_, second_, matrices_;
  std::int64_t steps_ = 0;
};

TorchNetwork::TorchNetwork(const ml::NetworkShape& shape, const ml::TensorFile& weights)
    : implementation_(std::make_unique<Implementation>(shape)) {
  implementation_->read(weights);
}

TorchNetwork::~TorchNetwork() = default;

double TorchNetwork::step(const Examples& examples, std::span<const std::int64_t> batch, const Objective& objective,
                          const StepOptions& options) {
  return implementation_->step(examples, batch, objective, options);
}

std::vector<float> TorchNetwork::run(const Examples& examples) const { return implementation_->run(examples); }

double TorchNetwork::loss(const Examples& examples, const Objective& objective) const {
  return implementation_->loss(examples, objective);
}

ml::TensorFile TorchNetwork::weights() const { return implementation_->weights(); }
TrainingState TorchNetwork::state() const { return implementation_->state(); }
void TorchNetwork::restore(const TrainingState& state) { implementation_->restore(state); }

const char* torch_version() { return TORCH_VERSION; }

}  // namespace gpumem::train
