// Input: the rows of a layer's input and the layer's parameters on the tape.
// Output: their product, recorded as torch.nn.functional.linear does it. Linear layers and attention share this.
#pragma once

#include <array>
#include <vector>

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
                                        .autocast = Autocast::lower,
                                        .folds = rank > 2});
  if (!adds_apart) return product;
  return tape.record({.inputs = {&product, 1},
                      .output = output,
                      .parameters = parameters.last(1),
                      .gradient = Gradient::passed,
                      .autocast = Autocast::lower});
}

/// How sequence parallel ranks share what a linear layer reads or leaves. At most one of them is above 1.
struct TokenSharing {
  std::int64_t gathered = 1;    ///< the input is one of this many parts, which are gathered before the product
  std::int64_t scattered = 1;   ///< the output is one of this many parts of the sum of all ranks' products
  bool scatters_apart = false;  ///< by a call that autograd and checkpoints see: DTensor's redistribution
};

/// DTensor's sum of all ranks' products, of which each keeps its tokens. What is sent is copied into order first, and
/// so is what backward gathers. Source: PyTorch 2.6, distributed/_functional_collectives.py: reduce_scatter_tensor,
/// all_gather_tensor; distributed/tensor/_redistribute.py.
inline TensorId scatter_sum(Tape& tape, TensorId product, const TensorSize& output) {
  const TensorSize all = tape.tensor(product).size;
  return tape.record({.inputs = {&product, 1},
                      .output = output.as(all.dtype),
                      .scratch = {&all, 1},
                      .backward_scratch = {&all, 1},
                      .reduce_scatters = true});
}

