#pragma once

#include "gpumem/ml/network.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "gpumem/core/safetensors_header.hpp"

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

GPUMEM_INLINE double Mixture::below(double value) const {
  constexpr double kHalf = 0.5;
  double sum = 0.0;
  for (std::size_t component = 0; component < centres.size(); ++component) {
    const double away = (value - centres[component]) / spreads[component];
    sum += shares[component] * (away < 0.0 ? kHalf * std::exp(away) : 1.0 - kHalf * std::exp(-away));
  }
  return sum;
}

GPUMEM_INLINE double Mixture::quantile(double share) const {
  // A quantile of a mixture lies between the least and the greatest of its components' quantiles.
  constexpr double kHalf = 0.5;
  const double away = share < kHalf ? std::log(2.0 * share) : -std::log(2.0 * (1.0 - share));
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (std::size_t component = 0; component < centres.size(); ++component) {
    const double of_component = centres[component] + spreads[component] * away;
    low = std::min(low, of_component);
    high = std::max(high, of_component);
  }
  constexpr int kHalvings = 50;
  for (int halving = 0; halving < kHalvings && low < high; ++halving) {
    const double middle = kHalf * (low + high);
    (below(middle) < share ? low : high) = middle;
  }
  return kHalf * (low + high);
}

GPUMEM_INLINE double Mixture::quantile_up_to(double most, double share) const {
  const double part = share * below(most);
  return part > std::numeric_limits<double>::min() ? std::min(quantile(part), most) : most;
}

GPUMEM_INLINE MixtureRange range_of(const Mixture& mixture, const RangeShares& shares, std::optional<double> most) {
  constexpr double kMedian = 0.5;
  const auto within = [&](double share) {
    return most ? mixture.quantile_up_to(*most, share) : mixture.quantile(share);
  };
  return {within(shares.lower), within(kMedian), mixture.quantile(shares.upper)};
}

GPUMEM_INLINE std::vector<double> softmax(std::span<const float> logits) {
  std::vector<double> shares;
  if (logits.empty()) return shares;
  const double most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0.0;
  for (const float logit : logits) {
    shares.push_back(std::exp(static_cast<double>(logit) - most));
    sum += shares.back();
  }
  for (double& share : shares) share /= sum;
  return shares;
}

namespace safetensors_detail {

inline constexpr std::size_t kAlignment = 8;
inline constexpr std::string_view kMetadata = "__metadata__";

using core::malformed;

template <typename Word>
Word little_endian(std::string_view bytes, std::size_t at) {
  Word word = 0;
  for (std::size_t index = 0; index < sizeof(Word); ++index) {
    word |= static_cast<Word>(static_cast<unsigned char>(bytes[at + index])) << (8 * index);
  }
  return word;
}

template <typename Word>
void append_little_endian(std::string& bytes, Word word) {
  for (std::size_t index = 0; index < sizeof(Word); ++index) {
    bytes += static_cast<char>(static_cast<unsigned char>(word >> (8 * index)));
  }
}

GPUMEM_INLINE core::Result<Tensor> tensor_of(core::StoredTensor& entry, std::string_view data) {
  if (entry.dtype->name != "F32") {
    core::Error error = malformed("has dtype " + std::string(entry.dtype->name) +
                                  "; the weights of a model are F32, so convert it to float32");
    error.place.element = entry.name;
    return error;
  }
  Tensor tensor{std::move(entry.name), std::move(entry.shape), {}};
  tensor.values.resize(static_cast<std::size_t>(entry.end - entry.begin) / sizeof(float));
  auto at = static_cast<std::size_t>(entry.begin);
  for (float& value : tensor.values) {
    value = std::bit_cast<float>(little_endian<std::uint32_t>(data, at));
    at += sizeof(float);
  }
  return tensor;
}

GPUMEM_INLINE core::Result<TensorFile> parse(std::string_view bytes) {
  core::Result<core::SafetensorsHeader> header = core::parse_safetensors_header(bytes);
  if (!header) return std::move(header.error());
  TensorFile file;
  file.metadata = std::move(header->metadata);
  file.tensors.reserve(header->tensors.size());
  for (core::StoredTensor& entry : header->tensors) {
    core::Result<Tensor> tensor = tensor_of(entry, bytes.substr(header->data_begin));
    if (!tensor) return std::move(tensor.error());
    file.tensors.push_back(*std::move(tensor));
  }
  return file;
}

GPUMEM_INLINE std::string quoted_json(const std::string& text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

GPUMEM_INLINE std::string metadata_text(const TensorFile& file) {
  std::string text;
  for (const auto& [key, value] : file.metadata) {
    text += (text.empty() ? "{" : ",") + quoted_json(key) + ":" + quoted_json(value);
  }
  return text + "}";
}

GPUMEM_INLINE std::string entry_text(const Tensor& tensor, std::size_t begin, std::size_t end) {
  std::string shape;
  for (const std::int64_t size : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(size);
  return quoted_json(tensor.name) + ":{\"dtype\":\"F32\",\"shape\":[" + shape + "],\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

}  // namespace safetensors_detail

GPUMEM_INLINE const Tensor* TensorFile::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

GPUMEM_INLINE core::Result<TensorFile> parse_safetensors(std::string_view bytes, std::string_view file) {
  core::Result<TensorFile> parsed = safetensors_detail::parse(bytes);
  if (!parsed) return std::move(parsed.error()).in_file(file);
  return parsed;
}

GPUMEM_INLINE std::string write_safetensors(const TensorFile& file) {
  namespace detail = safetensors_detail;
  std::string header = "{";
  if (!file.metadata.empty())
    header += detail::quoted_json(std::string(detail::kMetadata)) + ":" + detail::metadata_text(file);
  std::size_t at = 0;
  for (const Tensor& tensor : file.tensors) {
    const std::size_t end = at + tensor.values.size() * sizeof(float);
    header += (header.size() > 1 ? "," : "") + detail::entry_text(tensor, at, end);
    at = end;
  }
  header += '}';
  while (header.size() % detail::kAlignment != 0) header += ' ';
  std::string bytes;
  bytes.reserve(sizeof(std::uint64_t) + header.size() + at);
  detail::append_little_endian<std::uint64_t>(bytes, header.size());
  bytes += header;
  for (const Tensor& tensor : file.tensors) {
    for (const float value : tensor.values) detail::append_little_endian(bytes, std::bit_cast<std::uint32_t>(value));
  }
  return bytes;
}

}  // namespace gpumem::ml
