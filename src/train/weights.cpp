#include "weights.hpp"

#include <cmath>
#include <string_view>

#include "shuffle.hpp"

namespace gpumem::train {

namespace {

bool is_output(std::string_view name, std::string_view part) {
  return name.find(".members.") != std::string_view::npos && name.ends_with(part);
}

/// A norm's tensors are the only ones of one axis except the biases.
float constant_of(std::string_view name) {
  const bool norm = name.find("norm") != std::string_view::npos;
  return norm && (name.ends_with(".weight") || name.ends_with(".running_var")) ? 1.0F : 0.0F;
}

/// Within which a tensor is uniform; 0: it is constant. `fan_in` is that of the Linear it belongs to.
double bound_of(const ml::TensorSpec& spec, std::int64_t fan_in) {
  constexpr double kGlorot = 6.0;
  const std::string_view name = spec.name;
  if (name.find("norm") != std::string_view::npos || name.ends_with("attention.in_proj.bias") ||
      name.ends_with("attention.out_proj.bias")) {
    return 0.0;
  }
  if (name.ends_with("attention.in_proj.weight")) {
    return std::sqrt(kGlorot / static_cast<double>(spec.shape[0] + spec.shape[1]));
  }
  return 1.0 / std::sqrt(static_cast<double>(fan_in));
}

}  // namespace

ml::TensorFile initial_weights(const ml::NetworkShape& shape, std::uint64_t seed) {
  ml::TensorFile file;
  Random random(seed, 0);
  std::int64_t fan_in = 1;
  for (const ml::TensorSpec& spec : ml::tensors_of(shape)) {
    if (spec.shape.size() == 2) fan_in = spec.shape[1];
    std::int64_t count = 1;
    for (const std::int64_t size : spec.shape) count *= size;
    std::vector<float> values(static_cast<std::size_t>(count), constant_of(spec.name));
    if (const double bound = bound_of(spec, fan_in); bound > 0.0) {
      for (float& value : values) value = static_cast<float>(uniform(-bound, bound, random));
    }
    file.tensors.push_back({spec.name, spec.shape, std::move(values)});
  }
  return file;
}

void fold_class_bias(ml::TensorFile& weights, double bias) {
  for (ml::Tensor& tensor : weights.tensors) {
    if (!is_output(tensor.name, ".output.bias")) continue;
    for (std::size_t output = 0; output < tensor.values.size(); ++output) {
      tensor.values[output] += static_cast<float>(bias * static_cast<double>(output));
    }
  }
}

void fold_target_scale(ml::TensorFile& weights, std::span<const TargetScale> targets) {
  for (ml::Tensor& tensor : weights.tensors) {
    const bool bias = is_output(tensor.name, ".output.bias");
    if (!bias && !is_output(tensor.name, ".output.weight")) continue;
    const std::size_t each = tensor.values.size() / targets.size();
    for (std::size_t index = 0; index < tensor.values.size(); ++index) {
      const TargetScale& target = targets[index / each];
      const double scaled = static_cast<double>(tensor.values[index]) * target.scale + (bias ? target.mean : 0.0);
      tensor.values[index] = static_cast<float>(scaled);
    }
  }
}

}  // namespace gpumem::train
