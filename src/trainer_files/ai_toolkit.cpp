#include <algorithm>
#include <string>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/csv.hpp"
#include "image_trainers.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace ai_toolkit_detail {

/// Keys of its sections that change no memory of the GPU, or too little to see (toolkit/config_modules.py).
constexpr std::string_view kTrainWithoutEffect[] = {"adaptive_scaling_factor",
                                                    "adapter_assist_type",
                                                    "adapter_lr",
                                                    "attention_backend",
                                                    "audio_loss_multiplier",
                                                    "batch_noise_correction_scale",
                                                    "blank_prompt_preservation_multiplier",
                                                    "blended_blur_noise",
                                                    "bypass_guidance_embedding",
                                                    "cfg_rescale",
                                                    "cfg_scale",
                                                    "content_or_style",
                                                    "content_or_style_reg",
                                                    "correct_pred_norm",
                                                    "correct_pred_norm_multiplier",
                                                    "diff_output_preservation_class",
                                                    "diff_output_preservation_multiplier",
                                                    "differential_guidance_scale",
                                                    "diffusion_feature_extractor_weight",
                                                    "disable_sampling",
                                                    "do_batch_noise_correction",
                                                    "do_differential_guidance",
                                                    "do_fft_loss",
                                                    "do_fft_velocity_equiv_weight",
                                                    "do_guidance_loss_cfg_zero",
                                                    "do_random_cfg",
                                                    "do_signal_amplification",
                                                    "do_signal_correction_noise",
                                                    "dynamic_noise_offset",
                                                    "embedding_lr",
                                                    "force_consistent_noise",
                                                    "force_first_sample",
                                                    "free_u",
                                                    "guidance_loss_schedule",
                                                    "guidance_loss_target",
                                                    "img_multiplier",
                                                    "inverted_mask_prior",
                                                    "inverted_mask_prior_multiplier",
                                                    "latent_feature_loss_weight",
                                                    "latent_multiplier",
                                                    "learnable_snr_gos",
                                                    "linear_timesteps",
                                                    "linear_timesteps2",
                                                    "loss_target",
                                                    "loss_type",
                                                    "lr",
                                                    "lr_scheduler",
                                                    "lr_scheduler_params",
                                                    "match_adapter_assist",
                                                    "match_adapter_chance",
                                                    "match_noise_norm",
                                                    "max_cfg_scale",
                                                    "max_denoising_steps",
                                                    "max_grad_norm",
                                                    "max_loss",
                                                    "max_loss_debug",
                                                    "max_negative_prompts",
                                                    "merge_network_on_save",
                                                    "merge_network_on_save_strength",
                                                    "min_denoising_steps",
                                                    "min_snr_gamma",
                                                    "negative_prompt",
                                                    "next_sample_timesteps",
                                                    "noise_multiplier",
                                                    "noise_offset",
                                                    "noise_scheduler",
                                                    "noisy_latent_multiplier",
                                                    "num_train_timesteps",
                                                    "optimal_noise_pairing_samples",
                                                    "optimizer_params",
                                                    "pred_scaler",
                                                    "prompt_dropout_prob",
                                                    "prompt_saturation_chance",
                                                    "random_noise_multiplier",
                                                    "random_noise_shift",
                                                    "refiner_lr",
                                                    "reg_weight",
                                                    "sdp",
                                                    "short_and_long_captions",
                                                    "short_and_long_captions_encoder_split",
                                                    "show_turbo_outputs",
                                                    "signal_amplification_strength",
                                                    "signal_correction_noise_scale",
                                                    "skip_first_sample",
                                                    "snr_gamma",
                                                    "standardize_images",
                                                    "standardize_latents",
                                                    "start_step",
                                                    "steps",
                                                    "switch_boundary_every",
                                                    "t0_loss_target",
                                                    "t0_velocity_equiv_weight",
                                                    "target_noise_multiplier",
                                                    "target_norm_std",
                                                    "target_norm_std_value",
                                                    "text_encoder_lr",
                                                    "timestep_type",
                                                    "train_refiner",
                                                    "unconditional_prompt",
                                                    "unet_lr",
                                                    "weight_jitter",
                                                    "xformers"};
constexpr std::string_view kNetworkWithoutEffect[] = {
    "alpha",           "conv_alpha",           "linear_alpha",          "rank", "linear", "network_kwargs",
    "old_lokr_format", "pretrained_lora_path", "split_multistage_loras"};
