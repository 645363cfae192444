#pragma once

#include "gpumem/estimate/timeline.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "gpumem/estimate/estimator.hpp"
#include "gpumem/estimate/replay.hpp"

namespace gpumem::estimate {

namespace timeline_detail {

using analysis::AllocatorMoment;
using analysis::AllocatorObserver;
using analysis::kWorkspaceCategory;

GPUMEM_INLINE std::int64_t total_of(const ByCategory& held) {
  std::int64_t total = 0;
  for (const std::int64_t bytes : held) total += bytes;
  return total;
}

/// Watches the replay and keeps the points. Events are taken in runs of `stride`, which no phase mark, and not the
/// peak, lies within: of each run the highest point is kept, and the last.
class Watcher final : public AllocatorObserver {
 public:
  Watcher(const plan::StepPlan& plan, std::size_t peak_event, const TimelineOptions& options)
      : plan_(plan), peak_event_(peak_event), held_(plan_.slots) {
    const std::size_t runs = std::max<std::size_t>(options.most_points / 2, 1);
    // Below that every event has its own point.
    stride_ = plan_.events.size() <= options.most_points ? 1 : (plan_.events.size() + runs - 1) / runs;
  }

  void after(const AllocatorMoment& moment) override {
    const plan::Event& event = plan_.events[moment.event];
    begin_phases(moment.event);
    TimelinePoint point;
    point.event = moment.event;
    point.allocated = moment.allocated;
    point.reserved = moment.reserved;
    point.layer = static_cast<std::int32_t>(event.layer);
    switch (event.kind) {
      case plan::Event::Kind::allocate:
        point.category = static_cast<std::size_t>(event.category);
        point.bytes = moment.allocated[point.category] - before_[point.category];
        held_[event.slot] = {point.bytes, point.category, point.layer};
        break;
      case plan::Event::Kind::release: {
        const Held& held = held_[event.slot];
        point.category = held.category;
        point.bytes = -held.bytes;
        point.layer = held.layer;
        held_[event.slot] = {};
        break;
      }
      case plan::Event::Kind::call: take_workspace(moment, point); break;
      case plan::Event::Kind::empty_cache: break;
    }
    add(point);
    before_ = moment.allocated;
    if (moment.event == peak_event_) {
      take_holders(point, moment.for_a_moment);
      close_run();
    }
    if (++in_run_ >= stride_) close_run();
  }

  Timeline take() && {
    close_run();
    timeline_.events = plan_.events.size();
    return std::move(timeline_);
  }

 private:
  struct Held {
    std::int64_t bytes = 0;
    std::size_t category = 0;
    std::int32_t layer = -1;
  };

  void begin_phases(std::size_t event) {
    while (next_phase_ < plan_.phases.size() && plan_.phases[next_phase_].first_event <= event) {
      close_run();
      const plan::PhaseMark& mark = plan_.phases[next_phase_++];
      timeline_.phases.push_back({timeline_.points.size(), mark.phase, mark.step, mark.batch_size});
    }
  }

  /// A call may take memory for good (cuBLAS, the first time), and for its own length.
  void take_workspace(const AllocatorMoment& moment, TimelinePoint& point) {
    point.category = kWorkspaceCategory;
    const std::int64_t kept = moment.allocated[kWorkspaceCategory] - before_[kWorkspaceCategory];
    if (kept > 0) kept_workspace_.push_back({kept, kWorkspaceCategory, point.layer});
    point.bytes = kept;
    if (moment.for_a_moment == 0) return;
    TimelinePoint within = point;
    within.bytes = kept + moment.for_a_moment;
    within.allocated[kWorkspaceCategory] += moment.for_a_moment;
    add(within);
    point.bytes = -moment.for_a_moment;
  }

  void add(const TimelinePoint& point) {
    const std::int64_t total = total_of(point.allocated);
    if (!highest_ || total > highest_total_) {
      highest_ = point;
      highest_total_ = total;
      last_is_highest_ = true;
    } else {
      last_is_highest_ = false;
    }
    last_ = point;
  }

  void close_run() {
    in_run_ = 0;
    if (!highest_) return;
    keep(*highest_);
    if (!last_is_highest_) keep(last_);
    highest_.reset();
  }

  void keep(const TimelinePoint& point) {
    if (point.event == peak_event_ && total_of(point.allocated) > peak_total_) {
      peak_total_ = total_of(point.allocated);
      timeline_.peak_point = timeline_.points.size();
    }
    timeline_.points.push_back(point);
  }

