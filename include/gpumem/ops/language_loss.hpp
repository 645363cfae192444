// Input: what a language model's head reads, and its parameters on the tape.
// Output: head and cross entropy, recorded in the forms that take less memory than whole logits.
// Units: elements.
// Source: Liger-Kernel 0.5, ops/fused_linear_cross_entropy.py and ops/cross_entropy.py; unsloth,
// kernels/cross_entropy_loss.py; unsloth_zoo 2025-08 to 2026-08, fused_losses/cross_entropy_loss.py; PyTorch 2.6,
// _functorch/partitioners.py (torch.compile); litgpt, model.py (lm_head_chunk_size) and utils.py
// (chunked_cross_entropy); torchtune 0.4, modules/loss/ce_chunked_output_loss.py.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "gpumem/ops/matrix.hpp"

namespace gpumem::ops {

/// A head without activation after it, and the rows whose loss counts.
struct LanguageHead {
  TensorId hidden = kNoTensor;  ///< what the head reads: [N, S, width]
  core::Shape shape = {};       ///< of it
  TensorSize rows = {};         ///< tokens that have a label, one figure each
  std::int64_t width = 0;
  std::int64_t vocabulary = 0;
  std::span<const TensorId> parameters = {};  ///< weight, and bias if there is one
  model::WeightStorage weights = {};          ///< how the weight is held
};

/// How a chunked loss goes about it.
struct ChunkedLoss {
  std::int64_t positions = 1;    ///< of a chunk
  bool hands_out_float = false;  ///< the model's logits are copied in float32 before the loss begins
  bool upcasts = false;          ///< the loss casts each chunk when its turn comes
  /// The vocabulary, where the loss of a chunk is compiled (torchtune 0.4, training/_compile.py: compile_loss); else 0.
  std::int64_t compiled = 0;
};

namespace language_loss_detail {

inline constexpr TensorSize kScalar = {1, 0, core::DType::float32};

/// log_softmax of rows in their own type, and nll_loss of it.
inline TensorId cross_entropy_of(Tape& tape, TensorId logits) {
  const TensorId log = elementwise(tape, logits, 0, true);
  return tape.record({.inputs = {&log, 1}, .output = kScalar, .saved_inputs = 1, .autocast = Autocast::full});
}

inline bool trains(const Tape& tape, TensorId id) { return tape.tensor(id).requires_grad; }

}  // namespace language_loss_detail

/// One kernel that writes the gradient of the logits over them: kept are the logits, a loss and a log-sum a row.
inline TensorId record_fused_cross_entropy(Tape& tape, TensorId logits, const TensorSize& rows) {
  const TensorId dense = contiguous(tape, logits);
  const std::array<TensorSize, 2> figures = {rows.as(core::DType::float32), rows.as(core::DType::float32)};
  return tape.record({.inputs = {&dense, 1},
                      .output = language_loss_detail::kScalar,
                      .saved_inputs = 1,
                      .extras = figures,
                      .gradient = Gradient::over_input});
}

/// torch.compile of the loss function: the cast to float32, the shift and log_softmax are fused with the reductions
/// that read them, and backward computes them again. Kept are the logits, as an input, and of each row its maximum and
/// the logarithm of its sum. All that has the size of the logits is their gradient, of their type and in memory of its
/// own: an input is not written to. Source: PyTorch 2.6, _functorch/partitioners.py (solve_min_cut: reductions are
/// kept, elementwise calls that only fused ones read are computed again); torchtitan 2025-06, components/loss.py.
inline TensorId record_compiled_cross_entropy(Tape& tape, TensorId logits, const TensorSize& rows) {
  const std::array<TensorSize, 2> figures = {rows.as(core::DType::float32), rows.as(core::DType::float32)};
  return tape.record(
      {.inputs = {&logits, 1}, .output = language_loss_detail::kScalar, .saved_inputs = 1, .extras = figures});
}

/// The flag of a cross entropy of a DTensor whose vocabulary ranks share (torchtitan's loss_parallel()).
inline constexpr std::string_view kLossParallel = "loss_parallel";
/// The op that has it.
inline constexpr std::string_view kLossParallelOp = "cross_entropy";

/// Its log_softmax is written out: the logits less their maximum, the exponentials of these, and the result, which is
/// kept. Backward writes out the gradient too: zeros with -1 at the labels, the exponentials, and their sum. Source:
/// PyTorch 2.6, torch/distributed/tensor/parallel/loss.py: _log_softmax(), _nll_loss_and_log_softmax_backward().
inline TensorId record_loss_parallel(Tape& tape, TensorId logits) {
  const TensorId wide = tape.cast(contiguous(tape, logits), core::DType::float32);
  const std::array<TensorSize, 2> passing = {tape.tensor(wide).size, tape.tensor(wide).size};
  const TensorId log = tape.record({.inputs = {&wide, 1},
                                    .output = tape.tensor(wide).size,
                                    .saves_output = true,
                                    .scratch = std::span(passing).first(1),
                                    .gradient = Gradient::passed});
  return tape.record(
      {.inputs = {&log, 1}, .output = language_loss_detail::kScalar, .saved_inputs = 1, .backward_scratch = passing});
}

/// The flag of a cross entropy that is Megatron's.
inline constexpr std::string_view kVocabularyParallel = "vocabulary_parallel";

/// Megatron's cross entropy of logits whose vocabulary ranks share, or one has: the softmax is in the memory of the
/// float32 logits, is kept, and the gradient is written over it. `fused`: Megatron's own fused form, which
/// exponentiates into a second tensor. TransformerEngine's kernel does all of it in the memory of the logits in lower
/// precision. Source: Megatron-LM core r0.12, core/tensor_parallel/cross_entropy.py,
/// core/fusions/fused_cross_entropy.py; TransformerEngine 2.1, common/triton/cross_entropy.py.
inline TensorId record_vocabulary_parallel(Tape& tape, TensorId logits, bool fused) {
  const TensorId dense = contiguous(tape, logits);
  const std::array<TensorSize, 1> second = {tape.tensor(dense).size};
  const bool makes_second = fused && tape.tensor(dense).size.dtype == core::DType::float32;
  return tape.record({.inputs = {&dense, 1},
                      .output = language_loss_detail::kScalar,
                      .saved_inputs = 1,
                      .scratch = std::span(second).first(makes_second ? 1 : 0),
                      .gradient = Gradient::over_input});
}

namespace language_loss_detail {

/// The parts of the logits that a fused loss has at a time. Liger's have as many rows as make them as large as its
/// input; the name of one chunk's logits lives until the next one's are made. Unsloth's are compiled: of a chunk there
/// are its logits and their gradient, in the type of the product, and nothing of their size in float32 (as PyTorch
/// 2.6's Inductor was seen to plan them: TorchInductor's buffers of torch.func.grad_and_value of the chunk).
inline void add_chunks(const LanguageHead& head, core::DType type, const Chunks& asked,
                       std::vector<TensorSize>& scratch) {
  TensorSize chunk = head.rows.times(head.vocabulary).as(type);
  if (asked.target > 0) {
    chunk.chunks = asked;
    scratch.insert(scratch.end(), 2, chunk);
    return;
  }
  const std::int64_t chunks = std::max<std::int64_t>((head.vocabulary + head.width - 1) / head.width, 1);
  chunk.elements = chunk.elements.value().value_or(0) / chunks;
  scratch.insert(scratch.end(), chunks > 1 ? 2 : 1, chunk);
}

/// All hidden states, or a copy of those whose tokens have a label.
inline TensorId counted_rows(Tape& tape, const LanguageHead& head) {
  const TensorSize counted = head.rows.times(head.width);
  if (counted.elements.value() == tape.tensor(head.hidden).size.elements.value()) return head.hidden;
  const TensorId part = tape.record(
      {.inputs = {&head.hidden, 1}, .output = counted, .kind = Output::view, .layout = {Layout::kInOrder, true}});
  return contiguous(tape, part);
}

}  // namespace language_loss_detail

/// In what chunks Unsloth's loss goes about the tokens; none for other losses. One for all, where nobody said what is
/// free on the GPU.
inline Chunks chunks_of(const model::LossForm& form) {
  constexpr std::int64_t kMost = INT32_MAX;
  if (!model::sizes_chunks(form.kind)) return {};
  return {static_cast<std::int32_t>(form.count > 0 ? std::min(form.count, kMost) : kMost),
          form.kind == model::LossForms::fused_free_2025};
}

/// LigerFusedLinearCrossEntropyFunction: forward makes the gradients of input, weight and bias, and keeps nothing else.
/// It works on some rows at a time. Gradients have the types of what they are of, also under autocast, whose copy of
/// the weight lives through the call. Where the last token has no label, the others' hidden states are copied; Unsloth
/// (`chunks`) gives that token a label that does not count, and adds the gradient of each chunk to that of the weight.
inline TensorId record_fused_linear_cross_entropy(Tape& tape, LanguageHead head, const Chunks& chunks = {}) {
  const bool whole = chunks.target > 0;
  if (whole) head.rows = *rows_of(head.shape);
  const TensorId input = whole ? head.hidden : language_loss_detail::counted_rows(tape, head);
  const core::DType type = tape.computing_type({.inputs = {&input, 1}, .autocast = Autocast::lower});
  std::vector<TensorSize> gradients;
  if (language_loss_detail::trains(tape, input)) gradients.push_back(tape.tensor(input).size);
  for (const TensorId parameter : head.parameters) {
    if (language_loss_detail::trains(tape, parameter)) gradients.push_back(tape.tensor(parameter).size);
  }
  std::vector<TensorSize> scratch = {head.rows.as(core::DType::float32)};
  language_loss_detail::add_chunks(head, type, chunks, scratch);
  for (const TensorId parameter : head.parameters) {
    const TensorSize& size = tape.tensor(parameter).size;
    if (size.dtype != type) scratch.push_back(size.as(type));
    if (whole && language_loss_detail::trains(tape, parameter)) scratch.push_back(size);
  }
  return tape.record({.inputs = {&input, 1},
                      .output = language_loss_detail::kScalar,
                      .extras = gradients,
                      .extras_first = true,
                      .scratch = scratch,
                      .parameters = head.parameters,
                      .gradient = Gradient::made_in_forward,
                      .library = Library::gemm,
                      .multiply_adds = head.rows.times(head.vocabulary).times(head.width)});
}

namespace language_loss_detail {

inline std::int64_t bytes_of(const std::vector<TensorSize>& sizes) {
  std::int64_t sum = 0;
  for (const TensorSize& size : sizes) {
    const std::int64_t elements = size.elements.value().value_or(0);
    sum = core::bounded_sum({sum, core::bounded_product({elements, core::element_size(size.dtype)})});
  }
  return sum;
}

/// A chunk's tensors in its two moments, of which the larger one counts: the product of the head, whose weight and rows
/// are made float32 and then what autocast computes in; and the loss of the logits.
struct CheckpointedChunk {
  std::vector<TensorSize> product;
  std::vector<TensorSize> loss;
  std::vector<TensorSize> weight;  ///< backward's of the weight's gradient, on its way to the weight's type
};
inline CheckpointedChunk checkpointed_chunk(const Tape& tape, const LanguageHead& head, core::DType type,
                                            std::int64_t tokens) {
  constexpr core::DType kWide = core::DType::float32;
  const auto sized = [](std::int64_t one, std::int64_t other, core::DType as) {
    return TensorSize{core::Checked(one) * core::Checked(other), 0, as};
  };
  const core::DType held = head.parameters.empty() ? kWide : tape.tensor(head.parameters[0]).size.dtype;
  const bool trained = !head.parameters.empty() && trains(tape, head.parameters[0]);
  const TensorSize logits = sized(tokens, head.vocabulary, type);
  const auto weight = [&](core::DType as) { return sized(head.vocabulary, head.width, as); };
  CheckpointedChunk made;
  if (held != kWide) made.product.push_back(weight(kWide));
  if (type != kWide) made.product.push_back(weight(type));
  if (type != kWide) made.loss.push_back(weight(type));
  if (type == kWide && held != kWide) made.loss.push_back(weight(kWide));
  made.product.push_back(logits);
  if (type != kWide) made.loss.push_back(logits);
  // Log-probabilities, exponentials, and in backward the gradients of both ends of log_softmax.
  for (int each = 0; each < 4; ++each) made.loss.push_back(logits.as(kWide));
  if (!trained) return made;
  if (type != kWide) made.weight.push_back(weight(type));
  made.weight.push_back(weight(kWide));
  if (held != kWide) made.weight.push_back(weight(held));
  return made;
}

}  // namespace language_loss_detail

/// The head and the cross entropy of some tokens at a time, each chunk checkpointed: of all logits nothing is kept.
/// Hidden states of tokens that count are copied to the front. `type`: what autocast multiplies in, or float32. Source:
/// TRL 1.4 to 1.9, trainer/sft_trainer.py: _chunk, _chunked_cross_entropy_loss.
inline TensorId record_checkpointed_cross_entropy(Tape& tape, const LanguageHead& head, std::int64_t tokens,
                                                  core::DType type) {
  const TensorId part = language_loss_detail::counted_rows(tape, head);
  const TensorSize rows = head.rows.times(head.width).as(tape.tensor(part).size.dtype);
  const TensorId ordered = tape.record({.inputs = {&part, 1}, .output = rows});
  const auto chunk = language_loss_detail::checkpointed_chunk(tape, head, type, tokens);
  const std::vector<TensorSize>* backward = &chunk.product;
  for (const std::vector<TensorSize>* other : {&chunk.loss, &chunk.weight}) {
    if (language_loss_detail::bytes_of(*other) > language_loss_detail::bytes_of(*backward)) backward = other;
  }
  const bool wider = language_loss_detail::bytes_of(chunk.loss) > language_loss_detail::bytes_of(chunk.product);
  return tape.record({.inputs = {&ordered, 1},
                      .output = language_loss_detail::kScalar,
                      .saved_inputs = 1,
                      .scratch = wider ? chunk.loss : chunk.product,
                      .backward_scratch = *backward,
                      .parameters = head.parameters,
                      .library = Library::gemm,
                      .multiply_adds = head.rows.times(head.vocabulary).times(head.width)});
}

namespace language_loss_detail {

/// The logits of a part of the hidden states.
inline TensorId logits_of(Tape& tape, const LanguageHead& head, TensorId part, const core::Shape& shape) {
  const TensorSize size = rows_of(shape)->times(head.vocabulary);
  const bool bias = head.parameters.size() > 1;
  if (head.weights.quantization == model::Quantization::none) {
    return linear(tape, part, size, head.parameters, shape.rank(), bias, head.width);
  }
  return quantized_product(tape, part, size, head.parameters[0], head.weights, head.width, head.vocabulary, bias);
}

}  // namespace language_loss_detail

/// The head on this many positions at a time: the logits that the model returns. The hidden states must be [N, S,
/// width] of a known length.
inline std::vector<TensorId> record_chunked_logits(Tape& tape, const LanguageHead& head, const ChunkedLoss& how) {
  const std::int64_t positions = how.positions;
  const std::int64_t length = head.shape[1].size;
  const TensorSize whole = tape.tensor(head.hidden).size.as(core::DType::float32);
  const TensorId parts = tape.record({.inputs = {&head.hidden, 1},
                                      .output = whole,
                                      .kind = Output::view,
                                      .layout = tape.tensor(head.hidden).layout,
                                      .gradient = Gradient::joined});
  std::vector<TensorId> logits;
  for (std::int64_t first = 0; first < length; first += positions) {
    core::Shape shape = head.shape;
    shape.set(1, core::Dim::fixed(std::min(positions, length - first)));
    const bool all = positions >= length;
    const TensorId part = tape.record({.inputs = {&parts, 1},
                                       .output = *size_of(shape),
                                       .kind = Output::view,
                                       .layout = {Layout::kInOrder, !all},
                                       .gradient = Gradient::passed});
    logits.push_back(language_loss_detail::logits_of(tape, head, part, shape));
  }
  for (TensorId& part : logits) part = how.hands_out_float ? tape.cast(part, core::DType::float32) : part;
  return logits;
}

/// One figure a row of these logits.
inline TensorSize rows_within(const Tape& tape, TensorId logits, std::int64_t vocabulary) {
  TensorSize rows = tape.tensor(logits).size.as(core::DType::float32);
  rows.elements = rows.elements.value().value_or(0) / std::max<std::int64_t>(vocabulary, 1);
  return rows;
}

/// The mean of the losses of these logits.
inline TensorId record_chunked_cross_entropy(Tape& tape, std::span<const TensorId> logits, const ChunkedLoss& how) {
  std::vector<TensorId> losses;
  losses.reserve(logits.size());
  for (const TensorId part : logits) {
    if (how.compiled > 0) {
      losses.push_back(record_compiled_cross_entropy(tape, part, rows_within(tape, part, how.compiled)));
      continue;
    }
    losses.push_back(
        language_loss_detail::cross_entropy_of(tape, how.upcasts ? tape.cast(part, core::DType::float32) : part));
  }
  return tape.record({.inputs = losses, .output = language_loss_detail::kScalar, .gradient = Gradient::passed});
}

/// The logits of the last positions of each sample, or of all if there are no more (`positions` 0: of all). Source:
/// transformers 4.48, models/llama/modeling_llama.py, LlamaForCausalLM.forward (num_logits_to_keep; logits_to_keep).
inline TensorId record_last_logits(Tape& tape, const LanguageHead& head, std::int64_t positions) {
  core::Shape shape = head.shape;
  if (positions <= 0 || positions >= head.shape[1].size) {
    return language_loss_detail::logits_of(tape, head, head.hidden, shape);
  }
  shape.set(1, core::Dim::fixed(positions));
  const TensorId part = tape.record({.inputs = {&head.hidden, 1},
                                     .output = size_of(shape)->as(tape.tensor(head.hidden).size.dtype),
                                     .kind = Output::view,
                                     .layout = {Layout::kInOrder, true}});
  return language_loss_detail::logits_of(tape, head, part, shape);
}

namespace language_loss_detail {

/// One sample of a batch's tensor.
inline TensorSize sample_of(const TensorSize& size) { return {size.elements, 0, size.dtype}; }

}  // namespace language_loss_detail

/// The log-probabilities of given tokens, sample by sample, and a loss of them. Of logits in lower precision
/// log_softmax is kept; of float32 ones the logits themselves, since each sample's logsumexp and the gather read them
/// again. Backward makes the gradients of the samples, and then one tensor of all of them. In logits' sizes, as
/// PyTorch 2.6 was seen to hold them: in lower precision 2 in forward, and in backward 3 of one sample, else 2, for
/// what is kept of a sample goes when its gradient is there; in float32 1, and 4 of one sample, else 3. `scaled`: the
/// logits are divided in their place first, of which (of a view: CopySlices) backward copies the gradient before it is
/// cut: 4 in any type. Source: TRL 0.16 to 1.9, trainer/utils.py, selective_log_softmax(); TRL 1.0 to 1.9,
/// trainer/grpo_trainer.py and rloo_trainer.py: logits.div_; derivatives.yaml: _log_softmax, logsumexp, gather, unbind.
inline TensorId record_log_probabilities(Tape& tape, TensorId logits, bool scaled) {
  const TensorSize whole = tape.tensor(logits).size;
  const TensorSize sample = language_loss_detail::sample_of(whole);
  const bool lower = whole.dtype != core::DType::float32;
  const TensorId samples = tape.record(
      {.inputs = {&logits, 1}, .output = whole, .kind = Output::view, .layout = tape.tensor(logits).layout});
  const std::array<TensorSize, 1> kept = {whole};
  const std::array<TensorSize, 1> passing = {sample};
  const std::array<TensorSize, 3> copied = {whole, whole, whole};
  return tape.record({.inputs = {&samples, 1},
                      .output = language_loss_detail::kScalar,
                      .saved_inputs = lower ? 0U : 1U,
                      .extras = std::span(kept).first(lower ? 1 : 0),
                      .scratch = std::span(passing).first(lower ? 0 : 1),
                      .backward_scratch = std::span(copied).first(!scaled ? 0
                                                                  : lower ? 3
                                                                          : 2),
                      .gradient = Gradient::by_sample});
}

/// The same where no backward follows: only one sample's log_softmax lives at a time.
inline TensorId record_read_log_probabilities(Tape& tape, TensorId logits) {
  const std::array<TensorSize, 1> passing = {language_loss_detail::sample_of(tape.tensor(logits).size)};
  return tape.record({.inputs = {&logits, 1}, .output = language_loss_detail::kScalar, .scratch = passing});
}

/// Those of given tokens out of a log_softmax of all float32 logits, which is kept. Backward makes the gather's
/// gradient in zeros, the log_softmax's, and one of the logits that the last position was cut from. Source:
/// LLaMA-Factory 0.9.4, train/trainer_utils.py: get_batch_logps; derivatives.yaml: gather, _log_softmax, slice.
inline TensorId record_whole_log_probabilities(Tape& tape, TensorId logits, bool reads) {
  const std::array<TensorSize, 1> whole = {tape.tensor(logits).size};
  if (reads) return tape.record({.inputs = {&logits, 1}, .output = language_loss_detail::kScalar, .scratch = whole});
  const TensorId shifted = tape.record(
      {.inputs = {&logits, 1}, .output = whole[0], .kind = Output::view, .layout = tape.tensor(logits).layout});
  return tape.record(
      {.inputs = {&shifted, 1}, .output = language_loss_detail::kScalar, .extras = whole, .backward_scratch = whole});
}

/// Those of the last positions of each sample, by a log_softmax of that part of the logits, which is kept; the logits
/// are not. Backward makes the gather's gradient in zeros, the log_softmax's, and one of all logits that the part was
/// cut from. Source: TRL 0.12 to 1.9, online_dpo_trainer.py: _forward; derivatives.yaml: gather, _log_softmax, slice.
inline TensorId record_last_log_probabilities(Tape& tape, TensorId logits, const TensorSize& part, bool reads) {
  const std::array<TensorSize, 1> log = {part.as(tape.tensor(logits).size.dtype)};
  if (reads) return tape.record({.inputs = {&logits, 1}, .output = language_loss_detail::kScalar, .scratch = log});
  const TensorId cut =
      tape.record({.inputs = {&logits, 1}, .output = log[0], .kind = Output::view, .layout = {Layout::kInOrder, true}});
  return tape.record(
      {.inputs = {&cut, 1}, .output = language_loss_detail::kScalar, .extras = log, .backward_scratch = log});
}

/// Logits that the model returns, of which nothing is kept here: their gradient comes from elsewhere.
inline TensorId record_handed_on(Tape& tape, TensorId logits) {
  return tape.record({.inputs = {&logits, 1}, .output = language_loss_detail::kScalar});
}

/// A loss of one figure a token, as pairs of rewards and clipped values have it.
inline TensorId record_scores(Tape& tape, TensorId scores) {
  return tape.record({.inputs = {&scores, 1}, .output = language_loss_detail::kScalar, .saved_inputs = 1});
}

/// What a program makes of the logits that the model has returned.
inline TensorId record_of_logits(Tape& tape, const LanguageHead& head, const model::Counted<model::Objective>& made,
                                 TensorId logits) {
  using enum model::Objective;
  core::Shape part = head.shape;
  part.set(1, core::Dim::fixed(std::min(std::max<std::int64_t>(made.count, 1), head.shape[1].size)));
  const TensorSize last = rows_of(part)->times(head.vocabulary);
  switch (made.kind) {
    case log_probabilities: return record_log_probabilities(tape, logits, false);
    case scaled_log_probabilities: return record_log_probabilities(tape, logits, true);
    case read_log_probabilities: return record_read_log_probabilities(tape, logits);
    case whole_log_probabilities: return record_whole_log_probabilities(tape, logits, false);
    case read_whole_log_probabilities: return record_whole_log_probabilities(tape, logits, true);
    case last_log_probabilities: return record_last_log_probabilities(tape, logits, last, false);
    case read_last_log_probabilities: return record_last_log_probabilities(tape, logits, last, true);
    case handed_on: return record_handed_on(tape, logits);
    case fused_log_probabilities:
      return record_fused_cross_entropy(tape, logits, rows_within(tape, logits, head.vocabulary));
    case loss:
    case scores: break;
  }
  return record_scores(tape, logits);
}

}  // namespace gpumem::ops
