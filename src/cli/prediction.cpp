#include "prediction.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <unordered_map>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/device/allocator_options.hpp"
#include "gpumem/estimate/replay.hpp"
#include "gpumem/posttrain/estimate_post_training.hpp"

namespace gpumem::cli {

std::optional<Bytes> figure_of(const MemoryEstimate& estimate, datasets::Figure figure) {
  switch (figure) {
    case datasets::Figure::device: return estimate.device.value_or(estimate.expected);
    case datasets::Figure::growth: return estimate.reserved.value_or(estimate.expected);
    case datasets::Figure::reserved: return estimate.reserved;
    // Active is what is allocated, and what was freed while another stream may still use it: of a job on one stream,
    // nothing.
    case datasets::Figure::allocated:
    case datasets::Figure::active: return estimate.allocated;
    case datasets::Figure::after_step: return estimate.after_step;
  }
  return std::nullopt;
}

namespace {

/// The settings that the run gave the allocator, with the limit that it was given.
Result<device::AllocatorOptions> allocator_of(const datasets::MeasuredRun& run, const GpuProfile& gpu) {
  auto options = device::parse_allocator_options(run.alloc_conf);
  const double all = gpu.capacity().mib();
  if (options && run.capacity_mib.value_or(all) < all) {
    options->memory_fraction = std::min(options->memory_fraction.value_or(1.0), *run.capacity_mib / all);
  }
  return options;
}

/// The estimate of a run that goes through phases, which the replay alone can follow.
Result<MemoryEstimate> of_phases(const datasets::MeasuredRun& run, const Estimator& estimator, const GpuProfile& gpu) {
  if (estimator.name() != estimate::Replay::kName) {
    return Error{ErrorCode::invalid_argument, "only the replay estimates post-training", {}};
  }
  const auto options = device::parse_allocator_options(run.alloc_conf);
  if (!options) return options.error();
  auto estimate = posttrain::estimate_post_training(*run.post_training, gpu, *options);
  if (!estimate) return estimate.error();
  return std::move(estimate->memory);
}

/// An allocator that may reserve no more than the capacity gives back what it has cached: a job with more live tensors
/// runs out. Phases are not replayed within a limit.
void act_within(std::optional<Bytes> live, Prediction& prediction) {
  const double limit_mib = prediction.capacity_mib;
  prediction.fits = live ? live->mib() <= limit_mib : prediction.expected_mib <= limit_mib;
  if (!prediction.fits) return;
  prediction.expected_mib = std::min(prediction.expected_mib, limit_mib);
  prediction.lower_mib = std::min(prediction.lower_mib, limit_mib);
}

}  // namespace

Result<Prediction> predict(const datasets::MeasuredRun& run, datasets::Figure figure, const Estimator& estimator,
                           const GpuProfile& gpu, analysis::Analysis& analysis) {
  const auto estimate =
      run.post_training == nullptr ? estimator.estimate(analysis, gpu) : of_phases(run, estimator, gpu);
  if (!estimate) return estimate.error();
  const auto told = figure_of(*estimate, figure);
  if (!told) {
    const std::string name(model::name_of(datasets::kFigures, figure));
    return Error{ErrorCode::missing_information, "this estimator does not tell " + name + " memory", {}};
  }
  // The range is of the whole estimate; what the figure leaves out, it leaves out at both ends. Communicators are on
  // only the device.
  const double moved = told->mib() - estimate->expected.mib();
  const bool on_device = figure == datasets::Figure::device || figure == datasets::Figure::growth;
  const double below = on_device ? 0.0 : estimate->communicators.below.mib();
  const double above = on_device ? 0.0 : estimate->communicators.above.mib();
  Prediction prediction;
  prediction.run = &run;
  prediction.expected_mib = told->mib();
  prediction.lower_mib = std::max(0.0, estimate->lower.mib() + below + moved);
  prediction.upper_mib = std::max(0.0, estimate->upper.mib() - above + moved);
  prediction.beside_mib = -moved;
  prediction.capacity_mib = std::min(gpu.capacity().mib(), run.capacity_mib.value_or(gpu.capacity().mib()));
  prediction.whole = figure == datasets::Figure::growth && !estimate->reserved;
  prediction.ranged = estimate->ranged;
  // No lower bound is known to fit: the expected figure must do.
  prediction.fits = estimate->lower_bound ? estimate->expected <= gpu.capacity() : estimate->fits;
  if (run.post_training != nullptr && prediction.capacity_mib < gpu.capacity().mib()) {
    act_within(figure_of(*estimate, datasets::Figure::allocated), prediction);
  }
  prediction.model = estimate->provenance.weights;
  prediction.out_of_domain = !estimate->out_of_domain.empty();
  return prediction;
}

namespace {

/// The tasks with those of one summary side by side, and among these the ones that are recorded alike.
std::vector<PredictionTask*> by_summary(std::vector<PredictionTask>& tasks) {
  std::unordered_map<const ModelGraph*, std::size_t> numbers;
  const auto place_of = [&](const PredictionTask* task) {
    const TrainingJob& job = task->run->job;
    return std::make_tuple(numbers[job.graph.get()], job.precision, job.loss, std::cref(job.sequence_length),
                           std::cref(job.input_shape));
  };
  std::vector<PredictionTask*> order;
  for (PredictionTask& task : tasks) {
    numbers.emplace(task.run->job.graph.get(), numbers.size());
    order.push_back(&task);
  }
  std::stable_sort(order.begin(), order.end(), [&](const PredictionTask* left, const PredictionTask* right) {
    return place_of(left) < place_of(right);
  });
  return order;
}

/// The replay with the settings that the run gave the allocator. Other estimators know none.
Result<Prediction> predict_as_set(const PredictionTask& task, const Estimator& estimator,
                                  analysis::Analysis& analysis) {
  const auto options = allocator_of(*task.run, **task.gpu);
  if (!options) return options.error();
  const bool as_usual = *options == device::AllocatorOptions{} || estimator.name() != estimate::Replay::kName;
  if (as_usual) return predict(*task.run, task.figure, estimator, **task.gpu, analysis);
  return predict(*task.run, task.figure, estimate::Replay(*options), **task.gpu, analysis);
}

Prediction predicted(const PredictionTask& task, const Estimator& estimator, analysis::Analysis& analysis) {
  const auto failure = [&](Error error) { return Prediction{.run = task.run, .error = std::move(error)}; };
  if (task.run->error) return failure(*task.run->error);
  if (!task.gpu) return failure(task.gpu.error());
  auto prediction = predict_as_set(task, estimator, analysis);
  return prediction ? *std::move(prediction) : failure(prediction.error());
}

}  // namespace

void predict_all(std::vector<PredictionTask>& tasks, const std::vector<std::shared_ptr<const Estimator>>& estimators,
                 unsigned threads, const std::function<void()>& progress) {
  const std::vector<PredictionTask*> order = by_summary(tasks);
  analysis::Analyses analyses;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    constexpr std::size_t kPortion = 16;
    for (std::size_t begin = next.fetch_add(kPortion); begin < order.size(); begin = next.fetch_add(kPortion)) {
      const std::size_t end = std::min(order.size(), begin + kPortion);
      for (std::size_t index = begin; index < end; ++index) {
        PredictionTask& task = *order[index];
        const auto analysis = analyses.take(task.run->job);
        for (const auto& estimator : estimators) {
          task.predictions.push_back(predicted(task, *estimator, *analysis));
        }
        if (progress) progress();
      }
    }
  };
  std::vector<std::jthread> others;
  for (unsigned thread = 1; thread < threads; ++thread) others.emplace_back(work);
  work();
}

datasets::Judged judged(const Prediction& prediction) {
  const double published = prediction.run->measured_mib.value_or(0.0);
  const double rounding = prediction.run->rounding_mib;
  return {.measured_mib = std::clamp(prediction.expected_mib, published - rounding, published + rounding),
          .expected_mib = prediction.expected_mib,
          .upper_mib = prediction.upper_mib,
          .out_of_memory = prediction.run->out_of_memory,
          .fits = prediction.fits,
          .lower_mib = prediction.lower_mib,
          .capacity_mib = prediction.capacity_mib,
          .beside_mib = prediction.beside_mib};
}

}  // namespace gpumem::cli
