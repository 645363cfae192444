#include <algorithm>
#include <span>
#include <string>

#include "image_trainers.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace simpletuner_detail {

constexpr std::string_view kWithoutEffect[] = {"adam_*",
                                               "context_parallel_comm_strategy",
                                               "cosmos3_*",
                                               "find_unused_parameters",
                                               "ltx2_*",
                                               "ltx2_prefix_conditioning_probability",
                                               "ltx2_prefix_conditioning_frames",
                                               "ltx2_first_frame_conditioning_probability",
                                               "minimax_*",
                                               "allow_*",
                                               "aspect_*",
                                               "audio_*",
                                               "caption_*",
                                               "checkpoint_*",
                                               "checkpoints_*",
                                               "compress_*",
                                               "conditioning_*",
                                               "data_backend*",
                                               "delete_*",
                                               "disable_*",
                                               "ema_*",
                                               "eval_*",
                                               "evaluation_*",
                                               "flow_*",
                                               "framerate",
                                               "grad_clip_method",
                                               "hub_*",
                                               "ideogram_*",
                                               "learning_rate",
                                               "lora_alpha",
                                               "lora_format",
                                               "lr_*",
                                               "max_grad_norm",
                                               "max_train_steps",
                                               "minimum_image_size",
                                               "model_flavour",
                                               "num_eval_images",
                                               "num_train_epochs",
                                               "num_validation_images",
                                               "offload_during_startup",
                                               "optimizer_beta*",
                                               "output_dir",
                                               "pretrained_t5_*",
                                               "pretrained_vae_*",
                                               "prodigy_*",
                                               "push_*",
                                               "quantize_via",
                                               "ramtorch_*",
                                               "report_to",
                                               "resolution_type",
                                               "resume_*",
                                               "sdnq_*",
                                               "seed",
                                               "skip_*",
                                               "strict_*",
                                               "text_cache_*",
                                               "text_encoder_*",
                                               "tracker_*",
                                               "trust_remote_code",
                                               "user_prompt_library",
                                               "vae_*",
                                               "validation_*",
                                               "video_weight",
                                               "write_batch_size",
                                               "preserve_*",
                                               "snr_gamma",
                                               "noise_offset",
                                               "train_batch_size",
                                               "fuse_qkv_projections",
                                               "attention_mechanism",
                                               "logging_dir",
                                               "metadata_*",
                                               "loss_type",
                                               "instance_prompt",
                                               "gradient_precision",
                                               "crop*",
                                               "lora_init_type",
                                               "mixed_precision",
                                               "lycoris_config",
                                               "model_type"};

/// What a family makes of an interval of gradient checkpointing (helpers/models/*/transformer.py): the first of each N
/// blocks, or nothing (every block). Of all others N blocks are one (checkpoint_sequential_state()).
constexpr std::string_view kSeparate[] = {"auraflow",         "cosmos",           "ernie",  "qwen_image",
                                          "kandinsky5_image", "kandinsky5_video", "chroma", "longcat_image"};
constexpr std::string_view kIgnored[] = {"sd1x", "sd2x", "sdxl", "kolors", "hidream", "omnigen"};

/// A family as the rows of this file call it, which is its folder in helpers/models/. SimpleTuner registers
/// "kandinsky5-image" and "cosmos2image" (ModelRegistry.register()).
std::string family_of(TrainerReading& from) {
  std::string family = from.word("model_family").value_or("");
  if (family == "cosmos2image") return "cosmos";
  std::ranges::replace(family, '-', '_');
  return family;
}

