#pragma once

#include "gpumem/ml/network.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace gpumem::ml {

namespace network_detail {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/// A Linear while the network is made.
struct Linear {
  Matrix weight;
  Vector bias;
};

// --- Checks -----------------------------------------------------------------------------------------------------

GPUMEM_INLINE core::Error bad_tensor(const std::string& name, std::string message) {
  return {
      core::ErrorCode::malformed_input, "the tensor " + core::quoted(name) + " " + std::move(message), {{}, 0, name}};
}

GPUMEM_INLINE std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

GPUMEM_INLINE core::Status check_values(const Tensor& tensor) {
  std::size_t elements = 1;
  for (const std::int64_t size : tensor.shape) elements *= static_cast<std::size_t>(size);
  if (tensor.values.size() != elements) {
    return bad_tensor(tensor.name, "has " + std::to_string(tensor.values.size()) + " values; its shape says " +
                                       std::to_string(elements));
  }
  const bool variance = tensor.name.ends_with(".running_var");
  for (std::size_t at = 0; at < tensor.values.size(); ++at) {
    if (!std::isfinite(tensor.values[at])) {
      return bad_tensor(tensor.name, "holds no finite number at element " + std::to_string(at));
    }
    if (variance && tensor.values[at] < 0.0F) {
      return bad_tensor(tensor.name, "holds a variance below 0 at element " + std::to_string(at));
    }
  }
  return core::Done();
}

using TensorMap = std::unordered_map<std::string_view, const Tensor*>;

/// The tensors by name, if they are just those that the shape asks for.
GPUMEM_INLINE core::Result<TensorMap> checked_tensors(const NetworkShape& shape, const TensorFile& weights) {
  TensorMap left;
  for (const Tensor& tensor : weights.tensors) {
    if (!left.emplace(tensor.name, &tensor).second) return bad_tensor(tensor.name, "is there twice");
  }
  const TensorMap all = left;
  for (const TensorSpec& spec : tensors_of(shape)) {
    const auto found = left.find(spec.name);
    if (found == left.end()) return bad_tensor(spec.name, "is missing; the network needs it");
    const Tensor& tensor = *found->second;
    if (tensor.shape != spec.shape) {
      return bad_tensor(spec.name, "is " + text_of(tensor.shape) + "; the network needs " + text_of(spec.shape));
    }
    if (auto status = check_values(tensor); !status) return std::move(status).error();
    left.erase(found);
  }
  for (const Tensor& tensor : weights.tensors) {
    if (left.contains(tensor.name))
      return bad_tensor(tensor.name, "does not belong to this network: its shape has no such tensor");
  }
  return all;
}

// --- Making a network ---------------------------------------------------------------------------------------------

constexpr double kEpsilon = 1e-5;  // torch.nn.BatchNorm1d's

/// Reads checked tensors, in double precision.
class Source {
 public:
  explicit Source(const TensorMap& tensors) : tensors_(tensors) {}

  [[nodiscard]] Vector vector(const std::string& name) const {
    const Tensor& tensor = *tensors_.at(name);
    return Eigen::Map<const Eigen::VectorXf>(tensor.values.data(), tensor.shape[0]).cast<double>();
  }

  [[nodiscard]] Linear linear(const std::string& name) const {
    const Tensor& tensor = *tensors_.at(name + ".weight");
    using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Eigen::Map<const FloatMatrix> weight(tensor.values.data(), tensor.shape[0], tensor.shape[1]);
    return {weight.cast<double>(), vector(name + ".bias")};
  }

  /// BatchNorm as x * first + second.
  [[nodiscard]] std::pair<Vector, Vector> batch_norm(const std::string& name) const {
    Vector factor = vector(name + ".weight").array() / (vector(name + ".running_var").array() + kEpsilon).sqrt();
    Vector summand = vector(name + ".bias") - vector(name + ".running_mean").cwiseProduct(factor);
    return {std::move(factor), std::move(summand)};
  }

 private:
  const TensorMap& tensors_;
};

/// Writes weights down as float32, each array from a line on.
class Store {
 public:
  [[nodiscard]] std::int64_t array(const double* values, std::int64_t count) {
    const auto at = static_cast<std::int64_t>(floats_.size());
    floats_.resize(floats_.size() + static_cast<std::size_t>(rounded_up(count, kLine)), 0.0F);
    for (std::int64_t value = 0; value < count; ++value) set(at + value, values[value]);
    return at;
  }
  [[nodiscard]] std::int64_t array(const Vector& values) { return array(values.data(), values.size()); }

