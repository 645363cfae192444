
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <tuple>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/place/policies.hpp"

namespace gpumem::place {

GPUMEM_INLINE double smact_together(const ServerGpu& gpu, const Request& request) {
  double expected = 0.0;
  for (const PlacedJob& job : gpu.jobs) expected += job.smact;
  return std::max(gpu.smact, expected) + request.smact;
}

/// One decision in the making.
class Selection {
 public:
  Selection(const Policy& policy, const Request& request, const Server& server, const Conditions& conditions,
            std::size_t turn)
      : policy_(policy), request_(request), server_(server), conditions_(conditions), begin_(0) {
    const std::size_t count = server.gpus.size();
    if (policy.rules_.takes_turns && count > 0) begin_ = turn % count;
    beside_ = request.memory.value_or(core::Bytes());
    alone_ = request.alone.value_or(beside_);
  }

  /// The GPUs that the policy gives; none if fewer are open than the request asks for.
  [[nodiscard]] std::vector<std::size_t> choose(bool idle_only) const {
    if (request_.gpus == 1) return choose_one(idle_only);
    if (request_.gpus < 1 || static_cast<std::size_t>(request_.gpus) > server_.gpus.size()) return {};
    return choose_several(idle_only);
  }

  /// Why none were chosen.
  [[nodiscard]] Decision refuse() const {
    Decision decision;
    decision.refusal = Refusal::never;
    if (!possible()) {
      decision.nearest = largest();
      return decision;
    }
    double closest = 0.0;
    for (std::size_t index = 0; index < server_.gpus.size(); ++index) {
      if (apart(server_.gpus[index])) continue;
      const Refusal refusal = refusal_of(server_.gpus[index], policy_.rules_.idle_only);
      if (refusal == Refusal::none) {
        ++decision.open;
        continue;
      }
      const double distance = distance_of(server_.gpus[index], refusal);
      const bool closer = refusal > decision.refusal || (refusal == decision.refusal && distance < closest);
      if (!closer) continue;
      decision.refusal = refusal;
      decision.nearest = index;
      closest = distance;
    }
    return decision;
  }

 private:
  /// Whether it would be crowded there, what the policy says, and the place after `begin_`.
  using Ranked = std::tuple<bool, double, std::size_t>;

  [[nodiscard]] bool crowded(const ServerGpu& gpu) const {
    return conditions_.smact_together && conditions_.smact_cap && request_.smact > 0.0 && !gpu.idle() &&
           smact_together(gpu, request_) > *conditions_.smact_cap;
  }

  [[nodiscard]] Ranked ranked(const ServerGpu& gpu, std::size_t place) const {
    return {crowded(gpu), policy_.rank(gpu), place};
  }

  [[nodiscard]] std::size_t index_at(std::size_t place) const {
    const std::size_t index = begin_ + place;
    return index < server_.gpus.size() ? index : index - server_.gpus.size();
  }

  /// A MIG slice, by its profile or, where that is not known, by its UUID; for a job whose GPUs are connected.
  [[nodiscard]] bool apart(const ServerGpu& gpu) const {
    return request_.connected && (gpu.profile.find("-mig-") != std::string::npos || gpu.id.starts_with("MIG-"));
  }

  [[nodiscard]] Refusal refusal_of(const ServerGpu& gpu, bool idle_only) const {
    if (apart(gpu)) return Refusal::never;
    if (gpu.jobs.exclusive()) return Refusal::occupied;
    const bool idle = gpu.idle();
    if (!idle && (idle_only || request_.exclusive)) return Refusal::occupied;
    const core::Bytes free = gpu.free();
    if (!idle) {
      if (!request_.memory && policy_.rules_.needs_estimate) return Refusal::no_estimate;
      if (free < beside_) return Refusal::memory;
      if (free < conditions_.free_floor) return Refusal::free_floor;
    } else if (free < alone_) {
      return Refusal::memory;
    }
    // Closed as well if it is not a number.
    if (conditions_.smact_cap && !(gpu.smact < *conditions_.smact_cap)) return Refusal::smact;
    return Refusal::none;
  }

  [[nodiscard]] std::vector<std::size_t> choose_one(bool idle_only) const {
    const std::size_t none = server_.gpus.size();
    Ranked best = {false, 0.0, none};
    for (std::size_t place = 0; place < server_.gpus.size(); ++place) {
      const ServerGpu& gpu = server_.gpus[index_at(place)];
      if (refusal_of(gpu, idle_only) != Refusal::none) continue;
      const Ranked here = ranked(gpu, place);
      if (std::get<2>(best) == none || here < best) best = here;
    }
    if (std::get<2>(best) == none) return {};
    return {index_at(std::get<2>(best))};
  }

