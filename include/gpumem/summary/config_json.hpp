// Input: the config.json of a HuggingFace model, {"model_type": "llama", "hidden_size": 4096, ...}, or the arguments of
// Megatron's launcher as one JSON object, {"num_layers": 32, "hidden_size": 4096, ...}.
// Output: the graph of the model (architectures/ builds it), with every edge and without the number of tokens, which
// the job gives.
#pragma once

#include "gpumem/architectures/architectures.hpp"
#include "gpumem/summary/formats.hpp"
#include "gpumem/summary/text.hpp"

namespace gpumem::summary {

[[nodiscard]] const Format& config_json();

namespace config_json_detail {

inline std::optional<std::size_t> sniff(std::string_view text, std::size_t from) {
  // Only a text that is JSON from its first byte on: a brace in prose is not a config.
  if (from > 0 || !is_config(text)) return std::nullopt;
  return text.find('{');
}

inline core::Result<model::ModelGraph> parse(std::string_view text, std::size_t begin, const ReadOptions& options) {
  return architectures::read_config(text.substr(begin), *options.vocabulary, options.file);
}

}  // namespace config_json_detail

inline const Format& config_json() {
  static constexpr Format kFormat = {"config_json", "a HuggingFace model's config.json", config_json_detail::sniff,
                                     config_json_detail::parse};
  return kFormat;
}

}  // namespace gpumem::summary
