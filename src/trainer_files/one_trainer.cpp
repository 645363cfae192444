#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "gpumem/core/csv.hpp"
#include "image_trainers.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace one_trainer_detail {

constexpr std::string_view kWithoutEffect[] = {"__version",
                                               "align_prop*",
                                               "aspect_ratio_bucketing",
                                               "async_*",
                                               "backup_*",
                                               "bundle_additional_embeddings",
                                               "cache_dir",
                                               "clear_cache_before_training",
                                               "clip_grad_norm",
                                               "cloud",
                                               "concept_file_name",
                                               "concepts",
                                               "continue_last_backup",
                                               "custom_learning_rate_scheduler",
                                               "dataloader_threads",
                                               "debug_*",
                                               "decoder*",
                                               "device_indexes",
                                               "dynamic_timestep_shifting",
                                               "ema_*",
                                               "embedding*",
                                               "enable_*",
                                               "epochs",
                                               "fallback_train_dtype",
                                               "force_*",
                                               "fused_gradient_reduce",
                                               "generalized_offset_noise",
                                               "gradient_reduce_precision",
                                               "huber_*",
                                               "huggingface_cache_dir",
                                               "include_train_config",
                                               "latent_caching",
                                               "layer_filter_*",
                                               "learning_rate*",
                                               "log_cosh_strength",
                                               "lokr_*",
                                               "lora_*",
                                               "loss_*",
                                               "mae_strength",
                                               "masked_*",
                                               "max_noising_strength",
                                               "min_noising_strength",
                                               "min_snr_gamma",
                                               "mse_strength",
                                               "noising_*",
                                               "non_ema_sampling",
                                               "normalize_masked_area_loss",
                                               "offline_mode",
                                               "offset_noise_weight",
                                               "oft_*",
                                               "only_cache",
                                               "optimizer*",
                                               "output_*",
                                               "perturbation_noise_weight",
                                               "preserve_embedding_norm",
                                               "prevent_overwrites",
                                               "quantization",
                                               "rescale_noise_scheduler_to_zero_terminal_snr",
                                               "rolling_*",
                                               "sample_*",
                                               "samples*",
                                               "save_*",
                                               "scheduler_params",
                                               "secrets",
                                               "temp_device",
                                               "tensorboard*",
                                               "text_encoder*",
                                               "timestep_*",
                                               "train_device",
                                               "unmasked_*",
                                               "validat*",
                                               "vb_loss_strength",
                                               "weight_dtype",
                                               "workspace_dir",
                                               "attention_mechanism"};

/// TrainModelPartConfig; older files know fewer of them.
constexpr std::string_view kPartWithoutEffect[] = {"__version",
                                                   "model_name",
                                                   "include",
                                                   "train",
                                                   "stop_training_after",
                                                   "stop_training_after_unit",
                                                   "learning_rate",
                                                   "weight_dtype",
                                                   "dropout_probability",
                                                   "train_embedding",
                                                   "attention_mask",
                                                   "guidance_scale",
                                                   "gradient_checkpointing",
                                                   "activation_offloading",
                                                   "offload_fraction"};
/// modules/util/enum/DataType.py.
constexpr std::string_view kTypes =
    "NONE FLOAT_8 FLOAT_16 FLOAT_32 BFLOAT_16 TFLOAT_32 INT_8 NFLOAT_4 FLOAT_W8A8 INT_W8A8 FLOAT_W8A8_COMPRESSED "
    "INT_W8A8_COMPRESSED GGUF GGUF_A8_FLOAT GGUF_A8_INT";

