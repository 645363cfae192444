#include "error_stream.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

namespace gpumem::launcher {

namespace {

void write_out(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno == EAGAIN) {
      pollfd ready = {STDERR_FILENO, POLLOUT, 0};
      (void)poll(&ready, 1, -1);
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // nobody reads it any more: the job goes on
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// A terminal that passes bytes as they are.
bool make_plain(int terminal) {
  termios settings{};
  if (tcgetattr(terminal, &settings) != 0) return false;
  cfmakeraw(&settings);
  return tcsetattr(terminal, TCSANOW, &settings) == 0;
}

}  // namespace

core::Result<ErrorStream> ErrorStream::open() {
  ErrorStream stream;
  if (isatty(STDERR_FILENO) == 1) {
    OpenFile ours(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    std::array<char, 128> name{};
    if (ours.is_open() && grantpt(ours.number()) == 0 && unlockpt(ours.number()) == 0 &&
        ptsname_r(ours.number(), name.data(), name.size()) == 0) {
      OpenFile theirs(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
      if (theirs.is_open() && make_plain(theirs.number())) {
        stream.ours_ = std::move(ours);
        stream.theirs_ = std::move(theirs);
        stream.terminal_ = true;
        stream.resize();
      }
    }
  }
  if (!stream.terminal_) {
    auto ends = make_pipe();
    if (!ends) return ends.error();
    stream.ours_ = std::move(ends->first);
    stream.theirs_ = std::move(ends->second);
  }
  const int flags = fcntl(stream.ours_.number(), F_GETFL);
  if (flags < 0 || fcntl(stream.ours_.number(), F_SETFL, flags | O_NONBLOCK) != 0)
    return system_error("a pipe cannot be set");
  return stream;
}

void ErrorStream::become_standard_error() const { (void)dup2(theirs_.number(), STDERR_FILENO); }

bool ErrorStream::pass_on(MemoryMessages& messages) {
  constexpr int kPieces = 64;  // others wait as well
  std::array<char, 16384> text{};
  for (int piece = 0; piece < kPieces; ++piece) {
    const ssize_t count = read(ours_.number(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return true;
    if (count <= 0) return false;  // a terminal that nobody holds is an error (EIO)
    const std::string_view read(text.data(), static_cast<std::size_t>(count));
    messages.take(read);
    write_out(read);
  }
  return true;
}

void ErrorStream::resize() {
  winsize size{};
  if (terminal_ && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0) (void)ioctl(ours_.number(), TIOCSWINSZ, &size);
}

Terminal::Terminal() : ours_(isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp()) {}

void Terminal::give(int group) const {
  if (ours_) (void)tcsetpgrp(STDIN_FILENO, group);
}

void Terminal::take_back() const {
  if (ours_) (void)tcsetpgrp(STDIN_FILENO, getpgrp());
}

}  // namespace gpumem::launcher
