#pragma once

#include "gpumem/record/recorded_steps.hpp"

#include <algorithm>
#include <map>

#include "gpumem/core/deadline.hpp"
#include "gpumem/plan/optimizer_step.hpp"
#include "gpumem/plan/run_state.hpp"
#include "gpumem/record/kernel_memory.hpp"

namespace gpumem::record {

namespace recorded_steps_detail {

using model::RecordedEvent;
using model::StepRecording;
using plan::Slot;

/// What an optimizer that replaces the recorded one updates in addition to the parameters.
GPUMEM_INLINE plan::Masters masters_of(const model::TrainingJob& job) {
  const bool made = model::has_masters(job.precision);
  return {made, made, job.offload == model::Offload::optimizer};
}

/// Writes the events of a recording, one after the other, with what kernels take in addition.
class Writer {
 public:
  Writer(const model::TrainingJob& job, const CallShapes& shapes, plan::StepPlan reused)
      : job_(job),
        graph_(*job.graph),
        recording_(*job.graph->recording()),
        shapes_(shapes),
        log_(std::move(reused), recording_.events.size() * 2, recording_.events.size() / 4),
        optimizer_(log_, pace_, job, plan::BackendTraits::of(ops::Backend::cuda), masters_of(job)),
        slots_(recording_.allocations, plan::kNoSlot),
        rules_(recording_.calls.size(), kUnknownRule) {}

  core::Result<plan::StepPlan> run() {
    if (recording_.events.front().kind != RecordedEvent::Kind::mark) {
      log_.begin(plan::Phase::construction, 0, job_.batch_size);
    }
    if (job_.replaces_optimizer) optimizer_.update_all(trained_parameters());
    for (const RecordedEvent& event : recording_.events) {
      if (pace_.late()) return core::deadline_error();
      if (auto fault = apply(event)) return std::move(*fault);
    }
    plan::StepPlan plan = log_.take();
    plan.convolutions = std::move(convolutions_);
    return plan;
  }

 private:
  static constexpr std::uint8_t kUnknownRule = UINT8_MAX;

  /// Those that got a gradient.
  std::vector<plan::TrainedParameter> trained_parameters() {
    std::vector<plan::TrainedParameter> all;
    for (const model::RecordedParameter& parameter : recording_.parameters) {
      if (!parameter.trained || parameter.gradient < 0) continue;
      const CallTensor tensor = shapes_.tensor(parameter.tensor);
      std::int64_t factored = 0;
      if (tensor.shape.size() > 1) {
        const std::int64_t rows = tensor.shape[tensor.shape.size() - 2];
        const std::int64_t columns = tensor.shape.back();
        const std::int64_t matrix = core::bounded_product({rows, columns, tensor.element_bytes});
        if (matrix > 0) factored = core::bounded_product({tensor.bytes() / matrix, core::bounded_sum({rows, columns})});
      }
      const std::int64_t elements = tensor.bytes() / std::max<std::int64_t>(tensor.element_bytes, 1);
      all.push_back({.bytes = tensor.bytes(), .elements = elements, .factored = factored, .layer = parameter.layer});
    }
    return all;
  }

