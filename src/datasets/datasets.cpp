#include "gpumem_datasets/datasets.hpp"

#include <utility>

#include "gpumem/all.hpp"

namespace gpumem::datasets {

core::Result<MeasuredRuns> read_runs(const std::string& path, const std::string& summaries,
                                     decltype(RunsOptions::read_settings) read_settings) {
  return read_runs(
      path, RunsOptions{.vocabulary = &ops::vocabulary(),
                        .read_summary = [](const std::string& summary) { return read_summary(summary); },
                        .parse_summary = [](std::string_view text,
                                            const std::string& name) { return parse_summary(text, false, name); },
                        .summaries = summaries,
                        .read_settings = std::move(read_settings)});
}

}  // namespace gpumem::datasets
