#include <algorithm>
#include <iterator>
#include <string>

#include "image_trainers.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace sd_scripts_detail {

constexpr std::string_view kWithoutEffect[] = {"ae",
                                               "attn_mode",
                                               "betas",
                                               "compile_*",
                                               "conv_*",
                                               "cuda_*",
                                               "model_type",
                                               "relative_step",
                                               "scheduler_scale",
                                               "train_text_encoder",
                                               "use_pinned_memory_for_block_swap",
                                               "warmup_init",
                                               "weight_decay",
                                               "adaptive_noise_scale",
                                               "apply_t5_attn_mask",
                                               "bucket_*",
                                               "byt5",
                                               "cache_*",
                                               "caption_*",
                                               "clip_*",
                                               "color_aug",
                                               "console_log_*",
                                               "dataset_*",
                                               "dataset_repeats",
                                               "ddp_*",
                                               "debiased_estimation_loss",
                                               "discrete_flow_shift",
                                               "dit",
                                               "dit_dtype",
                                               "enable_bucket",
                                               "enable_wildcard",
                                               "face_crop_*",
                                               "flip_aug",
                                               "fp8_scaled",
                                               "fp8_base",
                                               "full_*",
                                               "guidance_scale",
                                               "highvram",
                                               "huber_*",
                                               "huggingface_*",
                                               "image_encoder",
                                               "in_json",
                                               "initial_*",
                                               "ip_noise_*",
                                               "keep_tokens*",
                                               "learning_rate*",
                                               "llm_adapter*",
                                               "log_*",
                                               "logging_*",
                                               "loss_type",
                                               "lowram",
                                               "lr_*",
                                               "max_bucket_reso",
                                               "max_data_loader_*",
                                               "max_grad_norm",
                                               "max_timestep",
                                               "max_token_length",
                                               "max_train_*",
                                               "mem_eff_attn",
                                               "metadata_*",
                                               "min_*",
                                               "model_prediction_type",
                                               "model_version",
                                               "multires_*",
                                               "network_alpha",
                                               "network_args",
                                               "network_module",
                                               "network_train_*",
                                               "network_weights",
                                               "no_half_vae",
                                               "no_metadata",
                                               "noise_*",
                                               "num_cpu_*",
                                               "num_last_layers_to_freeze",
                                               "optimizer_args",
                                               "output_*",
                                               "persistent_*",
                                               "prior_loss_weight",
                                               "prompt_dict_path",
                                               "qwen3",
                                               "random_crop",
                                               "reg_data_dir",
                                               "resume*",
                                               "sample_*",
                                               "save_*",
                                               "scale_*",
                                               "sdpa",
                                               "secondary_*",
                                               "seed",
                                               "shuffle_caption",
                                               "sigmoid_scale",
                                               "skip_*",
                                               "split_attn",
                                               "t5*",
                                               "task",
                                               "text_encoder*",
                                               "timestep_*",
                                               "token_*",
                                               "tokenizer_*",
                                               "train_data_dir",
                                               "training_comment",
                                               "training_shift",
                                               "unet_lr",
                                               "use_8bit_adam",
                                               "use_lion_optimizer",
                                               "v2",
                                               "v_parameterization",
                                               "v_pred_*",
                                               "vae*",
                                               "vlm_path",
                                               "wandb_*",
                                               "weighted_captions",
                                               "weighting_scheme",
                                               "xformers",
                                               "zero_terminal_snr",
                                               "flash_attn",
                                               "sage_attn",
                                               "split_qkv",
                                               "loraplus_*",
                                               "gemma2",
                                               "use_flash_attn",
                                               "img_in_txt_in_offloading",
                                               "preserve_distribution_shape",
                                               "num_timestep_buckets",
                                               "clip",
                                               "apply_lg_attn_mask",
                                               "cond_emb_dim",
                                               "config_file",
                                               "control_net_lr",
                                               "cross_attn_lr",
                                               "debug_dataset",
                                               "disable_mmap_load_safetensors",
                                               "disable_numpy_memmap",
                                               "dynamo_backend",
                                               "dynamo_dynamic",
                                               "dynamo_fullgraph",
                                               "dynamo_mode",
                                               "enable_scaled_pos_embed",
                                               "f1",
                                               "fp8_llm",
                                               "fp8_t5",
                                               "fp8_te",
                                               "fp8_text_encoder",
                                               "fp8_vl",
                                               "fp8_vlm",
                                               "gemma2_max_token_length",
                                               "ideogram4_timestep_mu",
                                               "ideogram4_timestep_std",
                                               "logit_mean",
                                               "logit_std",
                                               "max_validation_steps",
                                               "mem_eff_load_save",
                                               "mem_eff_save",
                                               "mlp_lr",
                                               "mod_lr",
                                               "one_frame",
                                               "pos_emb_random_crop_rate",
                                               "qwen3_max_token_length",
                                               "self_attn_lr",
                                               "stop_text_encoder_training",
                                               "text_cache_dtype",
                                               "use_t5xxl_cache_only",
                                               "validate_every_n_epochs",
                                               "validate_every_n_steps",
                                               "validation_seed",
                                               "validation_split",
                                               "warn_on_caption_issues",
                                               "zero_stage",
                                               "zero3_init_flag",
                                               "zero3_save_16bit_model",
                                               "offload_optimizer_device",
                                               "offload_optimizer_nvme_path",
                                               "offload_param_device",
                                               "offload_param_nvme_path"};

