#pragma once

#include "gpumem/plan/run_state.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpumem/ops/collective.hpp"

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
  const std::int64_t size = core::element_size(state_.tape().tensor(function.output).size.dtype);
  for (std::uint32_t at = 0; at < parameters.size(); ++at) {
    const ops::TensorId of = state_.tied_to(parameters[at]);
    const std::int64_t own = core::element_size(state_.tape().tensor(of).size.dtype);
    if (own == size) continue;  // of that type already
    Slot& cached = cached_[static_cast<std::size_t>(of)];
    Slot copy = cached;
    if (copy == kNoSlot) {
      copy = state_.log().allocate(state_.bytes(of) / own * size, Category::activation, function.layer);
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

GPUMEM_INLINE void BatchLoader::release() {
  if (!prefetches_) state_.let_go(state_.tape().inputs());
}

GPUMEM_INLINE void BatchLoader::load() {
  const auto inputs = state_.tape().inputs();
  if (!prefetches_) {
    for (const ops::TensorId input : inputs) state_.add_input(input);
    return;
  }
  if (ahead_.empty()) ahead_ = fetch();
  std::vector<Slot> current = std::exchange(ahead_, fetch());
  state_.let_go(inputs);
  for (std::size_t at = 0; at < inputs.size(); ++at) state_.slot(inputs[at]) = current[at];
}

/// The images as bytes, the labels, and then the images in the type of the model; the bytes go.
GPUMEM_INLINE std::vector<Slot> BatchLoader::fetch() {
  constexpr std::uint8_t kStream = 1;
  const auto allocate = [&](std::int64_t bytes) {
    return state_.log().allocate(bytes, Category::input, kNoLayer, kStream);
  };
  const auto inputs = state_.tape().inputs();
  const std::size_t read = state_.forward_pass().model_inputs;
  std::vector<Slot> slots(inputs.size(), kNoSlot);
  std::vector<Slot> staged;
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    const core::DType type = state_.tape().tensor(inputs[at]).size.dtype;
    const bool image = at < read && type == state_.tape().dtype();
    const std::int64_t bytes = state_.bytes(inputs[at]);
    if (image) staged.push_back(allocate(bytes / core::element_size(type)));
    if (!image) slots[at] = allocate(bytes);
  }
  for (std::size_t at = 0; at < inputs.size(); ++at) {
    if (slots[at] == kNoSlot) slots[at] = allocate(state_.bytes(inputs[at]));
  }
  for (const Slot slot : staged) state_.log().drop(slot);
  return slots;
}

GPUMEM_INLINE void PipeBuffers::construct(const StageEnds& ends, const StagePart& part) {
  add(received_bytes(ends), Category::buffer);
  add(sent_bytes(part), Category::buffer);
}

GPUMEM_INLINE void PipeBuffers::receive(std::size_t number, const StageEnds& ends) {
  if (number >= received_.size()) received_.resize(number + 1, kNoSlot);
  received_[number] = add(received_bytes(ends), Category::input);
}

GPUMEM_INLINE void PipeBuffers::send_back(std::size_t number) {
  if (used_) state_.log().drop(std::exchange(received_[number], kNoSlot));
}

GPUMEM_INLINE std::int64_t PipeBuffers::received_bytes(const StageEnds& ends) {
  std::int64_t bytes = 0;
  for (const ops::TensorId input : ends.inputs) {
    if (state_.requires_grad(input)) bytes = core::bounded_sum({bytes, state_.bytes(input)});
  }
  return bytes;
}

/// All that the stand-in for the stage's loss reads; the last stage has a loss in its place, of one element.
GPUMEM_INLINE std::int64_t PipeBuffers::sent_bytes(const StagePart& part) {
  const model::ModelGraph& graph = state_.forward_pass().wired.graph();
  std::int64_t bytes = 0;
  for (const ops::Function& function : state_.tape().functions()) {
    const bool sends = function.output == part.loss && graph.op(graph.layers()[function.layer]) == ops::kSent;
    if (!sends) continue;
    for (const ops::TensorId input : state_.tape().list(function.inputs)) {
      bytes = core::bounded_sum({bytes, state_.bytes(input)});
    }
  }
  return bytes;
}

GPUMEM_INLINE void ForwardCalls::run(const ops::Function& function, bool recorded, Thread thread, Results* results) {
  const ops::Tape& tape = state_.tape();
  const bool keeps = keeps_anything(function, recorded, thread == Thread::backward);
  copies_.begin_call(function, keeps);
  weights_.bring(function, Direction::forward);
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
  const bool keeps = keeps_anything(function, recorded, true);
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

GPUMEM_INLINE void ForwardCalls::fetch_saved(const ops::Function& function) {
  for (const ops::TensorId saved : state_.tape().list(function.saved)) {
    const bool is_ahead = is_hooked(function) && !hooks_.ahead.empty() && !is_discarded(saved);
    if (on_host(function, saved) && !is_ahead) fetched_.push_back(state_.allocate(saved, Category::activation));
  }
}

/// What hooks take of the layers of a block, each tensor once.
GPUMEM_INLINE std::int64_t ForwardCalls::taken_of(const connect::Range& block) const {
  std::vector<ops::TensorId> taken;
  for (const ops::Function& function : state_.tape().functions()) {
    if (function.layer < block.first || function.layer >= block.end || !is_hooked(function)) continue;
    for (const ops::TensorId saved : state_.tape().list(function.saved)) {
      if (on_host(function, saved) && !is_discarded(saved)) taken.push_back(state_.tape().tensor(saved).storage);
    }
  }
  std::sort(taken.begin(), taken.end());
  taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
  std::int64_t bytes = 0;
  for (const ops::TensorId one : taken) bytes = core::bounded_sum({bytes, state_.bytes(one)});
  return bytes;
}

GPUMEM_INLINE void ForwardCalls::begin_step() {
  std::int64_t most = 0;
  for (const connect::Range& block : hooks_.ahead) most = std::max(most, taken_of(block));
  if (most > 0) ahead_ = state_.log().allocate(most, Category::activation, kNoLayer);
}

/// Tensors that need no gradient, such as dropout's masks, are leaves, which the hooks leave where they are.
GPUMEM_INLINE void ForwardCalls::keep_hooked(const ops::Function& function) {
  std::vector<Slot>& kept = kept_by_hooks_[index_of(function)];
  for (const ops::TensorId saved : state_.tape().list(function.saved)) {
    if (state_.is_parameter(saved) || on_host(function, saved) || state_.slot(saved) == kNoSlot) continue;
    state_.hold(saved);
    kept.push_back(state_.slot(saved));
  }
}

GPUMEM_INLINE void ForwardCalls::drop_hooked(const ops::Function& function) {
  for (const Slot slot : std::exchange(kept_by_hooks_[index_of(function)], {})) state_.log().drop(slot);
  copies_.drop_kept(function);
}

}  // namespace gpumem::plan
