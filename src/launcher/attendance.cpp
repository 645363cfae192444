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

bool is_stopped(const Entry& entry, const FindFacts& facts_of) {
  const auto facts = facts_of(entry.launcher.pid);
  return facts && is_same(*facts, entry.launcher) && is_stopped(*facts);
}

const Entry* StoppedWaiters::nearest_before(const std::vector<const Entry*>& waiting, std::int64_t job, double now,
                                            const FindFacts& facts_of) {
  soon_ = false;
  std::map<std::int64_t, double> since;
  const Entry* found = nullptr;
  const auto me = std::find_if(waiting.begin(), waiting.end(), [&](const Entry* one) { return one->job == job; });
  for (auto before = me; before != waiting.begin() && found == nullptr;) {
    const Entry& entry = **--before;
    const bool stopped = is_stopped(entry, facts_of);
    const auto known = since_.find(entry.job);
    const double first = known == since_.end() ? now : known->second;
    if (stopped) since.emplace(entry.job, first);
    if (stopped && now - first >= kPatience) continue;
    found = &entry;
    soon_ = stopped;
  }
  since_ = std::move(since);
  return found;
}

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
