#pragma once

#include "gpumem/plan/run_state.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

namespace gpumem::plan {

GPUMEM_INLINE core::Result<TensorBytes> TensorBytes::at(std::int64_t batch_size, const ForwardPass& pass) {
  const ops::Tape& tape = pass.tape;
  TensorBytes all;
  all.batch_size_ = batch_size;
  all.bytes_.reserve(tape.tensors().size());
  for (const ops::TapeTensor& tensor : tape.tensors()) {
    const auto bytes = tensor.size.bytes(batch_size).value();
    if (!bytes) {
      const model::Layer& layer = pass.wired.graph().layers()[tensor.layer];
      return core::Error{core::ErrorCode::overflow,
                         "a tensor of it does not fit 64 bits at batch size " + std::to_string(batch_size),
                         pass.wired.place_of(layer)};
    }
    all.bytes_.push_back(*bytes);
  }
  return all;
}

namespace run_state_detail {

/// Room for a run of two steps: convolutional nets have 22 events and 2 calls a function.
inline constexpr std::size_t kEventsAFunction = 26;
inline constexpr std::size_t kCallsAFunction = 4;

}  // namespace run_state_detail

GPUMEM_INLINE RunState::RunState(const ForwardPass& pass, StepPlan reused)
    : pass_(pass),
      backend_(BackendTraits::of(pass.tape.backend())),
      log_(std::move(reused), pass.tape.functions().size() * run_state_detail::kEventsAFunction,
           pass.tape.functions().size() * run_state_detail::kCallsAFunction) {
  const auto tensors = tape().tensors();
  facts_.reserve(tensors.size());
  for (const ops::TapeTensor& tensor : tensors) {
    facts_.push_back({tensor.storage, static_cast<ops::TensorId>(facts_.size()), tensor.layer, tensor.requires_grad});
  }
  slots_.assign(tensors.size(), kNoSlot);
  find_parameters();
}

GPUMEM_INLINE void RunState::exchange(std::vector<Slot>& other) {
  slots_.swap(other);
  const auto stay = [&](ops::TensorId id) {
    slots_[static_cast<std::size_t>(id)] = other[static_cast<std::size_t>(id)];
  };
  for (const ops::Tape::Parameter& parameter : tape().parameters()) stay(parameter.tensor);
  for (const ops::TensorId buffer : tape().buffers()) stay(buffer);
}

GPUMEM_INLINE void RunState::find_parameters() {
  bool any_tied = false;
  trained_.reserve(tape().parameters().size());
  for (const ops::Tape::Parameter& parameter : tape().parameters()) {
    facts_[static_cast<std::size_t>(parameter.tensor)].is_parameter = true;
    if (!parameter.frozen && !parameter.tied) trained_.push_back(parameter.tensor);
    any_tied |= parameter.tied;
  }
  if (any_tied) find_tied();
}

/// A tied parameter's owner is the first of its size. Where a module that is called again holds several of one size,
/// each time all of them, the first of them is the first one's, and so on.
GPUMEM_INLINE void RunState::find_tied() {
  const auto elements = [&](const ops::Tape::Parameter& parameter) {
    return tape().tensor(parameter.tensor).size.elements.value().value_or(0);
  };
  struct Alike {
    std::vector<ops::TensorId> owners;
    std::size_t tied = 0;
    std::size_t found = 0;
  };
  std::unordered_map<std::int64_t, Alike> by_size;
  for (const ops::Tape::Parameter& parameter : tape().parameters()) {
    Alike& alike = by_size[elements(parameter)];
    if (parameter.tied) ++alike.tied;
    if (!parameter.tied) alike.owners.push_back(parameter.tensor);
  }
  for (const ops::Tape::Parameter& parameter : tape().parameters()) {
    if (!parameter.tied) continue;
    Alike& alike = by_size[elements(parameter)];
    if (alike.owners.empty()) continue;
    const bool in_turn = alike.tied % alike.owners.size() == 0;
    const std::size_t owner = in_turn ? alike.found++ % alike.owners.size() : 0;
    facts_[static_cast<std::size_t>(parameter.tensor)].tied_to = alike.owners[owner];
  }
}

}  // namespace gpumem::plan
