#pragma once

#include "gpumem/plan/step_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gpumem/plan/checkpoints.hpp"

namespace gpumem::plan {

namespace step_work_detail {

using ops::Function;
using ops::Gradient;
using ops::Library;
using ops::Output;
using ops::Tape;
using ops::TensorId;

/// multi_tensor_apply.cuh: a launch takes a limited number of chunks, elements a chunk, and tensors. Three or four
/// tensors a list; that is what addcdiv, the longest, takes.
inline constexpr double kChunkElements = 65536.0;
inline constexpr double kChunksALaunch = 320.0;
inline constexpr double kTensorsALaunch = 36.0;

/// Counts one step's kernels.
class Counter {
 public:
  Counter(const model::TrainingJob& job, const ForwardPass& pass) : job_(job), pass_(pass), tape_(pass.tape) {}

  core::Status measure() {
    const auto tensors = tape_.tensors();
    bytes_.reserve(tensors.size());
    for (const ops::TapeTensor& tensor : tensors) {
      const auto bytes = tensor.size.bytes(job_.batch_size).value();
      if (!bytes) return overflow(tensor.layer);
      bytes_.push_back(static_cast<double>(*bytes));
    }
    for (const Function& function : tape_.functions()) {
      const auto products = function.multiply_adds.as(core::DType::uint8).bytes(job_.batch_size).value();
      if (!products) return overflow(function.layer);
      products_.push_back(static_cast<double>(*products) * rounds_of(function.layer));
    }
    return core::Done{};
  }

  core::Result<StepWork> run() {
    std::vector<Range> recomputed;
    if (job_.activation_checkpointing) {
      auto found = checkpointed(pass_, job_.checkpoints, names_of(job_));
      if (!found) return found.error();
      recomputed = *std::move(found);
    }
    for (const TensorId input : tape_.inputs()) work_.input_bytes += bytes_of(input);
    work_.passes = job_.gradient_accumulation;
    const auto functions = static_cast<std::uint32_t>(tape_.functions().size());
    for (std::uint32_t index = 0; index < functions; ++index) forward(index, Phase::forward);
    for (const Range& range : recomputed) {
      const auto kept = kept_results(tape_, range, job_.checkpoints);
      for (std::uint32_t index = range.first; index < range.end; ++index) {
        if (!std::binary_search(kept.begin(), kept.end(), index)) forward(index, Phase::backward);
      }
    }
    for (std::uint32_t index = functions; index-- > 0;) backward(index);
    meet_gradients();
    repeat_passes();
    optimize();
    return std::move(work_);
  }

 private:
  [[nodiscard]] core::Error overflow(std::uint32_t layer_index) const {
    const model::Layer& layer = pass_.wired.graph().layers()[layer_index];
    return {core::ErrorCode::overflow,
            "what it computes does not fit 64 bits at batch size " + std::to_string(job_.batch_size),
            pass_.wired.place_of(layer)};
  }

  /// The keys of all context parallel ranks pass each of them: its queries are multiplied with all, a part at a time.
  [[nodiscard]] double rounds_of(std::uint32_t layer) const {
    return attends(layer) ? static_cast<double>(job_.layout.context_parallel) : 1.0;
  }
  [[nodiscard]] bool attends(std::uint32_t layer) const {
    const model::ModelGraph& graph = pass_.wired.graph();
    const model::OpTraits* op = graph.op_traits(graph.layers()[layer]);
    return op != nullptr && op->family == model::OpFamily::attention && !op->projects();
  }
  /// One kernel for scores, softmax and values, of which no library is asked.
  [[nodiscard]] bool is_fused_attention(const Function& function) const {
    return function.library == Library::none && function.multiply_adds.elements.value() != 0 &&
           function.extras.count > 0 && attends(function.layer);
  }

