// Input: the commands about trained models: model show, verify, run, import.
// Output: their options, added to the parser.
#pragma once

#include <CLI/CLI.hpp>

#include "commands.hpp"

namespace gpumem::cli {

void add_model_show(CLI::App& command, ModelShowOptions& options);
void add_model_verify(CLI::App& command, ModelVerifyOptions& options);
void add_model_run(CLI::App& command, ModelRunOptions& options);
void add_model_import(CLI::App& command, ModelImportOptions& options);

}  // namespace gpumem::cli
