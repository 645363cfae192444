#pragma once

#include "gpumem/parallel/pipeline_parallel.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "gpumem/core/config.hpp"

namespace gpumem::parallel {

namespace schedule_detail {

/// The rank's passes in one direction, in order. `ranks`: the size of a group.
GPUMEM_INLINE std::vector<StagePass> passes_of(std::int64_t ranks, std::int64_t stages, std::int64_t micro_batches,
                                               bool backward) {
  std::vector<StagePass> passes;
  for (std::int64_t first = 0; first < micro_batches; first += ranks) {
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      for (std::int64_t at = first; at < std::min(first + ranks, micro_batches); ++at) {
        const std::int64_t which = backward ? stages - 1 - stage : stage;
        passes.push_back({backward, static_cast<std::uint32_t>(which), static_cast<std::uint32_t>(at)});
      }
    }
  }
  return passes;
}

/// How many forward passes come before the first backward pass, not counting the one that belongs to it.
GPUMEM_INLINE std::int64_t ahead(const model::Layout& layout, std::int64_t rank, std::int64_t group) {
  const std::int64_t behind = layout.pipeline_parallel - 1 - rank;
  if (layout.schedule == model::Schedule::zero_bubble) return behind + (layout.virtual_stages - 1) * group;
  if (layout.virtual_stages == 1) return behind;
  return behind * 2 + (layout.virtual_stages - 1) * group;
}

/// Micro-batches that differ in memory: in the steady state gradients are held, and one more micro-batch runs.
GPUMEM_INLINE std::int64_t distinct(const model::Layout& layout, std::int64_t rank, std::int64_t micro_batches,
                                    std::int64_t group) {
  if (model::keeps_all(layout.schedule)) return micro_batches;
  if (model::is_v_shaped(layout.schedule)) return std::min(micro_batches, 2 * layout.pipeline_parallel + 2);
  if (layout.virtual_stages > 1) return std::min(micro_batches, 2 * group);
  const bool waits = layout.schedule == model::Schedule::zero_bubble;  // weights' gradients, for `rank` passes
  return std::min(micro_batches, layout.pipeline_parallel - (waits ? 0 : rank) + 2);
}

/// A rank's order as it is written, which counts the micro-batches of each stage by itself.
class Order {
 public:
  void forward(std::uint32_t stage) { passes_.push_back({false, stage, forwards_[stage]++}); }
  void backward(std::uint32_t stage, Gradients gradients) {
    passes_.push_back({true, stage, backwards_[stage]++, gradients});
    if (gradients == Gradients::inputs) waiting_.push_back(passes_.back());
  }
  /// The gradients of weights that have waited longest; nothing where none wait.
  void weights() {
    if (waited_ == waiting_.size()) return;
    StagePass pass = waiting_[waited_++];
    pass.gradients = Gradients::weights;
    passes_.push_back(pass);
  }
  /// Of one stage.
  void weights_of(std::uint32_t stage, std::uint32_t micro_batch) {
    passes_.push_back({true, stage, micro_batch, Gradients::weights});
  }
  [[nodiscard]] std::uint32_t forwards(std::uint32_t stage) const { return forwards_[stage]; }
  [[nodiscard]] std::uint32_t backwards(std::uint32_t stage) const { return backwards_[stage]; }
  [[nodiscard]] std::vector<StagePass> take() { return std::move(passes_); }