/// modules/util/enum/ModelType.py; a name that begins as another stands before it.
constexpr UsualModel kUsual[] = {
    {"STABLE_DIFFUSION_15_INPAINTING", "stable-diffusion-v1-5/stable-diffusion-inpainting"},
    {"STABLE_DIFFUSION_15", "stable-diffusion-v1-5/stable-diffusion-v1-5"},
    {"STABLE_DIFFUSION_20_INPAINTING", "stabilityai/stable-diffusion-2-inpainting"},
    {"STABLE_DIFFUSION_20_DEPTH", ""},
    {"STABLE_DIFFUSION_20_BASE", "stabilityai/stable-diffusion-2-base"},
    {"STABLE_DIFFUSION_20", "stabilityai/stable-diffusion-2"},
    {"STABLE_DIFFUSION_21_BASE", "stabilityai/stable-diffusion-2-1-base"},
    {"STABLE_DIFFUSION_21", "stabilityai/stable-diffusion-2-1"},
    {"STABLE_DIFFUSION_XL_10_BASE_INPAINTING", "diffusers/stable-diffusion-xl-1.0-inpainting-0.1"},
    {"STABLE_DIFFUSION_XL_10_BASE", "stabilityai/stable-diffusion-xl-base-1.0"},
    {"PIXART_ALPHA", "PixArt-alpha/PixArt-XL-2-1024-MS"},
    {"PIXART_SIGMA", "PixArt-alpha/PixArt-Sigma-XL-2-1024-MS"},
    {"FLUX_DEV_1", "black-forest-labs/FLUX.1-dev"},
    {"FLUX_FILL_DEV_1", "black-forest-labs/FLUX.1-Fill-dev"},
    {"HUNYUAN_VIDEO", "hunyuanvideo-community/HunyuanVideo"},
    {"HI_DREAM_FULL", "HiDream-ai/HiDream-I1-Full"},
    {"CHROMA_1", "lodestones/Chroma1-HD"},
    {"QWEN", "Qwen/Qwen-Image"},
    {"ANIMA", "circlestone-labs/Anima"},
    {"KREA_2", "krea/Krea-2"},
    {"Z_IMAGE", "Tongyi-MAI/Z-Image"},
    {"ERNIE", "baidu/ERNIE-Image"},
    {"IDEOGRAM_4", "ideogram-ai/ideogram-v4"},
    {"WUERSTCHEN_2", "warp-ai/wuerstchen-prior"},
    {"STABLE_CASCADE_1", "stabilityai/stable-cascade-prior"},
};

bool sniff(const Setting& root) {
  return root.field("model_type") != nullptr && root.field("base_model_name") != nullptr &&
         (root.field("training_method") != nullptr || root.field("train_dtype") != nullptr);
}

/// Where the denoiser's own settings are: each file has a key for all kinds, and the model has one of them.
std::string part_of(TrainerReading& from) {
  const std::string type = from.word("model_type").value_or("STABLE_DIFFUSION_15");
  const bool unet = type.starts_with("STABLE_DIFFUSION") && !type.starts_with("STABLE_DIFFUSION_3");
  if (unet) return "unet";
  return type.starts_with("WUERSTCHEN") || type.starts_with("STABLE_CASCADE") ? "prior" : "transformer";
}

/// "FLOAT_32", "BFLOAT_16": what autocast and weights are called here.
std::string type_of(std::string_view word) {
  if (word == "FLOAT_16") return "fp16";
  return word == "BFLOAT_16" ? "bf16" : "fp32";
}

/// Older files have one type of all parts, and parts that say NONE or nothing of their own.
std::string weight_type(TrainerReading& from, const std::string& part) {
  std::string own = from.choice(part + ".weight_dtype", kTypes, "NONE");
  const std::string older = from.word(part + "_weight_dtype").value_or("NONE");
  if (own != "NONE") return own;
  return older != "NONE" ? older : from.word("weight_dtype").value_or("FLOAT_32");
}

/// Its layers of eight bits make their weights whole, or multiply in eight bits (modules/module/quantized/).
void read_weights(TrainerReading& from, const std::string& part, bool adapts) {
  const std::string type = weight_type(from, part);
  const std::string path = part + ".weight_dtype";
  const std::string train = type_of(from.choice("train_dtype", kTypes, "FLOAT_16"));
  const bool plain = type == "FLOAT_32" || type == "TFLOAT_32" || type == "FLOAT_16" || type == "BFLOAT_16";
  from.want("precision",
            !adapts && type_of(type) == "bf16" ? "bf16"
            : train == "fp32"                  ? train
                                               : "amp-" + train,
            "train_dtype");
  if (adapts) from.want("base_dtype", plain ? type_of(type) : train, path);
  if (plain) return;
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"FLOAT_8", "fp8"}, {"NFLOAT_4", "nf4"}, {"FLOAT_W8A8", "fp8-torchao"}, {"INT_W8A8", "int8-sdnq"}};
  const auto* const row =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& one) { return type.starts_with(one.first); });
  if (type == "INT_8") return from.want("quantize", "int8", path);  // bitsandbytes' LLM.int8()
  want_image_quantization(from, row == std::end(kNames) ? core::lower_case(type) : std::string(row->second), path);
  if (!type.starts_with("FLOAT_W8A8") && !type.starts_with("INT_W8A8")) return;
  from.job().not_modelled.push_back("OneTrainer's own " + type +
                                    ", which is taken for that of another library and otherwise");
}

