// Input: what the parts of a training run allocate, hold and release, in order.
// Output: the events of a StepPlan, and who still holds a slot.
// Units: bytes.
#pragma once

#include <algorithm>
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
  /// Uses the memory of a plan that is no longer needed, with room for this many events and calls.
  EventLog(StepPlan reused, std::size_t events, std::size_t calls) : plan_(std::move(reused)) {
    plan_.calls.clear();
    plan_.calls.reserve(calls);
    plan_.phases.clear();
    plan_.slots = 0;
    plan_.events.clear();
    plan_.events.reserve(events);
  }

  /// Memory with one holder.
  Slot allocate(std::int64_t bytes, Category category, std::uint32_t layer, std::uint8_t stream = 0) {
    Slot slot = last_free_;
    if (slot == kNoSlot) {
      slot = plan_.slots++;
      held_.push_back({bytes, 1});
    } else {
      last_free_ = held_[slot].holders;
      held_[slot] = {bytes, 1};
    }
    live_ += static_cast<std::uint64_t>(bytes);
    peak_ = std::max(peak_, live_);
    plan_.events.push_back({.bytes = bytes,
                            .slot = slot,
                            .layer = layer,
                            .kind = Event::Kind::allocate,
                            .category = category,
                            .stream = stream});
    return slot;
  }
  /// One holder more.
  void hold(Slot slot) { ++held_[slot].holders; }
  /// One holder less; says whether it was the last. Does nothing for kNoSlot.
  bool drop(Slot slot) {
    if (slot == kNoSlot || --held_[slot].holders != 0) return false;
    live_ -= static_cast<std::uint64_t>(held_[slot].bytes);
    plan_.events.push_back(
        {.slot = slot, .layer = kNoLayer, .kind = Event::Kind::release, .category = Category::temporary});
    held_[slot].holders = last_free_;
    last_free_ = slot;
    return true;
  }
  [[nodiscard]] bool has_one_holder(Slot slot) const { return held_[slot].holders == 1; }

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

  [[nodiscard]] StepPlan take() {
    plan_.peak_bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(peak_, INT64_MAX));
    return std::move(plan_);
  }

 private:
  struct Held {
    std::int64_t bytes = 0;
    std::uint32_t holders = 0;  ///< of a free slot: the one that became free before it
  };

  StepPlan plan_;
  std::vector<Held> held_;    ///< by slot
  Slot last_free_ = kNoSlot;  ///< the next one to be used
  std::uint64_t live_ = 0;    ///< may wrap, but only where the peak is beyond 2^63 already
  std::uint64_t peak_ = 0;
};

}  // namespace gpumem::plan
