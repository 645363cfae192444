// Input: a recording which gpumem.record writes of a training step in PyTorch (src/python/gpumem/record/writer.py has
// the format).
// Output: a ModelGraph that names its modules and holds the StepRecording.
// Units: those of StepRecording.
//
// A recording is untrusted input: every index is checked here, so that later stages do not have to.
#pragma once

#include "gpumem/model/step_recording.hpp"
#include "gpumem/summary/format.hpp"

namespace gpumem::summary {

[[nodiscard]] const Format& recording();

}  // namespace gpumem::summary
