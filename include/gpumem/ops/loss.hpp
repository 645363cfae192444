// Losses as modules inside a model: torch.nn.functional.cross_entropy, mse_loss and
// binary_cross_entropy_with_logits with their default mean reduction: a scalar leaves them.
#pragma once

#include <array>

#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace loss_detail {

inline core::Result<core::Shape> scalar(const OpInput&) { return core::Shape{}; }

inline constexpr std::array<std::string_view, 2> kCrossEntropy = {"CrossEntropyLoss", "NLLLoss"};
inline constexpr std::array<std::string_view, 1> kMse = {"MSELoss"};
inline constexpr std::array<std::string_view, 2> kBce = {"BCEWithLogitsLoss", "BCELoss"};

}  // namespace loss_detail

inline constexpr std::array<Op, 3> kLossOps = {{{{"cross_entropy", loss_detail::kCrossEntropy}, loss_detail::scalar},
                                                {{"mse_loss", loss_detail::kMse}, loss_detail::scalar},
                                                {{"bce_with_logits", loss_detail::kBce}, loss_detail::scalar}}};

}  // namespace gpumem::ops
