// Input: a recording of what a training job allocated and freed, as JSON:
// - torch.cuda.memory._snapshot(), written with json.dump ("device_traces" of alloc and free_completed actions);
// - torch.profiler with profile_memory=True, as export_chrome_trace() writes it ("[memory]" events). A recording made
//   on a CPU shows the same tensors as a GPU would hold, without the workspaces of GPU libraries. To replay one is what
//   xMem does (arXiv 2510.21048).
// Output: AllocationTrace, the requests and frees of one device in order; and what the caching allocator does with
// them.
// Units: bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/device/caching_allocator.hpp"

namespace gpumem::device {

enum class TraceFormat : std::uint8_t { cuda_snapshot, profiler };

/// "torch.cuda.memory snapshot", "torch.profiler trace".
[[nodiscard]] std::string_view to_string(TraceFormat format);

struct TraceEvent {
  std::int64_t bytes = 0;    ///< of a request; 0: the end of an allocation
  std::uint32_t id = 0;      ///< of the allocation: 0 for the first, then 1, ...
  std::uint32_t stream = 0;  ///< of a request: 0 for the first stream that was seen, then 1, ...
};

struct AllocationTrace {
  TraceFormat format = TraceFormat::profiler;
  bool cpu = false;         ///< recorded on a CPU
  std::int64_t device = 0;  ///< the GPU's number
  std::uint32_t allocations = 0;
  std::vector<TraceEvent> events;
  std::int64_t unknown_frees = 0;  ///< frees of what was allocated before the recording, left out
  std::int64_t unknown_bytes = 0;  ///< their bytes, as far as the recording says
  std::int64_t missing_frees = 0;  ///< frees that are not recorded: the address was given out again; they are put in
  /// The most that the allocator had reserved while it was recorded; a snapshot says only what was added since.
  std::optional<std::int64_t> recorded_reserved;
};

struct TraceOptions {
  std::string_view file = {};          ///< for messages
  std::optional<std::int64_t> device;  ///< the GPU's number; nothing: the first that the recording holds
};

/// A recording of either kind. A profiler's trace is read for its GPU; one without GPU events for its CPU. Errors:
/// malformed_input, naming the line or the element; missing_information if it holds no allocation of that device.
[[nodiscard]] core::Result<AllocationTrace> read_allocation_trace(std::string_view json,
                                                                  const TraceOptions& options = {});

struct TraceReplay {
  std::int64_t peak_allocated = 0;
  std::int64_t peak_reserved = 0;
  std::int64_t peak_requested = 0;
  std::int64_t peak_segments = 0;
  std::int64_t retries = 0;             ///< how often the cache was emptied to make room
  std::optional<std::size_t> ended_at;  ///< the event that found no memory; nothing: all events were replayed
};

/// What the caching allocator makes of the trace. It ends where memory is out.
[[nodiscard]] TraceReplay replay(const AllocationTrace& trace, const AllocatorOptions& options = {});

}  // namespace gpumem::device
