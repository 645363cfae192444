#include "llama_factory.hpp"

#include <algorithm>
#include <string>

#include "gpumem/posttrain/launch.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace llama_factory_detail {

constexpr std::string_view kWithoutEffect[] = {"adapter_name_or_path",
                                               "apollo_*",
                                               "badam_*",
                                               "buffer_size",
                                               "cache_dir",
                                               "compute_accuracy",
                                               "create_new_adapter",
                                               "dataset*",
                                               "default_system",
                                               "eaft_alpha",
                                               "export_*",
                                               "galore_*",
                                               "image_*",
                                               "infer_*",
                                               "interleave_probs",
                                               "lora_*",
                                               "loraplus_*",
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
                                               "oft_*",
                                               "pissa_*",
                                               "predict_with_generate",
                                               "preprocessing_*",
                                               "ray_*",
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
                                               "video_*",
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

/// Parts of models that see stay as they are unless the file says otherwise. Source: LLaMA-Factory 0.9.4,
/// hparams/finetuning_args.py, model/model_utils/visual.py (get_forbidden_modules, patch_target_modules).
void read_parts(TrainerReading& from) {
  const auto stays = [&](std::string_view path) { return from.word(path).value_or("true") == "true"; };
  const bool towers = stays("freeze_vision_tower");
  from.job().frozen_parts = posttrain::part_names({towers, stays("freeze_multi_modal_projector")}, "", ",");
  from.not_modelled("freeze_language_model");
  if (const auto pixels = from.whole("image_max_pixels")) want_square_image(from, *pixels, "image_max_pixels");
}

void read_lora(TrainerReading& from) {
  from.want("lora", from.word("lora_rank").value_or("8"), "lora_rank");
  from.want("lora_targets", "all-linear");
  want_lora_targets(from, "lora_target");
  want_layers_by_name(from);  // model/model_utils/misc.py: find_all_linear_modules()
  from.take("lora_dropout", "lora_dropout");
  want_saved_modules(from, "additional_target");
  if (from.on("use_dora")) from.want("peft", "dora", "use_dora");
  if (from.on("pissa_init")) from.want("peft", "pissa", "pissa_init");
}

void read_oft(TrainerReading& from) {
  from.want("peft", "oft", "finetuning_type");
  from.want("peft_options", "oft_block_size=" + from.word("oft_block_size").value_or("32"), "oft_block_size");
  from.want("lora_targets", "all-linear");
  want_lora_targets(from, "oft_target");
  want_saved_modules(from, "additional_target");
  if (from.word("oft_rank").value_or("0") != "0") from.not_modelled("oft_rank");
}

/// Some blocks are trained, in float32 where autocast computes; the others keep their own type. Source: LLaMA-Factory
/// 0.9.4, model/adapter.py (_setup_freeze_tuning, init_adapter).
void read_freeze(TrainerReading& from) {
  TrainedBlocks& blocks = from.job().trained_blocks;
  blocks.count = from.whole("freeze_trainable_layers").value_or(2);
  blocks.spread = from.on("use_llama_pro");
  const auto joined = [&](std::string_view path) {
    std::string names = from.word(path).value_or("");
    std::replace(names.begin(), names.end(), '+', ',');
    std::erase(names, ' ');
    return names;
  };
  blocks.modules = joined("freeze_trainable_modules");
  if (blocks.modules == "all") blocks.modules.clear();
  blocks.others = joined("freeze_extra_modules");
  if (from.on("bf16")) from.want("base_dtype", "bf16", "finetuning_type");
  else if (from.on("fp16")) from.want("base_dtype", "fp16", "finetuning_type");
}

/// Whether adapters learn.
bool read_finetuning(TrainerReading& from) {
  const std::string type = from.word("finetuning_type").value_or("lora");
  if (type == "lora") read_lora(from);
  else if (type == "oft") read_oft(from);
  else if (type == "freeze") read_freeze(from);
  else if (type != "full") from.job().unlike = "finetuning_type " + type;
  return type == "lora" || type == "oft";
}

/// Accelerate's float8: torchao's products, unless the file names another library.
void read_float8(TrainerReading& from) {
  const std::string backend = from.word("fp8_backend").value_or("auto");
  from.know("fp8_enable_fsdp_float8_all_gather");
  if (!from.on("fp8")) return;
  if (backend == "auto" || backend == "torchao") from.want("quantize", "float8", "fp8");
  else from.not_modelled("fp8_backend");
}

void read_attention(TrainerReading& from) {
  const auto kind = from.word("flash_attn");
  if (!kind) return;
  if (*kind == "fa2") from.want("attention", "flash", "flash_attn");
  else if (*kind == "sdpa") from.want("attention", "sdpa", "flash_attn");
  else if (*kind == "disabled") from.want("attention", "eager", "flash_attn");
  else from.not_modelled("flash_attn");
}

/// The files of its next version, whose program is another. Source: LLaMA-Factory @ff6d4d1, src/llamafactory/v1
/// (config/, core/model_engine.py, core/base_trainer.py, plugins/trainer_plugins/distributed/fsdp2.py).
bool is_second(const Setting& root) {
  return root.field("model") != nullptr && root.field("model_name_or_path") == nullptr &&
         (root.field("model_class") != nullptr || root.field("dist_config") != nullptr);
}

void read_second_adapters(TrainerReading& from) {
  const std::string kind = from.word("peft_config.name").value_or("");
  if (kind == "lora") {
    from.want("lora", from.word("peft_config.r").value_or("8"), "peft_config");
    from.want("lora_targets", "all-linear");
    want_lora_targets(from, "peft_config.target_modules");
    want_layers_by_name(from);
    from.take("peft_config.lora_dropout", "lora_dropout");
  } else if (!kind.empty()) {
    from.job().not_modelled.push_back("peft_config " + kind);
  }
  const std::string bits = from.word("quant_config.quantization_bit").value_or("");
  if (bits == "4" || bits == "8") from.want("quantize", bits == "4" ? "nf4-double" : "int8", "quant_config");
}

void read_second_program(TrainerReading& from) {
  const std::string attention = from.word("flash_attn").value_or("sdpa");
  from.want("attention", attention.starts_with("flash") ? "flash" : attention, "flash_attn");
  const std::string kernels = from.word("kernel_config.name").value_or("");
  if (kernels.find("liger") != std::string::npos) want_liger(from, "kernel_config");
  const std::string optimizer = from.word("optim_config.name").value_or("adamw");
  from.want("optimizer", optimizer, "optim_config");
  const std::string sharding = from.word("dist_config.name").value_or("");
  if (sharding == "fsdp2") from.want("sharding", "fsdp2", "dist_config");
  else if (sharding == "deepspeed") from.job().deepspeed = from.word("dist_config.config_file").value_or("");
  else if (!sharding.empty()) from.job().not_modelled.push_back("dist_config " + sharding);
  if (from.on("dist_config.offload_params")) from.want("offload", "parameters", "dist_config");
  from.not_modelled("cp_size", "1");
  for (const std::string_view section :
       {"peft_config", "quant_config", "kernel_config", "optim_config", "dist_config"}) {
    from.know(section);
  }
}

void read_second(TrainerReading& from) {
  from.job().model = from.word("model").value_or("");
  from.job().expands_segments = true;  // v1/launcher.py
  from.want("loop", "hf-trainer");
  from.want("batch_size", from.word("micro_batch_size").value_or("1"), "micro_batch_size");
  from.want("seq_length", from.word("cutoff_len").value_or("2048"), "cutoff_len");
  from.job().global_batch = from.whole("global_batch_size").value_or(0);
  from.want("precision", from.word("bf16").value_or("true") == "true" ? "bf16" : "fp32", "bf16");
  if (from.word("enable_activation_checkpointing").value_or("true") == "true") {
    from.want("checkpointing", "full", "enable_activation_checkpointing");
  }
  const bool free_of_padding =
      from.word("batching_strategy").value_or("normal").find("padding_free") != std::string::npos;
  if (free_of_padding) from.want("padding", "false", "batching_strategy");
  read_second_program(from);
  read_second_adapters(from);
  constexpr std::string_view kMore[] = {"cp_mode",
                                        "eval_*",
                                        "init_config",
                                        "learning_rate",
                                        "logging_*",
                                        "lr_*",
                                        "max_grad_norm",
                                        "max_new_tokens",
                                        "max_steps",
                                        "model_class",
                                        "num_*",
                                        "output_dir",
                                        "report_to",
                                        "run_name",
                                        "sample_*",
                                        "save_*",
                                        "seed",
                                        "train_dataset",
                                        "trust_remote_code",
                                        "warmup_*",
                                        "custom_chat_template",
                                        "template",
                                        "dist_timeout"};
  from.without_effect(kMore);
}

/// GaLore or APOLLO. Source: LLaMA-Factory 2026-08, train/trainer_utils.py (_create_galore_optimizer,
/// _create_apollo_optimizer), hparams/finetuning_args.py.
void read_projection(TrainerReading& from, const std::string& method) {
  if (!from.on("use_" + method)) return;
  const std::string base = from.word("optim").value_or("adamw_torch");
  const bool galore = method == "galore";
  std::string name = method + (galore && base == "adafactor" ? "-adafactor" : "-adamw");
  if (galore && base.ends_with("8bit")) name += "-8bit";
  name += ":" + from.word(method + "_rank").value_or("16");
  std::string targets = from.word(method + "_target").value_or("all");
  std::replace(targets.begin(), targets.end(), ',', '+');
  std::erase(targets, ' ');
  if (targets != "all") name += "+" + targets;
  from.not_modelled(method + "_proj_type", "std");
  from.not_modelled("apollo_proj", "random");
  if (from.on(method + "_layerwise")) from.want("optimizer_in_backward", "true", method + "_layerwise");
  from.want("optimizer", std::move(name), "use_" + method);
}

/// BAdam trains one block after the other, in half precision with float32 copies of that block and of its gradients.
/// The first one needs the most: backward goes through all others. Source: LLaMA-Factory 2026-08, model/adapter.py
/// (init_adapter); BAdam 1.3, block_optim.py (switch_trainable_params, _grad_to_hp).
void read_badam(TrainerReading& from) {
  if (from.word("badam_mode").value_or("layer") != "layer") {
    from.job().unlike = "badam_mode ratio";
    return;
  }
  from.job().trained_blocks.count = -1;
  from.want("precision", from.on("fp16") ? "fp16-mixed" : "bf16-mixed", "use_badam");
}

bool sniff(const Setting& root) {
  if (is_second(root)) return true;
  return root.field("finetuning_type") != nullptr || root.field("cutoff_len") != nullptr ||
         (root.field("stage") != nullptr && root.field("model_name_or_path") != nullptr);
}

void read(TrainerReading& from) {
  if (is_second(from.root())) return read_second(from);
  from.job().model = from.word("model_name_or_path").value_or("");
  from.job().expands_segments = true;  // since 0.9.3, launcher.py: OPTIM_TORCH
  from.job().holds_speech = false;  // 0.9.4 to 2026-08, model/loader.py: the thinker is taken out of models that speak
  read_training_arguments(from);
  from.want("seq_length", "2048");
  from.take("cutoff_len", "seq_length");
  const bool adapters = read_finetuning(from);
  read_quantization(from);
  read_float8(from);
  read_parts(from);
  read_attention(from);
  if (from.on("use_muon")) from.want("optimizer", "muon", "use_muon");
  // Full parameters are float32 under autocast unless the file says pure_bf16; a frozen base keeps its own type.
  const bool bf16 = from.on("bf16");
  const bool pure = from.on("pure_bf16");
  want_precision(from, pure || (adapters && bf16), bf16, from.on("fp16"), pure ? "pure_bf16" : bf16 ? "bf16" : "fp16");
  if (!from.on("disable_gradient_checkpointing")) from.want("checkpointing", "full");
  // 0.9.4 (December 2025), model/model_utils/checkpointing.py: prepare_model_for_training.
  const WantedOption* const sharding = from.job().find("sharding");
  const bool second = sharding != nullptr && sharding->value == "fsdp2";
  const bool reentrant = !second && from.word("use_reentrant_gc").value_or("true") == "true";
  settle_checkpoints(from, reentrant ? "full+reentrant" : "full+non-reentrant");
  if (from.on("enable_liger_kernel")) want_liger(from, "enable_liger_kernel");
  read_projection(from, "galore");
  read_projection(from, "apollo");
  if (from.on("use_badam")) read_badam(from);
  if (from.on("use_adam_mini")) from.want("optimizer", "adam-mini", "use_adam_mini");
  const std::string stage = from.choice("stage", "pt sft rm ppo dpo kto", "sft");
  if (stage != "sft" && stage != "pt") from.job().post_training = "stage " + stage;
  for (const std::string_view path :
       {"use_unsloth", "use_unsloth_gc", "shift_attn", "mixture_of_depths", "upcast_layernorm", "upcast_lmhead_output",
        "use_dft_loss", "use_eaft_loss", "use_asft_loss", "use_kt"}) {
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
