// Input: a forward pass that has run.
// Output: its backward: the gradients that flow through the graph, where they meet, and the gradients of parameters,
// which live until zero_grad.
// Units: bytes.
// Source: torch/csrc/autograd: engine.cpp, input_buffer.cpp, functions/accumulate_grad.h.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpumem/plan/checkpoints.hpp"
#include "gpumem/plan/optimizer_step.hpp"
#include "gpumem/plan/run_state.hpp"
#include "gpumem/plan/sharded_model.hpp"

namespace gpumem::plan {

class GradientFlow {
 public:
  /// `in_backward`: updates each parameter when its gradient is there; it need not be made yet.
  GradientFlow(RunState& state, ForwardCalls& calls, Recomputation& blocks, ShardedModel& shards,
               OptimizerStep* in_backward = nullptr);

  /// loss.backward(), of the whole pass or of one stage of it. `scaled_loss`: the loss times GradScaler's scale, which
  /// is released when backward has run; kNoSlot: the loss is not scaled.
  void backward(const StagePart& part, Slot scaled_loss);
  /// The gradients of the stage's inputs alone. All that autograd keeps stays; so do, for each function with trained
  /// parameters, the gradients of what it has made. Source: PyTorch 2.6, distributed/pipelining/_backward.py
  /// (stage_backward_input: retain_graph=True, and hooks that take the gradients of the "intermediates").
  void backward_of_inputs(const StagePart& part, Slot scaled_loss);
  /// Those of its parameters, which were left out: functions in the order of the parameters. What functions without
  /// any keep goes with the last. Source: the same (stage_backward_weight).
  void backward_of_weights(const StagePart& part);
  /// By function: the gradients of what it has made that wait for backward_of_weights(), of one micro-batch.
  using Waiting = std::vector<Slot>;
  /// Another micro-batch's turn: what waits of this one gives place to what waits of that one.
  void exchange(Waiting& other) { waiting_.swap(other); }
  /// optimizer.zero_grad(set_to_none=True).
  void zero_grad();
  /// The last micro-batch of a step has run: what waited for it is used.
  void end_step();

 private:
  /// A gradient on its way through backward.
  struct Flow {
    Slot slot = kNoSlot;
    bool dense = true;
    bool view = false;  ///< of a tensor that it keeps: nothing is added in its place
  };
  /// A gradient of part of a tuple, which waits for the others.
  struct Part {
    ops::TensorId of;
    Slot slot;
  };
  struct Meeting {
    Slot first = kNoSlot;
    Slot second = kNoSlot;
    bool in_place = true;  ///< of the first, as far as that is known
  };

  void count_readers();
  void seed(ops::TensorId loss, Slot ones, Slot scaled_loss);
  void run(std::size_t index);
  void wait_for_weights(std::size_t index, Slot output);
  [[nodiscard]] bool has_trained(const ops::Function& function) const;
  void keep_inputs(const ops::Function& function);
  void make_gradients(const ops::Function& function, const Flow& output);
  void make_input_gradients(const ops::Function& function, const Flow& output);
  [[nodiscard]] Flow input_gradient(const ops::Function& function, ops::TensorId input, const Flow& output);
  [[nodiscard]] Slot gradient_by_sample(const ops::Function& function, ops::TensorId input);
  void make_parameter_gradients(const ops::Function& function);
  [[nodiscard]] Slot next_made_in_forward(const ops::Function& function);
  void end_call(const ops::Function& function, const Flow& output);
  void find_deferred();
  void defer(const ops::Function& function, Slot gradient);
  [[nodiscard]] bool is_widened(const ops::Function& function, ops::TensorId input) const;
  void hand_on(const ops::Function& function);
  [[nodiscard]] bool follows_its_cast(std::size_t index) const;
  void cast_gradients();
  void accumulate(ops::TensorId input, const Flow& flow);
  void meet(ops::TensorId parameter, Slot fresh, bool view = false);
  [[nodiscard]] bool makes_views(const ops::Function& function) const;
  void deliver(ops::TensorId parameter);
  void deliver_rest(bool all);
  Slot sum_of(const Meeting& meeting, ops::TensorId like, Category category);
  Slot own_gradient(ops::TensorId parameter, const Flow& flow);

  [[nodiscard]] Flow& gradient(ops::TensorId id) { return gradients_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] bool is_split(ops::TensorId id) const;
  [[nodiscard]] bool has_parts(ops::TensorId id) const;
  void drop_parts(ops::TensorId id);

  RunState& state_;
  EventLog& log_;
  ForwardCalls& calls_;
  Recomputation& blocks_;
  ShardedModel& shards_;
  OptimizerStep* in_backward_ = nullptr;
  std::vector<Slot> deferred_;                ///< gradients and inputs of the head, which wait for the step's end
  const ops::Function* deferring_ = nullptr;  ///< the head, if its weight's gradients wait for the step's end
  std::int64_t deferrals_ = 0;                ///< micro-batches of this step that are among them
  std::vector<Flow> gradients_;               ///< by tensor; a parameter's stays until zero_grad
  std::vector<Slot> met_;                     ///< by parameter: what its readers' gradients sum to so far in this pass
  std::vector<bool> met_views_;               ///< by parameter: whether that is a view
  std::vector<std::int32_t> readers_;         ///< by parameter: how many gradients it gets in a pass
  std::vector<std::int32_t> awaited_;         ///< of these, how many are to come
  std::vector<Flow> flows_;                   ///< what a function has made: of its inputs, the first ones of these
  std::vector<Slot> wide_;                    ///< of these, in place of which the engine has made others
  std::vector<std::pair<ops::TensorId, Slot>> parameter_flows_;  ///< and of its parameters
  std::vector<std::pair<ops::TensorId, Slot>> lower_;            ///< of parameters, which are still to be cast
  std::vector<Part> parts_;
  bool inputs_only_ = false;  ///< this pass makes no gradients of parameters
  Waiting waiting_;           ///< of the micro-batch whose turn it is; empty: nothing waits
  std::uint32_t taken_ = 0;   ///< of the gradients that the function at hand has made in forward
};

}  // namespace gpumem::plan
