#pragma once

#include "gpumem/architectures/architectures.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "gpumem/architectures/llama.hpp"
#include "gpumem/core/json.hpp"

namespace gpumem::architectures {

namespace architectures_detail {

using Kind = core::JsonValue::Kind;

GPUMEM_INLINE core::Error malformed(std::string message) {
  return {core::ErrorCode::malformed_input, std::move(message), {}};
}

/// The head of the first class in "architectures"; nothing if it names none that is known.
GPUMEM_INLINE std::optional<Head> named_head(ConfigFields& config) {
  const std::string_view first = config.class_name();
  for (const NamedHead& row : kHeads) {
    if (first.ends_with(row.ending)) return row.head;
  }
  for (const std::string_view ending : kOtherHeads) {
    if (first.ends_with(ending)) config.fail("the head of " + std::string(first) + " is not known");
  }
  return std::nullopt;
}

GPUMEM_INLINE const Architecture* find(std::string_view model_type) {
  for (const Architecture* architecture : architectures()) {
    const auto& types = architecture->model_types;
    if (std::find(types.begin(), types.end(), model_type) != types.end()) return architecture;
  }
  return nullptr;
}

GPUMEM_INLINE std::vector<std::string_view> known_types() {
  std::vector<std::string_view> names;
  for (const Architecture* architecture : architectures()) {
    names.insert(names.end(), architecture->model_types.begin(), architecture->model_types.end());
  }
  return names;
}

/// Whether the fields are the arguments of Megatron's launcher: they name no model type.
GPUMEM_INLINE bool is_megatron(const ConfigFields& config) {
  const bool layers = config.has("num_layers") || config.has("encoder_num_layers");
  return !config.has("model_type") && !config.has("_class_name") && layers && config.has("hidden_size") &&
         config.has("num_attention_heads");
}

GPUMEM_INLINE std::optional<KnownTree> known_class(std::string_view class_name);

/// The model type of the class in "architectures", where there is no model_type, or a language model's class says
/// more ("glm" and Glm4MoeForCausalLM, "gemma3" and Gemma3ForCausalLM). Empty: model_type counts.
GPUMEM_INLINE std::string_view type_of_class(ConfigFields& config, std::string_view type) {
  const std::string_view first = config.class_name();
  if (!first.ends_with("ForCausalLM") || config.has("text_config")) return {};
  const std::optional<KnownTree> known = known_class(first);
  // A model that reads images gives its text model another type, which a type of its class would hide.
  const bool more = known && known->row->model_type.starts_with(type) && known->row->model_type != type;
  return more ? known->row->model_type : std::string_view();
}

/// Who answers for a config.
struct Choice {
  const Architecture* architecture = nullptr;
  std::string_view type = {};  ///< the model type
  bool known = true;           ///< else it is taken for a Llama
};

GPUMEM_INLINE std::string listed(const std::vector<std::string>& fields) {
  constexpr std::size_t kMost = 8;
  std::string names;
  for (std::size_t at = 0; at < std::min(fields.size(), kMost); ++at) {
    names += (names.empty() ? "" : ", ") + core::quoted(fields[at]);
  }
  if (fields.size() > kMost) names += " and " + std::to_string(fields.size() - kMost) + " more";
  return names;
}

GPUMEM_INLINE core::Result<Choice> choose(ConfigFields& config) {
  // The parts of diffusers' pipelines name their class in place of a model type.
  if (!config.has("model_type")) config.take_type(config.text({"_class_name"}, ""));
  const std::string_view type = config.text({"model_type"}, "");
  if (const std::string_view named = type_of_class(config, type); !named.empty()) config.take_type(named);
  const std::string_view of_megatron = config.has("encoder_num_layers") ? "megatron_t5" : "megatron_gpt";
  const std::string_view type_in_use = config.text({"model_type"}, "");
  if (const Architecture* known = find(is_megatron(config) ? of_megatron : type_in_use)) {
    return Choice{known, type_in_use, true};
  }
  const std::vector<std::string> missing = llama::missing_of(config);
  if (missing.empty()) return Choice{&llama::kArchitecture, type, false};
  const std::vector<std::string_view> types = known_types();
  return core::Error{core::ErrorCode::missing_information,
                     "has the model type " + core::quoted(type) + ", which is not known" +
                         core::did_you_mean(type, types) + ", and not the fields of a Llama (it has no " +
                         listed(missing) + "); " + std::to_string(types.size()) +
                         " model types are known; a recording of a training step answers for any model",
                     {}};
}

/// A field that nobody read may be a part of the model that is larger than all the rest.
GPUMEM_INLINE core::Status check_parts(const ConfigFields& config, const Choice& choice) {
  const std::vector<std::string> parts = config.unread_parts(choice.known);
  if (parts.empty()) return core::Done{};
  const std::string type = "the model type " + core::quoted(choice.type);
  const std::string whose = choice.known ? type + " is read without the fields " + listed(parts) + ", which "
                                         : type + " is not known, and its fields " + listed(parts) + " ";
  return core::Error{core::ErrorCode::missing_information,
                     "cannot be taken for a model that is known: " + whose +
                         "can hold parameters or activations; a recording of a training step answers for any model; "
                         "leave out of the config what the model does not have",
                     {}};
}

/// The modules that a checkpoint of bitsandbytes or AWQ leaves whole. Source: transformers 4.51,
/// utils/quantization_config.py (BitsAndBytesConfig, AwqConfig).
GPUMEM_INLINE void note_whole_modules(const core::JsonValue& quantized, bool awq, model::GraphBuilder& builder) {
  constexpr std::size_t kMostModules = 4096;
  const std::string_view list = awq ? "modules_to_not_convert" : "llm_int8_skip_modules";
  std::size_t left = kMostModules;
  for (const core::JsonValue& field : quantized.items()) {
    if (field.key() != list || !field.is(Kind::list)) continue;
    for (const core::JsonValue& module : field.items()) {
      if (!module.is(Kind::text) || left == 0) continue;
      builder.leave_whole(std::string(module.text()));
      --left;
    }
  }
}

GPUMEM_INLINE void doubt_fields(ConfigFields& config, const Choice& choice, model::GraphBuilder& builder) {
  using About = model::Doubt::About;
  if (!choice.known) {
    builder.doubt({About::model_type, "the model type " + core::quoted(choice.type) +
                                          " is not known: it is taken for a Llama of these sizes"});
  }
  const core::JsonValue* const older = config.find("compression_config");  // of compressed-tensors before 0.6
  if (const core::JsonValue* quantized = older == nullptr ? config.find_within("quantization_config") : older) {
    std::string method;
    if (quantized->is(Kind::object)) {
      for (const core::JsonValue& field : quantized->items()) {
        if (field.key() == "quant_method" && field.is(Kind::text)) method = " (" + core::quoted(field.text()) + ")";
      }
      note_whole_modules(*quantized, method.find("awq") != std::string::npos, builder);
    }
    builder.doubt({About::quantization,
                   "the weights are stored quantised" + method + "; they are taken in the job's precision", false});
  }
  if (const auto unread = config.unread(); !unread.empty()) {
    builder.doubt(
        {About::fields, "fields that are not understood, and may change what the model takes: " + listed(unread)});
  }
}

/// The release that wrote the config, or its text model's part.
GPUMEM_INLINE std::optional<model::Transformers> release_of(ConfigFields& config) {
  const core::JsonValue* version = config.find_within("transformers_version");
  if (version == nullptr || !version->is(Kind::text)) return std::nullopt;
  return model::transformers_of_version(version->text());
}

/// Names round: Gemma-2B has 2.5e9 parameters, Llama-3.2-1B 1.24e9.
inline constexpr double kRoundedName = 1.3;
inline constexpr double kOtherModel = 2.0;

GPUMEM_INLINE void check_name(ConfigFields& config, model::ModelGraph& graph) {
  const core::JsonValue* name = config.find("_name_or_path");
  if (name == nullptr || !name->is(Kind::text) || graph.parameters() == 0) return;
  const std::optional<double> said = size_in_name(name->text());
  if (!said) return;
  const double times = *said / static_cast<double>(graph.parameters());
  const double apart = std::max(times, 1.0 / times);
  if (apart < kRoundedName) return;
  model::GraphBuilder::add_doubt(graph, {model::Doubt::About::parameters,
                                         "the model's name " + core::quoted(name->text()) +
                                             " says another size than the config's fields, which give " +
                                             core::with_separators(graph.parameters()) + " parameters",
                                         apart >= kOtherModel, times});
}

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

/// `images` must not be said of a model that reads none, sounds not of one that makes none, and parts not of one that
/// stands alone.
GPUMEM_INLINE core::Status check_images(const model::Images& images, const Forward* forward) {
  const bool in_pipeline = forward != nullptr && (forward->pipeline_parts() || forward->usual_parts());
  if (!images.parts.empty() && images.parts != "none" && !in_pipeline) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "the other parts of its pipeline are not known: give its diffusers folder, or no `parts`",
                       {}};
  }
  if (images.seconds && (forward == nullptr || !forward->makes_sounds())) {
    return core::Error{core::ErrorCode::invalid_argument, "the model makes no sounds; leave `seconds` out", {}};
  }
  const bool pictures = images.size || images.count || images.frames;
  if (!pictures || (forward != nullptr && forward->reads_images())) return core::Done{};
  const std::string_view said = images.size ? "image" : images.count ? "images" : "frames";
  return core::Error{
      core::ErrorCode::invalid_argument, "the model reads no images; leave `" + std::string(said) + "` out", {}};
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

GPUMEM_INLINE const Architecture* architecture_of(std::string_view model_type) {
  return architectures_detail::find(model_type);
}

GPUMEM_INLINE std::span<const std::string_view> block_classes(std::string_view architecture) {
  for (const Architecture* known : architectures()) {
    if (known->name == architecture) return known->blocks;
  }
  return {};
}

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

GPUMEM_INLINE bool keeps_cache(const model::ModelGraph& graph) {
  return std::find(graph.ops().begin(), graph.ops().end(), "cached") != graph.ops().end();
}

GPUMEM_INLINE bool keeps_state(const model::ModelGraph& graph) {
  return std::ranges::any_of(graph.layers(), [&](const model::Layer& layer) {
    const model::OpTraits* op = graph.op_traits(layer);
    return op != nullptr && op->family == model::OpFamily::recurrent;
  });
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

namespace architectures_detail {

/// What a reader asks for besides the text.
struct Asked {
  std::string_view file;
  const model::Images& images;
  bool one_expert = false;
  Experts experts = Experts::usual;
};

GPUMEM_INLINE core::Result<model::ModelGraph> graph_of_config(std::string_view text,
                                                              const model::Vocabulary& vocabulary, const Asked& asked) {
  const auto file = asked.file;
  const auto document = core::JsonDocument::parse(text, kConfigLimits);
  if (!document) return core::Error(document.error()).in_file(file);
  if (!document->root().is(Kind::object)) return malformed("must hold one JSON object").in_file(file);
  ConfigFields config(document->root());
  if (asked.experts == Experts::fused) config.fuse_experts();
  if (asked.experts == Experts::listed) config.list_experts();
  const core::Result<Choice> choice = choose(config);
  if (!choice) return core::Error(choice.error()).in_file(file);
  if (choice->architecture->parameters_only) {
    return core::Error{core::ErrorCode::missing_information,
                       "is known as a part of a pipeline alone, by its parameters: give the pipeline's folder",
                       {std::string(file), 0, {}}};
  }
  model::GraphBuilder builder("config_json", file);
  builder.architecture(choice->architecture->name, choice->type);
  Forward forward(builder, vocabulary);
  forward.images(asked.images);
  if (asked.one_expert) forward.call_one_expert();
  forward.pipeline_parts(config.find("_parts"));
  forward.usual_parts(config.find("_usual_parts"));
  if (config.turns_off("use_cache")) forward.make_no_cache();
  if (const core::JsonValue* name = config.find("_published"); name != nullptr && name->is(Kind::text)) {
    forward.remark("published sizes of " + std::string(name->text()));  // summary/model_folder.hpp
  }
  if (const core::JsonValue* part = config.find("_left_out"); part != nullptr && part->is(Kind::text)) {
    forward.remark("the folder's " + std::string(part->text()) +  // summary/model_folder.hpp
                   " is not known: the model itself is trained in its place");
  }
  if (const core::JsonValue* chosen = config.find(kAssumedField); chosen != nullptr && chosen->is(Kind::list)) {
    for (const core::JsonValue& each : chosen->items()) {
      if (each.is(Kind::text)) forward.remark(std::string(each.text()));
    }
  }
  const Architecture& architecture = *choice->architecture;
  architecture.write(config, named_head(config).value_or(architecture.usual_head), forward);
  if (const core::Status read = config.status(); !read) return core::Error(read.error()).in_file(file);
  doubt_fields(config, *choice, builder);
  if (const core::Status whole = check_parts(config, *choice); !whole) {
    return core::Error(whole.error()).in_file(file);
  }
  const core::Status shown = check_images(asked.images, &forward);
  if (!shown) return core::Error(shown.error()).in_file(file);
  if (forward.reads_images() || forward.makes_sounds()) builder.config(text);
  core::Result<model::ModelGraph> graph = std::move(builder).build();
  if (graph && !asked.one_expert) check_name(config, *graph);
  if (graph) {
    model::GraphBuilder::add_release(*graph, first_release(choice->type));
    model::GraphBuilder::add_release(*graph, release_of(config));
    if (graph->lists_experts() || architecture.lists_experts) model::GraphBuilder::experts_config(*graph, text);
  }
  return graph;
}

}  // namespace architectures_detail

GPUMEM_INLINE core::Result<model::ModelGraph> read_config(std::string_view text, const model::Vocabulary& vocabulary,
                                                          std::string_view file, const model::Images& images,
                                                          Experts experts) {
  return architectures_detail::graph_of_config(with_usual_parts(text), vocabulary, {file, images, false, experts});
}

GPUMEM_INLINE core::Result<model::ModelGraph> read_config_once(std::string_view text,
                                                               const model::Vocabulary& vocabulary) {
  return architectures_detail::graph_of_config(text, vocabulary, {{}, {}, true});
}

GPUMEM_INLINE core::Result<std::int64_t> parameters_of(const core::JsonValue& config,
                                                       const model::Vocabulary& vocabulary) {
  namespace detail = architectures_detail;
  if (!config.is(detail::Kind::object)) return detail::malformed("must be one JSON object");
  ConfigFields fields(config);
  const core::Result<detail::Choice> choice = detail::choose(fields);
  if (!choice) return choice.error();
  model::GraphBuilder builder("config_json");
  Forward forward(builder, vocabulary);
  const Architecture& architecture = *choice->architecture;
  architecture.write(fields, detail::named_head(fields).value_or(architecture.usual_head), forward);
  if (const core::Status read = fields.status(); !read) return read.error();
  const core::Result<model::ModelGraph> graph = std::move(builder).build();
  if (!graph) return graph.error();
  return graph->parameters();
}

GPUMEM_INLINE core::Result<model::ModelGraph> with_images(const model::ModelGraph& graph,
                                                          const model::Vocabulary& vocabulary,
                                                          const model::Images& images, Experts experts) {
  if (!graph.config().empty()) return read_config(graph.config(), vocabulary, graph.file(), images, experts);
  const core::Status sound = architectures_detail::check_images(images, nullptr);
  if (!sound) return core::Error(sound.error()).in_file(graph.file());
  return graph;
}

}  // namespace gpumem::architectures
