// Input: an optimizer's row and the trained parameters.
// Output: the state that it makes, the temporaries of its step, and what torch.amp.GradScaler takes around it.
// Units: bytes.
// Source: the code that the row names; torch/amp/grad_scaler.py; Megatron-LM 0.9, optimizer/optimizer.py
// (Float16OptimizerWithFloat16Params) for masters; DeepSpeed 0.15, ops/adam/cpu_adam.py for a step on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpumem/model/training_job.hpp"
#include "gpumem/plan/run_state.hpp"

namespace gpumem::plan {

/// A parameter that the optimizer updates.
struct TrainedParameter {
  std::int64_t bytes = 0;
  std::int64_t elements = 0;
  std::int64_t factored = 0;  ///< elements of its rows and columns, of a matrix; 0: it has none
  std::uint32_t layer = kNoLayer;
  std::int64_t held = 0;  ///< bytes of the parameter itself, or of its shard
  std::int64_t rank = 0;  ///< of the projection of its gradient; 0: there is none
};

/// What a job's optimizer projects the gradient of a matrix on, and what that takes. Source: GaLore 2024-09,
/// galore_projector.py; APOLLO 2025-04, random_projector.py.
struct ProjectedGradient {
  std::int64_t rank = 0;
  std::int64_t shorter = 0;  ///< side of the matrix
  std::int64_t longer = 0;
  std::int64_t element_bytes = 0;

  [[nodiscard]] constexpr std::int64_t elements() const { return rank * longer; }
  [[nodiscard]] constexpr std::int64_t bytes() const { return elements() * element_bytes; }

  /// The matrix that projects. Of a float32 gradient it is a view of all singular vectors, which stay for it.
  [[nodiscard]] constexpr std::int64_t projector_bytes(const model::OptimizerRow& row) const {
    const bool views = row.projection == model::OptimizerRow::Projection::singular && element_bytes == kSingle;
    return (views ? shorter : rank) * shorter * element_bytes;
  }

  /// Tensors of a decomposition, which torch.linalg.svd() makes in float32 besides its vectors: a float32 copy of the
  /// gradient where it has another type, the copy that cuSOLVER works in, and both kinds of singular vectors. What
  /// cuSOLVER takes for its work is not published.
  [[nodiscard]] constexpr std::int64_t decomposition_bytes() const {
    const std::int64_t whole = shorter * longer * kSingle;
    return (element_bytes == kSingle ? 2 : 3) * whole + shorter * shorter * kSingle;
  }

 private:
  static constexpr std::int64_t kSingle = 4;
};

/// What ProjectedGradient and `TrainingJob` begin with where nobody says a rank. Source: transformers 4.51, trainer.py.
inline constexpr std::int64_t kUsualOptimizerRank = 128;

/// The rank on which the job's optimizer projects the gradient of a layer's tensor of so many elements; 0: it does not.
/// Without names it takes the linear layers but the head, as GaLore's and APOLLO's examples and LLaMA-Factory's `all`
/// do. Source: transformers 4.51, trainer_utils.py (check_target_module_exists): a name is a part of a module's;
/// LLaMA-Factory 2026-08, model/model_utils/misc.py (find_all_linear_modules).
[[nodiscard]] std::int64_t projection_rank(const model::ModelGraph& graph, std::uint32_t layer, std::int64_t elements,
                                           const model::TrainingJob& job);

/// The sides of a matrix by its elements and what its rows and columns come to; no rank: it is no single matrix.
[[nodiscard]] ProjectedGradient projected_gradient(const model::OptimizerRow& row, const TrainedParameter& parameter);

/// What it updates in place of the parameters.
struct Masters {
  bool made = false;              ///< float32 copies of the parameters
  bool gradients_copied = false;  ///< each step makes float32 copies of the gradients for them
  bool on_host = false;           ///< with the states, and the step
};

class OptimizerStep {
 public:
  OptimizerStep(EventLog& log, core::Pace& pace, const model::TrainingJob& job, const BackendTraits& backend,
                const Masters& masters);

  /// Before all else: what it updates, in the order of the model.
  void update_all(std::vector<TrainedParameter> parameters);

