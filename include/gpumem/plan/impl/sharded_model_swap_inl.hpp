#pragma once

#include "gpumem/plan/sharded_model.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "gpumem/plan/checkpoints.hpp"

namespace gpumem::plan {

namespace swapped_blocks_detail {

/// Blocks of one list of modules, in order.
struct Stack {
  std::string list;
  std::vector<Range> blocks;
  std::string last = {};  ///< the last block's path: "transformer_blocks.7"
  bool nested = false;    ///< several blocks are in one module of the list, as a UNet's are
};

/// "transformer_blocks" of "transformer_blocks.7.attn.to_q".
GPUMEM_INLINE std::string_view list_of(std::string_view path) {
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    const std::size_t digit = dot + 1;
    if (digit < path.size() && path[digit] >= '0' && path[digit] <= '9') return path.substr(0, dot);
  }
  return path;
}

/// The model's main stacks. A token refiner's one or two blocks are not swapped by any of the programs.
GPUMEM_INLINE std::vector<Stack> main_stacks(const model::ModelGraph& graph) {
  constexpr std::size_t kRefiner = 2;
  std::vector<Stack> stacks;
  for (const Range& block : blocks_of_all_stacks(graph)) {
    const std::string path = graph.path(graph.layers()[block.first]);
    const std::string_view list = list_of(path);
    const std::string module = path.substr(0, path.find('.', list.size() + 1));
    if (stacks.empty() || stacks.back().list != list) stacks.push_back({std::string(list), {}});
    Stack& stack = stacks.back();
    stack.nested = stack.nested || stack.last == module;
    stack.last = module;
    stack.blocks.push_back(block);
  }
  std::erase_if(stacks, [](const Stack& stack) { return stack.nested || stack.blocks.size() <= kRefiner; });
  return stacks;
}

/// How many blocks of each stack are swapped. Where the second is twice as long, its blocks are half as large: half the
/// number is of the first stack, and two of the second stand for each that is left. This is sd-scripts' rule;
/// musubi-tuner and diffusion-pipe swap one more of the second, which is not taken off here. Other pairs of stacks
/// share the number by their lengths, and what the first cannot give comes from the second.
GPUMEM_INLINE std::vector<std::size_t> exchanged_of(const std::vector<Stack>& stacks, std::size_t count) {
  constexpr std::size_t kStay = 2;
  std::vector<std::size_t> most;
  most.reserve(stacks.size());
  for (const Stack& stack : stacks) most.push_back(stack.blocks.size() - kStay);
  std::vector<std::size_t> swapped(stacks.size(), 0);
  if (stacks.empty()) return swapped;
  swapped[0] = count;
  if (stacks.size() > 1) {
    const double ratio = static_cast<double>(stacks[1].blocks.size()) / static_cast<double>(stacks[0].blocks.size());
    const bool twice = stacks[1].blocks.size() == 2 * stacks[0].blocks.size();
    const double first = std::nearbyint(static_cast<double>(count) / (1.0 + ratio / 2.0));
    swapped[0] = twice ? count / 2 : static_cast<std::size_t>(first);
    swapped[1] = twice ? 2 * (count - count / 2) : static_cast<std::size_t>(std::nearbyint(first * ratio));
    const std::size_t over = swapped[0] - std::min(swapped[0], most[0]);
    swapped[1] += 2 * over;
    if (count > 0 && swapped[0] + swapped[1] == 0) swapped[1] = 1;
  }
  for (std::size_t at = 0; at < stacks.size(); ++at) swapped[at] = std::min(swapped[at], most[at]);
  return swapped;
}

}  // namespace swapped_blocks_detail

GPUMEM_INLINE core::Status SwappedBlocks::check(const model::ModelGraph& graph,
                                                const model::Counted<model::BlockSwap>& swap) {
  if (swap.kind == model::BlockSwap::none || !swapped_blocks_detail::main_stacks(graph).empty()) return core::Done{};
  return core::Error{core::ErrorCode::missing_information,
                     "has no row of alike blocks that take turns on the GPU; leave `block_swap` out",
                     {graph.file(), 0, {}}};
}

