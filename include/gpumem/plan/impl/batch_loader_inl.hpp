#pragma once

#include "gpumem/plan/batch_loader.hpp"

#include <span>
#include <utility>

namespace gpumem::plan {

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

}  // namespace gpumem::plan
