// Enters: the words of the command line. Leaves: the exit code of the one command that they name, which has run.
#pragma once

namespace gpumem::cli {

/// Throws nothing. An error is on standard error already.
[[nodiscard]] int run_command_line(int argc, char** argv);

}  // namespace gpumem::cli
