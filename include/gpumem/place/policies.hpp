// Input: a request for GPUs and the server.
// Output: a Decision: which GPUs, or why none now, and the policy of a name. A scheduler decides for
// every waiting job at every event, so a decision allocates little: its own list of GPUs, and for a job on several GPUs
// one more to sort.
//
// The policies and their conditions are those of CARMA (Yousefzadeh-Asl-Miandoab et al., "CARMA: Collocation-Aware
// Resource Manager", arXiv:2508.19073; github.com/itu-rad/CARMA, src/server.py and monitor.py), with differences:
// - CARMA asks for 5 GiB of free memory without an estimate, and for the estimate and 2 GiB more with one. Here both
//   hold, and each is a value: a floor of 0 is CARMA's way with an estimate.
// - CARMA's first publication closes a GPU above 80 % of SM activity, as is done here. Its present code also asks that
//   SM occupancy is at least 45 % or DRAM activity at least 40 %.
// - CARMA's round-robin looks at neither: conditions without a cap and a floor of 0 do that.
// - CARMA gives idle GPUs first, without looking at memory or activity, whatever its policy: `idle_first` does it too,
//   but a job that is known to be too large is still refused.
//
// Each policy is one class below: which open GPUs it prefers. To add one: a class, and a row in the list at the end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/csv.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/place/server.hpp"

namespace gpumem::place {

/// What a job asks for.
struct Request {
  std::string_view id;
  std::int64_t gpus = 1;              ///< all or nothing
  std::optional<core::Bytes> memory;  ///< to set aside on each of them, margin included; nothing: no estimate
  /// What is enough on an idle GPU, where nobody competes for the rest: the estimate without its margin. Nothing: as
  /// `memory`.
  std::optional<core::Bytes> alone = {};
  double smact = 0.0;      ///< its expected SM activity when it runs by itself; 0: not known
  bool exclusive = false;  ///< only GPUs without any other job, and none next to it later
  bool connected = false;  ///< its GPUs read each other's memory: no MIG slices, which cannot
};

/// Done if a policy can decide on it. Errors: invalid_argument, naming the field.
[[nodiscard]] core::Status validate(const Request& request);

/// How much more than expected is set aside on a shared GPU: a number of bytes, or the estimate's own `upper`.
struct Margin {
  core::Bytes bytes{std::int64_t{2} << 30};
  bool upper = false;  ///< instead of `bytes`
};

/// "upper", or a number of bytes as parse_bytes() reads them: "2GiB", "512MiB", "0". Errors: invalid_argument.
[[nodiscard]] core::Result<Margin> parse_margin(std::string_view text);

/// Asks for the GPUs and the memory of this estimate: `memory` with the margin, `alone` without. Errors: overflow.
[[nodiscard]] core::Status ask_for(Request& request, const estimate::MemoryEstimate& estimate,
                                   const Margin& margin = {});

/// When a GPU is open to a further job at all, whatever the policy prefers. CARMA's values by default.
struct Conditions {
  std::optional<double> smact_cap = 0.80;  ///< no job to a GPU at or above this mean SM activity
  /// No job to a GPU with less free memory than this, unless it is idle: a GPU may be smaller than that.
  core::Bytes free_floor{std::int64_t{5} << 30};
  bool idle_first = false;  ///< idle GPUs, while there are enough of them, before any that has a job
  /// Where the job's own SM activity is known: GPUs on which it and what is there stay within the cap together come
  /// before those on which they pass it. What is there is what is monitored, or what the jobs there are expected to
  /// make, if that is more.
  bool smact_together = false;
};

/// Why a GPU did not take the job. The later ones came closer.
enum class Refusal : std::uint8_t {
  none,
  never,        ///< too few GPUs of this server could hold the job even when empty
  occupied,     ///< the job, or one that is there, must run by itself
  no_estimate,  ///< the policy puts no job next to others of unknown memory
  memory,       ///< less free memory than the job asks for
  free_floor,   ///< less free memory than the conditions ask for
  smact,        ///< as busy as the conditions allow, or busier
};

/// The name as it is in JSON output.
[[nodiscard]] std::string_view to_string(Refusal refusal);

struct Decision {
  std::vector<std::size_t> gpus;    ///< indices into Server::gpus, the preferred first; empty: not now
  Refusal refusal = Refusal::none;  ///< why not: `never`, or that of `nearest`
  std::size_t nearest = 0;          ///< of the GPUs that refused, the one that came closest
  std::int64_t open = 0;            ///< GPUs that would take the job, fewer than it asks for

