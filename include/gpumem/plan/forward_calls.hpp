// Input: recorded functions, one by one.
// Output: what each allocates in forward, and what it keeps until its backward has run.
// Units: bytes.
// Source: torch.autograd's saved variables, as the op's record rule lists them.
#pragma once

#include <utility>
#include <vector>

#include "gpumem/plan/autocast_copies.hpp"
#include "gpumem/plan/run_state.hpp"

namespace gpumem::plan {

/// On which of PyTorch's threads a function runs: each has a cuBLAS handle of its own.
enum class Thread : bool { forward, backward };

class ForwardCalls {
 public:
  explicit ForwardCalls(RunState& state, bool offloads = false) : state_(state), copies_(state), offloads_(offloads) {}

  /// What a call made and a second run takes in place of calling again: its extras, then its output.
  using Results = std::vector<Slot>;

  /// Runs the function; `recorded`: autograd keeps what its backward reads, if its output needs a gradient. `results`:
  /// holds what it made there too.
  void run(const ops::Function& function, bool recorded, Thread thread, Results* results = nullptr);
  /// In place of running the function again: what an earlier run made, which nobody else holds on to from now on.
  void take(const ops::Function& function, bool recorded, Results& results);
  /// Keeps what the function's backward reads, without running the function: its inputs are still held.
  void keep_inputs(const ops::Function& function);
  /// Its backward has run. `again`: what it kept is of a second run.
  void drop_kept(const ops::Function& function, bool again) {
    for (const ops::TensorId saved : state_.tape().list(function.saved)) {
      if (!again && on_host(function, saved)) continue;
      if (function.keeps_until_graph_ends && !again) {
        if (state_.slot(saved) != kNoSlot) kept_of_graph_.push_back(state_.slot(saved));
      } else {
        state_.let_go(saved);
      }
    }
    copies_.drop_kept(function);
  }
  /// A gradient that stays with its leaf, which the graph holds.
  void keep_of_graph(Slot gradient) { kept_of_graph_.push_back(gradient); }
  /// What functions whose backward has run still hold, until the graph ends. Whoever takes it drops it.
  [[nodiscard]] std::vector<Slot> take_kept_of_graph() { return std::exchange(kept_of_graph_, {}); }
  /// Its backward begins: copies of what is kept on the host, which end with it.
  [[nodiscard]] std::vector<Slot> fetch(const ops::Function& function);
  /// Whether autograd keeps the tensor in the host's memory: what is large enough, and no parameter
  /// (OffloadActivations.min_offload_size of torchtune). Copies of weights under autocast stay.
  [[nodiscard]] bool on_host(ops::TensorId saved) const {
    constexpr std::int64_t kLeast = 1024;
    return offloads_ && !state_.is_parameter(saved) && state_.bytes(saved) >= kLeast;
  }
  /// The autocast region ends.
  void end_autocast() { copies_.end_region(); }

 private:
  void keep(const ops::Function& function, bool again) {
    for (const ops::TensorId saved : state_.tape().list(function.saved)) {
      if (again || !on_host(function, saved)) state_.hold(saved);
    }
  }
  /// Gradients that forward made stay where they are.
  [[nodiscard]] bool on_host(const ops::Function& function, ops::TensorId saved) const {
    const bool gradients =
        function.gradient == ops::Gradient::made_in_forward || function.gradient == ops::Gradient::over_input;
    return !gradients && on_host(saved);
  }

  RunState& state_;
  AutocastCopies copies_;
  bool offloads_ = false;
  std::vector<Slot> kept_of_graph_;
};

}  // namespace gpumem::plan
