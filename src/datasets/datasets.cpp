#include "gpumem_datasets/datasets.hpp"

#include "gpumem/all.hpp"

namespace gpumem::datasets {

core::Result<MeasuredRuns> read_runs(const std::string& path, const std::string& summaries) {
  return read_runs(
      path, RunsOptions{.vocabulary = &ops::vocabulary(),
                        .read_summary = [](const std::string& summary) { return read_summary(summary); },
                        .parse_summary = [](std::string_view text,
                                            const std::string& name) { return parse_summary(text, false, name); },
                        .summaries = summaries});
}

}  // namespace gpumem::datasets
