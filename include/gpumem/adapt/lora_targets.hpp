// Input: patterns of names, separated by commas: "model.layers.0, *.bias".
// Output: whether a module or one of its parameters matches. A star matches any text, a question mark one letter. A
// pattern that names a container matches all modules in it.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/adapt/adapters.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"

namespace gpumem::adapt {

class NamePatterns {
 public:
  explicit NamePatterns(std::string_view text);

  [[nodiscard]] bool empty() const { return patterns_.empty(); }
  /// Whether one of them means this name: "model.norm", "model.norm.weight". Notes which ones did.
  [[nodiscard]] bool match(std::string_view name);
  /// Those that have meant nothing so far.
  [[nodiscard]] std::vector<std::string_view> unused() const;

 private:
  struct Pattern {
    std::string text;
    bool used = false;
  };
  std::vector<Pattern> patterns_;
};

// Input: a model's linear layers and embeddings, and the names of an adapter's targets.
// Output: the layers that get adapters.
// Source: PEFT 0.14: utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING (the usual targets of a
// model), tuners/tuners_utils.py, check_target_module_exists (a module's whole name, or its last parts; a text is a
// regular expression of whole names; exclude_modules; target_parameters, which are all targets where target_modules is
// an empty list).

struct LoraTargets {
  std::vector<bool> chosen;          ///< by place in the list of linear layers: whether it gets an adapter
  std::vector<bool> embeddings;      ///< the same of the list of embeddings
  std::vector<std::string> unknown;  ///< names that no such layer has: PEFT takes them, if another name is known
  std::vector<std::string> parameters = {};  ///< names of parameters that are tensors of their own (target_parameters)
  bool converted = false;                    ///< some of these by converted_targets()
};

/// `targets`: "q_proj+v_proj", "all-linear", "all-linear+lm_head"; "model.language_model.*", where a star stands for
/// any text of the whole name; "all-linear+not:model.visual", where what follows "not:" is left out;
/// "q_proj+parameter:experts.down_proj", where what follows "parameter:" is no module; "all-linear+by-name", where a
/// program gives PEFT the names of the linear layers that it finds, and so no experts of one tensor; empty: the usual
/// ones of the model, by the names that its layers have. An embedding gets an adapter where a name says it. Errors:
/// invalid_argument where no name is known; missing_information where no usual ones are.
[[nodiscard]] core::Result<LoraTargets> lora_targets(const std::vector<BaseLinear>& linears, std::string_view targets,
                                                     const std::vector<BaseEmbedding>& embeddings = {});

/// Whether "+by-name" is among the targets.
[[nodiscard]] inline bool is_by_name(std::string_view targets) {
  constexpr std::string_view kWord = "+by-name";
  const std::size_t at = targets.find(kWord);
  if (at == std::string_view::npos) return false;
  const std::string_view behind = targets.substr(at + kWord.size());
  return behind.empty() || behind.front() == '+';
}

/// Whether one of "input_layernorm+norm" means the module at this path, as PEFT matches names.
[[nodiscard]] bool names_module(std::string_view targets, std::string_view path);

/// PEFT's regular expression of whole names as such targets: "layers.[\d]+.(q|v)_proj" is
/// "layers.*.q_proj+layers.*.v_proj". Nothing: it is more than digits, any text and alternatives.
[[nodiscard]] std::optional<std::string> targets_of_expression(std::string_view expression);

namespace lora_targets_detail {

inline constexpr std::string_view kAllLinear = "all-linear";
inline constexpr std::string_view kNot = "not:";
inline constexpr std::string_view kParameter = "parameter:";
inline constexpr std::string_view kByName = "by-name";

/// The usual targets of models whose layers have all of these names; the first row that fits is taken.
struct UsualTargets {
  std::string_view named;  ///< a layer that only these models have; empty: none is asked for
  std::string_view targets;
};

inline constexpr std::array<UsualTargets, 16> kUsual = {{
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
    {"", "to_k+to_q+to_v+to_out.0"},     // diffusers' examples of LoRA
    {"", "to_k+to_q+to_v+to_out"},       // HiDream (train_dreambooth_lora_hidream.py), whose to_out is no list
    {"", "to_key+to_query+to_value"},    // Kandinsky 5: SimpleTuner, helpers/models/kandinsky5_image/model.py
    {"", "add_q_proj+add_k_proj+add_v_proj+to_add_out"},  // Cosmos 3: its generator, as SimpleTuner adapts it
}};

inline std::vector<std::string_view> parted(std::string_view targets) {
  std::vector<std::string_view> names;
  while (true) {
    const std::size_t plus = targets.find('+');
    names.push_back(targets.substr(0, plus));
    if (plus == std::string_view::npos) return names;
    targets.remove_prefix(plus + 1);
  }
}

inline bool is_named(std::string_view path, std::string_view target) {
  if (path == target) return true;
  // Of models that read images or hear, recipes call the text's part as it was called before transformers 4.52
  // (Voxtral: before 5.0).
  constexpr std::string_view kOlder = "language_model.model.";
  constexpr std::string_view kNewer = "model.language_model.";
  if (target.starts_with(kOlder) && path.starts_with(kNewer)) {
    return is_named(path, std::string(kNewer).append(target.substr(kOlder.size())));
  }
  if (target.find('*') != std::string_view::npos) return NamePatterns(target).match(path);
  return path.size() > target.size() && path.ends_with(target) && path[path.size() - target.size() - 1] == '.';
}

inline bool has(const std::vector<BaseLinear>& linears, std::string_view name) {
  return std::ranges::any_of(linears, [&](const BaseLinear& linear) { return is_named(linear.path, name); });
}

inline std::string_view usual_targets(const std::vector<BaseLinear>& linears) {
  for (const UsualTargets& row : kUsual) {
    if (!row.named.empty() && !has(linears, row.named)) continue;
    const auto names = parted(row.targets);
    if (std::ranges::all_of(names, [&](std::string_view name) { return has(linears, name); })) return row.targets;
  }
  return {};
}

/// "q_proj, k_proj and 5 more".
inline std::string names_of(const std::vector<BaseLinear>& linears) {
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

/// What the targets leave out, as patterns.
inline NamePatterns left_out(const std::vector<std::string_view>& targets) {
  std::string patterns;
  for (const std::string_view target : targets) {
    if (target.starts_with(kNot)) patterns.append(target.substr(kNot.size())).append(",");
  }
  return NamePatterns(patterns);
}

/// Texts of which each may be the beginning of a name.
class Expansion {
 public:
  void append(std::string_view text) {
    for (std::string& name : names_) name += text;
  }

  /// Each name goes on with each of the alternatives. False: there are too many.
  [[nodiscard]] bool append_any(const std::vector<std::string>& alternatives) {
    constexpr std::size_t kMost = 256;
    std::vector<std::string> all;
    for (const std::string& name : names_) {
      for (const std::string& alternative : alternatives) all.push_back(name + alternative);
    }
    names_ = std::move(all);
    return names_.size() <= kMost;
  }

  [[nodiscard]] bool ends_in_digit() const {
    return !names_.empty() && !names_.front().empty() && names_.front().back() >= '0' && names_.front().back() <= '9';
  }

  [[nodiscard]] std::string joined() const {
    std::string text;
    for (const std::string& name : names_) text += (text.empty() ? "" : "+") + name;
    return text;
  }

 private:
  std::vector<std::string> names_ = {{}};
};

/// The length of what means any digits or any text at the beginning of the expression; 0: nothing does.
inline std::size_t wildcard_length(std::string_view rest) {
  for (const std::string_view text : {"[\\d]+", "[0-9]+", "\\d+", "\\d*", ".*", ".+"}) {
    if (rest.starts_with(text)) return text.size();
  }
  return 0;
}

/// "[0-4]" or "[ab]" at the beginning, which is taken away, with a '+' behind it; nothing: it holds more than letters
/// and digits.
inline std::optional<std::vector<std::string>> take_class(std::string_view& rest) {
  const std::size_t close = rest.find(']');
  if (close == std::string_view::npos) return std::nullopt;
  const std::string_view inside = rest.substr(1, close - 1);
  rest.remove_prefix(close + 1);
  const bool more = rest.starts_with('+');
  if (more) rest.remove_prefix(1);
  const auto is_plain = [](char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
  };
  std::vector<std::string> alternatives;
  for (std::size_t at = 0; at < inside.size(); ++at) {
    const bool range = at + 2 < inside.size() && inside[at + 1] == '-';
    const char last = inside[range ? at + 2 : at];
    if (!is_plain(inside[at]) || !is_plain(last)) return std::nullopt;
    for (char byte = inside[at]; byte <= last; ++byte) alternatives.push_back(std::string(1, byte) + (more ? "*" : ""));
    if (range) at += 2;
  }
  if (alternatives.empty()) return std::nullopt;
  return alternatives;
}

/// "(q|v)" or "(a.)?" at the beginning, which is taken away; nothing: it holds more than plain texts.
inline std::optional<std::vector<std::string>> take_group(std::string_view& rest) {
  const std::size_t close = rest.find(')');
  if (close == std::string_view::npos) return std::nullopt;
  std::string_view inside = rest.substr(1, close - 1);
  rest.remove_prefix(close + 1);
  if (inside.starts_with("?:")) inside.remove_prefix(2);
  if (inside.find_first_of("*+?[]{}(\\^$") != std::string_view::npos) return std::nullopt;
  std::vector<std::string> alternatives;
  while (true) {
    const std::size_t bar = inside.find('|');
    alternatives.emplace_back(inside.substr(0, bar));
    if (bar == std::string_view::npos) break;
    inside.remove_prefix(bar + 1);
  }
  if (rest.starts_with('?')) {
    rest.remove_prefix(1);
    alternatives.emplace_back();
  }
  return alternatives;
}

}  // namespace lora_targets_detail

inline std::optional<std::string> targets_of_expression(std::string_view expression) {
  namespace detail = lora_targets_detail;
  if (expression.starts_with('^')) expression.remove_prefix(1);
  if (expression.ends_with('$')) expression.remove_suffix(1);
  detail::Expansion names;
  while (!expression.empty()) {
    const std::size_t length = detail::wildcard_length(expression);
    const bool digits = expression.starts_with("[0-9]+");
    if (length > 0 && !(digits && names.ends_in_digit())) {
      names.append("*");
      expression.remove_prefix(length);
    } else if (expression.front() == '[') {
      const auto letters = detail::take_class(expression);
      if (!letters || !names.append_any(*letters)) return std::nullopt;
    } else if (expression.front() == '(') {
      const auto group = detail::take_group(expression);
      if (!group || !names.append_any(*group)) return std::nullopt;
    } else if (expression.starts_with("\\.")) {
      names.append(".");
      expression.remove_prefix(2);
    } else if (std::string_view("*+?[]{}|)\\^$,").find(expression.front()) != std::string_view::npos) {
      return std::nullopt;
    } else {
      names.append(expression.substr(0, 1));
      expression.remove_prefix(1);
    }
  }
  return names.joined();
}

inline core::Result<LoraTargets> lora_targets(const std::vector<BaseLinear>& linears, std::string_view targets,
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
  const auto parts = detail::parted(targets);
  NamePatterns left_out = detail::left_out(parts);
  for (const std::string_view target : parts) {
    if (target.starts_with(detail::kNot) || target == detail::kByName) continue;
    if (target.starts_with(detail::kParameter)) {
      found.parameters.emplace_back(target.substr(detail::kParameter.size()));
      one = true;
      continue;
    }
    bool any = false;
    for (std::size_t at = 0; at < linears.size(); ++at) {
      const bool all = target == detail::kAllLinear && !linears[at].output;
      if (!all && !detail::is_named(linears[at].path, target)) continue;
      if (left_out.match(linears[at].path)) continue;
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
  const bool commas = targets.find(',') != std::string_view::npos;
  return core::Error{core::ErrorCode::invalid_argument,
                     "no linear layer is called " + core::quoted(targets) + ", where adapters are asked for; " +
                         std::string(commas ? "names are joined by `+`; " : "") + "they are called " +
                         detail::names_of(linears),
                     {}};
}

inline bool names_module(std::string_view targets, std::string_view path) {
  const auto parts = lora_targets_detail::parted(targets);
  return std::ranges::any_of(parts, [&](std::string_view part) { return lora_targets_detail::is_named(path, part); });
}

namespace name_patterns_detail {

/// Whether the whole name is of the pattern. Only the last star is taken back, so it takes the product of the lengths
/// at the most.
inline bool is_of(std::string_view pattern, std::string_view name) {
  std::size_t at = 0;
  std::size_t in_name = 0;
  std::size_t star = std::string_view::npos;
  std::size_t behind_star = 0;
  while (in_name < name.size()) {
    if (at < pattern.size() && (pattern[at] == '?' || (pattern[at] == name[in_name] && pattern[at] != '*'))) {
      ++at;
      ++in_name;
    } else if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      behind_star = in_name;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in_name = ++behind_star;
    } else {
      return false;
    }
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

inline bool means(std::string_view pattern, std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    if (is_of(pattern, name.substr(0, dot))) return true;
  }
  return is_of(pattern, name);
}

}  // namespace name_patterns_detail

inline NamePatterns::NamePatterns(std::string_view text) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view pattern = text.substr(0, comma);
    while (!pattern.empty() && pattern.front() == ' ') pattern.remove_prefix(1);
    while (!pattern.empty() && pattern.back() == ' ') pattern.remove_suffix(1);
    if (!pattern.empty()) patterns_.push_back({std::string(pattern)});
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
}

inline bool NamePatterns::match(std::string_view name) {
  bool any = false;
  for (Pattern& pattern : patterns_) {
    if (!name_patterns_detail::means(pattern.text, name)) continue;
    pattern.used = true;
    any = true;
  }
  return any;
}

inline std::vector<std::string_view> NamePatterns::unused() const {
  std::vector<std::string_view> found;
  for (const Pattern& pattern : patterns_) {
    if (!pattern.used) found.emplace_back(pattern.text);
  }
  return found;
}

}  // namespace gpumem::adapt
