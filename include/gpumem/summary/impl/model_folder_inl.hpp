#pragma once

#include "gpumem/summary/model_folder.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "gpumem/architectures/architectures.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/core/safetensors_header.hpp"
#include "gpumem/model/graph_builder.hpp"

namespace gpumem::summary {

namespace model_folder_detail {

namespace fs = std::filesystem;

inline constexpr std::size_t kLargestIndex = std::size_t{64} << 20;
inline constexpr std::size_t kMostFiles = 10'000;

/// What the files store of one module: its weight and bias together.
struct Module {
  std::int64_t elements = 0;
  std::string first;  ///< tensor
  std::string_view type;
  bool used = false;
};

struct Stored {
  std::map<std::string, Module, std::less<>> modules;  ///< by the path of the module, or of a bare parameter
  std::int64_t elements = 0;
  std::map<std::string_view, std::string> types;  ///< a tensor of each type
  std::string prefix;                             ///< the first step that most tensors share
  std::vector<std::string> absent;                ///< files that the index names
  std::int64_t total_bytes = 0;                   ///< of all tensors, by the index; 0: it does not say
};

inline constexpr std::size_t kLongestRevision = 256;  ///< bytes of a commit or a tag

/// Where huggingface_hub keeps what it downloads; empty: the environment does not say.
GPUMEM_INLINE std::string hub_cache() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (std::string cache = variable("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = variable("HF_HOME"); !home.empty()) return home + "/hub";
  if (const std::string home = variable("XDG_CACHE_HOME"); !home.empty()) return home + "/huggingface/hub";
  const std::string home = variable("HOME");
  return home.empty() ? home : home + "/.cache/huggingface/hub";
}

GPUMEM_INLINE bool is_packed(std::string_view type) {
  return type.starts_with('I') || type.starts_with('U') || type.starts_with("F8");
}

/// Buffers that some files store, and no parameter is.
GPUMEM_INLINE bool is_buffer(std::string_view name) {
  for (const std::string_view ending : {"inv_freq", "position_ids", ".attn.bias", ".attention.bias", "masked_bias",
                                        "relative_position_index", "final_logits_bias"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

/// "model.norm.weight" is the module "model.norm"; anything else is a parameter of its own.
GPUMEM_INLINE std::string module_of(const std::string& name) {
  for (const std::string_view ending : {".weight", ".bias", ".gamma", ".beta"}) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return name;
}

/// "metadata": {"total_size": 16060522496}.
GPUMEM_INLINE std::int64_t total_size(const core::JsonValue& metadata) {
  if (!metadata.is(core::JsonValue::Kind::object)) return 0;
  for (const core::JsonValue& field : metadata.items()) {
    if (field.key() == "total_size" && field.is(core::JsonValue::Kind::integer)) {
      return std::max<std::int64_t>(field.integer(), 0);
    }
  }
  return 0;
}

/// The files' names, of the index or of a lone file; each a plain name, for the index may come from anywhere.
GPUMEM_INLINE core::Result<std::map<std::string, std::vector<std::string>>> files_of(const fs::path& folder,
                                                                                     std::int64_t& total_bytes) {
  std::map<std::string, std::vector<std::string>> files;
  std::error_code ignored;
  // transformers' name, and diffusers'.
  fs::path index = folder / "model.safetensors.index.json";
  if (!fs::exists(index, ignored)) index = folder / "diffusion_pytorch_model.safetensors.index.json";
  if (!fs::exists(index, ignored)) {
    for (const char* name : {"model.safetensors", "diffusion_pytorch_model.safetensors"}) {
      if (files.empty() && fs::exists(folder / name, ignored)) files[name] = {};
    }
    return files;
  }
  const core::Result<std::string> text = core::read_regular_file(index.string(), kLargestIndex);
  if (!text) return text.error();
  const core::Result<core::JsonDocument> json = core::JsonDocument::parse(*text);
  if (!json) return core::Error(json.error()).in_file(index.string());
  const auto refuse = [&](std::string message) { return core::malformed(std::move(message)).in_file(index.string()); };
  for (const core::JsonValue& field : json->root().items()) {
    if (field.key() == "metadata") total_bytes = total_size(field);
    if (field.key() != "weight_map") continue;
    for (const core::JsonValue& entry : field.items()) {
      const std::string name(entry.is(core::JsonValue::Kind::text) ? entry.text() : std::string_view());
      const bool plain = !name.empty() && name.find('/') == std::string::npos && name.ends_with(".safetensors");
      if (!plain) return refuse("must name a .safetensors file of the folder for " + core::quoted(entry.key()));
      files[name].emplace_back(entry.key());
      if (files.size() > kMostFiles) return refuse("names more than 10,000 files");
    }
  }
  if (files.empty()) return refuse("has no \"weight_map\" of tensors to files");
  return files;
}

GPUMEM_INLINE core::Status add_file(const fs::path& path, const std::vector<std::string>& expected, Stored& stored) {
  const core::Result<core::SafetensorsHeader> header = core::read_safetensors_header(path.string());
  if (!header) return header.error();
  std::set<std::string_view> names;
  for (const core::StoredTensor& tensor : header->tensors) {
    names.insert(tensor.name);
    if (is_buffer(tensor.name)) continue;
    Module& module = stored.modules[module_of(tensor.name)];
    if (module.first.empty()) module = {0, tensor.name, tensor.dtype->name};
    if (is_packed(tensor.dtype->name)) module.type = tensor.dtype->name;
    module.elements += tensor.elements();
    stored.elements += tensor.elements();
    stored.types.try_emplace(tensor.dtype->name, tensor.name);
  }
  for (const std::string& name : expected) {
    if (names.contains(name)) continue;
    return core::malformed("does not hold the tensor " + core::quoted(name) + ", which its index says it does")
        .in_file(path.string());
  }
  return core::Done{};
}

GPUMEM_INLINE core::Result<Stored> read_stored(const fs::path& folder) {
  Stored stored;
  const auto files = files_of(folder, stored.total_bytes);
  if (!files) return files.error();
  for (const auto& [name, tensors] : *files) {
    std::error_code ignored;
    if (!fs::exists(folder / name, ignored)) {
      stored.absent.push_back(name);
    } else if (const core::Status read = add_file(folder / name, tensors, stored); !read) {
      return read.error();
    }
  }
  std::map<std::string, std::size_t> steps;
  for (const auto& [path, module] : stored.modules) ++steps[path.substr(0, path.find('.'))];
  std::size_t most = 0;
  for (const auto& [step, count] : steps) {
    if (count > most) stored.prefix = step;
    most = std::max(most, count);
  }
  return stored;
}

/// The module that is stored for a layer: under its path, or with or without the name that models with a head give
/// their body.
GPUMEM_INLINE Module* find(Stored& stored, const std::string& path) {
  const std::size_t dot = path.find('.');
  const std::string shorter = dot == std::string::npos ? std::string() : path.substr(dot + 1);
  for (const std::string& name : {path, shorter, stored.prefix + "." + path}) {
    const auto found = stored.modules.find(name);
    if (found != stored.modules.end()) return &found->second;
  }
  return nullptr;
}

/// What differs between the graph and the files, as warnings.
struct Comparison {
  std::vector<std::string> warnings;
  std::vector<model::Doubt> doubts;
  std::string missing;  ///< the first layer that no tensor is stored of
};

GPUMEM_INLINE core::Status compare_layer(const model::ModelGraph& graph, const model::Layer& layer, Stored& stored,
                                         Comparison& comparison) {
  if (layer.parameters == 0) return core::Done{};
  const std::string path = graph.path(layer);
  Module* module = find(stored, module_of(path));
  const std::int64_t own = layer.parameters - layer.tied_parameters;
  if (module == nullptr) {
    if (own > 0 && comparison.missing.empty()) comparison.missing = path;
    return core::Done{};
  }
  const bool again = module->used;
  module->used = true;
  if (is_packed(module->type) || module->elements == layer.parameters || module->elements == own) {
    if (layer.tied_parameters > 0 && !again && module->elements == layer.parameters && own < layer.parameters) {
      comparison.warnings.push_back(
          core::quoted(module->first) +
          " is stored in addition to the weight that the config ties it to: it is taken as tied");
    }
    return core::Done{};
  }
  core::Error error =
      core::malformed("stores " + core::with_separators(module->elements) + " elements for " +
                      core::quoted(module->first) + " and the layers next to it; config.json's sizes give " +
                      core::with_separators(layer.parameters) + ": config and weights belong to different models");
  error.place.element = path;
  return error;
}

/// Layers that transformers does not load (for predicting further tokens) make a few percent.
inline constexpr double kLargeDifference = 1.05;

inline model::Doubt of_parameters(std::string text, double times) {
  return {model::Doubt::About::parameters, std::move(text), std::max(times, 1.0 / times) >= kLargeDifference, times};
}

GPUMEM_INLINE void warn_of_types(const Stored& stored, Comparison& comparison) {
  for (const auto& [type, tensor] : stored.types) {
    if (!is_packed(type)) continue;
    comparison.doubts.push_back({model::Doubt::About::quantization,
                                 "some weights are stored as " + std::string(type) + ", " + core::quoted(tensor) +
                                     " the first: they are taken in the job's precision",
                                 false});
  }
}

/// Without the files, the index says how many bytes they hold: of weights that nobody quantised, 2 or 4 a parameter.
GPUMEM_INLINE void check_total_size(const model::ModelGraph& graph, std::int64_t bytes, Comparison& comparison) {
  const auto packed = [](const model::Doubt& doubt) { return doubt.about == model::Doubt::About::quantization; };
  if (bytes == 0 || graph.parameters() == 0) return;
  if (std::any_of(graph.doubts().begin(), graph.doubts().end(), packed)) return;
  const double each = static_cast<double>(bytes) / static_cast<double>(graph.parameters());
  constexpr double kHalf = 2.0;
  constexpr double kSingle = 4.0;
  // What lies between is of half precision with more parameters, or of single precision with fewer.
  const double times = each < kSingle / kLargeDifference ? each / kHalf : each / kSingle;
  if (std::max(times, 1.0 / times) < kLargeDifference) return;
  comparison.doubts.push_back(of_parameters("the index says that the files hold " + core::with_separators(bytes) +
                                                " bytes, config.json's sizes give " +
                                                core::with_separators(graph.parameters()) + " parameters",
                                            times));
}

GPUMEM_INLINE void doubt_counts(const model::ModelGraph& graph, const Stored& stored, Comparison& comparison) {
  if (stored.elements == graph.parameters() || stored.elements == 0 || graph.parameters() == 0) return;
  std::string first = comparison.missing;
  std::string kind = "no tensor is stored for ";
  for (const auto& [path, module] : stored.modules) {
    if (!first.empty()) break;
    if (module.used) continue;
    first = module.first;
    kind = "no layer of the config holds ";
  }
  if (first.empty()) return;  // tied weights that are stored twice are named already
  const double times = static_cast<double>(stored.elements) / static_cast<double>(graph.parameters());
  comparison.doubts.push_back(of_parameters(
      "the files store " + core::with_separators(stored.elements) + " parameters, config.json's sizes give " +
          core::with_separators(graph.parameters()) + ": " + kind + core::quoted(first),
      times));
}

GPUMEM_INLINE core::Result<Comparison> compare(const model::ModelGraph& graph, Stored& stored) {
  Comparison comparison;
  for (const model::Layer& layer : graph.layers()) {
    if (core::Status same = compare_layer(graph, layer, stored, comparison); !same) return std::move(same.error());
  }
  warn_of_types(stored, comparison);
  const bool packed =
      std::any_of(stored.types.begin(), stored.types.end(), [](const auto& type) { return is_packed(type.first); });
  if (!stored.absent.empty()) {
    comparison.warnings.push_back("the index names files that are not in the folder, " +
                                  core::quoted(stored.absent.front()) + " the first: their tensors are not checked");
    check_total_size(graph, stored.total_bytes, comparison);
  } else if (!packed) {
    doubt_counts(graph, stored, comparison);
  }
  return comparison;
}

inline constexpr const char* kPipeline = "model_index.json";

/// A diffusers folder: the denoiser's config, and what it holds besides it. Configs have those of the other parts as
/// their field "_parts".
struct Pipeline {
  std::string denoiser;    ///< its folder's name
  std::string config;      ///< the denoiser's
  std::string controlnet;  ///< the ControlNet's, with the denoiser's as its field "_guided"; empty: the folder has none
};

/// A config with more fields.
GPUMEM_INLINE std::string with_fields(std::string config, const std::string& fields) {
  config.resize(config.rfind('}'));
  return std::move(config) + ", " + fields + "}";
}

/// The text of a part's config.json, which must be an object. Empty: the part has none, such as a tokenizer.
GPUMEM_INLINE core::Result<std::string> part_config(const fs::path& folder, std::size_t largest) {
  const fs::path file = folder / "config.json";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::string();
  core::Result<std::string> text = core::read_regular_file(file.string(), largest);
  if (!text) return text.error();
  const core::Result<core::JsonDocument> json = core::JsonDocument::parse(*text, architectures::kConfigLimits);
  if (!json) return core::Error(json.error()).in_file(file.string());
  if (!json->root().is(core::JsonValue::Kind::object) || json->root().size() == 0) {
    return core::malformed("must hold one JSON object with fields").in_file(file.string());
  }
  return text;
}

/// model_index.json: {"_class_name": "FluxPipeline", "transformer": ["diffusers", "FluxTransformer2DModel"], ...}.
GPUMEM_INLINE core::Result<Pipeline> read_pipeline(const fs::path& folder, std::size_t largest) {
  const std::string index = (folder / kPipeline).string();
  const core::Result<std::string> text = core::read_regular_file(index, largest);
  if (!text) return text.error();
  const core::Result<core::JsonDocument> json = core::JsonDocument::parse(*text, architectures::kConfigLimits);
  if (!json) return core::Error(json.error()).in_file(index);
  Pipeline pipeline;
  std::string parts;
  std::string controlnet;
  for (const core::JsonValue& field : json->root().items()) {
    const std::string name(field.key());
    const bool plain = !name.empty() && name[0] != '_' && name.find_first_of("/\\\".") == std::string::npos;
    if (!plain || !field.is(core::JsonValue::Kind::list) || field.size() != 2) continue;
    core::Result<std::string> config = part_config(folder / name, largest);
    if (!config) return config.error();
    if (config->empty()) continue;
    if (name == "controlnet") {
      controlnet = *std::move(config);
    } else if (name == "transformer" || name == "unet") {
      if (!pipeline.denoiser.empty()) {
        return core::malformed("names a transformer and a unet, and a pipeline has one of them").in_file(index);
      }
      pipeline.denoiser = name;
      pipeline.config = *std::move(config);
    } else {
      parts += (parts.empty() ? "" : ", ") + ("\"" + name + "\": ") + *config;
    }
  }
  if (pipeline.denoiser.empty()) {
    return core::malformed("names neither a transformer nor a unet whose config.json is in the folder").in_file(index);
  }
  const std::string others = "\"_parts\": {" + parts + "}";
  if (!controlnet.empty()) {
    pipeline.controlnet = with_fields(std::move(controlnet), "\"_guided\": " + pipeline.config + ", " + others);
  }
  pipeline.config = with_fields(std::move(pipeline.config), others);
  return pipeline;
}

/// A ControlNet is what such a pipeline trains. Where none of this kind is known, its denoiser is trained in its place,
/// with a remark. The stored weights of neither are compared with the config.
GPUMEM_INLINE core::Result<model::ModelGraph> read_guided(const std::string& folder, Pipeline pipeline,
                                                          const model::Vocabulary& vocabulary) {
  const auto file_of = [&](const std::string& part) { return (fs::path(folder) / part / "config.json").string(); };
  core::Result<model::ModelGraph> graph =
      architectures::read_config(pipeline.controlnet, vocabulary, file_of("controlnet"));
  if (graph) return graph;
  const std::string config = with_fields(std::move(pipeline.config), R"("_left_out": "ControlNet")");
  return architectures::read_config(config, vocabulary, file_of(pipeline.denoiser));
}

}  // namespace model_folder_detail

GPUMEM_INLINE bool is_hub_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> kFiles = {".txt", ".json", ".csv", ".gz", ".py"};  // and no models
  const std::size_t slash = name.find('/');
  const bool two_words = slash != std::string_view::npos && slash > 0 && slash + 1 < name.size() &&
                         name.find('/', slash + 1) == std::string_view::npos;
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  return two_words && name.find("..") == std::string_view::npos && std::none_of(kFiles.begin(), kFiles.end(), ends);
}

GPUMEM_INLINE std::optional<std::string> cached_model(const std::string& name) {
  const std::size_t slash = name.find('/');
  const std::string cache = model_folder_detail::hub_cache();
  if (!is_hub_name(name) || cache.empty()) return std::nullopt;
  const std::string folder = cache + "/models--" + name.substr(0, slash) + "--" + name.substr(slash + 1);
  core::Result<std::string> revision =
      core::read_regular_file(folder + "/refs/main", model_folder_detail::kLongestRevision);
  if (!revision) return std::nullopt;
  while (!revision->empty() && (revision->back() == '\n' || revision->back() == '\r')) revision->pop_back();
  if (revision->empty() || revision->find('/') != std::string::npos) return std::nullopt;
  std::string snapshot = folder + "/snapshots/" + *revision;
  return is_model_folder(snapshot) ? std::optional(std::move(snapshot)) : std::nullopt;
}

GPUMEM_INLINE std::string path_of_model(const std::string& name) {
  std::error_code ignored;
  if (name == "-" || std::filesystem::exists(name, ignored)) return name;
  const NamedModel asked = named_model(name);
  if (!asked.head.empty()) return path_of_model(asked.name);
  return cached_model(name).value_or(name);
}

GPUMEM_INLINE bool is_model_folder(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path folder(path);
  return path != "-" && (std::filesystem::exists(folder / "config.json", ignored) ||
                         std::filesystem::exists(folder / model_folder_detail::kPipeline, ignored));
}

GPUMEM_INLINE core::Result<model::ModelGraph> read_folder(const std::string& path, const ReadOptions& options,
                                                          std::size_t largest) {
  namespace detail = model_folder_detail;
  std::string folder = path;
  std::string config;
  std::error_code ignored;
  if (detail::fs::exists(detail::fs::path(folder) / detail::kPipeline, ignored)) {
    core::Result<detail::Pipeline> pipeline = detail::read_pipeline(folder, largest);
    if (!pipeline) return std::move(pipeline).error();
    if (!pipeline->controlnet.empty()) return detail::read_guided(folder, *std::move(pipeline), *options.vocabulary);
    folder = (detail::fs::path(folder) / pipeline->denoiser).string();
    config = std::move(pipeline->config);
  }
  const std::string file = (detail::fs::path(folder) / "config.json").string();
  if (config.empty()) {
    core::Result<std::string> text = core::read_regular_file(file, largest);
    if (!text) return text.error();
    config = *std::move(text);
  }
  core::Result<model::ModelGraph> graph = architectures::read_config(config, *options.vocabulary, file);
  if (!graph) return graph;
  core::Result<detail::Stored> stored = detail::read_stored(folder);
  if (!stored) return std::move(stored.error());
  if (stored->modules.empty() && stored->absent.empty()) return graph;
  core::Result<detail::Comparison> comparison = detail::compare(*graph, *stored);
  if (!comparison) return std::move(comparison.error()).in_file(folder);
  for (std::string& warning : comparison->warnings) model::GraphBuilder::add_warning(*graph, std::move(warning));
  for (model::Doubt& doubt : comparison->doubts) model::GraphBuilder::add_doubt(*graph, std::move(doubt));
  return graph;
}

}  // namespace gpumem::summary
