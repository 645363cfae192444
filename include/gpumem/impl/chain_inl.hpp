#pragma once

#include "gpumem/connect/chain.hpp"

#include "gpumem/connect/block_rules.hpp"

namespace gpumem::connect {

namespace chain_detail {

GPUMEM_INLINE WireContainer wire_of(std::string_view class_name) {
  const BlockRule* rule = find_block_rule(class_name);
  return rule == nullptr ? nullptr : rule->wire;
}

/// Puts rows of torchsummary into the containers whose rows stand behind them.
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
      close(graph_.class_name(mark));
    }
    for (; next < graph_.layers().size(); ++next) add(next);
    containers_[0].parts = std::move(parts_);
    return std::move(containers_);
  }

 private:
  void add(std::uint32_t layer) {
    parts_.push_back({layer, false});
    const auto outputs = graph_.outputs(graph_.layers()[layer]);
    shapes_.push_back(outputs.empty() ? core::Shape(shapes_.back()) : outputs[0]);
  }

  void close(std::string_view class_name) {
    const BlockRule* rule = find_block_rule(class_name);
    if (rule == nullptr || rule->begin == nullptr) return;
    OpenRows rows{graph_, containers_, parts_, shapes_};
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      if (!parts_[part].container || find_block_rule(containers_[parts_[part].index].class_name) != rule) continue;
      rows.after_block = part + 1;
      rows.any_block = true;
    }
    const auto begin = rule->begin(rows);
    if (!begin || *begin >= parts_.size()) return;
    const auto first = parts_.begin() + static_cast<std::ptrdiff_t>(*begin);
    Container block{{}, class_name, {first, parts_.end()}};
    const core::Shape output = shapes_.back();
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

GPUMEM_INLINE core::Shape with_batch(std::span<const std::int64_t> sample) {
  core::Shape shape;
  shape.push_back(core::Dim::batch());
  for (const std::int64_t size : sample) shape.push_back(core::Dim::fixed(size));
  return shape;
}

/// The first layer that reads anything.
GPUMEM_INLINE const ops::Op* first_reader(const model::ModelGraph& graph, const ops::Catalogue& ops) {
  for (const model::Layer& layer : graph.layers()) {
    for (const ops::Op* op : ops) {
      const bool reads = op->traits.name == graph.op(layer) && op->output_shape != nullptr && !op->reads_nothing;
      if (reads) return op;
    }
  }
  return nullptr;
}

/// What the model reads: as the job says, else as the summary does.
GPUMEM_INLINE core::Result<model::GraphInput> input_of(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const model::ModelGraph& graph = *job.graph;
  const ops::Op* first = first_reader(graph, ops);
  const bool token_ids = first != nullptr && first->reads_token_ids;
  model::GraphInput input{"input", {}, token_ids ? core::DType::int64 : core::DType::float32};
  if (!graph.graph_inputs().empty()) input = graph.graph_inputs()[0];
  if (!job.input_shape.empty()) {
    input.shape = with_batch(job.input_shape);
  } else if (token_ids && job.sequence_length) {
    input.shape = with_batch({&*job.sequence_length, 1});
  }
  if (input.shape.rank() > 0) return input;
  const std::int64_t line = graph.layers().empty() ? 0 : graph.layers()[0].line;
  return core::Error{core::ErrorCode::missing_information,
                     "its input size is not printed; give one sample's shape (--input 3x224x224) or the "
                     "sequence length (--seq 512)",
                     {graph.file(), line, graph.path(graph.layers()[0])}};
}

}  // namespace chain_detail

GPUMEM_INLINE core::Result<Chained> chain(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const model::ModelGraph& graph = *job.graph;
  core::Result<model::GraphInput> input = chain_detail::input_of(job, ops);
  if (!input) return input.error();
  const bool marked = !graph.block_marks().empty();
  const Containers containers = marked ? chain_detail::MarkReader(graph, input->shape).read() : containers_of(graph);
  Wiring wiring(job, ops, containers, chain_detail::wire_of, *std::move(input));
  wiring.chain(containers[0].parts, model::kFirstGraphInput);
  const std::int64_t joins = wiring.joins();
  const std::int64_t misfits = wiring.misfits();
  core::Result<model::ModelGraph> wired = std::move(wiring).build();
  if (!wired) return wired.error();
  return Chained{*std::move(wired), joins, misfits};
}

}  // namespace gpumem::connect
