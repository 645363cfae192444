// Input: a recorded call with the shapes of its tensors.
// Output: the memory that its kernel takes in addition to what PyTorch's dispatcher shows: copies that it makes of its
// inputs, and the convolution or product whose workspace device/workspace.hpp knows.
// Units: bytes.
// Source: torch 2.6, aten/src/ATen/native: Blas.cpp and cuda/Blas.cpp (prepare_matrix_for_cublas), cudnn/ConvShared.cpp
// (contiguous in the suggested format), transformers/cuda/attention_backward.cu, and the kernels that call contiguous()
// on their inputs (normalization, softmax, pooling, glu, embedding); cuda/SoftMax.cu (softmax_backward_cuda_out).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/step_recording.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/tape.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::record {

// Input: a recording and the values of its axes.
// Output: every size and every tensor's shape there.
// Units: elements; storages in bytes.

/// One tensor of a call.
struct CallTensor {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> order;    ///< axes from the outermost to the innermost in memory; empty: contiguous
  std::vector<std::int64_t> strides;  ///< of a tensor that is not dense; else empty
  std::int64_t element_bytes = 4;
  core::DType dtype = core::DType::float32;

  [[nodiscard]] double elements() const;
  [[nodiscard]] std::int64_t bytes() const;
  /// Its elements follow each other when its axes are taken in this order, the outermost first; axes of one element do
  /// not count.
  [[nodiscard]] bool is_dense_in(std::span<const std::size_t> axes) const;
  /// Dense in the order of its axes.
  [[nodiscard]] bool is_contiguous() const;
  /// An image with its channels innermost, and not contiguous as well.
  [[nodiscard]] bool is_channels_last() const;
  /// A matrix (its last two axes) that a product can read as it is, or transposed.
  [[nodiscard]] bool is_matrix_as_is() const;
  [[nodiscard]] std::int64_t stride(std::size_t axis) const;
};

class CallShapes {
 public:
  /// Errors: invalid_argument for a size below zero at these values; overflow.
  [[nodiscard]] static core::Result<CallShapes> at(const model::ModelGraph& graph, std::int64_t batch,
                                                   std::int64_t sequence);

  /// Bytes of a storage. Nothing: they do not fit 64 bits.
  [[nodiscard]] std::optional<std::int64_t> size(std::uint32_t index) const;
  [[nodiscard]] CallTensor tensor(std::uint32_t index) const;
  [[nodiscard]] std::vector<CallTensor> tensors(model::Slice slice) const;

 private:
  explicit CallShapes(const model::StepRecording& recording) : recording_(&recording) {}

  const model::StepRecording* recording_;
  std::vector<std::int64_t> values_;  ///< of its expressions
};

/// The values of the recording's axes that the job asks for.
[[nodiscard]] std::array<std::int64_t, 2> axes_of(const model::TrainingJob& job);

/// Which rule an op's kernels follow.
enum class KernelRule : std::uint8_t {
  plain,                 ///< nothing in addition to what is recorded
  product,               ///< cuBLAS
  convolution,           ///< cuDNN
  convolution_backward,  ///< cuDNN
  dense_inputs,          ///< copies inputs that are not contiguous
  softmax_backward,      ///< the same, and multiplies gradient and result into a tensor of its own
  efficient_attention_backward,
  flash_attention_backward,
};

/// `op` is a name such as "aten::addmm" or "aten::add.Tensor".
[[nodiscard]] KernelRule kernel_rule(std::string_view op);

/// Bytes of each copy that the kernel holds while it runs, in order.
[[nodiscard]] std::vector<std::int64_t> copies(KernelRule rule, std::span<const CallTensor> inputs);

/// A convolution's part: its sizes and which pass of cuDNN's computes it.
struct ConvolutionPart {
  ops::Convolution sizes;
  plan::Direction direction = plan::Direction::forward;
  std::int64_t batch_size = 0;
  bool channels_last = false;  ///< cuDNN then needs no copies of its own
};

/// `part` is 0 for the forward pass, 1 for the data's gradient, 2 for the weight's; `extra` is the call's (transposed,
/// groups). Nothing: the tensors are not those of a convolution.
[[nodiscard]] std::optional<ConvolutionPart> convolution_part(KernelRule rule, int part,
                                                              std::span<const CallTensor> inputs,
                                                              std::span<const CallTensor> outputs,
                                                              std::span<const std::int64_t> extra);

inline double CallTensor::elements() const {
  double product = 1.0;
  for (const std::int64_t size : shape) product *= static_cast<double>(size);
  return product;
}

inline std::int64_t CallTensor::bytes() const {
  core::Checked product = element_bytes;
  for (const std::int64_t size : shape) product *= size;
  return std::min(product.value().value_or(core::kMostBytes), core::kMostBytes);
}

