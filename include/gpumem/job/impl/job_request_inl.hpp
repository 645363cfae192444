#pragma once

#include <utility>

#include "gpumem/job/job_request.hpp"

namespace gpumem::job {

GPUMEM_INLINE core::Result<model::TrainingJob> job_from(const JobRequest& request,
                                                        std::shared_ptr<const model::ModelGraph> graph) {
  model::TrainingJob training = request.training;
  training.graph = std::move(graph);
  const core::Status valid = model::validate(training);
  if (!valid) return valid.error();
  return training;
}

}  // namespace gpumem::job