/// Scripts of both repositories that train a whole model or a network of adapters. ControlNets and embeddings are
/// others.
constexpr std::string_view kScripts[] = {"train_network.py",
                                         "sdxl_train_network.py",
                                         "flux_train_network.py",
                                         "sd3_train_network.py",
                                         "lumina_train_network.py",
                                         "anima_train_network.py",
                                         "hunyuan_image_train_network.py",
                                         "fine_tune.py",
                                         "train_db.py",
                                         "sdxl_train.py",
                                         "flux_train.py",
                                         "sd3_train.py",
                                         "lumina_train.py",
                                         "anima_train.py",
                                         "hv_train_network.py",
                                         "wan_train_network.py",
                                         "fpack_train_network.py",
                                         "flux_kontext_train_network.py",
                                         "flux_2_train_network.py",
                                         "qwen_image_train_network.py",
                                         "qwen_image_train.py",
                                         "zimage_train_network.py",
                                         "zimage_train.py",
                                         "kandinsky5_train_network.py",
                                         "hv_1_5_train_network.py",
                                         "krea2_train_network.py",
                                         "ideogram4_train_network.py",
                                         "hidream_o1_train_network.py",
                                         "hidream_o1_train.py",
                                         "hv_train.py"};

/// What each script trains, where its weights' file does not tell. Tasks are musubi-tuner's.
constexpr UsualModel kUsual[] = {
    {"sdxl_", "stabilityai/stable-diffusion-xl-base-1.0"},
    {"flux_kontext_", "black-forest-labs/FLUX.1-Kontext-dev"},
    {"flux_2_train_network.py klein-4b", "black-forest-labs/FLUX.2-klein-4B"},
    {"flux_2_train_network.py klein-base-4b", "black-forest-labs/FLUX.2-klein-4B"},
    {"flux_2_train_network.py klein-9b", "black-forest-labs/FLUX.2-klein-9B"},
    {"flux_2_train_network.py klein-base-9b", "black-forest-labs/FLUX.2-klein-9B"},
    {"flux_2_", "black-forest-labs/FLUX.2-dev"},
    {"flux_train_network.py chroma", "lodestones/Chroma1-HD"},
    {"flux_", "black-forest-labs/FLUX.1-dev"},
    {"lumina_", "Alpha-VLLM/Lumina-Image-2.0"},
    {"anima_", "circlestone-labs/Anima"},
    {"hunyuan_image_", "tencent/HunyuanImage-2.1"},
    {"hv_1_5_", "hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-480p_t2v"},
    {"hv_", "hunyuanvideo-community/HunyuanVideo"},
    {"wan_train_network.py t2v-1.3B", "Wan-AI/Wan2.1-T2V-1.3B"},
    {"wan_train_network.py t2v", "Wan-AI/Wan2.1-T2V-14B"},
    {"wan_train_network.py t2i", "Wan-AI/Wan2.1-T2V-14B"},
    {"wan_train_network.py i2v-A14B", "Wan-AI/Wan2.2-I2V-A14B"},
    {"wan_train_network.py i2v-14B-FC", "alibaba-pai/Wan2.1-Fun-14B-Control"},
    {"wan_train_network.py i2v", "Wan-AI/Wan2.1-I2V-14B-480P"},
    {"wan_train_network.py flf2v", "Wan-AI/Wan2.1-I2V-14B-720P"},
    {"fpack_", "lllyasviel/FramePackI2V_HY"},
    {"qwen_image_", "Qwen/Qwen-Image"},
    {"zimage_", "Tongyi-MAI/Z-Image"},
    {"kandinsky5_train_network.py k5-lite-t2v", "kandinskylab/Kandinsky-5.0-T2V-Lite-sft-5s-Diffusers"},
    {"kandinsky5_train_network.py k5-lite-i2v", "kandinskylab/Kandinsky-5.0-T2V-Lite-sft-5s-Diffusers"},
    {"kandinsky5_train_network.py k5-lite-t2i", "kandinskylab/Kandinsky-5.0-T2I-Lite-sft-Diffusers"},
    {"krea2_", "krea/Krea-2"},
    {"ideogram4_", "ideogram-ai/ideogram-v4"},
};