/// What a family's flavours are called on the hub, the default first (helpers/models/*/model.py: HUGGINGFACE_PATHS,
/// DEFAULT_MODEL_FLAVOUR): those that the library knows.
struct Flavour {
  std::string_view family;
  std::string_view flavour;
  std::string_view model;
};
constexpr Flavour kFlavours[] = {
    {"ace_step", "base", ""},  // 1.0, the default, is another class
    {"ace_step", "v15-base", "ACE-Step/acestep-v15-base"},
    {"ace_step", "v15-sft", "ACE-Step/acestep-v15-sft"},
    {"ace_step", "v15-turbo", "ACE-Step/acestep-v15-turbo"},
    {"anima", "base-v1.0", "circlestone-labs/Anima-Base-v1.0-Diffusers"},
    {"auraflow", "v0.3", "terminusresearch/auraflow-v0.3"},
    {"boogu_image", "v0.1-turbo", "SimpleTuner/Boogu-Image-0.1-Turbo"},
    {"boogu_image", "v0.1-base", "SimpleTuner/Boogu-Image-0.1-Base"},
    {"chroma", "base", "lodestones/Chroma1-Base"},
    {"chroma", "hd", "lodestones/Chroma1-HD"},
    {"chroma", "flash", "lodestones/Chroma1-Flash"},
    {"cosmos", "2b", "nvidia/Cosmos-Predict2-2B-Text2Image"},
    {"cosmos", "14b", "nvidia/Cosmos-Predict2-14B-Text2Image"},
    {"cosmos3", "nano", "nvidia/Cosmos3-Nano"},
    {"cosmos3", "edge", "nvidia/Cosmos3-Edge"},
    {"ernie", "base", "baidu/ERNIE-Image"},
    {"ernie", "turbo", "baidu/ERNIE-Image-Turbo"},
    {"flux", "krea", "black-forest-labs/FLUX.1-Krea-dev"},
    {"flux", "kontext", "black-forest-labs/FLUX.1-Kontext-dev"},
    {"flux", "dev", "black-forest-labs/FLUX.1-dev"},
    {"flux", "schnell", "black-forest-labs/FLUX.1-schnell"},
    {"flux2", "klein-9b", "black-forest-labs/FLUX.2-klein-base-9B"},
    {"flux2", "klein-4b", "black-forest-labs/FLUX.2-klein-base-4B"},
    {"flux2", "dev", "black-forest-labs/FLUX.2-dev"},
    {"hidream", "full", "HiDream-ai/HiDream-I1-Full"},
    {"hidream", "dev", "HiDream-ai/HiDream-I1-Dev"},
    {"hidream", "fast", "HiDream-ai/HiDream-I1-Fast"},
    {"hunyuanvideo", "t2v-480p", "hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-480p_t2v"},
    {"hunyuanvideo", "t2v-720p", "hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-720p_t2v"},
    {"hunyuanvideo", "t2v-480p-distilled", "hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-480p_t2v"},
    {"ideogram", "fp8", "ideogram-ai/ideogram-4-fp8"},
    {"kandinsky5_image", "t2i-lite-sft", "kandinskylab/Kandinsky-5.0-T2I-Lite-sft-Diffusers"},
    {"kandinsky5_video", "t2v-lite-sft-5s", "kandinskylab/Kandinsky-5.0-T2V-Lite-sft-5s-Diffusers"},
    {"kolors", "1.0", "terminusresearch/kwai-kolors-1.0"},
    {"krea2", "raw", "krea/Krea-2-Raw"},
    {"krea2", "turbo", "krea/Krea-2-Turbo"},
    {"longcat_image", "final", "meituan-longcat/LongCat-Image"},
    {"longcat_image", "dev", "meituan-longcat/LongCat-Image-Dev"},
    {"longcat_video", "final", "meituan-longcat/LongCat-Video"},
    {"ltxvideo", "0.9.5", "Lightricks/LTX-Video-0.9.5"},
    {"ltxvideo", "0.9.0", "Lightricks/LTX-Video"},
    {"ltxvideo2", "dev", "Lightricks/LTX-2"},
    {"ltxvideo2", "2.3-dev", "dg845/LTX-2.3-Diffusers"},
    {"ltxvideo2", "2.3-distilled", "dg845/LTX-2.3-Diffusers"},
    {"lumina2", "2.0", "Alpha-VLLM/Lumina-Image-2.0"},
    {"lumina2", "neta-lumina", "Alpha-VLLM/Lumina-Image-2.0"},
    {"mageflow", "base", "microsoft/Mage-Flow-Base"},
    {"mageflow", "default", "microsoft/Mage-Flow"},
    {"mageflow", "turbo", "microsoft/Mage-Flow-Turbo"},
    {"mageflow", "edit-base", "microsoft/Mage-Flow-Edit-Base"},
    {"mageflow", "edit", "microsoft/Mage-Flow-Edit"},
    {"mageflow", "edit-turbo", "microsoft/Mage-Flow-Edit-Turbo"},
    {"omnigen", "v1", "Shitao/OmniGen-v1-diffusers"},
    {"pixart_sigma", "900M-1024-v0.6", "terminusresearch/pixart-900m-1024-ft-v0.6"},
    {"pixart_sigma", "900M-1024-v0.7-stage1", "terminusresearch/pixart-900m-1024-ft-v0.6"},
    {"pixart_sigma", "900M-1024-v0.7-stage2", "terminusresearch/pixart-900m-1024-ft-v0.6"},
    {"pixart_sigma", "600M-512", "PixArt-alpha/PixArt-Sigma-XL-2-512-MS"},
    {"pixart_sigma", "600M-1024", "PixArt-alpha/PixArt-Sigma-XL-2-1024-MS"},
    {"qwen_image", "v2.0", "Qwen/Qwen-Image-2512"},
    {"qwen_image", "v1.0", "Qwen/Qwen-Image"},
    {"qwen_image", "edit-v1", "Qwen/Qwen-Image-Edit"},
    {"qwen_image", "edit-v2", "Qwen/Qwen-Image-Edit-2509"},
    {"qwen_image", "edit-v3", "Qwen/Qwen-Image-Edit-2511"},
    {"sana", "sana1.5-4.8b-1024", "Efficient-Large-Model/SANA1.5_4.8B_1024px_diffusers"},
    {"sana", "sana1.0-1.6b-1024", "Efficient-Large-Model/Sana_1600M_1024px_BF16_diffusers"},
    {"sanavideo", "2b-480p", "Efficient-Large-Model/SANA-Video_2B_480p_diffusers"},
    {"sd1x", "dreamshaper", "Lykon/dreamshaper-8"},
    {"sd1x", "1.5", "stable-diffusion-v1-5/stable-diffusion-v1-5"},
    {"sd1x", "1.4", "CompVis/stable-diffusion-v1-4"},
    {"sd3", "medium", "stabilityai/stable-diffusion-3.5-medium"},
    {"sd3", "large", "stabilityai/stable-diffusion-3.5-large"},
    {"sdxl", "base-1.0", "stabilityai/stable-diffusion-xl-base-1.0"},
    {"wan", "t2v-480p-1.3b-2.1", "Wan-AI/Wan2.1-T2V-1.3B-Diffusers"},
    {"wan", "t2v-480p-14b-2.1", "Wan-AI/Wan2.1-T2V-14B-Diffusers"},
    {"wan", "i2v-14b-2.1", "Wan-AI/Wan2.1-I2V-14B-480P-Diffusers"},
    {"wan", "i2v-14b-2.1-720p", "Wan-AI/Wan2.1-I2V-14B-720P-Diffusers"},
    {"wan", "i2v-14b-2.2-high", "Wan-AI/Wan2.2-I2V-A14B-Diffusers"},
    {"wan", "i2v-14b-2.2-low", "Wan-AI/Wan2.2-I2V-A14B-Diffusers"},
    {"wan", "ti2v-5b-2.2", "Wan-AI/Wan2.2-TI2V-5B-Diffusers"},
    {"z_image", "turbo-ostris-v2", "Tongyi-MAI/Z-Image-Turbo"},
    {"z_image", "turbo", "Tongyi-MAI/Z-Image-Turbo"},
    {"z_image", "base", "Tongyi-MAI/Z-Image"},
    {"zlab_i1", "3b", "bghira/zlab-i1-diffusers"},
};

