// A recording of allocations and frees, and its replay; also the options of the allocator, which are text of a user.
#include "gpumem/device/allocation_trace.hpp"

#include "fuzz.hpp"

namespace {

using gpumem::fuzz::require;

void require_sound_replay(const gpumem::device::AllocationTrace& trace,
                          const gpumem::device::AllocatorOptions& options) {
  const gpumem::device::TraceReplay result = gpumem::device::replay(trace, options);
  require(result.peak_requested <= result.peak_allocated, "blocks are as large as the requests");
  require(result.peak_allocated <= result.peak_reserved, "blocks lie in segments");
  require(!options.capacity || result.peak_reserved <= options.capacity->count(), "the capacity holds");
  require(!result.ended_at || *result.ended_at < trace.events.size(), "memory ends at an event");
}

}  // namespace

GPUMEM_FUZZ_TARGET(allocation_trace) {
  const auto options = device::parse_allocator_options(input);
  if (!options) require_readable(options.error(), input);

  const auto trace = device::read_allocation_trace(input, {"fuzzed.json", {}});
  if (!trace) {
    require_readable(trace.error(), input);
    return false;
  }
  require(trace->allocations > 0, "a trace has allocations");
  require(trace->unknown_frees >= 0 && trace->unknown_bytes >= 0, "counts are not negative");
  require_sound_replay(*trace, {});
  device::AllocatorOptions tight;
  tight.capacity = Bytes(std::int64_t{1} << 28);
  tight.max_split_size = Bytes(std::int64_t{1} << 26);
  tight.garbage_collection_threshold = 0.5;
  require_sound_replay(*trace, tight);
  device::AllocatorOptions growing;
  growing.capacity = tight.capacity;
  growing.expandable_segments = true;
  require_sound_replay(*trace, growing);
  return true;
}
