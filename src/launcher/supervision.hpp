// Input: a job that runs.
// Output: how it ended, whether it ran out of memory, and what it was seen to take. Meanwhile signals go to the job's
// process group, its output goes to this program's outputs, and a cancellation is obeyed: SIGTERM to the group, SIGKILL
// ten seconds later. Memory is read every second, and more often at first: a shorter peak may not be seen.
// Units: bytes, seconds.
//
// A job that fails was out of memory if it has said so. Some say it elsewhere (torchrun --redirects, a log file of
// their own): then what was seen tells, where it leaves little doubt. It exits with an error or aborts, no signal from
// outside ends it; and at a look in the two seconds before, it had outgrown its promise on a GPU that was full. Not
// only the last look counts: a process gives its memory back before it is gone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/core/result.hpp"
#include "site.hpp"
#include "turn.hpp"

namespace gpumem::launcher {

/// What the driver showed of a job while it ran.
struct SeenUse {
  std::map<std::string, core::Bytes> peaks;  ///< by GPU; none where nothing was seen
  bool alone = true;                         ///< nobody else was seen on its GPUs
  bool hidden = false;                       ///< the driver does not tell what processes use
  core::Bytes had;                           ///< what it could have at the end on the smallest of its GPUs
  bool filled = false;                       ///< at this look it had outgrown its promise on a GPU that was full
};

struct JobEnd {
  int exit_code = 0;            ///< as shells have it: 128 and the signal's number
  bool said_no_memory = false;  ///< a message of a GPU that ran out
  bool filled_gpu = false;      ///< no message, and what was seen tells the same
  bool cancelled = false;
  bool asked_to_end = false;               ///< by the keyboard, or by a signal to this program
  std::optional<core::Error> not_started;  ///< there is no such program
  SeenUse seen;

  /// Ended for lack of GPU memory. What ends well was not harmed, whatever it printed; nor what somebody ended.
  [[nodiscard]] bool out_of_memory() const {
    return exit_code != 0 && (said_no_memory || filled_gpu) && !cancelled && !asked_to_end && !not_started;
  }
};

/// Lets the job begin, and returns once its first process has ended.
[[nodiscard]] JobEnd supervise(std::int64_t job, Turn& turn, Site& site);

/// Whether a program that ends so has failed by itself: with an error, or by abort().
[[nodiscard]] bool failed_by_itself(int exit_code);

/// Adds what is seen now to what was seen before; `had` is that of now.
void take_sample(const Gpus& gpus, const Ledger& ledger, std::int64_t job, const std::vector<Promise>& promises,
                 SeenUse& seen);

}  // namespace gpumem::launcher
