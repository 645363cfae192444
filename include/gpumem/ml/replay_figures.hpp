// Input: a job's Analysis and a GPU.
// Output: the figures that a learned model reads from the allocator's runs of the job on that GPU, and their names, in
// the order of JobFacts::replay.
// Units: MiB, unless said otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/ml/job_facts.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::ml {

/// A job replayed once, on the GPU and within its memory.
enum class ReplayFigure : std::uint8_t {
  device,         ///< context + reserved: what nvidia-smi shows
  reserved,       ///< at its peak; of a job that does not fit, on a GPU that is large enough
  allocated,      ///< at its peak
  workspace,      ///< when most is allocated
  fragmentation,  ///< peak reserved less peak allocated
  context,
  fits,     ///< 1 or 0
  retries,  ///< how often the allocator gave back its cache
};

inline constexpr std::array<model::Named<ReplayFigure>, 8> kReplayFigureNames = {
    {{ReplayFigure::device, "replay.device"},
     {ReplayFigure::reserved, "replay.reserved"},
     {ReplayFigure::allocated, "replay.allocated"},
     {ReplayFigure::workspace, "replay.workspace"},
     {ReplayFigure::fragmentation, "replay.fragmentation"},
     {ReplayFigure::context, "replay.context"},
     {ReplayFigure::fits, "replay.fits"},
     {ReplayFigure::retries, "replay.retries"}}};

/// After these: of replays under each of device::workspace_variants(), in this order, ln(reserved / the rule's
/// reserved). Names as the device room has them.
inline constexpr std::size_t kFirstVariantFigure = kReplayFigureNames.size();
inline constexpr std::array<std::string_view, 21> kVariantNames = {
    "slices-1",       "slices-2",     "slices-4",         "slices-8",       "slices-16",           "split-5mib",
    "split-10mib",    "split-20mib",  "split-40mib",      "forward-always", "forward-unaligned",   "forward-never",
    "data-unaligned", "data-never",   "weight-unaligned", "weight-never",   "gradients-unaligned", "none",
    "multiple-8",     "first-always", "first-never"};
static_assert(kFirstVariantFigure + kVariantNames.size() <= kReplayFigures);

/// For one run by the rule; with Needs::variants also of one more for each way in which convolutions may take other
/// workspaces (without convolutions, and without Needs::variants, their figures are 0). Errors: those of the runs.
[[nodiscard]] core::Result<std::array<double, kReplayFigures>> replay_figures(
    analysis::Analysis& analysis, const device::GpuProfile& gpu, Needs needs,
    const device::AllocatorOptions& options = {});

/// Sets JobFacts::replay as far as the reader needs it. Errors: those of the runs; the facts then stay as they were.
[[nodiscard]] core::Status add_replay(JobFacts& facts, const FeatureReader& reader, analysis::Analysis& analysis,
                                      const device::GpuProfile& gpu, const device::AllocatorOptions& options = {});

}  // namespace gpumem::ml