  [[nodiscard]] LinearAt linear(const Linear& linear) {
    const std::int64_t weight = array(linear.weight.data(), linear.weight.size());
    return {weight, array(linear.bias), linear.weight.cols(), linear.weight.rows()};
  }

  [[nodiscard]] std::int64_t zeros(std::int64_t count) { return array(Vector::Zero(count)); }

  void set(std::int64_t at, double value) {
    floats_[static_cast<std::size_t>(at)] = static_cast<float>(value);
    finite_ = finite_ && std::isfinite(floats_[static_cast<std::size_t>(at)]);
  }

  /// Whether every figure still is a number: a norm's may take a weight out of float's range.
  [[nodiscard]] bool finite() const { return finite_; }
  [[nodiscard]] Floats take() && { return std::move(floats_); }

 private:
  Floats floats_;
  bool finite_ = true;
};

GPUMEM_INLINE NormAt norm_at(const Source& source, const std::string& name, Store& store) {
  const std::int64_t weight = store.array(source.vector(name + ".weight"));
  return {weight, store.array(source.vector(name + ".bias"))};
}

/// PyTorch's usual module: pe[position, 2i] = sin(position exp(-2i ln(10000) / width)), pe[position, 2i + 1] = cos.
GPUMEM_INLINE std::int64_t positions_at(std::int64_t length, std::int64_t width, std::int64_t stride, Store& store) {
  const std::int64_t at = store.zeros(width * stride);
  for (std::int64_t unit = 0; unit < width; ++unit) {
    const auto even = static_cast<double>(unit - unit % 2);
    const double rate = std::exp(-even * std::log(10000.0) / static_cast<double>(width));
    for (std::int64_t position = 0; position < length; ++position) {
      const double angle = static_cast<double>(position) * rate;
      store.set(at + unit * stride + position, unit % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return at;
}

/// The queries take the scale of the scores, and log2(e) for an exponential that is 2^x.
GPUMEM_INLINE void scale_queries(const EncoderShape& shape, Linear& in_proj) {
  const double scale =
      std::log2(std::exp(1.0)) / std::sqrt(static_cast<double>(shape.width) / static_cast<double>(shape.heads));
  in_proj.weight.topRows(shape.width) *= scale;
  in_proj.bias.head(shape.width) *= scale;
}

/// Softmax over one element is 1: what a position finds is its own value.
GPUMEM_INLINE Linear value_of_itself(const Linear& in_proj, const Linear& out_proj) {
  const std::int64_t width = out_proj.weight.rows();
  return {out_proj.weight * in_proj.weight.bottomRows(width),
          out_proj.weight * in_proj.bias.tail(width) + out_proj.bias};
}

GPUMEM_INLINE EncoderLayer encoder_layer(const EncoderShape& shape, const Source& source, const std::string& name,
                                         Store& store) {
  EncoderLayer layer;
  Linear in_proj = source.linear(name + ".attention.in_proj");
  const Linear out_proj = source.linear(name + ".attention.out_proj");
  if (shape.attention == Attention::self) {
    layer.out_proj = store.linear(value_of_itself(in_proj, out_proj));
  } else {
    scale_queries(shape, in_proj);
    layer.in_proj = store.linear(in_proj);
    layer.out_proj = store.linear(out_proj);
  }
  layer.norm1 = norm_at(source, name + ".norm1", store);
  layer.linear1 = store.linear(source.linear(name + ".linear1"));
  layer.linear2 = store.linear(source.linear(name + ".linear2"));
  layer.norm2 = norm_at(source, name + ".norm2", store);
  return layer;
}

GPUMEM_INLINE Encoder make_encoder(const NetworkShape& network, const EncoderShape& shape, std::int64_t stride,
                                   const Source& source, const std::string& name, Store& store) {
  Encoder encoder;
  encoder.shape = shape;
  const bool norms = shape.embedding == Embedding::position_batch_norm;
  for (int step = 0; step < (norms ? 2 : 1); ++step) {
    const std::string prefix = name + "embedding." + std::to_string(step);
    encoder.embedding.push_back(store.linear(source.linear(prefix + ".linear")));
    if (!norms) continue;
    auto [factor, summand] = source.batch_norm(prefix + ".norm");
    factor.conservativeResizeLike(Vector::Zero(stride));
    summand.conservativeResizeLike(Vector::Zero(stride));
    const std::int64_t weight = store.array(factor);
    encoder.position_norms.push_back({weight, store.array(summand)});
  }
  encoder.positions = positions_at(network.sequence_length, shape.width, stride, store);
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    encoder.layers.push_back(encoder_layer(shape, source, name + "layers." + std::to_string(layer), store));
  }
  return encoder;
}

/// A member's Linears, BatchNorms folded in. `share` is its part of the network's mean.
GPUMEM_INLINE std::vector<Linear> member_linears(std::size_t hidden, double share, const Source& source,
                                                 const std::string& name) {
  std::vector<Linear> linears;
  for (std::size_t at = 0; at < hidden; ++at) {
    const std::string prefix = name + "hidden." + std::to_string(at);
    Linear linear = source.linear(prefix + ".linear");
    const auto [factor, summand] = source.batch_norm(prefix + ".norm");
    linear.weight = factor.asDiagonal() * linear.weight;
    linear.bias = linear.bias.cwiseProduct(factor) + summand;
    linears.push_back(std::move(linear));
  }
  Linear output = source.linear(name + "output");
  output.weight *= share;
  output.bias *= share;
  linears.push_back(std::move(output));
  return linears;
}

using MemberLinears = std::vector<std::vector<Linear>>;

/// One level of a group, laid out as PerceptronGroup says. A member that has ended passes on what it has, which ReLU
/// leaves as it is; the output waits for the last level.
GPUMEM_INLINE void fill_level(const std::vector<const std::vector<Linear>*>& members, std::size_t level,
                              std::size_t levels, std::int64_t in, std::int64_t at, Store& store) {
  for (std::size_t member = 0; member < members.size(); ++member) {
    const std::vector<Linear>& own = *members[member];
    const auto place = [&](std::int64_t unit, std::int64_t column) {
      return at + (unit * (in + 1) + column) * kGroupMembers + static_cast<std::int64_t>(member);
    };
    const bool last = level + 1 == levels;
    if (!last && level + 1 >= own.size()) {
      const std::int64_t width = own[own.size() - 2].weight.rows();
      for (std::int64_t unit = 0; unit < width; ++unit) store.set(place(unit, unit + 1), 1.0);
      continue;
    }
    const Linear& linear = last ? own.back() : own[level];
    for (std::int64_t unit = 0; unit < linear.weight.rows(); ++unit) {
      store.set(place(unit, 0), linear.bias[unit]);
      for (std::int64_t column = 0; column < linear.weight.cols(); ++column) {
        store.set(place(unit, column + 1), linear.weight(unit, column));
      }
    }
  }
}

/// The widths of a group's levels, input and outputs included.
GPUMEM_INLINE std::vector<std::int64_t> group_widths(const std::vector<const std::vector<Linear>*>& members) {
  std::vector<std::int64_t> widths = {members.front()->front().weight.cols()};
  const std::size_t hidden = members.back()->size() - 1;  // the deepest comes last
  for (std::size_t level = 0; level < hidden; ++level) {
    std::int64_t width = 0;
    for (const auto* member : members) {
      width = std::max<std::int64_t>(width, (*member)[std::min(level, member->size() - 2)].weight.rows());
    }
    widths.push_back(width);
  }
  widths.push_back(members.front()->back().weight.rows());
  return widths;
}

GPUMEM_INLINE GroupAt make_group(const std::vector<const std::vector<Linear>*>& members, Store& store) {
  GroupAt group{0, group_widths(members)};
  const std::size_t levels = group.widths.size() - 1;
  const auto size = [&](std::size_t level) {
    return group.widths[level + 1] * (group.widths[level] + 1) * kGroupMembers;
  };
  std::int64_t total = 0;
  for (std::size_t level = 0; level < levels; ++level) total += size(level);
  group.weights = store.zeros(total);
  std::int64_t at = group.weights;
  for (std::size_t level = 0; level < levels; ++level) {
    fill_level(members, level, levels, group.widths[level], at, store);
    at += size(level);
  }
  return group;
}

/// Whether it is worth padding to its neighbours' widths.
GPUMEM_INLINE bool is_small(const std::vector<Linear>& member) {
  constexpr std::int64_t kNarrow = 16;
  constexpr std::int64_t kFewOutputs = 64;
  if (member.size() < 2 || member.back().weight.rows() > kFewOutputs) return false;
  return std::all_of(member.begin(), member.end() - 1,
                     [](const Linear& hidden) { return hidden.weight.rows() <= kNarrow; });
}

/// Members of similar depth together: a group is as deep as its deepest.
GPUMEM_INLINE void make_groups(const MemberLinears& members, Branch& branch, Store& store) {
  std::vector<const std::vector<Linear>*> small;
  for (std::size_t member = 0; member < members.size(); ++member) {
    if (is_small(members[member])) small.push_back(&members[member]);
    else branch.wide.push_back(member);
  }
  std::stable_sort(small.begin(), small.end(),
                   [](const auto* left, const auto* right) { return left->size() < right->size(); });
  for (std::size_t first = 0; first < small.size(); first += kGroupMembers) {
    const std::size_t end = std::min(small.size(), first + static_cast<std::size_t>(kGroupMembers));
    branch.groups.push_back(make_group(
        {small.begin() + static_cast<std::ptrdiff_t>(first), small.begin() + static_cast<std::ptrdiff_t>(end)}, store));
  }
}

GPUMEM_INLINE Branch make_branch(const NetworkShape& network, std::size_t at, std::int64_t stride, const Source& source,
                                 Store& store) {
  const BranchShape& shape = network.branches[at];
  const std::string name = "branches." + std::to_string(at) + ".";
  Branch branch;
  branch.in = network.features + (shape.encoder ? shape.encoder->width : 0);
  if (shape.encoder) branch.encoder = make_encoder(network, *shape.encoder, stride, source, name + "encoder.", store);
  const double share = 1.0 / static_cast<double>(network.branches.size() * shape.members.size());
  MemberLinears members;
  for (std::size_t member = 0; member < shape.members.size(); ++member) {
    const std::string prefix = name + "members." + std::to_string(member) + ".";
    members.push_back(member_linears(shape.members[member].size(), share, source, prefix));
    Member& own = branch.members.emplace_back();
    for (const Linear& linear : members.back()) own.push_back(store.linear(linear));
  }
  make_groups(members, branch, store);
  return branch;
}

GPUMEM_INLINE Arena make_arena(const NetworkShape& network, std::int64_t stride) {
  std::int64_t in = 1;
  std::int64_t hidden = 1;
  std::int64_t width = 0;
  std::int64_t wide = network.sequence_columns;
  for (const BranchShape& branch : network.branches) {
    in = std::max(in, network.features + (branch.encoder ? branch.encoder->width : 0));
    for (const auto& member : branch.members) {
      for (const std::int64_t units : member) hidden = std::max(hidden, units);
    }
    if (!branch.encoder) continue;
    width = std::max(width, branch.encoder->width);
    wide = std::max({wide, 3 * branch.encoder->width, branch.encoder->feed_forward});
  }
  Arena arena;
  arena.half = hidden * kLaneBlock;
  const auto take = [&](std::int64_t count) {
    return std::exchange(arena.total, arena.total + rounded_up(count, kLine));
  };
  arena.input = take(in * kLaneBlock);
  arena.sums = take(network.outputs * kGroupMembers);
  arena.hidden = take(2 * arena.half);
  arena.outputs = take(network.outputs * kLaneBlock);
  arena.state = take(width * stride);
  arena.wide = take(width == 0 ? 0 : wide * stride);
  arena.narrow = take(width * stride);
  arena.scores = take(width == 0 ? 0 : network.sequence_length * kLaneBlock);
  return arena;
}

GPUMEM_INLINE core::Result<std::shared_ptr<const Compiled>> compile(const NetworkShape& shape,
                                                                    const TensorFile& weights,
                                                                    Instructions instructions) {
  if (auto status = validate(shape); !status) return std::move(status).error();
  const auto tensors = checked_tensors(shape, weights);
  if (!tensors) return tensors.error();
  const Source source(*tensors);
  Store store;
  auto compiled = std::make_shared<Compiled>();
  compiled->kernels = &kernels(instructions);
  compiled->instructions = std::min(instructions, best_instructions());
  compiled->stride = rounded_up(shape.sequence_length, kLaneBlock);
  for (std::size_t branch = 0; branch < shape.branches.size(); ++branch) {
    compiled->branches.push_back(make_branch(shape, branch, compiled->stride, source, store));
    if (!store.finite()) {
      return core::Error{core::ErrorCode::malformed_input,
                         "the weights of branch " + std::to_string(branch) +
                             " leave the range of float32 when its norms are applied: they are damaged",
                         {{}, 0, "branches." + std::to_string(branch)}};
    }
  }
  compiled->weights = std::move(store).take();
  compiled->arena = make_arena(shape, compiled->stride);
  return std::shared_ptr<const Compiled>(std::move(compiled));
}

}  // namespace network_detail

}  // namespace gpumem::ml
