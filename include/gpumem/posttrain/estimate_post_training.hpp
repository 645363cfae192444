// Input: a post-training job and a GPU.
// Output: what each phase of an iteration takes on each GPU: the plans of all models through one allocator, and beside
// it what a colocated server takes while it is awake and asleep.
// And how far each option of the job can go on that GPU, which changes would make it fit, and how to share out a number
// of such GPUs.
// Units: bytes; samples, tokens, shares of a GPU's memory.
// Source: the programs that kProgramRows names. docs/post-training.md has the phases and what is known about the
// errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// The furthest value of each option with which the job fits, by the upper end of the range, where all else stays as it
/// is; nothing: `reasons` says why, by the name of the limit.
struct PostTrainingLimits {
  std::optional<std::int64_t> largest_batch = {};       ///< samples of a forward pass
  std::optional<std::int64_t> largest_group = {};       ///< completions of each prompt, of as many prompts a step
  std::optional<std::int64_t> longest_completion = {};  ///< tokens, with the prompts as they are
  std::optional<std::int64_t> longest_sequence = {};    ///< tokens, where nobody generates
  std::optional<double> largest_utilization = {};       ///< of a colocated vLLM, in hundredths
  std::vector<std::pair<std::string_view, std::string>> reasons = {};
};

/// Where nobody says the samples of a forward pass: of one, but for the limit that is looked for.
[[nodiscard]] PostTrainingRequest with_a_batch(PostTrainingRequest request);

/// Errors: those of estimate_post_training(), but overflow, with which a job does not fit.
[[nodiscard]] core::Result<PostTrainingLimits> find_post_training_limits(const PostTrainingJob& job,
                                                                         const device::GpuProfile& gpu,
                                                                         const device::AllocatorOptions& options = {});

/// One thing changed, or several that are enough together.
struct PostTrainingChange {
  std::string_view option;  ///< a name of post_training_options() or of job::job_options()
  std::string value;
  std::string costs;  ///< in a few words
  PostTrainingEstimate estimate;
  std::vector<std::pair<std::string_view, std::string>> also = {};  ///< options and values that change with it
};

/// Single changes after which the job takes less, in the order of what they cost. Where the job does not fit by any of
/// them, the last one is of several: the two cheapest that are enough, or else more, each the cheapest that takes less.
/// Errors: those of the estimate of the job as it is.
[[nodiscard]] core::Result<std::vector<PostTrainingChange>> advise_post_training(
    const PostTrainingJob& job, const device::GpuProfile& gpu, const device::AllocatorOptions& options = {});

/// A way to share a number of GPUs out between training and generation.
struct PostTrainingLayout {
  model::Sharding sharding = {};    ///< of the policy's training, over all GPUs that do not split the model
  std::int64_t data_parallel = 1;   ///< those GPUs
  model::Precision precision = {};  ///< the policy is trained in: DeepSpeed keeps float32 masters, others may not
  std::int64_t rollout_tensor_parallel = 1;  ///< GPUs of each copy of the engine, where one stands beside the training
  Waiting offload = Waiting::none;           ///< of the policy, while others run
  PostTrainingEstimate estimate;
};

/// The layouts of exactly so many GPUs with which the job fits, or is tight: those that fit first; of these the one
/// that moves least between GPUs and to the host, then the one whose engine is split least. What splits the model, such
/// as tensor parallelism of the training, stays as it is. Errors: invalid_argument for less than 1 GPU, more than
/// 1,024, or a number that what splits the model does not divide; those of decide().
[[nodiscard]] core::Result<std::vector<PostTrainingLayout>> find_post_training_layouts(
    const PostTrainingJob& job, const device::GpuProfile& gpu, std::int64_t gpus,
    const device::AllocatorOptions& options = {});

}  // namespace gpumem::posttrain
