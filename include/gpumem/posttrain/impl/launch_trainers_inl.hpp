#pragma once

#include "gpumem/core/csv.hpp"
#include "gpumem/posttrain/impl/launch_apart_inl.hpp"
#include "gpumem/posttrain/launch.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace gpumem::posttrain {

namespace launch_detail {

inline constexpr std::int64_t kSide = 28;
inline constexpr std::int64_t kLaterSide = 32;  ///< since Qwen3-VL

/// open-instruct's DPO under the names of TRL's, which it shares but for these. Its reference's log-probabilities are
/// computed before training. Source: open-instruct (2026-08), open_instruct/dpo_tune_cache.py; dpo_utils.py:
/// DPOConfig.
[[nodiscard]] inline std::vector<LaunchSetting> open_instruct_dpo(std::span<const LaunchSetting> settings) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"max_seq_length", "max_length"}, {"use_lora", "use_peft"},    {"lora_rank", "lora_r"},
      {"use_qlora", "load_in_4bit"},    {"packing", "padding_free"}, {"model_revision", "revision"}};
  constexpr std::string_view kIdle =
      "cache_logprobs_only concatenated_forward do_not_randomize_output_dir dpo_* gamma_beta_ratio "
      "load_balancing_weight optimizer_kwargs overwrite_cache preprocessing_num_workers revision sync_each_batch "
      "target_columns transform_fn try_* use_8bit_optimizer";
  const auto says = [&](std::string_view key) {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const LaunchSetting& at) { return at.key == key && is_true(at.value); });
  };
  std::vector<LaunchSetting> own;
  for (const LaunchSetting& setting : settings) {
    const auto renamed =
        std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& name) { return name.first == setting.key; });
    const bool idle = is_among(setting.key, kIdle) || is_among(setting.key, kOfOpenInstruct);
    if (renamed != std::end(kNames)) own.push_back({std::string(renamed->second), setting.value});
    else if (!idle) own.push_back(setting);
  }
  const auto adds = [&](std::string_view key, std::string_view word) {
    const auto same = [&](const LaunchSetting& at) { return at.key == key; };
    if (std::none_of(own.begin(), own.end(), same)) own.push_back({std::string(key), std::string(word)});
  };
  const bool paged = says("use_qlora") || says("dpo_use_paged_optimizer");
  if (paged) adds("optim", says("use_8bit_optimizer") ? "paged_adamw_8bit" : "paged_adamw_32bit");
  adds("precompute_ref_log_probs", "true");
  adds("dtype", "bfloat16");
  adds("gradient_checkpointing", "false");
  return own;
}

/// Source: LLaMA-Factory 0.9.4 to 0.9.6 (2026-08), src/llamafactory/hparams.
inline constexpr LaunchKey kLlamaFactoryKeys[] = {
    {"cutoff_len", named},
    {"stage", named},
    {"pref_loss", named},
    {"finetuning_type", named},
    {"lora_rank", named},  // of adapters alone
    {"lora_target", named},
    {"additional_target", post, "lora_modules_to_save"},
    {"quantization_bit", named},
    {"quantization_method", not_modelled, "bnb"},
    {"quantization_type", not_modelled, "nf4"},
    {"double_quantization", post, "use_bnb_nested_quant"},
    {"disable_gradient_checkpointing", named},
    {"use_reentrant_gc", named},
    {"flash_attn", named},
    {"pure_bf16", named},
    {"enable_liger_kernel", named},
    {"freeze_vision_tower", named},
    {"freeze_multi_modal_projector", post, "freeze_aligner"},
    {"freeze_language_model", not_modelled, "false"},
    {"image_max_pixels", post, "max_pixels"},
    {"ref_model_quantization_bit", not_modelled},
    {"reward_model", named},
    {"pissa_init", not_modelled, "false"},
    {"use_apollo", not_modelled, "false"},
    {"use_badam", not_modelled, "false"},
    {"use_adam_mini", not_modelled, "false"},
    {"use_muon", not_modelled, "false"},
    {"use_unsloth*", not_modelled, "false"},
    {"upcast_*", not_modelled, "false"},
    {"fp8*", not_modelled, "false"},
    {"packing"},       // of supervised samples
    {"neat_packing"},  // likewise
};
/// What changes no memory of LLaMA-Factory's.
inline constexpr std::string_view kOfLlamaFactory =
    "adapter_name_or_path apollo_* badam_* buffer_size cache_dir create_new_adapter default_system dpo_* "
    "enable_thinking "
    "export_* freeze_trainable_* galore_* image_* infer_* interleave_probs kto_* low_cpu_mem_usage loraplus_* "
    "mask_history media_dir mix_strategy oft_* overwrite_cache plot_loss ppo_* pref_* preprocessing_* ray_* "
    "ref_model_adapters resize_vocab reward_model_* simpo_* split_special_tokens streaming swanlab* template "
    "tokenized_path tool_format train_on_prompt use_fast_tokenizer use_swanlab val_size video_* vllm_*";

