#include "targets.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace gpumem::train {

namespace {

enum class Target : std::uint8_t { mib, log_mib, log_ratio };
constexpr std::array<model::Named<Target>, 3> kTargets = {
    {{Target::mib, "mib"}, {Target::log_mib, "log_mib"}, {Target::log_ratio, "log_ratio"}}};

/// The name without a quantile's "_p95".
std::string_view plain_name(std::string_view name) {
  const std::size_t at = name.rfind("_p");
  if (at == std::string_view::npos || at + 2 == name.size()) return name;
  const std::string_view digits = name.substr(at + 2);
  const bool quantile = digits.find_first_not_of("0123456789") == std::string_view::npos;
  return quantile ? name.substr(0, at) : name;
}

core::Error invalid(std::string message) {
  return {core::ErrorCode::invalid_argument, std::move(message), core::Place{{}, 0, "/head/names"}};
}

}  // namespace

core::Result<Targets> targets_of(const std::vector<std::string>& names, const Expected& expected) {
  std::vector<Target> wanted;
  for (const std::string& name : names) {
    const auto target = model::value_of(kTargets, plain_name(name));
    if (!target) return invalid(core::quoted(name) + " is no target; use mib, log_mib or log_ratio");
    wanted.push_back(*target);
  }
  return Targets(
      [wanted, expected](const model::TrainingJob& job, double measured_mib) -> core::Result<std::vector<double>> {
        double expected_mib = 1.0;
        if (std::find(wanted.begin(), wanted.end(), Target::log_ratio) != wanted.end()) {
          const auto estimate = expected(job);
          if (!estimate) return estimate.error();
          expected_mib = *estimate;
        }
        std::vector<double> values;
        for (const Target target : wanted) {
          const double base = target == Target::log_ratio ? expected_mib : 1.0;
          values.push_back(target == Target::mib ? measured_mib : std::log(measured_mib / base));
        }
        return values;
      });
}

}  // namespace gpumem::train
