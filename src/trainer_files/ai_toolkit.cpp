#include <algorithm>
#include <string>

#include "gpumem/core/bytes.hpp"
#include "image_trainers.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace ai_toolkit_detail {

/// Keys of its sections that change no memory of the GPU, or too little to see (toolkit/config_modules.py).
constexpr std::string_view kTrainWithoutEffect[] = {"adaptive_scaling_factor",
                                                    "attention_backend",
                                                    "batch_noise_correction_scale",
                                                    "blank_prompt_preservation_multiplier",
                                                    "blended_blur_noise",
                                                    "bypass_guidance_embedding",
                                                    "cfg_*",
                                                    "content_or_style*",
                                                    "correct_pred_norm*",
                                                    "differential_guidance_scale",
                                                    "diff_output_preservation_*",
                                                    "disable_sampling",
                                                    "do_batch_noise_correction",
                                                    "do_differential_guidance",
                                                    "do_fft_*",
                                                    "do_guidance_loss_cfg_zero",
                                                    "do_random_cfg",
                                                    "do_signal_*",
                                                    "dynamic_noise_offset",
                                                    "force_*",
                                                    "free_u",
                                                    "guidance_loss_*",
                                                    "img_multiplier",
                                                    "inverted_mask_*",
                                                    "latent_multiplier",
                                                    "learnable_snr_gos",
                                                    "linear_timesteps*",
                                                    "loss_*",
                                                    "lr*",
                                                    "match_*",
                                                    "max_*",
                                                    "merge_network_*",
                                                    "min_*",
                                                    "negative_prompt",
                                                    "next_sample_timesteps",
                                                    "noise_*",
                                                    "noisy_latent_multiplier",
                                                    "num_train_timesteps",
                                                    "optimal_noise_pairing_samples",
                                                    "optimizer_params",
                                                    "pred_scaler",
                                                    "prompt_*",
                                                    "random_noise_*",
                                                    "reg_weight",
                                                    "sdp",
                                                    "short_and_long_captions*",
                                                    "show_turbo_outputs",
                                                    "signal_*",
                                                    "skip_first_sample",
                                                    "snr_gamma",
                                                    "standardize_*",
                                                    "start_step",
                                                    "steps",
                                                    "switch_boundary_every",
                                                    "t0_*",
                                                    "target_n*",
                                                    "text_encoder_lr",
                                                    "timestep_*",
                                                    "unconditional_prompt",
                                                    "unet_lr",
                                                    "refiner_lr",
                                                    "embedding_lr",
                                                    "adapter_lr",
                                                    "train_refiner",
                                                    "weight_jitter",
                                                    "xformers"};
constexpr std::string_view kNetworkWithoutEffect[] = {
    "alpha",           "conv_alpha",           "linear_alpha",          "rank", "linear", "network_kwargs",
    "old_lokr_format", "pretrained_lora_path", "split_multistage_loras"};
constexpr std::string_view kModelWithoutEffect[] = {"arch",
                                                    "dtype",
                                                    "is_*",
                                                    "experimental_xl",
                                                    "extras_name_or_path",
                                                    "latent_space_version",
                                                    "auto_memory",
                                                    "cache_size_limit",
                                                    "compile_*",
                                                    "layer_offloading_*",
                                                    "model_paths",
                                                    "te_*",
                                                    "text_encoder_bits",
                                                    "vae_d*",
                                                    "unet_*",
                                                    "use_text_encoder_*",
                                                    "split_model_*",
                                                    "inference_lora_path",
                                                    "in_context",
                                                    "low_vram",
                                                    "model_kwargs",
                                                    "name_or_path_original",
                                                    "qtype*",
                                                    "quantize_kwargs",
                                                    "use_flux_cfg",
                                                    "vae_path",
                                                    "attn_masking"};
constexpr std::string_view kAverageWithoutEffect[] = {"ema_decay", "use_feedback", "param_multiplier"};
constexpr std::string_view kWithoutEffect[] = {"device",          "logging", "meta",           "performance_log_every",
                                               "sample",          "save",    "sqlite_db_path", "trigger_word",
                                               "training_folder", "type",    "log_dir",        "name"};

