#include <string>

#include "image_trainers.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace finetrainers_detail {

constexpr std::string_view kWithoutEffect[] = {"allow_tf32",
                                               "beta*",
                                               "cache_dir",
                                               "caption_*",
                                               "checkpointing_*",
                                               "compile_scopes",
                                               "dataloader_*",
                                               "dataset_*",
                                               "epsilon",
                                               "flow_*",
                                               "float32_matmul_precision",
                                               "hub_*",
                                               "id_token",
                                               "init_timeout",
                                               "list_models",
                                               "logging_*",
                                               "lora_alpha",
                                               "lr*",
                                               "max_data_samples",
                                               "max_grad_norm",
                                               "model_name",
                                               "nccl_timeout",
                                               "output_dir",
                                               "parallel_backend",
                                               "pin_memory",
                                               "precomputation_*",
                                               "push_to_hub",
                                               "report_to",
                                               "resume_from_checkpoint",
                                               "revision",
                                               "seed",
                                               "text_encoder*",
                                               "tokenizer*",
                                               "tracker_name",
                                               "train_steps",
                                               "vae_*",
                                               "validation_*",
                                               "variant",
                                               "verbose",
                                               "weight_decay",
                                               "enable_model_cpu_offload",
                                               "transformer_id",
                                               "frame_conditioning_*",
                                               "train_qk_norm"};

bool sniff(const Setting& root) {
  return root.field("training_type") != nullptr && root.field("pretrained_model_name_or_path") != nullptr;
}

/// The layout's words are of the trainer, and not of its launcher.
void read_layout(TrainerReading& from) {
  const std::int64_t shards = from.whole("dp_shards").value_or(1);
  const std::int64_t copies = from.whole("dp_degree").value_or(1);
  if (shards > 1) from.want("sharding", copies > 1 ? "hsdp:" + std::to_string(shards) : "fsdp2", "dp_shards");
  else if (copies > 1) from.want("sharding", "ddp", "dp_degree");
  if (from.whole("tp_degree").value_or(1) > 1) from.take("tp_degree", "tensor_parallel");
  from.not_modelled("cp_degree", "1");
  from.not_modelled("pp_degree", "1");
}

void read(TrainerReading& from) {
  from.job().model = from.word("pretrained_model_name_or_path").value_or("");
  from.job().dataset = from.word("dataset_config").value_or("");
  // accelerate and its own backend run in autocast of the transformer's type (trainer/sft_trainer/trainer.py).
  const std::string dtype = from.word("transformer_dtype").value_or("bf16");
  want_image_loop(from, dtype, "transformer_dtype");
  from.want("batch_size", from.word("batch_size").value_or("1"), "batch_size");
  from.take("gradient_accumulation_steps", "accumulate");
  if (from.on("gradient_checkpointing")) from.want("checkpointing", "full", "gradient_checkpointing");
  want_optimizer(from, from.word("optimizer").value_or("adamw"), "optimizer");
  const std::string type =
      from.choice("training_type", "lora full-finetune control-lora control-full-finetune", "lora");
  if (type == "lora") {
    from.want("lora", from.word("rank").value_or("64"), "rank");
    from.want("lora_dtype", "fp32");
    want_frozen_type(from, dtype, "transformer_dtype");
    from.want("lora_targets", "to_q+to_k+to_v+to_out.0", "target_modules");
    want_lora_targets(from, "target_modules");
  } else if (type != "full-finetune") {
    from.not_modelled("training_type");
  }
  // Latents and embeddings are made before, or in each step by parts that lie on the GPU.
  std::string parts = "all";
  if (from.on("enable_slicing")) parts += ":sliced";
  if (from.on("enable_tiling")) parts += ":tiled";
  if (!from.on("enable_precomputation")) from.want("parts", parts, "enable_precomputation");
  if (from.word("layerwise_upcasting_modules")) want_image_quantization(from, "float8", "layerwise_upcasting_modules");
  if (from.word("compile_modules")) from.want("compile", "true", "compile_modules");
  from.know("layerwise_upcasting_storage_dtype");
  from.know("layerwise_upcasting_skip_modules_pattern");
  from.know("attn_provider_training");
  read_layout(from);
  from.without_effect(kWithoutEffect, arguments::kFinetrainersArguments);
}

}  // namespace finetrainers_detail
}  // namespace

const TrainerFormat& finetrainers() {
  static constexpr TrainerFormat kFormat = {"finetrainers", "", &finetrainers_detail::sniff,
                                            &finetrainers_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
