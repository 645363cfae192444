#include "site.hpp"

#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace gpumem::launcher {

Alarm::Alarm(const Site& site)
    : journal_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)), signals_(site.signals.descriptor()) {
  const std::string& directory = site.journal.directory();
  if (!journal_.is_open()) return;
  const int watch = inotify_add_watch(journal_.number(), directory.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO);
  if (watch < 0) journal_ = OpenFile();
}

void Alarm::sleep(double seconds, const std::vector<pollfd>& others) {
  heard_ = {{journal_.number(), POLLIN, 0}, {signals_, POLLIN, 0}};
  heard_.insert(heard_.end(), others.begin(), others.end());
  constexpr double kMilliseconds = 1000.0;
  constexpr double kLongest = 3600.0;
  constexpr double kUnwatched = 1.0;
  if (!journal_.is_open()) seconds = std::min(seconds, kUnwatched);
  const int timeout = static_cast<int>(std::ceil(kMilliseconds * std::clamp(seconds, 0.0, kLongest)));
  if (poll(heard_.data(), heard_.size(), timeout) <= 0) {
    for (pollfd& one : heard_) one.revents = 0;
  }
}

bool Alarm::journal_changed() {
  if (!journal_.is_open()) return true;
  std::array<char, 4096> told{};
  bool changed = false;
  while (read(journal_.number(), told.data(), told.size()) > 0) changed = true;
  return changed;
}

bool Alarm::rang(std::size_t other) const {
  constexpr std::size_t kOwn = 2;
  return kOwn + other < heard_.size() && heard_[kOwn + other].revents != 0;
}

std::optional<int> pause_before_another_try(Site& site) {
  constexpr double kSeconds = 1.0;
  constexpr double kMilliseconds = 1000.0;
  const double until = seconds_since_boot() + kSeconds;
  double left = kSeconds;
  while (left > 0.0) {
    pollfd signals = {site.signals.descriptor(), POLLIN, 0};
    (void)poll(&signals, 1, static_cast<int>(std::ceil(kMilliseconds * left)));
    while (const auto signal = site.signals.next()) {
      if (asks_to_end(*signal)) return signal;
    }
    left = until - seconds_since_boot();
  }
  return std::nullopt;
}

OpenFile end_of(const Process& process) {
#ifdef SYS_pidfd_open
  OpenFile end(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process.pid), 0)));
  if (end.is_open() && is_alive(process)) return end;
#else
  (void)process;
#endif
  return OpenFile();
}

}  // namespace gpumem::launcher
