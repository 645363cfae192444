#pragma once

#include "gpumem/adapt/peft_methods.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "gpumem/adapt/lora_targets.hpp"
#include "gpumem/adapt/peft_low_rank.hpp"
#include "gpumem/adapt/peft_rotations.hpp"
#include "gpumem/adapt/peft_weights.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"

namespace gpumem::adapt {

namespace peft_methods_detail {

using M = model::PeftMethod;
using T = PeftTargets;

/// Numbers among settings must be small enough to be sizes of matrices, and ranks so small that their squares are.
inline constexpr std::int64_t kLargest = std::int64_t{1} << 31;
inline constexpr std::int64_t kLargestRank = std::int64_t{1} << 24;
inline constexpr std::string_view kPattern = "rank_pattern.";
inline constexpr std::string_view kFactorPattern = "factor_pattern.";  ///< of LoKr, by LyCORIS' factor of a module
inline constexpr std::string_view kLora = "lora_dropout";

inline constexpr auto kRows = std::to_array<PeftMethodRow>({
    {M::lora, "LORA", "lora", 8, T::usual, "", kLora},
    {M::rslora, "LORA", "lora (use_rslora)", 8, T::usual, "", kLora},
    {M::pissa, "LORA", "lora (init_lora_weights pissa)", 8, T::usual, "", kLora},
    {M::lora_fa, "LORA", "lora (optimizers/lorafa.py)", 8, T::usual, "", kLora},
    {M::mica, "LORA", "lora (init_lora_weights mica)", 8, T::usual, "", kLora},
    {M::dora, "LORA", "lora (use_dora)", 8, T::usual, "", kLora, false, &peft_calls::dora},
    {M::adalora, "ADALORA", "adalora", 8, T::usual, "init_r=12", kLora, false, &peft_calls::adalora},
    {M::vera, "VERA", "vera", 256, T::usual, "", "vera_dropout", false, &peft_calls::vera},
    {M::pvera, "PVERA", "pvera", 256, T::usual, "", "pvera_dropout", false, &peft_calls::pvera},
    {M::randlora, "RANDLORA", "randlora", 32, T::usual, "", "randlora_dropout", false, &peft_calls::randlora},
    {M::tinylora, "TINYLORA", "tinylora", 2, T::usual, "u=64,weight_tying=0", "tinylora_dropout", false,
     &peft_calls::tinylora},
    {M::unilora, "UNILORA", "unilora", 4, T::usual, "theta_d_length=256", "unilora_dropout", false,
     &peft_calls::unilora},
    {M::vblora, "VBLORA", "vblora", 4, T::usual, "num_vectors=256,vector_length=256,topk=2", "vblora_dropout", false,
     &peft_calls::vblora},
    {M::gralora, "GRALORA", "gralora", 32, T::usual, "gralora_k=2,hybrid_r=0", "gralora_dropout", false,
     &peft_calls::gralora},
    {M::lily, "LILY", "lily", 32, T::usual, "stride_A=1,num_B=2", "", false, &peft_calls::lily},
    {M::delora, "DELORA", "delora", 8, T::usual, "", "module_dropout", false, &peft_calls::delora},
    {M::peanut, "PEANUT", "peanut", 32, T::usual, "depth=0,act_fn=relu", "", true, &peft_calls::peanut},
    {M::deft, "DEFT", "deft", 8, T::usual, "decomposition_method=relu,para=false", "deft_dropout", false,
     &peft_calls::deft},
    {M::psoft, "PSOFT", "psoft", 32, T::usual,
     "psoft_svd=full,psoft_mag_a=true,psoft_mag_b=true,use_cayley_neumann=false,num_cayley_neumann_terms=5",
     "psoft_dropout", false, &peft_calls::psoft},
    {M::loha, "LOHA", "loha", 8, T::usual, "", "", false, &peft_calls::loha},
    {M::lokr, "LOKR", "lokr", 8, T::usual,
     "decompose_both=false,decompose_factor=-1,full_matrix=false,bypass_mode=false", "", false, &peft_calls::lokr},
    {M::hira, "HIRA", "hira", 32, T::usual, "", "hira_dropout", true, &peft_calls::hira},
    {M::glora, "GLORA", "glora", 8, T::usual, "config_A_B=lora,config_C=lora,config_D_E=constant", "", true,
     &peft_calls::glora},
    {M::fourierft, "FOURIERFT", "fourierft", 0, T::usual, "n_frequency=1000", "", false, &peft_calls::fourierft},
    {M::waveft, "WAVEFT", "waveft", 0, T::usual, "n_frequency=2592,use_idwt=true", "", false, &peft_calls::waveft},
    {M::c3a, "C3A", "c3a", 0, T::usual, "block_size=256", "", false, &peft_calls::c3a},
    {M::shira, "SHIRA", "shira", 32, T::usual, "", "", true, &peft_calls::shira},
    {M::osf, "OSF", "osf", 0, T::all_linear, "effective_rank=0", "", true, &peft_calls::osf},
    {M::ia3, "IA3", "ia3", 0, T::keys, "feedforward_modules=usual", "", true, &peft_calls::ia3},
    {M::beft, "BEFT", "beft", 0, T::values, "", "", false, &peft_calls::beft},
    {M::road, "ROAD", "road", 0, T::usual, "variant=road_1|road_2|road_4", "", false, &peft_calls::road},
    {M::oft, "OFT", "oft", 0, T::usual,
     "oft_block_size=32,r=0,block_share=false,use_cayley_neumann=true,num_cayley_neumann_terms=5", "", true,
     &peft_calls::oft},
    {M::boft, "BOFT", "boft", 0, T::usual,
     "boft_block_size=4,boft_block_num=0,boft_n_butterfly_factor=1,fbd_cuda=false", "", true, &peft_calls::boft},
    {M::hra, "HRA", "hra", 8, T::usual, "apply_GS=false", "", true, &peft_calls::hra},
    {M::miss, "MISS", "miss", 64, T::usual, "init_weights=true,mini_r=1", "miss_dropout", true, &peft_calls::miss},
    {M::ln_tuning, "LN_TUNING", "ln_tuning", 0, T::norms},
    {M::trainable_tokens, "TRAINABLE_TOKENS", "trainable_tokens", 0, T::tokens, "token_indices=0"},
    {M::prompt_tuning, "PROMPT_TUNING", "prompt_tuning", 0, T::prompts, "num_virtual_tokens=0"},
    {M::p_tuning, "P_TUNING", "p_tuning", 0, T::prompts,
     "num_virtual_tokens=0,encoder_hidden_size=0,encoder_reparameterization_type=MLP|LSTM,encoder_num_layers=2"},
    {M::prefix_tuning, "PREFIX_TUNING", "prefix_tuning", 0, T::prompts,
     "num_virtual_tokens=0,prefix_projection=false,encoder_hidden_size=0"},
    {M::adaption_prompt, "ADAPTION_PROMPT", "adaption_prompt", 0, T::attention, "adapter_len=0,adapter_layers=0", "",
     true, &peft_calls::adaption_prompt},
    {M::adamss, "ADAMSS", "adamss", 100, T::usual, "num_subspaces=5,subspace_rank=1", "", false, &peft_calls::adamss},
    {M::frod, "FROD", "frod", 0, T::usual,
     "sparse_rate=0.01,runtime_offload_base_weight=false,projections_on_cpu=false", "frod_dropout", true,
     &peft_calls::frod},
    {M::cpt, "CPT", "cpt", 0, T::prompts, "num_virtual_tokens=0"},
    {M::multitask_prompt_tuning, "MULTITASK_PROMPT_TUNING", "multitask_prompt_tuning", 0, T::prompts,
     "num_virtual_tokens=0,num_tasks=1,num_ranks=1"},
    {M::cartridge, "CARTRIDGE", "cartridge", 0, T::prompts, "num_virtual_tokens=0,num_frozen_tokens=1"},
    {M::supertuning, "SUPERTUNING", "supertuning", 0, T::usual, "sparsity=0.99,r=0", kLora, true,
     &peft_calls::supertuning},
    {M::xlora, "XLORA", "xlora", 0, T::usual, "", "", false, nullptr,
     "it mixes adapters that were trained before, whose ranks and layers no setting says, and runs forward twice"},
    {M::poly, "POLY", "poly", 8, T::usual, "n_tasks=1,n_skills=4,n_splits=1", "", false, &peft_calls::poly},
});

static_assert(
    [] {
      for (std::size_t index = 0; index < kRows.size(); ++index) {
        if (static_cast<std::size_t>(kRows[index].value) != index + 1) return false;
      }
      return kRows.size() + 1 == model::kPeftMethods.size();
    }(),
    "the rows stand in the order of the enum");

GPUMEM_INLINE std::optional<std::int64_t> number(std::string_view text) {
  const std::optional<std::int64_t> value = core::parse_whole(text);
  return value && *value >= -1 && *value <= kLargest ? value : std::nullopt;
}

/// From 0 to 1.
GPUMEM_INLINE std::optional<double> share_in(std::string_view text) {
  const std::optional<double> share = core::parse_number(text);
  return share && *share >= 0.0 && *share <= 1.0 ? share : std::nullopt;
}

GPUMEM_INLINE core::Error wrong(std::string message) {
  return {core::ErrorCode::invalid_argument, std::move(message), {}};
}

GPUMEM_INLINE bool is_flag(std::string_view word) { return word == "true" || word == "false"; }

/// Whether layers of the method have a rank that a pattern can change.
GPUMEM_INLINE bool has_patterns(const PeftMethodRow& row) {
  return row.rank > 0 || row.value == M::osf || row.value == M::oft;
}

/// A pattern names layers by the last part of their path.
GPUMEM_INLINE core::Status check_pattern(std::string_view name, std::string_view value) {
  if (!is_plain_pattern(name) && !name.starts_with(kFactorPattern)) {
    return wrong("the pattern in " + core::quoted(name) + " must be the name of a layer, such as q_proj: paths and " +
                 "regular expressions are not modelled");
  }
  const std::int64_t rank = number(value).value_or(0);
  if (rank >= 1 && rank <= kLargestRank) return core::Done{};
  return wrong("the rank of " + core::quoted(name) + " must be a whole number from 1 to " +
               std::to_string(kLargestRank));
}

/// Of a setting with choices, "road_1|road_2", the usual one is the first.
GPUMEM_INLINE bool is_choice(std::string_view choices, std::string_view value) {
  while (!choices.empty()) {
    const std::size_t bar = choices.find('|');
    if (choices.substr(0, bar) == value) return true;
    choices = bar == std::string_view::npos ? std::string_view() : choices.substr(bar + 1);
  }
  return false;
}

/// Whether a given value is of the kind that the usual one is.
GPUMEM_INLINE bool is_alike(std::string_view name, std::string_view choices, std::string_view value) {
  const std::string_view usual = choices.substr(0, choices.find('|'));
  if (name == "token_indices" || name == "weight_tying") return true;
  if (name == "sparse_rate" || name == "sparsity") return share_in(value).has_value();
  if (usual.size() < choices.size()) return is_choice(choices, value);
  if (number(usual)) return number(value) && (name == "decompose_factor" || *number(value) >= 0);
  return !is_flag(usual) || is_flag(value) || name == "init_weights";
}

/// Which method a setting of PEFT's LoraConfig makes of LoRA; empty: none.
GPUMEM_INLINE std::string method_of(std::string_view setting) {
  constexpr std::pair<std::string_view, std::string_view> kMethods[] = {{"use_dora=true", "dora"},
                                                                        {"use_dora", "dora"},
                                                                        {"use_rslora=true", "rslora"},
                                                                        {"use_rslora", "rslora"},
                                                                        {"init_lora_weights=mica", "mica"}};
  if (setting.starts_with("init_lora_weights=pissa")) return "pissa";
  for (const auto& [name, method] : kMethods) {
    if (setting == name) return std::string(method);
  }
  return {};
}

}  // namespace peft_methods_detail

GPUMEM_INLINE bool is_plain_pattern(std::string_view key) {
  const std::size_t before = std::string_view("rank_pattern.").size();
  return key.size() > before && key.find_first_of(".^$*[](){}|\\+?,=", before) == std::string_view::npos;
}

GPUMEM_INLINE std::span<const PeftMethodRow> peft_methods() { return peft_methods_detail::kRows; }

GPUMEM_INLINE const PeftMethodRow& peft_row(const model::TrainingJob& job) {
  const auto index = static_cast<std::size_t>(job.peft);
  return peft_methods_detail::kRows[index == 0 ? 0 : index - 1];
}

GPUMEM_INLINE const PeftMethodRow* peft_row_of_type(std::string_view peft_type) {
  if (peft_type == "BONE") peft_type = "MISS";  // its name before PEFT 0.17
  for (const PeftMethodRow& row : peft_methods_detail::kRows) {
    if (row.peft_type == peft_type) return &row;
  }
  return nullptr;
}

GPUMEM_INLINE core::Result<PeftSettings> PeftSettings::of(const model::TrainingJob& job) {
  namespace detail = peft_methods_detail;
  PeftSettings settings;
  settings.row_ = &peft_row(job);
  const PeftMethodRow& row = *settings.row_;
  const std::string name(model::name_of(model::kPeftMethods, row.value));
  if (!row.refusal.empty()) {
    return core::Error{
        core::ErrorCode::missing_information, "PEFT's " + name + " is not modelled: " + std::string(row.refusal), {}};
  }
  if (row.rank == 0 && job.lora) {
    return detail::wrong("PEFT's " + name + " has no rank; leave `lora` out");
  }
  settings.rank_ = job.lora.value_or(row.rank);
  if (settings.rank_ > detail::kLargestRank) {
    return detail::wrong("the rank must be at most " + std::to_string(detail::kLargestRank));
  }
  (void)settings.take(row.options, false);
  core::Status taken = settings.take(job.peft_options, true);
  if (taken) taken = settings.check();
  if (!taken) return std::move(taken).error();
  return settings;
}

GPUMEM_INLINE core::Status PeftSettings::take(std::string_view options, bool given) {
  namespace detail = peft_methods_detail;
  while (!options.empty()) {
    const std::size_t comma = options.find(',');
    const std::string_view one = options.substr(0, comma);
    options = comma == std::string_view::npos ? std::string_view() : options.substr(comma + 1);
    const std::size_t equal = one.find('=');
    const std::string_view name = one.substr(0, equal);
    const std::string_view value = equal == std::string_view::npos ? "true" : one.substr(equal + 1);
    const auto same = [&](const Setting& setting) { return setting.name == name; };
    const auto found = std::ranges::find_if(settings_, same);
    const bool factor = name.starts_with(detail::kFactorPattern) && row_->value == model::PeftMethod::lokr;
    const bool pattern = given && (factor || (name.starts_with(detail::kPattern) && detail::has_patterns(*row_)));
    if (given && found == settings_.end() && !pattern) {
      std::string known;
      for (const Setting& setting : settings_) known += (known.empty() ? "" : ", ") + setting.name;
      if (row_->peft_type == "LORA") {
        if (std::string method = detail::method_of(one); !method.empty()) {
          return detail::wrong(core::quoted(one) + " makes another method of LoRA: say `peft=" + method + "`");
        }
      }
      return detail::wrong(core::quoted(name) + " is no setting of PEFT's " +
                           std::string(model::name_of(model::kPeftMethods, row_->value)) + " that gpumem reads" +
                           (known.empty() ? "" : "; it reads " + known));
    }
    if (pattern) {
      if (core::Status fits = detail::check_pattern(name, value); !fits) return fits;
      settings_.push_back({std::string(name), std::string(value), {}});
      continue;
    }
    if (found == settings_.end()) {
      settings_.push_back({std::string(name), std::string(value.substr(0, value.find('|'))), std::string(value)});
      continue;
    }
    if (!detail::is_alike(name, found->usual, value)) {
      const std::string_view usual = found->usual;
      const bool chosen = usual.find('|') != std::string_view::npos;
      const bool is_share = !detail::is_flag(usual) && detail::share_in(usual).has_value();
      return detail::wrong("the setting " + core::quoted(one) + " must be " +
                           (chosen                  ? "one of " + std::string(usual)
                            : detail::number(usual) ? "a whole number from 0 on"
                            : is_share              ? "a number from 0 to 1"
                                                    : "true or false"));
    }
    found->value = value;
  }
  return core::Done{};
}

/// BOFTLayer.update_layer() refuses more factors than 1 + log2 of the blocks that an input has, of which there are no
/// more than its features; without its extension in CUDA it takes any number from 1 on and makes one.
GPUMEM_INLINE core::Status PeftSettings::check() const {
  constexpr std::int64_t kMostFactors = 32;
  if (row_->value != model::PeftMethod::boft) return core::Done{};
  const std::int64_t factors = whole("boft_n_butterfly_factor");
  if (factors >= 1 && factors <= kMostFactors) return core::Done{};
  return peft_methods_detail::wrong("the setting boft_n_butterfly_factor must be a whole number from 1 to " +
                                    std::to_string(kMostFactors));
}

GPUMEM_INLINE std::string_view PeftSettings::text(std::string_view name) const {
  for (const Setting& setting : settings_) {
    if (setting.name == name) return setting.value;
  }
  return {};
}

GPUMEM_INLINE std::int64_t PeftSettings::whole(std::string_view name) const {
  return peft_methods_detail::number(text(name)).value_or(0);
}

GPUMEM_INLINE double PeftSettings::share(std::string_view name) const {
  return peft_methods_detail::share_in(text(name)).value_or(0.0);
}

GPUMEM_INLINE bool PeftSettings::flag(std::string_view name) const { return text(name) == "true"; }

GPUMEM_INLINE std::int64_t PeftSettings::factor_of(std::string_view leaf) const {
  constexpr std::string_view kPattern = peft_methods_detail::kFactorPattern;
  for (const Setting& setting : settings_) {
    const std::string_view name = setting.name;
    if (name.starts_with(kPattern) && name.substr(kPattern.size()) == leaf) {
      return peft_methods_detail::number(setting.value).value_or(-1);
    }
  }
  return whole("decompose_factor");
}

GPUMEM_INLINE void PeftSettings::set_rank(std::string_view leaf, std::int64_t rank) {
  settings_.push_back({std::string(peft_methods_detail::kPattern).append(leaf), std::to_string(rank), {}});
}

GPUMEM_INLINE std::int64_t PeftSettings::rank_of(std::string_view leaf) const {
  for (const Setting& setting : settings_) {
    const std::string_view name = setting.name;
    if (!name.starts_with(peft_methods_detail::kPattern)) continue;
    if (name.substr(peft_methods_detail::kPattern.size()) == leaf)
      return peft_methods_detail::number(setting.value).value_or(0);
  }
  if (row_->value == model::PeftMethod::osf) return whole("effective_rank");
  if (row_->value == model::PeftMethod::oft) return whole("r");
  return rank_;
}

namespace peft_methods_detail {

/// Experts' projections as transformers 4 calls them.
struct ExpertNames {
  std::string_view gate;
  std::string_view up;
  std::string_view down;