  [[nodiscard]] std::vector<std::size_t> choose_several(bool idle_only) const {
    std::vector<Ranked> open;
    open.reserve(server_.gpus.size());
    for (std::size_t place = 0; place < server_.gpus.size(); ++place) {
      const ServerGpu& gpu = server_.gpus[index_at(place)];
      if (refusal_of(gpu, idle_only) == Refusal::none) open.push_back(ranked(gpu, place));
    }
    const auto wanted = static_cast<std::size_t>(request_.gpus);
    if (open.size() < wanted) return {};
    const auto end = open.begin() + static_cast<std::ptrdiff_t>(wanted);
    std::nth_element(open.begin(), end - 1, open.end());
    std::sort(open.begin(), end);
    std::vector<std::size_t> chosen;
    chosen.reserve(wanted);
    for (auto next = open.begin(); next != end; ++next) chosen.push_back(index_at(std::get<2>(*next)));
    return chosen;
  }

  /// Whether enough GPUs could hold the job if they were empty.
  [[nodiscard]] bool possible() const {
    const auto holds = [&](const ServerGpu& gpu) { return alone_ <= gpu.total && !apart(gpu); };
    return request_.gpus >= 1 && std::count_if(server_.gpus.begin(), server_.gpus.end(), holds) >= request_.gpus;
  }

  [[nodiscard]] std::size_t largest() const {
    const auto smaller = [](const ServerGpu& left, const ServerGpu& right) { return left.total < right.total; };
    const auto found = std::max_element(server_.gpus.begin(), server_.gpus.end(), smaller);
    return found == server_.gpus.end() ? 0 : static_cast<std::size_t>(found - server_.gpus.begin());
  }

  /// Among GPUs that refused for the same reason the closest has the least.
  [[nodiscard]] static double distance_of(const ServerGpu& gpu, Refusal refusal) {
    return refusal == Refusal::smact ? gpu.smact : -static_cast<double>(gpu.free().count());
  }

