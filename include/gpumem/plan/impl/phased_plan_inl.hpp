#pragma once

#include "gpumem/plan/phased_plan.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gpumem/core/bytes.hpp"

namespace gpumem::plan {

namespace phased_plan_detail {

constexpr bool is_of_batch(Category category) {
  return category == Category::input || category == Category::activation || category == Category::activation_gradient ||
         category == Category::temporary;
}

}  // namespace phased_plan_detail

GPUMEM_INLINE void keep_on_host(StepPlan& plan, double share) {
  if (share <= 0.0) return;
  for (Event& event : plan.events) {
    if (event.kind != Event::Kind::allocate || event.category != Category::optimizer) continue;
    event.bytes = static_cast<std::int64_t>(std::ceil(static_cast<double>(event.bytes) * (1.0 - share)));
  }
}

GPUMEM_INLINE PhaseWriter::PhaseWriter(PhasedPlan reused) {
  made_.plan.events = std::move(reused.plan.events);
  made_.plan.events.clear();
  made_.owner_of_slot = std::move(reused.owner_of_slot);
  made_.owner_of_slot.clear();
}

GPUMEM_INLINE PhaseWriter::Model PhaseWriter::add(StepPlan plan) {
  StepPlan& all = made_.plan;
  const auto number = static_cast<Model>(models_.size());
  Track track;
  track.first_slot = static_cast<std::uint32_t>(slots_.size());
  track.first_call = static_cast<std::uint32_t>(all.calls.size());
  slots_.resize(slots_.size() + plan.slots);
  made_.plan.cublas_workspace = std::max(made_.plan.cublas_workspace, plan.cublas_workspace);
  made_.owner_of_slot.resize(slots_.size(), number);
  const auto convolutions = static_cast<std::int32_t>(all.convolutions.size());
  for (LibraryCall call : plan.calls) {
    if (call.convolution >= 0) call.convolution += convolutions;
    all.calls.push_back(call);
  }
  all.convolutions.insert(all.convolutions.end(), plan.convolutions.begin(), plan.convolutions.end());
  track.plan = std::move(plan);
  models_.push_back(std::move(track));
  return number;
}

GPUMEM_INLINE void PhaseWriter::begin(std::string_view name) {
  const std::size_t at = made_.plan.events.size();
  if (!made_.phases.empty() && made_.phases.back().name == name) return;
  made_.phases.push_back({at, std::string(name)});
}

GPUMEM_INLINE void PhaseWriter::play(Model model, std::size_t first, std::size_t end, const Categories& kept) {
  const Track& track = models_[model];
  for (std::size_t at = first; at < std::min(end, track.plan.events.size()); ++at) {
    Event event = track.plan.events[at];
    event.layer = kNoLayer;  // layers of several models share numbers
    switch (event.kind) {
      case Event::Kind::allocate:
        if (!kept[static_cast<std::size_t>(event.category)]) break;
        take_slot(track.first_slot + event.slot, event);
        break;
      case Event::Kind::release: give_slot(track.first_slot + event.slot); break;
      case Event::Kind::call:
        event.call += track.first_call;
        made_.plan.events.push_back(event);
        break;
      case Event::Kind::empty_cache: empty_cache(); break;
    }
  }
}

GPUMEM_INLINE void PhaseWriter::play(Model model, std::size_t first, std::size_t end) {
  play(model, first, end, all_categories());
}

GPUMEM_INLINE void PhaseWriter::take_slot(std::uint32_t slot, const Event& event) {
  Event taken = event;
  taken.slot = slot;
  if (share_ < 1.0 && phased_plan_detail::is_of_batch(event.category)) {
    taken.bytes = static_cast<std::int64_t>(std::ceil(static_cast<double>(event.bytes) * share_));
  }
  if (slots_[slot].state == State::held) give_slot(slot);  // a name that a step leaves, bound again by the same step
  slots_[slot] = {taken.bytes, State::held, event.category, event.stream};
  made_.plan.events.push_back(taken);
  raise(taken.bytes);
}

GPUMEM_INLINE void PhaseWriter::give_slot(std::uint32_t slot) {
  Slot& given = slots_[slot];
  if (given.state == State::held) {
    made_.plan.events.push_back(
        {.slot = slot, .layer = kNoLayer, .kind = Event::Kind::release, .category = Category::temporary});
    live_ -= given.bytes;
  }
  given.state = State::empty;
}

/// Sums of several plans stay below 2^63 as long as each stays below kMostBytes.
GPUMEM_INLINE void PhaseWriter::raise(std::int64_t bytes) {
  live_ = core::bounded_sum({live_, bytes});
  made_.plan.peak_bytes = std::max(made_.plan.peak_bytes, live_);
}

GPUMEM_INLINE void PhaseWriter::set_aside(Model model, const Categories& which) {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const bool mine = made_.owner_of_slot[slot] == model && slots_[slot].state == State::held;
    if (!mine || !which[static_cast<std::size_t>(slots_[slot].category)]) continue;
    give_slot(slot);
    slots_[slot].state = State::aside;
  }
}