  /// torch.optim.Adagrad(model.parameters()) makes its state; most do so in their first step. An average of the
  /// parameters is made here as well.
  void create();
  /// optimizer.step(), with the state that it makes if it has none yet.
  void run();
  /// In place of run(), where each parameter is updated in backward: what that of one of these bytes makes and frees.
  void update_one(std::int64_t bytes, std::uint32_t layer);
  /// The fused form, as asked for.
  [[nodiscard]] bool fused() const { return fused_; }

 private:
  void make_state();
  void make_states_of(const TrainedParameter& parameter);
  void make_projected_states_of(const ProjectedGradient& gradient, std::uint32_t layer);
  void take_for_projected(const TrainedParameter& parameter);
  [[nodiscard]] std::vector<Slot> copy_all();
  void take_for_all();
  /// How many of one parameter there are at a time, and the bytes of each.
  [[nodiscard]] std::pair<int, std::int64_t> temporaries_of(const TrainedParameter& parameter) const;
  void take_one_by_one();

  EventLog& log_;
  core::Pace& pace_;
  const model::OptimizerRow& row_;
  std::vector<TrainedParameter> parameters_;
  std::unordered_map<std::uint32_t, std::size_t> projected_;  ///< by their layers
  bool scalars_on_device_ = false;
  bool foreach_ = false;
  bool fused_ = false;
  bool of_trainer_ = false;  ///< the form that transformers' Trainer has for itself
  bool in_backward_ = false;
  bool decays_ = false;  ///< into a copy of the gradients
  bool has_state_ = false;
  bool keeps_remainders_ = false;  ///< of masters
  bool averages_ = false;          ///< keeps a copy of the parameters (diffusers, training_utils.py: EMAModel)
  Masters masters_;
};

/// What copies of the model that train apart take to meet. DiLoCo keeps the parameters of the last meeting on the host,
/// and an outer SGD with momentum on the GPU. At a meeting a fragment's pseudo-gradients and a copy of its parameters
/// lie there as well; where the sums take their time, the former do so while the next steps run. Every meeting is
/// written behind each step, so that the second one finds what all have left.
/// Source: torchft 2025-10, local_sgd.py: LocalSGD._average(), _StreamingDiLoCoFragment (_save_grads, perform_sync,
/// save_parameters); torchtitan of October 2025, components/ft/manager.py (outer_optimizer), diloco/utils.py.
class SemiSyncStep {
 public:
  SemiSyncStep(EventLog& log, core::Pace& pace, model::SemiSync kind) : log_(log), pace_(pace), kind_(kind) {}

  /// Done if the model's layers make so many fragments. Errors: invalid_argument, naming the rule.
  [[nodiscard]] static core::Status check(const model::ModelGraph& graph, const model::Layout& layout);

  /// Before all else: the parameters, and in how many fragments of the graph's layers they meet.
  void meet_over(std::span<const TrainedParameter> parameters, const model::ModelGraph& graph, std::int64_t fragments);
  /// The optimizer has stepped.
  void run();

 private:
  [[nodiscard]] std::vector<Slot> copy_of(const std::vector<TrainedParameter>& fragment, Category category);
  [[nodiscard]] std::vector<Slot> pseudo_gradients(const std::vector<TrainedParameter>& fragment);
  void meet(std::size_t fragment);
  void drop(std::vector<Slot>& slots);

  EventLog& log_;
  core::Pace& pace_;
  model::SemiSync kind_;
  std::vector<std::vector<TrainedParameter>> fragments_;
  std::vector<bool> has_momentum_;  ///< by fragment
  std::size_t largest_ = 0;         ///< the fragment with most bytes
  std::vector<Slot> on_their_way_;  ///< its pseudo-gradients, until the next meeting
};

/// Works under amp-fp16 on a GPU, and does nothing otherwise.
class GradientScaler {
 public:
  GradientScaler(RunState& state, const model::TrainingJob& job);

  /// GradScaler.scale(loss): the scaled loss, for backward; kNoSlot: it is not scaled.
  [[nodiscard]] Slot scale_loss();
  /// GradScaler.step(): unscales the gradients in place. Leaves found_inf, which lives until update(); kNoSlot: none.
  [[nodiscard]] Slot unscale(bool fused_optimizer);

 private:
  RunState& state_;
  bool active_ = false;
  bool has_scale_ = false;
};

}  // namespace gpumem::plan