/// Of Stable Diffusion 3 the file's name tells the size; of 1.x and 2.x the words do (--v2, --v_parameterization).
std::string usual_of(TrainerReading& from, const std::string& script) {
  std::string word = from.word("task").value_or(from.word("model_version").value_or(""));
  if (script == "wan_train_network.py" && word.empty()) word = "t2v-14B";
  if (script.starts_with("flux_train")) word = from.word("model_type").value_or("flux");
  if (script.starts_with("sd3_")) {
    const std::string name = core::lower_case(from.job().model);
    if (name.find("large") != std::string::npos) return "stabilityai/stable-diffusion-3.5-large";
    if (name.find("3.5") != std::string::npos) return "stabilityai/stable-diffusion-3.5-medium";
    return name.find("medium") == std::string::npos ? "" : "stabilityai/stable-diffusion-3-medium-diffusers";
  }
  if (script == "train_network.py" || script == "train_db.py" || script == "fine_tune.py") {
    if (!from.on("v2")) return "stable-diffusion-v1-5/stable-diffusion-v1-5";
    return from.on("v_parameterization") ? "stabilityai/stable-diffusion-2-1" : "stabilityai/stable-diffusion-2-1-base";
  }
  return usual_model(kUsual, script + " " + word);
}

bool sniff(const Setting& root) {
  const Setting* const script = root.field(kScriptKey);
  if (script != nullptr) return is_among(kScripts, script->word);
  const auto has = [&](std::string_view key) {
    if (root.field(key) != nullptr) return true;
    return std::any_of(root.items.begin(), root.items.end(),
                       [&](const Setting& item) { return item.field(key) != nullptr; });
  };
  return has("network_module") && (has("network_dim") || has("optimizer_type"));
}

/// A file's tables are only there for people (train_util.py: read_config_from_file).
Setting flat(const Setting& root) {
  Setting all{Setting::Kind::object, {}, {}, {}, 0};
  for (const Setting& item : root.items) {
    if (item.kind == Setting::Kind::object) all.items.insert(all.items.end(), item.items.begin(), item.items.end());
    else all.items.push_back(item);
  }
  return all;
}

/// Both repositories' networks/, and LyCORIS' own.
constexpr std::string_view kNetworkModules =
    "networks.lora networks.lora_flux networks.lora_sd3 networks.lora_lumina networks.lora_anima "
    "networks.lora_hunyuan_image networks.lora_fa networks.dylora networks.oft networks.oft_flux networks.lora_wan "
    "networks.lora_framepack networks.lora_qwen_image networks.lora_zimage networks.lora_flux_2 "
    "networks.lora_kandinsky "
    "networks.lora_hv_1_5 networks.lora_krea2 networks.lora_ideogram4 networks.lora_hidream_o1 networks.loha "
    "networks.lokr lycoris.kohya";
