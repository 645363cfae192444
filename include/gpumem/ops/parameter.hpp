// Bare parameters: torch.nn.Parameter held by a container beside its children (relative-attention biases,
// class tokens), torch.nn.ParameterList and ParameterDict. No tensor leaves them.
#pragma once

#include <array>

#include "gpumem/model/model_graph.hpp"
#include "gpumem/ops/op.hpp"

namespace gpumem::ops {

namespace parameter_detail {

/// Only a printed count tells.
inline std::optional<core::Checked> parameters(const model::Attributes&) { return std::nullopt; }

inline core::Result<TensorId> record(const OpCall& call, Tape& tape) {
  add_parameters(call, tape, {core::Checked(call.parameters)});
  return kNoTensor;
}

inline constexpr std::array<std::string_view, 2> kTorch = {"ParameterList", "ParameterDict"};

}  // namespace parameter_detail

inline constexpr std::array<Op, 1> kParameterOps = {
    {{{model::kParameterOp, parameter_detail::kTorch, {}, {}, parameter_detail::parameters, true},
      nullptr,
      {},
      false,
      parameter_detail::record}}};

}  // namespace gpumem::ops
