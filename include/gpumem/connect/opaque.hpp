// Input: a row of an unknown class: the shapes that it reads and returns, and its parameters.
// Output: bounds of what its layers keep for backward in addition to its output.
// Units: elements a sample.
//
// No rule can know them; these are by judgement. Parameters tell how much is behind the row: with C channels in its
// output, a bottleneck block of ResNet holds 1.1 C^2 and keeps 4 tensors of its output's size, a basic block 18 C^2 and
// 4, a transformer's layer 12 C^2 and 17, an inverted residual 12 C^2 and 27. So 1.4 tensors for each C^2 are expected,
// 2 at least and 64 at most; the row may keep nothing, or 3 times as many, each as large as the larger of its input and
// output.
//
// The foot of a torchinfo table tells more: "Forward/backward pass size (MB)" is twice the outputs of all layers that
// hold parameters, shown or not (torchinfo 1.8.0, model_statistics.py). What the shown rows leave of it is divided
// among the rows that hide layers, by the figures above. Activations and copies come on top: 1.2 times is expected,
// 0.75 and 2 times are the bounds.
#pragma once

#include <cstdint>
#include <optional>

#include "gpumem/core/shape.hpp"
#include "gpumem/model/model_graph.hpp"

namespace gpumem::connect {

struct OpaqueRow {
  core::Shape input;
  core::Shape output;
  std::int64_t parameters = 0;
};

struct KeptElements {
  std::int64_t least = 0;
  std::int64_t expected = 0;
  std::int64_t most = 0;
};

/// What the outputs of hidden layers that the foot tells are, as a share of what the rows' parameters say; nothing
/// without such a foot, or where the shown rows leave as much as it tells.
[[nodiscard]] std::optional<double> told_share(const model::ModelGraph& graph);

/// `told` is told_share() of the row's graph.
[[nodiscard]] KeptElements kept_by(const OpaqueRow& row, std::optional<double> told);

/// The elements of one sample; 0 where a size is not known.
[[nodiscard]] std::int64_t elements_of(const core::Shape& shape);

}  // namespace gpumem::connect
