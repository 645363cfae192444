// Input: steps of long work, from any thread.
// Output: a line on standard error that says what is done and how far it is, and goes away at the end. Nothing where
// standard error is no terminal, or one that cannot take a line away (TERM=dumb).
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace gpumem::cli {

/// "estimating 1,200 of 3,000 runs (40 %)".
[[nodiscard]] std::string progress_line(std::string_view what, std::size_t done, std::size_t all,
                                        std::string_view things);

/// Whether progress can be shown on standard error.
[[nodiscard]] bool shows_progress();

/// Writes the line at most ten times a second, and nothing of work that is done sooner.
class Progress {
 public:
  /// "estimating" and "runs". `all` may be told later, with each step.
  Progress(std::string_view what, std::string_view things, std::size_t all = 0)
      : what_(what), things_(things), all_(all), shown_(shows_progress()) {}
  ~Progress() {
    if (written_) std::fputs("\r\033[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// One more is done.
  void step() {
    const std::size_t done = done_.fetch_add(1) + 1;
    if (shown_) show(done, all_);
  }
  /// This many of all are done.
  void show(std::size_t done, std::size_t all) {
    if (!shown_) return;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    auto next = next_.load();
    // One thread at a time writes; the others go on.
    if (now < next || !next_.compare_exchange_strong(next, now + kInterval.count())) return;
    std::fprintf(stderr, "\r\033[K%s", progress_line(what_, done, all, things_).c_str());
    written_ = true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kInterval = std::chrono::milliseconds(100);
  static constexpr Clock::duration kAtFirst = std::chrono::milliseconds(300);

  std::string_view what_;
  std::string_view things_;
  std::size_t all_;
  std::atomic<std::size_t> done_ = 0;
  std::atomic<Clock::rep> next_ = (Clock::now() + kAtFirst).time_since_epoch().count();
  std::atomic<bool> written_ = false;
  bool shown_;
};

}  // namespace gpumem::cli
