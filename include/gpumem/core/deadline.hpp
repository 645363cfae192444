// Input: how long the work of this thread may take.
// Output: whether that time is over. The loops that do the work ask.
// Units: milliseconds.
//
// A deadline holds for its thread and its scope, not for a call: the loops that may run long lie deep in readers, plans
// and replays, most of which nobody hurries. Time that is over stays over. So a loop that sees it just ends early, and
// whoever ran it looks again and gives the error in place of a result that is not whole.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "gpumem/core/result.hpp"

namespace gpumem::core {

/// While it lives, the work of this thread must end within this many milliseconds; 0 or less: no limit. One inside
/// another can only shorten the time.
/// Thread safety: of the thread that made it.
class Deadline {
 public:
  explicit Deadline(std::int64_t milliseconds);
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  ~Deadline();

 private:
  std::int64_t outer_;  ///< the enclosing deadline, restored at the end
};

/// Whether the time of this thread is over. Looks at the clock if there is a deadline.
[[nodiscard]] bool deadline_passed();

/// What is given in place of a result.
[[nodiscard]] Error deadline_error();

/// For loops of small steps: looks at the clock once in 256 of them. Late once is late for good.
class Pace {
 public:
  [[nodiscard]] bool late() {
    if ((++steps_ & kMask) == 0 && !late_) late_ = deadline_passed();
    return late_;
  }
  /// As if the time were up: what is left need not be done.
  void stop() { late_ = true; }
  /// Whether it was, when it was last looked.
  [[nodiscard]] bool was_late() const { return late_; }

 private:
  static constexpr std::uint32_t kMask = 255;
  std::uint32_t steps_ = 0;
  bool late_ = false;
};

namespace deadline_detail {

inline constexpr std::int64_t kNever = INT64_MAX;

/// When the time of this thread is over, in nanoseconds of the steady clock.
inline std::int64_t& end_of_thread() {
  static thread_local std::int64_t end = kNever;
  return end;
}

inline std::int64_t now() {
  using std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace deadline_detail

inline Deadline::Deadline(std::int64_t milliseconds) : outer_(deadline_detail::end_of_thread()) {
  constexpr std::int64_t kNanoseconds = 1'000'000;
  constexpr std::int64_t kLongest = std::int64_t{1} << 40;  // 35 years
  if (milliseconds <= 0 || milliseconds > kLongest) return;
  const std::int64_t end = deadline_detail::now() + milliseconds * kNanoseconds;
  deadline_detail::end_of_thread() = std::min(outer_, end);
}

inline Deadline::~Deadline() { deadline_detail::end_of_thread() = outer_; }

inline bool deadline_passed() {
  const std::int64_t end = deadline_detail::end_of_thread();
  return end != deadline_detail::kNever && deadline_detail::now() >= end;
}

inline Error deadline_error() {
  return {ErrorCode::deadline_exceeded,
          "the deadline came before the answer; allow more time, or ask of a smaller model",
          {}};
}

}  // namespace gpumem::core
