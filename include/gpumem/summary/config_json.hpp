// Input: the config.json of a HuggingFace model, {"model_type": "llama", "hidden_size": 4096, ...}, or the arguments of
// Megatron's launcher as one JSON object, {"num_layers": 32, "hidden_size": 4096, ...}.
// Output: the graph of the model (architectures/ builds it), with every edge and without the number of tokens, which
// the job gives.
#pragma once

#include "gpumem/summary/format.hpp"

namespace gpumem::summary {

[[nodiscard]] const Format& config_json();

}  // namespace gpumem::summary
