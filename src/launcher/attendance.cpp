#include "attendance.hpp"

#include <algorithm>

namespace gpumem::launcher {

namespace {

core::Status take_back_under_lock(Journal& journal) {
  core::Result<Journal::Locked> locked = journal.lock();
  if (!locked) return locked.error();
  return take_back_the_gone(journal, *locked);
}

}  // namespace

bool is_gone(const Entry& entry) {
  if (entry.boot != boot_id()) return true;
  if (is_alive(entry.launcher)) return false;
  if (!entry.holding) return true;
  return !is_alive(entry.holding->leader) && !group_is_alive(entry.holding->leader);
}

core::Status take_back_the_gone(Journal& journal, Journal::Locked& locked) {
  std::vector<Event> events;
  for (const auto& [job, entry] : journal.ledger().entries()) {
    if (is_gone(entry)) events.push_back({job, seconds_since_boot(), Ended{Ending::gone, 0}});
  }
  return events.empty() ? core::Status(core::Done{}) : locked.append(events);
}

core::Status take_back_the_gone(Journal& journal) {
  const auto& entries = journal.ledger().entries();
  const bool any = std::any_of(entries.begin(), entries.end(), [](const auto& row) { return is_gone(row.second); });
  return any ? take_back_under_lock(journal) : core::Status(core::Done{});
}

core::Status take_back_ended_runs(Journal& journal) {
  const auto running = journal.ledger().running();
  const bool any = std::any_of(running.begin(), running.end(), [](const Entry* entry) { return is_gone(*entry); });
  return any ? take_back_under_lock(journal) : core::Status(core::Done{});
}

}  // namespace gpumem::launcher
