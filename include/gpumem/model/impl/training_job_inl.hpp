#pragma once

#include "gpumem/model/training_job.hpp"

namespace gpumem::model {

GPUMEM_INLINE core::Status validate(const TrainingJob& job) {
  const auto refuse = [](std::string message) {
    return core::Error{core::ErrorCode::invalid_argument, std::move(message), {}};
  };
  const auto not_positive = [&](std::string_view what, std::int64_t value) {
    return refuse(std::string(what) + " is " + std::to_string(value) + "; it must be at least 1");
  };
  if (job.graph == nullptr) return refuse("the job has no model; read a summary first");
  const bool has_fused = job.optimizer == Optimizer::sgd || job.optimizer == Optimizer::sgd_momentum ||
                         job.optimizer == Optimizer::adam || job.optimizer == Optimizer::adamw;
  if (job.fused && !has_fused) {
    return refuse("the optimizer " + std::string(name_of(kOptimizers, job.optimizer)) +
                  " has no fused form for a GPU; sgd, adam and adamw have one");
  }
  if (job.batch_size < 1) return not_positive("the batch size", job.batch_size);
  if (job.gradient_accumulation < 1) return not_positive("gradient accumulation", job.gradient_accumulation);
  if (job.data_parallel < 1) return not_positive("the number of GPUs in data parallel", job.data_parallel);
  if (job.sequence_length && *job.sequence_length < 1) return not_positive("the sequence length", *job.sequence_length);
  if (job.samples_per_epoch && *job.samples_per_epoch < 1) {
    return not_positive("the number of samples an epoch", *job.samples_per_epoch);
  }
  for (const std::int64_t dim : job.input_shape) {
    if (dim < 1) return not_positive("an input dimension", dim);
  }
  if (job.input_shape.size() + 1 > core::Shape::kMaxRank) {
    return refuse("the input shape has more than " + std::to_string(core::Shape::kMaxRank - 1) + " dimensions");
  }
  return core::Done{};
}

}  // namespace gpumem::model
