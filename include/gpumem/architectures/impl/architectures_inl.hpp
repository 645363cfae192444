#pragma once

#include "gpumem/architectures/architectures.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "gpumem/architectures/albert.hpp"
#include "gpumem/architectures/bart.hpp"
#include "gpumem/architectures/bert.hpp"
#include "gpumem/architectures/bloom.hpp"
#include "gpumem/architectures/clip.hpp"
#include "gpumem/architectures/deberta.hpp"
#include "gpumem/architectures/deepseek.hpp"
#include "gpumem/architectures/distilbert.hpp"
#include "gpumem/architectures/falcon.hpp"
#include "gpumem/architectures/gemma.hpp"
#include "gpumem/architectures/glm.hpp"
#include "gpumem/architectures/gpt2.hpp"
#include "gpumem/architectures/gpt_bigcode.hpp"
#include "gpumem/architectures/gpt_neo.hpp"
#include "gpumem/architectures/gpt_neox.hpp"
#include "gpumem/architectures/gptj.hpp"
#include "gpumem/architectures/granitemoe.hpp"
#include "gpumem/architectures/llama.hpp"
#include "gpumem/architectures/megatron.hpp"
#include "gpumem/architectures/megatron_t5.hpp"
#include "gpumem/architectures/mixtral.hpp"
#include "gpumem/architectures/modernbert.hpp"
#include "gpumem/architectures/mpt.hpp"
#include "gpumem/architectures/olmo.hpp"
#include "gpumem/architectures/opt.hpp"
#include "gpumem/architectures/phi.hpp"
#include "gpumem/architectures/phi3.hpp"
#include "gpumem/architectures/stablelm.hpp"
#include "gpumem/architectures/starcoder2.hpp"
#include "gpumem/architectures/swin.hpp"
#include "gpumem/architectures/t5.hpp"
#include "gpumem/architectures/vit.hpp"
#include "gpumem/architectures/whisper.hpp"
#include "gpumem/architectures/xlnet.hpp"
#include "gpumem/core/json_document.hpp"

