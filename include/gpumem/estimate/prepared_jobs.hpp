// Enters: jobs of one summary, from any number of threads. Leaves: each as plan_job() plans it. Keeps what the next job
// of the summary needs as well: the edges, the recording, and the memory of a plan, which are two thirds of the work of
// a replay. Units: bytes.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "gpumem/estimate/planned_job.hpp"

namespace gpumem::estimate {

/// A job that was planned, and the one that it was planned for.
struct PreparedJob {
  PlannedJob planned;
  model::TrainingJob source;  ///< with the summary's own graph
  ReplayMemory memory = {};   ///< of its last replay

  /// What it holds, about.
  [[nodiscard]] std::size_t bytes() const;
};

/// A few places, each of which a thread empties while it works on what was in it: threads neither wait for each other
/// nor write to the same memory.
class PreparedJobs {
 public:
  PreparedJobs() = default;
  PreparedJobs(const PreparedJobs&) = delete;
  PreparedJobs& operator=(const PreparedJobs&) = delete;
  ~PreparedJobs();

  /// A job of this caller alone, planned. Errors: those of plan_job().
  [[nodiscard]] core::Result<std::unique_ptr<PreparedJob>> take(const model::TrainingJob& job,
                                                                const device::GpuProfile& gpu,
                                                                const ops::Catalogue& ops);
  /// Keeps it for a later one, unless it is larger than `kLargest`; then its memory is given back.
  void put_back(std::unique_ptr<PreparedJob> job);

  /// Of one job that is kept: 64 MiB together.
  static constexpr std::size_t kLargest = std::size_t{8} << 20;

 private:
  static constexpr std::size_t kPlaces = 8;
  static constexpr std::size_t kCacheLine = 64;
  struct alignas(kCacheLine) Place {
    std::atomic<PreparedJob*> job = nullptr;
  };

  [[nodiscard]] std::unique_ptr<PreparedJob> find(const model::TrainingJob& job);

  std::array<Place, kPlaces> places_;
};

}  // namespace gpumem::estimate

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/estimate/impl/prepared_jobs_inl.hpp"
#endif