/// Empty: it is not known.
std::string_view model_of(std::string_view family, std::string_view flavour) {
  for (const Flavour& row : kFlavours) {
    if (row.family == family && (flavour.empty() || row.flavour == flavour)) return row.model;
  }
  return {};
}

/// Families of which SimpleTuner has copies that keep other tensors than the class that the model's name stands for.
constexpr std::string_view kCopied[] = {"wan", "sana", "ltxvideo2", "ace_step", "cosmos3"};

/// The model that is named, or the family's.
void read_model(TrainerReading& from, std::string_view family) {
  const std::string flavour = from.word("model_flavour").value_or("");
  from.job().model = from.word("pretrained_transformer_model_name_or_path")
                         .value_or(from.word("pretrained_model_name_or_path").value_or(""));
  if (!from.job().model.empty()) return;
  from.job().model = model_of(family, flavour);
  if (!from.job().model.empty() && std::ranges::find(kCopied, family) != std::end(kCopied)) {
    from.job().not_modelled.emplace_back("SimpleTuner's own copy of the class (`_code` in a config.json says it),");
  }
}

/// A ControlNet is trained in the place of the model, which lies on the GPU frozen. Its config is nowhere in the file
/// (helpers/training/trainer.py: init_controlnet_model).
void read_controlnet(TrainerReading& from, std::string_view family) {
  const std::string named = from.word("controlnet_model_name_or_path").value_or("");
  if (!from.on("controlnet")) return;
  from.want("parts", "all", "controlnet");
  // It is made of the model where no file has it, as diffusers' classes do.
  if (named.empty() && family == "flux") {
    from.job().changed_fields = R"({"_class_name": "FluxControlNetModel", "num_layers": 4, "num_single_layers": 10})";
    return from.know("controlnet_custom_config");
  }
  if (named.empty() && (family == "sd1x" || family == "sd2x" || family == "sdxl")) {
    from.job().changed_fields = R"({"_class_name": "ControlNetModel"})";
    return;
  }
  from.job().model = named;
  if (named.empty()) {
    from.job().missing.emplace_back("the ControlNet's config.json, which stands for the model (controlnet true)");
  }
}

