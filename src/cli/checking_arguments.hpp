// Input: the commands that say how good the figures are: evaluate, calibrate, replay-trace.
// Output: their options, added to the parser.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "commands.hpp"

namespace gpumem::cli {

/// The estimators of utilisation, as words.
[[nodiscard]] std::string utilisation_estimator_names();

void add_evaluate(CLI::App& command, EvaluateOptions& options);
void add_calibrate(CLI::App& command, CalibrateOptions& options);
void add_replay_trace(CLI::App& command, ReplayTraceOptions& options);

}  // namespace gpumem::cli
