// Input: parts of a config.json of a language model that have rules of their own.
// Output: how its weights are quantised, the states that its layers hold, its image tower.
// Units: bits of a weight; elements; patches, tokens and pixels of one image.
// Source: vLLM 0.17 to 0.19, as named at each rule.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/config_fields.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/serve/served_model.hpp"

namespace gpumem::serve {

/// Layers that stay as they are, by parts of their names. Source: the lists of compressed-tensors, AWQ and fp8, and
/// ModelOpt.
[[nodiscard]] std::vector<std::string> kept_layers(const core::JsonValue& quantization,
                                                   std::vector<model::Doubt>& doubts);

/// Bits of a linear layer's weights, and how many share a scale. Errors: unknown_format for one without rules.
[[nodiscard]] core::Status read_quantization(const core::JsonValue& quantization, ServedModel& model);

/// What a layer with a state keeps of each sequence; nothing where no layer has one. Errors: unknown_format.
[[nodiscard]] core::Status read_states(const model::ModelGraph& graph, architectures::ConfigFields& fields,
                                       ServedModel& model);

/// What the profiling pass gives the tower: the image that takes most tokens. `type` is the whole model's. Errors:
/// unknown_format.
[[nodiscard]] core::Status read_tower(architectures::ConfigFields& fields, std::string_view type, ServedModel& model);

}  // namespace gpumem::serve
