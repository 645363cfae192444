// A table of measured runs, in any form.
#include "gpumem_datasets/runs_format.hpp"

#include "fuzz.hpp"
#include "run_tables.hpp"

GPUMEM_FUZZ_TARGET(runs) {
  const auto all = datasets::parse_runs(input, testing::small_shelf(), "fuzzed.csv");
  if (!all) {
    require_readable(all.error(), input);
    return false;
  }
  constexpr std::size_t kMostEstimates = 64;
  std::size_t estimates = 0;
  for (const datasets::MeasuredRun& run : all->runs) {
    require(run.line >= 2, "a run stands below the header");
    if (run.error) {
      require_readable(*run.error, input);
      continue;
    }
    require(run.measured_mib.value_or(0.0) >= 0.0, "no measured figure is negative");
    require(run.gpus >= 1, "a run is on a GPU");
    require(run.job.graph != nullptr, "a run without an error has a model");
    if (++estimates <= kMostEstimates) require_sound(estimate(run.job), run.job, input);
  }
  return true;
}