constexpr std::string_view kModelWithoutEffect[] = {"arch",
                                                    "attn_masking",
                                                    "auto_memory",
                                                    "cache_size_limit",
                                                    "compile_dynamic",
                                                    "compile_fullgraph",
                                                    "compile_mode",
                                                    "dtype",
                                                    "experimental_xl",
                                                    "extras_name_or_path",
                                                    "in_context",
                                                    "inference_lora_path",
                                                    "is_auraflow",
                                                    "is_flux",
                                                    "is_lumina2",
                                                    "is_pixart",
                                                    "is_pixart_sigma",
                                                    "is_ssd",
                                                    "is_v2",
                                                    "is_v3",
                                                    "is_v_pred",
                                                    "is_vega",
                                                    "is_xl",
                                                    "latent_space_version",
                                                    "layer_offloading_text_encoder_percent",
                                                    "layer_offloading_transformer_percent",
                                                    "low_vram",
                                                    "model_kwargs",
                                                    "model_paths",
                                                    "name_or_path_original",
                                                    "qtype",
                                                    "qtype_te",
                                                    "quantize_kwargs",
                                                    "refiner_start_at",
                                                    "split_model_other_module_param_count_scale",
                                                    "te_device",
                                                    "te_dtype",
                                                    "te_name_or_path",
                                                    "text_encoder_bits",
                                                    "unet_path",
                                                    "unet_sample_size",
                                                    "use_flux_cfg",
                                                    "use_text_encoder_1",
                                                    "use_text_encoder_2",
                                                    "vae_device",
                                                    "vae_dtype",
                                                    "vae_path"};
/// Of a data set: what is read below, and what changes no memory.
constexpr std::string_view kDataKeys[] = {"alpha_mask",
                                          "audio_normalize",
                                          "audio_preserve_pitch",
                                          "augmentations",
                                          "augments",
                                          "bucket_tolerance",
                                          "buckets",
                                          "cache_clip_vision_to_disk",
                                          "cache_latents",
                                          "cache_latents_num_workers",
                                          "cache_latents_to_disk",
                                          "cache_tensors_to_disk",
                                          "cache_text_embeddings",
                                          "caption_dropout_rate",
                                          "caption_ext",
                                          "caption_type",
                                          "clip_image_augmentations",
                                          "clip_image_from_same_folder",
                                          "clip_image_path",
                                          "clip_image_shuffle_augmentations",
                                          "control_transparent_color",
                                          "dataset_path",
                                          "debug",
                                          "default_caption",
                                          "diff_output_preservation",
                                          "diff_output_preservation_class",
                                          "do_i2v",
                                          "extra_values",
                                          "fast_image_size",
                                          "flip_x",
                                          "flip_y",
                                          "folder_path",
                                          "fps",
                                          "full_size_control_images",
                                          "guidance_type",
                                          "invert_mask",
                                          "is_reg",
                                          "keep_tokens",
                                          "load_image_when_caching_latents",
                                          "loss_multiplier",
                                          "mask_min_value",
                                          "mask_path",
                                          "network_weight",
                                          "num_controls_from_same_folder",
                                          "num_frames",
                                          "num_repeats",
                                          "num_workers",
                                          "poi",
                                          "prefetch_factor",
                                          "prior_reg",
                                          "random_crop",
                                          "random_scale",
                                          "random_triggers",
                                          "random_triggers_max",
                                          "replacements",
                                          "replay_transforms",
                                          "resolution",
                                          "scale",
                                          "shrink_video_to_frames",
                                          "shuffle_augmentations",
                                          "shuffle_tokens",
                                          "square_crop",
                                          "standardize_images",
                                          "token_dropout_rate",
                                          "trigger_word",
                                          "trim_auto_frame_count_tail",
                                          "type",
                                          "use_short_captions"};
/// Of a data set, and not modelled: tokens of images that are edited, sound beside a video, and videos as long as they
/// are.
constexpr std::string_view kDataNotModelled[] = {"auto_frame_count", "batch_size",        "control_from_same_folder",
                                                 "control_path",     "control_path_1",    "control_path_2",
                                                 "control_path_3",   "controls",          "do_audio",
                                                 "inpaint_path",     "unconditional_path"};
constexpr std::string_view kTruths = "true false yes no on off 1 0";
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

/// Whether it is true; a word that is neither is wrong.
bool is_on(TrainerReading& from, std::string_view path) {
  const std::string word = core::lower_case(from.word(path).value_or("false"));
  from.check(path, word, kTruths);
  return from.on(path);
}

