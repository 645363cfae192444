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

}  // namespace gpumem::ml
