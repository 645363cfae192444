// Input: the table of commands. Output: scripts that complete gpumem's commands, options and values in a shell. They
// hold all that there is to complete, so that pressing Tab starts no program.
#pragma once

#include <string>

#include "command_table.hpp"

namespace gpumem::cli {

[[nodiscard]] std::string bash_completion(const CommandRow& program);
[[nodiscard]] std::string zsh_completion(const CommandRow& program);
[[nodiscard]] std::string fish_completion(const CommandRow& program);

struct CompletionOptions {
  std::string shell;  ///< bash, zsh or fish
  std::string out;    ///< the file to write; empty: standard output
};
int run_completion(const CompletionOptions& options);

}  // namespace gpumem::cli
