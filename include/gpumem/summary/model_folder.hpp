// Input: the folder of a HuggingFace model: config.json, and the headers of its *.safetensors with their index, if
// there are any; or a diffusers folder: model_index.json and a folder for each part, of which the transformer or unet
// is the model. Output: the graph of the config, checked against what the files store. No weights are read. Units:
// elements.
//
// Input: the name of a well-known model ("meta-llama/Llama-3.1-8B").
// Output: its published sizes, as the config.json that they make. They are facts: what each model's config.json says,
// and how many parameters its checkpoint stores. Source: the models' cards and config files as they are generally
// known; tests hold the parameters that each row makes against the published count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/summary/formats.hpp"

namespace gpumem::summary {

/// The most bytes that are read of a config.
inline constexpr std::size_t kLargestConfig = std::size_t{64} << 20;

/// Whether the path is a folder with a config.json or a model_index.json.
[[nodiscard]] bool is_model_folder(const std::string& path);

/// Whether the text may be the name of a model: "OWNER/NAME".
[[nodiscard]] bool is_hub_name(std::string_view name);

/// The folder of the model of this name ("meta-llama/Llama-3.1-8B") in this user's HuggingFace cache, of the revision
/// that "main" is; nothing: there is none with a config.json. Source: huggingface_hub 0.27, constants.py (HF_HUB_CACHE,
/// HF_HOME, XDG_CACHE_HOME) and file_download.py (models--OWNER--NAME, refs, snapshots).
[[nodiscard]] std::optional<std::string> cached_model(const std::string& name);

/// A model that somebody names, and the class that is made of it: "Qwen/Qwen3-Embedding-4B:Model".
struct NamedModel {
  std::string name;
  std::string_view head = {};  ///< how the class ends: "Model", "ForSequenceClassification"; empty: as its config says
};
/// What is there under the whole name has no head.
[[nodiscard]] NamedModel named_model(const std::string& name);

/// The config.json's text with a class that ends so ("Qwen3ForCausalLM" as "Qwen3Model"). Errors: missing_information
/// where it names no class of a known ending.
[[nodiscard]] core::Result<std::string> with_head(std::string_view config, std::string_view head);

/// The head of a model that speaks (Qwen2.5-Omni, Qwen3-Omni) where a program makes its whole class, which holds what
/// makes speech, or (`held` false) its thinker alone. `head`: what the program asks for; empty: a language model's, or
/// that of classes which the config names. Nothing: by its config the model does not speak, or it names no class and
/// is the thinker alone anyway.
[[nodiscard]] std::optional<std::string> head_with_speech(std::string_view config, std::string_view head, bool held);
/// The name with that head; where the model does not speak, cannot be read, or is asked for with a head, as it is. A
/// name that begins with '{' is the config itself.
[[nodiscard]] std::string named_with_speech(const std::string& name, std::string_view head, bool held);

/// The path of the model that somebody names, without its head: the name, if something of that name is there or no
/// cache has it; else its folder in the cache.
[[nodiscard]] std::string path_of_model(const std::string& name);

/// Warnings of the graph name the first tensor of each thing that differs: counts, types, tied weights, files that are
/// not there. `largest`: bytes of a config. Counts and types are its doubts as well; without the files, the bytes that
/// their index says are held against the count. Errors: malformed_input for a layer whose stored sizes contradict the
/// config's; those of the config's reader, and of a file that is not a safetensors file.
[[nodiscard]] core::Result<model::ModelGraph> read_folder(const std::string& folder, const ReadOptions& options,
                                                          std::size_t largest = kLargestConfig);

struct PublishedModel {
  std::string_view name;
  std::int64_t parameters = 0;  ///< as published, tied weights once
  std::string config;           ///< with "_published": the name, which the reader of configs says in a remark
};

/// Nothing: gpumem does not know its sizes. Case does not count, and the owner may be left out where one model alone is
/// called that ("Qwen3-8B"). Those who publish copies of others' models ("unsloth/Llama-3.1-8B-bnb-4bit",
/// "NousResearch/Llama-2-7b-hf") are known: the name is then the maker's.
[[nodiscard]] std::optional<PublishedModel> published_model(std::string_view name);

[[nodiscard]] std::vector<std::string_view> published_model_names();

/// The names that hold `part`, at most `most` of them, in the order of published_model_names(). Case does not count.
[[nodiscard]] std::vector<std::string_view> published_models_like(std::string_view part, std::size_t most);

}  // namespace gpumem::summary
