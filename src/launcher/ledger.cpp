#include "ledger.hpp"

#include <algorithm>
#include <set>

#include "gpumem/core/bytes.hpp"
#include "gpumem/place/policies.hpp"

namespace gpumem::launcher {

namespace {

core::Error wrong(std::int64_t job, const std::string& what) {
  return core::malformed("job " + std::to_string(job) + " " + what);
}

core::Error not_there(std::int64_t job) { return wrong(job, "is not in the queue"); }

/// Whether nothing is promised twice on one GPU, and all of it fits 64 bits.
bool promises_are_sound(const std::vector<Promise>& promises) {
  std::set<std::string_view> gpus;
  return std::all_of(promises.begin(), promises.end(),
                     [&](const Promise& promise) { return gpus.insert(promise.gpu).second; });
}

Joined joined_of(const Entry& entry) {
  return {entry.name, entry.user, entry.launcher, entry.boot, entry.asked, entry.terms, entry.failures};
}

}  // namespace

std::string shown(std::string_view name) {
  const std::string text = core::quoted(name);
  return text.substr(1, text.size() - 2);
}

core::Status Ledger::apply(const Event& event) {
  return std::visit([&](const auto& what) { return take(event, what); }, event.what);
}

core::Status Ledger::take(const Event& /*event*/, const Opened& opened) {
  if (opened_) return core::malformed("a second first line");
  opened_ = true;
  next_ = opened.next;
  turn_ = opened.turn;
  return core::Done{};
}

core::Status Ledger::take(const Event& event, const Joined& joined) {
  if (!opened_) return core::malformed("the first line is not that of a queue");
  if (event.job < 1 || event.job == INT64_MAX) return wrong(event.job, "has a number that no job has");
  if (entries_.contains(event.job)) return wrong(event.job, "joins twice");
  Entry entry;
  entry.job = event.job;
  entry.name = joined.name;
  entry.user = joined.user;
  entry.launcher = joined.launcher;
  entry.boot = joined.boot;
  entry.asked = joined.asked;
  entry.terms = joined.terms;
  entry.failures = joined.failures;
  entry.since = event.at;
  entry.place = ++places_;
  next_ = std::max(next_, event.job + 1);
  entries_.emplace(event.job, std::move(entry));
  return core::Done{};
}

core::Status Ledger::take(const Event& event, const Started& started) {
  const auto found = entries_.find(event.job);
  if (found == entries_.end()) return not_there(event.job);
  if (found->second.holding) return wrong(event.job, "starts twice");
  if (!promises_are_sound(started.promises)) return wrong(event.job, "is promised one GPU twice");
  found->second.holding = Holding{started.leader, started.promises, event.at};
  turn_ = started.turn;
  return core::Done{};
}

core::Status Ledger::take(const Event& event, const Recovers& recovers) {
  const auto found = entries_.find(event.job);
  if (found == entries_.end()) return not_there(event.job);
  if (!found->second.holding) return wrong(event.job, "ran out of memory before it started");
  Entry& entry = found->second;
  entry.holding.reset();
  entry.asked = recovers.asked;
  entry.failures = recovers.failures;
  entry.place = ++places_;
  return core::Done{};
}

core::Status Ledger::take(const Event& event, const Ended& /*ended*/) {
  if (entries_.erase(event.job) == 0) return not_there(event.job);
  return core::Done{};
}

core::Status Ledger::take(const Event& event, const Cancelled& /*cancelled*/) {
  const auto found = entries_.find(event.job);
  if (found == entries_.end()) return not_there(event.job);
  found->second.cancelled = true;
  return core::Done{};
}

const Entry* Ledger::find(std::int64_t job) const {
  const auto found = entries_.find(job);
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<const Entry*> Ledger::waiting() const {
  std::vector<const Entry*> in_order;
  for (const auto& [job, entry] : entries_) {
    if (!entry.holding) in_order.push_back(&entry);
  }
  std::sort(in_order.begin(), in_order.end(),
            [](const Entry* left, const Entry* right) { return left->place < right->place; });
  place::WaitingQueue<const Entry*> queue;
  for (const Entry* entry : in_order) {
    if (entry->failures > 0) queue.push_recovery(entry);
    else queue.push(entry);
  }
  in_order.clear();
  while (!queue.empty()) in_order.push_back(queue.pop());
  return in_order;
}

std::vector<const Entry*> Ledger::running() const {
  std::vector<const Entry*> found;
  for (const auto& [job, entry] : entries_) {
    if (entry.holding) found.push_back(&entry);
  }
  return found;
}

std::vector<Event> Ledger::snapshot() const {
  std::vector<const Entry*> in_order;
  for (const auto& [job, entry] : entries_) in_order.push_back(&entry);
  std::sort(in_order.begin(), in_order.end(),
            [](const Entry* left, const Entry* right) { return left->place < right->place; });
  std::vector<Event> events = {{0, 0.0, Opened{next_, turn_}}};
  for (const Entry* entry : in_order) {
    events.push_back({entry->job, entry->since, joined_of(*entry)});
    if (entry->holding) {
      events.push_back(
          {entry->job, entry->holding->since, Started{entry->holding->leader, entry->holding->promises, turn_}});
    }
    if (entry->cancelled) events.push_back({entry->job, entry->since, Cancelled{}});
  }
  return events;
}

}  // namespace gpumem::launcher