/// The layers whose names have one of the filter's words (modules/util/ModuleFilter.py), as patterns. Empty: all.
std::string filtered(TrainerReading& from, char join) {
  std::string patterns;
  if (from.on("layer_filter_regex")) {
    from.not_modelled("layer_filter");
    return patterns;
  }
  each_name(from.word("layer_filter").value_or(""), [&](std::string_view name) {
    if (!patterns.empty()) patterns += join;
    patterns += "*" + std::string(name) + "*";
  });
  return patterns;
}

/// In all linear layers whose names have one of the filter's words (modules/module/LoRAModule.py).
void read_adapters(TrainerReading& from, const std::string& part) {
  const std::string kind = from.choice("peft_type", "LORA LOHA LOKR OFT_2", "LORA");
  from.want("lora", from.word("lora_rank").value_or("16"), "lora_rank");
  from.want("lora_dtype", type_of(from.choice("lora_weight_dtype", kTypes, "FLOAT_32")), "lora_weight_dtype");
  const std::string targets = filtered(from, '+');
  from.want("lora_targets", targets.empty() ? "all-linear" : targets, "layer_filter");
  from.take("dropout_probability", "lora_dropout");
  if (kind == "LOHA") from.want("peft", "loha", "peft_type");
  if (kind == "LORA" && from.on("lora_decompose")) from.want("peft", "dora", "lora_decompose");
  if (kind == "OFT_2") {
    from.want("peft", "oft", "peft_type");
    from.want("peft_options", "oft_block_size=" + from.word("oft_block_size").value_or("32"), "oft_block_size");
  }
  if (kind == "LOKR") {
    from.want("peft", "lokr", "peft_type");
    from.want("lora", from.on("lokr_full_matrix") ? "10000" : from.word("lokr_dim").value_or("16"), "lokr_dim");
    from.want("peft_options", "decompose_factor=" + from.word("lokr_decompose_factor").value_or("-1"),
              "lokr_decompose_factor");
  }
  if (part == "unet") from.job().not_modelled.emplace_back("layer_filter, adapters of convolutions,");
}

/// Each part says it itself. Older files have one word for all.
void read_checkpointing(TrainerReading& from, const std::string& part) {
  const std::string older = from.word("gradient_checkpointing").value_or("ON");
  const bool on =
      older != "OFF" && older != "false" && from.word(part + ".gradient_checkpointing").value_or("true") == "true";
  if (on) from.want("checkpointing", "full", part + ".gradient_checkpointing");
  const bool older_moves =
      older == "CPU_OFFLOADED" && from.word("enable_activation_offloading").value_or("true") == "true";
  if (on && (from.on(part + ".activation_offloading") || older_moves)) {
    from.want("offload", "checkpoints", part + ".activation_offloading");
  }
  from.not_modelled(part + ".offload_fraction");
  from.not_modelled("layer_offload_fraction");
}

void read_optimizer(TrainerReading& from) {
  const std::string name = from.word("optimizer.optimizer").value_or(from.word("optimizer").value_or("ADAMW"));
  // PyTorch's runs fused unless the file says otherwise (modules/util/optimizer_util.py).
  const bool fused = name == "ADAMW" && from.word("optimizer.fused").value_or("true") == "true";
  want_optimizer(from, fused ? "adamw_torch_fused" : core::lower_case(name), "optimizer.optimizer");
  if (from.on("optimizer.fused_back_pass") || from.on("optimizer_defaults." + name + ".fused_back_pass")) {
    from.want("optimizer_in_backward", "true", "optimizer.fused_back_pass");
  }
}