/// networks/*.py: kwargs, and LyCORIS' (lycoris/kohya.py).
constexpr std::string_view kNetworkArguments[] = {"attn_dim",
                                                  "block_*",
                                                  "context_*",
                                                  "conv_*",
                                                  "down_lr_weight",
                                                  "emb_dims",
                                                  "embedder_dims",
                                                  "enable_*",
                                                  "exclude_patterns",
                                                  "ggpo_*",
                                                  "img_*",
                                                  "in_dims",
                                                  "include_patterns",
                                                  "loraplus_*",
                                                  "mid_lr_weight",
                                                  "mlp_dim",
                                                  "mod_dim",
                                                  "module_dropout",
                                                  "network_reg_*",
                                                  "rank_dropout",
                                                  "refiner_dim",
                                                  "single_*",
                                                  "split_qkv",
                                                  "train_*",
                                                  "txt_*",
                                                  "unit",
                                                  "up_lr_weight",
                                                  "verbose",
                                                  "x_*",
                                                  "algo",
                                                  "preset",
                                                  "factor",
                                                  "dropout",
                                                  "decompose_both",
                                                  "full_matrix",
                                                  "dora_scheme",
                                                  "wd_on_output",
                                                  "use_tucker",
                                                  "use_cp",
                                                  "use_scalar",
                                                  "constrained",
                                                  "constraint",
                                                  "rescaled",
                                                  "bypass_mode",
                                                  "rs_lora",
                                                  "train_norm",
                                                  "weight_decompose",
                                                  "rank_dropout_scale",
                                                  "unbalanced_factorization",
                                                  "block_size"};

/// Each argument of "key=value" that nobody knows.
void note_arguments(TrainerReading& from, std::string_view path, std::span<const std::string_view> known) {
  const Setting* const arguments = from.at(path);
  if (arguments == nullptr) return;
  const auto note = [&](std::string_view word) {
    const std::string_view key = word.substr(0, word.find('='));
    if (!key.empty() && !is_listed(known, key))
      from.job().unknown.push_back(std::string(path) + " " + std::string(key));
  };
  if (arguments->kind != Setting::Kind::list) return note(arguments->word);
  for (const Setting& argument : arguments->items) note(argument.word);
}

/// networks/lora*.py: linear layers of Transformer2DModel in a UNet, of the blocks in others, in float32.
void read_network(TrainerReading& from, std::string_view script) {
  const std::string module = from.word("network_module").value_or("");
  const bool adapts = script.find("_network") != std::string_view::npos || !module.empty();
  if (!adapts) return;
  if (!module.empty()) from.check("network_module", module, kNetworkModules);
  note_arguments(from, "network_args", kNetworkArguments);
  if (module == "networks.oft" || module == "networks.oft_flux" || module == "networks.dylora") {
    from.not_modelled("network_module");
  }
  if (module == "networks.loha" || module == "networks.lokr") {
    from.want("peft", module == "networks.loha" ? "loha" : "lokr", "network_module");
  }
  from.want("lora", from.word("network_dim").value_or("4"), "network_dim");
  const bool unet =
      script == "train_network.py" || script.starts_with("sdxl_") || (script.empty() && module == "networks.lora");
  from.want("lora_targets", unet ? "*attentions.*" : "*blocks.*+layers.*+not:*norm*", "network_module");
  // train_network.py: network.to(weight_dtype)
  from.want("lora_dtype", from.on("full_bf16") ? "bf16" : "fp32", "full_bf16");
  from.take("network_dropout", "lora_dropout");
  const std::string arguments = from.word("network_args").value_or("");
  if (module.starts_with("lycoris")) {
    if (arguments.find("algo=lokr") != std::string::npos) from.want("peft", "lokr", "network_args");
    else if (arguments.find("algo=loha") != std::string::npos) from.want("peft", "loha", "network_args");
    else if (arguments.find("algo=") != std::string::npos && arguments.find("algo=lora") == std::string::npos)
      from.not_modelled("network_args");
    if (unet) from.job().not_modelled.emplace_back("network_module lycoris.kohya, adapters of convolutions,");
  } else if (arguments.find("conv_dim") != std::string::npos) {
    from.not_modelled("network_args");
  }
  const bool kohya = from.word("pretrained_model_name_or_path").has_value();
  if (kohya && !from.on("network_train_unet_only") && !from.on("cache_text_encoder_outputs")) {
    from.job().not_modelled.emplace_back("training of the text encoder's adapters (no network_train_unet_only)");
  }
}

