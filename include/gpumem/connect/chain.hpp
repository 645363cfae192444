// Input: a job whose graph has no edges and is of no known architecture.
// Output: its layers in a chain: each reads the one before. Blocks of a known class (block_rules.hpp) are joined by
// their rule instead.
//
// A job without an input shape: the input is inferred where the first layer tells it. Token ids from their
// embedding's output; features from a linear layer's parameters; an image from a convolution's output and parameters
// and the size that the summary's foot prints, which is rounded: of the sizes that fit, the roundest.
//
// Beyond known blocks a branch cannot be seen: what a convolution reads whose sizes contradict its predecessor is
// guessed (repair.hpp), with a warning that names it; other layers of tables that do are counted.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/connect/block_rules.hpp"
#include "gpumem/connect/complete.hpp"
#include "gpumem/connect/cut_blocks.hpp"
#include "gpumem/connect/infer_shapes.hpp"
#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::connect {

struct Chained {
  model::ModelGraph graph;
  std::int64_t joins = 0;      ///< sums, products and concatenations that no row shows
  std::int64_t misfits = 0;    ///< layers whose printed shape does not follow from what they were chained to
  Guesses guesses;             ///< what was inferred and may be wrong
  std::string inferred_input;  ///< "3x224x224"; empty: the job or the summary gives the input
};

/// Errors: missing_information without an input shape, or where sizes contradict each other.
[[nodiscard]] core::Result<Chained> chain(const model::TrainingJob& job, const ops::Catalogue& ops);

namespace chain_detail {

/// Puts rows of torchsummary into the containers whose rows follow them.
class MarkReader {
 public:
  MarkReader(const model::ModelGraph& graph, const core::Shape& input) : graph_(graph) {
    containers_.emplace_back();
    shapes_.push_back(input);
  }

  Containers read() {
    std::uint32_t next = 0;
    for (const model::BlockMark& mark : graph_.block_marks()) {
      for (; next < mark.layers; ++next) add(next);
      close(graph_.class_name(mark), mark.output);
    }
    for (; next < graph_.layers().size(); ++next) add(next);
    containers_[0].parts = std::move(parts_);
    return std::move(containers_);
  }

 private:
  void add(std::uint32_t layer) {
    parts_.push_back({layer, false});
    const auto outputs = graph_.outputs(graph_.layers()[layer]);
    shapes_.push_back(outputs.empty() ? core::Shape(shapes_.back()) : printed_shape(graph_, graph_.layers()[layer]));
  }

  void close(std::string_view class_name, const core::Shape& output) {
    const BlockRule* rule = find_block_rule(class_name);
    if (rule == nullptr || rule->begin == nullptr) return;
    OpenRows rows{graph_, containers_, parts_, shapes_};
    constexpr std::size_t kLookBack = 256;
    const std::size_t last = parts_.size() - std::min(parts_.size(), kLookBack);
    for (std::size_t part = parts_.size(); part > last && !rows.any_block; --part) {
      rows.any_block = parts_[part - 1].container && rule == find_block_rule(rows.class_name(part - 1));
      if (rows.any_block) rows.after_block = part;
    }
    const auto begin = rule->begin(rows);
    if (!begin || *begin >= parts_.size()) return;
    const auto first = parts_.begin() + static_cast<std::ptrdiff_t>(*begin);
    Container block{{}, class_name, {first, parts_.end()}};
    parts_.erase(first, parts_.end());
    shapes_.resize(*begin + 1);
    parts_.push_back({static_cast<std::uint32_t>(containers_.size()), true});
    shapes_.push_back(output);
    containers_.push_back(std::move(block));
  }

