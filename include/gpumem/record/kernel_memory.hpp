// Input: a recorded call with the shapes of its tensors.
// Output: the memory that its kernel takes in addition to what PyTorch's dispatcher shows: copies that it makes of its
// inputs, and the convolution or product whose workspace device/workspace.hpp knows.
// Units: bytes.
// Source: torch 2.6, aten/src/ATen/native: Blas.cpp and cuda/Blas.cpp (prepare_matrix_for_cublas), cudnn/ConvShared.cpp
// (contiguous in the suggested format), transformers/cuda/attention_backward.cu, and the kernels that call contiguous()
// on their inputs (normalization, softmax, pooling, glu, embedding); cuda/SoftMax.cu (softmax_backward_cuda_out).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

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

}  // namespace gpumem::record
