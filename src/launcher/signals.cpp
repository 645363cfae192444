#include "signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <array>

namespace gpumem::launcher {

namespace {

constexpr std::array<int, 9> kTaken = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

core::Result<Signals> Signals::take_over() {
  Signals signals;
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : kTaken) {
    // A parent may ignore its children; this one waits for them.
    if (signal == SIGCHLD || !is_ignored(signal)) sigaddset(&taken, signal);
  }
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &usual, nullptr);
  sigset_t blocked = taken;
  sigaddset(&blocked, SIGTTOU);  // handing a terminal on
  sigprocmask(SIG_BLOCK, &blocked, &signals.before_);
  // A full disk, or a closed pipe, is an error to report, not the end.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &signals.pipe_before_);
  sigaction(SIGXFSZ, &ignore, &signals.size_before_);
  signals.descriptor_ = OpenFile(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (signals.descriptor_.is_open()) return signals;
  return system_error("signals cannot be read");
}

std::optional<int> Signals::next() {
  signalfd_siginfo told{};
  const ssize_t size = read(descriptor_.number(), &told, sizeof told);
  if (size != static_cast<ssize_t>(sizeof told)) return std::nullopt;
  return static_cast<int>(told.ssi_signo);
}

void Signals::give_back() const {
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  sigaction(SIGXFSZ, &size_before_, nullptr);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace gpumem::launcher