/// The first process of the job; null: there is none.
const Setting* process_of(const Setting& root) {
  const Setting* const list = root.at("config.process");
  const bool any = list != nullptr && list->kind == Setting::Kind::list && !list->items.empty();
  return any && list->items.front().kind == Setting::Kind::object ? &list->items.front() : nullptr;
}

bool sniff(const Setting& root) { return root.field("job") != nullptr && process_of(root) != nullptr; }

bool has_network(TrainerReading& from) {
  const Setting* const network = from.root().field("network");
  return network != nullptr && network->kind == Setting::Kind::object;
}

/// Whether all data sets have this of their samples made before.
bool all_cache(TrainerReading& from, std::string_view key, std::string_view other) {
  const Setting* const sets = from.at("datasets");
  if (sets == nullptr) return false;
  const auto on = [](const Setting& set, std::string_view name) {
    const Setting* const found = set.field(name);
    return found != nullptr && found->word == "true";
  };
  return std::all_of(sets->items.begin(), sets->items.end(),
                     [&](const Setting& set) { return on(set, key) || on(set, other); });
}

/// The networks of the toolkit are in float32 (BaseSDTrainProcess.py: force_to), on the linear layers of the blocks.
void read_network(TrainerReading& from) {
  if (!has_network(from)) return;
  const std::string type = from.word("network.type").value_or("lora");
  if (type != "lora" && type != "lokr") return from.not_modelled("network.type");
  from.want("lora", from.word("network.rank").value_or(from.word("network.linear").value_or("4")), "network.linear");
  from.want("lora_dtype", "fp32");
  from.want("lora_targets", "*blocks.*+layers.*", "network.type");
  from.take("network.dropout", "lora_dropout");
  if (from.word("network.conv")) from.job().not_modelled.emplace_back("network.conv, adapters of convolutions,");
  if (from.on("network.all_layers")) from.want("lora_targets", "all-linear", "network.all_layers");
  for (const std::string_view path :
       {"network.network_kwargs.only_if_contains", "network.network_kwargs.ignore_if_contains", "network.lorm",
        "network.layer_offloading"}) {
    from.not_modelled(path);
  }
  from.not_modelled("network.transformer_only", "true");
  if (type != "lokr") return;
  from.want("peft", "lokr", "network.type");
  if (from.word("network.lokr_full_rank").value_or("true") == "true") from.want("lora", "10000", "network.type");
  from.want("peft_options", "decompose_factor=" + from.word("network.lokr_factor").value_or("-1"), "network.type");
}

/// The largest of all data sets: each size comes up.
void read_samples(TrainerReading& from) {
  const Setting* const sets = from.at("datasets");
  if (sets == nullptr || sets->items.empty()) return miss_image_size(from);
  std::int64_t frames = 1;
  Setting sides{Setting::Kind::list, "resolution", {}, {}, sets->line};
  const Setting usual{Setting::Kind::integer, {}, "512", {}, 0};  // DatasetConfig
  for (const Setting& set : sets->items) {
    const Setting* const own = set.field("resolution");
    if (own == nullptr) sides.items.push_back(usual);
    if (own != nullptr && own->kind == Setting::Kind::list) {
      sides.items.insert(sides.items.end(), own->items.begin(), own->items.end());
    } else if (own != nullptr) {
      sides.items.push_back(*own);
    }
    const Setting* const count = set.field("num_frames");
    if (count != nullptr) frames = std::max(frames, core::parse_whole(count->word).value_or(1));
    if (set.field("control_path") != nullptr || set.field("control_path_1") != nullptr) {
      from.job().not_modelled.emplace_back("control_path, the tokens of images that are edited,");
    }
  }
  Setting all{Setting::Kind::object, {}, {}, {sides}, 0};
  TrainerReading of_sets(all, from.job());
  want_image_size(of_sets, "resolution");
  miss_image_size(from);
  if (frames > 1) from.want("frames", std::to_string(frames), "datasets");
}

