// Input: the settings of an adapter_config.json, by key, as words.
// Output: what they mean as options of a job; what of them changes memory and is not modelled; and keys that PEFT's
// configs do not have. Nothing is left out in silence.
// Source: huggingface/peft 0.20.1.dev0 (5d602fd), tuners/*/config.py; config.py (PeftConfigMixin).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpumem::adapt {

/// A setting: lists are joined by '+', a field of an object has the key "rank_pattern.q_proj". Nulls are left out.
struct PeftSetting {
  std::string key;
  std::string word;
};

/// An option of a job, by its name, with the key that it comes from.
struct PeftOption {
  std::string_view option;
  std::string value;
  std::string key;
};

struct PeftConfig {
  std::string base_model = {};
  std::vector<PeftOption> options = {};
  std::vector<std::string> not_modelled = {};  ///< "bias all"
  std::vector<std::string> unknown = {};       ///< keys
};

/// Modules that are trained as copies beside adapters (modules_to_save), by how their names end.
struct SavedModules {
  std::string patterns;   ///< of `train`: "*lm_head,*embed_tokens"
  bool all_named = true;  ///< false: a word is no module's name, such as an expression or "all"
};

/// Of a list as people write it: "['lm_head', 'embed_tokens']", "lm_head+embed_tokens". Megatron's names of these two
/// mean the same. Source: PEFT 0.15, utils/other.py (_set_trainable); ms-swift 4, megatron/utils/utils.py
/// ("all-embedding" and the like stand for several modules).
[[nodiscard]] SavedModules saved_modules(std::string_view list);

/// Nothing: there is no peft_type. A type that PEFT does not have is not modelled.
[[nodiscard]] std::optional<PeftConfig> peft_config(std::span<const PeftSetting> settings);

}  // namespace gpumem::adapt