/// Keys may have the two dashes of the command line.
Setting without_dashes(const Setting& root) {
  Setting plain = root;
  for (Setting& item : plain.items) {
    if (item.key.starts_with("--")) item.key.erase(0, 2);
  }
  return plain;
}

/// SimpleTuner trains the whole model unless it is told otherwise (field_registry/sections/model.py).
bool adapts(TrainerReading& from) { return from.choice("model_type", "full lora", "full") == "lora"; }

/// Of weights that are not trained: a quantised model's rest has a type of its own (helpers/training/trainer.py:
/// init_precision()). A model that is trained as a whole is in the type of the products.
void read_held_type(TrainerReading& from) {
  const std::string mixed = from.word("mixed_precision").value_or("bf16");
  const std::string rest = from.word("base_model_default_dtype").value_or("bf16");
  const bool quantized = from.word("base_model_precision").value_or("no_change") != "no_change";
  if (adapts(from)) want_frozen_type(from, quantized ? rest : mixed, "base_model_default_dtype");
  else if (mixed == "bf16") from.want("precision", "bf16", "model_type");
}

/// The average crosses to the GPU behind each step unless it lies there (helpers/training/ema.py: step()).
void read_average(TrainerReading& from) {
  if (!from.on("use_ema")) return;
  if (from.word("ema_device").value_or("cpu") == "accelerator") from.want("ema", "true", "ema_device");
  else if (!from.on("ema_cpu_only")) from.job().not_modelled.emplace_back("use_ema, whose average crosses to the GPU,");
}

/// The side of images where nothing says it (field_registry/sections/data.py). A data set's own is in another file.
void read_size(TrainerReading& from, std::string_view family) {
  if (family == "ace_step") {
    from.know("resolution");
    if (from.job().find("seconds") == nullptr) {
      from.job().missing.emplace_back("the seconds of its sounds (--seconds), which data_backend_config may limit");
    }
    return from.know("data_backend_config");
  }
  const bool by_area = from.word("resolution_type").value_or("pixel_area").starts_with("pixel");
  if (by_area || from.word("resolution") == std::nullopt) from.want("image", "1024x1024");
  if (by_area) want_image_size(from, "resolution");
  else from.not_modelled("resolution");
  if (!from.word("data_backend_config")) return;
  from.job().missing.emplace_back("whether its data sets have sizes of their own, which data_backend_config does");
}

void read_checkpointing(TrainerReading& from, std::string_view family) {
  const bool on = from.word("gradient_checkpointing").value_or("true") == "true";
  const std::int64_t interval = from.whole("gradient_checkpointing_interval").value_or(1);
  const std::int64_t stride = from.whole("gradient_checkpointing_segment_stride").value_or(0);
  const std::string backend = from.word("gradient_checkpointing_backend").value_or("torch");
  if (!on) return;
  std::string kind = "full";
  if (interval > 1 && !is_among(kIgnored, family)) {
    const bool separate = is_among(kSeparate, family);
    const bool strided = stride == 2 * interval;
    if (stride != 0 && !strided) from.not_modelled("gradient_checkpointing_segment_stride");
    if (separate) kind = strided ? "every-other:" : "first-of:";
    else kind = strided ? "joined-every-other:" : "joined:";
    kind += std::to_string(interval);
  }
  if (from.on("gradient_checkpointing_offload_attention")) kind += "+host-attention";
  from.want("checkpointing", kind, "gradient_checkpointing");
  if (backend == "unsloth") from.want("offload", "checkpoints", "gradient_checkpointing_backend");
}

/// LyCORIS' settings are in a file of their own; what they usually are is LoKr by factors of 16.
void read_lycoris(TrainerReading& from) {
  from.want("peft", "lokr", "lora_type");
  from.want("lora", "10000", "lora_type");
  from.want("peft_options", "decompose_factor=16", "lora_type");
  from.want("lora_targets", "to_q+to_k+to_v+to_out.0+net.0.proj+net.2", "lora_type");
  from.job().missing.emplace_back("how LyCORIS adapts, which lycoris_config does; LoKr by a factor of 16 is taken");
}

