#include "shared_settings.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "gpumem/adapt/lora_targets.hpp"
#include "gpumem/adapt/peft_methods.hpp"
#include "gpumem/core/csv.hpp"
#include "gpumem/posttrain/launch.hpp"

namespace gpumem::trainer_files {

namespace {

/// An optimizer's name without '_' and '-', in lower case, and the option's words for it.
struct OptimizerName {
  std::string_view name;
  std::string_view optimizer;
  bool fused = false;
};

constexpr OptimizerName kOptimizerNames[] = {
    {"adamwtorch", "adamw"},
    {"adamwhf", "adamw"},
    {"adamwtorchfused", "adamw", true},
    {"adamwbnb8bit", "adamw-8bit"},
    {"adamw8bit", "adamw-8bit"},
    {"adamwtorch8bit", "adamw-8bit"},
    {"adamwtorch4bit", "adamw-4bit"},
    {"aoadamw8bit", "adamw-8bit"},
    {"aoadamw4bit", "adamw-4bit"},
    {"aoadamwfp8", "adamw-fp8"},
    {"pagedadamw", "paged-adamw"},
    {"pagedadamw32bit", "paged-adamw"},
    {"pagedadamw8bit", "paged-adamw-8bit"},
    {"lion32bit", "lion"},
    {"lion8bit", "lion-8bit"},
    {"fusedadam", "adamw", true},
    // SimpleTuner's and optimi's keep a third tensor in the parameter's type.
    {"adamwbf16", "adamw-bf16"},
    {"adamwoptimi", "adamw-bf16"},
    {"optimilion", "optimi-lion"},
    {"torchadamw", "adamw"},
    {"adam8bit", "adam-8bit"},
    {"pagedadam8bit", "paged-adamw-8bit"},
    // SimpleTuner's and finetrainers' words for bitsandbytes, optimi and PyTorch.
    {"bnbadam", "adam"},
    {"bnbadam8bit", "adam-8bit"},
    {"adambnb", "adam"},
    {"adambnb8bit", "adam-8bit"},
    {"bnbadamw", "adamw"},
    {"adamwbnb", "adamw"},
    {"bnbadamw8bit", "adamw-8bit"},
    {"bnbadamwpaged", "paged-adamw"},
    {"bnbadamw8bitpaged", "paged-adamw-8bit"},
    {"bnblion", "lion"},
    {"bnblion8bit", "lion-8bit"},
    {"optimiadamw", "adamw-bf16"},
    {"torchadam", "adam"},
    {"torchadafactor", "adafactor"},
    {"torchadamax", "adamax"},
    {"schedulefreeadamw", "schedule-free-adamw"},
    {"schedulefreeradam", "schedule-free-adamw"},
    {"adamwapexfused", "adamw", true},
    {"adamwtorchxla", "adamw"},
    {"adamwtorchnpufused", "adamw", true},
};

/// Fields of TrainingArguments that change no memory of the GPU, or too little to see.
constexpr std::string_view kWithoutEffect[] = {"_*",
                                               "accelerator_config",
                                               "adam_*",
                                               "average_tokens_across_devices",
                                               "batch_eval_metrics",
                                               "bf16_full_eval",
                                               "data_seed",
                                               "dataloader_*",
                                               "ddp_*",
                                               "debug",
                                               "disable_tqdm",
                                               "dispatch_batches",
                                               "do_*",
                                               "eval_*",
                                               "fp16_*",
                                               "fsdp_min_num_params",
                                               "fsdp_transformer_layer_cls_to_wrap",
                                               "full_determinism",
                                               "greater_is_better",
                                               "group_by_length",
                                               "half_precision_backend",
                                               "hub_*",
                                               "ignore_data_skip",
                                               "include_*",
                                               "jit_mode_eval",
                                               "label_names",
                                               "learning_rate",
                                               "length_column_name",
                                               "liger_kernel_config",
                                               "load_best_model_at_end",
                                               "local_rank",
                                               "log_*",
                                               "logging_*",
                                               "lr_*",
                                               "max_grad_norm",
                                               "max_steps",
                                               "metric_for_best_model",
                                               "mp_parameters",
                                               "no_cuda",
                                               "num_train_epochs",
                                               "optim_args",
                                               "output_dir",
                                               "overwrite_*",
                                               "past_index",
                                               "per_device_eval_batch_size",
                                               "per_gpu_*",
                                               "plot_loss",
                                               "prediction_loss_only",
                                               "push_to_hub*",
                                               "ray_scope",
                                               "remove_unused_columns",
                                               "report_to",
                                               "restore_callback_states_from_checkpoint",
                                               "resume_from_checkpoint",
                                               "run_name",
                                               "save_*",
                                               "seed",
                                               "skip_memory_metrics",
                                               "split_batches",
                                               "tf32",
                                               "torch_compile_*",
                                               "torchdynamo",
                                               "tpu_*",
                                               "trust_remote_code",
                                               "use_cpu",
                                               "use_ipex",
                                               "use_legacy_prediction_loop",
                                               "use_mps_device",
                                               "warmup_*"};

/// Of FSDP's own settings, as transformers' and accelerate's files spell them. Source: transformers 4.57,
/// training_args.py (fsdp_config); accelerate 1.12, utils/dataclasses.py (FullyShardedDataParallelPlugin).
constexpr std::string_view kFsdpWithoutEffect[] = {"fsdp_*",
                                                   "activation_checkpointing",
                                                   "auto_wrap_policy",
                                                   "backward_prefetch",
                                                   "cpu_offload_pin_memory",
                                                   "cpu_ram_efficient_loading",
                                                   "final_state_dict_type",
                                                   "forward_prefetch",
                                                   "limit_all_gathers",
                                                   "min_num_params",
                                                   "mixed_precision_policy",
                                                   "offload_params",
                                                   "reshard_after_forward",
                                                   "sharding_strategy",
                                                   "state_dict_type",
                                                   "sync_module_states",
                                                   "transformer_layer_cls_to_wrap",
                                                   "use_orig_params",
                                                   "version",
                                                   "xla*"};
constexpr std::string_view kCheckpointWords[] = {"use_reentrant", "determinism_check", "preserve_rng_state",
                                                 "debug",         "context_fn",        "early_stop"};

/// Where nothing is sharded, copies of the model are on all GPUs.
void read_fsdp(TrainerReading& from) {
  const auto asked = from.word("fsdp");
  if (!asked || asked->empty() || *asked == "false") return;
  const posttrain::FsdpWords words = posttrain::fsdp_words(*asked);
  if (!words.known) return from.not_modelled("fsdp");
  if (!words.shards) return;
  const bool second = from.word("fsdp_config.fsdp_version").value_or("1") == "2";
  from.want("sharding", second ? "fsdp2" : "fsdp1", "fsdp");
  if (words.offloads) from.want("offload", "parameters", "fsdp");
}

/// "no" of eval_strategy is "false" to YAML. An evaluation keeps nothing for a backward, so it needs less than training
/// unless its batches are larger. Source: transformers 4.51, training_args.py (both batches are 8 where none is given).
void note_evaluation(TrainerReading& from, std::string_view path) {
  const auto when = from.word(path);
  if (!when || *when == "no") return;
  constexpr std::int64_t kUsual = 8;
  const std::int64_t evaluated = from.whole("per_device_eval_batch_size").value_or(kUsual);
  if (evaluated > from.whole("per_device_train_batch_size").value_or(kUsual)) from.not_modelled(path);
}

/// A setting of "rank=64, update_proj_gap=100".
std::optional<std::string> optimizer_setting(TrainerReading& from, std::string_view name) {
  std::string all = from.word("optim_args").value_or("");
  std::erase(all, ' ');
  std::replace(all.begin(), all.end(), '+', ',');
  std::optional<std::string> found;
  each_name(all, [&](std::string_view one) {
    if (one.starts_with(name) && one.substr(name.size()).starts_with('=')) found = one.substr(name.size() + 1);
  });
  return found;
}

/// GaLore's and APOLLO's optimizers by transformers' names, which end in "layerwise" where backward updates. Source:
/// transformers 5.0, trainer_optimizer.py (_setup_low_rank_optimizer, _get_galore_optimizer, _get_apollo_optimizer).
void want_projecting(TrainerReading& from, std::string plain, std::string_view path) {
  constexpr std::string_view kInBackward = "layerwise";
  if (plain.ends_with(kInBackward)) {
    plain.resize(plain.size() - kInBackward.size());
    from.want("optimizer_in_backward", "true", path);
  }
  std::string name = "galore-adamw";
  if (plain == "galoreadamw8bit") name = "galore-adamw-8bit";
  else if (plain == "galoreadafactor") name = "galore-adafactor";
  else if (plain == "apolloadamw") name = "apollo-adamw";
  if (const auto rank = optimizer_setting(from, "rank")) name += ":" + *rank;
  for (const std::string_view other : {"proj", "proj_type"}) {
    const std::string usual = other == "proj" ? "random" : "std";
    if (optimizer_setting(from, other).value_or(usual) != usual) from.not_modelled("optim_args");
  }
  // A name, or an expression such as ".*.mlp.*": a part of a module's name.
  std::string targets = from.word("optim_target_modules").value_or("");
  if (targets == "all_linear") targets = "all-linear";
  std::string plain_targets;
  for (const char byte : targets) {
    const bool expression = byte == '*' || byte == '\\' || byte == '^' || byte == '$';
    if (byte == '.' && (plain_targets.empty() || plain_targets.back() == '+')) continue;
    if (!expression) plain_targets += byte;
  }
  for (std::size_t dot = plain_targets.find(".+"); dot != std::string::npos; dot = plain_targets.find(".+")) {
    plain_targets.erase(dot, 1);
  }
  while (plain_targets.ends_with('.')) plain_targets.pop_back();
  if (plain_targets.find_first_of("()[]|") != std::string::npos) from.not_modelled("optim_target_modules");
  else if (!plain_targets.empty()) name += "+" + plain_targets;
  from.know("optim_target_modules");
  from.want("optimizer", std::move(name), path);
}

}  // namespace

void want_optimizer(TrainerReading& from, std::string_view name, std::string_view path) {
  std::string plain = core::lower_case(name.substr(name.rfind('.') + 1));
  std::erase_if(plain, [](char byte) { return byte == '_' || byte == '-'; });
  if (plain.starts_with("galore") || plain.starts_with("apollo")) return want_projecting(from, std::move(plain), path);
  const auto* const row = std::find_if(std::begin(kOptimizerNames), std::end(kOptimizerNames),
                                       [&](const OptimizerName& one) { return one.name == plain; });
  constexpr std::string_view kUnlike[] = {"lomo", "adalomo"};  // backward updates, in float32
  if (std::ranges::any_of(kUnlike, [&](std::string_view begin) { return plain.starts_with(begin); })) {
    from.job().unlike = std::string(path) + " " + std::string(name);
  }
  if (row == std::end(kOptimizerNames)) {
    from.want("optimizer", core::lower_case(name.substr(name.rfind('.') + 1)), path);
    return;
  }
  from.want("optimizer", std::string(row->optimizer), path);
  if (row->fused) from.want("fused", "true", path);
}

void want_precision(TrainerReading& from, bool bf16_weights, bool bf16, bool fp16, std::string_view path) {
  if (bf16_weights) from.want("precision", "bf16", path);
  else if (bf16) from.want("precision", "amp-bf16", path);
  else if (fp16) from.want("precision", "amp-fp16", path);
  else from.want("precision", "fp32", path);
}

void want_lora_targets(TrainerReading& from, std::string_view path) {
  auto targets = from.word(path);
  if (!targets) return;
  if (targets->find_first_of("*()[]|\\") != std::string::npos) {
    if (auto names = adapt::targets_of_expression(*targets)) from.want("lora_targets", *std::move(names), path);
    else from.not_modelled(path);
    return;
  }
  std::erase(*targets, ' ');
  std::replace(targets->begin(), targets->end(), ',', '+');
  // A command's words may end in commas themselves.
  const auto doubled = [](char one, char next) { return one == '+' && next == '+'; };
  targets->erase(std::unique(targets->begin(), targets->end(), doubled), targets->end());
  if (*targets == "all") *targets = "all-linear";
  from.want("lora_targets", *std::move(targets), path);
}

void want_layers_by_name(TrainerReading& from) {
  const WantedOption* const targets = from.job().find("lora_targets");
  const bool all = targets != nullptr && targets->value.starts_with("all-linear");
  if (all) from.want("lora_targets", targets->value + "+by-name", targets->from);
}

void want_target_parameters(TrainerReading& from, std::string_view path) {
  const std::string names = from.word(path).value_or("");
  const WantedOption* const others = from.job().find("lora_targets");
  std::string targets = others == nullptr ? std::string() : others->value;
  if (!names.empty()) from.want("lora_targets", adapt::with_parameters(std::move(targets), names), path);
}

bool is_named(TrainerReading& from, std::span<const std::string_view> parts) {
  const std::string model = core::lower_case(from.job().model);
  return std::ranges::any_of(parts, [&](std::string_view part) { return model.find(part) != std::string::npos; });
}

void want_square_image(TrainerReading& from, std::int64_t pixels, std::string_view path) {
  constexpr std::int64_t kLargest = 1 << 16;
  std::int64_t side = 0;
  while (side < kLargest && (side + 1) * (side + 1) <= pixels) ++side;
  if (side > 0) from.want("image", std::to_string(side) + "x" + std::to_string(side), path);
}

void want_saved_modules(TrainerReading& from, std::string_view path) {
  const adapt::SavedModules saved = adapt::saved_modules(from.word(path).value_or(""));
  if (!saved.patterns.empty()) from.want("train", saved.patterns, path);
  if (!saved.all_named) from.not_modelled(path);
}

void want_zero(TrainerReading& from, std::string_view preset, std::string_view path) {
  const bool offloads = preset.ends_with("_offload");
  if (offloads) preset.remove_suffix(std::string_view("_offload").size());
  if (preset == "zero0") return;
  from.want("sharding", "zero-" + std::string(preset.substr(preset.size() - 1)), path);
  if (offloads) from.want("offload", preset == "zero3" ? "parameters" : "optimizer", path);
}

void want_liger(TrainerReading& from, std::string_view path) {
  from.want("loss", "fused", path);
  from.want("kernels", "liger", path);
}

void read_training_arguments(TrainerReading& from) {
  constexpr std::string_view kUsualBatch = "8";
  from.want("loop", "hf-trainer");
  from.want("batch_size", std::string(kUsualBatch));
  from.take("per_device_train_batch_size", "batch_size");
  from.take("gradient_accumulation_steps", "accumulate");
  want_optimizer(from, from.word("optim").value_or("adamw_torch"), "optim");
  if (const Setting* const decay = from.at("weight_decay"); decay != nullptr) {
    const bool none = decay->word.find_first_not_of("0.") == std::string::npos;
    from.want("weight_decay", none ? "false" : "true", "weight_decay");
  }
  if (from.on("torch_compile")) from.want("compile", "true", "torch_compile");
  if (from.on("use_liger_kernel")) want_liger(from, "use_liger_kernel");
  if (const auto path = from.word("deepspeed")) from.job().deepspeed = *path;
  else from.not_modelled("deepspeed");  // written out in place; a file is read
  read_fsdp(from);
  note_evaluation(from, "eval_strategy");
  note_evaluation(from, "evaluation_strategy");
  for (const std::string_view path :
       {"neftune_noise_alpha", "label_smoothing_factor", "auto_find_batch_size", "torch_empty_cache_steps"}) {
    from.not_modelled(path);
  }
  const WantedOption* const optimizer = from.job().find("optimizer");
  const bool projects =
      optimizer != nullptr && (optimizer->value.starts_with("galore") || optimizer->value.starts_with("apollo"));
  if (from.job().unlike.empty() && !projects) from.not_modelled("optim_target_modules");
  else from.know("optim_target_modules");
  const Setting* const sharding = from.root().field("fsdp_config");
  if (sharding != nullptr && sharding->kind != Setting::Kind::object) from.know("fsdp_config");
  from.without_effect_in("fsdp_config", kFsdpWithoutEffect);
  from.without_effect_in("gradient_checkpointing_kwargs", kCheckpointWords);
  from.without_effect(kWithoutEffect);
}

void settle_checkpoints(TrainerReading& from, std::string_view usual) {
  constexpr std::string_view kSettings = "gradient_checkpointing_kwargs";
  const WantedOption* const wanted = from.job().find("checkpointing");
  const WantedOption* const sharding = from.job().find("sharding");
  from.without_effect_in(kSettings, kCheckpointWords);
  const Setting* given = from.root().field(kSettings);
  if (given != nullptr && given->kind != Setting::Kind::object) from.know(kSettings);
  const auto parsed = given != nullptr && given->kind == Setting::Kind::text ? parse_json_settings(given->word)
                                                                             : core::Result<Setting>(core::Error{});
  if (parsed) given = &*parsed;
  const Setting* const said = given == nullptr ? nullptr : given->field("use_reentrant");
  if (wanted == nullptr || wanted->value != "full") return;
  const bool fsdp = sharding != nullptr && sharding->value.starts_with("fsdp");
  if (said != nullptr) {
    from.want("checkpointing", said->word == "true" ? "full+reentrant" : "full+non-reentrant", kSettings);
  } else if (fsdp && !usual.empty()) {
    from.want("checkpointing", std::string(usual), wanted->from);
  }
}

/// Its checkpoints of FSDP's units are not reentrant: accelerate 1.0 to 1.12, accelerator.py (prepare_model),
/// utils/fsdp_utils.py (fsdp2_apply_ac).
void want_accelerate_fsdp(TrainerReading& from) {
  const bool second = from.word("fsdp_config.fsdp_version").value_or("1") == "2";
  const std::string strategy = from.word("fsdp_config.fsdp_sharding_strategy").value_or("FULL_SHARD");
  const bool whole = strategy == "NO_SHARD" || strategy == "3";
  if (whole) from.want("sharding", "ddp", "fsdp_config.fsdp_sharding_strategy");
  else from.want("sharding", second ? "fsdp2" : "fsdp1", "fsdp_config");
  if (!whole && strategy != "1") from.not_modelled("fsdp_config.fsdp_sharding_strategy", "FULL_SHARD");
  if (second) from.take("fsdp_config.fsdp_reshard_after_forward", "reshard_after_forward");
  if (from.on("fsdp_config.fsdp_offload_params")) {
    from.want("offload", "parameters", "fsdp_config.fsdp_offload_params");
  }
  if (from.on("fsdp_config.fsdp_activation_checkpointing")) {
    from.want("checkpointing", "full+non-reentrant", "fsdp_config.fsdp_activation_checkpointing");
  }
}

void read_megatron_optimizer(TrainerReading& from) {
  if (from.on("optimizer_cpu_offload")) {
    from.not_modelled("optimizer_offload_fraction", "1");
    from.want("offload", "optimizer", "optimizer_cpu_offload");
  }
  from.know("use_precision_aware_optimizer");
  const auto halved = [&](std::string_view path) {
    const std::string type = from.word(path).value_or("fp32");
    return type == "bf16" || type == "fp16";
  };
  const bool halves = halved("exp_avg_dtype") && halved("exp_avg_sq_dtype");
  for (const std::string_view path : {"exp_avg_dtype", "exp_avg_sq_dtype"}) {
    if (!halves) from.not_modelled(path, "fp32");
  }
  for (const std::string_view path : {"main_grads_dtype", "main_params_dtype"}) from.not_modelled(path, "fp32");
  from.want("optimizer", halves ? "adamw-half-states" : "adamw", "exp_avg_dtype");
  from.want("fused", "true");
  const std::string optimizer = from.word("optimizer").value_or("adam");
  if (optimizer != "muon" && optimizer != "dist_muon") return from.not_modelled("optimizer", "adam");
  from.want("optimizer", "muon", "optimizer");
  from.want("fused", "false");
}

void want_megatron_options(TrainerReading& from) {
  std::string options;
  std::string_view first;
  const auto add = [&](std::string_view path, const std::string& value) {
    if (options.empty()) first = path;
    options += (options.empty() ? "" : ",") + std::string(path) + value;
  };
  const std::int64_t further = from.whole("mtp_num_layers").value_or(0);
  const bool staged = from.whole("pipeline_model_parallel_size").value_or(1) > 1;
  if (staged) from.not_modelled("mtp_num_layers");
  else if (further > 0) add("mtp_num_layers", "=" + std::to_string(further));
  if (further > 1) from.not_modelled("mtp_use_repeated_layer");
  from.know("mtp_loss_scaling_factor");
  if (from.on("grad_reduce_in_bf16")) add("grad_reduce_in_bf16", "");
  // Megatron-LM's older words for two kinds of graphs (core/transformer/transformer_config.py).
  std::string graphs = from.word("cuda_graph_impl").value_or("none");
  if (from.on("enable_cuda_graph")) graphs = "local";
  if (from.on("external_cuda_graph")) graphs = "transformer_engine";
  if (graphs != "none") add("cuda_graph_impl", "=" + graphs);
  if (!options.empty()) from.want("megatron_options", std::move(options), first);
}

void assume_length(TrainerReading& from, const std::string& key) {
  from.want("seq_length", "2048", key);
  from.job().missing.push_back("how long its samples are (" + key + "); 2,048 tokens are taken, and --seq says others");
}

void want_megatron_form(TrainerReading& from) {
  TrainerJob& job = from.job();
  for (const std::string_view other : {"peft", "train", "megatron_options"}) {
    if (job.find(other) != nullptr) return;
  }
  // Adapters of all linear layers: those of Megatron's modules, whose names differ from a config's.
  if (job.find("lora") != nullptr && from.word("target_modules").value_or("all-linear") != "all-linear") return;
  if (from.on("freeze_llm") || from.word("freeze_parameters") || !job.head.empty()) return;
  const bool fused = from.word("cross_entropy_loss_fusion").value_or("true") != "false";
  job.megatron_fields = std::string(R"("moe_router_dtype": "fp32", "cross_entropy_loss_fusion": )") +
                        (fused ? "true" : "false") + R"(, "cross_entropy_fusion_impl": ")" +
                        (from.word("cross_entropy_fusion_impl") == "te" ? "te" : "native") + "\"";
}

void read_megatron_float8(TrainerReading& from) {
  if (from.word("fp4_format")) from.want("quantize", "nvfp4", "fp4_format");
  const std::string recipe = from.word("fp8_recipe").value_or("delayed");
  const bool gathers = from.on("fp8_param_gather");
  if (!from.word("fp8_format")) return;
  constexpr std::string_view kRecipes[] = {"delayed", "tensorwise", "blockwise", "mxfp8"};
  if (!is_among(kRecipes, recipe)) return from.not_modelled("fp8_recipe");
  from.want("quantize", gathers ? "float8-params" : recipe == "mxfp8" ? "mxfp8" : "float8", "fp8_format");
}

}  // namespace gpumem::trainer_files
