#include <algorithm>
#include <iterator>
#include <string>

#include "gpumem/core/bytes.hpp"
#include "image_trainers.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace diffusers_scripts_detail {

constexpr std::string_view kWithoutEffect[] = {"adam_*",
                                               "allow_tf32",
                                               "aspect_ratio_buckets",
                                               "augmentations",
                                               "cache_dir",
                                               "caption_*",
                                               "center_crop",
                                               "checkpointing_steps",
                                               "checkpoints_total_limit",
                                               "class_*",
                                               "clip_skip",
                                               "conditioning_*",
                                               "controlnet_*",
                                               "crops_*",
                                               "data_df_path",
                                               "data_source",
                                               "dataloader_*",
                                               "dataset_*",
                                               "debug_loss",
                                               "dream_*",
                                               "drop_*",
                                               "edit_*",
                                               "enable_slicing",
                                               "enable_tiling",
                                               "enable_xformers_memory_efficient_attention",
                                               "enable_npu_flash_attention",
                                               "final_validation_*",
                                               "fps",
                                               "guidance_scale",
                                               "hub_*",
                                               "id_token",
                                               "image_column",
                                               "image_encoder_path",
                                               "image_interpolation_mode",
                                               "initializer_token",
                                               "input_perturbation",
                                               "instance_*",
                                               "jsonl_for_train",
                                               "learnable_*",
                                               "learning_rate",
                                               "local_rank",
                                               "logging_*",
                                               "logit_*",
                                               "lora_alpha",
                                               "lr_*",
                                               "max_grad_norm",
                                               "max_train_*",
                                               "mode_scale",
                                               "noise_offset",
                                               "num_*",
                                               "offset_noise",
                                               "original_image_column",
                                               "output_*",
                                               "placeholder_token",
                                               "prediction_type",
                                               "prior_loss_weight",
                                               "prodigy_*",
                                               "proportion_empty_prompts",
                                               "push_to_hub",
                                               "random_flip",
                                               "repeats",
                                               "report_to",
                                               "resume_*",
                                               "revision",
                                               "sample_batch_size",
                                               "save_*",
                                               "scale_lr",
                                               "seed",
                                               "set_grads_to_none",
                                               "skip_*",
                                               "snr_gamma",
                                               "text_encoder_lr",
                                               "timestep_bias_*",
                                               "tokenizer_*",
                                               "tracker_*",
                                               "train_data_dir",
                                               "upcast_before_saving",
                                               "use_aspect_ratio_bucketing",
                                               "validation_*",
                                               "variant",
                                               "vae_encode_mode",
                                               "weighting_scheme",
                                               "resolution",
                                               "width",
                                               "height",
                                               "max_num_frames",
                                               "video_*",
                                               "rank",
                                               "prompt_*",
                                               "system_prompt",
                                               "complex_human_instruction",
                                               "vae_encode_batch_size",
                                               "foreach_ema",
                                               "random_rotate",
                                               "with_prior_preservation",
                                               "cond_image_column",
                                               "use_fix_crop_and_size",
                                               "skip_final_inference",
                                               "ignore_learned_positional_embeddings",
                                               "pre_compute_text_embeddings",
                                               "ddpm_*",
                                               "ema_*",
                                               "eval_batch_size",
                                               "logger",
                                               "overwrite_output_dir",
                                               "preserve_input_precision",
                                               "fsdp_text_encoder",
                                               "pretrained_vae_model_name_or_path",
                                               "remote_text_encoder",
                                               "val_image_url_or_path",
                                               "train_text_encoder_ti_frac",
                                               "train_transformer_frac",
                                               "enable_t5_ti",
                                               "cache_latents"};

/// What lies on the GPU besides what is trained.
enum class Beside : std::uint8_t {
  all,         ///< the autoencoder and the text encoders run in each step
  vae,         ///< one prompt's embeddings were made before; with captions the text encoders stay
  precomputed  ///< both were
};

/// A script, or all whose names begin so; the first row that fits counts.
struct ScriptRow {
  std::string_view name;
  bool adapts;
  Beside beside;
  std::string_view side;
  std::string_view batch;
  std::string_view targets;
};
constexpr std::string_view kFluxTargets =
    "attn.to_k+attn.to_q+attn.to_v+attn.to_out.0+attn.add_k_proj+attn.add_q_proj+attn.add_v_proj+attn.to_add_out+"
    "ff.net.0.proj+ff.net.2+ff_context.net.0.proj+ff_context.net.2";
