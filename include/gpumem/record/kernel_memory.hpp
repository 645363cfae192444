// Input: a recorded call with the shapes of its tensors.
// Output: the memory that its kernel takes in addition to what PyTorch's dispatcher shows: copies that it makes of its
// inputs, and the convolution or product whose workspace device/workspace.hpp knows.
// Units: bytes.
// Source: torch 2.6, aten/src/ATen/native: Blas.cpp and cuda/Blas.cpp (prepare_matrix_for_cublas), cudnn/ConvShared.cpp
// (contiguous in the suggested format), transformers/cuda/attention_backward.cu, and the kernels that call contiguous()
// on their inputs (normalization, softmax, pooling, glu, embedding).
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpumem/ops/tape.hpp"
#include "gpumem/plan/step_plan.hpp"
#include "gpumem/record/call_shapes.hpp"

namespace gpumem::record {

/// Which rule an op's kernels follow.
enum class KernelRule : std::uint8_t {
  plain,                 ///< nothing in addition to what is recorded
  product,               ///< cuBLAS
  convolution,           ///< cuDNN
  convolution_backward,  ///< cuDNN
  dense_inputs,          ///< copies inputs that are not contiguous
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
