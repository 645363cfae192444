#pragma once

#include "gpumem/connect/block_rules.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "gpumem/architectures/branching_nets.hpp"
#include "gpumem/architectures/conv_nets.hpp"
#include "gpumem/architectures/residual_nets.hpp"
#include "gpumem/architectures/timm_vit.hpp"

namespace gpumem::connect {

namespace block_rules_detail {

using architectures::Forward;
using architectures::Module;
using architectures::Sides;

// Blocks that add their input to what they compute. A table has a row for each call, and no names.

/// A part that can read the block's input, and not its predecessor, begins the shortcut.
GPUMEM_INLINE Sides walk(std::span<const Module> parts, Tensor input) {
  Sides sides{input, std::nullopt};
  for (const Module& part : parts) {
    Tensor& side = sides.shortcut ? *sides.shortcut : sides.main;
    const bool first = &part == parts.data();
    const bool begins = !sides.shortcut && !first && !part.can_read(side) && part.can_read(input);
    if (begins) {
      sides.shortcut = part.call(input);
    } else {
      side = part.call(side);
    }
  }
  return sides;
}

/// The sum comes before the activation that ends the block, if one does.
GPUMEM_INLINE Tensor call_sum(Forward& f, const Module& block, Tensor input, bool in_place) {
  const std::vector<Module> parts = block.parts();
  const bool active = !parts.empty() && architectures::is_activation(parts.back().op());
  const Sides sides = walk(std::span(parts).first(parts.size() - (active ? 1 : 0)), input);
  const Tensor sum = architectures::join_sides(f, sides, input, in_place);
  return active ? parts.back().call(sum) : sum;
}

GPUMEM_INLINE Tensor call_resnet(Forward& f, const Module& block, Tensor input) {
  return call_sum(f, block, input, true);
}
GPUMEM_INLINE Tensor call_regnet(Forward& f, const Module& block, Tensor input) {
  return call_sum(f, block, input, false);
}
GPUMEM_INLINE Tensor call_mnasnet(Forward& f, const Module& block, Tensor input) {
  return architectures::join_sides(f, walk(block.parts(), input), input, false);
}
GPUMEM_INLINE Tensor call_mobile(Forward& f, const Module& block, Tensor input) {
  return architectures::join_sides(f, walk(block.parts(), input), input, architectures::adds_in_place(block));
}

/// Whether rows from `begin` on can be a block whose sum is possible: each reads its predecessor or, once, the
/// block's input, and what is added has one shape.
GPUMEM_INLINE bool adds_up(const OpenRows& rows, std::size_t begin) {
  const core::Shape& input = rows.shapes[begin];
  const core::Shape& output = rows.shapes.back();
  const auto fits = [&](std::size_t part, const core::Shape& shape) {
    return readable(rows.graph, rows.containers, rows.parts[part], shape);
  };
  if (!fits(begin, input)) return false;
  for (std::size_t part = begin + 1; part < rows.parts.size(); ++part) {
    if (rows.op(part).starts_with("conv") && !fits(part, rows.shapes[part]) && fits(part, input)) {
      return rows.shapes[part] == output;
    }
  }
  return input == output;
}

/// The first convolution from which on the rows add up.
GPUMEM_INLINE std::optional<std::size_t> begin_resnet(const OpenRows& rows) {
  constexpr std::size_t kLongest = 64;  // parts of one block
  const std::size_t count = rows.parts.size();
  for (std::size_t part = std::max(rows.after_block, count - std::min(count, kLongest)); part < count; ++part) {
    const bool behind_gate = part > rows.after_block && rows.parts[part - 1].container;  // the middle of a block
    if (!behind_gate && rows.op(part).starts_with("conv") && adds_up(rows, part)) return part;
  }
  return std::nullopt;
}

/// After another such block it begins at once; the first one is looked for.
GPUMEM_INLINE std::optional<std::size_t> begin_inverted(const OpenRows& rows) {
  if (rows.any_block) return rows.after_block;
  return begin_resnet(rows);
}

// Where the other blocks begin.

/// The nearest layer of this op before the row.
GPUMEM_INLINE std::optional<std::size_t> nearest(const OpenRows& rows, std::string_view op, std::size_t before) {
  for (std::size_t part = before; part > 0; --part) {
    if (rows.op(part - 1) == op) return part - 1;
  }
  return std::nullopt;
}

/// The second batch norm.
GPUMEM_INLINE std::optional<std::size_t> begin_dense_layer(const OpenRows& rows) {
  const auto last = nearest(rows, "batch_norm", rows.parts.size());
  return last ? nearest(rows, "batch_norm", *last) : std::nullopt;
}

/// All dense layers in a row.
GPUMEM_INLINE std::optional<std::size_t> begin_dense_block(const OpenRows& rows) {
  std::size_t begin = rows.parts.size();
  while (begin > 0 && rows.class_name(begin - 1) == "_DenseLayer") --begin;
  return begin < rows.parts.size() ? std::optional(begin) : std::nullopt;
}

GPUMEM_INLINE std::optional<std::size_t> begin_fire(const OpenRows& rows) {
  return rows.last(architectures::fire_detail::kParts);
}

GPUMEM_INLINE std::optional<std::size_t> begin_squeeze(const OpenRows& rows) {
  return nearest(rows, "adaptive_avg_pool2d", rows.parts.size());
}

/// The rows of one pixel.
GPUMEM_INLINE std::optional<std::size_t> begin_excite(const OpenRows& rows) {
  std::size_t begin = rows.parts.size();
  while (begin > 0 && architectures::gate_detail::one_pixel(rows.shapes[begin])) --begin;
  return begin < rows.parts.size() ? std::optional(begin) : std::nullopt;
}

template <const architectures::inception_detail::Layout& Of>
std::optional<std::size_t> begin_layout(const OpenRows& rows) {
  return rows.last(Of.parts());
}

GPUMEM_INLINE std::optional<std::size_t> begin_basic(const OpenRows& rows) {
  const std::size_t count = rows.parts.size();
  const bool fits = count >= 2 && rows.op(count - 2) == "conv2d" && rows.op(count - 1) == "batch_norm";
  return fits ? std::optional(count - 2) : std::nullopt;
}

GPUMEM_INLINE std::optional<std::size_t> begin_convnext(const OpenRows& rows) {
  return nearest(rows, "conv2d", rows.parts.size());
}

namespace dense = architectures::dense_detail;
namespace encoder = architectures::encoder_detail;
namespace gate = architectures::gate_detail;
namespace inception = architectures::inception_detail;
namespace residual = architectures::residual_detail;

inline constexpr auto kRules = std::to_array<BlockRule>({
    {dense::kBlock, begin_dense_block},
    {dense::kLayer, begin_dense_layer},
    {encoder::kAttention},
    {encoder::kLayer},
    {encoder::kBlock},
    {architectures::fire_detail::kFire, begin_fire},
    {gate::kSqueeze, begin_squeeze},
    {gate::kExcite, begin_excite},
    {inception::kClassA, begin_layout<inception::kA>},
    {inception::kClassB, begin_layout<inception::kB>},
    {inception::kClassC, begin_layout<inception::kC>},
    {inception::kClassD, begin_layout<inception::kD>},
    {inception::kClassE, begin_layout<inception::kE>},
    {inception::kInception, begin_layout<inception::kGooglenet>},
    {inception::kBasic, begin_basic},
    {inception::kAux},
    {architectures::convnext_detail::kBlock, begin_convnext},
    {residual::kResnet, begin_resnet, call_resnet},
    {residual::kRegnet, begin_resnet, call_regnet},
    {residual::kMnasnet, begin_inverted, call_mnasnet},
    {residual::kMobile, begin_inverted, call_mobile},
});

}  // namespace block_rules_detail

GPUMEM_INLINE const BlockRule* find_block_rule(std::string_view class_name) {
  for (const BlockRule& rule : block_rules_detail::kRules) {
    if (std::find(rule.classes.begin(), rule.classes.end(), class_name) != rule.classes.end()) return &rule;
  }
  return nullptr;
}

GPUMEM_INLINE CallContainer rows_of(std::string_view class_name) {
  const BlockRule* rule = find_block_rule(class_name);
  if (rule == nullptr) return nullptr;
  if (rule->call != nullptr) return rule->call;
  const architectures::ModuleForward* known = architectures::module_forward(class_name);
  return known == nullptr ? nullptr : known->call;
}

}  // namespace gpumem::connect