GPUMEM_INLINE SwappedBlocks::SwappedBlocks(RunState& state, const model::Counted<model::BlockSwap>& swap)
    : state_(state) {
  if (swap.kind != model::BlockSwap::none && swap.count > 0) find(swap);
}

GPUMEM_INLINE void SwappedBlocks::find(const model::Counted<model::BlockSwap>& swap) {
  namespace detail = swapped_blocks_detail;
  const model::ModelGraph& graph = state_.forward_pass().wired.graph();
  const std::vector<detail::Stack> stacks = detail::main_stacks(graph);
  const auto count = static_cast<std::size_t>(swap.count);
  std::vector<bool> layers(graph.layers().size(), false);
  const auto mark = [&](const Range& block) {
    std::fill(layers.begin() + block.first, layers.begin() + block.end, true);
  };
  if (swap.kind == model::BlockSwap::exchanged) {
    const std::vector<std::size_t> swapped = detail::exchanged_of(stacks, count);
    for (std::size_t at = 0; at < stacks.size(); ++at) {
      const std::vector<Range>& blocks = stacks[at].blocks;
      std::for_each(blocks.end() - static_cast<std::ptrdiff_t>(swapped[at]), blocks.end(), mark);
    }
    return take(layers, true);
  }
  std::vector<Range> all;
  for (const detail::Stack& stack : stacks) all.insert(all.end(), stack.blocks.begin(), stack.blocks.end());
  const std::size_t stay = all.empty() ? 0 : all.size() - std::min(count, all.size() - 1);
  for (std::size_t at = stay; at < all.size(); ++at) mark(all[at]);
  take(layers, false);
  begins_.assign(state_.tape().functions().size(), kNone);
  ends_ = begins_;
  for (std::size_t at = stay; at < all.size(); ++at) add_streamed(all[at].first, all[at].end);
}

/// Which parameters of these layers are away. By exchange: weights of linear layers, and of what adapters train none.
GPUMEM_INLINE void SwappedBlocks::take(const std::vector<bool>& layers, bool exchanged) {
  const ops::Tape& tape = state_.tape();
  const model::ModelGraph& graph = state_.forward_pass().wired.graph();
  const auto is_frozen = [](const ops::Tape::Parameter& parameter) { return parameter.frozen; };
  const bool trains_all = exchanged && std::ranges::none_of(tape.parameters(), is_frozen);
  away_.assign(tape.tensors().size(), false);
  std::uint32_t last = UINT32_MAX;
  for (const ops::Tape::Parameter& parameter : tape.parameters()) {
    const std::uint32_t layer = state_.layer(parameter.tensor);
    const bool weight = layer != last;
    last = layer;
    if (!layers[layer] || parameter.tied || !(parameter.frozen || trains_all)) continue;
    const bool linear = weight && graph.class_name(graph.layers()[layer]).ends_with("Linear");
    away_[static_cast<std::size_t>(parameter.tensor)] = !exchanged || linear;
  }
}

GPUMEM_INLINE void SwappedBlocks::add_streamed(std::uint32_t first_layer, std::uint32_t end_layer) {
  const auto functions = state_.tape().functions();
  std::uint32_t first = kNone;
  std::uint32_t last = 0;
  for (std::uint32_t index = 0; index < functions.size(); ++index) {
    if (functions[index].layer < first_layer || functions[index].layer >= end_layer) continue;
    first = std::min(first, index);
    last = index;
  }
  if (first == kNone) return;
  Block block;
  for (const ops::Tape::Parameter& parameter : state_.tape().parameters()) {
    const std::uint32_t layer = state_.layer(parameter.tensor);
    if (layer >= first_layer && layer < end_layer && starts_away(parameter.tensor)) block.push_back(parameter.tensor);
  }
  begins_[first] = ends_[last] = static_cast<std::uint32_t>(streamed_.size());
  streamed_.push_back(std::move(block));
}

GPUMEM_INLINE void SwappedBlocks::bring(const Block& block) {
  for (const ops::TensorId parameter : block) {
    if (state_.slot(parameter) == kNoSlot) state_.add(parameter, Category::parameter);
  }
}

GPUMEM_INLINE void SwappedBlocks::send(const Block& block) {
  for (const ops::TensorId parameter : block) state_.let_go(parameter);
}

}  // namespace gpumem::plan
