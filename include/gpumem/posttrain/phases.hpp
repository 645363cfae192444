// Input: a post-training job.
// Output: PostTrainingPlan: its models, what each of them runs and in which order, as one plan of named phases.
// Units: bytes; tokens and samples of a pass.
// Source: the programs that kProgramRows names.
//
// An iteration of preferences (DPO, KTO, ...): policy forward, reference, policy backward, optimizer. One of generated
// completions (GRPO, PPO): rollout, rewards, reference and old log-probabilities, values, update. Two iterations are
// planned: from the second on the optimizer has its states. Where the lengths of preferences are not all alike, there
// are three, each with longer samples than the one before: the allocator keeps blocks of every size, and cuts longer
// ones out of none of these.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/plan/phased_plan.hpp"
#include "gpumem/posttrain/post_training_job.hpp"

namespace gpumem::posttrain {

enum class Role : std::uint8_t { policy, reference, critic, reward, teacher, rollout };
inline constexpr std::array<model::Named<Role>, 6> kRoles = {{{Role::policy, "policy"},
                                                              {Role::reference, "reference"},
                                                              {Role::critic, "critic"},
                                                              {Role::reward, "reward model"},
                                                              {Role::teacher, "teacher"},
                                                              {Role::rollout, "rollout"}}};

/// The phase in which completions are generated.
inline constexpr std::string_view kRolloutPhase = "rollout";
/// What the note says about an engine that a GPU does not hold.
inline constexpr std::string_view kDoesNotStart = " does not start: ";

struct PostTrainingPlan {
  plan::PhasedPlan phased;
  std::vector<Role> roles;          ///< by the number of a model
  analysis::Analyses::Lent policy;  ///< of the policy's update
};
/// What the policy's backward keeps of a frozen image tower in a pass: what its blocks read, in two bytes an element.
/// ms-swift checkpoints the tower, too, and has its embedding's output ask for a gradient, so that backward goes
/// through its blocks. Source: ms-swift 4, trainers/mixin.py: _prepare_gradient_checkpointing; transformers 5,
/// models/qwen2_5_vl: _input_embed_layer.
[[nodiscard]] std::int64_t kept_of_frozen_tower(const Decided& decided, analysis::Analysis& policy);

/// `lengths_differ`: from batch to batch. `analyses`, if there are any, must outlive the plan. `reused`: a plan that is
/// through, whose memory it takes. Errors: those of connecting, adapting and planning of each model.
[[nodiscard]] core::Result<PostTrainingPlan> plan_post_training(const PostTrainingJob& job, const Decided& decided,
                                                                const device::GpuProfile& gpu,
                                                                bool lengths_differ = false,
                                                                analysis::Analyses* analyses = nullptr,
                                                                plan::PhasedPlan reused = {});

}  // namespace gpumem::posttrain