namespace gpumem::architectures {

namespace architectures_detail {

using Kind = core::JsonValue::Kind;

/// How the last part of a class name tells the head.
struct NamedHead {
  std::string_view ending;
  Head head;
};
inline constexpr std::array<NamedHead, 13> kHeads = {
    {{"ForCausalLM", Head::causal_lm},
     {"LMHeadModel", Head::causal_lm},
     {"ForConditionalGeneration", Head::causal_lm},
     {"ForMaskedLM", Head::masked_lm},
     {"ForPreTraining", Head::masked_lm},
     {"ForSequenceClassification", Head::sequence_classification},
     {"ForImageClassification", Head::sequence_classification},
     {"ForImageClassificationWithTeacher", Head::sequence_classification},
     {"ForTokenClassification", Head::token_classification},
     {"ForQuestionAnsweringSimple", Head::question_answering},
     {"ForQuestionAnswering", Head::question_answering},
     {"EncoderModel", Head::encoder},
     {"Model", Head::none}}};

GPUMEM_INLINE core::Error malformed(std::string message) {
  return {core::ErrorCode::malformed_input, std::move(message), {}};
}

/// The head of the first class in "architectures"; nothing if it names none that is known.
GPUMEM_INLINE std::optional<Head> named_head(ConfigFields& config) {
  const core::JsonValue* classes = config.find("architectures");
  if (classes == nullptr || !classes->is(Kind::list) || classes->size() == 0) return std::nullopt;
  const core::JsonValue& first = *classes->items().begin();
  if (!first.is(Kind::text)) return std::nullopt;
  for (const NamedHead& row : kHeads) {
    if (first.text().ends_with(row.ending)) return row.head;
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

GPUMEM_INLINE std::string known_types() {
  std::string names;
  for (const Architecture* architecture : architectures()) {
    for (const std::string_view type : architecture->model_types)
      names += (names.empty() ? "" : ", ") + std::string(type);
  }
  return names;
}

/// Whether the fields describe a decoder with gated feed-forward layers and RMS norms, as Llama is one.
GPUMEM_INLINE bool is_like_llama(const ConfigFields& config) {
  constexpr std::array<std::string_view, 6> kFields = {"hidden_size",       "num_hidden_layers", "num_attention_heads",
                                                       "intermediate_size", "vocab_size",        "rms_norm_eps"};
  // Of experts, of keys and values that are compressed, of a model of several parts: no Llama has these.
  constexpr std::array<std::string_view, 6> kOthers = {"num_experts",  "num_local_experts", "n_routed_experts",
                                                       "kv_lora_rank", "vision_config",     "audio_config"};
  const auto has = [&](std::string_view name) { return config.has(name); };
  return std::all_of(kFields.begin(), kFields.end(), has) && std::none_of(kOthers.begin(), kOthers.end(), has);
}

/// Whether the fields are the arguments of Megatron's launcher: they name no model type.
GPUMEM_INLINE bool is_megatron(const ConfigFields& config) {
  const bool layers = config.has("num_layers") || config.has("encoder_num_layers");
  return !config.has("model_type") && layers && config.has("hidden_size") && config.has("num_attention_heads");
}

/// The architecture that answers for the model type; a warning where another's has to.
GPUMEM_INLINE core::Result<const Architecture*> choose(ConfigFields& config, model::GraphBuilder& builder) {
  const std::string_view type = config.text({"model_type"}, "");
  const std::string_view of_megatron = config.has("encoder_num_layers") ? "megatron_t5" : "megatron_gpt";
  if (const Architecture* known = find(is_megatron(config) ? of_megatron : type)) return known;
  const Architecture* like = find("llama");
  if (!is_like_llama(config) || like == nullptr) {
    return core::Error{core::ErrorCode::missing_information,
                       "has the model type " + core::quoted(type) + ", which is not known, and not the fields of a " +
                           "Llama; known are " + known_types() +
                           "; a recording of a training step answers for any model",
                       {}};
  }
  builder.warn("the model type " + core::quoted(type) + " is not known: it is taken for a Llama of these sizes", 0);
  return like;
}

GPUMEM_INLINE void warn_of_unread(const ConfigFields& config, model::GraphBuilder& builder) {
  constexpr std::size_t kMost = 8;
  const std::vector<std::string_view> unread = config.unread();
  if (unread.empty()) return;
  std::string names;
  for (std::size_t at = 0; at < std::min(unread.size(), kMost); ++at) {
    names += (names.empty() ? "" : ", ") + core::quoted(unread[at]);
  }
  if (unread.size() > kMost) names += " and " + std::to_string(unread.size() - kMost) + " more";
  builder.warn("fields that are not understood, and may change what the model takes: " + names, 0);
}

/// The row of a class, and the head that its name ends in.
GPUMEM_INLINE std::optional<KnownTree> known_class(std::string_view class_name) {
  for (const NamedHead& named : kHeads) {
    if (!class_name.ends_with(named.ending)) continue;
    const std::string_view prefix = class_name.substr(0, class_name.size() - named.ending.size());
    for (const Architecture* architecture : architectures()) {
      for (const ModelClass& row : architecture->classes) {
        if (row.prefix == prefix) return KnownTree{architecture, &row, named.head, 0};
      }
    }
  }
  return std::nullopt;
}

/// The config that the tree comes from. Its class tells the head, and what else the architecture reads of it.
GPUMEM_INLINE std::string config_of(const ModuleTree& tree, const KnownTree& known, TreeFields& fields) {
  fields.set_string("model_type", known.row->model_type);
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

}  // namespace architectures_detail

GPUMEM_INLINE std::optional<KnownTree> known_tree(const model::ModelGraph& graph) {
  const bool tree = graph.format() == "module_tree" || graph.format() == "graph_json";
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

GPUMEM_INLINE core::Result<TreeModel> read_tree(const model::ModelGraph& graph, const KnownTree& known,
                                                const model::Vocabulary& vocabulary,
                                                std::span<const std::int64_t> input) {
  if (const core::Status only = architectures_detail::holds_only(graph, known); !only) return only.error();
  const ModuleTree tree(graph, known.scope);
  const std::string_view body = known.head == Head::none || known.head == Head::encoder ? "" : known.row->body;
  TreeFields fields(tree, body, input);
  const std::string text = architectures_detail::config_of(tree, known, fields);
  const core::Result<core::JsonDocument> document = core::JsonDocument::parse(text);
  if (!document) return core::Error(document.error()).in_file(graph.file());
  ConfigFields config(document->root());
  model::GraphBuilder builder(graph.format(), graph.file());
  builder.architecture(known.architecture->name);
  Forward forward(builder, vocabulary, tree, body.empty() ? known.row->body : std::string_view());
  known.architecture->write(config, known.head, forward);
  if (const core::Status read = config.status(); !read) {
    return core::Error{core::ErrorCode::missing_information,
                       "is a " + std::string(tree.class_name()) +
                           " whose tree does not tell its sizes: as a config it " + read.error().message,
                       {graph.file(), 0, {}}};
  }
  forward.check_all_called();
  core::Result<model::ModelGraph> made = std::move(builder).build();
  if (!made) return made.error();
  return TreeModel{*std::move(made), fields.assumed()};
}

GPUMEM_INLINE bool ties_heads(std::string_view class_name) {
  const std::optional<KnownTree> known = architectures_detail::known_class(class_name);
  const bool language = known && (known->head == Head::causal_lm || known->head == Head::masked_lm);
  return language && known->row->tied_up_to > 0;
}

GPUMEM_INLINE bool ties_head(std::string_view class_name, std::int64_t width, std::int64_t tokens,
                             std::span<const std::string> classes) {
  if (!ties_heads(class_name)) return false;
  const std::optional<KnownTree> known = architectures_detail::known_class(class_name);
  const std::string_view unties = known->row->untied_with;
  if (!unties.empty() && std::ranges::find(classes, unties) != classes.end()) return false;
  const bool counted = known->row->tied_tokens == 0 || known->row->tied_tokens == tokens;
  return counted && width <= known->row->tied_up_to;
}

GPUMEM_INLINE bool ties_bias(std::string_view class_name) {
  return std::ranges::any_of(architectures(), [&](const Architecture* architecture) {
    return std::ranges::find(architecture->tied_bias, class_name) != architecture->tied_bias.end();
  });
}

GPUMEM_INLINE const Architectures& architectures() {
  static const Architectures kAll = {
      &albert(),     &bart(),   &bert(),       &bloom(), &clip(),     &deberta(),     &deepseek(),
      &distilbert(), &falcon(), &gemma(),      &glm(),   &gpt2(),     &gpt_bigcode(), &gpt_neo(),
      &gpt_neox(),   &gptj(),   &granitemoe(), &llama(), &megatron(), &megatron_t5(), &mixtral(),
      &modernbert(), &mpt(),    &olmo(),       &opt(),   &phi(),      &phi3(),        &stablelm(),
      &starcoder2(), &swin(),   &t5(),         &vit(),   &whisper(),  &xlnet()};
  return kAll;
}

GPUMEM_INLINE core::Result<model::ModelGraph> read_config(std::string_view text, const model::Vocabulary& vocabulary,
                                                          std::string_view file) {
  namespace detail = architectures_detail;
  constexpr core::JsonLimits kLimits = {.depth = 12, .values = std::size_t{1} << 16};
  const core::Result<core::JsonDocument> document = core::JsonDocument::parse(text, kLimits);
  if (!document) return core::Error(document.error()).in_file(file);
  if (!document->root().is(detail::Kind::object)) return detail::malformed("must hold one JSON object").in_file(file);
  ConfigFields config(document->root());
  model::GraphBuilder builder("config_json", file);
  const core::Result<const Architecture*> architecture = detail::choose(config, builder);
  if (!architecture) return core::Error(architecture.error()).in_file(file);
  builder.architecture((*architecture)->name);
  Forward forward(builder, vocabulary);
  (*architecture)->write(config, detail::named_head(config).value_or((*architecture)->usual_head), forward);
  if (const core::Status read = config.status(); !read) return core::Error(read.error()).in_file(file);
  detail::warn_of_unread(config, builder);
  return std::move(builder).build();
}

}  // namespace gpumem::architectures
