#include <algorithm>
#include <array>
#include <string>

#include "image_trainers.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace diffsynth_detail {

constexpr std::string_view kWithoutEffect[] = {"align_to_opensource_format",
                                               "audio_processor_path",
                                               "data_file_keys",
                                               "dataset_*",
                                               "dmd2_*",
                                               "enable_csv_log",
                                               "enable_lora_hot_loading",
                                               "enable_npu_patch",
                                               "enable_swanlab_log",
                                               "enable_tensorboard_log",
                                               "enable_wandb_log",
                                               "find_unused_parameters",
                                               "framewise_decoding",
                                               "initialize_model_on_cpu",
                                               "learning_rate",
                                               "lora_checkpoint",
                                               "max_timestep_boundary",
                                               "min_timestep_boundary",
                                               "model_paths",
                                               "noise_scale",
                                               "num_epochs",
                                               "output_path",
                                               "preset_lora_*",
                                               "processor_*",
                                               "remove_prefix_in_ckpt",
                                               "resume_from_checkpoint",
                                               "save_steps",
                                               "silence_latent_path",
                                               "swanlab_project",
                                               "tokenizer_*",
                                               "wandb_project",
                                               "weight_decay",
                                               "height",
                                               "embedded_guidance",
                                               "width"};

/// Its own classes of Wan, FLUX.1 and HunyuanVideo call layers as the models' first repositories do; the config is of
/// diffusers' class, which has the same layers under these names, or three for one.
struct LayerName {
  std::string_view own;
  std::string_view diffusers;
};
constexpr std::array<LayerName, 16> kLayerNames = {{{"q", "to_q"},
                                                    {"k", "to_k"},
                                                    {"v", "to_v"},
                                                    {"o", "to_out.0"},
                                                    {"ffn.0", "ffn.net.0.proj"},
                                                    {"ffn.2", "ffn.net.2"},
                                                    {"a_to_qkv", "attn.to_q+attn.to_k+attn.to_v"},
                                                    {"b_to_qkv", "attn.add_q_proj+attn.add_k_proj+attn.add_v_proj"},
                                                    {"a_to_out", "attn.to_out.0"},
                                                    {"b_to_out", "attn.to_add_out"},
                                                    {"ff_a.0", "ff.net.0.proj"},
                                                    {"ff_a.2", "ff.net.2"},
                                                    {"ff_b.0", "ff_context.net.0.proj"},
                                                    {"ff_b.2", "ff_context.net.2"},
                                                    {"norm1_a.linear", "norm1.linear"},
                                                    {"norm1_b.linear", "norm1_context.linear"}}};

bool sniff(const Setting& root) {
  return root.field("model_id_with_origin_paths") != nullptr ||
         (root.field("model_paths") != nullptr && root.field("dataset_base_path") != nullptr);
}

/// "black-forest-labs/FLUX.1-dev:flux1-dev.safetensors,...": the first is the denoiser's.
std::string model_of(TrainerReading& from) {
  const std::string paths = from.word("model_id_with_origin_paths").value_or("");
  return paths.substr(0, paths.find_first_of(":,"));
}

/// LoRA in the type of the pipeline (training_module.py: switch_pipe_to_training_mode()).
void read_adapters(TrainerReading& from) {
  if (!from.word("lora_base_model")) return;
  from.want("lora", from.word("lora_rank").value_or("32"), "lora_rank");
  from.want("lora_dtype", "bf16");
  std::string targets;
  each_name(from.word("lora_target_modules").value_or("q,k,v,o,ffn.0,ffn.2"), [&](std::string_view name) {
    const auto* const row =
        std::find_if(kLayerNames.begin(), kLayerNames.end(), [&](const LayerName& one) { return one.own == name; });
    targets += (targets.empty() ? "" : "+") + std::string(row == kLayerNames.end() ? name : row->diffusers);
  });
  from.want("lora_targets", targets.empty() ? "all-linear" : targets, "lora_target_modules");
  if (from.word("lora_base_model") != "unet") from.not_modelled("lora_base_model", "dit");
}

void read_samples(TrainerReading& from) {
  if (from.job().model.starts_with("ACE-Step/")) {
    from.know("max_pixels");
    from.job().missing.emplace_back("the seconds of its sounds (--seconds)");
    return;
  }
  const auto width = from.word("width");
  const auto height = from.word("height");
  constexpr std::int64_t kUsual = std::int64_t{1024} * 1024;
  if (width && height) from.want("image", *width + "x" + *height, "width");
  else want_square_image(from, from.whole("max_pixels").value_or(kUsual), "max_pixels");
  from.know("max_pixels");
  if (from.word("num_frames")) from.take("num_frames", "frames");
}

/// All parts of the pipeline lie on the GPU, unless a first run kept what they make ("sft:train").
void read_parts(TrainerReading& from) {
  const std::string task = from.word("task").value_or("sft");
  if (task.ends_with(":train")) return;
  if (task.ends_with(":data_process")) from.job().unlike = "task " + task;
  from.want("parts", "all", "task");
}

void read(TrainerReading& from) {
  from.job().model = model_of(from);
  from.want("precision", "bf16");
  from.want("zero_grad", "step-end");
  from.want("batch_size", "1");  // runner.py: its DataLoader gives one sample
  from.take("gradient_accumulation_steps", "accumulate");
  // Wan's program switches it on where the words do not (examples/wanvideo/model_training/train.py).
  const bool forced = from.job().model.find("Wan") != std::string::npos;
  if (from.on("use_gradient_checkpointing") || forced) from.want("checkpointing", "full", "use_gradient_checkpointing");
  if (from.on("use_gradient_checkpointing_offload")) {
    from.want("offload", "checkpoints", "use_gradient_checkpointing_offload");
  }
  want_optimizer(from, from.word("customized_optimizer").value_or("torch.optim.AdamW"), "customized_optimizer");
  read_adapters(from);
  read_samples(from);
  read_parts(from);
  if (from.job().find("lora") != nullptr || from.job().find("parts") != nullptr) from.want("base_dtype", "bf16");
  if (const auto trained = from.word("trainable_models"); trained && *trained != "dit" && *trained != "unet") {
    from.not_modelled("trainable_models");
  }
  for (const std::string_view path :
       {"fp8_models", "offload_models", "quant_options", "extra_inputs", "enable_model_cpu_offload",
        "enable_optimizer_cpu_offload", "cpu_offload_split_threshold", "template_model_id_or_path"}) {
    from.not_modelled(path);
  }
  from.without_effect(kWithoutEffect, arguments::kDiffSynthArguments);
}

}  // namespace diffsynth_detail
}  // namespace

const TrainerFormat& diffsynth() {
  static constexpr TrainerFormat kFormat = {"diffsynth", "", &diffsynth_detail::sniff, &diffsynth_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
