#pragma once

#include "gpumem/connect/connect.hpp"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "gpumem/architectures/architectures.hpp"
#include "gpumem/connect/chain.hpp"
#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/connect/infer_shapes.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/model/graph_builder.hpp"

namespace gpumem::connect {

namespace connect_detail {

GPUMEM_INLINE std::string described(const Chained& chained) {
  std::string text = "chained";
  const auto count = [](std::int64_t number, std::string_view one, std::string_view more) {
    return ", " + core::with_separators(number) + std::string(number == 1 ? one : more);
  };
  if (chained.joins > 0) text += count(chained.joins, " join inferred", " joins inferred");
  if (chained.misfits > 0) {
    text +=
        count(chained.misfits, " layer does not fit the layer before it", " layers do not fit the layers before them");
  }
  if (chained.guesses.edges > 0) {
    text += count(chained.guesses.edges, " layer's input guessed", " layers' inputs guessed");
    if (chained.guesses.first_line > 0) text += " (first on line " + std::to_string(chained.guesses.first_line) + ")";
  }
  if (chained.guesses.bounded > 0) {
    text += count(chained.guesses.bounded, " layer bounded by its sizes", " layers bounded by their sizes");
  }
  if (!chained.inferred_input.empty()) text += ", input " + chained.inferred_input + " inferred";
  return text;
}

/// A model with edges, and how these came about.
struct Connected {
  std::shared_ptr<const model::ModelGraph> graph;
  std::string edges;
  Guesses guesses = {};
};

/// A model whose class is known, as its forward() calls it.
GPUMEM_INLINE core::Result<Connected> of_architecture(const model::TrainingJob& job, const ops::Catalogue& ops,
                                                      const architectures::KnownTree& known) {
  core::Result<architectures::TreeModel> made =
      architectures::read_tree(*job.graph, known, ops::vocabulary_of(ops), job.input_shape);
  if (!made) return made.error();
  std::string edges = "architecture: " + std::string(known.architecture->name);
  for (const std::string& chosen : made->assumed) edges += ", " + chosen;
  return Connected{std::make_shared<const model::ModelGraph>(std::move(made->graph)), std::move(edges)};
}

/// A table whose class is known, as the class's forward() calls its rows; nothing where they are not these calls.
GPUMEM_INLINE std::optional<Connected> of_table(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const auto tree = architectures::tree_of_table(*job.graph, ops::vocabulary_of(ops));
  const auto known = tree ? architectures::known_tree(tree->graph) : std::nullopt;
  if (!known) return std::nullopt;
  model::TrainingJob read = job;
  read.graph = std::make_shared<const model::ModelGraph>(tree->graph);
  if (read.input_shape.empty()) read.input_shape = tree->sample;
  core::Result<Connected> made = of_architecture(read, ops, *known);
  if (!made || made->graph->parameters() != job.graph->parameters()) return std::nullopt;
  return *std::move(made);
}

/// Notes the layers that only the whole model has, so that an option that names one of them is no mistake.
GPUMEM_INLINE void note_left_out(const model::ModelGraph& whole, model::ModelGraph& part) {
  std::unordered_set<std::string> there;
  for (const model::Layer& layer : part.layers()) there.insert(part.path(layer));
  for (const model::Layer& layer : whole.layers()) {
    if (layer.parameters == 0) continue;
    std::string path = whole.path(layer);
    if (!there.contains(path)) model::GraphBuilder::leave_out(part, std::move(path));
  }
}

/// Whether the job's release of transformers holds each layer's experts in one tensor. Ranks that share a layer or the
/// experts themselves do not share such a tensor yet: these are taken as modules in every release.
/// Source: transformers 5.0 to 5.16, core_model_loading.py and conversion_mapping.py: checkpoints of modules are
/// merged.
GPUMEM_INLINE bool fuses_experts(const model::TrainingJob& job) {
  const bool shared = job.layout.tensor_parallel > 1 || job.layout.expert_parallel > 1;
  return model::runs_transformers_5(job) && !shared && job.graph->lists_experts() &&
         !job.graph->experts_config().empty();
}

/// Whether the job's experts are Megatron's own, of which each rank has some whole, while the config's class has one
/// tensor of them. Source: Megatron-LM core r0.16, core/transformer/moe/experts.py: TEGroupedMLP, whose grouped linear
/// layers have a weight for each local expert.
GPUMEM_INLINE bool lists_experts(const model::TrainingJob& job) {
  return model::is_megatron_model(*job.graph, job) && !job.graph->lists_experts() &&
         !job.graph->experts_config().empty();
}

GPUMEM_INLINE architectures::Experts experts_of(const model::TrainingJob& job) {
  if (lists_experts(job)) return architectures::Experts::listed;
  return fuses_experts(job) ? architectures::Experts::fused : architectures::Experts::usual;
}

GPUMEM_INLINE core::Result<Connected> with_edges(const model::TrainingJob& job, const ops::Catalogue& ops) {
  const model::Images images = images_of(job);
  // Of models that read token ids, the number of tokens is a size of their inputs.
  const bool prompt = images.text_tokens.has_value() && !job.graph->config().empty() && !job.graph->reads_tokens();
  const bool parts = !images.parts.empty() && images.parts != "none";
  using architectures::Experts;
  const Experts experts = experts_of(job);
  if (images.said() || parts || prompt) {
    const model::Vocabulary vocabulary = ops::vocabulary_of(ops);
    core::Result<model::ModelGraph> made = architectures::with_images(*job.graph, vocabulary, images, experts);
    if (!made) return made.error();
    if (images.count == 0 && experts != Experts::usual) {
      const core::Result<model::ModelGraph> whole = architectures::with_images(*job.graph, vocabulary, {}, experts);
      if (!whole) return whole.error();
      note_left_out(*whole, *made);
    } else if (images.count == 0) {
      note_left_out(*job.graph, *made);
    }
    return Connected{std::make_shared<const model::ModelGraph>(*std::move(made)), "given"};
  }
  if (experts != Experts::usual) {
    core::Result<model::ModelGraph> made = architectures::read_config(
        job.graph->experts_config(), ops::vocabulary_of(ops), job.graph->file(), {}, experts);
    if (!made) return made.error();
    return Connected{std::make_shared<const model::ModelGraph>(*std::move(made)), "given"};
  }
  if (!job.graph->edges_inferred()) return Connected{job.graph, "given"};
  if (const auto known = architectures::known_tree(*job.graph)) return of_architecture(job, ops, *known);
  if (std::optional<Connected> table = of_table(job, ops)) return *std::move(table);
  core::Result<Chained> chained = chain(job, ops);
  if (!chained) return chained.error();
  std::string edges = described(*chained);
  return Connected{std::make_shared<const model::ModelGraph>(std::move(chained->graph)), std::move(edges),
                   chained->guesses};
}

/// The rule of every op that occurs in the graph, by the graph's op index; null for unknown ops. Of two of a name the
/// later.
GPUMEM_INLINE std::vector<const ops::Op*> rules_of(const model::ModelGraph& graph, const ops::Catalogue& all) {
  std::vector<const ops::Op*> rules;
  rules.reserve(graph.ops().size());
  for (const std::string& name : graph.ops()) {
    const auto named = [&](const ops::Op* op) { return op->traits.name == name; };
    const auto found = std::find_if(all.rbegin(), all.rend(), named);
    rules.push_back(found == all.rend() ? nullptr : *found);
  }
  return rules;
}

}  // namespace connect_detail

GPUMEM_INLINE core::Result<WiredGraph> connect(const model::TrainingJob& job, const ops::Catalogue& ops) {
  core::Result<connect_detail::Connected> connected = connect_detail::with_edges(job, ops);
  if (!connected) return connected.error();
  WiredGraph::Parts parts{std::move(connected->graph), std::move(connected->edges), {}, {}, connected->guesses};
  parts.ops = connect_detail::rules_of(*parts.graph, ops);
  parts.remarks.assign(parts.graph->remarks().begin(), parts.graph->remarks().end());
  core::Result<LayerShapes> shapes = infer_shapes(job, *parts.graph, parts.ops);
  if (!shapes) return shapes.error();
  parts.shapes = *std::move(shapes);
  WiredGraph wired(std::move(parts));
  core::Result<WiredGraph> called = with_calls_of_job(wired, job, ops);
  if (!called) return called.error();
  wired = *std::move(called);
  const bool masks = job.padding && job.attention != model::AttentionBackend::flash;
  return masks ? with_padding(wired, ops, job.transformers >= model::Transformers::v4_56) : wired;
}

GPUMEM_INLINE core::Result<std::int64_t> picture_tokens(const model::TrainingJob& job, const ops::Catalogue& ops) {
  if (job.graph->config().empty() || !job.graph->reads_tokens()) return 0;
  const auto seen = architectures::with_images(*job.graph, ops::vocabulary_of(ops), images_of(job));
  if (!seen) return seen.error();
  return seen->picture_tokens();
}

}  // namespace gpumem::connect
