#pragma once

#include "gpumem/ml/network.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpumem::ml {

namespace network_detail {

constexpr std::size_t kAlignment = 64;
constexpr std::int64_t kLine = kAlignment / sizeof(float);

/// Memory that begins at a cache line, so that no vector of weights lies across two.
template <typename T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <typename Other>
  LineAllocator(const LineAllocator<Other>& /*other*/) {}  // NOLINT: allocators convert
  [[nodiscard]] T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(kAlignment)));
  }
  void deallocate(T* memory, std::size_t /*count*/) { ::operator delete(memory, std::align_val_t(kAlignment)); }
  friend bool operator==(const LineAllocator&, const LineAllocator&) { return true; }
};

using Floats = std::vector<float, LineAllocator<float>>;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;
using Row = Eigen::Map<Eigen::ArrayXf>;
using ConstRow = Eigen::Map<const Eigen::ArrayXf>;

/// A Linear while the network is made.
struct Linear {
  Matrix weight;
  Vector bias;
};

/// Where a Linear or a norm stands among the weights.
struct LinearAt {
  std::int64_t weight = 0;
  std::int64_t bias = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
};
struct NormAt {
  std::int64_t weight = 0;
  std::int64_t bias = 0;
};

struct EncoderLayer {
  LinearAt in_proj;   ///< Attention::self: none
  LinearAt out_proj;  ///< Attention::self: of the layer's input; value and output projection in one
  NormAt norm1;
  LinearAt linear1;
  LinearAt linear2;
  NormAt norm2;
};

struct Encoder {
  EncoderShape shape;
  std::vector<LinearAt> embedding;
  std::vector<NormAt> position_norms;  ///< [position]; as many as embeddings, or none
  std::int64_t positions = 0;          ///< [unit][position]
  std::vector<EncoderLayer> layers;
};

/// Members that PerceptronGroup can hold, for single jobs.
struct GroupAt {
  std::int64_t weights = 0;
  std::vector<std::int64_t> widths;
};

using Member = std::vector<LinearAt>;

struct Branch {
  std::optional<Encoder> encoder;
  std::int64_t in = 0;  ///< of the members
  std::vector<Member> members;
  std::vector<GroupAt> groups;
  std::vector<std::size_t> wide;  ///< members in no group
};

/// Offsets into a thread's buffers.
struct Arena {
  std::int64_t input = 0;    ///< of the members: [unit], or [unit][job]
  std::int64_t sums = 0;     ///< [output][group member]
  std::int64_t hidden = 0;   ///< twice [unit][lane]
  std::int64_t outputs = 0;  ///< [output][job]
  std::int64_t state = 0;    ///< of the encoder: [unit][position]
  std::int64_t wide = 0;     ///< [unit][position], for what is wider than the encoder
  std::int64_t narrow = 0;   ///< [unit][position]
  std::int64_t scores = 0;
  std::int64_t total = 0;
  std::int64_t half = 0;  ///< length of one of the two in `hidden`
};

struct Compiled {
  Instructions instructions = Instructions::portable;
  const Kernels* kernels = nullptr;
  std::int64_t stride = 0;  ///< of the positions
  Floats weights;
  std::vector<Branch> branches;
  Arena arena;
};

GPUMEM_INLINE std::int64_t rounded_up(std::int64_t count, std::int64_t to) { return (count + to - 1) / to * to; }

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
      return bad_tensor(tensor.name, "is none of this network's: its shape needs no such");
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
  const std::size_t hidden = members.back()->size() - 1;  // the deepest stands last
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

// --- Running it ---------------------------------------------------------------------------------------------------

/// One call: the network, and the thread's buffers from their first whole line on.
class Call {
 public:
  Call(const NetworkShape& shape, const Compiled& network, std::span<float> floats)
      : shape_(shape), network_(network), kernels_(*network.kernels), buffer_(aligned(floats, network.arena.total)) {}

