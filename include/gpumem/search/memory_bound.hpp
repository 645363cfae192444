// Enters: a job with its layout, and a GPU. Leaves: whether it is certain, without a plan of all layers, that the job
// does not fit. A job that fits is never said not to: tests/property/search_test.cpp holds that against every layout of
// small models. Units: bytes.
//
// Two bounds, both of what tensors hold on one pipeline rank, which no allocator manages with less:
//
//   held    parameters, masters, states and main gradients, as the sharding cuts them (parallel/sharing.hpp)
//   blocks  the estimator's own plan of the same layout for a model of fewer blocks: two, and three, a stage. At each
//           moment of a step, tensors hold a sum that grows by the same with each block; the peak is the largest of
//           such sums, so that it grows with each further block by no less than from two to three. Where a sharding's
//           buffers stop growing (buckets of partitioned gradients, units that are kept for reuse), the model of three
//           blocks is the bound as it is
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/search/block_work.hpp"

namespace gpumem::search {

class MemoryBound {
 public:
  /// `whole`: the model's wired graph. Both must outlive it.
  MemoryBound(const connect::WiredGraph& whole, const device::GpuProfile& gpu);

  /// By what the rank holds between steps.
  [[nodiscard]] bool held_too_much(const model::TrainingJob& job, const BlockWork& work) const;
  /// By plans of fewer blocks.
  [[nodiscard]] bool blocks_too_much(const model::TrainingJob& job);
  /// By the peak that a plan of the whole has.
  [[nodiscard]] bool too_much(analysis::Analysis& analysis, std::int64_t peak) const;

 private:
  using Graph = std::shared_ptr<const model::ModelGraph>;

  [[nodiscard]] Graph shortened(std::int64_t blocks);
  [[nodiscard]] std::optional<std::int64_t> peak_of(const model::TrainingJob& job, const model::Rank& rank,
                                                    std::int64_t blocks);

  const connect::WiredGraph& whole_;
  const device::GpuProfile& gpu_;
  std::int64_t blocks_ = 0;
  bool alike_ = false;  ///< the blocks have as many layers each
  std::map<std::int64_t, Graph> shortened_;
  std::map<std::int64_t, std::unique_ptr<analysis::Analysis>> analyses_;  ///< of each shortened graph
};

}  // namespace gpumem::search

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/search/impl/memory_bound_inl.hpp"
#endif