/// Source: axolotl 0.18 (2026-07), src/axolotl/utils/schemas: config.py, peft.py, trl.py, vllm.py.
inline constexpr LaunchKey kAxolotlKeys[] = {
    {"base_model", post, "model_name_or_path"},
    {"micro_batch_size", named},
    {"sequence_len", named},
    {"adapter", named},
    {"lora_r", named},  // of adapters alone
    {"lora_target_linear", named},
    {"load_in_4bit", named},
    {"optimizer", post, "optim"},
    {"peft_use_dora", post, "use_dora"},
    {"gradient_checkpointing", named},
    {"bf16", named},
    {"flash_attention", named},
    {"eager_attention", named},
    {"liger_rms_norm", named},
    {"liger_glu_activation", named},
    {"liger_swiglu", named},
    {"rl", named},
    {"reward_model", named},
    {"process_reward_model", named},
    {"rl_beta", post, "beta"},
    {"dpo_loss_type", post, "loss_type"},
    {"dpo_padding_free", post, "padding_free"},
    {"dpo_use_liger_kernel", post, "use_liger_kernel"},
    {"rl_adapter_ref_model", not_modelled, "false"},
    {"trl.*", named},
    {"vllm.gpu_memory_utilization", post, "vllm_gpu_memory_utilization"},
    {"vllm.tensor_parallel_size", post, "vllm_tensor_parallel_size"},
    {"vllm.*"},
    {"fsdp_version", named},
    {"fsdp_config.reshard_after_forward", not_modelled, "true"},
    {"fsdp_config.*", named},
    {"context_parallel_size", not_modelled, "1"},
    {"tensor_parallel_size", not_modelled, "1"},
    {"plugins", named},
    {"relora*", not_modelled},
    {"qat*", not_modelled},
    {"use_onebitllms", not_modelled, "false"},
};
/// What changes no memory of axolotl's.
inline constexpr std::string_view kOfAxolotl =
    "base_model_* bfloat16 chat_template* comet_* cosine_* cpo_alpha dataset* ddp* default_system_message dpo_* dp_* "
    "early_stopping* eot_tokens eta_min eval* evals_per_epoch experimental_skip_move_to_device "
    "flash_attn_* group_by_length hub_* is_* kto_* liger_* lora_* loss_watchdog_* low_cpu_mem_usage "
    "max_prompt_len mlflow_* model_type nemo_gym_* num_epochs num_labels orpo_alpha pad_to_* resize_token_* rl_* "
    "roles_to_train sample_packing* saves_per_epoch sequence_len shuffle_* simpo_gamma skip_prepare_dataset "
    "special_tokens* strict swanlab_* test_datasets tf32 tokenizer_* tokens train_on_* use_kernels "
    "use_scattermoe use_sonicmoe use_swanlab use_tensorboard val_set_size wandb_*";

/// The same of its block `trl:`, beside what TRL itself has.
inline constexpr std::string_view kOfTrlBlock =
    "async_prefetch chat_template_kwargs prefetch_depth replay_* reroll_* reward_num_workers rollout_func "
    "skip_zero_advantage_batches streaming_* use_data_producer vllm_lora_sync vllm_sync_interval";

/// Restates the settings of LLaMA-Factory and axolotl, which train with TRL's trainers or ones made of them, as TRL's.
class TrainersReader : private RestatingReader {
 public:
  TrainersReader(Program program, std::span<const LaunchSetting> settings)
      : RestatingReader(program, settings,
                        program == Program::axolotl ? KnownKeys{kAxolotlKeys, kOfAxolotl}
                                                    : KnownKeys{kLlamaFactoryKeys, kOfLlamaFactory}) {}

  [[nodiscard]] RestatedSettings read() {
    made_.program = program_;
    made_.names = Program::trl;
    take_all();
    if (program_ == Program::axolotl) read_axolotl();
    else read_llama_factory();
    return std::move(made_);
  }