/// What each family's class has for DEFAULT_LORA_TARGET (helpers/models/*/model.py), where it is not the usual.
std::string_view targets_of(std::string_view family) {
  constexpr std::string_view kWithPrompt = "to_q+to_k+to_v+to_out.0+add_q_proj+add_k_proj+add_v_proj+to_add_out";
  if (family == "flux" || family == "auraflow" || family == "hunyuanvideo" || family == "mageflow") return kWithPrompt;
  if (family == "cosmos3") return "add_q_proj+add_k_proj+add_v_proj+to_add_out";
  if (family == "hidream") return "to_q+to_k+to_v";  // "to_out.0" is none of its layers
  if (family == "flux2") return "attn.to_q+attn.to_k+attn.to_v+attn.to_out.0+attn.to_qkv_mlp_proj";
  if (family == "zlab_i1") return "qkv_image+qkv_text+proj_image+proj_text+w12+w3+linear";
  if (family == "longcat_video") return "qkv+proj+q_linear+kv_linear";
  if (family == "ideogram") return "qkv+o+to_q+to_k+to_v+to_out.0+w1+w2+w3";  // its own copy, or diffusers' class
  if (family.starts_with("kandinsky5_")) return "to_key+to_query+to_value";
  return {};
}

void read_adapters(TrainerReading& from, std::string_view family) {
  if (!adapts(from)) return;
  if (from.choice("lora_type", "standard lycoris", "standard") == "lycoris") return read_lycoris(from);
  from.want("lora", from.word("lora_rank").value_or("16"), "lora_rank");
  from.want("lora_dtype", "bf16");
  const std::string_view targets = targets_of(family);
  if (!targets.empty()) from.want("lora_targets", std::string(targets), "model_family");
  want_lora_targets(from, "peft_lora_target_modules");
  if (from.on("use_dora")) from.want("peft", "dora", "use_dora");
  from.want("lora_dropout", from.word("lora_dropout").value_or("0.1"), "lora_dropout");
  from.not_modelled("flux_lora_target", "all");
  from.not_modelled("init_lora");
}

bool sniff(const Setting& root) {
  return root.field("model_family") != nullptr || root.field("--model_family") != nullptr;
}

void read_plain(TrainerReading& from) {
  const std::string family = family_of(from);
  read_model(from, family);
  read_controlnet(from, family);
  want_image_loop(from, from.word("mixed_precision").value_or("bf16"), "mixed_precision");
  read_held_type(from);
  from.want("batch_size", from.word("train_batch_size").value_or("4"), "train_batch_size");
  from.take("gradient_accumulation_steps", "accumulate");
  want_optimizer(from, from.word("optimizer").value_or("adamw_bf16"), "optimizer");
  read_size(from, family);
  read_adapters(from, family);
  read_checkpointing(from, family);
  want_image_quantization(from, from.word("base_model_precision").value_or("no_change"), "base_model_precision");
  if (from.on("ramtorch")) {
    const bool blocks = from.word("ramtorch_target_modules").value_or("*") != "*";
    from.want("offload", blocks ? "ramtorch-blocks" : "ramtorch", "ramtorch");
  }
  want_block_swap(from, "musubi_blocks_to_swap", "streamed");
  read_average(from);
  const std::string compiled = from.word("dynamo_backend").value_or("no");
  if (compiled != "no" && compiled != "disabled") from.want("compile", "true", "dynamo_backend");
  from.know("dynamo_use_regional_compilation");
  from.know("dynamo_mode");
  for (const std::string_view path :
       {"control", "distillation_method", "tread_config", "enable_group_offload", "context_parallel_size",
        "diffusion_blocks_config", "train_text_encoder", "layer_freeze_strategy", "crepa_enabled"}) {
    from.not_modelled(path);
  }
  from.not_modelled("num_processes", "1");
  from.know("distillation_config");
  // Of a whole model they say nothing.
  for (const std::string_view path : {"lora_rank", "lora_type", "lora_dropout", "use_dora", "lycoris_config"})
    from.know(path);
  if (family != "ace_step") miss_image_size(from);
  from.without_effect(kWithoutEffect, arguments::kSimpleTunerArguments);
}

void read(TrainerReading& from) { read_made(from, without_dashes(from.root()), &read_plain); }

}  // namespace simpletuner_detail
}  // namespace

const TrainerFormat& simpletuner() {
  static constexpr TrainerFormat kFormat = {"simpletuner", "SimpleTuner's config.json", &simpletuner_detail::sniff,
                                            &simpletuner_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