  const model::ModelGraph& graph_;
  Containers containers_;
  std::vector<Part> parts_;          ///< of the model itself, so far
  std::vector<core::Shape> shapes_;  ///< what each part reads, and what the last one leaves
};

/// The first layer that reads anything, and its rule.
struct First {
  const model::Layer* layer = nullptr;
  const ops::Op* op = nullptr;
};
inline First first_reader(const model::ModelGraph& graph, const ops::Catalogue& ops) {
  for (const model::Layer& layer : graph.layers()) {
    for (const ops::Op* op : ops) {
      const bool reads = op->traits.name == graph.op(layer) && op->output_shape != nullptr && !op->reads_nothing;
      if (reads) return {&layer, op};
    }
  }
  return {};
}

/// How often 2 divides it: 224 is rounder than 223.
inline int roundness(std::int64_t size) {
  int twos = 0;
  for (; size > 0 && size % 2 == 0; size /= 2) ++twos;
  return twos;
}

/// The square image that a convolution reads, by the bytes of one sample.
inline std::optional<core::Shape> image_of(const PrintedLayer& layer, const model::PrintedInput& bytes) {
  constexpr std::int64_t kMostStride = 32;
  constexpr std::int64_t kMostChannels = 16;
  if (layer.output.rank() != 4 || layer.output[2] != layer.output[3]) return std::nullopt;
  if (layer.output[2].kind != core::Dim::Kind::fixed || layer.output[2].size > (1 << 12)) return std::nullopt;
  const std::int64_t side = layer.output[2].size;
  std::optional<core::Shape> best;
  for (std::int64_t size = side; size <= side * kMostStride; ++size) {
    const std::int64_t channel = size * size * 4;  // its bytes
    if (channel > bytes.most_bytes) break;
    const std::int64_t above = bytes.least_bytes % channel > 0 ? 1 : 0;
    const std::int64_t fewest = std::max<std::int64_t>(1, bytes.least_bytes / channel + above);
    const std::int64_t most = std::min(kMostChannels, bytes.most_bytes / channel);
    for (std::int64_t channels = fewest; channels <= most; ++channels) {
      const core::Shape image = with_batch(std::array<std::int64_t, 3>{channels, size, size});
      const auto attributes = complete(layer, image, true);
      const bool whole = attributes && model::Attributes(*attributes).integer("groups").value_or(1) == 1;
      if (whole && (!best || roundness(size) > roundness((*best)[2].size))) best = image;
    }
  }
  return best;
}

/// A square image of three channels or one of this size, which a cut table's first block reads.
inline std::optional<core::Shape> image_of(const model::PrintedInput& bytes) {
  constexpr std::int64_t kLargest = 1 << 14;
  for (const std::int64_t channels : {std::int64_t{3}, std::int64_t{1}}) {
    std::optional<std::int64_t> side;
    for (std::int64_t size = 1; size <= kLargest && size * size * channels * 4 <= bytes.most_bytes; ++size) {
      const bool fits = size * size * channels * 4 >= bytes.least_bytes && roundness(size) >= 2;
      if (fits && (!side || roundness(size) > roundness(*side))) side = size;
    }
    if (side) return with_batch(std::array<std::int64_t, 3>{channels, *side, *side});
  }
  return std::nullopt;
}

/// What the model's first layer must read, as its row tells; nothing if it does not.
inline std::optional<core::Shape> told_by(const model::ModelGraph& graph, const First& first) {
  if (first.layer == nullptr || graph.outputs(*first.layer).empty()) return std::nullopt;
  const PrintedLayer layer = {&first.op->traits, graph.attributes(*first.layer), printed_shape(graph, *first.layer),
                              first.layer->parameters, true};
  const core::Shape& output = layer.output;
  if (first.op->reads_token_ids && output.rank() == 3) {
    core::Shape ids;
    ids.push_back(output[0]);
    ids.push_back(output[1]);
    return ids;
  }
  if (layer.op->completion == model::Completion::linear && output.rank() == 2 &&
      output[1].kind == core::Dim::Kind::fixed) {
    const std::int64_t out = output[1].size;
    const std::int64_t with_bias = layer.parameters - out;
    if (with_bias > 0 && with_bias % out == 0) return with_batch(std::array<std::int64_t, 1>{with_bias / out});
    return std::nullopt;
  }
  if (!graph.printed_input()) return std::nullopt;
  const bool hides = layer.op->name == model::kOpaqueOp || layer.op->name == kCutBlock;
  if (hides && output.rank() == 4) return image_of(*graph.printed_input());
  if (layer.op->completion != model::Completion::convolution) return std::nullopt;
  return image_of(layer, *graph.printed_input());
}

/// "3x224x224"
inline std::string sample_text(const core::Shape& shape) {
  std::string text;
  for (std::size_t axis = 1; axis < shape.rank(); ++axis) {
    text += (axis > 1 ? "x" : "") + core::to_string(shape[axis]);
  }
  return text;
}

/// What the model reads: as the job says, else as the summary does, else as its first layer tells.
inline core::Result<model::GraphInput> input_of(const model::TrainingJob& job, const ops::Catalogue& ops,
                                                std::string& inferred) {
  const model::ModelGraph& graph = *job.graph;
  const First first = first_reader(graph, ops);
  const bool token_ids = first.op != nullptr && first.op->reads_token_ids;
  model::GraphInput input{"input", {}, token_ids ? core::DType::int64 : core::DType::float32};
  if (!graph.graph_inputs().empty()) input = graph.graph_inputs()[0];
  if (!job.input_shape.empty()) {
    input.shape = with_batch(job.input_shape);
  } else if (token_ids && job.sequence_length) {
    input.shape = with_batch({&*job.sequence_length, 1});
  }
  if (input.shape.rank() > 0) return input;
  if (const auto told = told_by(graph, first)) {
    input.shape = *told;
    inferred = sample_text(*told);
    return input;
  }
  const model::Layer& layer = first.layer == nullptr ? graph.layers()[0] : *first.layer;
  return core::Error{core::ErrorCode::missing_information,
                     "its input size is not printed; give one sample's shape (`input=3x224x224`) or the "
                     "sequence length (`seq_length=512`)",
                     {graph.file(), layer.line, graph.path(layer)}};
}

/// Containers within each other, at most: rules call each other as deep.
inline bool too_deep(const model::ModelGraph& graph) {
  constexpr std::uint32_t kDeepest = 500;
  std::vector<std::uint32_t> depth(graph.scopes(), 0);
  for (std::uint32_t scope = 1; scope < depth.size(); ++scope) {
    depth[scope] = depth[graph.scope(scope).parent] + 1;
    if (depth[scope] > kDeepest) return true;
  }
  return false;
}

/// Layers that hold or multiply something, of which a guess at the input moves the answer.
inline std::int64_t computing_layers(const model::ModelGraph& graph) {
  return std::count_if(graph.layers().begin(), graph.layers().end(), [&](const model::Layer& layer) {
    const model::OpTraits* op = graph.op_traits(layer);
    return op != nullptr && (op->multiplies || op->family == model::OpFamily::norm);
  });
}

/// Experts of which a tree prints no size: transformers 5 holds their weights as one parameter each, which print(model)
/// does not show. They are most of a model, so it is not answered without them.
inline std::optional<core::Error> unprinted_experts(const model::ModelGraph& graph) {
  if (graph.format() != "module_tree") return std::nullopt;
  constexpr std::string_view kExperts = "Experts";
  const auto refusal = [&](std::string_view class_name, std::int64_t line, std::string path) {
    return core::Error{core::ErrorCode::missing_information,
                       "is a " + std::string(class_name) +
                           ", whose weights are parameters that print(model) does not show; give the model's "
                           "config.json, or a recording",
                       {graph.file(), line, std::move(path)}};
  };
  std::vector<std::int64_t> held(graph.scopes(), 0);
  std::vector<const model::Layer*> first(graph.scopes(), nullptr);  // of those anywhere in the scope
  for (const model::Layer& layer : graph.layers()) {
    const std::string_view own = graph.class_name(layer);
    if (own.ends_with(kExperts) && layer.parameters == 0) return refusal(own, layer.line, graph.path(layer));
    held[layer.scope] += layer.parameters > 0 ? 1 : 0;
    for (std::uint32_t at = layer.scope; first[at] == nullptr; at = graph.scope(at).parent) first[at] = &layer;
  }
  for (std::uint32_t scope = static_cast<std::uint32_t>(graph.scopes()); scope-- > 1;) {
    const std::string_view own = graph.class_name(graph.scope(scope));
    const bool bare = own.ends_with(kExperts) && held[scope] == 0 && first[scope] != nullptr;
    if (bare) return refusal(own, first[scope]->line, graph.path(*first[scope]));
    held[graph.scope(scope).parent] += held[scope];
  }
  return std::nullopt;
}

/// Blocks that a model calls at several layers, of which a tree prints the parameters at each. Source: transformers
/// 4.57, models/zamba2/modular_zamba2.py (Zamba2Model.get_layers), models/zamba/modeling_zamba.py.
inline std::optional<core::Error> repeated_blocks(const model::ModelGraph& graph) {
  if (graph.format() != "module_tree") return std::nullopt;
  for (const model::Layer& layer : graph.layers()) {
    const std::string_view around = graph.class_name(graph.scope(layer.scope));
    if (around != "ZambaHybridLayer" && around != "Zamba2HybridLayer") continue;
    return core::Error{core::ErrorCode::missing_information,
                       "is of a " + std::string(around) +
                           ", whose block other layers share, so that print(model) shows its parameters again and "
                           "again; give the model's config.json, or a recording",
                       {graph.file(), layer.line, graph.path(layer)}};
  }
  return std::nullopt;
}

/// An answer in which more than half of the layers read something made up says nothing.
inline std::optional<core::Error> mostly_guessed(const model::ModelGraph& graph, const Guesses& guesses) {
  if (2 * guesses.stand_ins <= guesses.layers) return std::nullopt;
  return core::Error{
      core::ErrorCode::missing_information,
      "what " + core::with_separators(guesses.stand_ins) + " of " + core::with_separators(guesses.layers) +
          " layers read is not printed, so that an answer would be a guess; use graph JSON, or a recording",
      {graph.file(), 0, {}}};
}

}  // namespace chain_detail