 private:
  std::vector<StagePass> passes_;
  std::vector<StagePass> waiting_;  ///< whose weights' gradients are to come
  std::size_t waited_ = 0;
  std::array<std::uint32_t, 2> forwards_ = {};
  std::array<std::uint32_t, 2> backwards_ = {};
};

/// ScheduleZBVZeroBubble._calculate_single_rank_operations(): stage 1 is the one nearer to the end.
GPUMEM_INLINE std::vector<StagePass> zero_bubble_v(std::int64_t ranks, std::int64_t rank, std::int64_t micro_batches) {
  const auto most = static_cast<std::uint32_t>(std::max(2 * ranks - 1, micro_batches));
  Order order;
  const auto both = [&](std::uint32_t stage) {
    const std::uint32_t micro_batch = order.backwards(stage);
    order.backward(stage, Gradients::inputs);
    order.weights_of(stage, micro_batch);
  };
  for (std::int64_t at = 0; at < 2 * (ranks - rank) - 1; ++at) order.forward(0);
  for (std::int64_t at = 0; at < rank; ++at) {
    order.forward(1);
    order.forward(0);
  }
  for (std::int64_t at = 0; at < ranks - rank; ++at) {
    order.forward(1);
    both(1);
  }
  while (order.forwards(1) < order.forwards(0) || order.forwards(0) < most) {
    if (order.forwards(0) < most) order.forward(0);
    both(0);
    order.forward(1);
    both(1);
  }
  std::array<std::uint32_t, 2> weights = {order.backwards(0), order.backwards(1)};
  for (std::int64_t at = 0; at < rank; ++at) {
    order.backward(0, Gradients::inputs);
    order.backward(1, Gradients::inputs);
  }
  for (std::int64_t at = 0; at < ranks - rank; ++at) {
    order.backward(0, Gradients::inputs);
    order.weights_of(0, weights[0]++);
  }
  while (weights[1] < order.backwards(1)) order.weights_of(1, weights[1]++);
  while (weights[0] < order.backwards(0)) order.weights_of(0, weights[0]++);
  std::vector<StagePass> passes = order.take();
  std::erase_if(passes, [&](const StagePass& pass) { return pass.micro_batch >= micro_batches; });
  return passes;
}

/// ScheduleDualPipeV._calculate_single_rank_operations(), whose steps these are. Where forward and backward run side by
/// side, forward comes first.
GPUMEM_INLINE std::vector<StagePass> dual_pipe_v(std::int64_t ranks, std::int64_t rank, std::int64_t micro_batches) {
  Order order;
  const std::int64_t behind = ranks - rank - 1;
  const auto beside = [&](std::uint32_t forward, std::uint32_t backward) {
    order.forward(forward);
    order.backward(backward, Gradients::all);
  };
  for (std::int64_t at = 0; at < 2 * behind; ++at) order.forward(0);
  for (std::int64_t at = 0; at <= rank; ++at) {
    order.forward(0);
    order.forward(1);
  }
  for (std::int64_t at = 0; at < behind; ++at) {
    order.backward(1, Gradients::inputs);
    order.weights();
    order.forward(1);
  }
  for (std::int64_t at = 0; at < micro_batches - 2 * ranks + rank + 1; ++at) {
    beside(0, 1);
    beside(1, 0);
  }
  for (std::int64_t at = 0; at < behind; ++at) {
    order.backward(1, Gradients::all);
    beside(1, 0);
  }
  Gradients made = Gradients::all;
  for (std::int64_t at = 0; at <= rank; ++at) {
    const bool half = at == (rank + 1) / 2;
    if (half && rank % 2 == 1) made = Gradients::inputs;
    order.backward(1, made);
    if (half && rank % 2 == 0) made = Gradients::inputs;
    order.backward(0, made);
  }
  for (std::int64_t at = 0; at < behind; ++at) {
    order.weights();
    order.backward(0, made);
  }
  for (std::int64_t at = 0; at <= rank; ++at) order.weights();
  return order.take();
}

/// What makes the gradients of weights apart: `rank` backward passes later, and, behind the last one, in order.
GPUMEM_INLINE std::vector<StagePass> apart(std::vector<StagePass> passes, std::int64_t rank) {
  std::vector<StagePass> order;
  std::vector<StagePass> backward;
  std::size_t next = 0;
  const auto weights = [&] {
    StagePass pass = backward[next++];
    pass.gradients = Gradients::weights;
    order.push_back(pass);
  };
  for (StagePass& pass : passes) {
    if (pass.backward) pass.gradients = Gradients::inputs;
    order.push_back(pass);
    if (!pass.backward) continue;
    backward.push_back(pass);
    if (backward.size() > static_cast<std::size_t>(rank)) weights();
  }
  while (next < backward.size()) weights();
  return order;
}

/// All of a rank's stages forward, and then backward from the last, the last micro-batch first.
GPUMEM_INLINE std::vector<StagePass> breadth_first(std::int64_t stages, std::int64_t micro_batches) {
  std::vector<StagePass> passes = passes_of(micro_batches, stages, micro_batches, false);
  for (std::size_t at = passes.size(); at-- > 0;) {
    passes.push_back({true, passes[at].stage, passes[at].micro_batch});
  }
  return passes;
}

/// With as many micro-batches as are given.
GPUMEM_INLINE std::vector<StagePass> order_of(const model::Layout& layout, std::int64_t rank, std::int64_t count,
                                              std::int64_t group) {
  const std::int64_t stages = layout.virtual_stages;
  switch (layout.schedule) {
    case model::Schedule::looped_bfs: return breadth_first(stages, count);
    case model::Schedule::zero_bubble_v: return zero_bubble_v(layout.pipeline_parallel, rank, count);
    case model::Schedule::dual_pipe_v: return dual_pipe_v(layout.pipeline_parallel, rank, count);
    default: break;
  }
  const std::vector<StagePass> forward = passes_of(group, stages, count, false);
  const std::vector<StagePass> backward = passes_of(group, stages, count, true);
  const auto all = static_cast<std::int64_t>(forward.size());
  const bool all_first = layout.schedule == model::Schedule::gpipe;
  const std::int64_t warmup = all_first ? all : std::min(ahead(layout, rank, group), all);
  std::vector<StagePass> passes(forward.begin(), forward.begin() + warmup);
  for (std::int64_t at = 0; at < all; ++at) {
    if (warmup + at < all) passes.push_back(forward[static_cast<std::size_t>(warmup + at)]);
    passes.push_back(backward[static_cast<std::size_t>(at)]);
  }
  return layout.schedule == model::Schedule::zero_bubble ? apart(std::move(passes), rank) : passes;
}

}  // namespace schedule_detail

