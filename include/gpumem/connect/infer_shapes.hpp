// Input: a graph with edges, the rules of its ops, and the job that feeds it.
// Output: the shape of every graph input and of every layer: the printed one where the summary prints shapes, otherwise
// inferred from the inputs on.
// Units: elements, with the batch size as N.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/op_traits.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::connect {

/// One sample's shape with the batch N before it.
[[nodiscard]] core::Shape with_batch(std::span<const std::int64_t> sample);

/// `graph` is the job's, or what connect() made of it; `ops` has the row of each op, by the graph's op index. In a
/// graph that was read leniently a layer may read what an unknown one leaves: it is taken to read the latest known
/// tensor if that fits it, else no tensor leaves it either.
///
/// Errors: missing_information where a layer does not say its sizes, or cannot take its input; malformed_input where an
/// edge does not have the width that its reader was built for, printed or inferred, and where a layer reads nothing.
[[nodiscard]] core::Result<LayerShapes> infer_shapes(const model::TrainingJob& job, const model::ModelGraph& graph,
                                                     std::span<const ops::Op* const> ops);

// Input: the shape that one of timm's "same" convolutions and poolings reads (Conv2dSame, AvgPool2dSame), and the
// layer's attributes.
// Output: by how many pixels its input is padded first, so that its output has ceil(size / stride).
// Source: timm 1.0.9, timm.layers.padding.pad_same.

/// Left, right, top and bottom, as the op "pad" has them; none if nothing is padded.
[[nodiscard]] inline std::vector<std::int64_t> same_padding(const core::Shape& shape, const model::Attributes& window) {
  std::vector<std::int64_t> sides;
  std::int64_t all = 0;
  for (const std::size_t axis : {std::size_t{1}, std::size_t{0}}) {
    constexpr std::int64_t kMost = std::int64_t{1} << 20;
    const std::int64_t size = shape[axis + 2].size;
    const std::int64_t kernel = window.per_axis("kernel_size", axis).value_or(1);
    const std::int64_t stride = window.per_axis("stride", axis).value_or(1);
    const std::int64_t dilation = window.per_axis("dilation", axis).value_or(1);
    const bool sane = size < kMost && kernel > 0 && kernel < kMost && stride > 0 && stride < kMost && dilation > 0 &&
                      dilation < kMost;
    if (!sane) return {};
    const std::int64_t reach = ((size + stride - 1) / stride - 1) * stride + (kernel - 1) * dilation + 1;
    const std::int64_t lacks = reach > size ? reach - size : 0;
    sides.push_back(lacks / 2);
    sides.push_back(lacks - lacks / 2);
    all += lacks;
  }
  return all > 0 ? sides : std::vector<std::int64_t>();
}

}  // namespace gpumem::connect
