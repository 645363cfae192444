#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/estimate/fake_tensor.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::estimate {

namespace fake_tensor_detail {

using LiveBytes = std::array<std::int64_t, plan::kCategories>;

/// The most that is live in a run of events.
struct Peak {
  std::int64_t bytes = 0;
  LiveBytes by_category{};
};

/// Counts live bytes over a plan, and keeps the peak of one step. Nothing: a sum does not fit 64 bits.
GPUMEM_INLINE std::optional<Peak> peak_of(const plan::StepPlan& plan, std::int32_t step) {
  struct Held {
    std::int64_t bytes = 0;
    plan::Category category = plan::Category::activation;
  };
  std::vector<Held> held(plan.slots);
  LiveBytes live{};
  std::int64_t total = 0;
  Peak peak;
  std::size_t phase = 0;
  for (std::size_t index = 0; index < plan.events.size(); ++index) {
    while (phase + 1 < plan.phases.size() && plan.phases[phase + 1].first_event <= index) ++phase;
    const plan::Event& event = plan.events[index];
    if (event.kind == plan::Event::Kind::call) continue;
    Held& slot = held[event.slot];
    if (event.kind == plan::Event::Kind::release) {
      total -= slot.bytes;
      live[static_cast<std::size_t>(slot.category)] -= slot.bytes;
      continue;
    }
    slot = {event.bytes, event.category};
    if (__builtin_add_overflow(total, event.bytes, &total)) return std::nullopt;
    live[static_cast<std::size_t>(event.category)] += event.bytes;
    if (plan.phases[phase].step == step && total > peak.bytes) peak = {total, live};
  }
  return peak;
}

GPUMEM_INLINE Breakdown breakdown_of(const LiveBytes& live) {
  const auto of = [&](plan::Category category) { return live[static_cast<std::size_t>(category)]; };
  using plan::Category;
  Breakdown parts;
  parts.parameters = core::Bytes(of(Category::parameter) + of(Category::buffer));
  parts.gradients = core::Bytes(of(Category::gradient));
  parts.optimizer = core::Bytes(of(Category::optimizer));
  parts.activations = core::Bytes(of(Category::activation) + of(Category::activation_gradient) + of(Category::input) +
                                  of(Category::temporary));
  return parts;
}

GPUMEM_INLINE core::Status add_coverage(analysis::Analysis& analysis, Coverage& coverage) {
  if (analysis.job().graph->recording() != nullptr) {
    coverage.edges = "recorded";
    return core::Done{};
  }
  const auto wired = analysis.adapted();
  if (!wired) return wired.error();
  const auto pass = analysis.forward_pass(ops::Backend::cpu);
  if (!pass) return pass.error();
  coverage.edges = (*wired)->edges();
  coverage.layers_unknown = analysis.job().graph->unknown_layers() + (*pass)->skipped_layers;
  return core::Done{};
}

}  // namespace fake_tensor_detail

GPUMEM_INLINE core::Result<MemoryEstimate> FakeTensor::do_estimate(analysis::Analysis& analysis,
                                                                   const device::GpuProfile&) const {
  const bool first = step_ == Step::forward_backward;
  const auto which = first ? analysis::Steps::without_optimizer : analysis::Steps::whole;
  const bool recorded = analysis.job().graph->recording() != nullptr;
  const auto steps = analysis.steps(recorded ? ops::Backend::cuda : ops::Backend::cpu, which);
  if (!steps) return steps.error();
  const auto peak = fake_tensor_detail::peak_of(**steps, first ? 1 : 2);
  if (!peak) {
    return core::Error{core::ErrorCode::overflow,
                       "the live tensors at batch " + std::to_string(analysis.job().batch_size) + " do not fit 64 bits",
                       {}};
  }
  MemoryEstimate estimate;
  const core::Status covered = fake_tensor_detail::add_coverage(analysis, estimate.coverage);
  if (!covered) return covered.error();
  estimate.expected = core::Bytes(peak->bytes);
  estimate.lower = estimate.expected;
  estimate.upper = estimate.expected;
  estimate.allocated = estimate.expected;
  estimate.breakdown = fake_tensor_detail::breakdown_of(peak->by_category);
  return estimate;
}

}  // namespace gpumem::estimate