  [[nodiscard]] bool has(std::string_view name) const { return name == gate || name == up || name == down; }
};
inline constexpr ExpertNames kMixtralNames = {"w1", "w3", "w2"};
inline constexpr ExpertNames kQwenNames = {"gate_proj", "up_proj", "down_proj"};

/// The model types that PEFT converts. Qwen2-MoE, which gave its name to the second kind, is none of them.
/// Source: transformers 5.5 to 5.16, conversion_mapping.py: _MODEL_TO_CONVERSION_PATTERN; PEFT adds Mixtral.
struct ConvertedType {
  std::string_view model_type;
  const ExpertNames* names = &kQwenNames;
};
inline constexpr auto kConvertedTypes = std::to_array<ConvertedType>({
    {"mixtral", &kMixtralNames},
    {"minimax", &kMixtralNames},
    {"minimax_m2", &kMixtralNames},
    {"afmoe"},
    {"deepseek_v2"},
    {"deepseek_v3"},
    {"deepseek_v32"},
    {"dots1"},
    {"ernie4_5_moe"},
    {"glm4_moe"},
    {"glm4_moe_lite"},
    {"glm_moe_dsa"},
    {"glm4v_moe"},
    {"longcat_flash"},
    {"solar_open"},
    {"mellum"},
    {"qwen3_moe"},
    {"qwen3_omni_moe"},
    {"qwen3_omni_moe_thinker"},
    {"qwen3_next"},
    {"hunyuan_v1_moe"},
    {"flex_olmo"},
    {"olmoe"},
    {"exaone_moe"},
    {"cohere2_moe"},
});

inline std::string_view last_name(std::string_view path) { return path.substr(path.rfind('.') + 1); }

/// Names without those that are there already, joined by '+'.
class TargetList {
 public:
  void add(std::string_view name) {
    if (std::ranges::find(names_, name) == names_.end()) names_.emplace_back(name);
  }
  [[nodiscard]] std::string joined() const {
    std::string text;
    for (const std::string& name : names_) text += (text.empty() ? "" : "+") + name;
    return text;
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace peft_methods_detail

GPUMEM_INLINE core::Result<std::optional<std::string>> converted_targets(std::string_view model_type,
                                                                         std::string_view targets,
                                                                         std::span<const std::string_view> linears,
                                                                         std::span<const std::string> parameters) {
  namespace detail = peft_methods_detail;
  namespace lists = lora_targets_detail;
  constexpr std::string_view kRouter = "gate";
  const auto of_type = [&](const detail::ConvertedType& row) { return row.model_type == model_type; };
  const auto* const row = std::ranges::find_if(detail::kConvertedTypes, of_type);
  const auto held = [&](std::string_view name) {
    return std::ranges::any_of(parameters, [&](const std::string& path) { return lists::is_named(path, name); });
  };
  if (row == detail::kConvertedTypes.end() || !held(kFusedGate)) return std::optional<std::string>();
  const detail::ExpertNames& names = *row->names;
  detail::TargetList all;
  bool gate = false;
  bool up = false;
  const auto take = [&](std::string_view target) {
    const std::string_view last = detail::last_name(target);
    gate = gate || last == names.gate;
    up = up || last == names.up;
    if (names.has(last)) all.add(std::string("parameter:").append(last == names.down ? "down_proj" : kFusedGate));
    else if (last == kRouter && held("gate.weight")) all.add("parameter:gate.weight");
    else all.add(target);  // a router that is a linear layer has its adapter, too
  };
  for (const std::string_view target : lists::parted(targets)) {
    const bool module = !target.starts_with(lists::kNot) && !target.starts_with(lists::kParameter);
    if (!module) {
      all.add(target);
    } else if (target != lists::kAllLinear) {
      take(target);
    } else {
      for (const std::string_view name : linears) take(name);
      for (const std::string_view name : {names.gate, names.up, names.down}) take(name);
      if (held("gate.weight")) take(kRouter);
    }
  }
  if (gate == up) return std::optional<std::string>(all.joined());
  const std::string_view there = gate ? names.gate : names.up;
  const std::string_view missing = gate ? names.up : names.gate;
  return core::Error{core::ErrorCode::invalid_argument,
                     "PEFT adapts no " + std::string(there) + " alone, which is one tensor with " +
                         std::string(missing) + " in experts of transformers 5; name both in `lora_targets`",
                     {}};
}

}  // namespace gpumem::adapt
