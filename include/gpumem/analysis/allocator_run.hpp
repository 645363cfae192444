// Input: a step plan and the GPU that it runs on.
// Output: the peaks of what the caching allocator allocates and reserves, the event of the highest allocation, and what
// the tensors that live at that event are for.
// Units: bytes.
// Source: the rules of device/caching_allocator.hpp and device/workspace.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/deadline.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/device/caching_allocator.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/device/workspace.hpp"
#include "gpumem/model/step_recording.hpp"
#include "gpumem/model/training_job.hpp"
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

// Input: a job and its plan.
// Output: what its run through the allocator depends on: the options and the room that it has there, and how Unsloth's
// loss in chunks looks at what is left of it.
// Units: bytes.

namespace analysis_detail {

/// What is asked; where nothing is, what the recorded program sets. Its threshold of garbage collection counts after
/// set_per_process_memory_fraction() alone (CUDACachingAllocator.cpp, garbage_collect_cached_blocks). The fraction of
/// that call comes in place of the variable's.
inline device::AllocatorOptions as_recorded(const model::TrainingJob& job, const device::AllocatorOptions& asked) {
  const model::StepRecording* const recording = job.graph == nullptr ? nullptr : job.graph->recording();
  if (recording == nullptr || asked != device::AllocatorOptions{}) return asked;
  const std::string* const text = recording->setting(model::kRecordedAllocConf);
  if (text == nullptr) return asked;
  const auto recorded = device::parse_allocator_options(*text);
  if (!recorded) return asked;
  device::AllocatorOptions options = *recorded;
  options.said = false;
  if (recording->memory_fraction()) {
    options.memory_fraction.reset();
  } else if (!options.memory_fraction) {
    options.garbage_collection_threshold = 0.0;
  }
  return options;
}

/// What the allocator may reserve of `capacity`, beside which `context` is taken. A fraction that is asked for comes
/// before the recorded program's.
inline core::Bytes room_for(const model::TrainingJob& job, const device::AllocatorOptions& options,
                            core::Bytes capacity, core::Bytes context) {
  const std::int64_t room = std::max<std::int64_t>(capacity.count() - context.count(), 0);
  const model::StepRecording* const recording = job.graph == nullptr ? nullptr : job.graph->recording();
  std::optional<double> fraction = options.memory_fraction;
  if (!fraction && recording != nullptr) fraction = recording->memory_fraction();
  if (!fraction) return core::Bytes(room);
  return core::Bytes(std::min(room, static_cast<std::int64_t>(static_cast<double>(capacity.count()) * *fraction)));
}

/// What chunks of a loss may take more than planned, where batches hold padding: then some have fewer tokens.
inline std::int64_t more_in_smaller_batches(const ops::Tape& tape, const model::TrainingJob& job) {
  if (!job.padding || !model::sizes_chunks(job.loss_form.kind)) return 0;
  std::int64_t more = 0;
  for (const ops::TapeTensor& tensor : tape.tensors()) {
    if (tensor.size.chunks.target == 0) continue;
    more = core::bounded_sum({more, tensor.size.more_in_smaller_batches(job.batch_size)});
  }
  return more;
}

/// How the chunks of Unsloth's loss are chosen. Source: as ops::Chunks.
inline std::string loss_text(const model::TrainingJob& job, std::int64_t target,
                             const std::optional<core::Bytes>& free) {
  if (!model::sizes_chunks(job.loss_form.kind)) return {};
  const std::string shorter =
      job.padding ? "; a batch with fewer tokens may get larger chunks, which the upper figure covers" : "";
  const std::string compiled = "; the loss is compiled, as Unsloth's is where PyTorch can compile it";
  if (!model::asks_for_free(job.loss_form.kind)) {
    return "chunks of tokens have float32 logits of at most " + std::to_string(job.loss_form.count) + " MiB" + shorter +
           compiled;
  }
  const bool rounds = job.loss_form.kind == model::LossForms::fused_free_2025;
  const std::string rule = rounds ? "half of the memory that is free at the first loss, the number of chunks rounded "
                                    "(Unsloth from September 2025 to June 2026)"
                                  : "half of the memory that is free at the first loss, 4 GiB at most (Unsloth since "
                                    "July 2026)";
  const std::string chosen = free ? core::to_string(*free) + " are free, so " + std::to_string(target) + " MiB"
                                  : "no GPU was named, so all tokens are one chunk";
  return "chunks of tokens have float32 logits of " + rule + ": " + chosen + shorter + compiled;
}

/// What the allocator will have reserved when the first step computes its loss: about the most that tensors held.
inline std::int64_t reserved_before(const plan::StepPlan& steps, std::uint32_t loss) {
  std::vector<std::int64_t> held(steps.slots, 0);
  std::int64_t live = 0;
  std::int64_t most = 0;
  bool forward = false;
  std::size_t mark = 0;
  for (std::size_t at = 0; at < steps.events.size(); ++at) {
    for (; mark < steps.phases.size() && steps.phases[mark].first_event <= at; ++mark) {
      forward = steps.phases[mark].phase == plan::Phase::forward && steps.phases[mark].step == 1;
    }
    const plan::Event& event = steps.events[at];
    if (forward && event.layer == loss) break;
    if (event.kind == plan::Event::Kind::allocate) live += held[event.slot] = event.bytes;
    if (event.kind == plan::Event::Kind::release) live -= std::exchange(held[event.slot], 0);
    most = std::max(most, live);
  }
  return most;
}

}  // namespace analysis_detail

}  // namespace gpumem::analysis
