// Input: a layer of a table, the shape that it reads, and what the table prints about it: output shape and parameter
// count.
// Output: the attributes that a table does not print: kernel, stride, padding, groups and bias of a convolution,
// features of linear and normalisation layers.
// Units: elements.
//
// Where several fit, the usual one is taken: a kernel that is square and odd before any other, no bias in front of a
// batch norm, one group or one a channel before other groups, the padding that keeps the size before none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "gpumem/core/shape.hpp"
#include "gpumem/model/op_traits.hpp"

namespace gpumem::connect {

struct PrintedLayer {
  const model::OpTraits* op = nullptr;  ///< null: unknown
  model::Attributes attributes;         ///< what the table does print, such as torchinfo's kernel_size
  core::Shape output;
  std::int64_t parameters = 0;
  bool before_batch_norm = false;
};

/// All attributes of the layer if it reads this shape; nothing if it cannot. `usual`: other groups than one, or one a
/// channel, do not count as a fit.
[[nodiscard]] std::optional<std::vector<model::Attribute>> complete(const PrintedLayer& layer, const core::Shape& input,
                                                                    bool usual = false);

/// Whether complete() finds anything in the usual way.
[[nodiscard]] bool can_read(const PrintedLayer& layer, const core::Shape& input);

}  // namespace gpumem::connect
