// Input: the commands that place jobs: place, server, simulate, and run with its queue.
// Output: their options, added to the parser.
#pragma once

#include <CLI/CLI.hpp>

#include "commands.hpp"

namespace gpumem::cli {

/// Which policy places jobs, and under which conditions.
void add_placement_options(CLI::App& command, PlacementOptions& options);
void add_place(CLI::App& command, PlaceOptions& options);
void add_server(CLI::App& command, ServerOptions& options);
void add_simulate(CLI::App& command, SimulateOptions& options);

}  // namespace gpumem::cli