constexpr std::string_view kUsualTargets = "to_k+to_q+to_v+to_out.0";
constexpr std::string_view kControlTargets =  // and of each stream's feed-forward layers
    "x_embedder+attn.to_k+attn.to_q+attn.to_v+attn.to_out.0+attn.add_k_proj+attn.add_q_proj+attn.add_v_proj+"
    "attn.to_add_out+ff.net.0.proj+ff.net.2+ff_context.net.0.proj+ff_context.net.2";
constexpr ScriptRow kScripts[] = {
    {"train_text_to_image.py", false, Beside::all, "512", "16", ""},
    {"train_text_to_image_sdxl.py", false, Beside::precomputed, "1024", "16", ""},
    {"train_text_to_image_lora_sdxl.py", true, Beside::all, "1024", "16", kUsualTargets},
    {"train_text_to_image_lora.py", true, Beside::all, "512", "16", kUsualTargets},
    {"train_instruct_pix2pix.py", false, Beside::all, "256", "16", ""},
    {"train_instruct_pix2pix_sdxl.py", false, Beside::vae, "256", "16", ""},
    {"train_dreambooth_lora_flux2", true, Beside::vae, "512", "4", "to_k+to_q+to_v+to_out.0+to_qkv_mlp_proj"},
    {"train_dreambooth_lora_flux", true, Beside::vae, "512", "4", kFluxTargets},
    {"train_dreambooth_lora_sd3", true, Beside::vae, "512", "4",
     "attn.add_k_proj+attn.add_q_proj+attn.add_v_proj+attn.to_add_out+attn.to_k+attn.to_out.0+attn.to_q+attn.to_v"},
    {"train_dreambooth_lora_sdxl", true, Beside::vae, "1024", "4", kUsualTargets},
    {"train_dreambooth_lora_ideogram4", true, Beside::vae, "512", "4", "to_q+to_k+to_v+to_out.0+w1+w2+w3"},
    {"train_dreambooth_lora_sana", true, Beside::vae, "512", "4", "to_k+to_q+to_v"},
    {"train_dreambooth_lora_krea2", true, Beside::vae, "512", "4",
     "img_in+final_layer.linear+to_q+to_k+to_v+to_out.0+to_gate+ff.gate+ff.up+ff.down+txt_in.linear_1+txt_in.linear_2+"
     "time_embed.linear_1+time_embed.linear_2"},
    {"train_dreambooth_lora.py", true, Beside::all, "512", "4", "to_k+to_q+to_v+to_out.0+add_k_proj+add_v_proj"},
    {"train_dreambooth_lora_", true, Beside::vae, "512", "4", kUsualTargets},
    {"train_dreambooth_flux.py", false, Beside::vae, "512", "4", ""},
    {"train_dreambooth_sd3.py", false, Beside::vae, "512", "4", ""},
    {"train_dreambooth.py", false, Beside::all, "512", "4", ""},
    {"train_cogvideox_lora.py", true, Beside::vae, "", "4", kUsualTargets},
    {"train_cogvideox_image_to_video_lora.py", true, Beside::vae, "", "4", kUsualTargets},
    {"train_unconditional.py", false, Beside::precomputed, "64", "16", ""},
    {"train_instruct_pix2pix_lora.py", true, Beside::all, "256", "16", kUsualTargets},
    {"train_dreambooth_inpaint.py", false, Beside::all, "512", "4", ""},
    {"train_dreambooth_inpaint_lora.py", true, Beside::all, "512", "4", kUsualTargets},
    {"train_multi_subject_dreambooth.py", false, Beside::all, "512", "4", ""},
    {"train_custom_diffusion.py", false, Beside::all, "512", "4", ""},
    {"train_control_lora_flux.py", true, Beside::vae, "1024", "4", kControlTargets},
    {"train_control_flux.py", false, Beside::vae, "1024", "4", ""},
    {"train_control_lora_cogview4.py", true, Beside::vae, "1024", "4", kUsualTargets},
    {"train_control_cogview4.py", false, Beside::vae, "1024", "4", ""},
    {"train_controlnet", false, Beside::all, "512", "4", ""},
};

