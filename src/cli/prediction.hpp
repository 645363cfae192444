// Input: a measured run, an estimator and a GPU.
// Output: Prediction: what the estimator says about the measured figure.
// Units: MiB.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/all.hpp"
#include "gpumem/analysis/analysis.hpp"
#include "gpumem_datasets/accuracy.hpp"
#include "gpumem_datasets/measured_run.hpp"

namespace gpumem::cli {

/// What one estimator says about one run, in terms of the figure that was measured.
struct Prediction {
  const datasets::MeasuredRun* run = nullptr;
  double expected_mib = 0.0;
  double lower_mib = 0.0;
  double upper_mib = 0.0;
  double beside_mib = 0.0;  ///< what the whole estimate has beyond the figure: mostly the CUDA context
  double capacity_mib = 0.0;
  bool fits = false;
  bool whole = false;          ///< the estimator does not tell the figure: this is all that it expects
  bool ranged = false;         ///< the estimator publishes a range
  std::string model = {};      ///< of learned estimators: which one
  bool out_of_domain = false;  ///< of learned estimators: the job is unlike those that the model was trained on
  std::optional<Error> error = {};
};

/// The part of the estimate that this figure measures; nothing if the estimator does not tell it.
[[nodiscard]] std::optional<Bytes> figure_of(const MemoryEstimate& estimate, datasets::Figure figure);

/// `figure` is that of the run, or `growth` for one that measured reserved memory, if estimators that tell none are to
/// be taken at their word. `analysis` is the run's job's. Errors: those of the estimate; missing_information if the
/// estimator does not tell the figure. A run with an error of its own has no job, and must not come here.
[[nodiscard]] Result<Prediction> predict(const datasets::MeasuredRun& run, datasets::Figure figure,
                                         const Estimator& estimator, const GpuProfile& gpu,
                                         analysis::Analysis& analysis);

/// A run, the figure of it that is asked for, and the GPU that it is asked of, or why there is none; then what each
/// estimator says about it.
struct PredictionTask {
  const datasets::MeasuredRun* run = nullptr;
  datasets::Figure figure = datasets::Figure::device;
  Result<std::shared_ptr<const GpuProfile>> gpu;
  std::vector<Prediction> predictions = {};
};

/// Every estimator's prediction of every run, on this many threads. Runs of one summary come one after the other, and
/// share what they can. `progress` is called after each run, from any thread.
void predict_all(std::vector<PredictionTask>& tasks, const std::vector<std::shared_ptr<const Estimator>>& estimators,
                 unsigned threads, const std::function<void()>& progress);

/// The prediction and what was measured.
[[nodiscard]] datasets::Judged judged(const Prediction& prediction);

}  // namespace gpumem::cli