 private:
  static constexpr std::int64_t kRank = 8;
  static constexpr std::string_view kOfTrl = "trl.";

  void refuse(std::string message) {
    made_.fault = core::Error{core::ErrorCode::invalid_argument, std::move(message), {}};
  }

  /// A whole model is loaded in float32 and trained under autocast, unless it is said to be bfloat16; adapters learn
  /// over one in bfloat16. Source: LLaMA-Factory 0.9.4, model/adapter.py: init_adapter, model/model_utils/visual.py:
  /// patch_target_modules, liger_kernel.py; hparams/finetuning_args.py.
  void read_llama_factory() {
    const std::string_view stage = value("stage");
    const std::string_view loss = value("pref_loss");
    const bool without = loss == "orpo" || loss == "simpo";
    if (stage == "ppo") {
      return refuse(
          "stage: PPO of LLaMA-Factory, whose policy has the head of the values, too, is not modelled; say the "
          "job with options, program=trl and algorithm=ppo, which count a critic of its own");
    }
    std::string_view trainer = stage.empty() || stage == "pt" ? "sft" : stage;
    if (stage == "dpo" && without) trainer = loss;
    if (!stage.empty() || !names_file()) say("trainer", std::string(trainer));
    constexpr std::int64_t kCutoff = 2048;
    say("max_length", std::max<std::int64_t>(number("cutoff_len", kCutoff), 1));
    const std::string_view type = value("finetuning_type").empty() ? "lora" : value("finetuning_type");
    const bool adapts = type == "lora";
    if (!adapts && type != "full") {
      return refuse("finetuning_type: " + core::quoted(core::shortened(type, 40)) +
                    " is not modelled; say lora or full");
    }
    const FrozenParts frozen = {on("freeze_vision_tower", true), on("freeze_multi_modal_projector", true)};
    if (adapts) learn_adapters("lora_rank", kRank, value("lora_target"), "+" + part_names(frozen, "not:", "+"));
    const bool half = on("fp16");
    const bool whole = !adapts && !on("pure_bf16");
    const std::string_view narrow = half ? "float16" : "bfloat16";
    say("dtype", std::string(whole ? "float32" : narrow));
    if (!half) say("bf16", on("bf16") || on("pure_bf16"));
    if (adapts && on("pure_bf16")) made_.not_modelled.emplace_back("pure_bf16 true");
    say("gradient_checkpointing", !on("disable_gradient_checkpointing"));
    say("use_reentrant_gc", on("use_reentrant_gc", true));
    // Losses of preferences read the logits, so Liger's stays out (liger_kernel.py: require_logits).
    if (on("enable_liger_kernel")) say("liger_layers", true);
    const std::string_view kernel = value("flash_attn");
    if (kernel == "fa2" || kernel == "disabled")
      say("attn_implementation", std::string(kernel == "fa2" ? "flash" : "eager"));
    const std::string_view bits = value("quantization_bit");
    if (bits == "4" || bits == "8") say(bits == "4" ? "load_in_4bit" : "load_in_8bit", true);
    if (bits == "4" && value("double_quantization").empty()) say("use_bnb_nested_quant", true);
    say("freeze_vit", frozen.towers);
    if (stage == "rm") say("disable_dropout", false);
  }
  /// Of which nothing was read: it may say what is trained.
  [[nodiscard]] bool names_file() const { return !value("config").empty(); }
  void learn_adapters(std::string_view rank, std::int64_t usual, std::string_view targets, const std::string& but) {
    say("use_peft", true);
    say("lora_r", number(rank, usual));
    std::string names(targets.empty() || targets == "all" ? "all-linear" : targets);
    if (names == "all-linear") names += (but.size() > 1 ? but : std::string()) + "+by-name";
    say("lora_target_modules", std::move(names));
    if (value("lora_dropout").empty()) say("lora_dropout", std::string("0"));
  }

