// Input: a job in the queue.
// Output: the process that will run it, once its turn has come and its memory is promised to it in the journal; or why
// its turn never comes. place/ decides, on what the driver sees less what is promised to others.
//
// Only the head of the queue looks at the GPUs. It looks at every event of the queue, which inotify tells it at once;
// then after 10 ms, 20 ms and so on up to every second, for a driver frees the memory of a process some time after it
// has ended, and no event tells what other programs free. All others sleep until the journal changes, or the launcher
// before them in the queue ends; every five seconds they look whether that one is stopped. The head is the first that
// is not.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/core/result.hpp"
#include "held_job.hpp"
#include "ledger.hpp"
#include "occupancy.hpp"
#include "site.hpp"

namespace gpumem::launcher {

/// What a job's environment says about its GPUs: their UUIDs, and how it shares them. `asked`: what it asks for this
/// time, which grows where it ran out of memory.
using EnvironmentFor = std::function<Environment(const Asked& asked, const std::vector<Promise>& promises)>;

/// A job that may begin.
struct Turn {
  HeldJob held;
  std::vector<Promise> promises;
  std::string words;  ///< where, for people
};

/// A wait that came to no turn.
struct Left {
  Ending ending = Ending::left;
  int signal = 0;                     ///< that asked for the end; 0: another reason
  std::optional<core::Error> reason;  ///< why it can never run, or what is wrong with the queue
};

struct Waited {
  std::optional<Turn> turn;  ///< nothing: `left`
  Left left;
};

/// Waits for the turn of this job of the queue. The queue is not told of the end of a wait.
[[nodiscard]] Waited wait_for_turn(std::int64_t job, const std::vector<std::string>& command,
                                   const EnvironmentFor& environment_for, Site& site);

/// The decision on the head of the queue, and the server that it was made on.
struct Judgement {
  place::Decision decision;
  place::Server server;
  std::size_t turn = 0;  ///< the round-robin's afterwards
};
/// Errors: those of the policy's name, and of the ledger's jobs.
[[nodiscard]] core::Result<Judgement> judge(const Entry& entry, const Gpus& gpus, const Ledger& ledger,
                                            const FindFacts& facts_of = launcher::facts_of);
/// The decision in words.
[[nodiscard]] std::string words_of(const Judgement& judgement, const Entry& entry, const Ledger& ledger);

}  // namespace gpumem::launcher
