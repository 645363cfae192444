#pragma once

#include "gpumem/place/recovery.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "gpumem/core/bytes.hpp"

namespace gpumem::place {

namespace recovery_detail {

/// The largest size such that this many GPUs are at least as large.
GPUMEM_INLINE core::Bytes largest(const Server& server, std::int64_t gpus) {
  if (gpus < 1 || static_cast<std::size_t>(gpus) > server.gpus.size()) return core::Bytes();
  std::vector<core::Bytes> totals;
  totals.reserve(server.gpus.size());
  for (const ServerGpu& gpu : server.gpus) totals.push_back(gpu.total);
  const auto last = totals.begin() + static_cast<std::ptrdiff_t>(gpus - 1);
  std::nth_element(totals.begin(), last, totals.end(), std::greater<>());
  return *last;
}

GPUMEM_INLINE std::string name_of(const Request& request) { return "job " + core::quoted(request.id); }

GPUMEM_INLINE Retry give_up(const Request& request, const OutOfMemory& failure, const std::string& why) {
  const std::string times = failure.failures == 1 ? "once" : core::with_separators(failure.failures) + " times";
  return {std::nullopt, name_of(request) + " is given up: it ran out of memory " + times + ", " + why};
}

/// More than it had, and nothing less than it asked for before.
GPUMEM_INLINE std::optional<core::Bytes> grown(const Request& request, const OutOfMemory& failure,
                                               const RecoveryRule& rule) {
  const core::Bytes before = std::max(failure.had, request.memory.value_or(core::Bytes()));
  core::Checked step = rule.step.count();
  for (std::int64_t failed = 1; failed < failure.failures && step.valid(); ++failed) step *= 2;
  const auto sum = (core::Checked(before.count()) + step).value();
  return sum ? std::optional(core::Bytes(*sum)) : std::nullopt;
}

GPUMEM_INLINE Retry alone(const Request& request, const OutOfMemory& failure) {
  Request next = request;
  next.exclusive = true;
  // A GPU on which it ran out of memory without other jobs is too small. There is a larger one, so the sum fits 64
  // bits.
  if (failure.alone) next.alone = core::Bytes(failure.had.count() + 1);
  std::string words = name_of(request) + " runs again without other jobs";
  if (failure.alone) words += ", on a GPU with more than the " + core::to_string(failure.had) + " that it had";
  return {next, std::move(words)};
}

}  // namespace recovery_detail

GPUMEM_INLINE Retry after_out_of_memory(const Request& request, const OutOfMemory& failure, const Server& server,
                                        const RecoveryRule& rule) {
  using namespace recovery_detail;
  const core::Bytes largest = recovery_detail::largest(server, request.gpus);
  if (failure.alone && failure.had >= largest) {
    return give_up(
        request, failure,
        "the last time without other jobs, with " + core::to_string(failure.had) + ", and there is no larger GPU");
  }
  if (failure.failures > rule.retries) {
    return give_up(request, failure, "and is retried at most " + core::with_separators(rule.retries) + " times");
  }
  if (rule.kind == RecoveryKind::exclusive || failure.alone || failure.failures == rule.retries) {
    return alone(request, failure);
  }
  const std::optional<core::Bytes> memory = grown(request, failure, rule);
  if (!memory || *memory > largest) return alone(request, failure);
  Request next = request;
  next.memory = *memory;
  next.alone = *memory;
  return {next, name_of(request) + " runs again with " + core::to_string(*memory) + " instead of the " +
                    core::to_string(failure.had) + " that it had"};
}

}  // namespace gpumem::place