  /// Source: axolotl 0.18, core/builders/rl.py, train.py: setup_reference_model; core/trainers/grpo/__init__.py.
  void read_axolotl() {
    const std::string_view kind = value("rl");
    constexpr std::pair<std::string_view, std::string_view> kKinds[] = {{"ipo", "dpo"}, {"gdpo", "grpo"}};
    std::string trainer(kind.empty() ? "sft" : kind);
    if (on("reward_model")) trainer = "rm";
    if (on("process_reward_model")) trainer = "prm";
    for (const auto& [name, own] : kKinds) {
      if (trainer == name) trainer = own;
    }
    if (kind == "ebft") return refuse("rl: 'ebft' is not modelled; say the job with options");
    const bool adapts = value("adapter") == "lora" || value("adapter") == "qlora";
    if (!adapts && !value("adapter").empty()) return refuse("adapter: only lora and qlora are modelled");
    if (trainer == "simpo" && !adapts)
      made_.not_modelled.emplace_back("the second copy of the model that rl simpo loads");
    if (trainer != "sft" || !names_file()) say("trainer", std::move(trainer));
    say("per_device_train_batch_size", std::max<std::int64_t>(number("micro_batch_size", 1), 1));
    constexpr std::int64_t kLength = 512;
    say("max_length", std::max<std::int64_t>(number("sequence_len", kLength), 1));
    const bool all = on("lora_target_linear");
    if (adapts) learn_adapters("lora_r", kRank, all ? "all" : value("lora_target_modules"), {});
    if (on("load_in_4bit")) say("load_in_4bit", true);
    if (on("load_in_4bit")) say("use_bnb_nested_quant", true);
    const bool whole = !on("fp16") && !value("bf16").empty() && is_false(value("bf16"));
    const std::string_view narrow = on("fp16") ? "float16" : "bfloat16";
    say("dtype", std::string(whole ? "float32" : narrow));
    if (whole) say("bf16", false);
    const std::string_view again = value("gradient_checkpointing");
    const bool by_fsdp = on("fsdp_config.activation_checkpointing") || on("fsdp_config.fsdp_activation_checkpointing");
    say("gradient_checkpointing", by_fsdp || (!again.empty() && !is_false(again)));
    // core/builders/base.py: _configure_gradient_checkpointing, utils/config/__init__.py: normalize_config.
    constexpr std::string_view kReentrant = "gradient_checkpointing_kwargs.use_reentrant";
    const bool reentrant = kind.empty() && !says("unfrozen_parameters") && !on("activation_offloading");
    if (by_fsdp || value(kReentrant).empty()) say(kReentrant, reentrant && !by_fsdp);
    if (again.starts_with("offload")) made_.not_modelled.push_back("gradient_checkpointing " + std::string(again));
    if (on("flash_attention") || on("eager_attention")) {
      say("attn_implementation", std::string(on("flash_attention") ? "flash" : "eager"));
    }
    if (says("fsdp_config.")) {
      const bool offloads = on("fsdp_config.offload_params") || on("fsdp_config.fsdp_offload_params");
      say("fsdp", std::string(offloads ? "full_shard+offload" : "full_shard"));
      const std::string_view version = first({"fsdp_version", "fsdp_config.fsdp_version", "fsdp_config.version"});
      say("fsdp_config.version", std::string(version.empty() ? "2" : value(version)));
    }
    take_block();
    take_layers();
    const std::string_view plugins = value("plugins");
    const auto names = [&](std::string_view name) { return plugins.find(name) != plugins.npos; };
    const bool idle = names("Liger") || names("CutCross") || names("SwanLab");
    constexpr std::size_t kShown = 100;
    if (!plugins.empty() && !idle) made_.not_modelled.push_back("plugins " + core::shortened(plugins, kShown));
  }
  /// Liger's norms and gated layers: both, or what is left changes little where blocks are computed again.
  void take_layers() {
    const bool gates = on("liger_swiglu") || on("liger_glu_activation");
    if (on("liger_rms_norm") && gates) return say("liger_layers", true);
    const std::string_view again = value("gradient_checkpointing");
    if (!again.empty() && !is_false(again)) return;
    for (const std::string_view key : {"liger_rms_norm", "liger_glu_activation", "liger_swiglu"}) {
      if (on(key)) made_.not_modelled.push_back(std::string(key) + " true");
    }
  }
  /// The settings of TRL's trainer that generates.
  void take_block() {
    constexpr std::size_t kShown = 80;
    for (const auto& [key, word] : values_) {
      if (!key.starts_with(kOfTrl)) continue;
      std::string_view own = std::string_view(key).substr(kOfTrl.size());
      if (own == "use_liger_loss") own = "use_liger_kernel";
      if (find_key(Program::trl, own) != nullptr) put(own, key);
      else if (!changes_nothing(Program::trl, own) && !is_among(own, kOfTrlBlock)) {
        made_.unknown.push_back(core::shortened(key, kShown));
      }
    }
  }
};

