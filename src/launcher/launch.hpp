// Input: a user's job, and the site.
// Output: the exit code of the job. It has waited for its turn, run, and run again if it ran out of memory, by the rule
// of place/policies.hpp. Other failures are not retried.
#pragma once

#include <string>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/place/policies.hpp"
#include "runs_table.hpp"
#include "site.hpp"
#include "supervision.hpp"
#include "turn.hpp"

namespace gpumem::launcher {

struct Job {
  std::string name;
  std::vector<std::string> command;
  Asked asked;
  Terms terms;
  place::RecoveryRule recovery;
  EnvironmentFor environment_for;
  /// What runs.csv is to say about the job itself; empty: nothing is written, because what trains is not known.
  RunCells described;
};

/// Errors: those of the queue before the job begins; missing_information where no GPU of this machine could ever hold
/// it; unreadable_file where there is no such program.
[[nodiscard]] core::Result<int> launch(const Job& job, Site& site);

/// A job's name by its command: "train.py" of "python3 -u train.py --lr 1".
[[nodiscard]] std::string name_of(const std::vector<std::string>& command);

}  // namespace gpumem::launcher
