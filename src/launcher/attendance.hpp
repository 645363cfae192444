// Enters: the queue. Leaves: the queue without jobs whose processes are gone: who was killed while it waited, or whose
// machine was started anew, holds no place and no promise. A job whose launcher alone was killed runs on, and keeps its
// promise until the last process of its group has ended. And who of those that wait goes on: a launcher that is stopped
// keeps its place, and the queue goes past it meanwhile. Units: seconds since boot.
#pragma once

#include <map>
#include <vector>

#include "journal.hpp"

namespace gpumem::launcher {

[[nodiscard]] bool is_gone(const Entry& entry);

/// Errors: those of the journal.
[[nodiscard]] core::Status take_back_the_gone(Journal& journal);
/// The same of jobs that were started alone: those who wait are watched by the one behind them.
[[nodiscard]] core::Status take_back_ended_runs(Journal& journal);
/// The same where the lock is held already.
[[nodiscard]] core::Status take_back_the_gone(Journal& journal, Journal::Locked& locked);

/// Which launchers that wait have been stopped for a while: Ctrl-Z, SIGSTOP. Where /proc hides a process of another
/// user, nobody can tell that it is stopped, and the queue waits for it.
class StoppedWaiters {
 public:
  /// So long nobody goes past it: who is stopped and goes on at once has lost nothing.
  static constexpr double kPatience = 3.0;

  /// The nearest before `job` that has not been stopped for so long. Null: there is none, so that it is this one's
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
