// Input: calls that read parameters under autocast.
// Output: the copies of parameters in lower precision: which of them autocast's cache holds, which end with their call,
// which backward keeps.
// Units: bytes.
// Source: aten/src/ATen/autocast_mode.cpp (cached_cast).
//
// The cache has a copy of each trained parameter until the autocast region ends; a frozen one is copied at each call.
// Backward needs the copies of weights, not of biases; a matrix product's only for the gradient of its input.
#pragma once

#include <vector>

#include "gpumem/plan/run_state.hpp"

namespace gpumem::plan {

class AutocastCopies {
 public:
  explicit AutocastCopies(RunState& state);

  /// A call reads its parameters; `keeps`: it is recorded for backward.
  void begin_call(const ops::Function& function, bool keeps) {
    if (function.casts_parameters) copy_parameters(function, keeps);
  }
  void end_call() {
    for (const Slot copy : passing_) state_.log().drop(copy);
    passing_.clear();
  }
  /// Backward of the call is through.
  void drop_kept(const ops::Function& function) {
    if (function.casts_parameters) drop_kept_copies(function);
  }
  /// `with torch.autocast()` ends: so does the cache.
  void end_region();

 private:
  void copy_parameters(const ops::Function& function, bool keeps);
  void drop_kept_copies(const ops::Function& function);
  [[nodiscard]] bool backward_reads(const ops::Function& function, std::uint32_t parameter) const;

  RunState& state_;
  std::vector<Slot> kept_;              ///< what backward reads, by the parameter's place in the tape's lists
  std::vector<Slot> cached_;            ///< by parameter
  std::vector<ops::TensorId> holding_;  ///< parameters of which the cache has a copy
  std::vector<Slot> passing_;           ///< copies that end with the call
};

}  // namespace gpumem::plan
