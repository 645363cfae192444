// The one file that, with its parts in torch_network/, includes libtorch.
#include "torch_network.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "torch_network/encoder.hpp"
#include "torch_network/members.hpp"

namespace gpumem::train {

namespace {

using torch::Tensor;
using torch_network::Encoder;
using torch_network::Layouts;
using torch_network::Members;
using torch_network::Pass;
using torch_network::Sequences;
using torch_network::Sizes;

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
