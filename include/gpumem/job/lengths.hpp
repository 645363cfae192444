// Input: the lengths of a data set's samples, how batches are made of them, and how long the run is.
// Output: the length of the longest batch that a share of such runs meets, and what a usual batch has.
// Units: tokens of one sample.
//
// Source: batches are drawn without putting samples back, as torch.utils.data.RandomSampler draws an epoch, so that
// the longest sample of n drawn among N has the distribution of the largest order statistic: C(K, n) / C(N, n) that all
// are among the K that are no longer. A sorted data set is cut into batches first, which are drawn the same way
// (transformers 5.13 trainer_pt_utils.py, get_length_grouped_indices, sorts in parts, which comes near to it). Padding
// is to the longest of a batch, or to a multiple of it (DataCollatorWithPadding).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"

namespace gpumem::job {

/// How many samples have a length.
struct LengthCount {
  std::int64_t length = 0;
  std::int64_t count = 0;
};

/// Lengths in ascending order, each once: one a line, "512", or with how many have it, "512 40"; also "512x40". Words
/// are separated by spaces, tabs, commas or ends of lines that follow. Errors: malformed_input, naming the line.
[[nodiscard]] core::Result<std::vector<LengthCount>> parse_lengths(std::string_view text);

enum class Batching : std::uint8_t {
  random,
  sorted,  ///< samples of like lengths together
  packed,  ///< samples are joined and cut, so that each batch is full
};

struct LengthOptions {
  Batching batching = Batching::random;
  std::int64_t pad_to = 1;                 ///< batches are padded to a multiple of this
  std::optional<std::int64_t> steps = {};  ///< of the optimizer; nothing: one epoch
  double percentile = 50.0;                ///< of runs: their longest batch is no longer
};

/// "batching=sorted,pad_to=8,steps=500,percentile=99". Errors: invalid_argument, naming the setting.
[[nodiscard]] core::Result<LengthOptions> parse_length_options(std::string_view text);

/// What a run draws in one optimizer step, over all of its GPUs.
struct Draws {
  std::int64_t batch_size = 1;  ///< of one pass on one GPU
  std::int64_t batches = 1;     ///< passes, times GPUs
};

struct LongestBatch {
  std::int64_t peak = 0;        ///< of the run
  std::int64_t usual = 0;       ///< half of the batches are no longer
  std::int64_t nearly_all = 0;  ///< 99 of 100 batches are no longer
  std::int64_t steps = 0;       ///< of the run
  bool padded = false;          ///< samples of a batch differ
};

/// `longest` cuts the samples; nothing: they are not cut. Errors: invalid_argument for packed samples without it.
[[nodiscard]] core::Result<LongestBatch> longest_batch(const std::vector<LengthCount>& lengths,
                                                       const LengthOptions& options, const Draws& draws,
                                                       std::optional<std::int64_t> longest);

/// Makes the request one about batches of any size: how long the longest of a few batches is depends on their size, but
/// the longest sample is in a batch of any size, beside shorter ones.
void take_any_batch(JobRequest& request);

}  // namespace gpumem::job
