// Enters: a step plan and the GPU it is to run on. Leaves: what the caching allocator would have allocated and
// reserved, when most of it is in live tensors, and what these are then. Units: bytes.
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
  ByCategory at_peak{};        ///< allocated bytes when they reached their peak
  std::size_t peak_event = 0;  ///< the event at which they did
  bool out_of_memory = false;  ///< the run ended there: the allocator found no room
  std::int64_t retries = 0;    ///< how often it released its cache to go on
};

/// The state behind an event.
struct AllocatorMoment {
  std::size_t event = 0;
  const ByCategory& allocated;
  std::int64_t for_a_moment = 0;  ///< workspace that the event took and gave back, not in `allocated` any more
  std::int64_t reserved = 0;
};

/// Called after every event that succeeded.
class AllocatorObserver {
 public:
  virtual ~AllocatorObserver() = default;
  virtual void after(const AllocatorMoment& moment) = 0;
};

/// What a run leaves for the next one: memory without a meaning, which need not be asked of the machine again.
struct AllocatorMemory {
  std::vector<device::Block> blocks;
};

/// Takes `memory` and leaves it there, if it is given.
[[nodiscard]] AllocatorRun run_allocator(const plan::StepPlan& plan, const ops::Tape& tape,
                                         const device::GpuProfile& gpu, const device::AllocatorOptions& options = {},
                                         AllocatorObserver* observer = nullptr, AllocatorMemory* memory = nullptr);

}  // namespace gpumem::analysis

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/analysis/impl/allocator_run_inl.hpp"
#endif
