// Input: a job, a GPU, a number of GPUs (or none: the fewest that are enough) and a global batch.
// Output: LayoutPlan: the fastest layouts that fit, each with what its worst rank takes, the parts of a step's time,
// and the framework that runs it.
// Units: GPUs, samples, seconds; bytes as MemoryEstimate has them.
//
// Every layout of layout_space.hpp is looked at in the order of its step's time, until as many fit with headroom as are
// asked for, or many more without. Whether one fits is said by the replay, as for `gpumem estimate`; block_work.hpp
// saves that for those that cannot, and a micro-batch that is too large rules out larger ones of the same passes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/search/layout_space.hpp"

namespace gpumem::search {

struct Question {
  std::optional<std::int64_t> gpus = {};  ///< nothing: 1, 2, 4, ..., until a layout fits
  std::int64_t global_batch = 1;          ///< samples a step
  std::vector<const Framework*> frameworks = {};
  std::size_t show = 10;  ///< so many layouts at most; the search ends when as many fit with headroom
  MostRanks most = {};
  LinkOptions links = {};
  device::AllocatorOptions allocator = {};
  bool prune = true;  ///< false: each layout gets an estimate, for tests of what pruning loses
  /// Called with the number of layouts done and their total; may be empty.
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

struct PlannedLayout {
  const Framework* framework = nullptr;
  model::TrainingJob job;           ///< one rank's: its layout, micro-batch, how many of these a step has
  estimate::MemoryEstimate memory;  ///< of the rank that takes most
  LayoutTime time;
  double step = 0.0;     ///< seconds
  double samples = 0.0;  ///< a second, of all GPUs
  double tokens = 0.0;   ///< a second, of one GPU; 0 for a model that reads none
};

/// What is left of a GPU after the most that a layout may take; 0: nothing.
[[nodiscard]] inline core::Bytes headroom(const estimate::MemoryEstimate& memory, const device::GpuProfile& gpu) {
  return core::Bytes(std::max<std::int64_t>(gpu.capacity().count() - memory.upper.count(), 0));
}

struct LayoutPlan {
  std::int64_t gpus = 0;
  std::int64_t blocks = 0;         ///< the model's repeated blocks, which pipelines share
  std::int64_t gpus_per_node = 1;  ///< as the user or the profile says
  bool overlap = true;             ///< as LinkOptions says
  /// Those with headroom by step, ascending, then the others likewise; empty: none fits.
  std::vector<PlannedLayout> layouts;
  std::int64_t candidates = 0;  ///< that the rules allow, with all micro-batches
  std::int64_t too_large = 0;   ///< of these, by a bound
  std::int64_t estimated = 0;   ///< of these, by an estimate, fitting or not
  std::int64_t fitting = 0;     ///< of the estimated, also those without headroom that gave way
  std::int64_t slower = 0;      ///< of these, not looked at: enough fit that are faster
  Refusals refused;
  std::vector<estimate::Assumption> assumed;  ///< of the times
};

/// More GPUs are not tried where none are named. Where no layout fits, the plan is that of the most GPUs on which there
/// are layouts.
inline constexpr std::int64_t kMostGpus = 16384;

/// No step has more.
inline constexpr std::int64_t kMostSamples = std::int64_t{1} << 24;

/// A layout of the plan in its framework's own settings.
[[nodiscard]] inline std::string settings_of(const LayoutPlan& plan, const PlannedLayout& layout) {
  return layout.framework->settings_of(layout.job, plan.blocks, {plan.gpus_per_node, plan.overlap});
}

/// The job's batch size, accumulation, checkpointing and layout, except ZeRO's buckets, are not looked at. Errors:
/// invalid_argument for a number out of range, for frameworks that do not train such a model, for a model that says
/// how many blocks the first or the last pipeline stage has, and for a recording; those of connecting, of
/// utilisation::peaks_of() and of links_of(); deadline_exceeded. That nothing fits is not an error.
[[nodiscard]] core::Result<LayoutPlan> find_layouts(const model::TrainingJob& job, const device::GpuProfile& gpu,
                                                    const Question& question);

// Input: a job, a GPU, a question, and a layout that somebody knows.
// Output: Explanation: what the layout takes and how long its step is, and by which rules a search has no such layout.
// Units: seconds; bytes as MemoryEstimate has them.

struct Explanation {
  const Framework* framework = nullptr;
  model::TrainingJob job = {};                          ///< one rank's
  std::vector<Refusal> outside = {};                    ///< why a search has no such layout; empty: it has
  std::optional<estimate::MemoryEstimate> memory = {};  ///< of the rank that takes most; nothing: `outside` says why
  std::optional<LayoutTime> time = {};                  ///< nothing: `outside` says why
};

/// `asked` says framework, layout and micro-batches, and its other members are not read. Errors: those of
/// find_layouts(), but for that of stages which the model gives. That the layout is refused or does not fit is none.
[[nodiscard]] core::Result<Explanation> explain_layout(const model::TrainingJob& job, const device::GpuProfile& gpu,
                                                       const Question& question, const Candidate& asked);

}  // namespace gpumem::search
