// Input: the command posttrain.
// Output: its options, added to the parser.
#pragma once

#include <CLI/CLI.hpp>

#include "commands.hpp"

namespace gpumem::cli {

void add_post_training(CLI::App& command, PostTrainingCommand& options);

}  // namespace gpumem::cli
