// Step plans as text: one word an event, "+64 relu activation", and how much is live.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/connect/connect.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::testing {

/// A job of the graph with these inputs and nodes in JSON: plain SGD, so that what a test sees is forward and backward.
inline TrainingJob job_of(std::string_view inputs, std::string_view nodes, std::int64_t batch_size) {
  const auto graph = parse_summary(R"({"format": "gpumem-graph", "version": 1, "inputs": [)" + std::string(inputs) +
                                   R"(], "nodes": [)" + std::string(nodes) + "]}");
  EXPECT_TRUE(succeeds(graph));
  TrainingJob job(graph ? *graph : ModelGraph(), batch_size);
  job.optimizer = Optimizer::sgd;
  return job;
}

struct Planned {
  plan::ForwardPass pass{.wired = connect::WiredGraph({std::make_shared<const ModelGraph>(), {}, {}, {}})};
  plan::StepPlan plan;
};

inline Result<plan::ForwardPass> forward(const TrainingJob& job, ops::Backend backend = ops::Backend::cuda) {
  const auto wired = connect::connect(job, ops::catalogue());
  if (!wired) return wired.error();
  return plan::make_forward_pass(*wired, job, ops::catalogue(), backend);
}

inline Planned planned(const TrainingJob& job, ops::Backend backend = ops::Backend::cuda) {
  auto pass = forward(job, backend);
  EXPECT_TRUE(succeeds(pass));
  if (!pass) return Planned();
  auto plan = plan::make_step_plan(job, *pass);
  EXPECT_TRUE(succeeds(plan));
  if (!plan) return Planned();
  return {*std::move(pass), *std::move(plan)};
}

inline std::string_view name_of(plan::Category category) {
  static constexpr std::array<std::string_view, plan::kCategories> kNames = {
      "parameter", "buffer",    "input",     "activation", "flow",
      "gradient",  "optimizer", "temporary", "gathered",   "communication"};
  return kNames[static_cast<std::size_t>(category)];
}

/// The bytes that are live while a plan's events go by.
class Live {
 public:
  explicit Live(const plan::StepPlan& plan) : held_(plan.slots) {}

  void apply(const plan::Event& event) {
    if (event.kind == plan::Event::Kind::call) return;
    plan::Event& held = held_[event.slot];
    const bool allocates = event.kind == plan::Event::Kind::allocate;
    const std::int64_t change = allocates ? event.bytes : -held.bytes;
    if (allocates) held = event;
    total_ += change;
    by_category_[static_cast<std::size_t>(held.category)] += change;
  }
  [[nodiscard]] const plan::Event& held(std::uint32_t slot) const { return held_[slot]; }
  [[nodiscard]] std::int64_t total() const { return total_; }
  [[nodiscard]] std::int64_t of(plan::Category category) const {
    return by_category_[static_cast<std::size_t>(category)];
  }

 private:
  std::vector<plan::Event> held_;
  std::array<std::int64_t, plan::kCategories> by_category_{};
  std::int64_t total_ = 0;
};

/// The events of a phase, the n-th time that it comes: "+64 relu activation", "-64 relu activation".
inline std::vector<std::string> events(const TrainingJob& job, const plan::StepPlan& plan, plan::Phase phase,
                                       std::int32_t step = 1, std::size_t pass = 0) {
  std::vector<std::string> all;
  Live live(plan);
  std::size_t mark = 0;
  std::size_t seen = 0;
  bool within = false;
  for (std::size_t index = 0; index < plan.events.size(); ++index) {
    for (; mark < plan.phases.size() && plan.phases[mark].first_event <= index; ++mark) {
      const bool wanted = plan.phases[mark].phase == phase && plan.phases[mark].step == step;
      within = wanted && seen++ == pass;
    }
    const plan::Event& event = plan.events[index];
    const bool allocates = event.kind == plan::Event::Kind::allocate;
    if (allocates) live.apply(event);
    if (within && event.kind != plan::Event::Kind::call) {
      const plan::Event& held = live.held(event.slot);
      const std::string layer(held.layer == plan::kNoLayer ? "" : job.graph->name(job.graph->layers()[held.layer]));
      all.push_back((allocates ? "+" : "-") + std::to_string(held.bytes) + (layer.empty() ? "" : " ") + layer + " " +
                    std::string(name_of(held.category)));
    }
    if (!allocates) live.apply(event);
  }
  return all;
}

/// The most that is live in a step, and what is left after it.
struct StepBytes {
  std::int64_t peak = 0;
  std::int64_t left = 0;
};
inline StepBytes bytes_of(const plan::StepPlan& plan, std::int32_t step) {
  StepBytes result;
  Live live(plan);
  std::size_t mark = 0;
  for (std::size_t index = 0; index < plan.events.size(); ++index) {
    while (mark < plan.phases.size() && plan.phases[mark].first_event <= index) ++mark;
    live.apply(plan.events[index]);
    if (mark == 0 || plan.phases[mark - 1].step != step) continue;
    result.peak = std::max(result.peak, live.total());
    result.left = live.total();
  }
  return result;
}

}  // namespace gpumem::testing
