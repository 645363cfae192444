// Input: the events of the queue, in their order.
// Output: Ledger: who waits and in which order, what runs where, and what is promised to it. Pure: no clock, no file,
// no process.
// Units: bytes; seconds since boot.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "event.hpp"

namespace gpumem::launcher {

/// What a job that was started holds.
struct Holding {
  Process leader;
  std::vector<Promise> promises;
  double since = 0.0;
};

/// A name fit for a terminal: without control characters, a long one shortened. A user may call a job anything.
[[nodiscard]] std::string shown(std::string_view name);

/// A job in the queue, waiting or running.
struct Entry {
  std::int64_t job = 0;
  std::string name;
  std::int64_t user = 0;
  Process launcher;
  std::string boot;
  Asked asked;
  Terms terms;
  std::int64_t failures = 0;       ///< times that it ran out of memory
  double since = 0.0;              ///< when it joined
  std::int64_t place = 0;          ///< the order in which jobs joined their class
  bool cancelled = false;          ///< somebody asked for its end
  std::optional<Holding> holding;  ///< nothing: it waits

  /// "train.py#12": what people and policies call it.
  [[nodiscard]] std::string id() const { return name + "#" + std::to_string(job); }
  /// The same, fit for a terminal.
  [[nodiscard]] std::string shown_id() const { return shown(name) + "#" + std::to_string(job); }
  [[nodiscard]] place::Request request(const std::string& id) const { return request_of(asked, id); }
};

class Ledger {
 public:
  /// Errors: malformed_input for an event that cannot follow those before it: of a job that is not there, a job that
  /// joins or starts twice, a GPU that is promised twice to one job. Nothing has changed then.
  [[nodiscard]] core::Status apply(const Event& event);

  /// Null: not in the queue.
  [[nodiscard]] const Entry* find(std::int64_t job) const;
  /// Those whose turn comes, in that order: place::WaitingQueue's.
  [[nodiscard]] std::vector<const Entry*> waiting() const;
  [[nodiscard]] std::vector<const Entry*> running() const;
  /// By their numbers.
  [[nodiscard]] const std::map<std::int64_t, Entry>& entries() const { return entries_; }

  [[nodiscard]] bool opened() const { return opened_; }
  [[nodiscard]] std::int64_t next_job() const { return next_; }
  [[nodiscard]] std::int64_t turn() const { return turn_; }

  /// The shortest list of events that makes this ledger.
  [[nodiscard]] std::vector<Event> snapshot() const;

 private:
  core::Status take(const Event& event, const Opened& opened);
  core::Status take(const Event& event, const Joined& joined);
  core::Status take(const Event& event, const Started& started);
  core::Status take(const Event& event, const Recovers& recovers);
  core::Status take(const Event& event, const Ended& ended);
  core::Status take(const Event& event, const Cancelled& cancelled);

  std::map<std::int64_t, Entry> entries_;
  bool opened_ = false;
  std::int64_t next_ = 1;
  std::int64_t turn_ = 0;
  std::int64_t places_ = 0;
};

}  // namespace gpumem::launcher
