// Input: the commands of the queue: run, queue, cancel.
// Output: their options, added to the parser.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "commands.hpp"

namespace gpumem::cli {

/// All but those of placing (PlacementOptions).
void add_run(CLI::App& command, RunOptions& options);
void add_queue(CLI::App& command, QueueOptions& options);
void add_cancel(CLI::App& command, CancelOptions& options);

}  // namespace gpumem::cli
