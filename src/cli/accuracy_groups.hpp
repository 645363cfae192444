// Input: the predictions of one estimator, for tables with a source for each run.
// Output: their accuracy by source, by figure, by kind of training and by what their tables leave open, and the runs
// without an answer, counted by reason.
// Units: MiB.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "prediction.hpp"

namespace gpumem::cli {

/// Runs that have something in common.
struct AccuracyGroup {
  std::string name;
  std::int64_t runs = 0;  ///< with those that have no answer
  datasets::Accuracy accuracy;
};

struct AccuracyGroups {
  std::string_view by;  ///< "source", "figure", "training"; "what is open" where that is known
  std::vector<AccuracyGroup> groups;
};

/// Runs without an answer for one reason.
struct Refusal {
  std::string reason;
  std::int64_t runs = 0;
  const Prediction* first = nullptr;
};

/// Whether any run names its source: without it there is nothing to group by.
[[nodiscard]] bool has_groups(const std::vector<Prediction>& predictions);
/// Groups in the order of their first runs.
[[nodiscard]] std::vector<AccuracyGroups> groups_of(const std::vector<Prediction>& predictions);
/// The most frequent reason first.
[[nodiscard]] std::vector<Refusal> refusals_of(const std::vector<Prediction>& predictions);

[[nodiscard]] std::string groups_table(const std::vector<Prediction>& predictions);
/// {"source": [...], "figure": [...], "training": [...]}
[[nodiscard]] nlohmann::ordered_json groups_json(const std::vector<Prediction>& predictions);
[[nodiscard]] nlohmann::ordered_json refusals_json(const std::vector<Prediction>& predictions);

}  // namespace gpumem::cli