GPUMEM_INLINE std::int64_t rank_of_stage(const model::Layout& layout, std::int64_t stage) {
  const std::int64_t ranks = layout.pipeline_parallel;
  if (model::is_v_shaped(layout.schedule) && stage >= ranks) return std::max<std::int64_t>(2 * ranks - 1 - stage, 0);
  return stage % ranks;
}

GPUMEM_INLINE std::int64_t forwards_before_backward(const model::Layout& layout, std::int64_t rank,
                                                    std::int64_t micro_batches) {
  const std::int64_t group = layout.pipeline_parallel;
  const std::int64_t all = schedule_detail::distinct(layout, rank, micro_batches, group) * layout.virtual_stages;
  if (model::keeps_all(layout.schedule)) return all;
  if (model::is_v_shaped(layout.schedule)) {
    const std::vector<StagePass> passes = schedule_of(layout, rank, micro_batches);
    const auto first = std::find_if(passes.begin(), passes.end(), [](const StagePass& pass) { return pass.backward; });
    return first - passes.begin();
  }
  return std::min(schedule_detail::ahead(layout, rank, group) + 1, all);
}

GPUMEM_INLINE std::vector<StagePass> schedule_of(const model::Layout& layout, std::int64_t rank,
                                                 std::int64_t micro_batches, std::int64_t group) {
  if (group <= 0) group = layout.pipeline_parallel;
  return schedule_detail::order_of(layout, rank, schedule_detail::distinct(layout, rank, micro_batches, group), group);
}

GPUMEM_INLINE std::vector<StagePass> whole_schedule(const model::Layout& layout, std::int64_t rank,
                                                    std::int64_t micro_batches, std::int64_t group) {
  if (group <= 0) group = layout.pipeline_parallel;
  return schedule_detail::order_of(layout, rank, micro_batches, group);
}

GPUMEM_INLINE std::int64_t micro_batch_group(const model::TrainingJob& job) {
  const std::int64_t ranks = job.layout.pipeline_parallel;
  const std::int64_t said = job.graph == nullptr ? 0 : job.graph->run_settings().micro_batch_group;
  if (said > 0) return said;
  if (job.loop == model::Loop::megatron) return ranks;
  return job.gradient_accumulation / std::max<std::int64_t>(job.gradient_accumulation / ranks, 1);
}