const ScriptRow* row_of(std::string_view script) {
  const auto* const row = std::find_if(std::begin(kScripts), std::end(kScripts), [&](const ScriptRow& one) {
    return one.name.ends_with(".py") ? script == one.name : script.starts_with(one.name);
  });
  const bool other = script.find("flax") != std::string_view::npos || !script.ends_with(".py");
  return row == std::end(kScripts) || other ? nullptr : &*row;
}

bool sniff(const Setting& root) {
  const Setting* const script = root.field(kScriptKey);
  return script != nullptr && row_of(script->word) != nullptr;
}

/// Fields of the config that the script changes: a ControlNet is a copy of the model's first half (from_unet(),
/// from_transformer()), and a model that is told by an image reads more channels.
std::string changed_fields(TrainerReading& from, std::string_view script) {
  const auto has = [&](std::string_view part) { return script.find(part) != std::string_view::npos; };
  if (has("instruct_pix2pix")) return R"({"in_channels": 8})";
  if (has("train_control_") && has("_flux")) return R"({"in_channels": 128, "out_channels": 64})";
  if (has("train_control_")) return R"({"in_channels": 32, "out_channels": 16})";
  if (!has("train_controlnet")) return {};
  if (has("_flux")) {
    const std::int64_t doubles = from.whole("num_double_layers").value_or(4);
    const std::int64_t singles = from.whole("num_single_layers").value_or(4);
    return R"({"_class_name": "FluxControlNetModel", "num_layers": )" + std::to_string(doubles) +
           R"(, "num_single_layers": )" + std::to_string(singles) + "}";
  }
  if (has("_sd3")) {
    const std::int64_t channels = from.whole("num_extra_conditioning_channels").value_or(0);
    return R"({"_class_name": "SD3ControlNetModel", "num_layers": 12, "extra_conditioning_channels": )" +
           std::to_string(channels) + "}";
  }
  return R"({"_class_name": "ControlNetModel"})";
}

/// A ControlNet is a copy of the model's first half, unless the words name one.
void read_model(TrainerReading& from, const ScriptRow& row) {
  from.job().model = from.word("pretrained_model_name_or_path").value_or("");
  if (row.name == "train_unconditional.py") {
    from.job().model = from.word("model_config_name_or_path").value_or("");
    from.job().usual_model = "google/ddpm-celebahq-256";  // the script's own has its sizes
    return;
  }
  from.job().changed_fields = changed_fields(from, from.word(kScriptKey).value_or(""));
  const std::string own = from.word("controlnet_model_name_or_path").value_or("");
  if (own.empty()) return;
  from.job().model = own;
  from.job().changed_fields.clear();
}

/// Adapters are in the type of what they adapt, and in float32 under fp16 (cast_training_params()).
void read_adapters(TrainerReading& from, const ScriptRow& row, std::string_view mixed) {
  if (!row.adapts) return;
  const std::string_view usual = row.name.starts_with("train_cogvideox")     ? "128"
                                 : row.name == "train_dreambooth_lora_krea2" ? "32"
                                                                             : "4";
  from.want("lora", from.word("rank").value_or(std::string(usual)), "rank");
  from.want("lora_dtype", mixed == "bf16" ? "bf16" : "fp32", "mixed_precision");
  from.want("lora_targets", std::string(row.targets), "lora_layers");
  want_lora_targets(from, "lora_layers");
  from.take("lora_dropout", "lora_dropout");
  if (from.on("use_dora")) from.want("peft", "dora", "use_dora");
}

void read_samples(TrainerReading& from, const ScriptRow& row) {
  const std::string usual = row.side.empty() ? std::string() : std::string(row.side) + "x" + std::string(row.side);
  if (!usual.empty()) from.want("image", usual);
  want_image_size(from, "resolution");
  const auto width = from.whole("width");
  const auto height = from.whole("height");
  if (width && height) from.want("image", std::to_string(*width) + "x" + std::to_string(*height), "width");
  from.take("max_num_frames", "frames");
  std::int64_t batch = from.whole("train_batch_size").value_or(core::parse_whole(row.batch).value_or(1));
  // Images of the class go through the model beside those of the instance.
  constexpr std::int64_t kMost = 1 << 20;
  if (from.on("with_prior_preservation")) batch = std::min(batch, kMost) * 2;
  from.want("batch_size", std::to_string(batch), "train_batch_size");
  const auto prompt = from.whole("max_sequence_length");
  if (prompt && row.name.find("sd3") == std::string_view::npos) from.take("max_sequence_length", "seq_length");
}