  void run(std::span<const float> features, std::span<const float> sequence, std::span<float> outputs) const {
    std::fill(outputs.begin(), outputs.end(), 0.0F);
    float* sums = buffer_ + network_.arena.sums;
    std::fill(sums, sums + shape_.outputs * kGroupMembers, 0.0F);
    const std::int64_t given =
        shape_.sequence_columns == 0 ? 0 : static_cast<std::int64_t>(sequence.size()) / shape_.sequence_columns;
    for (const Branch& branch : network_.branches) {
      const float* input = features.data();
      if (branch.encoder) {
        float* joined = buffer_ + network_.arena.input;
        encode(*branch.encoder, sequence.data(), std::min(given, shape_.sequence_length), joined, 1);
        std::copy(features.begin(), features.begin() + shape_.features, joined + branch.encoder->shape.width);
        input = joined;
      }
      run_members(branch, input, sums, outputs);
    }
    for (std::int64_t output = 0; output < shape_.outputs; ++output) {
      outputs[static_cast<std::size_t>(output)] += ConstRow(sums + output * kGroupMembers, kGroupMembers).sum();
    }
  }

  /// Jobs from `first` on, at most kLaneBlock of them, each a lane.
  void run_block(std::span<const float> features, std::span<const float> sequences, std::span<const std::int32_t> rows,
                 std::int64_t first, std::int64_t jobs, std::span<float> outputs) const {
    float* sums = buffer_ + network_.arena.outputs;
    std::fill(sums, sums + shape_.outputs * kLaneBlock, 0.0F);
    for (const Branch& branch : network_.branches) {
      float* input = buffer_ + network_.arena.input;
      std::int64_t units = 0;
      if (branch.encoder) {
        units = branch.encoder->shape.width;
        const std::int64_t length = shape_.sequence_length * shape_.sequence_columns;
        for (std::int64_t job = 0; job < jobs; ++job) {
          const std::int64_t count = rows[static_cast<std::size_t>(first + job)];
          encode(*branch.encoder, sequences.data() + (first + job) * length,
                 std::clamp<std::int64_t>(count, 0, shape_.sequence_length), input + job, kLaneBlock);
        }
      }
      const float* from = features.data() + first * shape_.features;
      for (std::int64_t unit = 0; unit < shape_.features; ++unit) {
        for (std::int64_t job = 0; job < jobs; ++job) {
          input[(units + unit) * kLaneBlock + job] = from[job * shape_.features + unit];
        }
      }
      for (std::int64_t unit = 0; unit < branch.in; ++unit) {
        std::fill(input + unit * kLaneBlock + jobs, input + (unit + 1) * kLaneBlock, 0.0F);
      }
      for (const Member& member : branch.members) run_lanes(member, input, sums);
    }
    float* to = outputs.data() + first * shape_.outputs;
    for (std::int64_t job = 0; job < jobs; ++job) {
      for (std::int64_t output = 0; output < shape_.outputs; ++output) *to++ = sums[output * kLaneBlock + job];
    }
  }

 private:
  [[nodiscard]] static float* aligned(std::span<float> floats, std::int64_t needed) {
    void* begin = floats.data();
    std::size_t space = floats.size() * sizeof(float);
    void* found = std::align(kAlignment, static_cast<std::size_t>(needed) * sizeof(float), begin, space);
    assert(found != nullptr && "the buffers are this network's");
    return static_cast<float*>(found);
  }

  [[nodiscard]] const float* at(std::int64_t offset) const { return network_.weights.data() + offset; }
  [[nodiscard]] Dense dense(const LinearAt& linear) const {
    return {at(linear.weight), at(linear.bias), linear.in, linear.out};
  }
  [[nodiscard]] LayerNorm layer_norm(const NormAt& norm, std::int64_t width) const {
    return {at(norm.weight), at(norm.bias), width};
  }

  void run_members(const Branch& branch, const float* input, float* sums, std::span<float> outputs) const {
    for (const GroupAt& group : branch.groups) {
      kernels_.perceptrons({at(group.weights), group.widths.data(), static_cast<std::int64_t>(group.widths.size())},
                           input, sums, buffer_ + network_.arena.hidden);
    }
    for (const std::size_t member : branch.wide) run_wide(branch.members[member], input, outputs);
  }

