#include "prediction.hpp"

#include <algorithm>

namespace gpumem::cli {

std::optional<Bytes> figure_of(const MemoryEstimate& estimate, datasets::Figure figure) {
  switch (figure) {
    case datasets::Figure::device: return estimate.device.value_or(estimate.expected);
    case datasets::Figure::growth: return estimate.reserved.value_or(estimate.expected);
    case datasets::Figure::reserved: return estimate.reserved;
    case datasets::Figure::allocated: return estimate.allocated;
  }
  return std::nullopt;
}

Result<Prediction> predict(const datasets::MeasuredRun& run, datasets::Figure figure, const Estimator& estimator,
                           const GpuProfile& gpu) {
  const auto estimate = estimator.estimate(run.job, gpu);
  if (!estimate) return estimate.error();
  const auto told = figure_of(*estimate, figure);
  if (!told) {
    const std::string name(model::name_of(datasets::kFigures, figure));
    return Error{ErrorCode::missing_information, "this estimator does not tell " + name + " memory", {}};
  }
  // The range is of the whole estimate; what the figure leaves out, it leaves out at both ends.
  const double moved = told->mib() - estimate->expected.mib();
  Prediction prediction;
  prediction.run = &run;
  prediction.expected_mib = told->mib();
  prediction.lower_mib = std::max(0.0, estimate->lower.mib() + moved);
  prediction.upper_mib = std::max(0.0, estimate->upper.mib() + moved);
  prediction.beside_mib = -moved;
  prediction.capacity_mib = gpu.capacity().mib();
  prediction.whole = figure == datasets::Figure::growth && !estimate->reserved;
  prediction.ranged = estimate->upper_coverage.has_value() || !estimate->bins.empty();
  // No lower bound is known to fit: the expected figure must do.
  prediction.fits = estimate->lower_bound ? estimate->expected <= gpu.capacity() : estimate->fits;
  prediction.model = estimate->provenance.weights;
  prediction.out_of_domain = !estimate->out_of_domain.empty();
  return prediction;
}

datasets::Judged judged(const Prediction& prediction) {
  return {.measured_mib = prediction.run->measured_mib.value_or(0.0),
          .expected_mib = prediction.expected_mib,
          .upper_mib = prediction.upper_mib,
          .out_of_memory = prediction.run->out_of_memory,
          .fits = prediction.fits,
          .lower_mib = prediction.lower_mib,
          .capacity_mib = prediction.capacity_mib,
          .beside_mib = prediction.beside_mib};
}

}  // namespace gpumem::cli
