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

/// Nothing: there is no peft_type. A type that PEFT does not have is not modelled.
[[nodiscard]] std::optional<PeftConfig> peft_config(std::span<const PeftSetting> settings);

}  // namespace gpumem::adapt
