#pragma once

#include "gpumem/ml/network.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

#include "gpumem/ml/compiled_network.hpp"

namespace gpumem::ml {

namespace network_detail {

using Row = Eigen::Map<Eigen::ArrayXf>;
using ConstRow = Eigen::Map<const Eigen::ArrayXf>;

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
  auto compiled = network_detail::compile(shape, weights, instructions);
  if (!compiled) return std::move(compiled).error();
  return Network(shape, *std::move(compiled));
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
