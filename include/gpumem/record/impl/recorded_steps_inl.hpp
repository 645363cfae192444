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

namespace recorded_work_detail {

using Tensors = std::span<const CallTensor>;

/// Bits of a convolution's third `extra`: which gradients its backward makes.
inline constexpr std::int64_t kDataGradient = 1;
inline constexpr std::int64_t kWeightGradient = 2;

/// The multiply-adds of one gradient, or of the forward pass.
GPUMEM_INLINE double of_convolution(KernelRule rule, Tensors inputs, Tensors outputs,
                                    std::span<const std::int64_t> extra) {
  const auto part = convolution_part(rule, 0, inputs, outputs, extra);
  if (!part) return 0.0;
  // A transposed one has its input and output exchanged, so that this is the plain one it transposes.
  const auto one = part->sizes.multiply_adds().value();
  return one ? static_cast<double>(*one) * static_cast<double>(part->batch_size) : 0.0;
}

GPUMEM_INLINE double of_product(Tensors inputs) {
  if (inputs.size() < 2 || inputs.back().shape.empty()) return 0.0;
  const CallTensor& right = inputs.back();
  const double columns = right.shape.size() > 1 ? static_cast<double>(right.shape.back()) : 1.0;
  return inputs[inputs.size() - 2].elements() * columns;
}

/// Query and key: scores and values are a product each; backward makes five of them.
GPUMEM_INLINE double of_attention(std::string_view op, Tensors inputs) {
  const bool backward = op.find("backward") != std::string_view::npos;
  const std::size_t first = backward ? 1 : 0;
  if (inputs.size() < first + 2 || inputs[first + 1].shape.size() != 4) return 0.0;
  const double products = backward ? 5.0 : 2.0;
  return products * inputs[first].elements() * static_cast<double>(inputs[first + 1].shape[2]);
}

GPUMEM_INLINE double bytes_of(Tensors tensors) {
  double sum = 0.0;
  for (const CallTensor& tensor : tensors) sum += tensor.elements() * static_cast<double>(tensor.element_bytes);
  return sum;
}

GPUMEM_INLINE double largest(Tensors tensors) {
  double most = 0.0;
  for (const CallTensor& tensor : tensors) most = std::max(most, tensor.elements());
  return most;
}

GPUMEM_INLINE plan::Phase phase_of(model::RecordedCall::Phase phase) {
  using From = model::RecordedCall::Phase;
  switch (phase) {
    case From::construction: return plan::Phase::construction;
    case From::backward:
    case From::recomputation: return plan::Phase::backward;
    case From::optimizer: return plan::Phase::optimizer;
    default: return plan::Phase::forward;
  }
}

class Counter {
 public:
  Counter(const model::StepRecording& recording, const CallShapes& shapes) : recording_(recording), shapes_(shapes) {}

  plan::StepWork run() {
    for (const model::RecordedKernel& kernel : recording_.kernels) add(kernel);
    return std::move(work_);
  }

 private:
  void add(const model::RecordedKernel& of) {
    const model::RecordedCall& call = recording_.calls[of.call];
    const std::string& op = recording_.strings[call.op];
    const KernelRule rule = kernel_rule(op);
    const auto inputs = shapes_.tensors(call.inputs);
    const auto outputs = shapes_.tensors(call.outputs);
    plan::Kernel kernel;
    kernel.bytes = bytes_of(inputs) + bytes_of(outputs);
    kernel.outputs = outputs.empty() ? largest(inputs) : largest(outputs);
    kernel.dtype = inputs.empty() ? core::DType::float32 : inputs.back().dtype;
    kernel.phase = phase_of(call.phase);
    if (call.phase == model::RecordedCall::Phase::optimizer) kernel.kind = plan::Kernel::Kind::optimizer;
    if (rule == KernelRule::product) {
      kernel.kind = plan::Kernel::Kind::product;
      kernel.multiply_adds = of_product(inputs);
    } else if (rule == KernelRule::convolution || rule == KernelRule::convolution_backward) {
      kernel.kind = plan::Kernel::Kind::convolution;
      kernel.multiply_adds = of_convolution(rule, inputs, outputs, recording_.list(call.extra));
    } else if (op.find("_attention") != std::string::npos) {
      kernel.kind = plan::Kernel::Kind::product;
      kernel.multiply_adds = of_attention(op, inputs);
    }
    if (rule == KernelRule::convolution_backward && call.extra.count > 2) {
      const std::int64_t made = recording_.list(call.extra)[2];
      for (const std::int64_t gradient : {kDataGradient, kWeightGradient}) {
        if ((made & gradient) != 0) push(kernel, of.times);
      }
      return;
    }
    push(kernel, of.times);
  }

  void push(plan::Kernel kernel, std::int64_t times) {
    if (kernel.outputs <= 0.0 || times == 0) return;
    kernel.depth = kernel.multiply_adds / kernel.outputs;
    const double launches = static_cast<double>(times);
    kernel.multiply_adds *= launches;
    kernel.bytes *= launches;
    kernel.outputs *= launches;
    kernel.launches = static_cast<std::int32_t>(std::min<std::int64_t>(times, INT32_MAX));
    work_.kernels.push_back(kernel);
  }

  const model::StepRecording& recording_;
  const CallShapes& shapes_;
  plan::StepWork work_;
};

}  // namespace recorded_work_detail

GPUMEM_INLINE core::Result<plan::StepWork> recorded_work(const model::TrainingJob& job) {
  if (const core::Status valid = check(job); !valid) return valid.error();
  const model::StepRecording& recording = *job.graph->recording();
  if (recording.kernels.empty()) {
    return core::Error{core::ErrorCode::missing_information,
                       "the recording does not say how often each kernel ran (\"kernels\"); record again",
                       {job.graph->file(), 0, {}}};
  }
  const auto [batch, sequence] = axes_of(job);
  const auto shapes = CallShapes::at(*job.graph, batch, sequence);
  if (!shapes) return shapes.error();
  plan::StepWork work = recorded_work_detail::Counter(recording, *shapes).run();
  std::uint32_t steps = 1;
  for (const model::RecordedEvent& event : recording.events) {
    const bool input =
        event.kind == model::RecordedEvent::Kind::allocate && event.use() == model::RecordedEvent::Use::input;
    if (input) work.input_bytes += static_cast<double>(shapes->size(event.what).value_or(0));
    if (event.begins(model::RecordedEvent::Mark::backward)) steps = std::max(steps, event.what);
  }
  work.input_bytes /= static_cast<double>(steps);
  return work;
}

}  // namespace gpumem::record
