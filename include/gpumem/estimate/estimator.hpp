// Input: a training job's Analysis and a GPU; an estimator's name.
// Output: a MemoryEstimate. Every estimation method implements this one interface. It asks the Analysis for the stages
// that it needs. To add one: a file here and a row in the list of estimator_inl.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::estimate {

/// Adds to an estimate's figures what follows from them and the model: coverage, whether it is a lower bound, and the
/// verdict on a GPU of this capacity.
void judge(MemoryEstimate& estimate, const model::ModelGraph& graph, core::Bytes capacity);

/// What is in live tensors, by plan::Category, as parts of a breakdown.
[[nodiscard]] Breakdown breakdown_of_live(std::span<const std::int64_t> by_category);

/// Thread safety: immutable once made; one estimator serves any number of threads.
class Estimator {
 public:
  Estimator() = default;
  Estimator(const Estimator&) = delete;
  Estimator& operator=(const Estimator&) = delete;
  virtual ~Estimator() = default;

  /// The name used on the command line and in JSON.
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// The job's memory on this GPU; of a job on several, on each of them. Errors: invalid_argument for a job out of
  /// range, or on several GPUs if the method covers only one; overflow if a size does not fit 64 bits;
  /// missing_information where the model says too little for this method.
  [[nodiscard]] core::Result<MemoryEstimate> estimate(analysis::Analysis& analysis,
                                                      const device::GpuProfile& gpu) const;
  /// The same with an Analysis for this call only.
  [[nodiscard]] core::Result<MemoryEstimate> estimate(const model::TrainingJob& job,
                                                      const device::GpuProfile& gpu) const;

 private:
  /// Fills figures and breakdown for a job that has been validated; estimate() adds coverage, provenance, fits and
  /// the verdict.
  [[nodiscard]] virtual core::Result<MemoryEstimate> do_estimate(analysis::Analysis& analysis,
                                                                 const device::GpuProfile& gpu) const = 0;
  /// Whether do_estimate() finds out by itself if the job fits, and what it needs at most; if not, upper decides.
  [[nodiscard]] virtual bool decides_fit() const { return false; }
  /// Whether the figures hold for one of several GPUs in data parallel; if not, such jobs are refused.
  [[nodiscard]] virtual bool takes_data_parallel() const { return false; }
  /// Whether the figures hold for one rank of every layout that the step's plan follows.
  [[nodiscard]] virtual bool takes_layouts() const { return false; }
};

/// What an estimator may be told at its making; those that it has no use for are ignored.
struct EstimatorOptions {
  device::AllocatorOptions allocator;  ///< PYTORCH_CUDA_ALLOC_CONF of the job
  std::string model = {};  ///< of learned estimators: a built-in model, or a folder; empty: the built-in ones
};

struct EstimatorEntry {
  std::string_view name;
  std::string_view description;  ///< one line for people
  core::Result<std::unique_ptr<Estimator>> (*create)(const EstimatorOptions& options);
};

/// Every estimator that gpumem has.
[[nodiscard]] std::span<const EstimatorEntry> estimators();

/// The estimator of this name. Errors: invalid_argument, listing the names.
[[nodiscard]] core::Result<std::unique_ptr<Estimator>> make_estimator(std::string_view name,
                                                                      const EstimatorOptions& options = {});

}  // namespace gpumem::estimate
