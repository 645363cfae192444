// Input: a row of an unknown class: the shapes that it reads and returns, and its parameters.
// Output: bounds of what its layers keep for backward in addition to its output.
// Units: elements a sample.
//
// No rule can know them; these are by judgement. Parameters tell how much is behind the row: with C channels in its
// output, a bottleneck block of ResNet holds 1.1 C^2 and keeps 4 tensors of its output's size, a basic block 18 C^2 and
// 4, a transformer's layer 12 C^2 and 17, an inverted residual 12 C^2 and 27. So 1.4 tensors for each C^2 are expected,
// 2 at least and 64 at most. The row may keep nothing. What it keeps at most nothing bounds: neither what it reads nor
// what it returns, between which it may enlarge, copy and join. A row of a table may hide any number of layers: 64
// tensors as large as the larger of its input and output or 3 times the expected ones, whichever is more, so that such
// an answer is open above. A module of a tree without modules of its own gets 3 times the expected ones.
//
// The foot of a torchinfo table tells more: "Forward/backward pass size (MB)" is twice the outputs of all layers that
// hold parameters, shown or not (torchinfo 1.8.0, model_statistics.py). What the shown rows leave of it is divided
// among the rows that hide layers, by the figures above. Activations, copies and what a decoder joins come on top.
// 1.2 times is expected of images. It is 1.7 where such a row enlarges them, because a decoder reads what it enlarged
// and joined, and where an output takes few multiplications: such layers are depthwise, and their activations (ReLU6,
// SiLU, Hardswish) keep what they read. Of tokens it is 2.25: 18 tensors of a transformer's layer, of which the foot
// counts 8. The bounds are 0.75 and 3.0 times, 4.0 where 1.7 is expected, and of tokens 1.0 and 4.0.
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
  bool hides = true;  ///< it may hold modules; false: a module of a tree without any
};

struct KeptElements {
  std::int64_t least = 0;
  std::int64_t expected = 0;
  std::int64_t most = 0;
};

/// What the foot tells of the rows that hide layers.
struct ToldByFoot {
  double share = 1.0;   ///< of the outputs of hidden layers, by what the rows' parameters say
  bool copies = false;  ///< more is kept besides: a row enlarges images, or an output takes few multiplications
};

/// Nothing without such a foot, or where the shown rows leave as much as it tells.
[[nodiscard]] std::optional<ToldByFoot> told_by_foot(const model::ModelGraph& graph);

/// `told` is told_by_foot() of the row's graph.
[[nodiscard]] KeptElements kept_by(const OpaqueRow& row, const std::optional<ToldByFoot>& told);

/// The elements of one sample; 0 where a size is not known.
[[nodiscard]] std::int64_t elements_of(const core::Shape& shape);

}  // namespace gpumem::connect
