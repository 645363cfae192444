// Input: a job whose graph is a recording.
// Output: StepWork, the kernels of its last recorded step at the job's batch size and sequence length.
// Units: multiply-adds (two operations each), bytes, elements. A call moves each of its tensors once; what it
// multiplies follows from their shapes.
#pragma once

#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/plan/step_work.hpp"

namespace gpumem::record {

/// Errors: those of record::check() and of the sizes at this batch; missing_information for a recording without
/// "kernels".
[[nodiscard]] core::Result<plan::StepWork> recorded_work(const model::TrainingJob& job);

}  // namespace gpumem::record
