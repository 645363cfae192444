// Enters: recorded functions, one by one. Leaves: what each allocates in forward, and what it keeps until its
// backward has run. Units: bytes. Source: torch.autograd's saved variables, as the op's record rule lists them.
#pragma once

#include <vector>

#include "gpumem/plan/autocast_copies.hpp"
#include "gpumem/plan/run_state.hpp"

namespace gpumem::plan {

/// On which of PyTorch's threads a function runs: each has a cuBLAS handle of its own.
enum class Thread : bool { forward, backward };

class ForwardCalls {
 public:
  explicit ForwardCalls(RunState& state) : state_(state), copies_(state) {}

  /// What a call made and a second run takes in place of calling again: its extras, then its output.
  using Results = std::vector<Slot>;

  /// Runs the function; `recorded`: autograd keeps what its backward reads, if its output needs a gradient. `results`:
  /// holds what it made there too.
  void run(const ops::Function& function, bool recorded, Thread thread, Results* results = nullptr);
  /// In place of running the function again: what an earlier run made, which nobody else holds on to from now on.
  void take(const ops::Function& function, bool recorded, Results& results);
  /// Keeps what the function's backward reads, without running the function: its inputs are still held.
  void keep_inputs(const ops::Function& function);
  /// Its backward has run.
  void drop_kept(const ops::Function& function) {
    state_.let_go(state_.tape().list(function.saved));
    copies_.drop_kept(function);
  }
  /// The autocast region ends.
  void end_autocast() { copies_.end_region(); }

 private:
  void keep(const ops::Function& function) {
    for (const ops::TensorId saved : state_.tape().list(function.saved)) state_.hold(saved);
  }

  RunState& state_;
  AutocastCopies copies_;
};

}  // namespace gpumem::plan

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/plan/impl/forward_calls_inl.hpp"
#endif
