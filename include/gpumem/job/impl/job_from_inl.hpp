#pragma once

#include <utility>

#include "gpumem/job/job_from.hpp"

#include "gpumem/model/step_recording.hpp"

namespace gpumem::job {

namespace job_from_detail {

GPUMEM_INLINE core::Error refused(const model::ModelGraph& graph, std::string message) {
  return {core::ErrorCode::invalid_argument, std::move(message), {graph.file(), 0, {}}};
}

/// What is given stays; all else is as it was recorded.
GPUMEM_INLINE core::Status take_recorded(const JobRequest& request, model::TrainingJob& training) {
  const model::ModelGraph& graph = *training.graph;
  const model::StepRecording& recording = *graph.recording();
  for (const JobOption& option : job_options()) {
    if (!option.place.in_training || option.after_recording || !is_given(option, request)) continue;
    // record::check() compares a precision that has a name.
    if (option.name == "precision" && !recording.precision.empty()) continue;
    return refused(graph, model::fixed_by_recording(option.name));
  }
  if (!recording.follows_batch()) {
    const std::int64_t recorded = recording.recorded(0).value_or(1);
    if (is_given(*find_option("batch_size"), request) && training.batch_size != recorded) {
      return refused(graph, "the recording was made at one batch size; record with `batch_arg` to choose another");
    }
    training.batch_size = recorded;
  } else if (training.batch_size == 0) {
    training.batch_size = recording.recorded(0).value_or(0);
  }
  if (recording.setting("cudnn_benchmark") != nullptr) training.cudnn_benchmark = true;
  const auto precision = model::value_of(model::kPrecisions, recording.precision);
  if (precision && !is_given(*find_option("precision"), request)) training.precision = *precision;
  const auto optimizer = model::value_of(model::kOptimizers, recording.optimizer);
  const bool named = is_given(*find_option("optimizer"), request);
  if (!named && optimizer) training.optimizer = *optimizer;
  // Its form is not written down: one that is asked for is made again.
  const bool formed = is_given(*find_option("foreach"), request) || is_given(*find_option("fused"), request);
  if (formed && !named && !optimizer) {
    return refused(graph, std::string(model::kUnknownRecordedOptimizer));
  }
  training.replaces_optimizer = formed || (named && optimizer != training.optimizer);
  return core::Done{};
}

}  // namespace job_from_detail

GPUMEM_INLINE core::Result<model::TrainingJob> job_from(const JobRequest& request,
                                                        std::shared_ptr<const model::ModelGraph> graph) {
  model::TrainingJob training = request.training;
  training.graph = std::move(graph);
  const bool own_place = training.loop == model::Loop::script || is_given(*find_option("zero_grad"), request);
  if (!own_place) training.zero_grad = model::row_of(training.loop).zero_grad;
  if (!is_given(*find_option("padding"), request)) training.padding = model::row_of(training.loop).pads;
  if (training.graph != nullptr && training.graph->recording() != nullptr) {
    if (const core::Status taken = job_from_detail::take_recorded(request, training); !taken) return taken.error();
  }
  const core::Status valid = model::validate(training);
  if (!valid) return valid.error();
  return training;
}

}  // namespace gpumem::job