void read_precision(TrainerReading& from) {
  const std::string mixed = from.word("mixed_precision").value_or("no");
  want_image_loop(from, mixed, "mixed_precision");
  if (from.on("full_bf16")) from.want("precision", "bf16", "full_bf16");
  if (from.on("full_fp16")) from.not_modelled("full_fp16");
  // musubi-tuner loads the model in a type of its own (training/trainer_base.py: dit_dtype).
  const bool musubi = !from.word("pretrained_model_name_or_path").has_value() && from.word("dit").has_value();
  const std::string held = musubi ? from.word("dit_dtype").value_or("bf16") : mixed;
  if (from.job().find("lora") != nullptr) want_frozen_type(from, held, musubi ? "dit_dtype" : "mixed_precision");
  for (const std::string_view path : {"fp8_base", "fp8_base_unet"}) {
    if (from.on(path)) want_image_quantization(from, "float8_e4m3fn", path);
  }
  if (from.on("fused_backward_pass")) from.want("optimizer_in_backward", "true", "fused_backward_pass");
  from.not_modelled("fused_optimizer_groups");
}

/// What lies on the GPU besides what is trained. musubi-tuner makes latents and embeddings before a run.
void read_parts(TrainerReading& from) {
  if (!from.word("pretrained_model_name_or_path")) return;
  const bool latents = from.on("cache_latents") || from.on("cache_latents_to_disk");
  const bool texts = from.on("cache_text_encoder_outputs") || from.on("cache_text_encoder_outputs_to_disk");
  if (latents && texts) return;
  if (!latents && !texts) from.want("parts", "vae+text_encoder*", "cache_latents");
  else if (latents) from.want("parts", "text_encoder*", "cache_text_encoder_outputs");
  else from.want("parts", "vae", "cache_latents");
}

void read_all(TrainerReading& from) {
  const std::string script = from.word(kScriptKey).value_or("");
  from.job().model = from.word("pretrained_model_name_or_path").value_or(from.word("dit").value_or(""));
  from.job().usual_model = usual_of(from, script);
  from.job().dataset = from.word("dataset_config").value_or("");
  read_network(from, script);
  read_precision(from);
  from.want("batch_size", "1");
  from.take("train_batch_size", "batch_size");
  from.take("gradient_accumulation_steps", "accumulate");
  if (from.on("gradient_checkpointing")) from.want("checkpointing", "full", "gradient_checkpointing");
  if (from.on("cpu_offload_checkpointing") || from.on("unsloth_offload_checkpointing") ||
      from.on("gradient_checkpointing_cpu_offload")) {
    from.want("checkpointing", "full", "gradient_checkpointing");
    from.want("offload", "checkpoints", "cpu_offload_checkpointing");
  }
  if (from.on("use_8bit_adam")) want_optimizer(from, "adamw8bit", "use_8bit_adam");
  else if (from.on("use_lion_optimizer")) want_optimizer(from, "lion", "use_lion_optimizer");
  else want_optimizer(from, from.word("optimizer_type").value_or("adamw"), "optimizer_type");
  note_arguments(from, "optimizer_args", optimizer_arguments());
  want_image_size(from, "resolution");
  read_parts(from);
  want_block_swap(from, "blocks_to_swap", "exchanged");
  from.not_modelled("block_swap_h2d_only");
  for (const std::string_view path :
       {"dit_high_noise", "blockwise_fused_optimizers", "double_blocks_to_swap", "single_blocks_to_swap", "self_flow",
        "dino_loss_weight", "num_last_block_to_freeze", "train_t5xxl", "dim_from_weights", "latent_window_size",
        "fp16_master_weights_and_gradients", "deepspeed"}) {
    from.not_modelled(path);
  }
  from.not_modelled("block_lr");
  from.not_modelled("masked_loss");
  from.not_modelled("torch_compile");
  if (from.on("compile")) from.want("compile", "true", "compile");
  from.without_effect(kWithoutEffect, arguments::kSdScriptsArguments);
}

void read(TrainerReading& from) { read_made(from, flat(from.root()), &read_all); }

}  // namespace sd_scripts_detail
}  // namespace

const TrainerFormat& sd_scripts() {
  static constexpr TrainerFormat kFormat = {"sd-scripts", "the TOML of sd-scripts and musubi-tuner",
                                            &sd_scripts_detail::sniff, &sd_scripts_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
