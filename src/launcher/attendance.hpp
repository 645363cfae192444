// Enters: the queue. Leaves: the queue without jobs whose processes are gone: who was killed while it waited, or whose
// machine was started anew, holds no place and no promise. A job whose launcher alone was killed runs on, and keeps its
// promise until the last process of its group has ended.
#pragma once

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

}  // namespace gpumem::launcher
