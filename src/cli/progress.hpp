// Enters: steps of long work, from any thread. Leaves: how far it has come, on standard error where that is a terminal.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>

namespace gpumem::cli {

/// Shows every so many steps; takes its line away in the end.
class Progress {
 public:
  explicit Progress(std::size_t all, std::size_t every = 1)
      : all_(all), every_(every), shown_(isatty(STDERR_FILENO) != 0) {}
  void step() {
    const std::size_t done = done_.fetch_add(1) + 1;
    if (shown_ && done % every_ == 0) std::fprintf(stderr, "\r%zu of %zu", done, all_);
  }
  ~Progress() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  std::size_t all_;
  std::size_t every_;
  std::atomic<std::size_t> done_ = 0;
  bool shown_;
};

/// Of work whose length is known only on the way.
class SteadyProgress {
 public:
  SteadyProgress() : shown_(isatty(STDERR_FILENO) != 0) {}
  void show(std::size_t done, std::size_t all) const {
    if (shown_) std::fprintf(stderr, "\r\033[K%zu of %zu", done, all);
  }
  void clear() const {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }

 private:
  bool shown_;
};

}  // namespace gpumem::cli
