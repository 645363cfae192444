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

/// Another descriptor of standard output's file, to read it. Not open: it may not be read.
OpenFile reader_of_output(const struct stat& output) {
  OpenFile file(::open("/proc/self/fd/1", O_RDONLY | O_CLOEXEC));
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

bool OutputChannel::write_piece(int timeout_ms) {
  pollfd room = {target(), POLLOUT, 0};
  if (poll(&room, 1, timeout_ms) == 0) return false;
  // So much a pipe with room takes without waiting (pipe(7)).
  const ssize_t count = write(target(), pending_.data(), std::min<std::size_t>(pending_.size(), PIPE_BUF));
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return timeout_ms != 0;
  if (count > 0) {
    pending_.erase(0, static_cast<std::size_t>(count));
    return true;
  }
  pending_.clear();
  // What is wrong with standard error alone does not end a job.
  if (target() == STDOUT_FILENO) ours_ = OpenFile();
  return true;
}

void OutputChannel::pass_on() {
  for (int piece = 0; piece < kPieces; ++piece) {
    if (pending_.empty() && !read_piece()) return;
    while (!pending_.empty()) {
      if (!write_piece(0)) return;
    }
  }
}

void OutputChannel::read_rest() {
  for (int piece = 0; piece < kPieces && read_piece(); ++piece) {
  }
}

void OutputChannel::flush() {
  while (!pending_.empty()) (void)write_piece(-1);
}

void OutputChannel::resize() {
  winsize size{};
  if (terminal_ && ioctl(target(), TIOCGWINSZ, &size) == 0) (void)ioctl(ours_.number(), TIOCSWINSZ, &size);
}

core::Result<JobOutput> JobOutput::open() {
  JobOutput job;
  struct stat output {};
  struct stat errors {};
  const bool has_output = fstat(STDOUT_FILENO, &output) == 0;
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

void JobOutput::flush() {
  for (OutputChannel& channel : channels_) channel.flush();
}

void JobOutput::resize() {
  for (OutputChannel& channel : channels_) channel.resize();
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

Terminal::Terminal() : ours_(isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp()) {}

void Terminal::give(int group) const {
  if (ours_) (void)tcsetpgrp(STDIN_FILENO, group);
}

void Terminal::take_back() const {
  if (ours_) (void)tcsetpgrp(STDIN_FILENO, getpgrp());
}

}  // namespace gpumem::launcher