  [[nodiscard]] double bytes_of(TensorId tensor) const { return bytes_[static_cast<std::size_t>(tensor)]; }
  [[nodiscard]] double bytes_of(model::Slice tensors) const {
    double sum = 0.0;
    for (const TensorId tensor : tape_.list(tensors)) sum += bytes_of(tensor);
    return sum;
  }
  [[nodiscard]] double elements_of(TensorId tensor) const {
    return bytes_of(tensor) / static_cast<double>(core::element_size(tape_.tensor(tensor).size.dtype));
  }
  [[nodiscard]] static Kernel::Kind kind_of(const Function& function) {
    if (function.library == Library::convolution) return Kernel::Kind::convolution;
    const bool multiplies = function.library != Library::none || function.multiply_adds.elements.value() != 0;
    return multiplies ? Kernel::Kind::product : Kernel::Kind::elementwise;
  }

  void add(Kernel kernel) {
    if (kernel.outputs <= 0.0) return;
    kernel.depth = kernel.multiply_adds / kernel.outputs;
    work_.kernels.push_back(kernel);
  }

  void forward(std::uint32_t index, Phase phase) {
    const Function& function = tape_.functions()[index];
    if (function.kind == Output::view || function.kind == Output::unsafe_view) return;
    if (function.reduce_scatters) return;  // what ranks send each other is no kernel of the model's
    if (function.casts_parameters) {
      for (const TensorId parameter : tape_.list(function.parameters)) {
        add({.bytes = 1.5 * bytes_of(parameter), .outputs = elements_of(parameter), .phase = phase});
      }
    }
    add({.multiply_adds = products_[index],
         .bytes = bytes_of(function.inputs) + bytes_of(function.parameters) + bytes_of(function.output) +
                  bytes_of(function.extras),
         .outputs = elements_of(function.output),
         .dtype = function.multiply_adds.dtype,
         .kind = kind_of(function),
         .phase = phase,
         .attends = is_fused_attention(function)});
  }

  void backward(std::uint32_t index) {
    const Function& function = tape_.functions()[index];
    if (!tape_.tensor(function.output).requires_grad || function.reduce_scatters) return;
    const bool copies = function.gradient == Gradient::fresh || function.gradient == Gradient::joined;
    if (kind_of(function) != Kernel::Kind::elementwise) return multiply_back(index);
    double written = 0.0;
    double outputs = 0.0;
    if (copies) {
      for_each_gradient(function, [&](TensorId input) {
        written += bytes_of(input);
        outputs += elements_of(input);
      });
    }
    for (const TensorId parameter : tape_.list(function.parameters)) {
      if (!tape_.tensor(parameter).requires_grad) continue;
      written += bytes_of(parameter);
      outputs = std::max(outputs, elements_of(function.output));
    }
    add({.bytes = bytes_of(function.output) + bytes_of(function.saved) + written,
         .outputs = outputs,
         .phase = Phase::backward});
  }

  /// One kernel an operand that gets a gradient; each reads the output's gradient and what the others hold.
  void multiply_back(std::uint32_t index) {
    const Function& function = tape_.functions()[index];
    const double operands = bytes_of(function.inputs) + bytes_of(function.parameters);
    if (is_fused_attention(function)) return attend_back(index, operands);
    const auto multiply = [&](TensorId operand) {
      add({.multiply_adds = products_[index],
           .bytes = bytes_of(function.output) + operands,
           .outputs = elements_of(operand),
           .dtype = function.multiply_adds.dtype,
           .kind = kind_of(function),
           .phase = Phase::backward});
    };
    for_each_gradient(function, multiply);
    bool weight = true;
    for (const TensorId parameter : tape_.list(function.parameters)) {
      if (tape_.tensor(parameter).requires_grad) {
        if (weight) multiply(parameter);
        else reduce(function, parameter);
      }
      weight = false;
    }
  }

  /// Forward's two products; backward makes the scores again, and of each of the two products both gradients. Source:
  /// T. Dao 2023, "FlashAttention-2", section 4.1: backward counts 2.5 times forward.
  void attend_back(std::uint32_t index, double operands) {
    const Function& function = tape_.functions()[index];
    constexpr double kOverForward = 2.5;
    double gradients = 0.0;
    double outputs = 0.0;
    for_each_gradient(function, [&](TensorId input) {
      gradients += bytes_of(input);
      outputs += elements_of(input);
    });
    add({.multiply_adds = kOverForward * products_[index],
         .bytes = 2.0 * bytes_of(function.output) + operands + gradients,
         .outputs = outputs,
         .dtype = function.multiply_adds.dtype,
         .kind = Kernel::Kind::product,
         .phase = Phase::backward,
         .attends = true,
         .backwards = true});
  }

