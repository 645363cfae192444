#pragma once

#include "gpumem/estimate/fit.hpp"

#include <algorithm>
#include <utility>

namespace gpumem::estimate {

namespace fit_detail {

/// What the job cannot do without: beside live tensors, an allocator in need gives back what it has cached.
GPUMEM_INLINE double least_need(const MemoryEstimate& estimate) {
  if (!estimate.allocated || !estimate.reserved || !estimate.device) return static_cast<double>(estimate.upper.count());
  const std::int64_t cached = estimate.reserved->count() - estimate.allocated->count();
  return static_cast<double>(estimate.device->count() - cached);
}

/// Looks for the boundary between what fits (`low`) and what does not (`high`). Need is nearly linear in the batch, so
/// a straight line through two needs leads close to it; from there steps that double, then halve, lead to it.
class Search {
 public:
  Search(analysis::Analysis& analysis, const device::GpuProfile& gpu, const Estimator& estimator)
      : analysis_(analysis), gpu_(gpu), estimator_(estimator) {}

  core::Result<Fit> run() {
    constexpr int kGuesses = 3;
    constexpr std::int64_t kSecond = 16;
    if (const auto fault = probe(1)) return *fault;
    if (low_ == 1) {
      if (const auto fault = probe(kSecond)) return *fault;
    }
    for (int guess = 0; guess < kGuesses && undecided(); ++guess) {
      const std::int64_t batch_size = on_the_line();
      if (!inside(batch_size)) break;
      if (const auto fault = probe(batch_size)) return *fault;
    }
    while (undecided()) {
      if (const auto fault = probe(next_step())) return *fault;
    }
    fit_.batch_size = low_;
    fit_.at_least = high_ == 0;
    return std::move(fit_);
  }

 private:
  struct Need {
    std::int64_t batch_size = 0;
    double bytes = 0.0;
  };

  [[nodiscard]] bool undecided() const { return high_ == 0 ? low_ < kLargestBatch : high_ > low_ + 1; }
  [[nodiscard]] bool inside(std::int64_t batch_size) const {
    return batch_size > low_ && batch_size <= kLargestBatch && (high_ == 0 || batch_size < high_);
  }

  /// Where the line through the last two needs meets the capacity; 0: nowhere.
  [[nodiscard]] std::int64_t on_the_line() const {
    const double rise = latest_.bytes - former_.bytes;
    const auto run = static_cast<double>(latest_.batch_size - former_.batch_size);
    if (former_.batch_size == 0 || rise * run <= 0.0) return 0;
    const double room = static_cast<double>(gpu_.capacity().count()) - latest_.bytes;
    const double batch_size = static_cast<double>(latest_.batch_size) + room * run / rise;
    return static_cast<std::int64_t>(std::clamp(batch_size, 0.0, static_cast<double>(kLargestBatch)));
  }

  /// From where the last probe was towards the boundary, ever further; halfway where that leads too far.
  std::int64_t next_step() {
    const bool up = latest_.batch_size == low_;
    const std::int64_t step = step_;
    step_ *= 2;
    const std::int64_t towards = up ? low_ + step : high_ - step;
    if (inside(towards) && (high_ == 0 || step <= (high_ - low_) / 2)) return towards;
    return high_ == 0 ? kLargestBatch : low_ + (high_ - low_) / 2;
  }

  /// A lower bound tells what does not fit, and no more.
  [[nodiscard]] core::Error never_known(const MemoryEstimate& estimate) const {
    return {core::ErrorCode::missing_information,
            estimate.provenance.estimator + " gives a lower bound of what batch " +
                std::to_string(analysis_.job().batch_size) +
                " takes, so that no batch is known to fit; use another estimator",
            {analysis_.job().graph->file(), 0, {}}};
  }

  std::optional<core::Error> probe(std::int64_t batch_size) {
    analysis_.set_batch_size(batch_size);
    ++fit_.estimates;
    core::Result<MemoryEstimate> estimate = estimator_.estimate(analysis_, gpu_);
    // A size beyond 64 bits is beyond the GPU as well.
    const bool beyond = !estimate && estimate.error().code == core::ErrorCode::overflow && batch_size > 1;
    if (!estimate && !beyond) return estimate.error();
    if (estimate && estimate->lower_bound && estimate->upper <= gpu_.capacity()) return never_known(*estimate);
    former_ = latest_;
    latest_ = {batch_size, beyond ? 0.0 : least_need(*estimate)};
    const bool turned = (beyond || !estimate->fits) == (former_.batch_size == low_);
    if (turned) step_ = 1;
    if (beyond) {
      high_ = batch_size;
      fit_.next.reset();
    } else if (estimate->fits) {
      low_ = batch_size;
      fit_.estimate = *std::move(estimate);
    } else {
      high_ = batch_size;
      fit_.next = *std::move(estimate);
    }
    return std::nullopt;
  }

  analysis::Analysis& analysis_;
  const device::GpuProfile& gpu_;
  const Estimator& estimator_;
  Fit fit_;
  std::int64_t low_ = 0;   ///< fits; 0: nothing known to
  std::int64_t high_ = 0;  ///< does not fit; 0: nothing known not to
  Need former_;            ///< of the last probe but one
  Need latest_;
  std::int64_t step_ = 1;
};

}  // namespace fit_detail

GPUMEM_INLINE core::Result<Fit> largest_batch(model::TrainingJob job, const device::GpuProfile& gpu,
                                              const Estimator& estimator) {
  analysis::Analysis analysis(std::move(job));
  return largest_batch(analysis, gpu, estimator);
}

GPUMEM_INLINE core::Result<Fit> largest_batch(analysis::Analysis& analysis, const device::GpuProfile& gpu,
                                              const Estimator& estimator) {
  const model::TrainingJob& job = analysis.job();
  if (job.graph != nullptr && job.graph->unknown_layers() > 0) {
    return core::Error{core::ErrorCode::missing_information,
                       core::with_separators(job.graph->unknown_layers()) +
                           " layers have unknown classes, so that no batch is known to fit; use a summary that gpumem "
                           "knows the layers of",
                       {job.graph->file(), 0, {}}};
  }
  return fit_detail::Search(analysis, gpu, estimator).run();
}

}  // namespace gpumem::estimate
