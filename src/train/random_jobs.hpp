// Input: a kind of nets and a seed.
// Output: random training jobs in the ranges of GPUMemNet's data sets and papers, as many as one likes. An estimator
// labels them when there are no measured runs.
//
//   MLP          4-4,096 inputs, 1-1,024 outputs (no more than inputs), 2-12 linear layers, batch 4-1,024
//   CNN          1 or 3 channels, even sides of 8-224, 2-22,000 classes, 16-512 base filters of 3 (as often as not), 5
//   or
//                7, depth 1-29, batch 2-62
//   Transformer  50,000-1,000,000 words, 128, 256, 512 or 1,024 tokens, embeddings of 128-2,048 (multiples of 64), 2-16
//                heads, 2-4 times as wide a feed-forward, 9-157 linear layers (a packed projection counts as one; the
//                classifier as well), ReLU or GELU, 2-1,000 classes, batch 1-128
//
// All: batch norm (not in Transformers) and dropout of 0.1-0.5 in half of the nets each, every architecture and
// activation of nets.hpp as likely as the next. What spans orders of magnitude is drawn evenly half of the time, and
// evenly in its logarithm the other half.
//
// Training as in those data sets: Adam, fp32, cross entropy (binary for one output), MLPs and CNNs on 4,096 samples an
// epoch after a pass of torchsummary, Transformers on 1,000-5,000 samples.
#pragma once

#include <cstdint>
#include <string>

#include "gpumem/core/result.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::train {

struct RandomJobsOptions {
  ml::NetKind kind = ml::NetKind::any;  ///< any: each job draws one of the others
  std::uint64_t seed = 0;
  bool vary_training = false;  ///< optimizer and precision are drawn as well
  std::string software = {};   ///< the jobs' stack, as the GPU's profile names it; empty: the profile's first
};

struct RandomJob {
  /// Its number and configuration, fit for a file's name: "mlp-7_input-25_output-1_depth-7_arch-bottleneck_...".
  std::string name;
  ml::NetKind kind = ml::NetKind::any;
  model::TrainingJob job;
};

/// A sequence of jobs without end. Job i depends only on the options and on i, on every platform: work can be resumed,
/// and parted among machines.
class RandomJobs {
 public:
  explicit RandomJobs(RandomJobsOptions options) : options_(std::move(options)) {}

  /// `attempt` gives other jobs of the same number, for who must throw some away. Errors: none are known; those of
  /// build() would be a fault of the ranges.
  [[nodiscard]] core::Result<RandomJob> at(std::uint64_t index, std::uint64_t attempt = 0) const;

  /// The jobs from the first on, one a call.
  [[nodiscard]] core::Result<RandomJob> next() { return at(next_++); }

  [[nodiscard]] const RandomJobsOptions& options() const { return options_; }

 private:
  RandomJobsOptions options_;
  std::uint64_t next_ = 0;
};

}  // namespace gpumem::train
