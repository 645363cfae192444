#pragma once

#include "gpumem/connect/repeated_blocks.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "gpumem/architectures/architectures.hpp"

namespace gpumem::connect {

namespace repeated_blocks_detail {

/// A container of layers, whatever tells of it.
struct Container {
  std::uint32_t parent = 0;
  std::string_view kind = {};  ///< equal for containers of one class; empty: never a block
  std::int64_t products = 0;   ///< layers with weights inside it
  bool empty = true;           ///< no layer is inside it
  bool attends = false;        ///< attention is inside it
};

struct Containers {
  Containers() = default;
  Containers(Containers&&) = default;
  Containers& operator=(Containers&&) = default;

  std::deque<std::string> kinds;  ///< those that are not the graph's names of classes
  std::vector<Container> all;     ///< a parent comes before its children; 0 is the model
  std::vector<std::uint32_t> of;  ///< by layer: the innermost one
  bool by_name = false;
};

GPUMEM_INLINE bool is_list(std::string_view class_name) {
  return class_name == "Sequential" || class_name == "ModuleList" || class_name == "ModuleDict";
}

GPUMEM_INLINE bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// Digits count for nothing: "layer3.12" is of one kind with "layer1.0".
GPUMEM_INLINE std::string without_digits(std::string_view path) {
  std::string kind;
  for (const char letter : path) {
    if (!is_digit(letter)) kind += letter;
    else if (kind.empty() || kind.back() != '#') kind += '#';
  }
  return kind;
}

GPUMEM_INLINE Containers by_scope(const model::ModelGraph& graph) {
  Containers containers;
  containers.all.reserve(graph.scopes());
  containers.of.reserve(graph.layers().size());
  for (std::uint32_t scope = 0; scope < graph.scopes(); ++scope) {
    const std::string_view name = scope == 0 ? std::string_view() : graph.class_name(graph.scope(scope));
    containers.all.push_back({graph.scope(scope).parent, is_list(name) ? std::string_view() : name, 0});
  }
  for (const model::Layer& layer : graph.layers()) containers.of.push_back(layer.scope);
  return containers;
}

/// A container whose children have numbers for names is a list (torch.nn.Sequential); a block gives its parts names.
GPUMEM_INLINE Containers by_name(const model::ModelGraph& graph) {
  constexpr int kDeepest = 32;
  constexpr std::size_t kLongest = 1024;
  Containers containers;
  containers.by_name = true;
  containers.all.emplace_back();
  std::unordered_map<std::string_view, std::uint32_t> known;
  for (const model::Layer& layer : graph.layers()) {
    const std::string_view name = graph.name(layer).substr(0, kLongest);
    std::uint32_t at = 0;
    std::size_t begin = 0;
    for (int depth = 0; depth < kDeepest; ++depth) {
      const std::size_t dot = name.find('.', begin);
      if (dot == std::string_view::npos) break;
      const std::string_view path = name.substr(0, dot);
      const auto [entry, added] = known.try_emplace(path, static_cast<std::uint32_t>(containers.all.size()));
      if (added) containers.all.push_back({at, {}, 0});
      at = entry->second;
      begin = dot + 1;
      const bool numbered = is_digit(path.back());
      const bool named_part = begin < name.size() && !is_digit(name[begin]);
      if (numbered && named_part && containers.all[at].kind.empty()) {
        containers.all[at].kind = containers.kinds.emplace_back(without_digits(path));
      }
    }
    containers.of.push_back(at);
  }
  return containers;
}

GPUMEM_INLINE void count_products(const model::ModelGraph& graph, Containers& containers) {
  for (std::size_t layer = 0; layer < containers.of.size(); ++layer) {
    const model::OpTraits* op = graph.op_traits(graph.layers()[layer]);
    Container& container = containers.all[containers.of[layer]];
    if (op != nullptr && op->multiplies) ++container.products;
    if (op != nullptr && op->family == model::OpFamily::attention) container.attends = true;
    container.empty = false;
  }
  for (std::size_t at = containers.all.size(); at-- > 1;) {
    Container& parent = containers.all[containers.all[at].parent];
    parent.products += containers.all[at].products;
    parent.empty = parent.empty && containers.all[at].empty;
    parent.attends = parent.attends || containers.all[at].attends;
  }
}

/// The kind with siblings that hold nothing: the pipeline stage has one block of many.
GPUMEM_INLINE std::string_view left_alone(const Containers& containers) {
  std::map<std::pair<std::uint32_t, std::string_view>, bool> emptied;
  for (const Container& container : containers.all) {
    if (container.empty && !container.kind.empty()) emptied[{container.parent, container.kind}] = true;
  }
  for (const Container& container : containers.all) {
    if (container.products >= 2 && emptied.contains({container.parent, container.kind})) return container.kind;
  }
  return {};
}

/// The kind with the most siblings under one parent, the outermost first; empty if nothing repeats.
GPUMEM_INLINE std::string most_repeated(const Containers& containers) {
  std::map<std::pair<std::uint32_t, std::string_view>, int> siblings;
  std::string_view best;
  int most = 1;
  for (std::size_t at = 1; at < containers.all.size(); ++at) {
    const Container& container = containers.all[at];
    if (container.kind.empty() || container.products < 2) continue;
    const int count = ++siblings[{container.parent, container.kind}];
    if (count <= most) continue;
    most = count;
    best = container.kind;
  }
  return std::string(best.empty() ? left_alone(containers) : best);
}

/// What no module prints, such as the sum at a block's end, has no container in a name.
GPUMEM_INLINE bool is_operation(const model::ModelGraph& graph, const model::Layer& layer) {
  return graph.class_name(layer) == graph.op(layer) && graph.name(layer).find('.') == std::string_view::npos;
}

/// By layer: the last one that reads it.
GPUMEM_INLINE std::vector<std::uint32_t> last_readers(const model::ModelGraph& graph) {
  const auto layers = graph.layers();
  std::vector<std::uint32_t> last(layers.size(), 0);
  for (std::uint32_t index = 0; index < layers.size(); ++index) {
    for (const model::LayerIndex input : graph.inputs(layers[index])) {
      if (input >= 0) last[static_cast<std::size_t>(input)] = index;
    }
  }
  return last;
}

/// Where the block ends among these operations: as soon as one tensor is all that is read later, of the block and of
/// what the operations read last from before it. What comes then is written out at the next block's beginning (a norm).
/// `before`: the layers before the block to look at. `between`.end: nowhere among them.
GPUMEM_INLINE std::uint32_t cut_of(const std::vector<std::uint32_t>& last, const Range& before, const Range& between) {
  // A tensor crosses each cut behind its layer, up to its last reader: one step up and one down.
  std::vector<std::int32_t> steps(between.end - between.first + 1, 0);
  for (std::uint32_t layer = before.first; layer < between.end; ++layer) {
    const bool counts = layer >= before.end || last[layer] < between.end;
    const std::uint32_t from = std::max(layer + 1, between.first);
    const std::uint32_t to = std::min(last[layer] + 1, between.end);
    if (!counts || from >= to) continue;
    ++steps[from - between.first];
    --steps[to - between.first];
  }
  std::int32_t crossing = 0;
  for (std::uint32_t cut = between.first; cut < between.end; ++cut) {
    crossing += steps[cut - between.first];
    if (crossing == 1) return cut;
  }
  return between.end;
}

/// The first block begins with as many operations as the second one, if they are the same.
GPUMEM_INLINE void begin_first(const model::ModelGraph& graph, std::vector<Range>& blocks, std::uint32_t count) {
  const auto layers = graph.layers();
  if (blocks.size() < 2 || blocks[0].first < count) return;
  const std::uint32_t first = blocks[0].first - count;
  for (std::uint32_t at = 0; at < count; ++at) {
    const model::Layer& layer = layers[first + at];
    if (!is_operation(graph, layer) || layer.op != layers[blocks[1].first + at].op) return;
  }
  blocks[0].first = first;
}

/// Blocks told by names end where the next one begins, and the last one as the one before it.
GPUMEM_INLINE void take_operations(const model::ModelGraph& graph, std::vector<Range>& blocks) {
  const auto layers = graph.layers();
  const auto operations_behind = [&](std::uint32_t from) {
    std::uint32_t end = from;
    while (end < layers.size() && is_operation(graph, layers[end])) ++end;
    return end - from;
  };
  const std::vector<std::uint32_t> last = last_readers(graph);
  std::vector<std::uint32_t> tail;  // the ops after the block before
  std::uint32_t head = 0;           // the operations that the second block begins with
  for (std::size_t at = 0; at < blocks.size(); ++at) {
    const std::uint32_t end = blocks[at].end;
    std::uint32_t more = operations_behind(end);
    const bool meets_next = at + 1 < blocks.size() && end + more == blocks[at + 1].first;
    if (!meets_next) {
      std::uint32_t same = 0;
      while (same < std::min<std::size_t>(more, tail.size()) && layers[end + same].op == tail[same]) ++same;
      more = same == tail.size() ? same : 0;
    } else {
      const Range before = {at == 0 ? 0 : blocks[at - 1].first, blocks[at].first};
      const std::uint32_t cut = cut_of(last, before, {end, end + more});
      if (at == 0) head = end + more - cut;
      blocks[at + 1].first = cut;
      more = cut - end;
      tail.clear();
      for (std::uint32_t behind = 0; behind < more; ++behind) tail.push_back(layers[end + behind].op);
    }
    blocks[at].end += more;
  }
  begin_first(graph, blocks, head);
}

/// The kinds with siblings in a list that hold attention.
GPUMEM_INLINE std::set<std::string, std::less<>> attending_kinds(const Containers& containers) {
  std::map<std::pair<std::uint32_t, std::string_view>, int> siblings;
  std::set<std::string, std::less<>> kinds;
  for (std::size_t at = 1; at < containers.all.size(); ++at) {
    const Container& container = containers.all[at];
    const bool listed = container.parent > 0 && containers.all[container.parent].kind.empty();
    if (!listed || !container.attends || container.kind.empty() || container.products < 2) continue;
    if (++siblings[{container.parent, container.kind}] > 1) kinds.emplace(container.kind);
  }
  return kinds;
}

GPUMEM_INLINE std::vector<Range> runs_of(const Containers& containers,
                                         const std::set<std::string, std::less<>>& kinds) {
  constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<std::uint32_t> block_of(containers.all.size(), kNone);
  for (std::uint32_t at = 1; at < containers.all.size(); ++at) {
    const Container& container = containers.all[at];
    block_of[at] = block_of[container.parent];
    if (block_of[at] == kNone && kinds.contains(container.kind)) block_of[at] = at;
  }
  std::vector<Range> blocks;
  std::uint32_t open = kNone;
  for (std::uint32_t layer = 0; layer < containers.of.size(); ++layer) {
    const std::uint32_t block = block_of[containers.of[layer]];
    if (containers.by_name && block == kNone && containers.of[layer] == 0) continue;  // an operation between its layers
    if (block != open && block != kNone) blocks.push_back({layer, layer});
    open = block;
    if (block != kNone) blocks.back().end = layer + 1;
  }
  return blocks;
}

/// The outermost containers of these classes, each a block of its own.
GPUMEM_INLINE std::vector<Range> of_classes(const model::ModelGraph& graph, std::span<const std::string_view> classes) {
  constexpr std::string_view kBlock = "block";
  Containers containers = by_scope(graph);
  for (Container& container : containers.all) {
    const bool block = std::find(classes.begin(), classes.end(), container.kind) != classes.end();
    container.kind = block ? kBlock : std::string_view();
  }
  return runs_of(containers, {std::string(kBlock)});
}

GPUMEM_INLINE std::vector<Range> blocks_in(const model::ModelGraph& graph, bool all_stacks) {
  if (const auto classes = architectures::block_classes(graph.architecture()); !classes.empty()) {
    return of_classes(graph, classes);
  }
  Containers containers = graph.scopes() > 1 ? by_scope(graph) : by_name(graph);
  count_products(graph, containers);
  for (std::size_t layer = 0; layer < containers.of.size(); ++layer) {
    if (graph.layers()[layer].expert > 0) containers.all[containers.of[layer]].kind = {};
  }
  std::string kind = most_repeated(containers);
  if (kind.empty()) return {};
  std::set<std::string, std::less<>> kinds;
  if (all_stacks && !containers.by_name) kinds = attending_kinds(containers);
  kinds.insert(std::move(kind));
  std::vector<Range> blocks = runs_of(containers, kinds);
  if (containers.by_name) take_operations(graph, blocks);
  return blocks;
}

}  // namespace repeated_blocks_detail

GPUMEM_INLINE std::vector<Range> repeated_blocks(const model::ModelGraph& graph) {
  return repeated_blocks_detail::blocks_in(graph, false);
}

GPUMEM_INLINE std::vector<Range> blocks_of_all_stacks(const model::ModelGraph& graph) {
  return repeated_blocks_detail::blocks_in(graph, true);
}

}  // namespace gpumem::connect
