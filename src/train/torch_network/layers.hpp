// Layers of a network, by where their parameters are in the flat tensors.
#pragma once

#include "flat_tensors.hpp"

namespace gpumem::train::torch_network {

inline constexpr double kNormEpsilon = 1e-5;
inline constexpr double kNormMomentum = 0.1;

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

  /// The channels are axis 1, members' one after the other.
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

}  // namespace gpumem::train::torch_network
