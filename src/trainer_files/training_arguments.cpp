#include "training_arguments.hpp"

#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace training_arguments_detail {

constexpr std::string_view kWithoutEffect[] = {"attn_implementation",
                                               "dataset*",
                                               "eos_token",
                                               "lora_*",
                                               "bnb_4bit_*",
                                               "use_bnb_nested_quant",
                                               "max_prompt_length",
                                               "model_init_kwargs",
                                               "model_revision",
                                               "packing",
                                               "pad_token",
                                               "preprocessing_num_workers",
                                               "tokenizer_name",
                                               "use_fast_tokenizer",
                                               "use_rslora",
                                               "chat_template*",
                                               "completion_only_loss",
                                               "assistant_only_loss",
                                               "model_code_revision",
                                               "torch_dtype",
                                               "packing_strategy",
                                               "eval_packing",
                                               "truncation_mode",
                                               "shuffle_dataset",
                                               "shuffle_buffer_size",
                                               "validation_*",
                                               "train_file",
                                               "max_train_samples",
                                               "max_eval_samples",
                                               "config_name",
                                               "task_name",
                                               "text_column*",
                                               "label_column*",
                                               "per_device_test_batch_size",
                                               "cache_dir",
                                               "low_cpu_mem_usage",
                                               "token",
                                               "version_2_with_negative",
                                               "doc_stride",
                                               "pad_to_max_length",
                                               "image_column_name",
                                               "audio_column_name",
                                               "max_seconds*",
                                               "report*",
                                               "line_by_line",
                                               "streaming",
                                               "source_prefix",
                                               "source_lang",
                                               "target_lang",
                                               "num_beams",
                                               "predict_with_generate",
                                               "forced_bos_token",
                                               "ignore_mismatched_sizes",
                                               "freeze_feature_encoder",
                                               "language",
                                               "task",
                                               "train_split_name",
                                               "eval_split_name",
                                               "train_val_split",
                                               "trackio*",
                                               "project"};

/// trl's ModelConfig.
void read_model_config(TrainerReading& from) {
  from.take("attn_implementation", "attention");
  if (const auto attention = from.word("attn_implementation"); attention && attention->starts_with("flash_attention")) {
    from.want("attention", "flash", "attn_implementation");
  }
  if (from.on("use_peft")) {
    from.want("lora", from.word("lora_r").value_or("16"), "lora_r");
    want_lora_targets(from, "lora_target_modules");
    from.take("lora_dropout", "lora_dropout");
    want_saved_modules(from, "lora_modules_to_save");
    from.not_modelled("use_dora");
  }
  if (from.on("load_in_8bit")) from.want("quantize", "int8", "load_in_8bit");
  if (from.on("load_in_4bit")) {
    from.not_modelled("bnb_4bit_quant_type", "nf4");
    from.want("quantize", from.on("use_bnb_nested_quant") ? "nf4-double" : "nf4", "load_in_4bit");
  }
}

/// Scripts for image models spell some settings alike and are no Trainer's.
bool sniff(const Setting& root) {
  if (root.field("per_device_train_batch_size") != nullptr) return true;
  const bool images = root.field("pretrained_model_name_or_path") != nullptr || root.field("resolution") != nullptr;
  return !images && root.field("output_dir") != nullptr && root.field("learning_rate") != nullptr;
}

void read(TrainerReading& from) {
  from.job().model = from.word("model_name_or_path").value_or("");
  read_training_arguments(from);
  read_model_config(from);
  for (const std::string_view path :
       {"max_seq_length", "max_length", "block_size", "max_source_length", "model_max_length"}) {
    from.take(path, "seq_length");
  }
  // Samples in one row have no mask.
  if (from.on("packing") || from.on("padding_free")) from.want("padding", "false", "packing");
  if (from.on("activation_offloading")) from.want("offload", "activations", "activation_offloading");
  if (from.on("gradient_checkpointing")) from.want("checkpointing", "full", "gradient_checkpointing");
  const std::string dtype = from.word("torch_dtype").value_or(from.word("dtype").value_or(""));
  // "auto" is the type of the checkpoint, which of models that train in bfloat16 is bfloat16.
  const bool bf16_weights =
      dtype == "bfloat16" || dtype == "torch.bfloat16" || (from.is_auto("torch_dtype") && from.on("bf16"));
  want_precision(from, bf16_weights, from.on("bf16"), from.on("fp16"), from.on("fp16") ? "fp16" : "bf16");
  from.without_effect(kWithoutEffect);
}

}  // namespace training_arguments_detail
}  // namespace

const TrainerFormat& training_arguments() {
  static constexpr TrainerFormat kFormat = {"hf-training-arguments", "HuggingFace's TrainingArguments as JSON",
                                            &training_arguments_detail::sniff, &training_arguments_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
