// Input: the names of a head of values.
// Output: the function that gives a job's values, those that the model learns.
//
//   mib         the measured figure
//   log_mib     its natural logarithm
//   log_ratio   the natural logarithm of measured / expected, as an estimator expects it
//   smact, smocc, gract, gpu_utilisation, fp32   a GPU's counter, its mean over the run: 0 to 1
//
// "_pN" after a name (log_ratio_p95) is for a quantile's output: the same value, learned with the pinball loss.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem_datasets/measured_run.hpp"

namespace gpumem::train {

/// What a run measured, to one value an output; not a number for a counter that was not read.
using Targets = std::function<core::Result<std::vector<double>>(const datasets::MeasuredRun& run)>;

/// One of the counters of a run.
using CounterOf = std::optional<double> datasets::Counters::*;

/// The counter that a target or a head of bins names; null for other names.
[[nodiscard]] CounterOf counter_named(std::string_view name);

/// Whether the run measured what the head is to tell: its counters, or else memory (or that there was too little).
[[nodiscard]] bool is_measured(const datasets::MeasuredRun& run, const ml::Head& head);

/// What an estimator expects of a job, in MiB.
using Expected = std::function<core::Result<double>(const model::TrainingJob& job)>;

/// What the replay makes of a job, in MiB.
struct Replayed {
  double context = 0.0;
  double reserved = 0.0;
};
using ReplayedOf = std::function<core::Result<Replayed>(const model::TrainingJob& job)>;

/// How far a measured run lies from each component of a mixture head, ln(measured / replayed) of reserved memory each
/// way; `features` are the raw ones of the job. Errors: malformed_input for a component that is no feature, or a run
/// that measured less than the context.
[[nodiscard]] core::Result<std::vector<double>> distances_of(const ml::ModelConfig& model,
                                                             std::span<const double> features, const Replayed& replayed,
                                                             double measured_mib);

/// Errors: invalid_argument for an unknown name.
[[nodiscard]] core::Result<Targets> targets_of(const std::vector<std::string>& names, const Expected& expected);

}  // namespace gpumem::train
