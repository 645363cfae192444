#include "peft_adapter.hpp"

#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace peft_adapter_detail {

constexpr std::string_view kWithoutEffect[] = {"alpha_pattern",     "base_model_name_or_path",
                                               "layers_pattern",    "auto_mapping",
                                               "corda_config",      "eva_config",
                                               "fan_in_fan_out",    "inference_mode",
                                               "init_lora_weights", "layer_replication",
                                               "loftq_config",      "lora_alpha",
                                               "peft_version",      "revision",
                                               "task_type",         "use_rslora",
                                               "megatron_*"};

bool sniff(const Setting& root) { return root.field("peft_type") != nullptr; }

void read(TrainerReading& from) {
  if (from.word("peft_type").value_or("") != "LORA") {
    from.not_modelled("peft_type");
    return;
  }
  if (from.job().model.empty()) from.job().model = from.word("base_model_name_or_path").value_or("");
  from.want("lora", from.word("r").value_or("8"), "r");
  want_lora_targets(from, "target_modules");
  from.take("lora_dropout", "lora_dropout");
  from.not_modelled("bias", "none");
  for (const std::string_view path : {"modules_to_save", "use_dora", "rank_pattern", "layers_to_transform",
                                      "exclude_modules", "lora_bias", "trainable_token_indices", "target_parameters"}) {
    from.not_modelled(path);
  }
  from.without_effect(kWithoutEffect);
}

}  // namespace peft_adapter_detail
}  // namespace

const TrainerFormat& peft_adapter() {
  static constexpr TrainerFormat kFormat = {"peft-adapter", "PEFT's adapter_config.json", &peft_adapter_detail::sniff,
                                            &peft_adapter_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
