// Input: the memory that an Analysis worked in.
// Output: the same memory for the next Analysis of this thread. To allocate it again for each job would cost more than
// the computation. Its content means nothing.
// Units: bytes.
#pragma once

#include <cstddef>

#include "gpumem/analysis/allocator_run.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::analysis {

struct WorkingMemory {
  plan::StepPlan plan;  ///< the next plan takes its memory
  AllocatorMemory allocator;

  [[nodiscard]] std::size_t bytes() const;
};

/// A thread keeps no more than this.
inline constexpr std::size_t kMostWorkingMemory = std::size_t{4} << 20;

/// What this thread has kept; empty if nothing.
[[nodiscard]] WorkingMemory take_working_memory();
/// Keeps it for this thread, unless it is too large, or the thread has kept more.
void leave_working_memory(WorkingMemory memory);

}  // namespace gpumem::analysis