/// linear() of rows whose tokens are shared. The rank keeps only its own part of the input: backward gathers it again
/// for the weight's gradient, in addition to the gradient of all parts, which are summed and scattered.
/// Source: Megatron-LM core r0.12, core/tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication and
/// RowParallelLinear; TransformerEngine 2.1, pytorch/module/layernorm_linear.py.
inline TensorId shared_linear(Tape& tape, TensorId input, const TensorSize& output,
                              std::span<const TensorId> parameters, const TokenSharing& sharing, bool bias,
                              std::int64_t width) {
  if (sharing.scatters_apart) {
    const TensorSize summed = output.times(sharing.scattered);
    return scatter_sum(tape, linear(tape, input, summed, parameters, 3, bias, width), output);
  }
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

// Input: a linear layer whose frozen weight is quantised, or lies in the host's memory.
// Output: what it stores between calls, and its call: the input times the weight. The weight is dequantised, or copied
// from the host, for each product, in forward and in backward.
// Units: elements of each type.
//
// Source: bitsandbytes 0.45: functional.quantize_4bit (blocks of 64, nested in blocks of 256), dequantize_4bit,
// autograd/_functions.py: MatMul4Bit keeps no input (before 0.43.2 it did, #1270); MatMul8bitLt keeps its input, and
// multiplies in int8 forward, so that it dequantises the weight only in backward. Columns of outliers, which the data
// decide, are left out. AutoGPTQ 0.7: qlinear_tritonv2.QuantLinear and triton_utils/dequant.py: a group is 128 rows;
// dequant248 makes the weight whole in both directions, and the bias is added apart.
// SDNQ 2026-08: training/layers/linear/linear_int8 (INT8MatmulBackward, int8_matmul_backward), linear_int8_dynamic,
// compiled as it is by default; below 32 rows training/layers/linear/forward.py (QuantizedLinearBackward).
// torchao 2026-08: quantization/quantize_/workflows/float8/float8_tensor.py (_float8_addmm_impl), quant_primitives.py
// (_choose_scale_float8, _quantize_affine_float8, _dequantize_affine_float8), which autograd records call by call; the
// product's backward is SimpleTuner 2026-08's, helpers/training/quantisation/torchao_workarounds.py
// (_ScaledMmInputGrad).
// RamTorch 2025-10: ramtorch/modules/linear.py (BouncingLinearFn), and SimpleTuner 2026-08's copy of it, which makes
// quantised weights whole on the GPU (helpers/ramtorch/modules/linear.py: _dense_weight_for_linear).

namespace quantized_detail {

using model::Quantization;

inline constexpr std::int64_t kNf4Block = 64;
inline constexpr std::int64_t kNestedBlock = 256;  ///< scales of blocks that share a scale of their own
inline constexpr std::int64_t kNf4Levels = 16;
inline constexpr std::int64_t kGptqGroup = 128;
inline constexpr std::int64_t kGptqInAWord = 8;

/// `count` / `by`, upwards. Counts are checked when they are summed.
inline core::Checked parts_of(core::Checked count, std::int64_t by) {
  const std::int64_t whole = count.value().value_or(0);
  return count.valid() ? core::Checked(whole / by + (whole % by == 0 ? 0 : 1)) : count;
}

struct Sides {
  std::int64_t in = 0;
  std::int64_t out = 0;

  [[nodiscard]] core::Checked weights() const { return core::Checked(in) * core::Checked(out); }
};

inline void hold_nf4(Tape& tape, const Sides& sides, bool nested) {
  const core::Checked scales = parts_of(sides.weights(), kNf4Block);
  tape.add_parameter(parts_of(sides.weights(), 2), false, true, 0, core::DType::uint8);
  tape.add_buffer({scales, 0, nested ? core::DType::uint8 : core::DType::float32});
  tape.add_buffer({kNf4Levels, 0, core::DType::float32});
  if (!nested) return;
  tape.add_buffer({parts_of(scales, kNestedBlock), 0, core::DType::float32});
  tape.add_buffer({1, 0, core::DType::float32});  // the offset of the scales
}

inline void hold_int8(Tape& tape, const Sides& sides) {
  tape.add_parameter(sides.weights(), false, true, 0, core::DType::int8);
  tape.add_buffer({sides.out, 0, core::DType::float32});
}

inline void hold_gptq(Tape& tape, const Sides& sides) {
  const core::Checked groups = parts_of(sides.in, kGptqGroup);
  tape.add_parameter(parts_of(sides.in, kGptqInAWord) * core::Checked(sides.out), false, true, 0, core::DType::int32);
  tape.add_buffer({groups * parts_of(sides.out, kGptqInAWord), 0, core::DType::int32});  // the zeros
  tape.add_buffer({groups * core::Checked(sides.out), 0, core::DType::float16});         // the scales
  tape.add_buffer({sides.in, 0, core::DType::int32});                                    // each row's group
}

/// torchao's scales: one of the weight, or one of each of its rows.
inline void hold_float8(Tape& tape, const Sides& sides, bool by_row) {
  tape.add_parameter(sides.weights(), false, true, 0, core::DType::uint8);
  tape.add_buffer({by_row ? sides.out : 1, 0, core::DType::float32});
}

inline void hold(Tape& tape, const Sides& sides, Quantization quantization) {
  switch (quantization) {
    case Quantization::nf4: return hold_nf4(tape, sides, false);
    case Quantization::nf4_double:
    case Quantization::nf4_dynamic:
    case Quantization::nf4_experts:
    case Quantization::nf4_linear_experts: return hold_nf4(tape, sides, true);
    case Quantization::int8: return hold_int8(tape, sides);
    case Quantization::gptq_4bit: return hold_gptq(tape, sides);
    case Quantization::int8_sdnq: return hold_int8(tape, sides);
    case Quantization::fp8_torchao:
    case Quantization::fp8wo_torchao: return hold_float8(tape, sides, quantization == Quantization::fp8wo_torchao);
    case Quantization::none:
    case Quantization::float8:
    case Quantization::float8_gather:
    case Quantization::mxfp8:
    case Quantization::nvfp4:
    case Quantization::float8_params: return;
  }
}

/// The weight made whole; with nested scales these as well, and first in float16 where it was quantised from that.
inline std::vector<TensorSize> whole_weight(const Sides& sides, core::DType type, bool nested, bool halved = false) {
  std::vector<TensorSize> made = {{sides.weights(), 0, type}};
  if (halved && type != core::DType::float16) made.push_back({sides.weights(), 0, core::DType::float16});
  if (nested) made.push_back({parts_of(sides.weights(), kNf4Block), 0, core::DType::float32});
  return made;
}

/// MatMul8bitLt: the input in int8 with a scale a row, and the product in int32, which a kernel turns into float16.
inline TensorId record_int8(const OpCall& call, Tape& tape, const Sides& sides) {
  const TensorId input = call.tensors[0];
  const core::DType type = tape.tensor(input).size.dtype;
  std::vector<TensorSize> scratch = {tape.tensor(input).size.as(core::DType::int8), call.size.as(core::DType::int32)};
  if (type != core::DType::float16) scratch.push_back(call.size.as(core::DType::float16));
  const std::vector<TensorSize> whole = whole_weight(sides, type, false);
  return tape.record({.inputs = {&input, 1},
                      .output = call.size,
                      .saved_inputs = 1,
                      .scratch = scratch,
                      .backward_scratch = whole,
                      .parameters = tape.layer_parameters().first(1),
                      .library = Library::gemm,
                      .multiply_adds = call.size.times(sides.in)});
}

/// One product of rows with a weight of four bits, which is on the tape already. `bias`: it is added there.
inline TensorId four_bit_product(Tape& tape, TensorId rows, const TensorSize& output, TensorId weight,
                                 const model::WeightStorage& held, const Sides& sides, bool bias) {
  const core::DType type = tape.product_dtype();
  const TensorId input = tape.cast(rows, type);
  const auto whole = whole_weight(sides, type, held.quantization == Quantization::nf4_double, held.older_four_bits);
  return tape.record({.inputs = {&input, 1},
                      .output = output,
                      .saved_inputs = held.older_four_bits ? 1U : 0U,
                      .scratch = whole,
                      .backward_scratch = whole,
                      .parameters = {&weight, 1},
                      .library = bias ? Library::gemm_bias : Library::gemm,
                      .multiply_adds = output.times(sides.in),
                      .autocast = Autocast::lower,
                      .keeps_until_graph_ends = held.older_four_bits});
}

inline TensorId record_four_bits(const OpCall& call, Tape& tape, const Sides& sides, bool bias) {
  const core::DType given = tape.tensor(call.tensors[0]).size.dtype;
  const bool gptq = call.weights.quantization == Quantization::gptq_4bit;
  const TensorId weight = tape.layer_parameters()[0];
  const TensorId product =
      four_bit_product(tape, call.tensors[0], call.size, weight, call.weights, sides, bias && !gptq);
  if (!gptq) return tape.cast(product, given);
  return bias ? elementwise(tape, product) : product;
}

/// The weight made whole in float32, scaled there, and cast: all three are held at once.
inline std::vector<TensorSize> whole_float8_weight(const Sides& sides, core::DType type) {
  const TensorSize full{sides.weights(), 0, core::DType::float32};
  return {full, full, full.as(type)};
}

/// The rows that a product multiplies, where the layer sees one row a sample: SDNQ makes the weight whole for so few.
inline bool few_rows(const OpCall& call, const Sides& sides) {
  constexpr std::int64_t kFewest = 32;
  const auto elements = call.size.elements.value();
  return elements && call.size.batch_power <= 1 && *elements < kFewest * sides.out;
}

/// QuantizedLinearBackward: the weight made whole, which backward keeps if a gradient flows back.
inline TensorId record_sdnq_whole(const OpCall& call, Tape& tape, const Sides& sides) {
  const TensorId input = call.tensors[0];
  const TensorSize full{sides.weights(), 0, core::DType::float32};
  const core::DType type = tape.product_dtype();
  const TensorSize whole = full.as(type);
  const bool kept = tape.tensor(input).requires_grad;
  const std::array<TensorSize, 2> made = {full, whole};
  return tape.record({.inputs = {&input, 1},
                      .output = call.size,
                      .extras = {&whole, kept ? 1U : 0U},
                      .extras_first = true,
                      .scratch = made,
                      .parameters = tape.layer_parameters(),
                      .library = Library::gemm,
                      .multiply_adds = call.size.times(sides.in),
                      .autocast = Autocast::lower});
}

/// INT8MatmulBackward: keeps the weight alone. Forward rotates its input and copies it to int8; backward makes the
/// weight whole in float32, copies that and the gradient to int8, and rotates what it gets. The output has the input's
/// type: autocast does not see the product.
inline TensorId record_sdnq(const OpCall& call, Tape& tape, const Sides& sides) {
  if (few_rows(call, sides)) return record_sdnq_whole(call, tape, sides);
  const TensorId input = contiguous(tape, call.tensors[0]);
  const TensorSize read = tape.tensor(input).size;
  const core::DType type = read.dtype;
  const TensorSize rotated = read.as(tape.product_dtype());
  const TensorId rows = tape.record(
      {.inputs = {&input, 1}, .output = read.as(core::DType::int8), .scratch = {&rotated, 1}, .differentiable = false});
  const TensorSize whole{sides.weights(), 0, core::DType::float32};
  const std::array<TensorSize, 4> backward = {whole, whole.as(core::DType::int8), call.size.as(core::DType::int8),
                                              read.as(type)};
  const std::array<TensorId, 2> inputs = {input, rows};
  return tape.record({.inputs = inputs,
                      .output = call.size,
                      .backward_scratch = backward,
                      .parameters = tape.layer_parameters(),
                      .no_gradient = 2,
                      .library = Library::gemm,
                      .multiply_adds = call.size.times(sides.in)});
}

/// Float8Tensor.from_hp() of rows: their largest figure, then the rows in float32 by it, clamped, and cast. Autograd
/// keeps the absolute figures, the rows in float32 and the scaled rows; of the scale's gradient, division holds four
/// tensors at once.
inline TensorId record_float8_rows(Tape& tape, TensorId input) {
  const TensorSize read = tape.tensor(input).size;
  const TensorSize full = read.as(core::DType::float32);
  const TensorSize mask = read.as(core::DType::boolean);
  const TensorId figures =
      tape.record({.inputs = {&input, 1}, .output = read, .saved_inputs = 1, .backward_scratch = {&read, 1}});
  const std::array<TensorSize, 2> largest = {mask, read};
  const TensorId scale = tape.record({.inputs = {&figures, 1},
                                      .output = {1, 0, read.dtype},
                                      .saved_inputs = 1,
                                      .saves_output = true,
                                      .backward_scratch = largest});
  const std::array<TensorId, 2> divided = {tape.cast(input, core::DType::float32),
                                           tape.cast(scale, core::DType::float32)};
  const std::array<TensorSize, 4> quotients = {full, full, full, full};
  const TensorId scaled =
      tape.record({.inputs = divided, .output = full, .saved_inputs = 3, .backward_scratch = quotients});
  const std::array<TensorSize, 3> bounds = {mask, mask, mask};
  const TensorId clamped =
      tape.record({.inputs = {&scaled, 1}, .output = full, .saved_inputs = 1, .backward_scratch = bounds});
  return tape.record({.inputs = {&clamped, 1}, .output = read.as(core::DType::uint8)});
}

/// The rows' copy in float8 times the weight, in the rows' own type: autocast does not see the product. A bias in
/// float32 is added apart.
inline TensorId record_float8_dynamic(const OpCall& call, Tape& tape, const Sides& sides, bool bias) {
  const TensorId input = call.tensors[0];
  const TensorSize read = tape.tensor(input).size;
  const core::DType type = read.dtype;
  const TensorId rows = record_float8_rows(tape, input);
  const bool apart = bias && type == core::DType::float32;
  std::vector<TensorSize> backward = whole_float8_weight(sides, type);
  backward.push_back(read);
  const std::span<const TensorId> parameters = tape.layer_parameters();
  const std::array<TensorId, 2> inputs = {rows, input};  // the second one lives that long, and tells the type
  const TensorId product = tape.record({.inputs = inputs,
                                        .output = call.size,
                                        .backward_scratch = backward,
                                        .parameters = apart ? parameters.first(1) : parameters,
                                        .no_gradient = 2,
                                        .library = Library::gemm,
                                        .multiply_adds = call.size.times(sides.in)});
  return apart ? elementwise(tape, product) : product;
}

/// torch.matmul() with the weight made whole, which it keeps if a gradient flows back. The bias is added apart.
inline TensorId record_float8_weight(const OpCall& call, Tape& tape, const Sides& sides, bool bias) {
  const core::DType type = tape.product_dtype();
  const TensorId input = tape.cast(contiguous(tape, call.tensors[0]), type);
  const bool kept = tape.tensor(input).requires_grad;
  const TensorSize full{sides.weights(), 0, core::DType::float32};
  const TensorSize whole = full.as(type);
  const std::array<TensorSize, 3> made = {full, full, whole};
  const TensorId product = tape.record({.inputs = {&input, 1},
                                        .output = call.size,
                                        .extras = {&whole, kept ? 1U : 0U},
                                        .extras_first = true,
                                        .scratch = std::span(made).first(kept ? 2 : 3),
                                        .parameters = tape.layer_parameters().first(1),
                                        .library = Library::gemm,
                                        .multiply_adds = call.size.times(sides.in),
                                        .autocast = Autocast::lower});
  return bias ? elementwise(tape, product) : product;
}

/// What crosses from the host: the weight as it is held there.
inline TensorSize weight_on_host(const Sides& sides, const model::WeightStorage& held, core::DType own) {
  switch (held.quantization) {
    case Quantization::int8_sdnq: return {sides.weights(), 0, core::DType::int8};
    case Quantization::fp8_torchao:
    case Quantization::fp8wo_torchao: return {sides.weights(), 0, core::DType::uint8};
    default: return {sides.weights(), 0, held.dtype.value_or(own)};
  }
}

/// What is made of its copy on the GPU before the product.
inline std::vector<TensorSize> made_of_copy(const TensorSize& copy, Quantization quantization, core::DType type) {
  const TensorSize full = copy.as(core::DType::float32);
  if (quantization == Quantization::int8_sdnq) return {full, full.as(type)};
  if (quantization != Quantization::none) return {full, full, full.as(type)};
  if (copy.dtype == type) return {};
  return {copy.as(type)};
}

}  // namespace quantized_detail

/// BouncingLinearFn: keeps its input as it came, whatever autocast makes of it, and no weight. SimpleTuner fetches the
/// weight of the module that is registered next ahead of time (add_ramtorch_prefetch_hooks): if that one has run, it
/// stays unused on the GPU until the next step.
inline TensorId bounced_linear(const OpCall& call, Tape& tape, std::int64_t in, std::int64_t out, bool bias) {
  const TensorId given = call.tensors[0];
  const TapeTensor& read = tape.tensor(given);
  const TensorId kept = tape.record({.inputs = {&given, 1},
                                     .output = read.size,
                                     .kind = Output::view,
                                     .layout = read.layout,
                                     .saved_inputs = 1,
                                     .gradient = Gradient::passed});
  const core::DType type = tape.product_dtype();
  const TensorId rows = tape.cast(kept, type);
  const TensorSize copy = quantized_detail::weight_on_host({in, out}, call.weights, tape.dtype());
  const std::vector<TensorSize> whole = quantized_detail::made_of_copy(copy, call.weights.quantization, type);
  if (call.attributes.flag("out_of_order", false)) tape.add_buffer(copy);
  std::vector<TensorSize> backward = whole;
  if (rows != kept) backward.push_back(tape.tensor(rows).size);
  return tape.record({.inputs = {&rows, 1},
                      .output = call.size,
                      .scratch = whole,
                      .backward_scratch = backward,
                      .host_weight = copy,
                      .library = bias ? Library::gemm_bias : Library::gemm,
                      .multiply_adds = call.size.times(in)});
}

/// Puts the weight of a layer on the tape as it is held, and its bias, which is not quantised.
inline void add_quantized_parameters(const OpCall& call, Tape& tape, std::int64_t in, std::int64_t out, bool bias) {
  quantized_detail::hold(tape, {in, out}, call.weights.quantization);
  if (bias) tape.add_parameter(out, false, is_frozen(call, 1), 0, call.weights.dtype);
}

/// Rows times a weight of four bits that is on the tape, in the type of the rows.
inline TensorId quantized_product(Tape& tape, TensorId rows, const TensorSize& output, TensorId weight,
                                  const model::WeightStorage& held, std::int64_t in, std::int64_t out, bool bias) {
  const core::DType given = tape.tensor(rows).size.dtype;
  return tape.cast(quantized_detail::four_bit_product(tape, rows, output, weight, held, {in, out}, bias), given);
}

/// A weight of four bits that no linear layer has, made whole where it is read; what reads it keeps it. Source:
/// bitsandbytes 2026-08, nn/parametrize.py (Bnb4bitParametrization), whose cache ends with the module's forward().
/// Where experts are linear layers, it leaves as it is held: each product makes one expert's part whole.
inline TensorId whole_parameter(const OpCall& call, Tape& tape) {
  const quantized_detail::Sides sides{1, call.parameters};
  add_quantized_parameters(call, tape, sides.in, sides.out, false);
  if (call.weights.quantization == model::Quantization::nf4_linear_experts) return tape.layer_parameters()[0];
  const core::DType type = call.weights.dtype.value_or(tape.dtype());
  const TensorSize scales{quantized_detail::parts_of(sides.weights(), quantized_detail::kNf4Block), 0,
                          core::DType::float32};
  return tape.record({.output = {sides.weights(), 0, type}, .scratch = {&scales, 1}, .differentiable = false});
}

/// Records a linear layer with `in` x `out` quantised weights; its bias is not.
inline TensorId quantized_linear(const OpCall& call, Tape& tape, std::int64_t in, std::int64_t out, bool bias) {
  const quantized_detail::Sides sides{in, out};
  add_quantized_parameters(call, tape, in, out, bias);
  switch (call.weights.quantization) {
    case model::Quantization::int8: return quantized_detail::record_int8(call, tape, sides);
    case model::Quantization::int8_sdnq: return quantized_detail::record_sdnq(call, tape, sides);
    case model::Quantization::fp8_torchao: return quantized_detail::record_float8_dynamic(call, tape, sides, bias);
    case model::Quantization::fp8wo_torchao: return quantized_detail::record_float8_weight(call, tape, sides, bias);
    default: return quantized_detail::record_four_bits(call, tape, sides, bias);
  }
}

}  // namespace gpumem::ops
