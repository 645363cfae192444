// Enters: a training job and a GPU. Leaves: the facts that a learned model reads of it: of the layers, with shapes
// printed or inferred, and of a replay where the model asks for one.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "gpumem/core/result.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/planned_job.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/ml/job_facts.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::estimate {

/// A job's facts, and the job that they view: the given one, which they must not outlive, or the same with edges.
struct LearnedFacts {
  std::shared_ptr<const model::TrainingJob> job;
  ml::JobFacts facts;
  std::string edges;  ///< how the graph came by its edges, as in Coverage
  /// Where a replay was asked for.
  std::optional<PlannedJob> planned;
  std::optional<JobReplay> replay;
};

/// What a model asks for beside the layers. Each includes those before it.
enum class ReplayDepth : std::uint8_t {
  none,
  rule,      ///< one replay: JobFacts::replay
  variants,  ///< one more for each way in which convolutions may take other workspaces
};

/// As deep as the features that a model reads.
[[nodiscard]] ReplayDepth replay_depth_of(const ml::FeatureReader& reader);

/// GPU and options are the replay's. Errors: those of connecting and of inferring shapes; with replays also those of
/// planning and replaying.
[[nodiscard]] core::Result<LearnedFacts> learned_facts(const model::TrainingJob& job, const device::GpuProfile& gpu,
                                                       const ops::Catalogue& ops, ReplayDepth depth,
                                                       const device::AllocatorOptions& options = {});

/// Plans and replays the job on `gpu`, and sets what a replay sets: its figures, the plan, the edges. Nothing for
/// ReplayDepth::none. Errors: those of planning and replaying; the facts then stay as they were.
[[nodiscard]] core::Status add_replay(LearnedFacts& learned, const device::GpuProfile& gpu, const ops::Catalogue& ops,
                                      ReplayDepth depth, const device::AllocatorOptions& options = {});

/// The figures of a job that has been planned and replayed by the rule, in the order of ml/replay_figures.hpp.
[[nodiscard]] core::Result<std::array<double, ml::kReplayFigures>> replay_figures(
    const PlannedJob& planned, const JobReplay& by_rule, const device::GpuProfile& gpu, ReplayDepth depth,
    const device::AllocatorOptions& options = {});

}  // namespace gpumem::estimate

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/estimate/impl/learned_facts_inl.hpp"
#endif
