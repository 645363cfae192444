// Input: the command serve.
// Output: its options, added to the parser.
#pragma once

#include <CLI/CLI.hpp>

#include "commands.hpp"

namespace gpumem::cli {

void add_serve(CLI::App& command, ServeOptions& options);

}  // namespace gpumem::cli