/// "512", "512,768" (all of them come up), "832x1216".
void read_samples(TrainerReading& from) {
  Setting sides{Setting::Kind::list, "resolution", {}, {}, 0};
  each_name(from.word("resolution").value_or("512"), [&](std::string_view side) {
    sides.items.push_back({Setting::Kind::text, {}, std::string(side), {}, 0});
  });
  Setting all{Setting::Kind::object, {}, {}, {std::move(sides)}, 0};
  TrainerReading of_sides(all, from.job());
  want_image_size(of_sides, "resolution");
  miss_image_size(from);
  const std::string type = from.word("model_type").value_or("");
  const std::string frames = from.word("frames").value_or("25");
  if (type == "HUNYUAN_VIDEO" && frames != "1") from.want("frames", frames, "frames");
  if (type.starts_with("FLUX_DEV_1") || type == "FLUX_FILL_DEV_1") {
    from.want("seq_length", from.word("text_encoder_2_sequence_length").value_or("77"),
              "text_encoder_2_sequence_length");
  }
}

/// Text encoders that are not trained and the autoencoder leave the GPU when the cache is made (setup_train_device()).
void read_parts(TrainerReading& from) {
  if (from.word("latent_caching").value_or("true") != "true") from.want("parts", "all", "latent_caching");
  for (const std::string_view number : {"", "_2", "_3", "_4"}) {
    const std::string path = "text_encoder" + std::string(number) + ".train";
    if (from.on(path)) from.not_modelled(path);
  }
}

void read(TrainerReading& from) {
  const std::string method = from.choice("training_method", "FINE_TUNE LORA EMBEDDING FINE_TUNE_VAE", "FINE_TUNE");
  if (method == "EMBEDDING" || method == "FINE_TUNE_VAE") from.job().unlike = "training_method " + method;
  const bool adapts = method == "LORA";
  const std::string part = part_of(from);
  from.job().model = from.word(part + ".model_name").value_or("");
  from.job().usual_model = usual_model(kUsual, from.word("model_type").value_or("STABLE_DIFFUSION_15"));
  const std::string base = from.word("base_model_name").value_or("");
  if (from.job().model.empty()) from.job().model = base;
  for (const std::string_view other :
       {"unet", "prior", "transformer", "unconditional_transformer", "text_encoder", "text_encoder_2", "text_encoder_3",
        "text_encoder_4", "vae", "effnet_encoder", "decoder", "decoder_text_encoder", "decoder_vqgan"}) {
    from.without_effect_in(other, kPartWithoutEffect);
  }
  from.without_effect_in("optimizer", optimizer_arguments());
  from.know("optimizer_defaults");
  from.want("zero_grad", "step-end");
  from.want("batch_size", from.word("batch_size").value_or("1"), "batch_size");
  from.take("gradient_accumulation_steps", "accumulate");
  read_weights(from, part, adapts);
  if (adapts) read_adapters(from, part);
  if (const std::string trained = adapts ? "" : filtered(from, ','); !trained.empty()) {
    from.want("train", trained, "layer_filter");
  }
  read_checkpointing(from, part);
  read_optimizer(from);
  read_samples(from);
  read_parts(from);
  const std::string average = from.choice("ema", "OFF GPU CPU", "OFF");
  if (average == "GPU") from.want("ema", "true", "ema");
  else if (average != "OFF") from.job().not_modelled.emplace_back("ema on the host, whose copies cross to the GPU,");
  if (from.on("compile")) from.want("compile", "true", "compile");
  from.not_modelled("multi_gpu");
  from.not_modelled("additional_embeddings");
  from.not_modelled("custom_conditioning_image");
  from.without_effect(kWithoutEffect, arguments::kOneTrainerArguments);
}

}  // namespace one_trainer_detail
}  // namespace

const TrainerFormat& one_trainer() {
  static constexpr TrainerFormat kFormat = {"onetrainer", "OneTrainer's JSON", &one_trainer_detail::sniff,
                                            &one_trainer_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
