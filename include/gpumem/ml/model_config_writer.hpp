// Input: ModelConfig.
// Output: its text, a config.json as model_config.hpp describes and reads it.
#pragma once

#include <string>

#include "gpumem/ml/model_config.hpp"

namespace gpumem::ml {

/// Reading it back gives an equal config.
[[nodiscard]] std::string write_model_config(const ModelConfig& config);

}  // namespace gpumem::ml