  std::optional<core::Error> apply(const RecordedEvent& event) {
    // The recorded optimizer's own, which another takes the place of.
    if (job_.replaces_optimizer && in_optimizer_ && event.kind != RecordedEvent::Kind::mark &&
        event.kind != RecordedEvent::Kind::release) {
      allocated_ += event.kind == RecordedEvent::Kind::allocate ? 1 : 0;
      return std::nullopt;
    }
    switch (event.kind) {
      case RecordedEvent::Kind::allocate: return allocate(event);
      case RecordedEvent::Kind::release:
        log_.drop(slots_[event.what]);
        slots_[event.what] = plan::kNoSlot;
        return std::nullopt;
      case RecordedEvent::Kind::begin: take_copies(event.what); return std::nullopt;
      case RecordedEvent::Kind::library: call_library(event); return std::nullopt;
      case RecordedEvent::Kind::end: give_copies_back(); return std::nullopt;
      case RecordedEvent::Kind::mark: begin_phase(event); return std::nullopt;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::uint32_t layer_of(std::int32_t call) const {
    return call < 0 ? plan::kNoLayer : recording_.calls[static_cast<std::size_t>(call)].layer;
  }

  std::optional<core::Error> allocate(const RecordedEvent& event) {
    const auto number = allocated_++;
    const plan::Category category = category_of(event.use());
    const auto bytes = shapes_.size(event.what);
    const std::uint32_t layer = layer_of(event.call);
    if (!bytes) {
      core::Error error{core::ErrorCode::overflow,
                        "a storage does not fit 64 bits at batch " + std::to_string(job_.batch_size),
                        {graph_.file(), 0, {}}};
      if (layer != plan::kNoLayer) error.place.element = graph_.path(graph_.layers()[layer]);
      return error;
    }
    const bool replaced = job_.replaces_optimizer && category == plan::Category::optimizer;
    if (*bytes > 0 && !replaced) slots_[number] = log_.allocate(*bytes, category, layer, event.stream);
    return std::nullopt;
  }

  KernelRule rule_of(std::uint32_t call) {
    if (rules_[call] == kUnknownRule) {
      rules_[call] = static_cast<std::uint8_t>(kernel_rule(recording_.strings[recording_.calls[call].op]));
    }
    return static_cast<KernelRule>(rules_[call]);
  }

  void take_copies(std::uint32_t index) {
    const auto [at, added] = copies_of_.try_emplace(index);
    const model::RecordedCall& call = recording_.calls[index];
    if (added) at->second = copies(rule_of(index), shapes_.tensors(call.inputs));
    for (const std::int64_t bytes : at->second) {
      held_copies_.push_back(log_.allocate(bytes, plan::Category::temporary, call.layer));
    }
  }
  void give_copies_back() {
    for (const Slot slot : held_copies_) log_.drop(slot);
    held_copies_.clear();
  }

  void call_library(const RecordedEvent& event) {
    const model::RecordedCall& call = recording_.calls[event.what];
    const KernelRule rule = rule_of(event.what);
    if (rule == KernelRule::product) {
      const auto inputs = recording_.list(call.inputs);
      const bool bias = inputs.size() == 3 && recording_.strings[call.op].starts_with("aten::addmm") &&
                        recording_.tensors[static_cast<std::size_t>(inputs[0])].dims.count == 1;
      log_.call(
          {.library = bias ? ops::Library::gemm_bias : ops::Library::gemm, .backward_thread = call.backward_thread},
          call.layer);
      return;
    }
    const auto [at, added] = convolution_of_.try_emplace({event.what, event.detail});
    if (added) at->second = convolution(call, rule, event.detail);
    if (at->second) log_.call(*at->second, call.layer);
  }

  /// Nothing for one that takes no workspace.
  std::optional<plan::LibraryCall> convolution(const model::RecordedCall& call, KernelRule rule, int part) {
    const auto made = convolution_part(rule, part, shapes_.tensors(call.inputs), shapes_.tensors(call.outputs),
                                       recording_.list(call.extra));
    if (!made || made->channels_last) return std::nullopt;
    convolutions_.push_back(made->sizes);
    return plan::LibraryCall{.library = ops::Library::convolution,
                             .direction = made->direction,
                             .backward_thread = call.backward_thread,
                             .convolution = static_cast<std::int32_t>(convolutions_.size() - 1),
                             .batch_size = made->batch_size};
  }

  static plan::Phase phase_of(const RecordedEvent& mark) {
    switch (static_cast<RecordedEvent::Mark>(mark.detail)) {
      case RecordedEvent::Mark::construction: return plan::Phase::construction;
      case RecordedEvent::Mark::forward: return plan::Phase::forward;
      case RecordedEvent::Mark::backward: return plan::Phase::backward;
      case RecordedEvent::Mark::optimizer: return plan::Phase::optimizer;
      case RecordedEvent::Mark::between_steps: return plan::Phase::batch;
    }
    return plan::Phase::batch;
  }

  void begin_phase(const RecordedEvent& mark) {
    if (job_.replaces_optimizer && !created_ && !mark.begins(RecordedEvent::Mark::construction)) {
      created_ = true;
      optimizer_.create();
    }
    log_.begin(phase_of(mark), static_cast<std::int32_t>(mark.what), job_.batch_size);
    in_optimizer_ = mark.begins(RecordedEvent::Mark::optimizer);
    if (job_.replaces_optimizer && in_optimizer_) optimizer_.run();
  }

  const model::TrainingJob& job_;
  const model::ModelGraph& graph_;
  const StepRecording& recording_;
  const CallShapes& shapes_;
  plan::EventLog log_;
  core::Pace pace_;
  plan::OptimizerStep optimizer_;
  std::vector<Slot> slots_;          ///< by allocation; kNoSlot: it takes no memory, or was released
  std::vector<std::uint8_t> rules_;  ///< by call
  std::vector<Slot> held_copies_;    ///< of the call at hand
  std::map<std::uint32_t, std::vector<std::int64_t>> copies_of_;
  std::map<std::pair<std::uint32_t, std::uint8_t>, std::optional<plan::LibraryCall>> convolution_of_;
  std::vector<ops::Convolution> convolutions_;
  std::size_t allocated_ = 0;
  bool in_optimizer_ = false;
  bool created_ = false;
};

}  // namespace recorded_steps_detail

GPUMEM_INLINE core::Status check(const model::TrainingJob& job) {
  const model::StepRecording& recording = *job.graph->recording();
  const auto refuse = [&](std::string message) {
    return core::Status(core::Error{core::ErrorCode::invalid_argument, std::move(message), {job.graph->file(), 0, {}}});
  };
  if (job.sequence_length && !recording.follows_sequence() && job.sequence_length != recording.recorded(1)) {
    return refuse("the recording was made at one sequence length; record with `sequence_arg` to choose another");
  }
  if (!recording.precision.empty() && model::name_of(model::kPrecisions, job.precision) != recording.precision) {
    return refuse("the recording is of " + recording.precision +
                  ", and precision cannot be changed afterwards; record again in " +
                  std::string(model::name_of(model::kPrecisions, job.precision)));
  }
  return core::Done{};
}

GPUMEM_INLINE core::Result<plan::StepPlan> recorded_steps(const model::TrainingJob& job, plan::StepPlan reused) {
  if (const core::Status valid = check(job); !valid) return valid.error();
  const auto [batch, sequence] = axes_of(job);
  const auto shapes = CallShapes::at(*job.graph, batch, sequence);
  if (!shapes) return shapes.error();
  return recorded_steps_detail::Writer(job, *shapes, std::move(reused)).run();
}

}  // namespace gpumem::record