inline std::int64_t CallTensor::stride(std::size_t axis) const {
  if (!strides.empty()) return strides[axis];
  core::Checked product = 1;
  if (order.empty()) {
    for (std::size_t inner = axis + 1; inner < shape.size(); ++inner) product *= shape[inner];
  } else {
    const auto at = std::find(order.begin(), order.end(), static_cast<std::int64_t>(axis));
    for (auto inner = at + 1; inner != order.end(); ++inner) product *= shape[static_cast<std::size_t>(*inner)];
  }
  return product.value().value_or(INT64_MAX);
}

inline bool CallTensor::is_dense_in(std::span<const std::size_t> axes) const {
  core::Checked expected = 1;
  for (std::size_t at = axes.size(); at-- > 0;) {
    if (shape[axes[at]] == 1) continue;
    if (expected.value() != stride(axes[at])) return false;
    expected *= shape[axes[at]];
  }
  return true;
}

inline bool CallTensor::is_contiguous() const {
  if (order.empty() && strides.empty()) return true;
  std::vector<std::size_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  return is_dense_in(axes);
}

inline bool CallTensor::is_channels_last() const {
  constexpr std::array<std::size_t, 4> kChannelsLast = {0, 2, 3, 1};
  return shape.size() == 4 && !is_contiguous() && is_dense_in(kChannelsLast);
}

inline bool CallTensor::is_matrix_as_is() const {
  if (shape.size() < 2) return true;
  const std::size_t columns = shape.size() - 1;
  const std::size_t rows = columns - 1;
  if (shape[rows] == 1 || shape[columns] == 1) return true;
  const auto leads = [&](std::size_t outer, std::size_t inner) {
    return stride(inner) == 1 && stride(outer) >= std::max<std::int64_t>(1, shape[inner]);
  };
  return leads(rows, columns) || leads(columns, rows);
}

inline core::Result<CallShapes> CallShapes::at(const model::ModelGraph& graph, std::int64_t batch,
                                               std::int64_t sequence) {
  CallShapes shapes(*graph.recording());
  shapes.values_.reserve(graph.recording()->expressions.size());
  for (const model::AxisExpression& expression : graph.recording()->expressions) {
    const auto value = expression.at(batch, sequence);
    if (!value) {
      return core::Error{
          core::ErrorCode::invalid_argument,
          "a size of the recording is below zero or too large at batch " + std::to_string(batch) +
              (graph.recording()->follows_sequence() ? " and sequence " + std::to_string(sequence) : "") +
              "; record at sizes near those",
          {graph.file(), 0, {}}};
    }
    shapes.values_.push_back(*value);
  }
  return shapes;
}

inline std::optional<std::int64_t> CallShapes::size(std::uint32_t index) const {
  const model::RecordedSize& size = recording_->sizes[index];
  core::Checked product = size.item;
  for (const std::int64_t dim : recording_->list(size.dims)) product *= values_[static_cast<std::size_t>(dim)];
  return product.value();
}

inline CallTensor CallShapes::tensor(std::uint32_t index) const {
  const model::RecordedTensor& recorded = recording_->tensors[index];
  CallTensor tensor;
  tensor.dtype = recorded.dtype;
  tensor.element_bytes = recorded.element_bytes;
  for (const std::int64_t dim : recording_->list(recorded.dims)) {
    tensor.shape.push_back(values_[static_cast<std::size_t>(dim)]);
  }
  const auto order = recording_->list(recorded.order);
  if (recorded.layout == model::RecordedTensor::Layout::dense) tensor.order.assign(order.begin(), order.end());
  if (recorded.layout == model::RecordedTensor::Layout::strided) {
    for (const std::int64_t stride : order) tensor.strides.push_back(values_[static_cast<std::size_t>(stride)]);
  }
  return tensor;
}

inline std::vector<CallTensor> CallShapes::tensors(model::Slice slice) const {
  std::vector<CallTensor> all;
  all.reserve(slice.count);
  for (const std::int64_t index : recording_->list(slice)) all.push_back(tensor(static_cast<std::uint32_t>(index)));
  return all;
}

inline std::array<std::int64_t, 2> axes_of(const model::TrainingJob& job) {
  const model::StepRecording& recording = *job.graph->recording();
  const std::int64_t sequence =
      recording.follows_sequence() ? job.sequence_length.value_or(recording.recorded(1).value_or(1)) : 1;
  return {recording.follows_batch() ? job.batch_size : 1, sequence};
}

