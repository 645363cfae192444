// Enters: the rows of a layer's input and the layer's parameters on the tape. Leaves: their product, recorded as
// torch.nn.functional.linear does it. Shared by linear layers and attention.
#pragma once

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

/// y = x A^T + b on a tensor of `rank` axes, the last of which is multiplied. `parameters`: the weight, and the bias if
/// there is one. `width`: of the input's last axis. Kept: the input, if the weight is trained. The gradients of input,
/// weight and bias come in this order.
///
/// PyTorch 1.13 (Backend::cpu) takes aten::addmm for matrices, and for three axes that lie in order; elsewhere it
/// multiplies and then adds the bias out of place. Later releases fold the axes and take addmm throughout.
inline TensorId linear(Tape& tape, TensorId input, const TensorSize& output, std::span<const TensorId> parameters,
                       std::size_t rank, bool bias, std::int64_t width) {
  const bool ordered = tape.tensor(input).layout.dense();
  const bool older = tape.backend() == Backend::cpu;
  const bool rows = older && rank <= 2;
  const TensorId dense = rows ? input : contiguous(tape, input);
  const bool adds_apart = older && parameters.size() == 2 && rank > 2 && !(rank == 3 && ordered);
  const TensorId product = tape.record({.inputs = {&dense, 1},
                                        .output = output,
                                        .saved_for_weight = 1,
                                        .parameters = adds_apart ? parameters.first(1) : parameters,
                                        .library = bias ? Library::gemm_bias : Library::gemm,
                                        .multiply_adds = output.times(width),
                                        .autocast = Autocast::lower});
  if (!adds_apart) return product;
  return tape.record({.inputs = {&product, 1},
                      .output = output,
                      .parameters = parameters.last(1),
                      .gradient = Gradient::passed,
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
