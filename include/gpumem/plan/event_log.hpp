// Enters: what the parts of a training run allocate, hold and let go, in order. Leaves: the events of a StepPlan, and
// who still holds a slot. Units: bytes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gpumem/plan/step_plan.hpp"

namespace gpumem::plan {

using Slot = std::uint32_t;
inline constexpr Slot kNoSlot = UINT32_MAX;

/// Writes events. Memory has holders: names, autograd's saved tensors, gradients on their way. It is released when the
/// last holder lets go, and its slot is used again.
class EventLog {
 public:
  /// Uses the memory of a plan that is no longer needed, with room for so many events and calls.
  EventLog(StepPlan reused, std::size_t events, std::size_t calls) : plan_(std::move(reused)) {
    plan_.calls.clear();
    plan_.calls.reserve(calls);
    plan_.phases.clear();
    plan_.slots = 0;
    plan_.events.clear();
    plan_.events.reserve(events);
  }

  /// Memory with one holder.
  Slot allocate(std::int64_t bytes, Category category, std::uint32_t layer) {
    Slot slot = last_free_;
    if (slot == kNoSlot) {
      slot = plan_.slots++;
      holders_.push_back(1);
    } else {
      last_free_ = holders_[slot];
      holders_[slot] = 1;
    }
    plan_.events.push_back(
        {.bytes = bytes, .slot = slot, .layer = layer, .kind = Event::Kind::allocate, .category = category});
    return slot;
  }
  /// One holder more.
  void hold(Slot slot) { ++holders_[slot]; }
  /// One holder less; says whether it was the last. Does nothing for kNoSlot.
  bool drop(Slot slot) {
    if (slot == kNoSlot || --holders_[slot] != 0) return false;
    plan_.events.push_back(
        {.slot = slot, .layer = kNoLayer, .kind = Event::Kind::release, .category = Category::temporary});
    holders_[slot] = last_free_;
    last_free_ = slot;
    return true;
  }
  [[nodiscard]] bool has_one_holder(Slot slot) const { return holders_[slot] == 1; }

  void call(const LibraryCall& call, std::uint32_t layer) {
    plan_.events.push_back({.layer = layer,
                            .call = static_cast<std::uint32_t>(plan_.calls.size()),
                            .kind = Event::Kind::call,
                            .category = Category::temporary});
    plan_.calls.push_back(call);
  }
  /// A phase begins with the next event.
  void begin(Phase phase, std::int32_t step, std::int64_t batch_size) {
    plan_.phases.push_back({plan_.events.size(), phase, step, batch_size});
  }

  [[nodiscard]] StepPlan take() { return std::move(plan_); }

 private:
  StepPlan plan_;
  std::vector<std::uint32_t> holders_;  ///< by slot; of a free one, the slot that became free before it
  Slot last_free_ = kNoSlot;            ///< the next one to be used
};

}  // namespace gpumem::plan