namespace kernel_memory_detail {

struct OpRule {
  std::string_view op;
  KernelRule rule;
};

/// By PyTorch's name of the operator, without its overload.
inline constexpr std::array<OpRule, 28> kRules = {{
    {"aten::mm", KernelRule::product},
    {"aten::addmm", KernelRule::product},
    {"aten::bmm", KernelRule::product},
    {"aten::baddbmm", KernelRule::product},
    {"aten::addbmm", KernelRule::product},
    {"aten::mv", KernelRule::product},
    {"aten::addmv", KernelRule::product},
    {"aten::dot", KernelRule::product},
    {"aten::convolution", KernelRule::convolution},
    {"aten::convolution_backward", KernelRule::convolution_backward},
    {"aten::_scaled_dot_product_efficient_attention_backward", KernelRule::efficient_attention_backward},
    {"aten::_scaled_dot_product_flash_attention_backward", KernelRule::flash_attention_backward},
    {"aten::native_batch_norm", KernelRule::dense_inputs},
    {"aten::cudnn_batch_norm", KernelRule::dense_inputs},
    {"aten::native_layer_norm", KernelRule::dense_inputs},
    {"aten::native_group_norm", KernelRule::dense_inputs},
    {"aten::_softmax", KernelRule::dense_inputs},
    {"aten::_log_softmax", KernelRule::dense_inputs},
    {"aten::native_batch_norm_backward", KernelRule::dense_inputs},
    {"aten::native_layer_norm_backward", KernelRule::dense_inputs},
    {"aten::native_group_norm_backward", KernelRule::dense_inputs},
    {"aten::_softmax_backward_data", KernelRule::softmax_backward},
    {"aten::_log_softmax_backward_data", KernelRule::dense_inputs},
    {"aten::embedding_dense_backward", KernelRule::dense_inputs},
    {"aten::max_pool2d_with_indices", KernelRule::dense_inputs},
    {"aten::avg_pool2d", KernelRule::dense_inputs},
    {"aten::glu", KernelRule::dense_inputs},
    {"aten::glu_backward", KernelRule::dense_inputs},
}};

inline std::int64_t pixels(const CallTensor& tensor) {
  core::Checked count = 1;
  for (std::size_t axis = 2; axis < tensor.shape.size(); ++axis) count *= tensor.shape[axis];
  return count.value().value_or(0);
}

/// cuDNN works in the format of the input or the weight; inputs in another are copied
/// (cudnn_conv_suggest_memory_format).
inline void copy_for_convolution(std::span<const CallTensor> operands, const CallTensor& input,
                                 const CallTensor& weight, std::vector<std::int64_t>& taken) {
  if (input.shape.size() != 4 || weight.shape.size() != 4) return;
  const bool depthwise = weight.shape[1] == 1 && input.shape[1] > 1 && input.dtype == core::DType::float32;
  const bool channels_last = (input.is_channels_last() || weight.is_channels_last()) && !depthwise;
  for (const CallTensor& tensor : operands) {
    const bool both = tensor.shape.size() == 4 && (tensor.shape[1] == 1 || pixels(tensor) == 1);
    const bool as_is =
        channels_last ? tensor.is_channels_last() || (tensor.is_contiguous() && both) : tensor.is_contiguous();
    if (!as_is) taken.push_back(tensor.bytes());
  }
}

/// Gradients of efficient attention: a copy of an output gradient that is not laid out as (batch, length, heads, size),
/// the sums of rows, and in 16 bits the query's gradient in float32.
inline void efficient_backward(std::span<const CallTensor> inputs, std::vector<std::int64_t>& taken) {
  if (inputs.size() < 2 || inputs[0].shape.size() != 4 || inputs[1].shape.size() != 4) return;
  const CallTensor& gradient = inputs[0];
  const CallTensor& query = inputs[1];
  constexpr std::array<std::size_t, 4> kByLength = {0, 2, 1, 3};
  if (!gradient.is_dense_in(kByLength)) taken.push_back(gradient.bytes());
  constexpr std::int64_t kFloat = 4;
  const auto& shape = query.shape;
  taken.push_back(core::bounded_product({shape[0], shape[1], shape[2], kFloat}));
  if (query.element_bytes == 2)
    taken.push_back(core::bounded_product({shape[0], shape[1], shape[2], shape[3], kFloat}));
}

/// Sums of rows and the query's gradient in float32, lengths rounded up to 128 and sizes to 32; keys and values of
/// fewer heads get gradients of as many heads as the query first.
inline void flash_backward(std::span<const CallTensor> inputs, std::vector<std::int64_t>& taken) {
  if (inputs.size() < 3 || inputs[1].shape.size() != 4 || inputs[2].shape.size() != 4) return;
  const auto& query = inputs[1].shape;
  const auto& key = inputs[2].shape;
  constexpr std::int64_t kFloat = 4;
  constexpr std::int64_t kRows = 128;
  constexpr std::int64_t kColumns = 32;
  const std::int64_t rows = core::rounded_up(query[2], kRows);
  taken.push_back(core::bounded_product({query[0], query[1], rows, kFloat}));
  taken.push_back(core::bounded_product({query[0], query[1], rows, core::rounded_up(query[3], kColumns), kFloat}));
  if (key[1] == query[1]) return;
  const std::int64_t repeated = core::bounded_product({query[0], query[1], key[2], query[3], inputs[1].element_bytes});
  taken.insert(taken.end(), 2, repeated);
}

}  // namespace kernel_memory_detail

