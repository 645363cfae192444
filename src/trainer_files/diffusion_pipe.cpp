#include <string>

#include "image_trainers.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace diffusion_pipe_detail {

constexpr std::string_view kWithoutEffect[] = {"caching_batch_size",
                                               "checkpoint_every_n_epochs",
                                               "checkpoint_every_n_minutes",
                                               "disable_block_swap_for_eval",
                                               "epochs",
                                               "eval_before_first_step",
                                               "eval_datasets",
                                               "eval_every_n_epochs",
                                               "eval_every_n_steps",
                                               "eval_every_n_examples",
                                               "eval_gradient_accumulation_steps",
                                               "eval_micro_batch_size_per_gpu",
                                               "force_constant_lr",
                                               "gradient_clipping",
                                               "image_eval_micro_batch_size_per_gpu",
                                               "eval_image_micro_batch_size_per_gpu",
                                               "logging_steps",
                                               "lr_scheduler",
                                               "map_num_proc",
                                               "max_steps",
                                               "monitoring",
                                               "output_dir",
                                               "partition_method",
                                               "partition_split",
                                               "pseudo_huber_c",
                                               "save_dtype",
                                               "save_every_n_epochs",
                                               "save_every_n_examples",
                                               "save_every_n_steps",
                                               "steps_per_print",
                                               "video_clip_mode",
                                               "warmup_steps",
                                               "x_axis_examples",
                                               "seed",
                                               "reentrant_activation_checkpointing",
                                               "blocks_to_swap"};

/// Of models, adapters and their weights (models/*.py: model_config; utils/common.py: DTYPE_MAP).
constexpr std::string_view kModelWithoutEffect[] = {"type",
                                                    "audio_vae",
                                                    "bypass_guidance_embedding",
                                                    "byt5_path",
                                                    "cache_text_embeddings",
                                                    "cfg",
                                                    "clip_path",
                                                    "debiased_estimation_loss",
                                                    "diffusion_model",
                                                    "first_frame_conditioning_p",
                                                    "flux_shift",
                                                    "guidance",
                                                    "image_shift",
                                                    "llama3_path",
                                                    "llama3_4bit",
                                                    "llm_path",
                                                    "llm_adapter_path",
                                                    "llm_adapter_lr",
                                                    "lumina_shift",
                                                    "max_llama3_sequence_length",
                                                    "max_sequence_length",
                                                    "max_t",
                                                    "merge_adapters",
                                                    "min_snr_gamma",
                                                    "min_t",
                                                    "multiscale_loss_weight",
                                                    "shift",
                                                    "sigmoid_scale",
                                                    "single_file_path",
                                                    "t5_path",
                                                    "text_encoder",
                                                    "text_encoders",
                                                    "text_encoder_path",
                                                    "text_encoder_fp8",
                                                    "text_encoder_nf4",
                                                    "text_encoder_1_lr",
                                                    "text_encoder_2_lr",
                                                    "timestep_sample_method",
                                                    "v_pred",
                                                    "vae",
                                                    "vae_path",
                                                    "checkpoint_path",
                                                    "ckpt_path",
                                                    "transformer_path",
                                                    "diffusers_path",
                                                    "cross_attn_lr",
                                                    "mlp_lr",
                                                    "mod_lr",
                                                    "self_attn_lr",
                                                    "unet_lr"};
constexpr std::string_view kAdapterWithoutEffect[] = {"type", "alpha", "exclude_modules", "init_from_existing",
                                                      "rank_dropout"};
constexpr std::string_view kTypes = "bfloat16 float16 float32 float8 float8_e4m3fn float8_e5m2";
constexpr std::string_view kModels =
    "flux ltx-video hunyuan-video sdxl cosmos lumina_2 wan chroma hidream sd3 cosmos_predict2 anima omnigen2 "
    "qwen_image "
    "hunyuan_image auraflow z_image hunyuan_video_15 flux2 ernie_image ltx2 ideogram4 krea2 minimax_h3";

/// What each type of model is where the names of its files do not tell; of others there are several sizes.
constexpr UsualModel kUsual[] = {
    {"flux2", ""},
    {"flux", "black-forest-labs/FLUX.1-dev"},
    {"hunyuan-video", "hunyuanvideo-community/HunyuanVideo"},
    {"hunyuan_video_15", "hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-480p_t2v"},
    {"hunyuan_image", "tencent/HunyuanImage-2.1"},
    {"sdxl", "stabilityai/stable-diffusion-xl-base-1.0"},
    {"lumina_2", "Alpha-VLLM/Lumina-Image-2.0"},
    {"chroma", "lodestones/Chroma1-HD"},
    {"hidream", "HiDream-ai/HiDream-I1-Full"},
    {"anima", "circlestone-labs/Anima"},
    {"qwen_image", "Qwen/Qwen-Image"},
    {"auraflow", "fal/AuraFlow-v0.3"},
    {"z_image", "Tongyi-MAI/Z-Image"},
    {"ernie_image", "baidu/ERNIE-Image"},
    {"ideogram4", "ideogram-ai/ideogram-v4"},
    {"krea2", "krea/Krea-2"},
};

