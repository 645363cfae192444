// Input: the words of the command line.
// Output: the exit code of the command that they name, after it has run.
#pragma once

namespace gpumem::cli {

/// Throws nothing. An error is on standard error already.
[[nodiscard]] int run_command_line(int argc, char** argv);

}  // namespace gpumem::cli
