// Input: a job whose graph is a recording.
// Output: its StepPlan at the job's batch size and sequence length: the recorded allocations and frees, with what only
// a GPU's libraries take put between them (kernel_memory.hpp), and the job's own optimizer in place of the recorded one
// if it asks for that (TrainingJob::replaces_optimizer).
// Units: bytes.
#pragma once

#include "gpumem/core/result.hpp"
#include "gpumem/model/step_recording.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::record {

/// The category of that name.
[[nodiscard]] constexpr plan::Category category_of(model::RecordedEvent::Use use) {
  return *model::value_of(plan::kCategoryNames, model::name_of(model::kRecordedUses, use));
}

/// Done if the job asks for nothing that the recording cannot give. Errors: invalid_argument for a batch size or
/// sequence length that the recording does not follow, or a precision other than the recorded one.
[[nodiscard]] core::Status check(const model::TrainingJob& job);

/// `reused` is a plan that is no longer needed, whose memory it takes. Errors: those of check(); overflow, naming the
/// module whose storage does not fit; invalid_argument for a size that is below zero at this batch; deadline_exceeded.
[[nodiscard]] core::Result<plan::StepPlan> recorded_steps(const model::TrainingJob& job, plan::StepPlan reused = {});

// Input: a job whose graph is a recording.
// Output: StepWork, the kernels of its last recorded step at the job's batch size and sequence length.
// Units: multiply-adds (two operations each), bytes, elements. A call moves each of its tensors once; what it
// multiplies follows from their shapes.

/// Errors: those of record::check() and of the sizes at this batch; missing_information for a recording without
/// "kernels".
[[nodiscard]] core::Result<plan::StepWork> recorded_work(const model::TrainingJob& job);

}  // namespace gpumem::record
