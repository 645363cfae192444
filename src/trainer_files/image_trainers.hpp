// Input: settings of programs that train image and video models.
// Output: the formats of their files and words, and what several of them spell alike.
// Source: diffusers 0.38 (examples/), SimpleTuner 2026-08 (simpletuner/helpers/configuration, examples/), ai-toolkit
// 2026-08 (toolkit/config_modules.py), kohya's sd-scripts 2026-02 and musubi-tuner 2026-06 (library/train_util.py,
// training/parser_common.py), diffusion-pipe 2026-08 (train.py), finetrainers 2025-06 (args.py), OneTrainer 2026-08
// (modules/util/config/ TrainConfig.py), DiffSynth-Studio 2026-08 (diffsynth/diffusion/parsers.py).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trainer_format.hpp"

namespace gpumem::trainer_files {

/// SimpleTuner's config.json.
[[nodiscard]] const TrainerFormat& simpletuner();
/// ai-toolkit's YAML: a job with a list of processes, of which the first trains.
[[nodiscard]] const TrainerFormat& ai_toolkit();
/// OneTrainer's JSON: a preset, or what its window saves.
[[nodiscard]] const TrainerFormat& one_trainer();
/// Words of DiffSynth-Studio's examples/*/model_training/train.py.
[[nodiscard]] const TrainerFormat& diffsynth();
/// diffusion-pipe's TOML.
[[nodiscard]] const TrainerFormat& diffusion_pipe();
/// Words of finetrainers' train.py.
[[nodiscard]] const TrainerFormat& finetrainers();
/// Words, or the TOML of `--config_file`, of kohya's sd-scripts and musubi-tuner.
[[nodiscard]] const TrainerFormat& sd_scripts();
/// Words of the scripts in diffusers' examples.
[[nodiscard]] const TrainerFormat& diffusers_scripts();

/// What a file of a data set says of the samples: sd-scripts' and musubi-tuner's `dataset_config`, diffusion-pipe's
/// `dataset`, finetrainers' `dataset_config`. What the job has already stays.
void take_image_dataset(const Setting& root, TrainerJob& job);

/// The words that programs have for types, accelerate's "no" and PyTorch's names among them.
inline constexpr std::string_view kImageTypes =
    "no fp16 bf16 fp32 float16 bfloat16 float32 half float single tf32 none None";

/// What optimizers of PyTorch, bitsandbytes, transformers and others take, and that changes no memory. Source:
/// OneTrainer 2026-08, modules/util/config/TrainConfig.py (TrainOptimizerConfig); torch 2.6, optim.
[[nodiscard]] std::span<const std::string_view> optimizer_arguments();

/// Of PyTorch's names and accelerate's ("bfloat16", "bf16", "no"): "fp16", "bf16", else "fp32".
[[nodiscard]] std::string short_type(std::string_view type);

/// How accelerate's programs run: autocast by `mixed` ("bf16", "fp16", "no"), gradients dropped behind the step.
void want_image_loop(TrainerReading& from, std::string_view mixed, std::string_view path);
/// The type that frozen weights are loaded in: "bf16", "float16", "no".
void want_frozen_type(TrainerReading& from, std::string_view type, std::string_view path);
/// The size of samples: 1024, "1024,768", "960x544", a list of sides of squares, of which the largest counts.
void want_image_size(TrainerReading& from, std::string_view path);
/// Weights in fewer bits, by the names that quanto, torchao and SDNQ have for them ("int8-quanto", "qfloat8").
void want_image_quantization(TrainerReading& from, std::string_view name, std::string_view path);
/// A number of blocks whose weights take turns on the GPU, in this way.
void want_block_swap(TrainerReading& from, std::string_view path, std::string_view how);
/// Says that the size of the samples is not given, if it is not.
void miss_image_size(TrainerReading& from);

/// All arguments of programs whose readers know some by their beginnings.
namespace arguments {
#include "image_trainer_arguments.inc"
}  // namespace arguments

}  // namespace gpumem::trainer_files
