#include "llama_factory.hpp"

#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace llama_factory_detail {

constexpr std::string_view kWithoutEffect[] = {"adapter_name_or_path",
                                               "buffer_size",
                                               "cache_dir",
                                               "compute_accuracy",
                                               "create_new_adapter",
                                               "dataset*",
                                               "default_system",
                                               "export_*",
                                               "infer_*",
                                               "interleave_probs",
                                               "lora_*",
                                               "quantization_*",
                                               "freeze_*",
                                               "pref_*",
                                               "ref_model*",
                                               "reward_model*",
                                               "ppo_*",
                                               "dpo_*",
                                               "kto_*",
                                               "simpo_*",
                                               "mask_history",
                                               "max_samples",
                                               "mix_strategy",
                                               "num_beams",
                                               "offload_folder",
                                               "predict_with_generate",
                                               "preprocessing_*",

                                               "resize_vocab",
                                               "rope_scaling",
                                               "split_special_tokens",
                                               "streaming",
                                               "swanlab*",
                                               "template",
                                               "tokenized_path",
                                               "tool_format",
                                               "train_on_prompt",
                                               "use_fast_tokenizer",
                                               "use_rslora",
                                               "use_swanlab",
                                               "val_size",
                                               "vllm*",
                                               "additional_target",
                                               "packing",
                                               "neat_packing",
                                               "enable_thinking"};

void read_quantization(TrainerReading& from) {
  const auto bits = from.word("quantization_bit");
  const bool doubled = from.word("double_quantization").value_or("true") == "true";
  from.not_modelled("quantization_method", "bnb");
  if (!bits) return;
  from.not_modelled("quantization_type", "nf4");
  if (*bits == "4") from.want("quantize", doubled ? "nf4-double" : "nf4", "quantization_bit");
  else if (*bits == "8") from.want("quantize", "int8", "quantization_bit");
  else from.not_modelled("quantization_bit");
}

/// Whether adapters learn.
bool read_finetuning(TrainerReading& from) {
  const std::string type = from.word("finetuning_type").value_or("lora");
  if (type == "lora") {
    from.want("lora", from.word("lora_rank").value_or("8"), "lora_rank");
    from.want("lora_targets", "all-linear");
    want_lora_targets(from, "lora_target");
    from.take("lora_dropout", "lora_dropout");
    want_saved_modules(from, "additional_target");
    from.not_modelled("use_dora");
    return true;
  }
  if (type != "full") from.not_modelled("finetuning_type");
  for (const std::string_view path : {"freeze_trainable_layers", "freeze_trainable_modules", "freeze_extra_modules"}) {
    if (type == "freeze") from.not_modelled(path);
  }
  return false;
}

void read_attention(TrainerReading& from) {
  const auto kind = from.word("flash_attn");
  if (!kind) return;
  if (*kind == "fa2") from.want("attention", "flash", "flash_attn");
  else if (*kind == "sdpa") from.want("attention", "sdpa", "flash_attn");
  else if (*kind == "disabled") from.want("attention", "eager", "flash_attn");
  else from.not_modelled("flash_attn");
}

bool sniff(const Setting& root) {
  return root.field("finetuning_type") != nullptr || root.field("cutoff_len") != nullptr ||
         (root.field("stage") != nullptr && root.field("model_name_or_path") != nullptr);
}

void read(TrainerReading& from) {
  from.job().model = from.word("model_name_or_path").value_or("");
  read_training_arguments(from);
  from.want("seq_length", "2048");
  from.take("cutoff_len", "seq_length");
  const bool adapters = read_finetuning(from);
  read_quantization(from);
  read_attention(from);
  // Full parameters are float32 under autocast unless the file says pure_bf16; a frozen base keeps its own type.
  const bool bf16 = from.on("bf16");
  const bool pure = from.on("pure_bf16");
  want_precision(from, pure || (adapters && bf16), bf16, from.on("fp16"), pure ? "pure_bf16" : bf16 ? "bf16" : "fp16");
  if (!from.on("disable_gradient_checkpointing")) from.want("checkpointing", "full");
  if (from.on("enable_liger_kernel")) from.want("loss", "fused", "enable_liger_kernel");
  const auto stage = from.word("stage");
  if (stage && *stage != "sft" && *stage != "pt") from.not_modelled("stage");
  for (const std::string_view path :
       {"use_unsloth", "use_unsloth_gc", "use_galore", "use_apollo", "use_badam", "use_adam_mini", "use_llama_pro",
        "use_muon", "shift_attn", "mixture_of_depths", "upcast_layernorm", "upcast_lmhead_output", "loraplus_lr_ratio",
        "pissa_init", "freeze_vision_tower"}) {
    from.not_modelled(path);
  }
  from.without_effect(kWithoutEffect);
}

}  // namespace llama_factory_detail
}  // namespace

const TrainerFormat& llama_factory() {
  static constexpr TrainerFormat kFormat = {"llama-factory", "LLaMA-Factory's YAML", &llama_factory_detail::sniff,
                                            &llama_factory_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
