#pragma once

#include "gpumem/adapt/peft_methods.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "gpumem/adapt/lora_targets.hpp"

namespace gpumem::adapt {

namespace peft_config_detail {

/// Keys that change no memory, of all methods: names, seeds, initial values, factors, schedules, and sizes that the
/// model shows.
inline constexpr auto kWithoutEffect = std::to_array<std::string_view>({"peft_type",
                                                                        "auto_mapping",
                                                                        "peft_version",
                                                                        "base_model_name_or_path",
                                                                        "revision",
                                                                        "task_type",
                                                                        "inference_mode",
                                                                        "fan_in_fan_out",
                                                                        "layers_pattern",
                                                                        "init_weights",
                                                                        "init_lora_weights",
                                                                        "init_ia3_weights",
                                                                        "init_scale",
                                                                        "lora_alpha",
                                                                        "alpha",
                                                                        "alpha_pattern",
                                                                        "use_rslora",
                                                                        "use_dora",
                                                                        "ensure_weight_tying",
                                                                        "runtime_config",
                                                                        "megatron_core",
                                                                        "qalora_group_size",
                                                                        "velora_scale",
                                                                        "corda_config",
                                                                        "eva_config",
                                                                        "loftq_config",
                                                                        "lora_ga_config",
                                                                        "monteclora_config",
                                                                        "arrow_config",
                                                                        "alora_invocation_tokens",
                                                                        "beta1",
                                                                        "beta2",
                                                                        "orth_reg_weight",
                                                                        "tinit",
                                                                        "tfinal",
                                                                        "deltaT",
                                                                        "total_step",
                                                                        "target_r",
                                                                        "scaling",
                                                                        "random_loc_seed",
                                                                        "wavelet_family",
                                                                        "proportional_parameters",
                                                                        "projection_prng_key",
                                                                        "save_projection",
                                                                        "d_initial",
                                                                        "sample_at_inference",
                                                                        "generator_seed",
                                                                        "randlora_alpha",
                                                                        "very_sparse",
                                                                        "sparse",
                                                                        "projection_seed",
                                                                        "init_v_bound",
                                                                        "proj_seed",
                                                                        "init_theta_d_bound",
                                                                        "save_indices",
                                                                        "init_vector_bank_bound",
                                                                        "init_logits_std",
                                                                        "save_only_topk_weights",
                                                                        "delora_lambda",
                                                                        "lambda_pattern",
                                                                        "psoft_alpha",
                                                                        "ab_svd_init",
                                                                        "psoft_svd_lowrank_niter",
                                                                        "psoft_orth",
                                                                        "cayley_neumann_eps",
                                                                        "random_seed",
                                                                        "mask_type",
                                                                        "target_svd_config",
                                                                        "group_size",
                                                                        "eps",
                                                                        "regularization_alpha",
                                                                        "progressbar",
                                                                        "coft",
                                                                        "token_dim",
                                                                        "num_attention_heads",
                                                                        "num_layers",
                                                                        "prompt_tuning_init",
                                                                        "prompt_tuning_init_text",
                                                                        "tokenizer_name_or_path",
                                                                        "tokenizer_kwargs",
                                                                        "use_effective_conv2d",
                                                                        "rank_dropout_scale",
                                                                        "encoder_dropout",
                                                                        "encoder_hidden_size",
                                                                        "encoder_num_layers",
                                                                        "encoder_reparameterization_type",
                                                                        "cpt_token_ids",
                                                                        "cpt_mask",
                                                                        "cpt_tokens_type_mask",
                                                                        "opt_weighted_loss_type",
                                                                        "opt_loss_decay_factor",
                                                                        "opt_projection_epsilon",
                                                                        "opt_projection_format_epsilon",
                                                                        "prompt_tuning_init_state_dict_path",
                                                                        "prompt_tuning_init_task",
                                                                        "poly_type",
                                                                        "select_top",
                                                                        "save_precomputed_indices",
                                                                        "asa_target_subspaces",
                                                                        "init_warmup",
                                                                        "final_warmup",
                                                                        "mask_interval",
                                                                        "asa_importance_beta",
                                                                        "asa_uncertainty_beta",
                                                                        "asa_schedule_exponent",
                                                                        "use_dynamic_rank",
                                                                        "svd_threshold"});

/// Keys that change memory and are not modelled, with the word that means that they are off; empty: no word.
struct NotModelledKey {
  std::string_view key;
  std::string_view off;
};
inline constexpr auto kNotModelled = std::to_array<NotModelledKey>({
    {"bias", "none"},
    {"layers_to_transform", ""},
    {"exclude_modules", ""},
    {"layer_replication", ""},
    {"lora_bias", ""},
    {"trainable_token_indices", ""},
    {"use_qalora", ""},
    {"use_bdlora", ""},
    {"use_velora", ""},
    {"megatron_config", ""},
    {"rank_dropout", ""},
    {"module_dropout", ""},
    {"boft_dropout", ""},
    {"block_size_pattern", ""},
    {"n_frequency_pattern", ""},
    {"num_transformer_submodules", "1"},
    {"r_pattern", ""},
    {"use_asa", ""},
});

GPUMEM_INLINE bool is_off(std::string_view word, std::string_view off) {
  if (word.empty() || word == "false" || word == "0" || word == "none") return true;
  return word == off || word.find_first_not_of("0.") == std::string_view::npos;
}

/// "target_modules" or "use_bdlora.nblocks" without what follows the dot.
GPUMEM_INLINE std::string_view head_of(std::string_view key) { return key.substr(0, key.find('.')); }

class Reading {
 public:
  explicit Reading(std::span<const PeftSetting> settings) : settings_(settings) {}

