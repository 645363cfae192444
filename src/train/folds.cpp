#include "folds.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include "shuffle.hpp"

namespace gpumem::train {

namespace {

struct Group {
  std::int64_t stratum = 0;
  std::vector<std::size_t> rows;
};

/// Stratum by stratum, the largest groups first; those of like size in random order.
std::vector<Group> groups_of(std::span<const Grouped> rows, std::uint64_t seed) {
  std::vector<Group> groups;
  std::unordered_map<std::uint64_t, std::size_t> known;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto [place, is_new] = known.emplace(rows[row].group, groups.size());
    if (is_new) groups.push_back({rows[row].stratum, {}});
    groups[place->second].rows.push_back(row);
  }
  Random random(seed, 0);
  shuffle(groups, random);
  std::stable_sort(groups.begin(), groups.end(), [](const Group& left, const Group& right) {
    if (left.stratum != right.stratum) return left.stratum < right.stratum;
    return left.rows.size() > right.rows.size();
  });
  return groups;
}

core::Error invalid(std::string message) { return {core::ErrorCode::invalid_argument, std::move(message), {}}; }

}  // namespace

core::Result<std::vector<std::int64_t>> assign_folds(std::span<const Grouped> rows, std::int64_t folds,
                                                     std::uint64_t seed) {
  const std::vector<Group> groups = groups_of(rows, seed);
  if (folds < 2) return invalid("cross-validation needs 2 folds or more");
  if (static_cast<std::int64_t>(groups.size()) < folds) {
    return invalid("the data hold " + std::to_string(groups.size()) + " nets, too few for " + std::to_string(folds) +
                   " folds");
  }
  std::vector<std::int64_t> fold_of(rows.size());
  std::vector<std::size_t> of_stratum(static_cast<std::size_t>(folds));
  std::vector<std::size_t> in_all(static_cast<std::size_t>(folds));
  std::int64_t stratum = groups.front().stratum;
  for (const Group& group : groups) {
    if (group.stratum != stratum) std::fill(of_stratum.begin(), of_stratum.end(), 0);
    stratum = group.stratum;
    std::size_t least = 0;
    for (std::size_t fold = 1; fold < of_stratum.size(); ++fold) {
      const auto load = [&](std::size_t index) { return std::pair(of_stratum[index], in_all[index]); };
      if (load(fold) < load(least)) least = fold;
    }
    of_stratum[least] += group.rows.size();
    in_all[least] += group.rows.size();
    for (const std::size_t row : group.rows) fold_of[row] = static_cast<std::int64_t>(least);
  }
  return fold_of;
}

core::Result<std::vector<bool>> hold_back(std::span<const Grouped> rows, double share, std::uint64_t seed) {
  std::vector<bool> held(rows.size());
  double owed = 0.0;  // rows that should be held back by now, less those that are
  std::size_t taken = 0;
  for (const Group& group : groups_of(rows, seed)) {
    const auto size = static_cast<double>(group.rows.size());
    owed += share * size;
    if (owed < size / 2) continue;
    owed -= size;
    taken += group.rows.size();
    for (const std::size_t row : group.rows) held[row] = true;
  }
  if (taken == 0 || taken == rows.size()) return invalid("the data hold too few nets to hold some back");
  return held;
}

}  // namespace gpumem::train