  void take_holders(const TimelinePoint& point, std::int64_t for_a_moment) {
    std::map<std::int32_t, TimelineHolder> by_layer;
    const auto hold = [&](const Held& held) {
      TimelineHolder& holder = by_layer[held.layer];
      holder.layer = held.layer;
      holder.held[held.category] += held.bytes;
      holder.total += held.bytes;
    };
    for (const Held& held : held_) {
      if (held.bytes != 0) hold(held);
    }
    for (const Held& held : kept_workspace_) hold({held.bytes, held.category, -1});  // later calls share it
    if (for_a_moment > 0) hold({for_a_moment, kWorkspaceCategory, point.layer});
    for (const auto& [layer, holder] : by_layer) timeline_.holders.push_back(holder);
    std::stable_sort(timeline_.holders.begin(), timeline_.holders.end(),
                     [](const TimelineHolder& left, const TimelineHolder& right) { return left.total > right.total; });
  }

  const plan::StepPlan& plan_;
  std::size_t peak_event_;
  std::size_t stride_ = 1;
  std::vector<Held> held_;  ///< by slot
  std::vector<Held> kept_workspace_;
  ByCategory before_{};
  std::optional<TimelinePoint> highest_;  ///< of the current run
  std::int64_t highest_total_ = 0;
  TimelinePoint last_;
  bool last_is_highest_ = false;
  std::size_t in_run_ = 0;
  std::size_t next_phase_ = 0;
  std::int64_t peak_total_ = -1;
  Timeline timeline_;
};

/// Leaves the largest holders, and numbers the layers that are named: 0, 1, 2 ... in the order of the model.
GPUMEM_INLINE void name_layers(Timeline& timeline, const model::ModelGraph& graph, std::size_t most_holders) {
  while (timeline.holders.size() > most_holders) {
    timeline.held_by_others += timeline.holders.back().total;
    ++timeline.holders_left_out;
    timeline.holders.pop_back();
  }
  std::map<std::int32_t, std::int32_t> numbers;
  for (const TimelinePoint& point : timeline.points) numbers[point.layer] = -1;
  for (const TimelineHolder& holder : timeline.holders) numbers[holder.layer] = -1;
  for (auto& [layer, number] : numbers) {
    if (layer < 0) continue;
    number = static_cast<std::int32_t>(timeline.layers.size());
    const model::Layer& named = graph.layers()[static_cast<std::size_t>(layer)];
    timeline.layers.push_back({graph.path(named), std::string(graph.class_name(named))});
  }
  for (TimelinePoint& point : timeline.points) point.layer = numbers[point.layer];
  for (TimelineHolder& holder : timeline.holders) holder.layer = numbers[holder.layer];
}

}  // namespace timeline_detail

GPUMEM_INLINE core::Result<Timeline> make_timeline(const model::TrainingJob& job, const device::GpuProfile& gpu,
                                                   const TimelineOptions& options) {
  analysis::Analysis analysis(job);
  return make_timeline(analysis, gpu, options);
}

GPUMEM_INLINE core::Result<Timeline> make_timeline(analysis::Analysis& analysis, const device::GpuProfile& gpu,
                                                   const TimelineOptions& options) {
  const core::Status valid = model::validate(analysis.job());
  if (!valid) return valid.error();
  const auto failed = [&](core::Error error) { return std::move(error).in_file(analysis.job().graph->file()); };
  if (core::Status chosen = choose_rank(analysis, gpu, options.allocator); !chosen) return failed(chosen.error());
  core::Result<MemoryEstimate> estimate = allocator_estimate(analysis, gpu, options.allocator);
  if (!estimate) return failed(estimate.error());
  judge(*estimate, *analysis.job().graph, gpu.capacity());
  const core::Result<analysis::JobRun> of_job = analysis.run(gpu, options.allocator);
  if (!of_job) return failed(of_job.error());
  const auto steps = analysis.steps();
  if (!steps) return failed(steps.error());
  const auto source = analysis.source();
  if (!source) return failed(source.error());

  // Once more, now that it is known where the peak is.
  const analysis::AllocatorRun& run = of_job->run;
  timeline_detail::Watcher watcher(**steps, run.peak_event, options);
  (void)analysis::run_allocator(**steps, gpu, of_job->options, &watcher);
  Timeline timeline = std::move(watcher).take();
  timeline_detail::name_layers(timeline, *source->graph, options.most_holders);
  timeline.context = of_job->beside().expected;
  timeline.capacity = gpu.capacity();
  timeline.peak_allocated = core::Bytes(run.peak_allocated);
  timeline.peak_reserved = core::Bytes(run.peak_reserved);
  timeline.verdict = estimate->verdict;
  timeline.most_needed = estimate->most_needed;
  timeline.upper_uncut = estimate->upper_uncut;
  if (estimate->peak_layer) timeline.peak_text = estimate->peak_layer->text;
  timeline.retries = run.retries;
  return timeline;
}

}  // namespace gpumem::estimate
