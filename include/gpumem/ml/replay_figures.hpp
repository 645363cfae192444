// Enters: nothing. Leaves: the names of the figures that replays of a job give to a learned model, in the order of
// JobFacts::replay. The estimators in estimate/ fill them in. Units: MiB, if not said otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

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

/// Behind these: of replays under each of device::workspace_variants(), in this order, ln(reserved / the rule's
/// reserved). Names as the device room has them.
inline constexpr std::size_t kFirstVariantFigure = kReplayFigureNames.size();
inline constexpr std::array<std::string_view, 21> kVariantNames = {
    "slices-1",       "slices-2",     "slices-4",         "slices-8",       "slices-16",           "split-5mib",
    "split-10mib",    "split-20mib",  "split-40mib",      "forward-always", "forward-unaligned",   "forward-never",
    "data-unaligned", "data-never",   "weight-unaligned", "weight-never",   "gradients-unaligned", "none",
    "multiple-8",     "first-always", "first-never"};
static_assert(kFirstVariantFigure + kVariantNames.size() <= kReplayFigures);

}  // namespace gpumem::ml
