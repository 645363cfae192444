// What printed trees tell: the row of a class, the config that its tree comes from, and the graph of both.
#pragma once

#include "gpumem/architectures/architectures.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/architectures/module_tree.hpp"
#include "gpumem/core/json.hpp"

namespace gpumem::architectures {

namespace architectures_detail {

/// The row of a class, and the head that its name ends in.
GPUMEM_INLINE std::optional<KnownTree> known_class(std::string_view class_name) {
  for (const NamedHead& named : kHeads) {
    if (!class_name.ends_with(named.ending)) continue;
    const std::string_view prefix = class_name.substr(0, class_name.size() - named.ending.size());
    std::optional<KnownTree> any;
    for (const Architecture* architecture : architectures()) {
      for (const ModelClass& row : architecture->classes) {
        if (row.prefix != prefix) continue;
        if (row.ending == named.ending) return KnownTree{architecture, &row, named.head, 0};
        if (row.ending.empty() && !any) any = KnownTree{architecture, &row, named.head, 0};
      }
    }
    if (any) return any;
  }
  // Endings that say no head: Cosmos3OmniTransformer, AutoencoderKL.
  for (const Architecture* architecture : architectures()) {
    for (const ModelClass& row : architecture->classes) {
      const bool whole = !row.ending.empty() && class_name.starts_with(row.prefix);
      if (!whole || class_name.substr(row.prefix.size()) != row.ending) continue;
      return KnownTree{architecture, &row, architecture->usual_head, 0};
    }
  }
  return std::nullopt;
}

/// The row of a class that shares the embedding's weight with its output layer by default, in some sizes at least;
/// null: it is not known, or does not.
GPUMEM_INLINE const ModelClass* tying_class(std::string_view class_name) {
  const std::optional<KnownTree> known = known_class(class_name);
  const bool language = known && (known->head == Head::causal_lm || known->head == Head::masked_lm);
  return language && known->row->tied_up_to > 0 ? known->row : nullptr;
}

/// The config that the tree comes from. Its class tells the head, and what else the architecture reads of it.
GPUMEM_INLINE std::string config_of(const ModuleTree& tree, const KnownTree& known, TreeFields& fields) {
  fields.set_string("model_type", known.row->model_type);
  const bool of_diffusers = std::isupper(static_cast<unsigned char>(known.row->model_type.front())) != 0;
  if (of_diffusers) fields.set_string("_class_name", known.row->model_type);
  fields.set_text("architectures", "[\"" + std::string(tree.class_name()) + "\"]");
  if (known.head == Head::causal_lm || known.head == Head::masked_lm) {
    fields.set_flag("tie_word_embeddings", tree.has_tied_head());
  }
  known.architecture->read_tree(fields);
  return fields.json();
}

/// Whether all parameters are in the known model: what else a program wraps around it is not known to be called.
GPUMEM_INLINE core::Status holds_only(const model::ModelGraph& graph, const KnownTree& known) {
  for (const model::Layer& layer : graph.layers()) {
    if (graph.within(layer.scope, known.scope) || layer.parameters == layer.tied_parameters) continue;
    return core::Error{core::ErrorCode::missing_information,
                       "holds parameters outside of the " + std::string(graph.class_name(graph.scope(known.scope))) +
                           " in this tree; graph JSON says what it reads",
                       {graph.file(), layer.line, graph.path(layer)}};
  }
  return core::Done{};
}

/// The parameters of a tree's layers, without those of norms, of which no class prints whether they have a bias.
GPUMEM_INLINE std::int64_t printed_weights(const ModuleTree& tree) {
  core::Checked all(0);
  for (const std::uint32_t index : tree.layers()) {
    const model::Layer& layer = tree.graph().layers()[index];
    const model::OpTraits* const op = tree.graph().op_traits(layer);
    if (op == nullptr || op->norm == model::NormKind::none)
      all += core::Checked(layer.parameters - layer.tied_parameters);
  }
  return all.value().value_or(INT64_MAX);
}

/// The graph that a tree's fields make, each call's layer looked up in the tree.
GPUMEM_INLINE core::Result<model::ModelGraph> graph_of_tree(const ModuleTree& tree, const KnownTree& known,
                                                            const model::Vocabulary& vocabulary,
                                                            const TreeFields& fields, const std::string& told,
                                                            std::span<const std::int64_t> input) {
  const model::ModelGraph& graph = tree.graph();
  const std::string text = with_usual_parts(told);
  const core::Result<core::JsonDocument> document = core::JsonDocument::parse(text);
  if (!document) return core::Error(document.error()).in_file(graph.file());
  ConfigFields config(document->root());
  if (fields.fuses_experts()) config.fuse_experts();
  model::GraphBuilder builder(graph.format(), graph.file());
  builder.architecture(known.architecture->name, known.row->model_type);
  const bool whole = known.head == Head::none || known.head == Head::encoder || known.row->body.empty();
  Forward forward = fields.takes_sizes_alone()
                        ? Forward(builder, vocabulary)
                        : Forward(builder, vocabulary, tree, whole ? known.row->body : std::string_view());
  if (input.size() == 1) forward.tokens(input.front());
  forward.usual_parts(config.find("_usual_parts"));
  known.architecture->write(config, known.head, forward);
  if (const core::Status read = config.status(); !read) {
    return core::Error{core::ErrorCode::missing_information,
                       "is a " + std::string(tree.class_name()) +
                           " whose tree does not tell its sizes: as a config it " + read.error().message,
                       {graph.file(), 0, {}}};
  }
  forward.check_all_called();
  if (forward.reads_images() || forward.makes_sounds()) builder.config(with_usual_parts(fields.json_with_assumed()));
  core::Result<model::ModelGraph> made = std::move(builder).build();
  if (made && fields.takes_sizes_alone() && printed_weights(tree) > made->parameters()) {
    return core::Error{core::ErrorCode::missing_information,
                       "holds " + core::with_separators(printed_weights(tree)) +
                           " parameters, more than the code of its class makes of its sizes: " +
                           core::with_separators(made->parameters()),
                       {graph.file(), 0, {}}};
  }
  return made;
}

}  // namespace architectures_detail

GPUMEM_INLINE std::optional<KnownTree> known_tree(const model::ModelGraph& graph) {
  const bool tree = graph.format() == "module_tree" || graph.format() == "graph_json" || graph.format() == "torchinfo";
  if (!tree || !graph.edges_inferred() || graph.shapes_printed()) return std::nullopt;
  // A layer's class is in the list, too, and is not a container.
  std::vector<std::optional<KnownTree>> by_class;
  for (const std::string& name : graph.class_names()) by_class.push_back(architectures_detail::known_class(name));
  for (std::uint32_t scope = 0; scope < graph.scopes(); ++scope) {
    std::optional<KnownTree> known = by_class[graph.scope(scope).class_name];
    if (!known) continue;
    known->scope = scope;
    return known;
  }
  return std::nullopt;
}

GPUMEM_INLINE std::optional<model::Transformers> first_release(const model::ModelGraph& printed) {
  const auto known =
      printed.table_class().empty() ? known_tree(printed) : architectures_detail::known_class(printed.table_class());
  return known ? first_release(known->row->model_type) : std::nullopt;
}

GPUMEM_INLINE std::optional<TableTree> tree_of_table(const model::ModelGraph& table,
                                                     const model::Vocabulary& vocabulary) {
  namespace detail = printed_table_detail;
  const auto found = architectures_detail::known_class(table.table_class());
  if (!found) return std::nullopt;
  const detail::Known known = {found->architecture, found->row, found->head, table.table_class()};
  const auto rows = detail::modules_of(table);
  const auto names = detail::namesake(table, rows, known, vocabulary);
  if (!names) return std::nullopt;
  return detail::TreeOfRows(table, *names, known).build(rows, detail::modules_of(*names));
}

GPUMEM_INLINE core::Result<TreeModel> read_tree(const model::ModelGraph& graph, const KnownTree& known,
                                                const model::Vocabulary& vocabulary,
                                                std::span<const std::int64_t> input) {
  if (const core::Status only = architectures_detail::holds_only(graph, known); !only) return only.error();
  ModuleTree tree(graph, known.scope);
  if (known.architecture->holds_text_model && known.row->body == "model") tree.name_as_since_4_52();
  const std::string_view body = known.head == Head::none || known.head == Head::encoder ? "" : known.row->body;
  TreeFields fields(tree, body, input);
  const std::string text = architectures_detail::config_of(tree, known, fields);
  core::Result<model::ModelGraph> made =
      architectures_detail::graph_of_tree(tree, known, vocabulary, fields, text, input);
  if (!made) return made.error();
  return TreeModel{*std::move(made), fields.assumed()};
}

GPUMEM_INLINE std::optional<model::ModelGraph> model_of_tree(const model::ModelGraph& printed,
                                                             const model::Vocabulary& vocabulary) {
  const std::optional<KnownTree> known = known_tree(printed);
  if (!known || !known->architecture->depends_on_images) return std::nullopt;
  core::Result<TreeModel> made = read_tree(printed, *known, vocabulary);
  if (!made) return std::nullopt;
  for (const model::Warning& warning : printed.warnings()) {
    model::GraphBuilder::add_warning(made->graph, warning.message);
  }
  for (const std::string& chosen : made->assumed) model::GraphBuilder::add_remark(made->graph, chosen);
  return std::move(made->graph);
}

GPUMEM_INLINE bool reads_trees_of(std::string_view class_name) {
  return architectures_detail::known_class(class_name).has_value();
}

GPUMEM_INLINE bool ties_heads(std::string_view class_name) {
  return architectures_detail::tying_class(class_name) != nullptr;
}

GPUMEM_INLINE bool ties_head(std::string_view class_name, std::int64_t width, std::int64_t tokens,
                             std::span<const std::string> classes) {
  const ModelClass* row = architectures_detail::tying_class(class_name);
  if (row == nullptr) return false;
  if (!row->untied_with.empty() && std::ranges::find(classes, row->untied_with) != classes.end()) return false;
  return (row->tied_tokens == 0 || row->tied_tokens == tokens) && width <= row->tied_up_to;
}

GPUMEM_INLINE bool ties_bias(std::string_view class_name) {
  return std::ranges::any_of(architectures(), [&](const Architecture* architecture) {
    return std::ranges::find(architecture->tied_bias, class_name) != architecture->tied_bias.end();
  });
}

}  // namespace gpumem::architectures
