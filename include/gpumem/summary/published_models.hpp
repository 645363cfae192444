// Input: the name of a well-known model ("meta-llama/Llama-3.1-8B").
// Output: its published sizes, as the config.json that they make. They are facts: what each model's config.json says,
// and how many parameters its checkpoint stores. Source: the models' cards and config files as they are generally
// known; tests hold the parameters that each row makes against the published count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpumem::summary {

struct PublishedModel {
  std::string_view name;
  std::int64_t parameters = 0;  ///< as published, tied weights once
  std::string config;           ///< with "_published": the name, which the reader of configs says in a remark
};

/// Nothing: gpumem does not know its sizes. Case does not count. Those who publish copies of others' models
/// ("unsloth/Llama-3.1-8B-bnb-4bit", "NousResearch/Llama-2-7b-hf") are known: the name is then the maker's.
[[nodiscard]] std::optional<PublishedModel> published_model(std::string_view name);

[[nodiscard]] std::vector<std::string_view> published_model_names();

}  // namespace gpumem::summary
