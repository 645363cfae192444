#include "job_output.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <tuple>

namespace gpumem::launcher {

namespace {

constexpr int kPieces = 64;  ///< others wait as well

/// A terminal that passes bytes as they are.
bool make_plain(int terminal) {
  termios settings{};
  if (tcgetattr(terminal, &settings) != 0) return false;
  cfmakeraw(&settings);
  return tcsetattr(terminal, TCSANOW, &settings) == 0;
}

bool is_one_place(const struct stat& left, const struct stat& right) {
  return left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

bool is_written(int place) {
  const int flags = fcntl(place, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

/// What is open at a standard place, by itself. Not open: this user may not.
OpenFile open_again(int place, int flags) {
  return OpenFile(::open(("/proc/self/fd/" + std::to_string(place)).c_str(), flags | O_NOCTTY | O_CLOEXEC));
}

/// Another descriptor of standard output's file, to read it. Not open: it may not be read.
OpenFile reader_of_output(const struct stat& output) {
  OpenFile file = open_again(STDOUT_FILENO, O_RDONLY);
  struct stat facts {};
  const bool same = file.is_open() && fstat(file.number(), &facts) == 0 && is_one_place(facts, output);
  return same ? std::move(file) : OpenFile();
}

}  // namespace

bool OutputChannel::become_terminal() {
  OpenFile ours(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::array<char, 128> name{};
  if (!ours.is_open() || grantpt(ours.number()) != 0 || unlockpt(ours.number()) != 0) return false;
  if (ptsname_r(ours.number(), name.data(), name.size()) != 0) return false;
  OpenFile theirs(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!theirs.is_open() || !make_plain(theirs.number())) return false;
  ours_ = std::move(ours);
  theirs_ = std::move(theirs);
  // A terminal that says it has room may have little of it, and a write waits for all that it needs.
  screen_ = open_again(places_.front(), O_WRONLY | O_NONBLOCK);
  terminal_ = true;
  resize();
  return true;
}

core::Result<OutputChannel> OutputChannel::open(std::vector<int> places) {
  OutputChannel channel(std::move(places));
  if (isatty(channel.target()) != 1 || !channel.become_terminal()) {
    auto ends = make_pipe();
    if (!ends) return ends.error();
    channel.ours_ = std::move(ends->first);
    channel.theirs_ = std::move(ends->second);
  }
  const int flags = fcntl(channel.ours_.number(), F_GETFL);
  if (flags < 0 || fcntl(channel.ours_.number(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return system_error("a pipe cannot be set");
  }
  return channel;
}

void OutputChannel::take_places() const {
  for (const int place : places_) (void)dup2(theirs_.number(), place);
}

pollfd OutputChannel::waits_for() const {
  if (!pending_.empty()) return {target(), POLLOUT, 0};
  return {ours_.number(), POLLIN, 0};
}

bool OutputChannel::read_piece() {
  if (!ours_.is_open()) return false;
  std::array<char, 16384> text{};
  ssize_t count = 0;
  while ((count = read(ours_.number(), text.data(), text.size())) < 0 && errno == EINTR) {
  }
  if (count < 0 && errno == EAGAIN) return false;
  if (count <= 0) {  // a terminal that nobody holds is an error (EIO)
    ours_ = OpenFile();
    return false;
  }
  const std::string_view piece(text.data(), static_cast<std::size_t>(count));
  messages_.take(piece);
  pending_.append(piece);
  return true;
}

bool OutputChannel::write_piece() {
  pollfd room = {target(), POLLOUT, 0};
  if (poll(&room, 1, 0) == 0) return false;
  // A pipe with room takes this much without waiting (pipe(7)).
  const ssize_t count = write(target(), pending_.data(), std::min<std::size_t>(pending_.size(), PIPE_BUF));
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count > 0) {
    pending_.erase(0, static_cast<std::size_t>(count));
    return true;
  }
  pending_.clear();
  // A fault of standard error only does not end a job.
  if (places_.front() == STDOUT_FILENO) ours_ = OpenFile();
  return true;
}

void OutputChannel::pass_on() {
  for (int piece = 0; piece < kPieces; ++piece) {
    if (pending_.empty() && !read_piece()) return;
    while (!pending_.empty()) {
      if (!write_piece()) return;
    }
  }
}

void OutputChannel::read_rest() {
  for (int piece = 0; piece < kPieces && read_piece(); ++piece) {
  }
}

bool OutputChannel::flush(int bell, const std::function<bool()>& is_enough) {
  while (!pending_.empty()) {
    if (write_piece()) continue;
    std::array<pollfd, 2> waits = {pollfd{target(), POLLOUT, 0}, pollfd{bell, POLLIN, 0}};
    (void)poll(waits.data(), waits.size(), -1);
    if (waits[1].revents != 0 && is_enough()) return false;
  }
  return true;
}

bool OutputChannel::resize() {
  winsize size{};
  winsize theirs{};
  if (!terminal_ || ioctl(target(), TIOCGWINSZ, &size) != 0) return false;
  if (ioctl(ours_.number(), TIOCGWINSZ, &theirs) != 0) return false;
  if (std::tie(size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel) ==
      std::tie(theirs.ws_row, theirs.ws_col, theirs.ws_xpixel, theirs.ws_ypixel)) {
    return false;
  }
  return ioctl(ours_.number(), TIOCSWINSZ, &size) == 0;
}

core::Result<JobOutput> JobOutput::open() {
  JobOutput job;
  struct stat output {};
  struct stat errors {};
  const bool has_output = is_written(STDOUT_FILENO) && fstat(STDOUT_FILENO, &output) == 0;
  const bool one_place = has_output && fstat(STDERR_FILENO, &errors) == 0 && is_one_place(output, errors);
  std::vector<std::vector<int>> ways;
  if (one_place) {
    ways = {{STDOUT_FILENO, STDERR_FILENO}};
  } else {
    ways = {{STDERR_FILENO}};
    if (has_output && S_ISREG(output.st_mode)) job.file_ = reader_of_output(output);
    if (has_output && !job.file_.is_open()) ways.push_back({STDOUT_FILENO});
  }
  if (job.file_.is_open()) {
    const bool appends = (fcntl(STDOUT_FILENO, F_GETFL) & O_APPEND) != 0;
    job.from_ = appends ? output.st_size : std::max<off_t>(0, lseek(STDOUT_FILENO, 0, SEEK_CUR));
  }
  for (std::vector<int>& places : ways) {
    auto channel = OutputChannel::open(std::move(places));
    if (!channel) return channel.error();
    job.channels_.push_back(*std::move(channel));
  }
  return job;
}

void JobOutput::take_places() const {
  for (const OutputChannel& channel : channels_) channel.take_places();
}

void JobOutput::close_job_ends() {
  for (OutputChannel& channel : channels_) channel.close_job_end();
}

std::vector<pollfd> JobOutput::waits_for() const {
  std::vector<pollfd> all;
  for (const OutputChannel& channel : channels_) all.push_back(channel.waits_for());
  return all;
}

void JobOutput::pass_on() {
  for (OutputChannel& channel : channels_) channel.pass_on();
}

void JobOutput::read_rest() {
  for (OutputChannel& channel : channels_) channel.read_rest();
}

bool JobOutput::flush(int bell, const std::function<bool()>& is_enough) {
  return std::all_of(channels_.begin(), channels_.end(),
                     [&](OutputChannel& channel) { return channel.flush(bell, is_enough); });
}

bool JobOutput::resize() {
  bool changed = false;
  for (OutputChannel& channel : channels_) changed = channel.resize() || changed;
  return changed;
}

bool JobOutput::said_no_memory() const {
  const auto said = [](const OutputChannel& channel) { return channel.said_no_memory(); };
  if (std::any_of(channels_.begin(), channels_.end(), said)) return true;
  struct stat facts {};
  if (!file_.is_open() || fstat(file_.number(), &facts) != 0) return false;
  constexpr off_t kMost = off_t{64} << 20;  // such a message is among the last things that a program says
  off_t at = std::max(facts.st_size < from_ ? 0 : from_, facts.st_size - kMost);
  std::array<char, 65536> text{};
  MemoryMessages messages;
  ssize_t count = 0;
  while (!messages.found() && (count = pread(file_.number(), text.data(), text.size(), at)) > 0) {
    messages.take({text.data(), static_cast<std::size_t>(count)});
    at += count;
  }
  return messages.found();
}

int Terminal::foreground() { return tcgetpgrp(STDIN_FILENO); }

void Terminal::give(int group) {
  if (foreground() == getpgrp()) (void)tcsetpgrp(STDIN_FILENO, group);
}

bool Terminal::take_back(int group) {
  if (foreground() != group) return false;
  (void)tcsetpgrp(STDIN_FILENO, getpgrp());
  return true;
}

}  // namespace gpumem::launcher