inline bool is_restated(Program program) {
  using enum Program;
  const Program all[] = {nemo_rl,       nemo_rl_megatron, slime,    areal,   areal_megatron, roll,
                         roll_megatron, open_instruct,    prime_rl, axolotl, llama_factory};
  return std::find(std::begin(all), std::end(all), program) != std::end(all);
}
/// The program whose settings these are, however it trains.
inline Program settings_of(Program program) {
  using enum Program;
  if (program == nemo_rl_megatron) return nemo_rl;
  if (program == areal_megatron) return areal;
  return program == roll_megatron ? roll : program;
}
inline Program in_megatron(Program program) {
  using enum Program;
  if (program == nemo_rl) return nemo_rl_megatron;
  if (program == areal) return areal_megatron;
  return program == roll ? roll_megatron : program;
}
/// Under verl's names, or TRL's.
inline RestatedSettings restated(Program whose, std::span<const LaunchSetting> settings) {
  const bool trainers = whose == Program::axolotl || whose == Program::llama_factory;
  if (trainers) return TrainersReader(whose, settings).read();
  const bool apart = whose == Program::open_instruct || whose == Program::prime_rl;
  return apart ? ApartReader(whose, settings).read() : OtherReader(whose, settings).read();
}
/// Whether they are of open-instruct's script of preferences.
inline bool prefers(std::span<const LaunchSetting> settings) {
  return std::any_of(settings.begin(), settings.end(), [](const LaunchSetting& at) {
    return at.key == "trainer" && model::value_of(kAlgorithms, at.value) == Algorithm::dpo;
  });
}

/// What the settings say of the calls of checkpointed blocks.
struct BlockCalls {
  std::optional<std::string_view> reentrant;  ///< in gradient_checkpointing_kwargs
  std::optional<std::string_view> factorys;   ///< LLaMA-Factory's use_reentrant_gc
};

/// All blocks, and whether their calls are reentrant: as it is said, else as the program has them, where FSDP makes
/// them differ. Source: TRL 1.9, trainer/dpo_trainer.py and others; ms-swift 4, trainers/mixin.py:
/// _fix_gradient_checkpointing; LLaMA-Factory 0.9.4, model/model_utils/checkpointing.py: prepare_model_for_training.
inline std::string_view whole_blocks(Program program, model::Shardings kind, BlockCalls said) {
  const bool second = kind == model::Shardings::fsdp2;
  const bool fsdp = second || kind == model::Shardings::fsdp1;
  if (said.factorys && fsdp && !said.reentrant) said.reentrant = second ? "false" : *said.factorys;
  else if (program == Program::trl && !said.reentrant && !said.factorys) said.reentrant = "false";
  else if (program == Program::ms_swift && fsdp && !said.reentrant) said.reentrant = "true";
  if (!said.reentrant) return "full";
  return is_true(*said.reentrant) ? "full+reentrant" : "full+non-reentrant";
}

/// What is on the host while others run.
inline Waiting waiting(bool model, bool states) {
  if (model) return states ? Waiting::both : Waiting::model;
  return states ? Waiting::optimizer : Waiting::none;
}

/// A value as Python writes it into the environment.
inline std::string environment_word(const core::JsonValue& value) {
  using Kind = core::JsonValue::Kind;
  switch (value.kind()) {
    case Kind::boolean: return value.boolean() ? "True" : "False";
    case Kind::integer: return std::to_string(value.integer());
    case Kind::real: return std::to_string(value.real());
    case Kind::text: return std::string(value.text());
    default: return {};
  }
}

