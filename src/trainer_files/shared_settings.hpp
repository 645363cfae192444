// Input: settings that several trainers spell alike.
// Output: the options that they mean.
// Source: transformers 4.48 (training_args.py, trainer.py), peft 0.14 (tuners/lora/config.py), liger-kernel.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "trainer_format.hpp"

namespace gpumem::trainer_files {

/// The optimizer of `optim` and its like: "adamw_torch_fused", "torch.optim.AdamW",
/// "bitsandbytes.optim.PagedAdamW8bit". A name that is not in the list is taken as it is, so that it is said not to be
/// modelled.
void want_optimizer(TrainerReading& from, std::string_view name, std::string_view path);

/// What HuggingFace's Trainer reads, under whatever program: batch, accumulation, optimizer, compilation, evaluation.
void read_training_arguments(TrainerReading& from);

/// Precision by the type of the weights and by autocast. `bf16_weights`: the model is loaded in bfloat16.
void want_precision(TrainerReading& from, bool bf16_weights, bool bf16, bool fp16, std::string_view path);

/// Liger's kernels, as transformers and LLaMA-Factory apply them unless their settings leave some out: of the loss, of
/// norms and of gated layers.
void want_liger(TrainerReading& from, std::string_view path);

/// A DeepSpeed config that the program brings: "zero2", "zero3_offload".
void want_zero(TrainerReading& from, std::string_view preset, std::string_view path);

/// LoRA's targets: a list, "a,b", PEFT's regular expression, or the word for all linear layers ("all", "all-linear").
void want_lora_targets(TrainerReading& from, std::string_view path);
/// The program looks for all linear layers itself, and gives PEFT their names (adapt/lora_targets.hpp).
void want_layers_by_name(TrainerReading& from);

/// Parameters that PEFT's LoRA adapts beside these targets, which are read before: a list of names.
void want_target_parameters(TrainerReading& from, std::string_view path);

/// Whether the name of the job's model holds one of these.
[[nodiscard]] bool is_named(TrainerReading& from, std::span<const std::string_view> parts);

/// The largest square image of so many pixels.
void want_square_image(TrainerReading& from, std::int64_t pixels, std::string_view path);

/// Modules that PEFT trains whole beside the adapters: names, or how they end.
void want_saved_modules(TrainerReading& from, std::string_view path);

/// Whether the blocks' checkpoints are reentrant, as gradient_checkpointing_kwargs says; else, where FSDP shares the
/// model and it counts, as the trainer has it: "full+reentrant", "full+non-reentrant"; empty: the loop's way.
void settle_checkpoints(TrainerReading& from, std::string_view usual = {});

/// FSDP as accelerate's settings ask for it.
void want_accelerate_fsdp(TrainerReading& from);

/// Megatron's optimizer: states on the host (all of them, or a part, which is not modelled), and in fewer bits.
void read_megatron_optimizer(TrainerReading& from);

/// What no config.json says of Megatron's model and run: layers that predict further tokens, main gradients in the
/// weights' type, CUDA graphs.
void want_megatron_options(TrainerReading& from);

/// A length where the program cuts no sample unless `key` says so, and the data are not known.
void assume_length(TrainerReading& from, const std::string& key);

/// A language model that is trained whole runs as Megatron writes it: queries, keys and values are views of one
/// product, which stays while backward needs the values. Adapters, parts and other heads are told by transformers'
/// names. Source: mcore-bridge 1.2, model/gpt_model.py; Megatron-LM core 0.12 to 0.16, core/transformer/attention.py
/// (get_query_key_value_tensors).
void want_megatron_form(TrainerReading& from);

/// TransformerEngine's products in float8. Recipes differ in their scales, which are small.
void read_megatron_float8(TrainerReading& from);

}  // namespace gpumem::trainer_files
