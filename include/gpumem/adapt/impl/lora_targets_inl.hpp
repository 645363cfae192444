#pragma once

#include "gpumem/adapt/lora_targets.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "gpumem/core/bytes.hpp"

namespace gpumem::adapt {

namespace lora_targets_detail {

inline constexpr std::string_view kAllLinear = "all-linear";

/// The usual targets of models whose layers have all of these names; the first row that fits is taken.
struct UsualTargets {
  std::string_view named;  ///< a layer that only these models have; empty: none is asked for
  std::string_view targets;
};

inline constexpr std::array<UsualTargets, 12> kUsual = {{
    {"dense", "q_proj+v_proj+fc1+fc2"},  // phi: its output projection is called dense
    {"", "q_proj+v_proj"},               // llama, mistral, mixtral, qwen2, gemma, gptj, gpt_neo, opt, bart, stablelm
    {"", "qkv_proj"},                    // phi3, codegen
    {"", "query_key_value"},             // gpt_neox, bloom, falcon, chatglm
    {"", "c_attn"},                      // gpt2, gpt_bigcode
    {"", "Wqkv"},                        // mpt
    {"", "query+value"},                 // bert, roberta, electra, vit
    {"", "query_proj+value_proj"},       // deberta-v2
    {"", "q_lin+v_lin"},                 // distilbert
    {"", "q+v"},                         // t5
    {"", "in_proj"},                     // deberta
    {"", "qkv"},                         // timm's and GLM's fused projections
}};

GPUMEM_INLINE std::vector<std::string_view> parted(std::string_view targets) {
  std::vector<std::string_view> names;
  while (true) {
    const std::size_t plus = targets.find('+');
    names.push_back(targets.substr(0, plus));
    if (plus == std::string_view::npos) return names;
    targets.remove_prefix(plus + 1);
  }
}

GPUMEM_INLINE bool is_named(std::string_view path, std::string_view target) {
  if (path == target) return true;
  return path.size() > target.size() && path.ends_with(target) && path[path.size() - target.size() - 1] == '.';
}

GPUMEM_INLINE bool has(const std::vector<BaseLinear>& linears, std::string_view name) {
  return std::ranges::any_of(linears, [&](const BaseLinear& linear) { return linear.leaf() == name; });
}

GPUMEM_INLINE std::string_view usual_targets(const std::vector<BaseLinear>& linears) {
  for (const UsualTargets& row : kUsual) {
    if (!row.named.empty() && !has(linears, row.named)) continue;
    const auto names = parted(row.targets);
    if (std::ranges::all_of(names, [&](std::string_view name) { return has(linears, name); })) return row.targets;
  }
  return {};
}

/// "q_proj, k_proj and 5 more".
GPUMEM_INLINE std::string names_of(const std::vector<BaseLinear>& linears) {
  constexpr std::size_t kShown = 12;
  std::vector<std::string_view> names;
  for (const BaseLinear& linear : linears) {
    if (std::ranges::find(names, linear.leaf()) == names.end()) names.push_back(linear.leaf());
  }
  std::string text;
  for (std::size_t at = 0; at < std::min(names.size(), kShown); ++at) {
    text += (at == 0 ? "" : ", ") + core::shortened(names[at], 60);
  }
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text.empty() ? "none" : text;
}

}  // namespace lora_targets_detail

GPUMEM_INLINE core::Result<LoraTargets> lora_targets(const std::vector<BaseLinear>& linears, std::string_view targets,
                                                     const std::vector<BaseEmbedding>& embeddings) {
  namespace detail = lora_targets_detail;
  if (targets.empty()) targets = detail::usual_targets(linears);
  if (targets.empty()) {
    return core::Error{core::ErrorCode::missing_information,
                       "it is not known which layers of this model usually get adapters; say `lora_targets` "
                       "all-linear, or names such as q_proj+v_proj; its linear layers are called " +
                           detail::names_of(linears),
                       {}};
  }
  LoraTargets found{std::vector<bool>(linears.size(), false), std::vector<bool>(embeddings.size(), false), {}};
  bool one = false;
  for (const std::string_view target : detail::parted(targets)) {
    bool any = false;
    for (std::size_t at = 0; at < linears.size(); ++at) {
      const bool all = target == detail::kAllLinear && !linears[at].output;
      if (!all && !detail::is_named(linears[at].path, target)) continue;
      found.chosen[at] = true;
      any = true;
    }
    for (std::size_t at = 0; at < embeddings.size(); ++at) {
      if (!detail::is_named(embeddings[at].path, target)) continue;
      found.embeddings[at] = true;
      any = true;
    }
    if (!any) found.unknown.push_back(core::quoted(target));
    one = one || any;
  }
  if (one) return found;
  return core::Error{core::ErrorCode::invalid_argument,
                     "no linear layer is called " + core::quoted(targets) +
                         ", where adapters are asked for; they are "
                         "called " +
                         detail::names_of(linears),
                     {}};
}

GPUMEM_INLINE bool names_module(std::string_view targets, std::string_view path) {
  const auto parts = lora_targets_detail::parted(targets);
  return std::ranges::any_of(parts, [&](std::string_view part) { return lora_targets_detail::is_named(path, part); });
}

}  // namespace gpumem::adapt
