// Enters: the facts of a job. Leaves: roughly what PyTorch's caching allocator reserves for it: the large tensors of
// two training steps, as rough rules tell them, in segments that are found, split and merged as the allocator does it.
// Units: bytes. Source: c10/cuda/CUDACachingAllocator.cpp, torch/csrc/autograd/engine.cpp.
//
// A feature of learned models, not an estimate: some ten nanoseconds a tensor above 1 MiB. The replay is exact where
// this is rough: tensors of up to 1 MiB are summed, a layer's parameters are one tensor, no batch is smaller than the
// others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpumem/ml/job_facts.hpp"

namespace gpumem::ml {

/// The allocator's pool of large blocks.
class LargeBlocks {
 public:
  static constexpr std::int64_t kLeast = std::int64_t{1} << 20;  ///< above it; the rest is the small pool's

  /// Makes room for this many.
  void reserve(std::size_t blocks);
  /// The name of a block of at least so many bytes, a multiple of 512.
  [[nodiscard]] std::int32_t take(std::int64_t bytes);
  void give_back(std::int32_t block);
  /// At its peak, which is now: segments are kept.
  [[nodiscard]] std::int64_t reserved() const { return reserved_; }

 private:
  struct Block {
    std::int64_t address = 0;
    std::int64_t size = 0;
    std::int32_t previous = -1;  ///< the neighbours in the segment
    std::int32_t next = -1;
  };
  /// A free block, with what the search for the best one reads.
  struct Free {
    std::int64_t size = 0;
    std::int64_t address = 0;
    std::int32_t block = -1;
  };

  [[nodiscard]] std::int32_t best_fit(std::int64_t bytes);
  [[nodiscard]] std::int32_t new_segment(std::int64_t bytes);
  void forget(std::int32_t block);
  void split(std::int32_t block, std::int64_t bytes);
  void merge_next(std::int32_t block);
  [[nodiscard]] bool is_free(std::int32_t block) const;

  std::vector<Block> blocks_;
  std::vector<Free> free_;             ///< unsorted: they are few
  std::vector<std::uint8_t> is_free_;  ///< by name
  std::int64_t reserved_ = 0;
};

/// Both pools; of the small one no more than its sum. The blocks stand outside: a local SegmentSketch is then two sums,
/// which the compiler keeps in registers. Most tensors are small.
class SegmentSketch {
 public:
  struct Tensor {
    std::int64_t bytes = 0;
    std::int32_t block = -1;  ///< -1: in the small pool, or none
  };

  explicit SegmentSketch(LargeBlocks& large) : large_(large) {}

  /// `bytes` as the allocator rounds requests, to multiples of 512; none of 0.
  [[nodiscard]] Tensor take(std::int64_t bytes) {
    if (bytes > LargeBlocks::kLeast) return {bytes, large_.take(bytes)};
    small_ += bytes;
    small_peak_ = std::max(small_peak_, small_);
    return {bytes, -1};
  }
  void give_back(const Tensor& tensor) {
    if (tensor.block >= 0) return large_.give_back(tensor.block);
    small_ -= tensor.bytes;
  }
  [[nodiscard]] std::int64_t reserved() const;

 private:
  LargeBlocks& large_;
  std::int64_t small_ = 0;
  std::int64_t small_peak_ = 0;
};

/// Bytes.
[[nodiscard]] double sketched_segments(const JobFacts& facts);

}  // namespace gpumem::ml

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/ml/impl/segment_sketch_inl.hpp"
#endif