/// The settings with the items of objects in JSON, which a file has one by one: of `gradient_checkpointing_kwargs`, and
/// of ms-swift's `model_kwargs`, which go into the environment over what is there. What is no object stays as it is.
/// Source: transformers 4.57, training_args.py (_convert_str_dict); ms-swift 4, arguments/base_args/base_args.py
/// (_init_model_kwargs).
inline std::vector<LaunchSetting> with_objects(Program program, std::span<const LaunchSetting> settings) {
  constexpr std::string_view kItems = "model_kwargs.";
  const bool swift = program == Program::ms_swift || program == Program::megatron;
  std::vector<LaunchSetting> made;
  std::vector<LaunchSetting> variables;
  const auto add = [&](std::string_view name, std::string value) {
    std::string key = "env:";
    for (const char letter : name)
      key += letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
    variables.push_back({std::move(key), std::move(value)});
  };
  for (const LaunchSetting& setting : settings) {
    if (swift && setting.key.starts_with(kItems)) {
      add(std::string_view(setting.key).substr(kItems.size()), setting.value);
      continue;
    }
    const bool variable = swift && setting.key == "model_kwargs";
    const bool given = variable || setting.key == "gradient_checkpointing_kwargs";
    const auto said =
        given ? core::JsonDocument::parse(setting.value) : core::Result<core::JsonDocument>(core::Error{});
    if (!said || !said->root().is(core::JsonValue::Kind::object)) {
      made.push_back(setting);
      continue;
    }
    for (const core::JsonValue& item : said->root().items()) {
      if (variable) add(item.key(), environment_word(item));
      else made.push_back({setting.key + "." + std::string(item.key()), environment_word(item)});
    }
  }
  made.insert(made.end(), variables.begin(), variables.end());  // the last one counts
  return made;
}

/// How the program loads models that speak. LLaMA-Factory takes their thinker out (0.9.4 to 2026-08, model/loader.py:
/// load_model). ms-swift's Megatron makes the thinker alone, whatever the environment says; what makes speech waits on
/// the host for the checkpoint (mcore-bridge, 2026-05, model/mm_gpts/qwen.py, qwen3_omni.py: prepare_model;
/// bridge/gpt_bridge.py: _generator_sd).
inline core::Result<Launch> with_speech(Program program, std::span<const LaunchSetting> settings,
                                        core::Result<Launch> launch) {
  if (!launch) return launch;
  PostTrainingRequest& to = launch->request;
  if (program == Program::llama_factory || program == Program::megatron) to.holds_speech = false;
  if (program != Program::ms_swift) return launch;
  to.holds_speech = true;
  for (const LaunchSetting& setting : settings) {
    if (setting.key != "env:ENABLE_AUDIO_OUTPUT" || is_variable(setting.value)) continue;
    to.holds_speech = holds_speech(setting.value);
    to.speech_key = "ENABLE_AUDIO_OUTPUT";
  }
  return launch;
}

}  // namespace launch_detail

/// A count of tokens is of the model's own patches, too. Source: qwen-vl-utils 0.0.14, vision_process.py: fetch_image
/// (IMAGE_MAX_TOKEN_NUM times image_patch_size, usually 14, and SPATIAL_MERGE_SIZE); ms-swift 4.6,
/// template/templates/qwen.py (image_patch_size of Qwen3-VL's and Qwen3-Omni's processors alone).
GPUMEM_INLINE std::optional<std::int64_t> side_of_qwen(std::string_view model) {
  constexpr std::string_view kLater[] = {"qwen3-vl", "qwen3-omni", "qwen3.5", "qwen3.6"};
  constexpr std::string_view kEarlier[] = {"qwen2-vl", "qwen2.5-vl", "qwen2.5-omni"};
  const std::string name = core::lower_case(model);
  const auto named = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (std::any_of(std::begin(kLater), std::end(kLater), named)) return launch_detail::kLaterSide;
  if (std::any_of(std::begin(kEarlier), std::end(kEarlier), named)) return launch_detail::kSide;
  return std::nullopt;
}

GPUMEM_INLINE std::int64_t side_of_token(std::string_view model, bool counted) {
  return side_of_qwen(model).value_or(counted ? launch_detail::kLaterSide : launch_detail::kSide);
}

GPUMEM_INLINE bool holds_speech(std::string_view said) {
  constexpr std::string_view kOff[] = {"n", "no", "f", "false", "off", "0"};
  return std::find(std::begin(kOff), std::end(kOff), core::lower_case(said)) == std::end(kOff);
}

GPUMEM_INLINE void take_speech(PostTrainingRequest& request,
                               std::string (*named)(const std::string& name, std::string_view head, bool held)) {
  if (!request.holds_speech) return;
  PostTrainingOptions& to = request.options;
  const std::string policy = request.training.summary;
  for (std::string* const name :
       {&request.training.summary, &to.reference_model, &to.critic_model, &to.reward_model, &to.teacher_model}) {
    std::string made = named(*name, {}, *request.holds_speech);
    std::replace(request.named.begin(), request.named.end(), *name, made);
    *name = std::move(made);
  }
  if (request.training.summary != policy || request.speech_key.empty()) return;
  request.assumed.push_back({"settings", no_speech(request.speech_key)});
}

}  // namespace gpumem::posttrain