  [[nodiscard]] bool placed() const { return !gpus.empty(); }
};

/// A way to choose among the GPUs that are open.
/// Thread safety: immutable; one serves any number of threads and servers. The turn that decide() moves is its
/// caller's.
class Policy {
 public:
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  /// The name used on the command line and in JSON.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// `turn` is the round-robin's place on the server, advanced by a placement; other policies do not touch it. A
  /// request or server that validate() refuses is decided on somehow.
  [[nodiscard]] Decision decide(const Request& request, const Server& server, const Conditions& conditions,
                                std::size_t& turn) const;

 protected:
  /// What a policy asks beyond the conditions.
  struct Rules {
    bool idle_only = false;       ///< every job has its GPUs to itself
    bool needs_estimate = false;  ///< a job without one goes to idle GPUs only
    bool takes_turns = false;     ///< begins after the last GPU that was given
  };
  Policy() = default;
  explicit Policy(const Rules& rules) : rules_(rules) {}

 private:
  friend class Selection;
  /// The open GPUs with the smallest figure are given; among equals, the first.
  [[nodiscard]] virtual double rank(const ServerGpu& gpu) const = 0;

  Rules rules_;
};

/// The SM activity of the GPU with this job on it, if no job slowed another one down: what is there, as
/// Conditions::smact_together says, and the job's own. It may pass 1.
[[nodiscard]] double smact_together(const ServerGpu& gpu, const Request& request);

/// The decision in words a person can read: "on GPU 2: 23.1 GiB free, SM activity 41 %", "not now: GPU 1 comes closest
/// with 9.80 GiB free of the 12.2 GiB that vgg16 asks for", "never: ...".
[[nodiscard]] std::string explain(const Decision& decision, const Request& request, const Server& server,
                                  const Conditions& conditions);

/// Puts the job on the GPUs of the decision, where what it asks for is set aside from now on: all of it, or what an
/// idle GPU has. Errors: those of PlacedJobs::add; nothing has changed then.
[[nodiscard]] core::Status place(const Decision& decision, const Request& request, Server& server);

// Input: a job that ran out of memory.
// Output: what it asks for when it runs again, or the verdict that it will not run again. Until then it waits in the
// class of higher priority (WaitingQueue, below).
//
// Two rules. `exclusive` is CARMA's (arXiv:2508.19073; github.com/itu-rad/CARMA, src/server.py): it runs again with its
// GPUs to itself. `growing` is the looser one that CARMA's README names as its outlook: a GPU with, for example, 5 GiB
// more than last time. Here the step doubles with each failure, and the last try has the GPUs to itself, so that every
// job gets to run with all that a GPU has.
//
// No job starves, and none runs for ever: the number of retries is limited, and a job that ran out of memory on a GPU
// of its own runs again only if there is a larger GPU.

enum class RecoveryKind : std::uint8_t { exclusive, growing };

struct RecoveryRule {
  RecoveryKind kind = RecoveryKind::exclusive;
  core::Bytes step{std::int64_t{5} << 30};  ///< of `growing`: what the first retry asks for beyond what was had
  std::int64_t retries = 3;                 ///< at most; the last of them without other jobs
};

/// How a job ran out of memory.
struct OutOfMemory {
  std::int64_t failures = 1;  ///< of this job so far, this one included
  core::Bytes had;            ///< what it could have on the smallest of its GPUs: the GPU less what others took
  bool alone = false;         ///< nobody else was on its GPUs
};

struct Retry {
  std::optional<Request> request;  ///< nothing: given up
  std::string words;               ///< what happens and why, for people
};

/// What becomes of the job that was placed for `request`, the last of its requests.
[[nodiscard]] Retry after_out_of_memory(const Request& request, const OutOfMemory& failure, const Server& server,
                                        const RecoveryRule& rule = {});

// Input: jobs that wait.
// Output: the next one. There are two classes, each first in, first out. Jobs that ran out of memory go before all
// others, as in CARMA (github.com/itu-rad/CARMA, src/server.py), whose main queue waits while its recovery queue holds
// a job. Nobody overtakes within a class: a job that cannot be placed holds up those after it, so a large job does not
// starve.

/// `Job` is whatever its user tells jobs apart by.
/// Thread safety: one thread at a time.
template <typename Job>
class WaitingQueue {
 public:
  /// A job that has just arrived.
  void push(Job job) { arrived_.push_back(std::move(job)); }
  /// A job that ran out of memory and runs again.
  void push_recovery(Job job) { recovering_.push_back(std::move(job)); }

