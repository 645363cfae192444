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

core::Result<std::vector<double>> distances_of(const ml::ModelConfig& model, std::span<const double> features,
                                               const Replayed& replayed, double measured_mib) {
  if (measured_mib <= replayed.context || replayed.reserved <= 0.0) {
    return core::Error{core::ErrorCode::malformed_input, "measured no more than the context of the GPU's profile", {}};
  }
  const double value = std::log((measured_mib - replayed.context) / replayed.reserved);
  std::vector<double> distances;
  for (const std::string& name : model.head.names) {
    const auto found = std::find_if(model.features.begin(), model.features.end(),
                                    [&](const ml::FeatureSpec& spec) { return spec.name == name; });
    if (found == model.features.end() && name != ml::kRuleComponent && name != ml::kWideComponent) {
      return invalid(core::quoted(name) + " is a component of the mixture, but no feature of the model");
    }
    const double centre =
        found == model.features.end() ? 0.0 : features[static_cast<std::size_t>(found - model.features.begin())];
    distances.push_back(value - centre);
  }
  return distances;
}

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
