// Enters: a step plan and the GPU it is to run on. Leaves: what the caching allocator would have allocated and
// reserved, when the reserved memory peaks, and what it is made of then. Units: bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "gpumem/device/caching_allocator.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/ops/tape.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::estimate {

/// What the memory is for: a plan's categories, and the libraries' workspaces.
inline constexpr std::size_t kWorkspaceCategory = plan::kCategories;
using ByCategory = std::array<std::int64_t, plan::kCategories + 1>;

struct PlanReplay {
  std::int64_t peak_allocated = 0;
  std::int64_t peak_reserved = 0;
  ByCategory at_peak{};        ///< allocated bytes when the reserved memory reached its peak
  std::size_t peak_event = 0;  ///< the event at which it did
  bool out_of_memory = false;  ///< the replay ended there: the allocator found no room
  std::int64_t retries = 0;    ///< how often it released its cache to go on
};

/// Called after every event with its index, the bytes allocated by category and the bytes reserved.
class ReplayObserver {
 public:
  virtual ~ReplayObserver() = default;
  virtual void after(std::size_t event, const ByCategory& allocated, std::int64_t reserved) = 0;
};

[[nodiscard]] PlanReplay replay_plan(const plan::StepPlan& plan, const ops::Tape& tape, const device::GpuProfile& gpu,
                                     const device::AllocatorOptions& options = {}, ReplayObserver* observer = nullptr);

}  // namespace gpumem::estimate

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/impl/plan_replay_inl.hpp"
#endif
