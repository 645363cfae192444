#pragma once

#include "gpumem/core/deadline.hpp"

#include <algorithm>
#include <chrono>

namespace gpumem::core {

namespace deadline_detail {

inline constexpr std::int64_t kNever = INT64_MAX;

/// When the time of this thread is over, in nanoseconds of the steady clock.
GPUMEM_INLINE std::int64_t& end_of_thread() {
  static thread_local std::int64_t end = kNever;
  return end;
}

GPUMEM_INLINE std::int64_t now() {
  using std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace deadline_detail

GPUMEM_INLINE Deadline::Deadline(std::int64_t milliseconds) : outer_(deadline_detail::end_of_thread()) {
  constexpr std::int64_t kNanoseconds = 1'000'000;
  constexpr std::int64_t kLongest = std::int64_t{1} << 40;  // 35 years
  if (milliseconds <= 0 || milliseconds > kLongest) return;
  const std::int64_t end = deadline_detail::now() + milliseconds * kNanoseconds;
  deadline_detail::end_of_thread() = std::min(outer_, end);
}

GPUMEM_INLINE Deadline::~Deadline() { deadline_detail::end_of_thread() = outer_; }

GPUMEM_INLINE bool deadline_passed() {
  const std::int64_t end = deadline_detail::end_of_thread();
  return end != deadline_detail::kNever && deadline_detail::now() >= end;
}

GPUMEM_INLINE Error deadline_error() {
  return {ErrorCode::deadline_exceeded,
          "the deadline came before the answer; allow more time, or ask of a smaller model",
          {}};
}

}  // namespace gpumem::core