/// Whether all data sets have this of their samples made before.
bool all_cache(TrainerReading& from, std::string_view key, std::string_view other) {
  const Setting* const sets = from.at("datasets");
  if (sets == nullptr) return false;
  const auto on = [&](const Setting& set, std::string_view name) {
    TrainerReading reading(set, from.job());
    return is_on(reading, name);
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
  if (is_on(from, "network.all_layers")) from.want("lora_targets", "all-linear", "network.all_layers");
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

/// Keys of a data set that nobody knows, and those that are not modelled.
void note_keys(TrainerJob& job, const Setting& set) {
  if (set.kind != Setting::Kind::object) {
    job.unknown.emplace_back("datasets, an entry that is no data set");
    return;
  }
  TrainerReading reading(set, job);
  for (const Setting& field : set.items) {
    if (is_among(kDataNotModelled, field.key)) reading.not_modelled(field.key);
    else if (!is_among(kDataKeys, field.key)) {
      job.unknown.push_back("datasets." + field.key + core::did_you_mean(field.key, kDataKeys));
    }
  }
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
    note_keys(from.job(), set);
    TrainerReading reading(set, from.job());
    const std::string count = reading.word("num_frames").value_or("1");
    const auto said = core::parse_whole(count);
    if (!said && !from.job().wrong) {
      from.job().wrong = core::Error{
          core::ErrorCode::invalid_argument, "num_frames is a whole number of frames, not " + core::quoted(count), {}};
      from.job().wrong->place.line = set.line;
    }
    frames = std::max(frames, said.value_or(1));
  }
  Setting all{Setting::Kind::object, {}, {}, {sides}, 0};
  TrainerReading of_sets(all, from.job());
  want_image_size(of_sets, "resolution");
  miss_image_size(from);
  if (frames > 1) from.want("frames", std::to_string(frames), "datasets");
}

/// The architectures that have one size (extensions_built_in/diffusion_models/, toolkit/config_modules.py).
constexpr UsualModel kUsual[] = {
    {"flux_kontext", "black-forest-labs/FLUX.1-Kontext-dev"},
    {"flux2_klein_4b", "black-forest-labs/FLUX.2-klein-4B"},
    {"flux2_klein_9b", "black-forest-labs/FLUX.2-klein-9B"},
    {"flux2", "black-forest-labs/FLUX.2-dev"},
    {"flux", "black-forest-labs/FLUX.1-dev"},
    {"flex2", "ostris/Flex.2-preview"},
    {"chroma_radiance", ""},
    {"chroma", "lodestones/Chroma1-HD"},
    {"hidream_o1", ""},
    {"hidream", "HiDream-ai/HiDream-I1-Full"},
    {"lumina2", "Alpha-VLLM/Lumina-Image-2.0"},
    {"qwen_image", "Qwen/Qwen-Image"},
    {"zimage_l2p", ""},
    {"zimage", "Tongyi-MAI/Z-Image"},
    {"wan22_14b_i2v", "Wan-AI/Wan2.2-I2V-A14B"},
    {"wan22_14b", "Wan-AI/Wan2.2-T2V-A14B"},
    {"wan22_5b", "Wan-AI/Wan2.2-TI2V-5B"},
    {"anima", "circlestone-labs/Anima"},
    {"ernie_image", "baidu/ERNIE-Image"},
    {"ideogram4", "ideogram-ai/ideogram-v4"},
    {"krea2", "krea/Krea-2"},
    {"boogu_image", "Boogu/Boogu-Image-0.1-Base"},
    {"ace_step_15_xl", "ACE-Step/acestep-v15-xl-base"},
    {"ace_step_15", "ACE-Step/acestep-v15-base"},
    {"cogview4", "THUDM/CogView4-6B"},
    {"auraflow", "fal/AuraFlow-v0.3"},
    {"sdxl", "stabilityai/stable-diffusion-xl-base-1.0"},
};

void read_model(TrainerReading& from) {
  from.job().usual_model = usual_model(kUsual, from.word("model.arch").value_or(""));
  from.job().model = from.word("model.name_or_path").value_or("");
  if (is_on(from, "model.quantize")) {
    want_image_quantization(from, from.word("model.qtype").value_or("qfloat8"), "model.qtype");
  }
  // Latents are made in each step unless all data sets have theirs (SDTrainer.py: is_latents_cached).
  std::string parts = all_cache(from, "cache_latents", "cache_latents_to_disk") ? "" : "vae";
  const bool encoded = is_on(from, "train.cache_text_embeddings") || is_on(from, "train.unload_text_encoder") ||
                       all_cache(from, "cache_text_embeddings", "cache_text_embeddings");
  const bool eight_bits = is_on(from, "model.quantize_te") || is_on(from, "model.quantize");
  if (!encoded && !is_on(from, "model.low_vram")) {
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
  if (!from.word("train.gradient_checkpointing") || is_on(from, "train.gradient_checkpointing")) {
    from.want("checkpointing", "full", "train.gradient_checkpointing");
  }
  want_optimizer(from, from.word("train.optimizer").value_or("adamw"), "train.optimizer");
  if (is_on(from, "train.ema_config.use_ema")) from.want("ema", "true", "train.ema_config.use_ema");
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
  if (from.word("train.train_unet") && !is_on(from, "train.train_unet")) {
    from.job().not_modelled.emplace_back("train.train_unet false");
  }
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
  const Setting& config = *from.root().field("config");
  for (const Setting& field : config.items) {
    if (field.key == "process" && field.items.size() > 1) {
      from.job().not_modelled.emplace_back("config.process, of which the first is read,");
    }
    if (field.key != "name" && field.key != "process") from.job().unknown.push_back("config." + field.key);
  }
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
