#pragma once

#include "gpumem/architectures/architectures.hpp"

#include <algorithm>
#include <array>
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

GPUMEM_INLINE bool keeps_cache(const model::ModelGraph& graph) {
  return std::find(graph.ops().begin(), graph.ops().end(), "cached") != graph.ops().end();
}

GPUMEM_INLINE bool keeps_state(const model::ModelGraph& graph) {
  return std::ranges::any_of(graph.layers(), [&](const model::Layer& layer) {
    const model::OpTraits* op = graph.op_traits(layer);
    return op != nullptr && op->family == model::OpFamily::recurrent;
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
