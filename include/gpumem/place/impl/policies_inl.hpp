#pragma once

#include "gpumem/place/policies.hpp"

#include <array>

#include "gpumem/core/csv.hpp"
#include "gpumem/place/best_fit.hpp"
#include "gpumem/place/exclusive.hpp"
#include "gpumem/place/first_fit.hpp"
#include "gpumem/place/least_utilised.hpp"
#include "gpumem/place/most_available_memory.hpp"
#include "gpumem/place/most_utilised.hpp"
#include "gpumem/place/round_robin.hpp"
#include "gpumem/place/worst_fit.hpp"

namespace gpumem::place {

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
GPUMEM_INLINE std::string plain_name(std::string_view name) {
  std::string plain = core::lower_case(name);
  for (const std::string_view prefix : {"oracle-", "or-", "est-"}) {
    if (plain.starts_with(prefix)) return plain.substr(prefix.size());
  }
  return plain;
}

}  // namespace policies_detail

GPUMEM_INLINE std::span<const PolicyEntry> policies() { return policies_detail::kAll; }

GPUMEM_INLINE core::Result<std::unique_ptr<Policy>> make_policy(std::string_view name) {
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
