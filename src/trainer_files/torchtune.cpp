#include "torchtune.hpp"

#include <algorithm>

#include "image_trainers.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace torchtune_detail {

constexpr std::string_view kWithoutEffect[] = {"batch_size_val",
                                               "checkpointer",
                                               "clip_grad_norm",
                                               "collate_fn",
                                               "dataset*",
                                               "device",
                                               "epochs",
                                               "log_*",
                                               "lr_scheduler",
                                               "max_steps_per_epoch",
                                               "metric_logger",
                                               "output_dir",
                                               "resume_from_checkpoint",
                                               "save_*",
                                               "seed",
                                               "shuffle",
                                               "tokenizer",
                                               "loss",
                                               "packed",
                                               "cudnn_deterministic_mode",
                                               "profiler",
                                               "run_val_every_n_steps"};

/// Arguments of the builders (torchtune 0.6, models/*/_model_builders.py, _component_builders.py).
constexpr std::string_view kModelWithoutEffect[] = {
    "_component_",     "lora_alpha", "decoder_*",      "encoder_*",
    "fusion_*",        "image_size", "max_num_tiles",  "max_seq_len",
    "num_*",           "vocab_size", "embed_dim",      "intermediate_dim",
    "hidden_dim",      "head_dim",   "attn_*",         "norm_eps",
    "norm_embeddings", "rope_base",  "scale_factor",   "tie_word_embeddings",
    "patch_size",      "clip_*",     "decoder",        "special_tokens_path",
    "prompt_template", "path",       "truncation_type"};

/// The last name of a Python path: "LinearCrossEntropyLoss".
std::string component(TrainerReading& from, std::string_view path) {
  const std::string name = from.word(std::string(path) + "._component_").value_or("");
  return name.substr(name.rfind('.') + 1);
}

void read_adapters(TrainerReading& from) {
  const std::string builder = component(from, "model");
  const auto is = [&](std::string_view method) {
    return builder.starts_with(method) || builder.starts_with("q" + std::string(method));
  };
  const bool quantized = builder.starts_with("q") && (is("lora_") || is("dora_"));
  if (quantized || from.on("model.quantize_base")) from.want("quantize", "nf4-double", "model");
  if (!is("lora_") && !is("dora_")) return;
  from.want("lora", from.word("model.lora_rank").value_or("8"), "model.lora_rank");
  std::string targets = from.word("model.lora_attn_modules").value_or("q_proj+v_proj");
  // torchtune calls the last of the four output_proj.
  if (const std::size_t at = targets.find("output_proj"); at != std::string::npos) targets.replace(at, 11, "o_proj");
  if (from.on("model.apply_lora_to_mlp")) targets += "+gate_proj+up_proj+down_proj";
  if (from.on("model.apply_lora_to_output")) targets += "+lm_head";
  from.want("lora_targets", targets, "model.lora_attn_modules");
  from.want("lora_dtype", from.word("dtype").value_or("bf16"), "dtype");
  from.take("model.lora_dropout", "lora_dropout");
  // DoRALinear.forward() computes what PEFT's does (torchtune 0.5, modules/peft/dora.py).
  if (is("dora_") || from.on("model.use_dora")) from.want("peft", "dora", "model.use_dora");
}

/// The file counts the chunks of a sequence; the option counts the positions of a chunk.
void read_loss(TrainerReading& from) {
  const std::string name = component(from, "loss");
  if (name.empty() || name == "CrossEntropyLoss") return;
  const auto length = from.whole("tokenizer.max_seq_len");
  const std::int64_t chunks = std::max<std::int64_t>(1, from.whole("loss.num_output_chunks").value_or(8));
  if ((name == "CEWithChunkedOutputLoss" || name == "LinearCrossEntropyLoss") && length && *length > 0) {
    const std::int64_t positions = *length / chunks + (*length % chunks != 0 ? 1 : 0);
    from.want("loss", "chunked:" + std::to_string(positions), "loss");
    return;
  }
  from.not_modelled("loss._component_");
}

bool sniff(const Setting& root) {
  return std::any_of(root.items.begin(), root.items.end(),
                     [](const Setting& field) { return field.field("_component_") != nullptr; });
}

/// What a file runs besides training on its samples alone; empty: nothing. Preferences hold a second model or a second
/// pass, distillation a teacher; files of evaluation and generation have no optimizer.
std::string other_job(TrainerReading& from) {
  for (const std::string_view model : {"teacher_model", "ref_checkpointer", "reward_and_value_model",
                                       "ref_policy_model", "policy_model", "base_model_path"}) {
    if (from.at(std::string(model)) != nullptr) return "a torchtune job with " + std::string(model);
  }
  const std::string loss = component(from, "loss");
  for (const std::string_view preference : {"DPOLoss", "RSOLoss", "PPOLoss", "GRPOLoss", "GRPOSimpleLoss"}) {
    if (loss == preference) return "loss " + loss;
  }
  return from.at("optimizer") == nullptr ? "a torchtune file without an optimizer, which trains nothing," : "";
}

void read(TrainerReading& from) {
  from.job().unlike = other_job(from);
  from.job().model = from.word("checkpointer.checkpoint_dir").value_or("");
  from.want("loop", "torchtune");
  from.take("batch_size", "batch_size");
  from.take("gradient_accumulation_steps", "accumulate");
  from.take("tokenizer.max_seq_len", "seq_length");
  if (!from.word("tokenizer.max_seq_len")) assume_length(from, "tokenizer.max_seq_len");
  if (const auto optimizer = from.word("optimizer._component_")) {
    want_optimizer(from, *optimizer, "optimizer._component_");
  }
  if (from.on("optimizer.fused")) from.want("fused", "true", "optimizer.fused");
  const std::string dtype = from.choice("dtype", "bf16 fp32 fp16 fp64", "bf16");
  if (dtype != "bf16") from.not_modelled("dtype", "fp32");
  want_precision(from, dtype == "bf16", false, false, "dtype");
  if (from.on("enable_activation_checkpointing")) {
    from.want("checkpointing", "full", "enable_activation_checkpointing");
  }
  if (from.on("enable_activation_offloading")) from.want("offload", "activations", "enable_activation_offloading");
  if (from.on("optimizer_in_bwd")) from.want("optimizer_in_backward", "true", "optimizer_in_bwd");
  if (from.on("compile")) from.want("compile", "true", "compile");
  read_adapters(from);
  read_loss(from);
  for (const std::string_view path :
       {"fsdp_cpu_offload", "custom_sharded_layers", "tensor_parallel_dim", "fsdp_sharding_strategy", "ac_mode"}) {
    from.not_modelled(path);
  }
  from.without_effect(kWithoutEffect);
  from.without_effect_in("model", kModelWithoutEffect);
  from.without_effect_in("optimizer", optimizer_arguments());
  from.know("optimizer._component_");
  for (const std::string_view section : {"tokenizer", "loss", "checkpointer"}) from.know(section);
}

}  // namespace torchtune_detail
}  // namespace

const TrainerFormat& torchtune() {
  static constexpr TrainerFormat kFormat = {"torchtune", "torchtune's YAML", &torchtune_detail::sniff,
                                            &torchtune_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
