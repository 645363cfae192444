// Input: one of PEFT's methods.
// Output: its row, all that gpumem knows of the method: PEFT's name, its settings with their defaults, which layers it
// takes, and the function that writes what its forward calls. All other code reads the row.
//
// To add a method: a value of model::PeftMethod, a row here, and a function in the file of its kind (peft_low_rank,
// peft_weights, peft_rotations).
//
// Source: huggingface/peft 0.20.1.dev0 (5d602fd), src/peft: utils/peft_types.py, utils/constants.py (the usual targets)
// and the folder tuners/ that each row names: config.py (settings), layer.py (forward), model.py (what layers share).
//
// Input: the settings of an adapter_config.json, by key, as words.
// Output: what they mean as options of a job; what of them changes memory and is not modelled; and keys that PEFT's
// configs do not have. Nothing is left out in silence.
// Source: huggingface/peft 0.20.1.dev0 (5d602fd), tuners/*/config.py; config.py (PeftConfigMixin).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::adapt {

class PeftLayer;

/// Which layers a method takes, if the job names none.
enum class PeftTargets : std::uint8_t {
  usual,       ///< as LoRA does: queries and values of most models
  keys,        ///< keys, values, and the last layer of the feed-forward network (IA3)
  values,      ///< values (BEFT)
  all_linear,  ///< all linear layers (OSF)
  norms,       ///< no linear layer: the norms
  tokens,      ///< the embedding, and the head that is tied to it
  attention,   ///< queries, keys, values and outputs of the last blocks (adaption prompts)
  prompts,     ///< none: what it adds goes in front of the tokens, or of keys and values
};

struct PeftMethodRow {
  model::PeftMethod value = model::PeftMethod::none;
  std::string_view peft_type;  ///< as adapter_config.json has it
  std::string_view source;     ///< the folder of tuners/
  std::int64_t rank = 0;       ///< PEFT's default; 0: the method has no rank
  PeftTargets targets = PeftTargets::usual;
  std::string_view options = {};  ///< settings that change memory, with PEFT's defaults: "n_frequency=1000,..."
  std::string_view dropout = {};  ///< PEFT's name of the dropout before the adapter; empty: it has none
  /// It computes with the base's weight, or on another input: the base is then no layer of its own.
  bool replaces_base = false;
  void (*write)(PeftLayer& layer) = nullptr;
  std::string_view refusal = {};  ///< why it is not modelled; empty: it is
};

/// In the order of the enum, without `none`.
[[nodiscard]] std::span<const PeftMethodRow> peft_methods();
/// The job's method: LoRA where only a rank is given. The job has adapters.
[[nodiscard]] const PeftMethodRow& peft_row(const model::TrainingJob& job);
/// The row with PEFT's name for it, "FOURIERFT"; null: PEFT has no such method. LORA is the first of its family.
[[nodiscard]] const PeftMethodRow* peft_row_of_type(std::string_view peft_type);

/// Whether a key "rank_pattern.NAME" names layers by the last part of their path: no path, no regular expression.
[[nodiscard]] bool is_plain_pattern(std::string_view key);

/// A method's settings: those of the job, and PEFT's defaults. Names are those of the row.
class PeftSettings {
 public:
  /// Errors: invalid_argument for a name that the method does not have, a value that is no number where one is needed,
  /// a rank of a method without one, and a method that is not modelled.
  [[nodiscard]] static core::Result<PeftSettings> of(const model::TrainingJob& job);

  [[nodiscard]] const PeftMethodRow& row() const { return *row_; }
  [[nodiscard]] std::int64_t rank() const { return rank_; }
  /// rank_pattern.NAME of the layer's name, else the rank. Source: PEFT, utils/other.py, get_pattern_key.
  [[nodiscard]] std::int64_t rank_of(std::string_view leaf) const;
  /// Where the job has no rank_pattern of this name.
  void set_rank(std::string_view leaf, std::int64_t rank);
  /// Of LoKr: factor_pattern.NAME of the layer's name, else decompose_factor.
  [[nodiscard]] std::int64_t factor_of(std::string_view leaf) const;
  [[nodiscard]] std::int64_t whole(std::string_view name) const;
  [[nodiscard]] double share(std::string_view name) const;  ///< from 0 to 1
  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] std::string_view text(std::string_view name) const;

 private:
  struct Setting {
    std::string name;
    std::string value;
    std::string usual;  ///< as the method's row has it, with the choices
  };
  core::Status take(std::string_view options, bool given);
  [[nodiscard]] core::Status check() const;

  const PeftMethodRow* row_ = nullptr;
  std::int64_t rank_ = 0;
  std::vector<Setting> settings_;
};

/// A setting: lists are joined by '+', a field of an object has the key "rank_pattern.q_proj". Nulls are left out.
struct PeftSetting {
  std::string key;
  std::string word;
};

/// An option of a job, by its name, with the key that it comes from.
struct PeftOption {
  std::string_view option;
  std::string value;
  std::string key;
};

struct PeftConfig {
  std::string base_model = {};
  std::vector<PeftOption> options = {};
  std::vector<std::string> not_modelled = {};  ///< "bias all"
  std::vector<std::string> unknown = {};       ///< keys
};

/// Modules that are trained as copies beside adapters (modules_to_save), by how their names end.
struct SavedModules {
  std::string patterns;   ///< of `train`: "*lm_head,*embed_tokens"
  bool all_named = true;  ///< false: a word is no module's name, such as an expression or "all"
};

/// Of a list as people write it: "['lm_head', 'embed_tokens']", "lm_head+embed_tokens". Megatron's names of these two
/// mean the same. Source: PEFT 0.15, utils/other.py (_set_trainable); ms-swift 4, megatron/utils/utils.py
/// ("all-embedding" and the like stand for several modules).
[[nodiscard]] SavedModules saved_modules(std::string_view list);

/// The parameter that holds an expert's gate and the matrix beside it, in all models of transformers 5.
inline constexpr std::string_view kFusedGate = "gate_up_proj";

/// PEFT's LoRA of models whose experts transformers 5 holds in one tensor each, for which it takes the names of
/// transformers 4: a target that ends in a projection of the experts is the parameter that has it, and `gate` the
/// router's weight. all-linear means these and the names of all linear layers, so that dense layers and shared
/// experts, whose projections are called alike, have no adapters. kFusedGate gets twice the rank. The same targets in
/// the form of lora_targets(); nothing: the model is no such one. `linears`: last names of linear layers but for the
/// head. `parameters`: paths of those that are tensors of their own. Errors: invalid_argument for one of two
/// projections that are one tensor. Source: PEFT 0.20 (lists since 0.19), utils/transformers_weight_conversion.py:
/// _convert_peft_config_moe(), _MOE_TARGET_MODULE_MAPPING, _MOE_FUSED_TARGETS.
[[nodiscard]] core::Result<std::optional<std::string>> converted_targets(std::string_view model_type,
                                                                         std::string_view targets,
                                                                         std::span<const std::string_view> linears,
                                                                         std::span<const std::string> parameters);

/// `lora_targets` with these parameters behind them (target_parameters), a list of the same form.
[[nodiscard]] std::string with_parameters(std::string targets, std::string_view list);

/// Nothing: there is no peft_type. A type that PEFT does not have is not modelled.
[[nodiscard]] std::optional<PeftConfig> peft_config(std::span<const PeftSetting> settings);

}  // namespace gpumem::adapt
