// Input: the folder of a HuggingFace model: config.json, and the headers of its *.safetensors with their index, if
// there are any.
// Output: the graph of the config, checked against what the files store. No weights are read.
// Units: elements.
#pragma once

#include <string>

#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/summary/read_options.hpp"

namespace gpumem::summary {

/// Whether the path is a folder with a config.json.
[[nodiscard]] bool is_model_folder(const std::string& path);

/// Warnings of the graph name the first tensor of each thing that differs: counts, types, tied weights, files that are
/// not there. Counts and types are its doubts as well; without the files, the bytes that their index says are held
/// against the count. Errors: malformed_input for a layer whose stored sizes contradict the config's; those of the
/// config's reader, and of a file that is not a safetensors file.
[[nodiscard]] core::Result<model::ModelGraph> read_folder(const std::string& folder, const ReadOptions& options);

}  // namespace gpumem::summary