bool sniff(const Setting& root) {
  return root.at("model.type") != nullptr &&
         (root.field("micro_batch_size_per_gpu") != nullptr || root.field("pipeline_stages") != nullptr);
}

/// PEFT's adapters on the linear layers of the blocks (models/base.py: adapter_target_modules).
void read_adapter(TrainerReading& from) {
  const auto type = from.word("adapter.type");
  if (!type) return;
  if (*type != "lora" && *type != "lokr") return from.not_modelled("adapter.type");
  from.want("lora", from.word("adapter.rank").value_or("32"), "adapter.rank");
  const std::string usual = from.word("model.dtype").value_or("bfloat16");
  from.want("lora_dtype", from.choice("adapter.dtype", kTypes, usual) == "float32" ? "fp32" : "bf16", "adapter.dtype");
  from.want("lora_targets", "*blocks.*+layers.*", "adapter.type");
  from.take("adapter.dropout", "lora_dropout");
  from.not_modelled("adapter.fuse_adapters");
  if (*type != "lokr") return;
  from.want("peft", "lokr", "adapter.type");
  from.want("lora", "10000", "adapter.rank");
  from.want("peft_options", "decompose_factor=" + from.word("adapter.decompose_factor").value_or("-1"), "adapter.type");
}

void read(TrainerReading& from) {
  from.job().model =
      from.word("model.diffusers_path")
          .value_or(
              from.word("model.ckpt_path")
                  .value_or(
                      from.word("model.transformer_path").value_or(from.word("model.checkpoint_path").value_or(""))));
  from.job().dataset = from.word("dataset").value_or("");
  from.job().usual_model = usual_model(kUsual, from.choice("model.type", kModels, ""));
  const std::string dtype = from.choice("model.dtype", kTypes, "bfloat16");
  if (dtype != "bfloat16") from.not_modelled("model.dtype", "float32");
  // All weights are in the type of the model, also those that are trained; adapters have a type of their own.
  const bool adapts = from.word("adapter.type").has_value();
  from.want("precision", dtype != "bfloat16" ? "fp32" : adapts ? "amp-bf16" : "bf16", "model.dtype");
  if (adapts) from.want("base_dtype", short_type(dtype), "model.dtype");
  // DeepSpeed's pipeline engine keeps gradients until the step has ended.
  from.want("zero_grad", "step-end");
  from.want("batch_size", "1");
  if (from.whole("micro_batch_size_per_gpu")) from.take("micro_batch_size_per_gpu", "batch_size");
  else from.not_modelled("micro_batch_size_per_gpu");
  from.not_modelled("image_micro_batch_size_per_gpu");
  from.take("gradient_accumulation_steps", "accumulate");
  const std::string checkpointing = from.choice("activation_checkpointing", "true false unsloth", "false");
  if (checkpointing != "false") from.want("checkpointing", "full", "activation_checkpointing");
  if (checkpointing == "unsloth") from.want("offload", "checkpoints", "activation_checkpointing");
  if (from.on("compile")) from.want("compile", "true", "compile");
  if (const auto optimizer = from.word("optimizer.type")) want_optimizer(from, *optimizer, "optimizer.type");
  read_adapter(from);
  for (const std::string_view path : {"model.transformer_dtype", "model.diffusion_model_dtype"}) {
    const std::string held = from.word(path).value_or(dtype);
    if (held != dtype) want_image_quantization(from, held, path);
  }
  from.not_modelled("pipeline_stages", "1");
  want_block_swap(from, "blocks_to_swap", "exchanged");
  from.without_effect(kWithoutEffect);
  from.without_effect_in("model", kModelWithoutEffect);
  from.without_effect_in("adapter", kAdapterWithoutEffect);
  from.without_effect_in("optimizer", optimizer_arguments());
}

}  // namespace diffusion_pipe_detail
}  // namespace

const TrainerFormat& diffusion_pipe() {
  static constexpr TrainerFormat kFormat = {"diffusion-pipe", "diffusion-pipe's TOML", &diffusion_pipe_detail::sniff,
                                            &diffusion_pipe_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
