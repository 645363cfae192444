// Input: which blocks a trainer's file trains, and the model.
// Output: the patterns of their names.
// Source: LLaMA-Factory 0.9.4, model/adapter.py (_setup_freeze_tuning), which takes the names of parameters that hold
// one of these texts.
#include <algorithm>
#include <map>
#include <optional>

#include "gpumem/core/bytes.hpp"
#include "trainer_files.hpp"

namespace gpumem::trainer_files {

namespace {
namespace trained_blocks_detail {

/// The modules of one list: "model.layers" of "model.layers.3.mlp".
struct Stack {
  std::int64_t blocks = 0;
  std::int64_t parameters = 0;
};

/// The list that this module is within, and its place there; nothing: it is within none.
std::optional<std::pair<std::string, std::int64_t>> place_of(std::string_view path) {
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    const std::string_view rest = path.substr(dot + 1);
    const auto place = core::parse_whole(rest.substr(0, rest.find('.')));
    if (place) return std::pair(std::string(path.substr(0, dot)), *place);
  }
  return std::nullopt;
}

/// The list whose modules have most parameters: of a model that sees, the language model's. Empty: there is none.
std::pair<std::string, std::int64_t> largest_stack(const model::ModelGraph& graph) {
  std::map<std::string, Stack> stacks;
  for (const model::Layer& layer : graph.layers()) {
    if (layer.parameters == 0) continue;
    const auto place = place_of(graph.path(layer));
    if (!place) continue;
    Stack& stack = stacks[place->first];
    stack.blocks = std::max(stack.blocks, core::bounded_sum({place->second, 1}));
    stack.parameters = core::bounded_sum({stack.parameters, layer.parameters});
  }
  const auto most = std::max_element(stacks.begin(), stacks.end(), [](const auto& one, const auto& other) {
    return one.second.parameters < other.second.parameters;
  });
  return most == stacks.end() ? std::pair<std::string, std::int64_t>() : std::pair(most->first, most->second.blocks);
}

void add(std::string& patterns, const std::string& pattern) {
  patterns.append(patterns.empty() ? "" : ",").append(pattern);
}

core::Error refused(std::string message) { return {core::ErrorCode::invalid_argument, std::move(message), {}}; }

/// The numbers of the blocks that are trained, of so many.
core::Result<std::vector<std::int64_t>> numbers_of(const TrainedBlocks& trained, std::int64_t blocks) {
  const std::int64_t count = std::min(trained.count < 0 ? -trained.count : trained.count, blocks);
  std::vector<std::int64_t> numbers;
  if (!trained.spread) {
    const std::int64_t first = trained.count < 0 ? 0 : blocks - count;
    for (std::int64_t number = first; number < first + count; ++number) numbers.push_back(number);
    return numbers;
  }
  if (trained.count < 1 || blocks % trained.count != 0) {
    return refused("its " + std::to_string(blocks) + " blocks cannot be shared among " + std::to_string(trained.count) +
                   " groups, as freeze_trainable_layers asks under use_llama_pro");
  }
  const std::int64_t stride = blocks / trained.count;
  for (std::int64_t number = stride - 1; number < blocks; number += stride) numbers.push_back(number);
  return numbers;
}

}  // namespace trained_blocks_detail
}  // namespace

std::string frozen_patterns(const TrainedBlocks& trained, const model::ModelGraph& graph) {
  if (trained.count == 0 || !trained.and_rest) return {};
  const std::string stack = trained_blocks_detail::largest_stack(graph).first;
  return stack.empty() ? std::string() : stack + ".*";
}

core::Result<std::string> trained_patterns(const TrainedBlocks& trained, const model::ModelGraph& graph) {
  namespace detail = trained_blocks_detail;
  constexpr std::int64_t kMost = 4096;  // no model has as many
  if (trained.count == 0) return std::string();
  const auto [stack, blocks] = detail::largest_stack(graph);
  if (blocks < 1 || blocks > kMost || trained.count < -kMost || trained.count > kMost) {
    return detail::refused("the model shows no list of blocks of which some could be trained");
  }
  const auto numbers = detail::numbers_of(trained, blocks);
  if (!numbers) return numbers.error();
  std::string patterns;
  for (const std::int64_t number : *numbers) {
    const std::string block = stack + "." + std::to_string(number) + ".";
    if (trained.modules.empty()) detail::add(patterns, block + "*");
    each_name(trained.modules, [&](std::string_view name) { detail::add(patterns, block + std::string(name) + "*"); });
  }
  each_name(trained.others, [&](std::string_view name) { detail::add(patterns, "*" + std::string(name) + "*"); });
  return patterns;
}

}  // namespace gpumem::trainer_files
