// Input: a shape and its weights; then features and a sequence.
// Output: the network's outputs (logits, or values). float32.
//
// Immutable once made, so that one network serves any number of threads, each with buffers of its own. A call
// allocates nothing. BatchNorm is folded into the Linear before it when the network is made (in double precision).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/ml/kernels.hpp"
#include "gpumem/ml/network_shape.hpp"
#include "gpumem/ml/safetensors.hpp"

namespace gpumem::ml {

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

}  // namespace gpumem::ml
