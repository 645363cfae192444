// Input: the queue.
// Output: the queue without jobs of dead processes. A waiting launcher that was killed, or a reboot, gives up its place
// and its promise. If only the launcher of a running job was killed, the job runs on and keeps its promise until the
// last process of its group has ended. Also which of the waiting launchers can go on: a stopped launcher keeps its
// place, and the queue passes it meanwhile.
// Units: seconds since boot.
#pragma once

#include <map>
#include <vector>

#include "journal.hpp"

namespace gpumem::launcher {

[[nodiscard]] bool is_gone(const Entry& entry);

/// Errors: those of the journal.
[[nodiscard]] core::Status take_back_the_gone(Journal& journal);
/// The same for started jobs only: a waiting launcher is watched by the one after it.
[[nodiscard]] core::Status take_back_ended_runs(Journal& journal);
/// The same where the lock is held already.
[[nodiscard]] core::Status take_back_the_gone(Journal& journal, Journal::Locked& locked);

/// Which launchers that wait have been stopped for a while: Ctrl-Z, SIGSTOP. Where /proc hides a process of another
/// user, nobody can tell that it is stopped, and the queue waits for it.
class StoppedWaiters {
 public:
  /// Seconds in which no other goes past it: a launcher that is stopped for a moment keeps its place.
  static constexpr double kPatience = 3.0;

  /// The nearest before `job` that has not been stopped for that long. Null: there is none, so that it is this one's
  /// turn.
  [[nodiscard]] const Entry* nearest_before(const std::vector<const Entry*>& waiting, std::int64_t job,
                                            double now = seconds_since_boot(),
                                            const FindFacts& facts_of = launcher::facts_of);
  /// Whether the one that was found last is stopped, and so may be passed soon.
  [[nodiscard]] bool may_be_passed_soon() const { return soon_; }

 private:
  std::map<std::int64_t, double> since_;  ///< when it was first seen so, by job
  bool soon_ = false;
};
/// Whether the launcher is stopped now.
[[nodiscard]] bool is_stopped(const Entry& entry, const FindFacts& facts_of = launcher::facts_of);

}  // namespace gpumem::launcher
