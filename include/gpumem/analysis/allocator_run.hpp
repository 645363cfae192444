// Input: a step plan and the GPU that it runs on.
// Output: the peaks of what the caching allocator allocates and reserves, the event of the highest allocation, and what
// the tensors that live at that event are for.
// Units: bytes.
// Source: the rules of device/caching_allocator.hpp and device/workspace.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "gpumem/core/deadline.hpp"
#include "gpumem/device/caching_allocator.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/device/workspace.hpp"
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
  std::int64_t total = 0;         ///< of `allocated`
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

namespace allocator_run_detail {

class Runner {
 public:
  Runner(const plan::StepPlan& plan, const device::GpuProfile& gpu, const device::AllocatorOptions& options,
         AllocatorMemory* memory)
      : plan_(plan),
        gpu_(gpu),
        memory_(memory),
        allocator_(options, memory == nullptr ? std::vector<device::Block>() : std::move(memory->blocks)),
        held_(plan.slots) {}

  AllocatorRun run(AllocatorObserver* observer) {
    const std::size_t events = plan_.events.size();
    core::Pace pace;
    for (event_ = 0; event_ < events && !pace.late(); ++event_) {
      for_a_moment_ = 0;
      if (!apply(plan_.events[event_])) {
        result_.out_of_memory = true;
        result_.peak_event = event_;
        result_.at_peak = allocated_;
        break;
      }
      if (observer != nullptr) {
        observer->after({event_, allocated_, allocator_.allocated(), for_a_moment_, allocator_.reserved()});
      }
    }
    result_.peak_allocated = allocator_.peak_allocated();
    result_.peak_reserved = allocator_.peak_reserved();
    result_.last_allocated = std::accumulate(allocated_.begin(), allocated_.end(), std::int64_t{0});
    result_.retries = allocator_.retries();
    if (memory_ != nullptr) memory_->blocks = std::move(allocator_).leave_memory();
    return result_;
  }

 private:
  struct Held {
    device::BlockId block = device::kNoBlock;
    plan::Category category = plan::Category::activation;
  };

  bool apply(const plan::Event& event) {
    switch (event.kind) {
      case plan::Event::Kind::allocate: {
        const auto block = allocator_.allocate(event.bytes, event.stream);
        if (!block) return false;
        held_[event.slot] = {*block, event.category};
        allocated_[static_cast<std::size_t>(event.category)] += allocator_.size_of(*block);
        note_peak();
        return true;
      }
      case plan::Event::Kind::release: {
        const Held& held = held_[event.slot];
        allocated_[static_cast<std::size_t>(held.category)] -= allocator_.size_of(held.block);
        allocator_.free(held.block);
        return true;
      }
      case plan::Event::Kind::call: return call(plan_.calls[event.call]);
      case plan::Event::Kind::empty_cache: allocator_.empty_cache(); return true;
    }
    return true;
  }

  bool call(const plan::LibraryCall& call) {
    if (call.library == ops::Library::convolution) return convolve(call);
    if (call.library == ops::Library::grouped_gemm) return keep(device::grouped_workspace(gpu_), grouped_);
    const std::int64_t own = plan_.cublas_workspace;
    if (!keep(own > 0 ? own : device::cublas_workspace(gpu_), cublas_[call.backward_thread ? 1 : 0])) return false;
    const bool lt = call.library == ops::Library::gemm_bias && call.direction == plan::Direction::forward;
    return !lt || take_for_a_moment(device::kCublasLtWorkspace);
  }

  /// A workspace that is made at the first call, and stays.
  bool keep(std::int64_t bytes, bool& taken) {
    if (taken) return true;
    taken = true;
    const auto block = allocator_.allocate(bytes);
    if (!block) return false;
    allocated_[kWorkspaceCategory] += allocator_.size_of(*block);
    note_peak();
    return true;
  }

  bool convolve(const plan::LibraryCall& call) {
    const ops::Convolution& shape = plan_.convolutions[static_cast<std::size_t>(call.convolution)];
    const device::ConvolutionCall sizes = {
        .batch_size = call.batch_size,
        .in_channels = shape.in_channels,
        .out_channels = shape.out_channels,
        .groups = shape.groups,
        .input_pixels = shape.input_pixels,
        .output_pixels = shape.output_pixels,
        .kernel_elements = shape.kernel_elements,
        .stride = shape.stride,
        .element_bytes = core::element_size(shape.dtype),
        .pass = static_cast<device::ConvolutionPass>(call.direction),
    };
    const device::WorkspaceChoice choice = device::convolution_workspace(gpu_, sizes);
    return take_for_a_moment(choice.first) || take_for_a_moment(choice.fallback);
  }

  bool take_for_a_moment(std::int64_t bytes) {
    if (bytes == 0) return true;
    const auto taken = allocator_.allocate_and_free(bytes);
    if (!taken) return false;
    for_a_moment_ = *taken;
    if (note_peak()) result_.at_peak[kWorkspaceCategory] += for_a_moment_;
    return true;
  }

  /// After every allocation: whether this is the highest so far; then it keeps the state.
  bool note_peak() {
    if (allocator_.peak_allocated() <= highest_) return false;
    highest_ = allocator_.peak_allocated();
    result_.peak_event = event_;
    result_.at_peak = allocated_;
    return true;
  }

  const plan::StepPlan& plan_;
  const device::GpuProfile& gpu_;
  AllocatorMemory* memory_;
  device::CachingAllocator allocator_;
  std::vector<Held> held_;
  ByCategory allocated_{};
  std::int64_t highest_ = 0;  ///< the peak that `result_` tells of
  std::size_t event_ = 0;     ///< the one being replayed
  std::int64_t for_a_moment_ = 0;
  std::array<bool, 2> cublas_{};
  bool grouped_ = false;
  AllocatorRun result_;
};

}  // namespace allocator_run_detail

inline AllocatorRun run_allocator(const plan::StepPlan& plan, const device::GpuProfile& gpu,
                                  const device::AllocatorOptions& options, AllocatorObserver* observer,
                                  AllocatorMemory* memory) {
  return allocator_run_detail::Runner(plan, gpu, options, memory).run(observer);
}

}  // namespace gpumem::analysis
