// Input: an optimizer's row and the trained parameters.
// Output: the state that it makes, the temporaries of its step, and what torch.amp.GradScaler takes around it.
// Units: bytes.
// Source: the code that the row names; torch/amp/grad_scaler.py; Megatron-LM 0.9, optimizer/optimizer.py
// (Float16OptimizerWithFloat16Params) for masters; DeepSpeed 0.15, ops/adam/cpu_adam.py for a step on the host.
#pragma once

#include <cstdint>
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
};

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
  void update_all(std::vector<TrainedParameter> parameters) { parameters_ = std::move(parameters); }

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
  [[nodiscard]] std::vector<Slot> copy_all();
  void take_for_all();
  void take_one_by_one();

  EventLog& log_;
  core::Pace& pace_;
  const model::OptimizerRow& row_;
  std::vector<TrainedParameter> parameters_;
  bool scalars_on_device_ = false;
  bool foreach_ = false;
  bool fused_ = false;
  bool in_backward_ = false;
  bool decays_ = false;  ///< into a copy of the gradients
  bool has_state_ = false;
  bool keeps_remainders_ = false;  ///< of masters
  bool averages_ = false;          ///< keeps a copy of the parameters (diffusers, training_utils.py: EMAModel)
  Masters masters_;
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
