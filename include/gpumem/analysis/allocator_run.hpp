// Input: a step plan and the GPU that it runs on.
// Output: the peaks of what the caching allocator allocates and reserves, the event of the highest allocation, and what
// the tensors that live at that event are for.
// Units: bytes.
// Source: the rules of device/caching_allocator.hpp and device/workspace.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpumem/device/caching_allocator.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/ops/tape.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::analysis {

/// What the memory is for: a plan's categories, and the libraries' workspaces.
inline constexpr std::size_t kWorkspaceCategory = plan::kCategories;
using ByCategory = std::array<std::int64_t, plan::kCategories + 1>;

struct AllocatorRun {
  std::int64_t peak_allocated = 0;
  std::int64_t peak_reserved = 0;
  std::int64_t last_allocated = 0;  ///< when the last step had ended
  ByCategory at_peak{};             ///< allocated bytes when they reached their peak
  std::size_t peak_event = 0;       ///< the event at which they did
  bool out_of_memory = false;       ///< the run ended there: the allocator found no room
  std::int64_t retries = 0;         ///< how often it released its cache to go on
};

/// The state after an event.
struct AllocatorMoment {
  std::size_t event = 0;
  const ByCategory& allocated;
  std::int64_t for_a_moment = 0;  ///< workspace that the event took and gave back; no longer in `allocated`
  std::int64_t reserved = 0;
};

/// Called after every event that succeeded.
class AllocatorObserver {
 public:
  virtual ~AllocatorObserver() = default;
  virtual void after(const AllocatorMoment& moment) = 0;
};

/// Working memory that a run leaves for the next one, so that it is not allocated again. Its content means nothing.
struct AllocatorMemory {
  std::vector<device::Block> blocks;
};

/// `memory`, if it is given, is used and left for the next run.
[[nodiscard]] AllocatorRun run_allocator(const plan::StepPlan& plan, const device::GpuProfile& gpu,
                                         const device::AllocatorOptions& options = {},
                                         AllocatorObserver* observer = nullptr, AllocatorMemory* memory = nullptr);

}  // namespace gpumem::analysis
