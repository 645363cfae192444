// Input: a trained network's shape and its weights, as a file of safetensors holds them; then features and a sequence.
// Output: the network's outputs, and the distribution that outputs of a mixture stand for. float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/ml/kernels.hpp"
#include "gpumem/ml/model_config.hpp"

namespace gpumem::ml {

// Input: bytes of a safetensors file (huggingface.co/docs/safetensors: 8 bytes of header length, little-endian; a JSON
// object of names to dtype, shape and data_offsets; the data).
// Output: TensorFile, its tensors as values; and from these a file again. Strict: the offsets are in range, do not
// overlap and leave no holes; the header is at most 100 MB (as in the format's own reader); dtypes are known; a shape's
// elements times their size is the length of the data.

/// A tensor of float32, row-major. Other dtypes are valid in a file, but no model here holds them.
struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;

  friend bool operator==(const Tensor&, const Tensor&) = default;
};

struct TensorFile {
  std::vector<Tensor> tensors;                                ///< in the order of their data
  std::vector<std::pair<std::string, std::string>> metadata;  ///< "__metadata__"

  /// The tensor of this name; null if there is none.
  [[nodiscard]] const Tensor* find(std::string_view name) const;
};

/// Errors: malformed_input, naming the byte or the tensor. `file` is for messages.
[[nodiscard]] core::Result<TensorFile> parse_safetensors(std::string_view bytes, std::string_view file = {});

/// The file's bytes: the header padded with spaces to 8 bytes, tensors in the order given.
[[nodiscard]] std::string write_safetensors(const TensorFile& file);

// Input: a network's shape and its trained weights.
// Output: CompiledNetwork, what a call reads: weights in one array, each at a cache line, norms folded in, small
// members in groups; and the places of its results in a thread's buffers. float32.

namespace network_detail {

inline constexpr std::size_t kAlignment = 64;
inline constexpr std::int64_t kLine = kAlignment / sizeof(float);

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

/// The place of a Linear or a norm among the weights.
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

/// The least multiple of `to` that holds `count`.
[[nodiscard]] constexpr std::int64_t rounded_up(std::int64_t count, std::int64_t to) {
  return (count + to - 1) / to * to;
}

/// Errors: those of Network::create().
[[nodiscard]] core::Result<std::shared_ptr<const Compiled>> compile(const NetworkShape& shape,
                                                                    const TensorFile& weights,
                                                                    Instructions instructions);

}  // namespace network_detail

// Input: a shape and its weights; then features and a sequence.
// Output: the network's outputs (logits, or values). float32.
//
// Immutable once made, so that one network serves any number of threads, each with buffers of its own. A call
// allocates nothing. BatchNorm is folded into the Linear before it when the network is made (in double precision).

namespace network_detail {
struct Compiled;
}  // namespace network_detail

/// Scratch memory for the calls of one thread; made by Network::buffers().
/// Thread safety: one thread at a time.
class NetworkBuffers {
 public:
  NetworkBuffers() = default;

 private:
  friend class Network;
  std::unique_ptr<float[]> floats_;  // NOLINT(modernize-avoid-c-arrays): not set to 0, as a vector's would be
  std::size_t count_ = 0;
};

/// Thread safety: immutable; any number of threads may run one, each with buffers of its own.
class Network {
 public:
  /// Errors: those of validate(); malformed_input for a tensor that is missing, left over, of another shape, or holds a
  /// value that is not finite (a running_var below 0 too), naming it. Instructions that the machine lacks are not used.
  [[nodiscard]] static core::Result<Network> create(const NetworkShape& shape, const TensorFile& weights,
                                                    Instructions instructions = best_instructions());

  [[nodiscard]] const NetworkShape& shape() const { return shape_; }

  /// Those that it is run with.
  [[nodiscard]] Instructions instructions() const;

  /// Enough for run() and for run_batch() of any number of jobs.
  [[nodiscard]] NetworkBuffers buffers() const;

  /// One job. `features` has shape().features figures, already transformed; `sequence` has rows of
  /// shape().sequence_columns figures, at most shape().sequence_length of them (further ones are not read); `outputs`
  /// has room for shape().outputs. Where a sequence has no rows, attention over it finds zeros, and their mean is
  /// zeros.
  void run(std::span<const float> features, std::span<const float> sequence, NetworkBuffers& buffers,
           std::span<float> outputs) const;

  /// Many jobs, as many as `outputs` has rows: row-major [jobs, features] and [jobs, sequence_length x
  /// sequence_columns] (padded; `rows[i]` of job i are not padding). The same figures as run() gives, up to rounding.
  void run_batch(std::span<const float> features, std::span<const float> sequences, std::span<const std::int32_t> rows,
                 NetworkBuffers& buffers, std::span<float> outputs) const;

 private:
  Network(NetworkShape shape, std::shared_ptr<const network_detail::Compiled> compiled);

  NetworkShape shape_;
  std::shared_ptr<const network_detail::Compiled> compiled_;  ///< shared by copies: it never changes
};

// Input: the shares of components and their centres.
// Output: quantiles of their mixture. Each component is a Laplace distribution around its centre.

struct Mixture {
  std::vector<double> centres;
  std::vector<double> shares;   ///< as many; they sum to 1
  std::vector<double> spreads;  ///< as many: the scale of each Laplace distribution, above 0

  /// The share of the mixture below `value`.
  [[nodiscard]] double below(double value) const;
  /// The value that this share of the mixture, in (0, 1), lies below; exact to 1e-9 of the spreads and centres.
  [[nodiscard]] double quantile(double share) const;
  /// The value that this share of what the mixture has up to `most` lies below; `most` itself if it has nothing there.
  [[nodiscard]] double quantile_up_to(double most, double share) const;
};

/// A corrected figure and its range, in the units of the centres.
struct MixtureRange {
  double lower = 0.0;
  double expected = 0.0;  ///< the median
  double upper = 0.0;
};

/// Which share of the mixture lies below the bounds of its range.
struct RangeShares {
  double lower = 0.0;
  double upper = 0.0;
};

/// The range of what a job takes. Of one that fits, `most` is what there is: figure and lower bound are those of the
/// mixture up to there, and the upper bound leaves room for the case that it does not fit.
[[nodiscard]] MixtureRange range_of(const Mixture& mixture, const RangeShares& shares, std::optional<double> most);

/// exp(logit) of each, as shares of their sum.
[[nodiscard]] std::vector<double> softmax(std::span<const float> logits);

}  // namespace gpumem::ml