  [[nodiscard]] std::string_view word(std::string_view key) const {
    for (const PeftSetting& setting : settings_) {
      if (setting.key == key) return setting.word;
    }
    return {};
  }

  [[nodiscard]] PeftConfig read() {
    const std::string_view type = word("peft_type");
    config_.base_model = word("base_model_name_or_path");
    row_ = peft_row_of_type(type);
    if (row_ == nullptr) {
      config_.not_modelled.push_back("peft_type " + std::string(type));
      return std::move(config_);
    }
    // A rank alone means LoRA.
    const auto of_pattern = [](const PeftSetting& each) { return each.key.starts_with("rank_pattern."); };
    if (method() != model::PeftMethod::lora || word("r").empty() || std::ranges::any_of(settings_, of_pattern)) {
      want("peft", std::string(model::name_of(model::kPeftMethods, method())), "peft_type");
    }
    for (const PeftSetting& setting : settings_) take(setting);
    add_parameters();
    if (!options_.empty()) want("peft_options", options_, "peft_type");
    return std::move(config_);
  }

 private:
  void want(std::string_view option, std::string value, std::string_view key) {
    config_.options.push_back({option, std::move(value), std::string(key)});
  }

  [[nodiscard]] model::PeftMethod method() const {
    if (row_->value != model::PeftMethod::lora) return row_->value;
    const std::string_view start = word("init_lora_weights");
    if (word("use_dora") == "true") return model::PeftMethod::dora;
    if (start.starts_with("pissa")) return model::PeftMethod::pissa;
    if (start == "mica") return model::PeftMethod::mica;
    return word("use_rslora") == "true" ? model::PeftMethod::rslora : model::PeftMethod::lora;
  }

  [[nodiscard]] bool is_setting(std::string_view key) const {
    std::string_view options = row_->options;
    while (!options.empty()) {
      const std::size_t comma = options.find(',');
      const std::string_view one = options.substr(0, comma);
      if (one.substr(0, one.find('=')) == key) return true;
      options = comma == std::string_view::npos ? std::string_view() : options.substr(comma + 1);
    }
    return false;
  }

  void set(std::string_view key, std::string_view value) {
    const bool separates = value.find_first_of(",=") != std::string_view::npos;
    if (separates) return config_.not_modelled.push_back(std::string(key) + " " + std::string(value));
    options_.append(options_.empty() ? "" : ",").append(key).append("=").append(value);
  }

  void take_targets(const PeftSetting& setting) {
    const bool expression = setting.word.find_first_of("*()[]|\\^$,") != std::string::npos;
    auto targets = expression ? targets_of_expression(setting.word) : std::optional(setting.word);
    if (!targets) return config_.not_modelled.push_back("target_modules " + setting.word);
    if (row_->targets != PeftTargets::tokens && row_->targets != PeftTargets::prompts &&
        row_->targets != PeftTargets::attention) {
      want("lora_targets", *std::move(targets), setting.key);
    }
  }