  [[nodiscard]] bool empty() const { return recovering_.empty() && arrived_.empty(); }
  [[nodiscard]] std::size_t size() const { return recovering_.size() + arrived_.size(); }
  /// Those of them that ran out of memory.
  [[nodiscard]] std::size_t recovering() const { return recovering_.size(); }

  /// The job whose turn it is. The queue must not be empty.
  [[nodiscard]] Job& front() { return recovering_.empty() ? arrived_.front() : recovering_.front(); }
  [[nodiscard]] const Job& front() const { return recovering_.empty() ? arrived_.front() : recovering_.front(); }
  /// Takes it out. The queue must not be empty.
  Job pop() {
    std::deque<Job>& turn = recovering_.empty() ? arrived_ : recovering_;
    Job job = std::move(turn.front());
    turn.pop_front();
    return job;
  }

 private:
  std::deque<Job> recovering_;
  std::deque<Job> arrived_;
};

/// The first idle GPUs. A job has them to itself while it runs. This is CARMA's baseline ("exclusive"), and what
/// schedulers do that know nothing about the jobs.
class Exclusive final : public Policy {
 public:
  static constexpr std::string_view kName = "exclusive";

  Exclusive() : Policy(Rules{.idle_only = true}) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& /*gpu*/) const override { return 0.0; }
};

/// The next open GPUs in turn, starting after the last one that was given. CARMA's "OR-RR", which looks at
/// neither memory nor activity: the head of this file says how to have that.
class RoundRobin final : public Policy {
 public:
  static constexpr std::string_view kName = "round-robin";

  RoundRobin() : Policy(Rules{.takes_turns = true}) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& /*gpu*/) const override { return 0.0; }
};

/// The open GPUs with the most available memory (MAGM). CARMA's "OR-MAGM", and with an estimate "EST-MAGM".
/// Available is the smaller of two figures: what monitoring says is free, and what was not set aside. A job that began
/// a minute ago has not grown yet.
class MostAvailableMemory final : public Policy {
 public:
  static constexpr std::string_view kName = "magm";

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& gpu) const override { return -static_cast<double>(gpu.free().count()); }
};

/// The open GPUs with the least SM activity (LUG). CARMA's "OR-LUG" and "EST-LUG".
class LeastUtilised final : public Policy {
 public:
  static constexpr std::string_view kName = "lug";

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& gpu) const override { return gpu.smact; }
};

/// The open GPUs with the most SM activity (MUG). Busy GPUs are filled up to the cap, so that others stay idle
/// for jobs that want a GPU of their own, or can be powered down.
class MostUtilised final : public Policy {
 public:
  static constexpr std::string_view kName = "mug";

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& gpu) const override { return -gpu.smact; }
};

