#include "axolotl.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "gpumem/adapt/lora_targets.hpp"
#include "shared_settings.hpp"

namespace gpumem::trainer_files {

namespace {
namespace axolotl_detail {

constexpr std::string_view kWithoutEffect[] = {"base_model_*",
                                               "bfloat16",
                                               "chat_template*",
                                               "comet_*",
                                               "cosine_*",
                                               "curriculum_sampling",
                                               "dataset*",
                                               "default_system_message",
                                               "early_stopping*",
                                               "eta_min",
                                               "eval_*",
                                               "evals_per_epoch",
                                               "group_by_length",
                                               "hub_*",
                                               "is_falcon_derived_model",
                                               "is_llama_derived_model",
                                               "is_mistral_derived_model",
                                               "is_qwen_derived_model",
                                               "load_in_*",
                                               "lora_*",
                                               "peft_*",

                                               "mlflow_*",
                                               "num_epochs",
                                               "pad_to_sequence_len",

                                               "pretraining_dataset",
                                               "remove_unused_columns",
                                               "resize_token_embeddings_to_32x",
                                               "resume_from_checkpoint",
                                               "sample_packing*",
                                               "saves_per_epoch",
                                               "shuffle_*",
                                               "special_tokens",
                                               "strict",
                                               "streaming*",
                                               "swanlab_*",
                                               "test_datasets",
                                               "tokenizer_*",
                                               "tokens",
                                               "train_on_inputs",
                                               "use_tensorboard",
                                               "val_set_size",
                                               "wandb_*",
                                               "save_*",
                                               "attn_implementation",
                                               "auto_resume_from_checkpoints",
                                               "ddp_*",
                                               "eot_tokens",
                                               "experimental_skip_move_to_device",
                                               "fsdp*",
                                               "gradient_checkpointing_kwargs",
                                               "loss_watchdog_*",
                                               "low_cpu_mem_usage",
                                               "model_type",
                                               "roles_to_train",
                                               "skip_prepare_dataset",
                                               "split_thinking",
                                               "train_on_eos",
                                               "use_mistral_common",
                                               "use_swanlab",
                                               "max_steps"};

void read_adapter(TrainerReading& from) {
  const auto adapter = from.word("adapter");
  // Experts of one tensor stay whole unless it says so (monkeypatch/moe_quant.py). In eight bits they are made whole in
  // float32 (Bnb8bitParametrization), which no option says.
  const bool experts = from.on("quantize_moe_experts");
  // Llama 4's experts as linear layers (monkeypatch/models/llama4/modeling.py), which whole take what one tensor takes.
  const bool linear = from.on("llama4_linearized_experts");
  const std::string otherwise = linear ? "nf4-linear-experts" : "nf4-double";
  if (from.on("load_in_4bit")) from.want("quantize", experts ? "nf4-experts" : otherwise, "load_in_4bit");
  else if (from.on("lora_target_linear") || from.on("load_in_8bit")) from.not_modelled("llama4_linearized_experts");
  if (from.on("load_in_8bit")) from.want("quantize", "int8", "load_in_8bit");
  if (experts && !from.on("load_in_4bit")) from.job().unlike = "quantize_moe_experts without load_in_4bit";
  if (!adapter || adapter->empty()) return;
  if (*adapter != "lora" && *adapter != "qlora") {
    from.job().unlike = "adapter " + *adapter;
    return;
  }
  from.want("lora", from.word("lora_r").value_or("8"), "lora_r");
  want_lora_targets(from, "lora_target_modules");
  if (from.on("lora_target_linear")) from.want("lora_targets", "all-linear", "lora_target_linear");
  want_layers_by_name(from);  // loaders/adapter.py: find_all_linear_names()
  from.take("lora_dropout", "lora_dropout");
  if (from.on("peft_use_dora")) from.want("peft", "dora", "peft_use_dora");
  want_saved_modules(from, "lora_modules_to_save");
  want_target_parameters(from, "lora_target_parameters");
}

void read_attention(TrainerReading& from) {
  // PyTorch's flex kernel keeps what flash attention keeps; its mask of blocks is small.
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {{"eager_attention", "eager"},
                                                                      {"sdp_attention", "sdpa"},
                                                                      {"flex_attention", "flash"},
                                                                      {"flash_attention", "flash"}};
  for (const auto& [path, kind] : kKinds) {
    if (from.on(path)) from.want("attention", std::string(kind), path);
  }
  const std::string named = from.word("attn_implementation").value_or("");
  // xformers' memory-efficient kernel keeps what flash attention keeps.
  const bool flash = named.find("flash") != std::string::npos || named == "flex_attention" || named == "xformers";
  if (flash) from.want("attention", "flash", "attn_implementation");
  else if (named == "sdpa" || named == "eager") from.want("attention", named, "attn_implementation");
  else from.not_modelled("attn_implementation");
  from.not_modelled("xformers_attention");
  from.not_modelled("s2_attention");
  from.know("flex_attn_compile_kwargs");
}

/// ScatterMoE and SonicMoE keep less of a block's experts than transformers does, which is little where blocks are
/// computed again. With adapters they do not make the experts' updates whole, and their own weights in few bits are
/// another form: those stay refused. Source: axolotl of August 2026, integrations/kernels (args.py, libs).
bool read_expert_kernels(TrainerReading& from) {
  const bool again = from.on("gradient_checkpointing") || from.word("gradient_checkpointing").value_or("") == "offload";
  const bool adapted = from.at("lora_target_parameters") != nullptr || from.on("quantize_moe_experts");
  if (!again || adapted) return false;
  for (const std::string_view path : {"use_scattermoe", "use_sonicmoe", "experts_implementation"}) from.know(path);
  return true;
}

/// Apple's plugin is on unless `cut_cross_entropy` says otherwise (integrations/cut_cross_entropy/args.py); Liger's has
/// a setting for each kernel; others bring kernels and methods of their own.
void read_plugins(TrainerReading& from) {
  const Setting* const plugins = from.at("plugins");
  if (plugins == nullptr) return;
  for (const Setting& plugin : plugins->items) {
    const bool cuts = plugin.word.find("CutCrossEntropyPlugin") != std::string::npos;
    if (cuts && from.word("cut_cross_entropy").value_or("true") == "true") from.want("loss", "fused", "plugins");
    const bool liger = plugin.word.find("LigerPlugin") != std::string::npos;
    const bool writes = plugin.word.find("SwanLabPlugin") != std::string::npos;
    const bool experts = plugin.word.find("KernelsPlugin") != std::string::npos && read_expert_kernels(from);
    if (!cuts && !liger && !writes && !experts) from.job().not_modelled.push_back("plugins " + plugin.word);
  }
}

/// Liger's and Apple's kernels never make the logits whole.
void read_loss(TrainerReading& from) {
  read_plugins(from);
  for (const std::string_view path : {"liger_fused_linear_cross_entropy", "cut_cross_entropy"}) {
    if (from.on(path)) from.want("loss", "fused", path);
  }
  if (from.on("liger_cross_entropy")) from.want("loss", "fused-ce", "liger_cross_entropy");
}

/// Whether axolotl has adapters and their layers in functions of its own: unless the file speaks of any of them, where
/// there is nothing that they do not know. Source: utils/schemas/validation.py (check_auto_enable_lora_kernels), with
/// dropout since March 2026.
bool joins_adapters(TrainerReading& from, bool checkpoints) {
  constexpr std::string_view kSwitches[] = {"lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel",
                                            "lora_embedding_kernel"};
  const bool asked = from.on("lora_mlp_kernel");
  bool said = false;
  for (const std::string_view path : kSwitches) {
    said = said || from.at(path) != nullptr;
    if (!asked && !checkpoints) from.not_modelled(path);
  }
  if (asked) return true;
  const bool unknown = from.on("trust_remote_code") || from.on("load_in_8bit") || from.word("rl").has_value();
  const WantedOption* const sharding = from.job().find("sharding");
  const bool flat = sharding != nullptr && sharding->value == "fsdp1";
  return !said && !unknown && !flat && from.job().find("lora") != nullptr;
}

/// Kernels that keep less of a block than PyTorch's calls do. Others of the file change little where blocks are
/// computed again.
void read_kernels(TrainerReading& from) {
  const bool checkpoints = from.job().find("checkpointing") != nullptr;
  const bool joins = joins_adapters(from, checkpoints);
  const bool norms = from.on("liger_rms_norm");
  const bool newer = from.on("liger_glu_activation");
  const bool gates = from.on("liger_swiglu") || newer;
  if (joins) from.want("kernels", norms ? "unsloth" : "lora-mlp", "lora_mlp_kernel");
  else if (norms && gates) from.want("kernels", "liger", "liger_rms_norm");
  else if (!checkpoints) {
    for (const std::string_view path : {"liger_rms_norm", "liger_glu_activation", "liger_swiglu"})
      from.not_modelled(path);
  }
  for (const std::string_view path : {"liger_rope", "liger_layer_norm", "use_kernels"}) {
    if (checkpoints) from.know(path);
    else from.not_modelled(path);
  }
}

/// Whether a block's call is reentrant, where the file does not say it. Source: axolotl 0.18, utils/config/__init__.py
/// (normalize_config), core/builders/base.py (_configure_gradient_checkpointing), loaders/model.py
/// (_apply_activation_checkpointing: offloaded ones wrap the blocks).
std::string_view usual_checkpoints(TrainerReading& from) {
  const bool others = from.on("activation_offloading") || from.word("rl") || from.at("unfrozen_parameters") != nullptr;
  return others ? "full+non-reentrant" : "full+reentrant";
}

void read_checkpointing(TrainerReading& from) {
  const auto kind = from.word("gradient_checkpointing");
  if (!kind || *kind == "false") return;
  from.want("checkpointing", "full", "gradient_checkpointing");
  // monkeypatch/gradient_checkpointing/offload_cpu.py keeps each block's input on the host, and nothing else.
  if (*kind == "offload" || *kind == "offload_disk") from.want("offload", "checkpoints", "gradient_checkpointing");
  else if (*kind != "true") from.not_modelled("gradient_checkpointing");
  if (from.on("activation_offloading")) from.want("offload", "activations", "activation_offloading");
}

/// fully_shard() is what `fsdp_version: 2` or a config without the version since axolotl 0.11 asks for.
void read_fsdp(TrainerReading& from) {
  const Setting* const config = from.root().field("fsdp_config");
  if (config == nullptr) return;
  const bool second = from.word("fsdp_version").value_or(from.word("fsdp_config.fsdp_version").value_or("2")) == "2";
  from.want("sharding", second ? "fsdp2" : "fsdp1", "fsdp_config");
  const bool offloads = from.on("fsdp_config.offload_params") || from.on("fsdp_config.fsdp_offload_params");
  if (offloads) from.want("offload", "parameters", "fsdp_config");
  settle_checkpoints(from, usual_checkpoints(from));
  // Accelerate's, as want_accelerate_fsdp() has them.
  if (from.on("fsdp_config.activation_checkpointing") || from.on("fsdp_config.fsdp_activation_checkpointing")) {
    from.want("checkpointing", "full+non-reentrant", "fsdp_config");
  }
}

/// The ranks that FSDP shards over are all of them, where no other axis has any.
void read_mesh(TrainerReading& from) {
  for (const std::string_view path :
       {"dp_replicate_size", "sequence_parallel_degree", "context_parallel_size", "tensor_parallel_size"}) {
    from.not_modelled(path, "1");
  }
  if (from.whole("dp_shard_size").value_or(1) > 1) from.take("dp_shard_size", "data_parallel");
}

/// Patterns of the names of parameters that are trained (utils/freeze.py: freeze_layers_except). They are expressions
/// that a name begins with, and may end in rows ("[:32000]"), of whose weight only these keep their gradient.
void read_unfrozen(TrainerReading& from) {
  const Setting* const names = from.at("unfrozen_parameters");
  if (names == nullptr || names->items.empty()) return;
  // Adapters put "base_model.model." before the names, which the expressions then do not match (train.py).
  if (from.word("adapter") && (from.on("load_in_4bit") || from.on("load_in_8bit"))) {
    return from.not_modelled("unfrozen_parameters");
  }
  std::string patterns;
  for (const Setting& name : names->items) {
    std::string_view expression = name.word;
    const std::size_t rows = expression.rfind('[');
    if (rows != expression.npos && expression.ends_with(']') && expression.find(':', rows) != expression.npos) {
      expression.remove_suffix(expression.size() - rows);
    }
    auto meant = adapt::targets_of_expression(expression);
    if (!meant) return from.not_modelled("unfrozen_parameters");
    std::replace(meant->begin(), meant->end(), '+', ',');
    patterns += (patterns.empty() ? "" : ",") + *meant;
  }
  from.want("train", patterns, "unfrozen_parameters");
}

void read_precision(TrainerReading& from) {
  // "auto" is on where the GPU can do it, which all GPUs that train such models can, and is what a file that does not
  // speak of precision has (utils/schemas/config.py: AxolotlInputConfig.bf16; utils/config: resolve_dtype).
  const bool left_open = !from.word("bf16") && !from.on("fp16") && !from.on("float16") && !from.on("float32");
  const bool bf16 = left_open || from.on("bf16") || from.on("bfloat16") || from.is_auto("bf16") ||
                    from.word("bf16").value_or("") == "full";
  want_precision(from, bf16, false, from.on("fp16") || from.on("float16"), bf16 ? "bf16" : "fp16");
}

bool sniff(const Setting& root) {
  return root.field("base_model") != nullptr ||
         (root.field("micro_batch_size") != nullptr && root.field("sequence_len") != nullptr);
}

void read(TrainerReading& from) {
  from.job().model = from.word("base_model").value_or("");
  read_training_arguments(from);
  // Where the environment does not say; with older PyTorch than 2.9 sizes are rounded up too, by a sixteenth at most
  // (utils/__init__.py: set_pytorch_cuda_alloc_conf).
  from.want("alloc_conf", "expandable_segments:True");
  from.want("batch_size", "1");
  from.take("micro_batch_size", "batch_size");
  from.want("seq_length", "512");  // AxolotlInputConfig.sequence_len
  from.take("sequence_len", "seq_length");
  if (const auto optimizer = from.word("optimizer")) want_optimizer(from, *optimizer, "optimizer");
  read_adapter(from);
  read_attention(from);
  read_loss(from);
  read_checkpointing(from);
  read_precision(from);
  read_fsdp(from);
  read_kernels(from);
  read_unfrozen(from);
  // A quantised checkpoint is made whole, or kept as it is, which is not modelled.
  if (!from.on("model_quantization_config_kwargs.dequantize")) from.not_modelled("model_quantization_config");
  from.know("model_quantization_config");
  from.know("model_quantization_config_kwargs");
  from.job().shorter = !from.on("sample_packing") && !from.on("pad_to_sequence_len");
  if (from.word("processor_type")) from.job().missing.emplace_back("the size and number of its images");
  for (const std::string_view path : {"relora_steps", "mean_resizing_embeddings", "qat", "diffusion"}) {
    from.not_modelled(path);
  }
  const bool rewards = from.on("reward_model") || from.on("process_reward_model");
  if (const auto kind = from.word("rl")) from.job().post_training = "rl " + *kind;
  else if (rewards) from.job().post_training = "reward_model true";
  read_mesh(from);
  // Adapters freeze towers with the rest of the base; those on towers, which are frozen too, are small
  // (utils/freeze.py: freeze_mm_modules).
  if (from.job().find("lora") != nullptr) from.know("freeze_mm_modules");
  else from.not_modelled("freeze_mm_modules");
  from.without_effect(kWithoutEffect);
}

}  // namespace axolotl_detail
}  // namespace

const TrainerFormat& axolotl() {
  static constexpr TrainerFormat kFormat = {"axolotl", "axolotl's YAML", &axolotl_detail::sniff, &axolotl_detail::read};
  return kFormat;
}

}  // namespace gpumem::trainer_files