void read_model(TrainerReading& from) {
  from.job().model = from.word("model.name_or_path").value_or("");
  if (from.on("model.quantize")) {
    want_image_quantization(from, from.word("model.qtype").value_or("qfloat8"), "model.qtype");
  }
  // Latents are made in each step unless all data sets have theirs (SDTrainer.py: is_latents_cached).
  std::string parts = all_cache(from, "cache_latents", "cache_latents_to_disk") ? "" : "vae";
  const bool encoded = from.on("train.cache_text_embeddings") || from.on("train.unload_text_encoder") ||
                       all_cache(from, "cache_text_embeddings", "cache_text_embeddings");
  const bool eight_bits = from.on("model.quantize_te") || from.on("model.quantize");
  if (!encoded && !from.on("model.low_vram")) {
    parts += (parts.empty() ? "" : "+") + std::string(eight_bits ? "text_encoder*:int8" : "text_encoder*");
  }
  if (!parts.empty()) from.want("parts", parts, "datasets.cache_latents");
  for (const std::string_view path :
       {"model.layer_offloading", "model.accuracy_recovery_adapter", "model.refiner_name_or_path",
        "model.unconditional_lora_path", "model.ignore_if_contains", "model.only_if_contains",
        "model.split_model_over_gpus", "model.assistant_lora_path", "model.lora_path", "model.compile",
        "model.block_compile"}) {
    from.not_modelled(path);
  }
}

/// Other processes train other models, or something beside one (extensions_built_in: uid).
void read_process(TrainerReading& from) {
  const std::string process = from.word("type").value_or("sd_trainer");
  if (process != "sd_trainer" && process != "diffusion_trainer" && process != "ui_trainer") {
    from.job().unlike = "type " + process;
  }
  const std::string type = short_type(from.choice("train.dtype", kImageTypes, "fp32"));
  from.want("precision", type == "fp16" ? "amp-fp16" : type, "train.dtype");
  if (type != "fp32" && has_network(from)) want_frozen_type(from, type, "train.dtype");
  from.want("zero_grad", "step-end");
  from.want("batch_size", from.word("train.batch_size").value_or("1"), "train.batch_size");
  for (const std::string_view path : {"train.gradient_accumulation_steps", "train.gradient_accumulation"}) {
    from.take(path, "accumulate");
  }
  if (from.word("train.gradient_checkpointing").value_or("true") == "true") {
    from.want("checkpointing", "full", "train.gradient_checkpointing");
  }
  want_optimizer(from, from.word("train.optimizer").value_or("adamw"), "train.optimizer");
  if (from.on("train.ema_config.use_ema")) from.want("ema", "true", "train.ema_config.use_ema");
  read_network(from);
  read_model(from);
  read_samples(from);
  for (const std::string_view path :
       {"train.train_text_encoder", "adapter.type", "slider.target_class", "train.do_cfg",
        "train.do_paramiter_swapping", "train.paramiter_swapping_factor", "train.diffusion_feature_extractor_path",
        "train.latent_feature_extractor_path", "train.diff_output_preservation", "train.blank_prompt_preservation",
        "train.do_prior_divergence", "train.do_guidance_loss", "train.train_turbo", "train.single_item_batching",
        "train.validation_config", "train.do_blank_stabilization", "train.adapter_assist_name_or_path", "embedding",
        "decorator"}) {
    from.not_modelled(path);
  }
  if (from.word("train.train_unet").value_or("true") != "true") from.not_modelled("train.train_unet");
  for (const std::string_view section : {"adapter", "slider"}) from.know(section);  // not modelled as a whole
  from.without_effect_in("train", kTrainWithoutEffect);
  from.without_effect_in("train.ema_config", kAverageWithoutEffect);
  from.without_effect_in("network", kNetworkWithoutEffect);
  from.without_effect_in("model", kModelWithoutEffect);
  from.without_effect(kWithoutEffect);
  from.finish();
}

void read(TrainerReading& from) {
  from.know("job");
  from.know("config");
  from.know("meta");
  if (const Setting* const process = process_of(from.root()); process != nullptr) {
    TrainerReading reading(*process, from.job());
    read_process(reading);
  }
}

}  // namespace ai_toolkit_detail
}  // namespace

const TrainerFormat& ai_toolkit() {
  static constexpr TrainerFormat kFormat = {"ai-toolkit", "ai-toolkit's YAML", &ai_toolkit_detail::sniff,
                                            &ai_toolkit_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
