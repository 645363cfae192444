// Site: all that a launcher has around it: the queue, the GPUs, its signals, and a listener who hears what it does; and
// Alarm, which sleeps until one of these has something to say.
// Units: seconds.
#pragma once

#include <poll.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/monitor/nvml.hpp"
#include "gpumem/place/server.hpp"
#include "journal.hpp"
#include "signals.hpp"

namespace gpumem::launcher {

/// The GPUs at one moment: as the driver sees them, and as a server whose GPUs are named by UUID.
struct Gpus {
  monitor::Machine machine;
  place::Server server;
};
using ReadGpus = std::function<core::Result<Gpus>()>;

struct Site {
  Journal journal;
  ReadGpus read_gpus;
  Signals signals;
  std::function<void(const std::string& line)> say;   ///< one plain line for people: what is done
  std::function<void(const std::string& line)> warn;  ///< the same of what is wrong
};

/// Sleeps without a trace of CPU time until a descriptor has something to read, or this much time has passed.
class Alarm {
 public:
  /// Hears of every change of the journal. Where inotify has no room left (fs.inotify.max_user_instances), it looks
  /// every second instead.
  explicit Alarm(const Site& site);

  /// `others`: further descriptors, with what is waited for; one below 0 is left out.
  void sleep(double seconds, const std::vector<pollfd>& others = {});
  /// Whether the journal may have changed since the last sleep; forgets it.
  [[nodiscard]] bool journal_changed();
  /// Of `others`, whether this one has what was waited for, or its end.
  [[nodiscard]] bool rang(std::size_t other) const;

 private:
  OpenFile journal_;
  int signals_;
  std::vector<pollfd> heard_;
};

/// Sleeps so long, whatever the journal says: for who tries again what changes the journal by itself when it fails. A
/// signal that asks to end cuts it short, and is the answer.
[[nodiscard]] std::optional<int> pause_before_another_try(Site& site);

/// A descriptor that can be read once this process has ended. Not open where the kernel has none (before Linux 5.3), or
/// the process is gone.
[[nodiscard]] OpenFile end_of(const Process& process);

}  // namespace gpumem::launcher