inline KernelRule kernel_rule(std::string_view op) {
  op = op.substr(0, op.find('.'));
  for (const auto& row : kernel_memory_detail::kRules) {
    if (row.op == op) return row.rule;
  }
  return KernelRule::plain;
}

inline std::vector<std::int64_t> copies(KernelRule rule, std::span<const CallTensor> inputs) {
  namespace detail = kernel_memory_detail;
  std::vector<std::int64_t> taken;
  switch (rule) {
    case KernelRule::product:
      for (const CallTensor& matrix : inputs.last(std::min<std::size_t>(inputs.size(), 2))) {
        if (!matrix.is_matrix_as_is()) taken.push_back(matrix.bytes());
      }
      break;
    case KernelRule::convolution:
      if (inputs.size() >= 2) detail::copy_for_convolution(inputs.first(2), inputs[0], inputs[1], taken);
      break;
    case KernelRule::convolution_backward:
      if (inputs.size() >= 3) detail::copy_for_convolution(inputs.first(3), inputs[1], inputs[2], taken);
      break;
    case KernelRule::softmax_backward:
      if (!inputs.empty()) taken.push_back(inputs[0].bytes());
      [[fallthrough]];
    case KernelRule::dense_inputs:
      for (const CallTensor& tensor : inputs.first(std::min<std::size_t>(inputs.size(), 2))) {
        const bool as_is = tensor.shape.size() < 2 || tensor.is_contiguous() || tensor.is_channels_last();
        if (!as_is) taken.push_back(tensor.bytes());
      }
      break;
    case KernelRule::efficient_attention_backward: detail::efficient_backward(inputs, taken); break;
    case KernelRule::flash_attention_backward: detail::flash_backward(inputs, taken); break;
    case KernelRule::plain: break;
  }
  return taken;
}

inline std::optional<ConvolutionPart> convolution_part(KernelRule rule, int part, std::span<const CallTensor> inputs,
                                                       std::span<const CallTensor> outputs,
                                                       std::span<const std::int64_t> extra) {
  namespace detail = kernel_memory_detail;
  const bool backward = rule == KernelRule::convolution_backward;
  if (inputs.size() < (backward ? 3U : 2U) || (!backward && outputs.empty()) || extra.size() < 2) return std::nullopt;
  const CallTensor* input = &inputs[backward ? 1 : 0];
  const CallTensor& weight = inputs[backward ? 2 : 1];
  const CallTensor* output = backward ? inputs.data() : outputs.data();
  for (const CallTensor* tensor : {input, &weight, output}) {
    if (tensor->shape.size() < 3) return std::nullopt;
  }
  constexpr std::array<plan::Direction, 3> kDirections = {plan::Direction::forward, plan::Direction::data_gradient,
                                                          plan::Direction::weight_gradient};
  plan::Direction direction = kDirections[static_cast<std::size_t>(part)];
  const bool transposed = extra[0] != 0;
  if (transposed) {  // its forward pass is the data gradient of the convolution that it transposes
    std::swap(input, output);
    if (direction != plan::Direction::weight_gradient) {
      direction = direction == plan::Direction::forward ? plan::Direction::data_gradient : plan::Direction::forward;
    }
  }
  ConvolutionPart made;
  made.direction = direction;
  made.batch_size = input->shape[0];
  made.channels_last = input->is_channels_last() || output->is_channels_last();
  made.sizes.in_channels = input->shape[1];
  made.sizes.out_channels = output->shape[1];
  made.sizes.groups = std::max<std::int64_t>(extra[1], 1);
  made.sizes.input_pixels = detail::pixels(*input);
  made.sizes.output_pixels = detail::pixels(*output);
  made.sizes.kernel_elements = detail::pixels(weight);
  made.sizes.kernel = weight.shape.back();
  made.sizes.axes = static_cast<std::uint8_t>(std::min<std::size_t>(weight.shape.size() - 2, 3));
  made.sizes.dtype = input->dtype;
  return made;
}

}  // namespace gpumem::record