inline core::Result<Chained> chain(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const model::ModelGraph& graph = *job.graph;
  if (chain_detail::too_deep(graph)) {
    return core::Error{core::ErrorCode::malformed_input, "nests containers more than 500 deep", {graph.file(), 0, {}}};
  }
  if (auto fault = chain_detail::unprinted_experts(graph)) return *std::move(fault);
  if (auto fault = chain_detail::repeated_blocks(graph)) return *std::move(fault);
  std::string inferred_input;
  core::Result<model::GraphInput> input = chain_detail::input_of(job, ops, inferred_input);
  if (!input) return input.error();
  const bool marked = !graph.block_marks().empty();
  const Containers containers = marked ? chain_detail::MarkReader(graph, input->shape).read() : containers_of(graph);
  Wiring wiring(job, ops, containers, rows_of, *std::move(input));
  wiring.chain(containers[0].parts, model::kFirstGraphInput);
  const std::int64_t joins = wiring.joins();
  const std::int64_t misfits = wiring.misfits();
  const Guesses& bounds = wiring.bounds();
  const Guesses guesses = {wiring.guesses(),
                           wiring.first_guess(),
                           wiring.stand_ins(),
                           wiring.unknown_containers(),
                           chain_detail::computing_layers(graph),
                           bounds.bounded,
                           bounds.fewer_elements,
                           bounds.more_elements};
  if (const auto fault = wiring.contradicted(); fault && !wiring.failed()) return *fault;
  if (const auto fault = wiring.mostly_opaque(); fault && !wiring.failed()) return *fault;
  if (const auto fault = chain_detail::mostly_guessed(graph, guesses); fault && !wiring.failed()) return *fault;
  core::Result<model::ModelGraph> wired = std::move(wiring).build();
  if (!wired) return wired.error();
  return Chained{*std::move(wired), joins, misfits, guesses, std::move(inferred_input)};
}

}  // namespace gpumem::connect
