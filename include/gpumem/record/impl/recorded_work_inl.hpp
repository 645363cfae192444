#pragma once

#include "gpumem/record/recorded_work.hpp"

#include <algorithm>

#include "gpumem/record/kernel_memory.hpp"
#include "gpumem/record/recorded_steps.hpp"

namespace gpumem::record {

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
