#pragma once

#include "gpumem/analysis/working_memory.hpp"

#include <utility>

namespace gpumem::analysis {

namespace working_memory_detail {

/// What this thread keeps; null when the thread has ended, which objects that live longer may see, such as static ones.
GPUMEM_INLINE WorkingMemory* kept() {
  static thread_local bool gone = false;
  struct Kept {
    WorkingMemory memory;
    Kept() = default;
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept() { gone = true; }
  };
  if (gone) return nullptr;
  static thread_local Kept kept;
  return &kept.memory;
}

}  // namespace working_memory_detail

GPUMEM_INLINE std::size_t WorkingMemory::bytes() const {
  return allocator.blocks.capacity() * sizeof(device::Block) + plan.events.capacity() * sizeof(plan::Event) +
         plan.calls.capacity() * sizeof(plan::LibraryCall);
}

GPUMEM_INLINE WorkingMemory take_working_memory() {
  WorkingMemory* kept = working_memory_detail::kept();
  return kept == nullptr ? WorkingMemory() : std::exchange(*kept, {});
}

GPUMEM_INLINE void leave_working_memory(WorkingMemory memory) {
  WorkingMemory* kept = working_memory_detail::kept();
  if (kept == nullptr || memory.bytes() > kMostWorkingMemory || memory.bytes() <= kept->bytes()) return;
  *kept = std::move(memory);
}

}  // namespace gpumem::analysis
