#pragma once

#include "gpumem/plan/recomputation.hpp"

#include <algorithm>

namespace gpumem::plan {

GPUMEM_INLINE Recomputation::Recomputation(RunState& state, ForwardCalls& calls, const NameLifetimes& names,
                                           std::span<const Range> blocks, const model::TrainingJob& job)
    : state_(state), calls_(calls), names_(names) {
  if (blocks.empty()) return;
  block_at_.assign(state.tape().functions().size(), kNoBlock);
  const std::vector<std::uint32_t> name_ends = find_makers();
  for (const Range& run : blocks) find_block(run, name_ends);
  for (Block& block : blocks_) block.kept = kept_of_part(state.tape(), block.run, job);
  results_ = nothing_held().results;
}

GPUMEM_INLINE Recomputation::MicroBatch Recomputation::nothing_held() const {
  MicroBatch begun{state_.nothing_held(), {}};
  for (const Block& block : blocks_) begun.results.emplace_back(block.kept.size());
  return begun;
}

/// Sets `maker_of_`. Returns, for each tensor, the function after which its name ends.
GPUMEM_INLINE std::vector<std::uint32_t> Recomputation::find_makers() {
  const auto functions = state_.tape().functions();
  maker_of_.assign(state_.tape().tensors().size(), kNoFunction);
  std::vector<std::uint32_t> name_ends(state_.tape().tensors().size(), kNoFunction);
  for (std::uint32_t index = 0; index < functions.size(); ++index) {
    maker_of_[static_cast<std::size_t>(functions[index].output)] = index;
    for (const ops::TensorId id : names_.ending_at(index)) name_ends[static_cast<std::size_t>(id)] = index;
  }
  return name_ends;
}

GPUMEM_INLINE void Recomputation::find_block(const Range& run, const std::vector<std::uint32_t>& name_ends) {
  const ops::Tape& tape = state_.tape();
  Block block;
  block.run = run;
  block.last_saver = run.first;
  bool any_saver = false;
  for (std::uint32_t index = run.first; index < run.end; ++index) {
    const ops::Function& function = tape.functions()[index];
    if (saves(function)) {
      block.last_saver = index;
      any_saver = true;
    }
    if (name_ends[static_cast<std::size_t>(function.output)] >= run.end) block.outputs.push_back(function.output);
    for (const ops::TensorId input : tape.list(function.inputs)) {
      const bool known = std::find(block.inputs.begin(), block.inputs.end(), input) != block.inputs.end();
      if (!known && !made_in(run, input) && !is_constant(input)) block.inputs.push_back(input);
    }
  }
  if (!any_saver) return;  // nothing in it is trained
  for (std::uint32_t index = run.first; index < run.end; ++index) {
    block_at_[index] = static_cast<std::uint32_t>(blocks_.size());
  }
  blocks_.push_back(std::move(block));
}

GPUMEM_INLINE bool Recomputation::saves(const ops::Function& function) const {
  return state_.requires_grad(function.output) && (function.saved.count > 0 || function.parameters.count > 0);
}

GPUMEM_INLINE bool Recomputation::makes_what_it_saves(const ops::Function& function) const {
  if (function.extras.count > 0) return true;
  const auto saved = state_.tape().list(function.saved);
  return std::find(saved.begin(), saved.end(), function.output) != saved.end();
}

GPUMEM_INLINE bool Recomputation::made_in(const Range& run, ops::TensorId id) const {
  const std::uint32_t maker = maker_of_[static_cast<std::size_t>(id)];
  return maker != kNoFunction && maker >= run.first && maker < run.end;
}

/// Parameters and buffers are held anyway.
GPUMEM_INLINE bool Recomputation::is_constant(ops::TensorId id) const {
  const auto buffers = state_.tape().buffers();
  return state_.is_parameter(id) || std::binary_search(buffers.begin(), buffers.end(), id);
}

GPUMEM_INLINE void Recomputation::hold_inputs(Block& block) {
  ++block.held;
  for (const ops::TensorId input : block.inputs) {
    if (!calls_.on_host(input)) state_.hold(input);
  }
}

/// `upto`: the function whose backward asks. What stands behind it in the block has had its backward.
GPUMEM_INLINE void Recomputation::run_again(Block& block, std::uint32_t upto) {
  block.recomputed = true;
  const ops::Tape& tape = state_.tape();
  forget_names(block);
  fetch_inputs(block);
  const auto functions = tape.functions();
  for (std::uint32_t index = block.run.first; index < block.run.end; ++index) {
    put_aside(block, functions[index].output);
    for (const ops::TensorId extra : tape.list(functions[index].extras)) put_aside(block, extra);
  }
  const bool runs_last = makes_what_it_saves(functions[block.last_saver]);
  const std::uint32_t end = block.last_saver + (runs_last ? 1U : 0U);
  for (std::uint32_t index = block.run.first; index < end; ++index) {
    const bool still_asked = index <= upto;
    call_again(block, index, still_asked);
    end_names(block, index, end);
  }
  if (!runs_last && block.last_saver <= upto) calls_.keep_inputs(functions[block.last_saver]);
  for (std::uint32_t index = end; index < block.run.end; ++index) end_names(block, index, end);
  for (const ops::TensorId output : block.outputs) {
    if (maker_of_[static_cast<std::size_t>(output)] < end) state_.let_go(output);
  }
  calls_.end_autocast();
}

/// Names of the second run that end here: only of what it has made.
GPUMEM_INLINE void Recomputation::end_names(const Block& block, std::uint32_t function, std::uint32_t end) {
  for (const ops::TensorId id : names_.ending_at(function)) {
    if (made_in(block.run, id) && maker_of_[static_cast<std::size_t>(id)] < end) state_.let_go(id);
  }
}

GPUMEM_INLINE ForwardCalls::Results* Recomputation::results_in(const Block& block, std::size_t function) {
  const auto found = std::lower_bound(block.kept.begin(), block.kept.end(), function);
  if (found == block.kept.end() || *found != function) return nullptr;
  return &results_of_block(block)[static_cast<std::size_t>(found - block.kept.begin())];
}

GPUMEM_INLINE ForwardCalls::Results* Recomputation::results_of(std::size_t function) {
  const Block* block = block_of(function);
  return block == nullptr ? nullptr : results_in(*block, function);
}

/// The arguments come back from the host; one that others hold here is not copied again.
GPUMEM_INLINE void Recomputation::fetch_inputs(Block& block) {
  for (const ops::TensorId input : block.inputs) {
    if (!calls_.on_host(input)) continue;
    if (state_.slot(input) == kNoSlot) {
      state_.add(input, Category::activation);
    } else {
      state_.hold(input);
    }
  }
  block.fetched = true;
}

/// For results that are kept: their names have ended, unless the block returns them.
GPUMEM_INLINE void Recomputation::forget_names(Block& block) {
  const ops::Tape& tape = state_.tape();
  for (const std::uint32_t index : block.kept) {
    const ops::Function& function = tape.functions()[index];
    const bool handed_out =
        std::find(block.outputs.begin(), block.outputs.end(), function.output) != block.outputs.end();
    if (!handed_out) state_.slot(function.output) = kNoSlot;
    for (const ops::TensorId extra : tape.list(function.extras)) state_.slot(extra) = kNoSlot;
  }
}

GPUMEM_INLINE void Recomputation::call_again(Block& block, std::uint32_t function, bool recorded) {
  const ops::Function& called = state_.tape().functions()[function];
  ForwardCalls::Results* results = results_in(block, function);
  if (results != nullptr && !results->empty()) return calls_.take(called, recorded, *results);
  calls_.run(called, recorded, Thread::backward);
}

GPUMEM_INLINE void Recomputation::put_aside(Block& block, ops::TensorId id) {
  Slot& slot = state_.slot(id);
  if (!state_.owns_its_memory(id) || slot == kNoSlot) return;
  block.first_run.emplace_back(id, slot);
  slot = kNoSlot;
}

GPUMEM_INLINE void Recomputation::end(Block& block) {
  for (const auto& [id, slot] : block.first_run) state_.slot(id) = slot;
  block.first_run.clear();
  // Of calls after the last one that backward asks for.
  for (ForwardCalls::Results& results : results_of_block(block)) {
    for (const Slot slot : results) state_.log().drop(slot);
    results.clear();
  }
  for (const ops::TensorId input : block.inputs) {
    const bool here = block.held > 0 && (!calls_.on_host(input) || block.fetched);
    if (here) state_.let_go(input);
  }
  block.fetched = false;
  if (block.held > 0) --block.held;
  block.recomputed = false;
}

}  // namespace gpumem::plan