  void run_wide(const Member& member, const float* input, std::span<float> outputs) const {
    float* to = buffer_ + network_.arena.hidden;
    float* spare = to + network_.arena.half;
    for (const LinearAt& linear : member) {
      using FloatMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
      const Eigen::Map<const FloatMatrix> weight(at(linear.weight), linear.out, linear.in);
      const Eigen::Map<const Eigen::VectorXf> bias(at(linear.bias), linear.out);
      const Eigen::Map<const Eigen::VectorXf> x(input, linear.in);
      const bool last = &linear == &member.back();
      Eigen::Map<Eigen::VectorXf> y(last ? outputs.data() : to, linear.out);
      if (last) y += bias;
      else y = bias;
      y.noalias() += weight * x;
      if (!last) y = (y.array() < 0.0F).select(0.0F, y);  // what is not a number stays none
      input = to;
      std::swap(to, spare);
    }
  }

  void run_lanes(const Member& member, const float* input, float* sums) const {
    float* to = buffer_ + network_.arena.hidden;
    float* spare = to + network_.arena.half;
    for (const LinearAt& linear : member) {
      const bool last = &linear == &member.back();
      kernels_.dense(dense(linear), input, last ? sums : to, kLaneBlock, kLaneBlock, last ? Finish::add : Finish::relu);
      input = to;
      std::swap(to, spare);
    }
  }

  /// Writes the pooled vector to `to`, `step` apart. Only positions that the pooling reads are computed.
  void encode(const Encoder& encoder, const float* sequence, std::int64_t rows, float* to, std::int64_t step) const {
    const bool all = encoder.shape.pooling == Pooling::sum;
    const std::int64_t positions = all ? shape_.sequence_length : rows;
    const std::int64_t lanes = rounded_up(positions, kLaneBlock);
    const float* state = buffer_ + network_.arena.state;
    if (lanes > 0) {
      embed(encoder, sequence, rows, lanes);
      for (const EncoderLayer& layer : encoder.layers) run_layer(encoder.shape, layer, rows, lanes);
    }
    const float share = all || rows == 0 ? 1.0F : 1.0F / static_cast<float>(rows);
    for (std::int64_t unit = 0; unit < encoder.shape.width; ++unit) {
      to[unit * step] = ConstRow(state + unit * network_.stride, positions).sum() * share;
    }
  }

  void embed(const Encoder& encoder, const float* sequence, std::int64_t rows, std::int64_t lanes) const {
    const std::int64_t stride = network_.stride;
    float* from = buffer_ + network_.arena.wide;
    for (std::int64_t column = 0; column < shape_.sequence_columns; ++column) {
      float* lane = from + column * stride;
      for (std::int64_t row = 0; row < rows; ++row) lane[row] = sequence[row * shape_.sequence_columns + column];
      std::fill(lane + rows, lane + lanes, 0.0F);
    }
    const std::int64_t width = encoder.shape.width;
    for (std::size_t embedding = 0; embedding < encoder.embedding.size(); ++embedding) {
      const bool last = embedding + 1 == encoder.embedding.size();
      float* to = buffer_ + (last ? network_.arena.state : network_.arena.narrow);
      kernels_.dense(dense(encoder.embedding[embedding]), from, to, lanes, stride, Finish::store);
      from = to;
      if (encoder.position_norms.empty()) continue;
      const NormAt& norm = encoder.position_norms[embedding];
      const ConstRow factor(at(norm.weight), lanes);
      const ConstRow summand(at(norm.bias), lanes);
      for (std::int64_t unit = 0; unit < width; ++unit) {
        Row row(to + unit * stride, lanes);
        row = (row * factor + summand).max(0.0F);
      }
    }
    for (std::int64_t unit = 0; unit < width; ++unit) {
      Row(from + unit * stride, lanes) += ConstRow(at(encoder.positions + unit * stride), lanes);
    }
  }

