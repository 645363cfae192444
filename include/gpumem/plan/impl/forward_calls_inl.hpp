#pragma once

#include "gpumem/plan/forward_calls.hpp"

namespace gpumem::plan {

GPUMEM_INLINE void ForwardCalls::run(const ops::Function& function, bool recorded, Thread thread, Results* results) {
  const ops::Tape& tape = state_.tape();
  const bool keeps = recorded && state_.requires_grad(function.output);
  copies_.begin_call(function, keeps);
  const auto extras = tape.list(function.extras);
  if (function.extras_first) state_.add(extras, Category::activation);
  if (function.kind == ops::Output::fresh) {
    state_.add(function.output, Category::activation);
  } else {
    state_.hold(function.output);
  }
  if (!function.extras_first) state_.add(extras, Category::activation);
  state_.call(function, Direction::forward, thread == Thread::backward);
  const auto scratch = tape.list(function.scratch);
  state_.add(scratch, Category::temporary);
  state_.let_go(scratch);
  if (keeps) keep(function, thread == Thread::backward);
  if (results != nullptr) {
    const auto hold = [&](ops::TensorId made) {
      state_.hold(made);
      results->push_back(state_.slot(made));
    };
    for (const ops::TensorId extra : extras) hold(extra);
    hold(function.output);
  }
  state_.let_go(extras);
  copies_.end_call();
}

GPUMEM_INLINE void ForwardCalls::take(const ops::Function& function, bool recorded, Results& results) {
  const bool keeps = recorded && state_.requires_grad(function.output);
  copies_.begin_call(function, keeps);
  const auto extras = state_.tape().list(function.extras);
  for (std::size_t at = 0; at < extras.size(); ++at) state_.slot(extras[at]) = results[at];
  state_.slot(function.output) = results.back();
  if (keeps) keep(function, true);
  state_.let_go(extras);
  copies_.end_call();
  results.clear();
}

GPUMEM_INLINE void ForwardCalls::keep_inputs(const ops::Function& function) {
  copies_.begin_call(function, true);
  copies_.end_call();
  keep(function, true);
}

GPUMEM_INLINE std::vector<Slot> ForwardCalls::fetch(const ops::Function& function) {
  std::vector<Slot> copies;
  if (!offloads_) return copies;
  for (const ops::TensorId saved : state_.tape().list(function.saved)) {
    if (on_host(function, saved)) copies.push_back(state_.allocate(saved, Category::activation));
  }
  return copies;
}

}  // namespace gpumem::plan
