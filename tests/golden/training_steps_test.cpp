// Peaks of live tensors that recordings of plain PyTorch have (training_steps/golden.json, made by make_goldens.py
// there) against step plans: who holds what between steps, forms of the loss, kinds of checkpointing.
#include "recorded_steps.hpp"

namespace gpumem {
namespace {

/// Copies of weights end in another order under autocast, which shows in models as small as these. Attention that runs
/// again after rotary positions on a part of each head (stablelm) holds a little more than the plan says. Where logits
/// of the weights' own type stand while the head's backward runs (litgpt in fp32), PyTorch holds a chunk's gradient
/// more.
double step_tolerance(const nlohmann::json& options) {
  constexpr double kUsual = 0.005;
  constexpr double kAutocast = 0.025;
  constexpr double kAttentionAgain = 0.015;
  constexpr double kLogitsInBackward = 0.016;
  const bool again = options.value("checkpointing", "") == "selective-attention";
  if (options["precision"] == "fp32" && options.value("loop", "") == "litgpt") return kLogitsInBackward;
  return options["precision"] == "amp-bf16" ? kAutocast : again ? kAttentionAgain : kUsual;
}

TEST(TrainingSteps, HoldWhatPyTorchHolds) { testing::expect_recorded_steps("training_steps", step_tolerance, 100U); }

}  // namespace
}  // namespace gpumem