/// The first GPUs in which the job fits. CARMA's "oracle-FF". A job without an estimate goes to idle GPUs.
class FirstFit final : public Policy {
 public:
  static constexpr std::string_view kName = "first-fit";

  FirstFit() : Policy(Rules{.needs_estimate = true}) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& /*gpu*/) const override { return 0.0; }
};

/// The GPUs in which the job fits with the least memory left. CARMA's "oracle-BF". A job without an estimate
/// goes to idle GPUs.
class BestFit final : public Policy {
 public:
  static constexpr std::string_view kName = "best-fit";

  BestFit() : Policy(Rules{.needs_estimate = true}) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& gpu) const override { return static_cast<double>(gpu.free().count()); }
};

/// The GPUs in which the job fits with the most memory left. With an estimate this is the same as MAGM. A job
/// without one goes to idle GPUs, while MAGM goes by the floor.
class WorstFit final : public Policy {
 public:
  static constexpr std::string_view kName = "worst-fit";

  WorstFit() : Policy(Rules{.needs_estimate = true}) {}

  [[nodiscard]] std::string_view name() const override { return kName; }

 private:
  [[nodiscard]] double rank(const ServerGpu& gpu) const override { return -static_cast<double>(gpu.free().count()); }
};

struct PolicyEntry {
  std::string_view name;
  std::string_view
      carma;  ///< what CARMA's configuration calls it, after its "oracle-", "OR-" or "EST-"; empty: it has none
  std::string_view description;  ///< one line for people
  std::unique_ptr<Policy> (*create)();
};

/// Every policy that gpumem has.
[[nodiscard]] std::span<const PolicyEntry> policies();

/// The policy of this name, or of CARMA's for it ("OR-MAGM", "oracle-FF"), upper and lower case alike. Errors:
/// invalid_argument, listing the names.
[[nodiscard]] core::Result<std::unique_ptr<Policy>> make_policy(std::string_view name);

namespace policies_detail {

template <typename Kind>
std::unique_ptr<Policy> create() {
  return std::make_unique<Kind>();
}

inline constexpr std::array<PolicyEntry, 8> kAll = {{
    {Exclusive::kName, "exclusive", "idle GPUs only, one job each", create<Exclusive>},
    {RoundRobin::kName, "rr", "the open GPUs in turn", create<RoundRobin>},
    {MostAvailableMemory::kName, "magm", "the GPU with the most available memory", create<MostAvailableMemory>},
    {LeastUtilised::kName, "lug", "the GPU with the least SM activity", create<LeastUtilised>},
    {MostUtilised::kName, "", "the GPU with the most SM activity below the cap", create<MostUtilised>},
    {FirstFit::kName, "ff", "the first GPU in which the estimate fits", create<FirstFit>},
    {BestFit::kName, "bf", "the GPU in which the estimate fits with the least memory left", create<BestFit>},
    {WorstFit::kName, "", "the GPU in which the estimate fits with the most memory left", create<WorstFit>},
}};

/// In lower case, and without what CARMA puts before a policy: whether the need is known, is not, or is estimated.
inline std::string plain_name(std::string_view name) {
  std::string plain = core::lower_case(name);
  for (const std::string_view prefix : {"oracle-", "or-", "est-"}) {
    if (plain.starts_with(prefix)) return plain.substr(prefix.size());
  }
  return plain;
}

}  // namespace policies_detail

inline std::span<const PolicyEntry> policies() { return policies_detail::kAll; }

inline core::Result<std::unique_ptr<Policy>> make_policy(std::string_view name) {
  const std::string plain = policies_detail::plain_name(name);
  std::string names;
  for (const PolicyEntry& entry : policies()) {
    if (!plain.empty() && (entry.name == plain || entry.carma == plain)) return entry.create();
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return core::Error{
      core::ErrorCode::invalid_argument, "there is no policy " + core::quoted(name) + "; choose one of " + names, {}};
}

}  // namespace gpumem::place