GPUMEM_INLINE void PhaseWriter::bring_back(Model model, const Categories& which) {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const Slot aside = slots_[slot];
    const bool mine = made_.owner_of_slot[slot] == model && aside.state == State::aside;
    if (!mine || !which[static_cast<std::size_t>(aside.category)]) continue;
    take_slot(slot, {.bytes = aside.bytes,
                     .layer = kNoLayer,
                     .kind = Event::Kind::allocate,
                     .category = aside.category,
                     .stream = aside.stream});
  }
}

GPUMEM_INLINE std::uint32_t PhaseWriter::allocate(Model model, std::int64_t bytes, Category category) {
  const auto slot = static_cast<std::uint32_t>(slots_.size());
  slots_.emplace_back();
  made_.owner_of_slot.push_back(model);
  take_slot(slot, {.bytes = bytes, .layer = kNoLayer, .kind = Event::Kind::allocate, .category = category});
  return slot;
}

GPUMEM_INLINE void PhaseWriter::release(std::uint32_t slot) { give_slot(slot); }

GPUMEM_INLINE void PhaseWriter::empty_cache() {
  made_.plan.events.push_back({.layer = kNoLayer, .kind = Event::Kind::empty_cache, .category = Category::temporary});
}

namespace phased_plan_detail {

/// How many tokens are played as one.
inline std::int64_t tokens_at_once(const GrowingCache& cache) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 19;
  const std::int64_t widest = std::max<std::int64_t>({cache.keys, cache.values, 1});
  return std::max<std::int64_t>(kBytes / widest, 1);
}

}  // namespace phased_plan_detail

GPUMEM_INLINE void grow_cache(PhaseWriter& writer, PhaseWriter::Model model, const GrowingCache& cache,
                              std::span<const std::int64_t> drawing) {
  std::vector<std::uint32_t> held;
  const auto longer = [&](std::size_t at, std::int64_t bytes) {
    const std::uint32_t slot = writer.allocate(model, bytes, Category::activation);
    if (at < held.size()) writer.release(std::exchange(held[at], slot));
    else held.push_back(slot);
  };
  const auto pass = [&](std::int64_t bytes) {
    if (bytes > 0) writer.release(writer.allocate(model, bytes, Category::temporary));
  };
  const std::int64_t last = core::bounded_sum({cache.prompt, cache.completion});
  const std::int64_t each = phased_plan_detail::tokens_at_once(cache);
  for (std::int64_t tokens = std::max<std::int64_t>(cache.prompt, 1);; tokens = std::min(tokens + each, last)) {
    for (std::int64_t layer = 0; layer < cache.layers; ++layer) {
      const auto at = static_cast<std::size_t>(2 * layer);
      longer(at, core::bounded_product({tokens, cache.keys}));
      longer(at + 1, core::bounded_product({tokens, cache.values}));
      pass(core::bounded_product({tokens, cache.read_keys}));
    }
    std::vector<std::uint32_t> drawn;
    for (const std::int64_t bytes : drawing) drawn.push_back(writer.allocate(model, bytes, Category::temporary));
    for (const std::uint32_t slot : drawn) writer.release(slot);
    if (tokens >= last) break;
  }
  for (const std::uint32_t slot : held) writer.release(slot);
}

GPUMEM_INLINE PhasedPlan PhaseWriter::take() && {
  made_.plan.slots = static_cast<std::uint32_t>(slots_.size());
  return std::move(made_);
}

}  // namespace gpumem::plan
