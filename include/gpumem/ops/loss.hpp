// Losses as modules inside a model: torch.nn.functional.cross_entropy, mse_loss and
// binary_cross_entropy_with_logits with their default mean reduction: a scalar leaves them.
#pragma once

#include <array>

#include "gpumem/ops/language_loss.hpp"
#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace loss_detail {

inline core::Result<core::Shape> scalar(const OpInput&) { return core::Shape{}; }

inline constexpr TensorSize kScalar = {1, 0, core::DType::float32};

/// aten::log_softmax, then nll_loss, which keeps the log-probabilities and the total weight. "keeps_type": the first
/// one computes in the type of the logits even under autocast, and the second one in float32 (cross_entropy_loss names
/// the type, so autocast does not); without it both are taken to compute in float32.
inline core::Result<TensorId> record_cross_entropy(const OpCall& call, Tape& tape) {
  if (call.attributes.flag(kVocabularyParallel, false)) return record_vocabulary_parallel(tape, call.tensors[0], false);
  if (call.attributes.flag("keeps_type", false)) {
    const TensorId own = elementwise(tape, contiguous(tape, call.tensors[0]), 0, true);
    return tape.record({.inputs = {&own, 1},
                        .output = kScalar,
                        .saved_inputs = 1,
                        .extras = {&kScalar, 1},
                        .autocast = Autocast::full});
  }
  const TensorId log = elementwise(tape, contiguous(tape, call.tensors[0]), 0, true, Autocast::full);
  return tape.record({.inputs = {&log, 1}, .output = kScalar, .saved_inputs = 1, .extras = {&kScalar, 1}});
}

/// aten::mse_loss keeps input and target; its kernel holds the squares before it averages them.
inline core::Result<TensorId> record_mse(const OpCall& call, Tape& tape) {
  const TensorId input = tape.cast(call.tensors[0], core::DType::float32);
  const TensorSize squares = tape.tensor(input).size;
  return tape.record({.inputs = {&input, 1},
                      .output = kScalar,
                      .saved_inputs = 1,
                      .scratch = tape.own_scratch({&squares, 1}),
                      .autocast = Autocast::full});
}

/// aten::binary_cross_entropy_with_logits: two temporaries forward, one backward.
inline core::Result<TensorId> record_bce(const OpCall& call, Tape& tape) {
  const TensorId input = tape.cast(call.tensors[0], core::DType::float32);
  const std::array<TensorSize, 2> temporaries = {tape.tensor(input).size, tape.tensor(input).size};
  return tape.record({.inputs = {&input, 1},
                      .output = kScalar,
                      .saved_inputs = 1,
                      .scratch = tape.own_scratch(temporaries),
                      .backward_scratch = tape.own_scratch(std::span(temporaries).first(1)),
                      .autocast = Autocast::full});
}

inline constexpr std::array<std::string_view, 2> kCrossEntropy = {"CrossEntropyLoss", "NLLLoss"};
inline constexpr std::array<std::string_view, 1> kMse = {"MSELoss"};
inline constexpr std::array<std::string_view, 2> kBce = {"BCEWithLogitsLoss", "BCELoss"};

}  // namespace loss_detail

inline constexpr std::array<Op, 3> kLossOps = {{
    {.traits = {.name = "cross_entropy",
                .family = OpFamily::other,
                .torch_classes = loss_detail::kCrossEntropy,
                .keeps = Keeps::input},
     .output_shape = loss_detail::scalar,
     .record = loss_detail::record_cross_entropy,
     .loss = model::Loss::cross_entropy},
    {.traits =
         {.name = "mse_loss", .family = OpFamily::other, .torch_classes = loss_detail::kMse, .keeps = Keeps::input},
     .output_shape = loss_detail::scalar,
     .record = loss_detail::record_mse,
     .loss = model::Loss::mse},
    {.traits = {.name = "bce_with_logits",
                .family = OpFamily::other,
                .torch_classes = loss_detail::kBce,
                .keeps = Keeps::input},
     .output_shape = loss_detail::scalar,
     .record = loss_detail::record_bce,
     .loss = model::Loss::bce_with_logits},
}};

}  // namespace gpumem::ops