  /// A bias' gradient: a sum over the output's.
  void reduce(const Function& function, TensorId parameter) {
    add({.bytes = bytes_of(function.output) + bytes_of(parameter),
         .outputs = elements_of(parameter),
         .phase = Phase::backward});
  }

  template <typename Visit>
  void for_each_gradient(const Function& function, Visit visit) const {
    const auto inputs = tape_.list(function.inputs);
    for (std::size_t at = 0; at < inputs.size(); ++at) {
      const bool none = at < 32 && (function.no_gradient >> at & 1U) != 0;
      if (!none && tape_.tensor(inputs[at]).requires_grad) visit(inputs[at]);
    }
  }

  /// A tensor that several calls read gets the sum of their gradients.
  void meet_gradients() {
    std::vector<std::int32_t> readers(tape_.tensors().size(), 0);
    for (const Function& function : tape_.functions()) {
      if (!tape_.tensor(function.output).requires_grad || function.gradient == Gradient::none) continue;
      for_each_gradient(function, [&](TensorId input) { ++readers[static_cast<std::size_t>(input)]; });
    }
    for (std::size_t tensor = 0; tensor < readers.size(); ++tensor) {
      if (readers[tensor] < 2) continue;
      const int sums = readers[tensor] - 1;
      const auto id = static_cast<TensorId>(tensor);
      constexpr double kReadsAndWrites = 3.0;
      add({.bytes = kReadsAndWrites * bytes_of(id) * sums,
           .outputs = elements_of(id) * sums,
           .phase = Phase::backward,
           .launches = sums});
    }
  }

  /// Forward and backward of every batch that a step accumulates over.
  void repeat_passes() {
    if (work_.passes <= 1) return;
    const auto passes = static_cast<double>(work_.passes);
    work_.input_bytes *= passes;
    for (Kernel& kernel : work_.kernels) {
      kernel.multiply_adds *= passes;
      kernel.bytes *= passes;
      kernel.outputs *= passes;
      kernel.launches = static_cast<std::int32_t>(
          std::min<std::int64_t>(kernel.launches * work_.passes, std::numeric_limits<std::int32_t>::max()));
    }
  }

  void optimize() {
    const model::OptimizerRow& row = model::row_of(job_.optimizer);
    double bytes = 0.0;
    double elements = 0.0;
    double tensors = 0.0;
    double chunks = 0.0;
    for (const Tape::Parameter& parameter : tape_.parameters()) {
      if (parameter.frozen || parameter.tied) continue;
      bytes += bytes_of(parameter.tensor);
      elements += elements_of(parameter.tensor);
      chunks += std::ceil(elements_of(parameter.tensor) / kChunkElements);
      tensors += 1.0;
    }
    const double launches = std::ceil(std::max(chunks / kChunksALaunch, tensors / kTensorsALaunch));
    const bool fused = model::updates_in_one_kernel(job_);
    const int kernels = fused ? 1 : row.kernels;
    const double each = fused || job_.foreach ? launches : tensors;
    add({.bytes = bytes * (fused ? row.fused_kernel_tensors : row.kernel_tensors),
         .outputs = elements * kernels,
         .kind = Kernel::Kind::optimizer,
         .phase = Phase::optimizer,
         .launches = static_cast<std::int32_t>(each) * kernels});
  }

  const model::TrainingJob& job_;
  const ForwardPass& pass_;
  const Tape& tape_;
  std::vector<double> bytes_;     ///< by tensor
  std::vector<double> products_;  ///< by function
  StepWork work_;
};

}  // namespace step_work_detail

GPUMEM_INLINE core::Result<StepWork> step_work(const model::TrainingJob& job, const ForwardPass& pass) {
  step_work_detail::Counter counter(job, pass);
  const core::Status measured = counter.measure();
  if (!measured) return measured.error();
  return counter.run();
}

}  // namespace gpumem::plan