  void run_layer(const EncoderShape& shape, const EncoderLayer& layer, std::int64_t rows, std::int64_t lanes) const {
    const std::int64_t stride = network_.stride;
    float* state = buffer_ + network_.arena.state;
    float* wide = buffer_ + network_.arena.wide;
    float* narrow = buffer_ + network_.arena.narrow;
    if (shape.attention == Attention::self) {
      kernels_.dense(dense(layer.out_proj), state, wide, lanes, stride, Finish::store);
    } else {
      kernels_.dense(dense(layer.in_proj), state, wide, lanes, stride, Finish::store);
      const std::int64_t part = shape.width * stride;
      kernels_.attention({wide, wide + part, wide + 2 * part, shape.heads, shape.width / shape.heads, rows}, narrow,
                         lanes, stride, buffer_ + network_.arena.scores);
      kernels_.dense(dense(layer.out_proj), narrow, wide, lanes, stride, Finish::store);
    }
    kernels_.add_and_norm(layer_norm(layer.norm1, shape.width), wide, state, lanes, stride);
    kernels_.dense(dense(layer.linear1), state, wide, lanes, stride, Finish::relu);
    kernels_.dense(dense(layer.linear2), wide, narrow, lanes, stride, Finish::store);
    kernels_.add_and_norm(layer_norm(layer.norm2, shape.width), narrow, state, lanes, stride);
  }

  const NetworkShape& shape_;
  const Compiled& network_;
  const Kernels& kernels_;
  float* buffer_;
};

}  // namespace network_detail

GPUMEM_INLINE core::Result<Network> Network::create(const NetworkShape& shape, const TensorFile& weights,
                                                    Instructions instructions) {
  namespace detail = network_detail;
  if (auto status = validate(shape); !status) return std::move(status).error();
  const auto tensors = detail::checked_tensors(shape, weights);
  if (!tensors) return tensors.error();
  const detail::Source source(*tensors);
  detail::Store store;
  auto compiled = std::make_shared<detail::Compiled>();
  compiled->kernels = &kernels(instructions);
  compiled->instructions = std::min(instructions, best_instructions());
  compiled->stride = detail::rounded_up(shape.sequence_length, kLaneBlock);
  for (std::size_t branch = 0; branch < shape.branches.size(); ++branch) {
    compiled->branches.push_back(detail::make_branch(shape, branch, compiled->stride, source, store));
    if (!store.finite()) {
      return core::Error{core::ErrorCode::malformed_input,
                         "the weights of branch " + std::to_string(branch) +
                             " leave the range of float32 when its norms are applied: they are damaged",
                         {{}, 0, "branches." + std::to_string(branch)}};
    }
  }
  compiled->weights = std::move(store).take();
  compiled->arena = detail::make_arena(shape, compiled->stride);
  return Network(shape, std::move(compiled));
}

GPUMEM_INLINE Network::Network(NetworkShape shape, std::shared_ptr<const network_detail::Compiled> compiled)
    : shape_(std::move(shape)), compiled_(std::move(compiled)) {}

GPUMEM_INLINE Instructions Network::instructions() const { return compiled_->instructions; }

GPUMEM_INLINE NetworkBuffers Network::buffers() const {
  NetworkBuffers buffers;
  buffers.count_ = static_cast<std::size_t>(compiled_->arena.total + network_detail::kLine);
  buffers.floats_ = std::make_unique_for_overwrite<float[]>(buffers.count_);  // NOLINT(modernize-avoid-c-arrays)
  return buffers;
}

GPUMEM_INLINE void Network::run(std::span<const float> features, std::span<const float> sequence,
                                NetworkBuffers& buffers, std::span<float> outputs) const {
  assert(features.size() >= static_cast<std::size_t>(shape_.features));
  assert(outputs.size() >= static_cast<std::size_t>(shape_.outputs));
  network_detail::Call(shape_, *compiled_, {buffers.floats_.get(), buffers.count_})
      .run(features, sequence, outputs.first(static_cast<std::size_t>(shape_.outputs)));
}

GPUMEM_INLINE void Network::run_batch(std::span<const float> features, std::span<const float> sequences,
                                      std::span<const std::int32_t> rows, NetworkBuffers& buffers,
                                      std::span<float> outputs) const {
  const std::int64_t jobs = static_cast<std::int64_t>(outputs.size()) / shape_.outputs;
  assert(features.size() >= static_cast<std::size_t>(jobs * shape_.features));
  assert(shape_.sequence_length == 0 || rows.size() >= static_cast<std::size_t>(jobs));
  const network_detail::Call call(shape_, *compiled_, {buffers.floats_.get(), buffers.count_});
  for (std::int64_t first = 0; first < jobs; first += kLaneBlock) {
    call.run_block(features, sequences, rows, first, std::min(kLaneBlock, jobs - first), outputs);
  }
}

}  // namespace gpumem::ml