  /// target_parameters stand behind target_modules, and are all targets where there are none of these.
  void add_parameters() {
    const std::string_view names = word("target_parameters");
    if (names.empty()) return;
    const auto modules = std::ranges::find(config_.options, std::string_view("lora_targets"), &PeftOption::option);
    const bool alone = modules == config_.options.end();
    if (alone) want("lora_targets", with_parameters({}, names), "target_parameters");
    else modules->value = with_parameters(modules->value, names);
  }

  void take_saved(const PeftSetting& setting) {
    SavedModules saved = saved_modules(setting.word);
    if (!saved.all_named) config_.not_modelled.push_back(setting.key + " " + setting.word);
    if (!saved.patterns.empty()) want("train", std::move(saved.patterns), setting.key);
  }

  /// What AdaLoRA saves there are masks, which change no size.
  void take_pattern(const PeftSetting& setting) {
    if (row_->value == model::PeftMethod::adalora) return;
    if (!is_plain_pattern(setting.key)) return config_.not_modelled.push_back(setting.key + " " + setting.word);
    set(setting.key, setting.word);
  }

  void take(const PeftSetting& setting) {
    const std::string_view key = setting.key;
    const std::string_view head = head_of(key);
    const std::string_view word = setting.word;
    if (word.empty() || word == "null") return note(key, head);
    if (is_setting(key)) return set(key, word);
    if (key == "r" && row_->rank > 0) return want("lora", setting.word, key);
    if (key == "r") return note(key, head);
    if (key == "target_modules") return take_targets(setting);
    if (key == "target_parameters") return;
    if (key == "modules_to_save") return take_saved(setting);
    if (!row_->dropout.empty() && key == row_->dropout) {
      if (!is_off(word, "")) want("lora_dropout", setting.word, key);
      return;
    }
    if (head == "rank_pattern") return take_pattern(setting);
    for (const NotModelledKey& row : kNotModelled) {
      if (row.key != head) continue;
      if (!is_off(word, row.off)) config_.not_modelled.push_back(setting.key + " " + setting.word);
      return;
    }
    note(key, head);
  }

  /// Keys that say nothing of memory, and those that are not known.
  void note(std::string_view key, std::string_view head) {
    const bool known = std::ranges::find(kWithoutEffect, head) != kWithoutEffect.end() || head.ends_with("_dropout") ||
                       head == "rank_pattern" || head == "target_modules" || head == "target_parameters" ||
                       head == "modules_to_save" || head == "r" || is_setting(head);
    const auto same = [&](const NotModelledKey& row) { return row.key == head; };
    if (!known && std::ranges::none_of(kNotModelled, same)) config_.unknown.emplace_back(key);
  }

  std::span<const PeftSetting> settings_;
  const PeftMethodRow* row_ = nullptr;
  PeftConfig config_;
  std::string options_;
};

}  // namespace peft_config_detail

GPUMEM_INLINE SavedModules saved_modules(std::string_view list) {
  constexpr std::string_view kBetween = "[]'\", +";
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  constexpr std::pair<std::string_view, std::string_view> kMegatron[] = {{"word_embeddings", "embed_tokens"},
                                                                         {"output_layer", "lm_head"}};
  SavedModules saved;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(kBetween), list.size());
    std::string_view name = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (name.empty() || name == "null" || name == "None") continue;
    for (const auto& [theirs, ours] : kMegatron) {
      if (name == theirs) name = ours;
    }
    const bool is_name = name != "all" && name.find_first_not_of(kOfNames) == std::string_view::npos;
    saved.all_named = saved.all_named && is_name;
    if (is_name) saved.patterns.append(saved.patterns.empty() ? "*" : ",*").append(name);
  }
  return saved;
}

GPUMEM_INLINE std::string with_parameters(std::string targets, std::string_view list) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of("[]\"' ,+"), list.size());
    const std::string_view name = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (name.empty() || name == "null" || name == "None") continue;
    targets.append(targets.empty() ? "parameter:" : "+parameter:").append(name);
  }
  return targets;
}

GPUMEM_INLINE std::optional<PeftConfig> peft_config(std::span<const PeftSetting> settings) {
  const auto typed = [](const PeftSetting& setting) { return setting.key == "peft_type"; };
  if (std::ranges::none_of(settings, typed)) return std::nullopt;
  return peft_config_detail::Reading(settings).read();
}

}  // namespace gpumem::adapt
