#include "gpumem_datasets/datasets.hpp"

#include "gpumem/all.hpp"

namespace gpumem::datasets {

core::Result<MeasuredRuns> read_runs(const std::string& path, const std::string& summaries) {
  return read_runs(path, RunsOptions{.vocabulary = &ops::vocabulary(),
                                     .read_summary = [](const std::string& summary) { return read_summary(summary); },
                                     .summaries = summaries});
}

}  // namespace gpumem::datasets
