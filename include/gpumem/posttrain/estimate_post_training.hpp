// Input: a post-training job and a GPU.
// Output: what each phase of an iteration takes on each GPU: the plans of all models through one allocator, and beside
// it what a colocated server takes while it is awake and asleep.
// Units: bytes.
// Source: the programs that kProgramRows names. docs/post-training.md has the phases and what is known about the
// errors.
#pragma once

#include "gpumem/core/result.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/posttrain/post_training_job.hpp"

namespace gpumem::posttrain {

/// Errors: invalid_argument (what does not go together, or is missing for the algorithm), those of the replay and of
/// serve::estimate_vllm().
[[nodiscard]] core::Result<PostTrainingEstimate> estimate_post_training(const PostTrainingJob& job,
                                                                        const device::GpuProfile& gpu,
                                                                        const device::AllocatorOptions& options = {});

}  // namespace gpumem::posttrain
