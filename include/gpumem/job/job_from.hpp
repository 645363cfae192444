// Input: what a user asks for, and a model.
// Output: the TrainingJob that it means.
// Units: those of TrainingJob.
#pragma once

#include <memory>

#include "gpumem/core/result.hpp"
#include "gpumem/job/job_options.hpp"

namespace gpumem::job {

/// The job that the request means for this model. Of a recording it takes what was not given: batch size, precision,
/// optimizer. Errors: those of model::validate; invalid_argument for an option that a recording fixes.
[[nodiscard]] core::Result<model::TrainingJob> job_from(const JobRequest& request,
                                                        std::shared_ptr<const model::ModelGraph> graph);

}  // namespace gpumem::job
