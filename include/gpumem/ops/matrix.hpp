// Input: the rows of a layer's input and the layer's parameters on the tape.
// Output: their product, recorded as torch.nn.functional.linear does it. Linear layers and attention share this.
#pragma once

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

/// How the rows of a layer are multiplied with its weight.
enum class Products : std::uint8_t {
  single,
  grouped,    ///< one of the products of a grouped one, which has no bias
  in_float8,  ///< of copies in eight bits
};

/// What a product holds in addition to its operands if it multiplies in eight bits: copies of its input, its weight
/// and, in backward, its output's gradient. Backward keeps the operands themselves.
/// Source: torchao 0.9, float8/float8_linear.py (matmul_with_hp_or_float8_args), each tensor with one scale; compiled,
/// as it is used, so that making a copy takes nothing more.
inline std::array<TensorSize, 3> float8_copies(const Tape& tape, TensorId input, std::span<const TensorId> parameters,
                                               const TensorSize& output) {
  const TensorSize weight = parameters.empty() ? TensorSize{} : tape.tensor(parameters[0]).size;
  constexpr core::DType kByte = core::DType::uint8;
  return {tape.tensor(input).size.as(kByte), weight.as(kByte), output.as(kByte)};
}

/// y = x A^T + b on a tensor of `rank` axes, the last of which is multiplied. `parameters`: the weight, and the bias if
/// there is one. `width`: of the input's last axis. Kept: the input, if the weight is trained. The gradients of input,
/// weight and bias come in this order.
///
/// PyTorch 1.13 (Backend::cpu) takes aten::addmm for matrices, and for three axes that lie in order; elsewhere it
/// multiplies and then adds the bias out of place. Later releases fold the axes and take addmm throughout.
inline TensorId linear(Tape& tape, TensorId input, const TensorSize& output, std::span<const TensorId> parameters,
                       std::size_t rank, bool bias, std::int64_t width, Products products = Products::single) {
  const bool ordered = tape.tensor(input).layout.dense();
  const bool older = tape.backend() == Backend::cpu;
  const bool rows = older && rank <= 2;
  const TensorId dense = rows ? input : contiguous(tape, input);
  const bool adds_apart = older && parameters.size() == 2 && rank > 2 && !(rank == 3 && ordered);
  const bool in_float8 = products == Products::in_float8;
  const std::array<TensorSize, 3> copies = float8_copies(tape, dense, parameters, output);
  const TensorId product = tape.record({.inputs = {&dense, 1},
                                        .output = output,
                                        .saved_for_weight = 1,
                                        .scratch = std::span(copies).first(in_float8 ? 2 : 0),
                                        .backward_scratch = std::span(copies).first(in_float8 ? 3 : 0),
                                        .parameters = adds_apart ? parameters.first(1) : parameters,
                                        .library = products == Products::grouped ? Library::grouped_gemm
                                                   : bias                        ? Library::gemm_bias
                                                                                 : Library::gemm,
                                        .multiply_adds = output.times(width),
                                        .autocast = Autocast::lower});
  if (!adds_apart) return product;
  return tape.record({.inputs = {&product, 1},
                      .output = output,
                      .parameters = parameters.last(1),
                      .gradient = Gradient::passed,
                      .autocast = Autocast::lower});
}

/// How sequence parallel ranks share what a linear layer reads or leaves. At most one of them is above 1.
struct TokenSharing {
  std::int64_t gathered = 1;   ///< the input is one of this many parts, which are gathered before the product
  std::int64_t scattered = 1;  ///< the output is one of this many parts of the sum of all ranks' products
};

/// linear() of rows whose tokens are shared. The rank keeps only its own part of the input: backward gathers it again
/// for the weight's gradient, in addition to the gradient of all parts, which are summed and scattered.
/// Source: Megatron-LM core r0.12, core/tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication and
/// RowParallelLinear; TransformerEngine 2.1, pytorch/module/layernorm_linear.py.
inline TensorId shared_linear(Tape& tape, TensorId input, const TensorSize& output,
                              std::span<const TensorId> parameters, const TokenSharing& sharing, bool bias,
                              std::int64_t width) {
  const TensorId dense = contiguous(tape, input);
  const core::DType type = tape.computing_type({.inputs = {&dense, 1}, .autocast = Autocast::lower});
  const TensorSize all = tape.tensor(dense).size.times(sharing.gathered).as(type);
  const TensorSize summed = output.times(sharing.scattered).as(type);
  const bool gathers = sharing.gathered > 1;
  const std::array<TensorSize, 2> forward = {gathers ? all : summed, all};
  const std::array<TensorSize, 2> backward = {gathers ? all : summed, all};
  return tape.record({.inputs = {&dense, 1},
                      .output = output,
                      .saved_for_weight = 1,
                      .scratch = std::span(forward).first(1),
                      .backward_scratch = std::span(backward).first(gathers ? 2 : 1),
                      .parameters = parameters,
                      .library = bias ? Library::gemm_bias : Library::gemm,
                      .multiply_adds = output.times(sharing.scattered).times(width),
                      .autocast = Autocast::lower});
}

/// A tensor whose first two axes are exchanged, as a view; its gradient is copied into the order of the memory.
inline TensorId batch_second(Tape& tape, TensorId rows) {
  const std::array<std::size_t, 2> exchanged = {1, 0};
  return tape.record({.inputs = {&rows, 1},
                      .output = tape.tensor(rows).size.as(core::DType::float32),
                      .kind = Output::view,
                      .layout = Layout{}.permuted(exchanged)});
}

}  // namespace gpumem::ops
