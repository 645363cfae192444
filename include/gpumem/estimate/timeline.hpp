// Input: a training job's Analysis and a GPU.
// Output: Timeline, the memory of the run from the model's construction to a step that repeats: how much of each kind
// is held after each event, where the peak is, and which layers hold the memory then. A plan of many events is thinned
// to a number of points that a person can look at; maxima are kept.
// Units: bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::estimate {

using analysis::ByCategory;

/// The state after one event (or, for memory that one takes and gives back, within it).
struct TimelinePoint {
  std::size_t event = 0;
  ByCategory allocated{};
  std::int64_t reserved = 0;
  std::int64_t bytes = 0;    ///< what the event took; negative: gave back; 0: nothing
  std::size_t category = 0;  ///< of these bytes: index into ByCategory
  std::int32_t layer = -1;   ///< of these bytes: index into Timeline::layers; -1: of none
};

struct TimelinePhase {
  std::size_t first_point = 0;
  plan::Phase phase = plan::Phase::construction;
  std::int32_t step = 0;  ///< 1 for the first training step, 0 before it
  std::int64_t batch_size = 0;
};

/// A layer that a point or a holder names.
struct TimelineLayer {
  std::string path;
  std::string class_name;
};

/// What one layer holds at the peak.
struct TimelineHolder {
  std::int32_t layer = -1;  ///< -1: of no layer (batches, cuBLAS' workspaces)
  ByCategory held{};
  std::int64_t total = 0;
};

struct Timeline {
  core::Bytes context;
  core::Bytes capacity;        ///< the GPU's
  core::Bytes peak_allocated;  ///< in live tensors and workspaces, at points[peak_point]
  core::Bytes peak_reserved;
  Verdict verdict =
      Verdict::unknown;      ///< the estimate's; if it does not fit, figures are of a GPU that is large enough
  core::Bytes most_needed;   ///< the estimate's
  core::Bytes upper_uncut;   ///< the estimate's
  std::int64_t retries = 0;  ///< how often the allocator released its cache to go on
  std::size_t events = 0;    ///< of the plan; with fewer points, the points are a selection
  std::size_t peak_point = 0;
  std::string peak_text;  ///< the estimate's, for people
  std::vector<TimelinePoint> points;
  std::vector<TimelinePhase> phases;
  std::vector<TimelineLayer> layers;
  std::vector<TimelineHolder> holders;  ///< at the peak: layers by what they hold, the largest first
  std::size_t holders_left_out = 0;
  std::int64_t held_by_others = 0;  ///< by those left out
};

struct TimelineOptions {
  device::AllocatorOptions allocator = {};
  std::size_t most_points = 20'000;  ///< about
  std::size_t most_holders = 10;
};

/// Errors: those of the replay (estimate/replay.hpp).
[[nodiscard]] core::Result<Timeline> make_timeline(analysis::Analysis& analysis, const device::GpuProfile& gpu,
                                                   const TimelineOptions& options = {});
[[nodiscard]] core::Result<Timeline> make_timeline(const model::TrainingJob& job, const device::GpuProfile& gpu,
                                                   const TimelineOptions& options = {});

}  // namespace gpumem::estimate
