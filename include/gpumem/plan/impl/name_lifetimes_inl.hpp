#pragma once

#include "gpumem/plan/name_lifetimes.hpp"

namespace gpumem::plan {

namespace name_lifetimes_detail {

/// By tensor: the last function that makes or reads it; -1: its name stays.
GPUMEM_INLINE std::vector<std::int32_t> last_uses(const ForwardPass& pass, std::span<const ops::TensorId> held) {
  const ops::Tape& tape = pass.tape;
  const auto functions = tape.functions();
  std::vector<std::int32_t> last(tape.tensors().size(), -1);
  for (std::size_t index = 0; index < functions.size(); ++index) {
    const auto at = static_cast<std::int32_t>(index);
    last[static_cast<std::size_t>(functions[index].output)] = at;
    for (const ops::TensorId input : tape.list(functions[index].inputs)) last[static_cast<std::size_t>(input)] = at;
  }
  const auto stays = [&](ops::TensorId id) { last[static_cast<std::size_t>(id)] = -1; };
  for (const ops::TensorId id : held) stays(id);
  for (const ops::TensorId input : tape.inputs()) stays(input);
  for (const ops::TensorId buffer : tape.buffers()) stays(buffer);
  for (const ops::Tape::Parameter& parameter : tape.parameters()) stays(parameter.tensor);
  return last;
}

}  // namespace name_lifetimes_detail

GPUMEM_INLINE NameLifetimes::NameLifetimes(const ForwardPass& pass, std::span<const ops::TensorId> held) {
  const std::vector<std::int32_t> last = name_lifetimes_detail::last_uses(pass, held);
  first_of_.assign(pass.tape.functions().size() + 1, 0);
  for (const std::int32_t at : last) {
    if (at >= 0) ++first_of_[static_cast<std::size_t>(at) + 1];
  }
  for (std::size_t index = 1; index < first_of_.size(); ++index) first_of_[index] += first_of_[index - 1];
  ending_.resize(first_of_.back());
  std::vector<std::uint32_t> next(first_of_.begin(), first_of_.end() - 1);
  for (std::size_t id = 0; id < last.size(); ++id) {
    if (last[id] >= 0) ending_[next[static_cast<std::size_t>(last[id])]++] = static_cast<ops::TensorId>(id);
  }
}

}  // namespace gpumem::plan
