// Input: a policy's name.
// Output: the policy. Each is one class below: which open GPUs it prefers. To add one: a class, and a row in the list
// at the end.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "gpumem/core/csv.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/place/policy.hpp"

namespace gpumem::place {

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
/// neither memory nor activity: policy.hpp says how to have that.
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
