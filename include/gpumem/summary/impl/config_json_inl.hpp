#pragma once

#include "gpumem/summary/config_json.hpp"

#include "gpumem/architectures/architectures.hpp"
#include "gpumem/summary/text.hpp"

namespace gpumem::summary {

namespace config_json_detail {

GPUMEM_INLINE std::optional<std::size_t> sniff(std::string_view text, std::size_t from) {
  // Only a text that is JSON from its first byte on: a brace in prose is not a config.
  if (from > 0 || !is_config(text)) return std::nullopt;
  return text.find('{');
}

GPUMEM_INLINE core::Result<model::ModelGraph> parse(std::string_view text, std::size_t begin,
                                                    const ReadOptions& options) {
  return architectures::read_config(text.substr(begin), *options.vocabulary, options.file);
}

}  // namespace config_json_detail

GPUMEM_INLINE const Format& config_json() {
  static constexpr Format kFormat = {"config_json", "a HuggingFace model's config.json", config_json_detail::sniff,
                                     config_json_detail::parse};
  return kFormat;
}

}  // namespace gpumem::summary
