// Input: a model's linear layers and embeddings, and the names of an adapter's targets.
// Output: the layers that get adapters.
// Source: PEFT 0.14: utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING (the usual targets of a
// model), tuners/tuners_utils.py, check_target_module_exists (a module's whole name, or its last parts; a text is a
// regular expression of whole names; exclude_modules).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/adapt/base_linears.hpp"
#include "gpumem/core/result.hpp"

namespace gpumem::adapt {

struct LoraTargets {
  std::vector<bool> chosen;          ///< by place in the list of linear layers: whether it gets an adapter
  std::vector<bool> embeddings;      ///< the same of the list of embeddings
  std::vector<std::string> unknown;  ///< names that no such layer has: PEFT takes them, if another name is known
};

/// `targets`: "q_proj+v_proj", "all-linear", "all-linear+lm_head"; "model.language_model.*", where a star stands for
/// any text of the whole name; "all-linear+not:model.visual", where what follows "not:" is left out; empty: the usual
/// ones of the model, by the names that its layers have. An embedding gets an adapter where a name says it. Errors:
/// invalid_argument where no name is known; missing_information where no usual ones are.
[[nodiscard]] core::Result<LoraTargets> lora_targets(const std::vector<BaseLinear>& linears, std::string_view targets,
                                                     const std::vector<BaseEmbedding>& embeddings = {});

/// Whether one of "input_layernorm+norm" means the module at this path, as PEFT matches names.
[[nodiscard]] bool names_module(std::string_view targets, std::string_view path);

/// PEFT's regular expression of whole names as such targets: "layers.[\d]+.(q|v)_proj" is
/// "layers.*.q_proj+layers.*.v_proj". Nothing: it is more than digits, any text and alternatives.
[[nodiscard]] std::optional<std::string> targets_of_expression(std::string_view expression);

}  // namespace gpumem::adapt