void read_parts(TrainerReading& from, const ScriptRow& row) {
  const bool controls = row.name.starts_with("train_control_");  // with captions of a column that has a usual name
  const bool captions = controls || from.word("caption_column").has_value();
  const bool embedded = from.on("pre_compute_text_embeddings");
  Beside beside = row.beside;
  if (beside == Beside::all && embedded) beside = Beside::vae;
  if (beside == Beside::vae && captions && !from.on("offload") && !row.name.starts_with("train_controlnet")) {
    beside = Beside::all;
  }
  // Text encoders that are trained run in each step.
  const bool trains_texts = from.on("train_text_encoder") || from.on("train_text_encoder_ti");
  if (trains_texts) {
    beside = Beside::all;
    // Of FLUX.1's two CLIP alone (examples/dreambooth/train_dreambooth_flux.py); of SD3 all three.
    const bool first = row.name.find("flux") != std::string_view::npos;
    from.job().trained_parts = std::string(first ? "text_encoder." : "text_encoder") + (row.adapts ? ":lora" : "");
  }
  if (beside == Beside::vae && (from.on("cache_latents") || from.on("offload"))) beside = Beside::precomputed;
  if (beside == Beside::all) from.want("parts", "all", "caption_column");
  if (beside == Beside::vae) from.want("parts", "vae", "cache_latents");
}

void read(TrainerReading& from) {
  const ScriptRow* const row = row_of(from.word(kScriptKey).value_or(""));
  if (row == nullptr) return;
  const std::string mixed = from.word("mixed_precision").value_or("no");
  read_model(from, *row);
  want_image_loop(from, mixed, "mixed_precision");
  read_adapters(from, *row, mixed);
  read_samples(from, *row);
  read_parts(from, *row);
  // Keys and values of the prompt alone (models/attention_processor.py: CustomDiffusionAttnProcessor).
  if (row->name == "train_custom_diffusion.py") {
    const bool whole = from.word("freeze_model").value_or("crossattn_kv") == "crossattn";
    from.want("train", whole ? "*attn2*" : "*attn2.to_k,*attn2.to_v", "freeze_model");
    from.not_modelled("modifier_token");
  }
  const bool freezes = row->adapts || from.job().find("parts") != nullptr;
  if (freezes) want_frozen_type(from, mixed, "mixed_precision");
  from.take("gradient_accumulation_steps", "accumulate");
  if (from.on("gradient_checkpointing")) from.want("checkpointing", "full", "gradient_checkpointing");
  want_optimizer(from, from.word("optimizer").value_or("adamw"), "optimizer");
  from.want("weight_decay", "true", "adam_weight_decay");
  for (const std::string_view path : {"use_8bit_adam", "use_8bit_adamw"}) {
    if (from.on(path)) want_optimizer(from, "adamw8bit", path);
  }
  if (from.on("use_adafactor")) want_optimizer(from, "adafactor", "use_adafactor");
  if (from.on("use_ema") && !from.on("offload_ema")) from.want("ema", "true", "use_ema");
  if (from.word("bnb_quantization_config_path")) from.want("quantize", "nf4", "bnb_quantization_config_path");
  if (from.on("do_fp8_training")) from.want("quantize", "float8", "do_fp8_training");
  for (const std::string_view path :
       {"train_text_encoder", "train_text_encoder_ti", "lora_blocks", "freeze_text_encoder"}) {
    from.not_modelled(path);
  }
  from.without_effect(kWithoutEffect, arguments::kDiffusersArguments);
}

}  // namespace diffusers_scripts_detail
}  // namespace

const TrainerFormat& diffusers_scripts() {
  static constexpr TrainerFormat kFormat = {"diffusers", "", &diffusers_scripts_detail::sniff,
                                            &diffusers_scripts_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
