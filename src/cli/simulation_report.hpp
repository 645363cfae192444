// Input: a simulation and what it was made from.
// Output: a table and a picture for people, and JSON (schema 1) for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/all.hpp"
#include "gpumem_datasets/simulator.hpp"
#include "gpumem_datasets/trace.hpp"

namespace gpumem::cli {

using Json = nlohmann::ordered_json;

struct SimulationReport {
  std::string file;  ///< of the trace
  place::Server server;
  std::string policy;
  std::string estimator;
  std::string margin;  ///< in words; empty: there is no estimate
  std::vector<datasets::SimulatedJob> jobs;
  datasets::SimulationOptions options;
  datasets::FilledDurations filled;
  std::int64_t without_smact = 0;  ///< jobs that the trace gives no SM activity for
  double assumed_smact = 0.0;      ///< which were given this one
  std::optional<datasets::PowerModel> power;
  datasets::Simulation simulation;
};

/// What all GPUs do together on average, in steps of one length.
struct OverTime {
  double step_s = 0.0;
  std::vector<double> smact;          ///< mean over the GPUs
  std::vector<double> memory;         ///< share of all GPUs' memory
  std::vector<std::int64_t> waiting;  ///< jobs, at the end of the step
};
/// How many jobs wait from this time on: they arrived or crashed, and have not started.
struct Waiting {
  double at_s = 0.0;
  std::int64_t jobs = 0;
};
[[nodiscard]] std::vector<Waiting> waiting_over_time(const SimulationReport& report);

[[nodiscard]] OverTime over_time(const SimulationReport& report, std::size_t steps);

[[nodiscard]] Json to_json(const SimulationReport& report);
[[nodiscard]] std::string to_table(const SimulationReport& report);
/// Errors: invalid_argument if there are more GPUs or runs than a picture can show.
[[nodiscard]] Result<std::string> to_svg(const SimulationReport& report);

/// "1 h 23 min", "4 min 5 s", "12 s".
[[nodiscard]] std::string duration_words(double seconds);

}  // namespace gpumem::cli