namespace schedule_detail {

/// Passes of all ranks, each as soon as it can be.
class Clock {
 public:
  Clock(const model::Layout& layout, std::int64_t micro_batches)
      : layout_(layout),
        micro_batches_(static_cast<std::size_t>(micro_batches)),
        stages_(layout.pipeline_parallel * layout.virtual_stages),
        forward_(static_cast<std::size_t>(stages_) * micro_batches_),
        backward_(forward_.size()) {}

  /// In thirds of a stage's passes; nothing: the ranks wait for each other.
  [[nodiscard]] std::optional<double> finish(std::int64_t group) {
    std::vector<std::vector<StagePass>> orders;
    for (std::int64_t rank = 0; rank < layout_.pipeline_parallel; ++rank) {
      orders.push_back(whole_schedule(layout_, rank, static_cast<std::int64_t>(micro_batches_), group));
    }
    std::vector<std::size_t> next(orders.size(), 0);
    std::vector<double> now(orders.size(), 0.0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < orders.size(); ++rank) {
        while (next[rank] < orders[rank].size() && run(orders[rank][next[rank]], rank, now[rank])) {
          ++next[rank];
          moved = true;
        }
      }
    }
    for (std::size_t rank = 0; rank < orders.size(); ++rank) {
      if (next[rank] < orders[rank].size()) return std::nullopt;
    }
    return *std::max_element(now.begin(), now.end());
  }

 private:
  /// The number among all stages of one of a rank's own.
  [[nodiscard]] std::int64_t number(std::uint32_t stage, std::size_t rank) const {
    const auto own = static_cast<std::int64_t>(rank);
    if (model::is_v_shaped(layout_.schedule) && stage == 1) return stages_ - 1 - own;
    return static_cast<std::int64_t>(stage) * layout_.pipeline_parallel + own;
  }
  [[nodiscard]] std::optional<double>& of(std::vector<std::optional<double>>& ends, std::int64_t stage,
                                          std::uint32_t micro_batch) {
    return ends[static_cast<std::size_t>(stage) * micro_batches_ + micro_batch];
  }

  /// Whether what the pass reads is there: then its rank has run it.
  [[nodiscard]] bool run(const StagePass& pass, std::size_t rank, double& now) {
    const std::int64_t stage = number(pass.stage, rank);
    const bool first = stage == 0;
    const bool last = stage + 1 == stages_;
    std::optional<double> ready = 0.0;
    if (!pass.backward && !first) ready = of(forward_, stage - 1, pass.micro_batch);
    if (pass.backward) ready = of(last ? forward_ : backward_, last ? stage : stage + 1, pass.micro_batch);
    if (pass.gradients == Gradients::weights) ready = now;
    if (!ready) return false;
    now = std::max(now, *ready) + (pass.backward && pass.gradients == Gradients::all ? 2.0 : 1.0);
    if (!pass.backward) of(forward_, stage, pass.micro_batch) = now;
    if (pass.backward && pass.gradients != Gradients::weights) of(backward_, stage, pass.micro_batch) = now;
    return true;
  }

  const model::Layout& layout_;
  std::size_t micro_batches_;
  std::int64_t stages_;
  std::vector<std::optional<double>> forward_;   ///< when each stage has run for each micro-batch
  std::vector<std::optional<double>> backward_;  ///< when the gradients of its inputs are there
};

}  // namespace schedule_detail

GPUMEM_INLINE double idle_passes(const model::Layout& layout, std::int64_t micro_batches, std::int64_t group) {
  constexpr double kThirds = 3.0;
  const auto stages = static_cast<double>(layout.virtual_stages);
  // Further micro-batches change nothing.
  const std::int64_t each = std::max<std::int64_t>(group, 1);
  const std::int64_t enough = std::max<std::int64_t>(8 * layout.pipeline_parallel / each, 1) * each;
  const std::int64_t count = std::clamp<std::int64_t>(micro_batches, 1, enough);
  const std::optional<double> finish = schedule_detail::Clock(layout, count).finish(group);
  const double work = kThirds * stages * static_cast<double>(count);
  const double even = static_cast<double>(layout.pipeline_parallel - 1) / stages;  // as of 1F1B
  return finish ? (*finish - work) / (kThirds * stages) : even;
}

}  // namespace gpumem::parallel
