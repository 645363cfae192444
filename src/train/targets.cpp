#include "targets.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace gpumem::train {

namespace {

enum class Target : std::uint8_t { mib, log_mib, log_ratio, counter };
constexpr std::array<model::Named<Target>, 3> kTargets = {
    {{Target::mib, "mib"}, {Target::log_mib, "log_mib"}, {Target::log_ratio, "log_ratio"}}};

/// A target, and which counter it is if it is one.
struct Wanted {
  Target target = Target::mib;
  CounterOf counter = nullptr;
};

struct CounterName {
  std::string_view name;
  CounterOf counter;
};
constexpr std::array<CounterName, 5> kCounterNames = {{{"gpu_utilisation", &datasets::Counters::gpu_utilisation},
                                                       {"gract", &datasets::Counters::gract},
                                                       {"smact", &datasets::Counters::smact},
                                                       {"smocc", &datasets::Counters::smocc},
                                                       {"fp32", &datasets::Counters::fp32}}};

/// The name without a quantile's "_p95".
std::string_view plain_name(std::string_view name) {
  const std::size_t at = name.rfind("_p");
  if (at == std::string_view::npos || at + 2 == name.size()) return name;
  const std::string_view digits = name.substr(at + 2);
  const bool quantile = digits.find_first_not_of("0123456789") == std::string_view::npos;
  return quantile ? name.substr(0, at) : name;
}

core::Error wrong_head(std::string message) {
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
      return wrong_head(core::quoted(name) + " is a component of the mixture, but no feature of the model");
    }
    const double centre =
        found == model.features.end() ? 0.0 : features[static_cast<std::size_t>(found - model.features.begin())];
    distances.push_back(value - centre);
  }
  return distances;
}

core::Result<Targets> targets_of(const std::vector<std::string>& names, const Expected& expected) {
  std::vector<Wanted> wanted;
  bool compares = false;
  for (const std::string& name : names) {
    const auto target = model::value_of(kTargets, plain_name(name));
    const auto counter = counter_named(name);
    if (!target && counter == nullptr) {
      return wrong_head(core::quoted(name) + " is not a target; use mib, log_mib, log_ratio or a counter (smact, ...)");
    }
    wanted.push_back(target ? Wanted{*target, nullptr} : Wanted{Target::counter, counter});
    compares = compares || target == Target::log_ratio;
  }
  return Targets([wanted, compares, expected](const datasets::MeasuredRun& run) -> core::Result<std::vector<double>> {
    const double measured_mib = run.measured_mib.value_or(0.0);
    double expected_mib = 1.0;
    if (compares) {
      const auto estimate = expected(run.job);
      if (!estimate) return estimate.error();
      expected_mib = *estimate;
    }
    std::vector<double> values;
    for (const Wanted& one : wanted) {
      const double base = one.target == Target::log_ratio ? expected_mib : 1.0;
      if (one.target == Target::counter) {
        values.push_back((run.counters.*(one.counter)).value_or(std::numeric_limits<double>::quiet_NaN()));
      } else {
        values.push_back(one.target == Target::mib ? measured_mib : std::log(measured_mib / base));
      }
    }
    return values;
  });
}

CounterOf counter_named(std::string_view name) {
  for (const CounterName& row : kCounterNames) {
    if (row.name == plain_name(name)) return row.counter;
  }
  return nullptr;
}

bool is_measured(const datasets::MeasuredRun& run, const ml::Head& head) {
  bool counters = false;
  bool all = true;
  const auto need = [&](std::string_view name) {
    const CounterOf counter = counter_named(name);
    if (counter == nullptr) return;
    counters = true;
    all = all && (run.counters.*counter).has_value();
  };
  if (!head.of.empty()) need(head.of);
  for (const std::string& name : head.names) need(name);
  return counters ? all : run.out_of_memory || run.measured_mib.value_or(0.0) > 0.0;
}

}  // namespace gpumem::train