  const Policy& policy_;
  const Request& request_;
  const Server& server_;
  const Conditions& conditions_;
  std::size_t begin_;  ///< the GPU that is looked at first
  core::Bytes beside_;
  core::Bytes alone_;
};

GPUMEM_INLINE Decision Policy::decide(const Request& request, const Server& server, const Conditions& conditions,
                                      std::size_t& turn) const {
  const Selection selection(*this, request, server, conditions, turn);
  Decision decision;
  if (conditions.idle_first || rules_.idle_only) decision.gpus = selection.choose(true);
  if (!decision.placed() && !rules_.idle_only) decision.gpus = selection.choose(false);
  if (!decision.placed()) return selection.refuse();
  if (rules_.takes_turns) turn = (decision.gpus.back() + 1) % server.gpus.size();
  return decision;
}

GPUMEM_INLINE std::string_view to_string(Refusal refusal) {
  switch (refusal) {
    case Refusal::none: return "none";
    case Refusal::never: return "never";
    case Refusal::occupied: return "occupied";
    case Refusal::no_estimate: return "no_estimate";
    case Refusal::memory: return "memory";
    case Refusal::free_floor: return "free_floor";
    case Refusal::smact: return "smact";
  }
  return "unknown";
}

GPUMEM_INLINE core::Status validate(const Request& request) {
  const auto invalid = [&](const std::string& what) {
    return core::Error{core::ErrorCode::invalid_argument, "job " + core::quoted(request.id) + " " + what, {}};
  };
  if (request.id.empty()) return core::Error{core::ErrorCode::invalid_argument, "a job has no id", {}};
  if (request.gpus < 1) return invalid("asks for " + std::to_string(request.gpus) + " GPUs; it needs 1 or more");
  if (request.memory.value_or(core::Bytes()).count() < 0) return invalid("asks for a negative number of bytes");
  if (request.alone.value_or(core::Bytes()).count() < 0)
    return invalid("asks for a negative number of bytes on an idle GPU");
  const bool share = request.smact >= 0.0 && request.smact <= 1.0;
  if (!share) return invalid("has an SM activity that is not between 0 and 1");
  return core::Done{};
}

GPUMEM_INLINE core::Result<Margin> parse_margin(std::string_view text) {
  if (text == "upper") return Margin{.bytes = {}, .upper = true};
  const std::optional<core::Bytes> bytes = core::parse_bytes(text);
  if (bytes) return Margin{.bytes = *bytes, .upper = false};
  return core::Error{core::ErrorCode::invalid_argument,
                     "there is no margin " + core::quoted(text) + "; say upper, or bytes such as 2GiB or 512MiB",
                     {}};
}

GPUMEM_INLINE core::Status ask_for(Request& request, const estimate::MemoryEstimate& estimate, const Margin& margin) {
  const auto more = (core::Checked(estimate.expected.count()) + core::Checked(margin.bytes.count())).value();
  if (!more && !margin.upper) {
    return core::Error{core::ErrorCode::overflow,
                       "the estimate with a margin of " + core::to_string(margin.bytes) + " does not fit 64 bits",
                       {}};
  }
  request.memory = margin.upper ? estimate.upper : core::Bytes(*more);
  request.alone = estimate.expected;
  request.gpus = estimate.gpus;
  request.connected = estimate.gpus > 1;
  return core::Done{};
}

namespace policy_detail {

GPUMEM_INLINE std::string percent(double share) {
  constexpr double kHundred = 100.0;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0f %%", kHundred * share);
  return text.data();
}

/// "GPU 2", or "GPU node3:1"; a long or hostile id is cut and cleaned.
GPUMEM_INLINE std::string name_of(const ServerGpu& gpu) {
  std::string name = core::quoted(gpu.id);
  return "GPU " + (name.size() > 2 ? name.substr(1, name.size() - 2) : name);
}

GPUMEM_INLINE std::string job_name(const Request& request) {
  std::string name = core::quoted(request.id);
  return name.size() > 2 ? name.substr(1, name.size() - 2) : "the job";
}

GPUMEM_INLINE std::string count_of(std::int64_t count, std::string_view what) {
  return core::with_separators(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

GPUMEM_INLINE std::string placed(const Decision& decision, const Request& request, const Server& server,
                                 const Conditions& conditions) {
  std::string text;
  for (const std::size_t index : decision.gpus) {
    const ServerGpu& gpu = server.gpus[index];
    text += (text.empty() ? "on " : "; on ") + name_of(gpu) + ": " + core::to_string(gpu.free()) +
            " free, SM activity " + percent(gpu.smact);
    if (!gpu.jobs.empty()) text += ", next to " + count_of(static_cast<std::int64_t>(gpu.jobs.size()), "other job");
    if (!conditions.smact_together || !(request.smact > 0.0) || gpu.idle()) continue;
    text += ", " + percent(smact_together(gpu, request)) + " together";
  }
  return text;
}

GPUMEM_INLINE std::string never(const Decision& decision, const Request& request, const Server& server) {
  const std::string begin = "never: " + job_name(request) + " asks for ";
  const auto gpus = static_cast<std::int64_t>(server.gpus.size());
  if (request.gpus < 1) return begin + core::with_separators(request.gpus) + " GPUs";
  if (request.gpus > gpus) return begin + count_of(request.gpus, "GPU") + "; the server has " + std::to_string(gpus);
  const core::Bytes least = request.alone.value_or(request.memory.value_or(core::Bytes()));
  const ServerGpu& largest = server.gpus[decision.nearest];
  std::string text = begin + core::to_string(least) + " on a GPU; the largest, " + name_of(largest) + ", has " +
                     core::to_string(largest.total);
  if (request.gpus > 1) text += ", and " + std::to_string(request.gpus) + " of them are needed";
  if (request.connected) text += ", not counting MIG slices";
  return text;
}

/// Why the GPU that came closest does not take the job.
GPUMEM_INLINE std::string obstacle(const Decision& decision, const Request& request, const Server& server,
                                   const Conditions& conditions) {
  const ServerGpu& gpu = server.gpus[decision.nearest];
  const std::string closest = name_of(gpu) + " comes closest";
  const core::Bytes asked =
      (gpu.idle() ? request.alone : request.memory).value_or(request.memory.value_or(core::Bytes()));
  switch (decision.refusal) {
    case Refusal::occupied:
      if (gpu.jobs.exclusive()) return name_of(gpu) + " belongs to a job that has it to itself";
      return name_of(gpu) + " is not idle, and " + job_name(request) + " must have a GPU to itself";
    case Refusal::no_estimate:
      return name_of(gpu) + " has other jobs, and it is not known how much memory " + job_name(request) + " takes";
    case Refusal::memory:
      return closest + " with " + core::to_string(gpu.free()) + " free of the " + core::to_string(asked) + " that " +
             job_name(request) + " asks for";
    case Refusal::free_floor:
      return closest + " with " + core::to_string(gpu.free()) + " free; a further job needs " +
             core::to_string(conditions.free_floor) + " free";
    case Refusal::smact:
      return closest + " with an SM activity of " + percent(gpu.smact) + "; a further job needs less than " +
             percent(conditions.smact_cap.value_or(1.0));
    default: return "no GPU is open";
  }
}

}  // namespace policy_detail

GPUMEM_INLINE std::string explain(const Decision& decision, const Request& request, const Server& server,
                                  const Conditions& conditions) {
  using namespace policy_detail;
  if (decision.placed()) return placed(decision, request, server, conditions);
  if (server.gpus.empty()) return "never: the server has no GPUs";
  if (decision.refusal == Refusal::never) return never(decision, request, server);
  std::string text = "not now: ";
  if (decision.open > 0) {
    text += core::with_separators(decision.open) + " of the " + count_of(request.gpus, "GPU") + " that " +
            job_name(request) + " asks for " + (decision.open == 1 ? "is" : "are") + " open; ";
  }
  return text + obstacle(decision, request, server, conditions);
}

GPUMEM_INLINE core::Status place(const Decision& decision, const Request& request, Server& server) {
  for (std::size_t done = 0; done < decision.gpus.size(); ++done) {
    ServerGpu& gpu = server.gpus[decision.gpus[done]];
    const core::Bytes memory = std::min(request.memory.value_or(core::Bytes()), gpu.free());
    const core::Status added = gpu.jobs.add({std::string(request.id), memory, request.smact, request.exclusive});
    if (added) continue;
    for (std::size_t undone = 0; undone < done; ++undone) server.gpus[decision.gpus[undone]].jobs.remove(request.id);
    return added.error();
  }
  return core::Done{};
}

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
