#pragma once

#include "gpumem/plan/autocast_copies.hpp"

#include <algorithm>

namespace gpumem::plan {

GPUMEM_INLINE AutocastCopies::AutocastCopies(RunState& state) : state_(state) {
  std::uint32_t places = 0;
  for (const ops::Function& function : state.tape().functions()) {
    if (function.casts_parameters) places = std::max(places, function.parameters.first + function.parameters.count);
  }
  kept_.assign(places, kNoSlot);
  cached_.assign(places == 0 ? 0 : state.tape().tensors().size(), kNoSlot);
}

GPUMEM_INLINE void AutocastCopies::copy_parameters(const ops::Function& function, bool keeps) {
  const auto parameters = state_.tape().list(function.parameters);
  for (std::uint32_t at = 0; at < parameters.size(); ++at) {
    const ops::TensorId of = state_.tied_to(parameters[at]);
    Slot& cached = cached_[static_cast<std::size_t>(of)];
    Slot copy = cached;
    if (copy == kNoSlot) {
      copy = state_.log().allocate(state_.bytes(of) / 2, Category::activation, function.layer);
      if (state_.requires_grad(of)) {
        cached = copy;
        holding_.push_back(of);
      } else {
        passing_.push_back(copy);
      }
    }
    if (!keeps || !backward_reads(function, at)) continue;
    kept_[function.parameters.first + at] = copy;
    state_.log().hold(copy);
  }
}

GPUMEM_INLINE bool AutocastCopies::backward_reads(const ops::Function& function, std::uint32_t parameter) const {
  if (function.library == ops::Library::none) return true;
  const bool bias = parameter == 1 && function.parameters.count == 2;
  const auto inputs = state_.tape().list(function.inputs);
  const bool product = function.library != ops::Library::convolution;
  return !bias && !(product && !inputs.empty() && !state_.requires_grad(inputs[0]));
}

GPUMEM_INLINE void AutocastCopies::drop_kept_copies(const ops::Function& function) {
  for (std::uint32_t at = 0; at < function.parameters.count; ++at) {
    Slot& copy = kept_[function.parameters.first + at];
    state_.log().drop(copy);
    copy = kNoSlot;
  }
}

GPUMEM_INLINE void AutocastCopies::end_region() {
  for (const ops::TensorId of : holding_) {
    state_.log().drop(cached_[static_cast<std::size_t>(of)]);
    cached_[static_cast<std::size_t>(of)] = kNoSlot;
  }
  holding_.clear();
}

}  // namespace gpumem::plan
