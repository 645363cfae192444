// Output: Signals: the signals of this process, read from a descriptor instead of interrupting it, and the signal state
// that a job gets back before it starts. Signals that were ignored before stay ignored (nohup, background jobs of
// scripts).
// Source: signalfd(2).
#pragma once

#include <csignal>
#include <optional>

#include "gpumem/core/result.hpp"
#include "open_file.hpp"

namespace gpumem::launcher {

class Signals {
 public:
  /// Once a program. Errors: unreadable_file with the system's reason.
  [[nodiscard]] static core::Result<Signals> take_over();

  [[nodiscard]] int descriptor() const { return descriptor_.number(); }
  /// The next signal. Nothing: no more for now.
  [[nodiscard]] std::optional<int> next();
  /// In a process that was forked: as before take_over().
  void give_back() const;

 private:
  Signals() = default;

  OpenFile descriptor_;
  sigset_t before_{};
  struct sigaction pipe_before_ {};
  struct sigaction size_before_ {};
};

/// Whether it asks a program to end: of the keyboard, of `kill`, of a terminal that closes.
[[nodiscard]] constexpr bool asks_to_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

/// The exit code of who ended by a signal, as shells have it.
inline constexpr int kSignalled = 128;

}  // namespace gpumem::launcher
