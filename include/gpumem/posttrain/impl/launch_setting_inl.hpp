#pragma once

#include "gpumem/adapt/peft_methods.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/posttrain/impl/launch_inl.hpp"
#include "gpumem/posttrain/launch.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpumem::posttrain {

namespace launch_detail {

/// A program's settings, one by one and by their names, and the launch that is made of them.
class SettingReader {
 protected:
  explicit SettingReader(RestatedSettings restated)
      : program_(restated.names),
        told_megatron_(restated.megatron),
        settings_(std::move(restated.settings)),
        restated_(true),
        fault_(std::move(restated.fault)) {
    made_.request.options.program = program_;
    made_.unknown = std::move(restated.unknown);
    made_.not_modelled = std::move(restated.not_modelled);
    made_.decided = std::move(restated.decided);
  }

  /// verl's Megatron has verl's settings.
  SettingReader(Program program, std::span<const LaunchSetting> settings)
      : program_(program == Program::verl_megatron ? Program::verl : program),
        told_megatron_(program == Program::verl_megatron) {
    made_.request.options.program = program_;
    settings_.reserve(settings.size());
    for (const LaunchSetting& setting : settings) {
      const std::string_view own = own_name(program_, setting.key);
      renamed_ = renamed_ || own != setting.key;
      const bool off = is_switched_off(program_, setting);
      settings_.push_back({std::string(own.substr(off ? kNo.size() : 0)), off ? "false" : setting.value, setting.key});
    }
  }

  core::Status take_all() {
    for (const OwnSetting& setting : settings_)
      if (core::Status taken = take(setting); !taken) return taken;
    return core::Done{};
  }

  /// Whether the policy is trained by Megatron, of verl's programs where the settings say so: verl's own file for it is
  /// ppo_megatron_trainer.yaml, since 0.8 ppo_trainer.yaml with model_engine=megatron.
  [[nodiscard]] bool in_megatron() const {
    if (program_ != Program::verl) return program_ == Program::megatron;
    if (told_megatron_) return true;
    if (const auto strategy = value("actor_rollout_ref.actor.strategy")) return *strategy == "megatron";
    if (const auto engine = value("model_engine")) return *engine == "megatron";
    const auto names_it = [&](std::string_view key) { return word({key}).find("megatron") != std::string_view::npos; };
    return names_it("config_name") || names_it("defaults") || names_megatron();
  }
  [[nodiscard]] bool names_megatron() const {
    const auto of_it = [](const OwnSetting& at) { return at.key.starts_with("actor_rollout_ref.actor.megatron."); };
    return std::any_of(settings_.begin(), settings_.end(), of_it);
  }
  [[nodiscard]] bool of_trl() const { return program_ == Program::trl || program_ == Program::unsloth; }
  [[nodiscard]] bool of_swift() const { return program_ == Program::ms_swift || program_ == Program::megatron; }
  [[nodiscard]] model::TrainingJob& training() { return made_.request.training.training; }
  [[nodiscard]] PostTrainingOptions& options() { return made_.request.options; }
  [[nodiscard]] const AlgorithmRow& algorithm() { return row_of(options().algorithm); }

  core::Status take(const OwnSetting& setting) {
    const LaunchKey* const row = row_of_key(setting.key);
    if (row == nullptr) {
      if (!restated_ && !changes_nothing(program_, setting.key))
        made_.unknown.push_back(core::shortened(setting.given, 80));
      return core::Done{};
    }
    // A variable of the shell is as if it was not given; but a further model is there, whatever it is.
    const bool further = row->means == Means::post && names_model(*row);
    const bool variable = is_variable(names_model(*row) ? folder_of(setting.value) : setting.value);
    if (variable && !further && row->means != Means::nothing) return core::Done{};
    switch (row->means) {
      case Means::training: return take_training(*row, setting);
      case Means::post: return take_post(*row, setting);
      case Means::model: made_.model = setting.value; break;
      case Means::not_modelled:
        if (!is_usual(setting.value, usual_value(*row, setting))) say_not_modelled(setting.key, setting.value);
        break;
      case Means::named:
      case Means::nothing: break;
    }
    return core::Done{};
  }

  [[nodiscard]] const LaunchKey* row_of_key(std::string_view key) const {
    const auto own = std::find_if(std::begin(kRestatedKeys), std::end(kRestatedKeys),
                                  [&](const LaunchKey& at) { return restated_ && at.key == key; });
    return own != std::end(kRestatedKeys) ? own : find_key(program_, key);
  }

  void say_not_modelled(std::string_view key, std::string_view value) {
    const OwnSetting* const setting = find(key);
    const std::string_view given = setting == nullptr ? key : std::string_view(setting->given);
    made_.not_modelled.push_back(core::shortened(given, 80) + " " + core::shortened(value, 60));
  }
  /// Where verl's critic and reference are modelled as its actor is, the actor's value is the usual one.
  [[nodiscard]] std::string_view usual_value(const LaunchKey& row, const OwnSetting& setting) const {
    const std::string actors = actors_key(program_, setting.key);
    return actors.empty() ? row.option : value(actors).value_or(row.option);
  }

  core::Status take_training(const LaunchKey& row, const OwnSetting& setting) {
    if (is_false(setting.value) && row.option != "sequence_parallel") return core::Done{};
    return with_key(set(row.option, setting.value), setting);
  }
  core::Status take_post(const LaunchKey& row, const OwnSetting& setting) {
    if (is_false(setting.value)) return core::Done{};
    return with_key(set_post_training_option(options(), row.option, setting.value), setting);
  }
  void say_missing(std::string what, std::vector<std::string_view> options, bool required = true) {
    made_.missing.push_back({std::move(what), std::move(options), required});
  }
  static core::Status with_key(core::Status taken, const OwnSetting& setting) {
    if (taken) return taken;
    const std::string key = core::shortened(setting.given, 60);
    return core::Error{core::ErrorCode::invalid_argument, key + ": " + taken.error().message, {}};
  }
  core::Status set(std::string_view name, std::string_view word) {
    const job::JobOption* const option = job::find_option(name);
    if (option == nullptr) return core::Done{};
    return job::set_option_text(*option, made_.request.training, word);
  }
  void refuse(std::string message) {
    if (!fault_) fault_ = core::Error{core::ErrorCode::invalid_argument, std::move(message), {}};
  }
  void want(std::string_view name, std::string_view word) {
    if (core::Status taken = set(name, word); !taken && !fault_) fault_ = taken.error();
  }

  /// A setting; the last one counts. Null: it is not given, or a variable of the shell.
  [[nodiscard]] const OwnSetting* find(std::string_view key) const {
    const OwnSetting* found = nullptr;
    for (const OwnSetting& setting : settings_) {
      if (setting.key == key && !is_variable(setting.value)) found = &setting;
    }
    return found;
  }
  [[nodiscard]] std::optional<std::string_view> value(std::string_view key) const {
    const OwnSetting* const setting = find(key);
    return setting == nullptr ? std::nullopt : std::optional<std::string_view>(setting->value);
  }
  [[nodiscard]] std::string_view word(std::initializer_list<std::string_view> keys, std::string_view usual = {}) const {
    for (const std::string_view key : keys) {
      if (const auto found = value(key)) return *found;
    }
    return usual;
  }
  [[nodiscard]] bool on(std::initializer_list<std::string_view> keys, bool usual = false) const {
    return is_true(word(keys, usual ? "true" : "false"));
  }
  [[nodiscard]] std::int64_t whole(std::initializer_list<std::string_view> keys, std::int64_t usual) {
    const OwnSetting* setting = nullptr;
    for (const std::string_view key : keys) {
      if (setting == nullptr) setting = find(key);
    }
    if (setting == nullptr || setting->value.empty()) return usual;
    const std::optional<std::int64_t> number = core::parse_whole(setting->value);
    if (number && *number >= 0 && *number <= INT32_MAX) return *number;
    refuse(core::shortened(setting->given, 60) + ": " + core::quoted(core::shortened(setting->value, 60)) +
           " is no whole number");
    return usual;
  }

  Program program_;
  bool told_megatron_;  ///< somebody says that this is verl's Megatron
  std::vector<OwnSetting> settings_;
  bool restated_ = false;  ///< another program's, under verl's names
  bool renamed_ = false;   ///< some had another name: OpenRLHF's, since 0.9
  Launch made_;
  std::optional<core::Error> fault_;
};

/// What is trained, and over which GPUs.
class LayoutReader : protected SettingReader {
 public:
  LayoutReader(Program program, std::span<const LaunchSetting> settings, std::int64_t gpus)
      : SettingReader(program, settings), gpus_(gpus) {}
  LayoutReader(RestatedSettings restated, std::int64_t gpus) : SettingReader(std::move(restated)), gpus_(gpus) {}

 protected:
  /// The word that names it. A script's name ("train_ppo_ray") says less than an estimator of advantages.
  [[nodiscard]] std::string_view algorithm_word() const {
    auto name = word({kGivenTrainer, "rlhf_type", "algorithm.adv_estimator", "advantage_estimator", "trainer"});
    // OpenRLHF's script of PPO alone has these.
    const bool generates = value("prompt_max_len") || value("generate_max_len") || value("micro_rollout_batch_size");
    const bool ppo = program_ == Program::verl || (program_ == Program::openrlhf && generates);
    // EasyR1's is GRPO unless it is told otherwise (trainer/config.py).
    if (name.empty() && program_ == Program::verl && renamed_) return "grpo";
    return name.empty() && ppo ? "gae" : name;
  }

  void choose_algorithm() {
    const std::string_view name = algorithm_word();
    const bool normed = name.starts_with("group");  // OpenRLHF's name of it
    if (const auto known = normed ? std::optional(Algorithm::grpo) : model::value_of(kAlgorithms, name)) {
      options().algorithm = *known;
      return;
    }
    if (const auto means = algorithm_of(name)) {
      options().algorithm = *means;
      return;
    }
    if (is_supervised(name)) {
      if (!fault_) fault_ = supervised(name);
      return;
    }
    say_missing(name.empty() ? "the algorithm" : "an algorithm that is known: " + core::quoted(name), {"algorithm"});
  }

  /// How many the settings name; 0: none.
  [[nodiscard]] std::int64_t named_gpus() {
    if (program_ == Program::verl) return whole({"trainer.n_gpus_per_node"}, 0) * whole({"trainer.nnodes"}, 1);
    if (program_ == Program::openrlhf && value("actor_num_gpus_per_node")) {
      return whole({"actor_num_gpus_per_node"}, 0) * whole({"actor_num_nodes"}, 1);
    }
    if (value("num_processes")) return whole({"num_processes"}, 0);  // accelerate's, of all machines
    const std::int64_t per_node = whole({"env:NPROC_PER_NODE", "nproc_per_node", "num_gpus"}, 0);
    const std::int64_t written = of_trl() ? gpus_of_file(word({"config_file", "accelerate_config"})) : 0;
    return per_node > 0 ? per_node * whole({"env:NNODES", "nnodes"}, 1) : written;
  }

  void choose_layout() {
    model::Layout& layout = training().layout;
    const std::int64_t named = named_gpus();
    const std::int64_t least =
        std::min({layout.tensor_parallel, layout.pipeline_parallel, layout.context_parallel, std::int64_t{1}});
    const std::int64_t split =
        least < 1 ? 0
                  : core::bounded_product({layout.tensor_parallel, layout.pipeline_parallel, layout.context_parallel});
    made_.gpus = std::max<std::int64_t>({gpus_ > 0 ? gpus_ : named, split, 1});
    if (split < 1) return refuse("a parallel size is below 1");
    if (made_.gpus % split != 0) {
      refuse("the layout takes " + std::to_string(split) + " GPUs, which do not divide " + std::to_string(made_.gpus));
      return;
    }
    layout.data_parallel = made_.gpus / split;
    for (const std::string_view file : {"config_file", "accelerate_config"}) {
      if (named == 0 && value(file)) say_not_modelled(file, *value(file));
    }
    if (program_ == Program::verl && in_megatron()) {
      options().program = Program::verl_megatron;
      layout.sequence_parallel = on({"actor_rollout_ref.actor.megatron.sequence_parallel"}, true);
    }
    if (layout.tensor_parallel == 1) layout.sequence_parallel = false;  // Megatron switches it off then
    if (in_megatron()) layout.sharding.kind = model::Shardings::distributed_optimizer;
    if (in_megatron()) return;
    // FSDP of PyTorch 1 on one GPU casts unit by unit, too (NO_SHARD: _free_low_precision_sharded_param).
    const bool second = word({"actor_rollout_ref.actor.strategy"}) == "fsdp2" || made_.gpus == 1;
    const bool fsdp = program_ == Program::verl && word({"deepspeed_config_file"}).empty();
    if (fsdp) layout.sharding.kind = second ? model::Shardings::fsdp2 : model::Shardings::fsdp1;
    if (made_.gpus == 1) return;
    choose_deepspeed();
    choose_fsdp();
    if (layout.sharding.kind == model::Shardings::none) layout.sharding.kind = model::Shardings::ddp;
  }

  void choose_fsdp() {
    const std::string_view asked = word({"fsdp"});
    if (is_false(asked) || training().layout.sharding.kind != model::Shardings::none) return;
    const FsdpWords words = fsdp_words(asked);
    if (!words.known) say_not_modelled("fsdp", asked);
    if (!words.shards) return;
    const bool second = asked == "fsdp2" || word({"fsdp_config.fsdp_version", "fsdp_config.version"}) == "2";
    want("sharding", second ? "fsdp2" : "fsdp1");
    if (words.offloads) want_offload(model::Offload::parameters, "fsdp", asked);
  }

  /// "zero2", "zero3_offload" of ms-swift, a path that says so, or OpenRLHF's stage, which is 2 unless it is given.
  void choose_deepspeed() {
    const std::string_view own = word({"deepspeed", "deepspeed_config_file"});
    const std::string_view config = own.empty() ? word({"config_file", "accelerate_config"}) : own;  // accelerate's
    if (own.empty() && config.find("fsdp") != std::string_view::npos) {
      want("sharding", config.find("fsdp2") != std::string_view::npos ? "fsdp2" : "fsdp1");
      return;
    }
    if (own.empty() && config.find("_gpu") != std::string_view::npos) return;  // multi_gpu.yaml
    std::string_view stage = word({"zero_stage"}, program_ == Program::openrlhf ? "2" : "");
    for (const std::string_view each : {"0", "1", "2", "3"}) {
      for (const std::string_view name : {"zero", "zero_", "stage", "stage_", "_z"}) {
        if (config.find(std::string(name).append(each)) != std::string_view::npos) stage = each;
      }
    }
    // In bfloat16 stage 0 shares masters and states as stage 1 does. Source: DeepSpeed 0.16, runtime/engine.py:
    // _configure_optimizer; runtime/bf16_optimizer.py: _setup_for_real_optimizer.
    if (stage == "0") stage = "1";
    if (stage == "1" || stage == "2" || stage == "3") want("sharding", "zero-" + std::string(stage));
    made_.request.buckets_by_width = of_swift() && stage == "3";  // its zero3.json says "auto"
    if (!config.empty() && stage.empty()) say_missing("what is in " + core::quoted(config), {"sharding"});
    const bool told =
        config.find("offload") != std::string_view::npos && config.find("no_offload") == std::string_view::npos;
    if (!told && !on({"adam_offload"})) return;
    std::string_view key = "adam_offload";
    for (const std::string_view each : {"config_file", "deepspeed_config_file", "deepspeed"}) {
      if (told && value(each) == config) key = each;
    }
    want_offload(model::Offload::optimizer, key, told ? config : word({key}));
    if (stage == "3" && told) {
      made_.decided.push_back(std::string(key) + " " + core::shortened(config, 60) +
                              ": parameters may be on the host, too; the GPU's share of them is counted");
    }
  }

  /// A job has one way to offload: the one that takes the most from the GPU. The other one is named.
  void want_offload(model::Offload wanted, std::string_view key, std::string_view value) {
    using enum model::Offload;
    constexpr std::array kLeastFirst = {none, activations, checkpoints, optimizer, parameters};
    const auto rank = [&](model::Offload kind) {
      return std::find(kLeastFirst.begin(), kLeastFirst.end(), kind) - kLeastFirst.begin();
    };
    if (wanted == training().offload) return;
    LaunchSetting other{std::string(key), std::string(value)};
    if (rank(wanted) > rank(training().offload)) {
      training().offload = wanted;
      std::swap(other, offloads_);
    }
    if (!other.key.empty()) say_not_modelled(other.key, other.value);
  }

  std::int64_t gpus_;       ///< 0: as the settings say
  LaunchSetting offloads_;  ///< that says how the job offloads; without a key: none does
};

/// How the policy is trained: adapters, precision, kernels, the optimizer.
class TrainingReader : protected LayoutReader {
 protected:
  using LayoutReader::LayoutReader;

  [[nodiscard]] bool adapts() const {
    const std::string_view tuner = word({"tuner_type", "train_type"}, of_swift() ? "lora" : "");
    const std::string_view rank =
        word({"lora_rank", "actor_rollout_ref.model.lora_rank", "actor_rollout_ref.model.lora.rank"}, "0");
    if (of_swift()) return tuner == "lora" || tuner == "qlora";
    return on({"use_peft"}) || (rank != "0" && !rank.empty()) || value("lora_r").has_value() ||
           value("peft_config.r").has_value();
  }

  void choose_training() {
    refuse_tuners();
    if (program_ == Program::megatron) {
      const bool given = value("tuner_type").has_value() || value("train_type").has_value();
      choose_adapters(given && adapts());  // full is its default
    } else choose_adapters(adapts());
    choose_precision();
    choose_optimizer();
    const std::string_view weight = algorithm().teacher ? word({"sft_alpha"}, "0") : word({"cpo_alpha"}, "1");
    options().label_loss = adds_label_loss(program_, algorithm(), weight, word({"loss_type"}));
    if (on({"optimizer_cpu_offload"})) choose_offloaded_share();
    for (const std::string_view key : {"activation_offloading", "actor_rollout_ref.model.enable_activation_offload"}) {
      if (on({key})) want_offload(model::Offload::activations, key, word({key}));
    }
    if (const auto own = value("sft_model_path"); own && algorithm().critic) made_.model = std::string(*own);
    const auto sharded = value("teacher_deepspeed");
    if (sharded && sharded != value("deepspeed")) say_not_modelled("teacher_deepspeed", *sharded);
  }

  /// By the names of transformers' `optim`; those that are not ours are not modelled. "adamw_torch_8bit" is torchao's.
  void choose_optimizer() {
    std::string name(word({"optim"}, program_ == Program::unsloth ? "adamw_8bit" : "adamw_torch_fused"));
    training().optimizer = model::Optimizer::adamw;
    training().fused = name == "adamw_torch_fused";
    const bool whole = name.starts_with("adamw_torch") && !name.ends_with("bit");
    if (whole || name == "adamw" || name == "adam") return;
    if (name == "adamw_bnb_8bit" || name == "adamw_torch_8bit") name = "adamw_8bit";
    if (name == "adamw_torch_4bit") name = "adamw_4bit";
    if (name.ends_with("_32bit")) name.resize(name.rfind('_'));
    std::replace(name.begin(), name.end(), '_', '-');
    if (!set("optimizer", name)) say_not_modelled("optim", word({"optim"}));
  }

  /// All states of Megatron's optimizer are on the host, or a part of them. A precision-aware optimizer holds what
  /// others do, unless the types of its states are given.
  void choose_offloaded_share() {
    const std::string_view share = word({"optimizer_offload_fraction"}, "1");
    if (share == "1" || share == "1.0") {
      want_offload(model::Offload::optimizer, "optimizer_cpu_offload", "true");
      return;
    }
    const core::Status taken = set_post_training_option(options(), "states_on_host", share);
    if (!taken) refuse("optimizer_offload_fraction: " + taken.error().message);
  }

  void choose_saved_modules() {
    const std::string_view names = word({"modules_to_save", "lora_modules_to_save", "peft_config.modules_to_save"});
    const adapt::SavedModules saved = adapt::saved_modules(names);
    if (!saved.patterns.empty()) want("train", saved.patterns);
    if (!saved.all_named) say_not_modelled("modules_to_save", names);
  }

  void choose_adapters(bool adapted) {
    if (!adapted) return;
    const std::int64_t rank = whole({"lora_rank", "lora_r", "peft_config.r", "actor_rollout_ref.model.lora_rank",
                                     "actor_rollout_ref.model.lora.rank"},
                                    of_swift() ? 8 : 16);
    training().lora = std::max<std::int64_t>(rank, 1);
    // Source: verl 0.7, trainer/config/model/hf_model.yaml: target_modules.
    std::string targets(word({"target_modules", "lora_target_modules", "peft_config.target_modules",
                              "actor_rollout_ref.model.target_modules", "actor_rollout_ref.model.lora.target_modules"},
                             of_swift() || program_ == Program::verl ? "all-linear" : ""));
    std::erase_if(targets, [](char byte) { return std::string_view("[]\"' ").find(byte) != std::string_view::npos; });
    while (targets.ends_with(',')) targets.pop_back();
    std::replace(targets.begin(), targets.end(), ',', '+');
    // Source: ms-swift 4, megatron/utils/utils.py: find_all_linears knows TransformerEngine's linear layers.
    if (in_megatron() && targets == "all-linear") targets += "+not:router";
    if (program_ == Program::ms_swift && targets == "all-linear") {
      const FrozenParts frozen = {on({"freeze_vit"}, true), on({"freeze_aligner"}, true)};
      const std::string left_out = part_names(frozen, "not:", "+");
      targets += (left_out.empty() ? "" : "+" + left_out) + "+by-name";
    }
    training().lora_targets =
        adapt::with_parameters(std::move(targets), word({"target_parameters", "lora_target_parameters"}));
    choose_saved_modules();
    choose_dropout();
    if (on({"use_dora", "peft_config.use_dora"})) want("peft", "dora");
    // Source: ms-swift 4, arguments/base_args/quant_args.py: bnb_4bit_use_double_quant is true.
    const bool four = on({"load_in_4bit"}) || word({"quant_bits"}) == "4" || word({"tuner_type"}) == "qlora";
    const bool twice = on({"bnb_4bit_use_double_quant", "use_bnb_nested_quant"}, of_swift());
    const bool unsloth = four && program_ == Program::unsloth;
    if (unsloth) want("quantize", model::name_of(model::kQuantizations, four_bits_of_unsloth(made_.model)));
    else if (four) want("quantize", twice ? "nf4-double" : "nf4");
    if (on({"load_in_8bit"}) || word({"quant_bits"}) == "8") want("quantize", "int8");
  }

  /// The scripts of TRL and ms-swift drop a part of what adapters read, and all their trainers but those of GRPO and
  /// RLOO switch that off again. Megatron's trainers do not. Source: TRL 1.9, trainer/model_config.py: lora_dropout;
  /// trainer/dpo_config.py: disable_dropout; ms-swift 4, arguments/tuner_args.py; rlhf_trainers/rlhf_mixin.py.
  void choose_dropout() {
    const bool scripts = of_swift() || (program_ == Program::trl && !value("peft_config.r"));
    constexpr double kOfScripts = 0.05;
    if (scripts && !value("lora_dropout")) training().lora_dropout = kOfScripts;
    const bool switches_off = (program_ == Program::trl || program_ == Program::ms_swift) &&
                              on({"disable_dropout"}, options().algorithm != Algorithm::grpo);
    if (switches_off) training().lora_dropout = 0.0;
  }

  /// ms-swift's other tuners are none that a job of ours has.
  void refuse_tuners() {
    const std::string_view tuner = word({"tuner_type", "train_type"}, "lora");
    const bool known = is_false(tuner) || tuner == "lora" || tuner == "qlora" || tuner == "full";
    if (of_swift() && !known) {
      refuse("tuner_type: " + core::quoted(core::shortened(tuner, 40)) + " is not modelled; say lora or full");
    }
  }

  /// Weights are loaded in bfloat16, by TRL in float32 unless it is told otherwise (utils.py: create_model_from_path).
  /// DeepSpeed and Megatron keep float32 masters of what is trained, verl float32 weights; others run autocast on what
  /// was loaded, and accelerate hands out float32 logits then (1.0 to 1.15, accelerator.py: convert_outputs_to_fp32).
  void choose_precision() {
    const std::string_view given =
        word({"torch_dtype", "dtype", "model_init_kwargs.torch_dtype", "model_init_kwargs.dtype"});
    const bool quantised = training().quantize != model::Quantization::none;
    const bool usual = given.empty() && program_ == Program::trl && !quantised;
    const std::string_view type = usual ? "float32" : given;
    // accelerate's own holds where the Trainer's bf16 and fp16 are off (training_args.py: ACCELERATE_MIXED_PRECISION).
    const std::string_view asked = on({"bf16"}, true) ? "bf16" : word({"mixed_precision"});
    const bool half = type == "float16" || on({"fp16"}) || asked == "fp16";
    const bool casts = half || asked == "bf16";
    using enum model::Shardings;
    const auto sharding = training().layout.sharding.kind;
    const bool deepspeed = sharding == zero_1 || sharding == zero_2 || sharding == zero_3 ||
                           program_ == Program::openrlhf || (restated_ && !word({"deepspeed_config_file"}).empty());
    const bool adapts = training().has_adapters();
    const bool casts_all = in_megatron() || deepspeed || program_ == Program::verl || quantised;
    if (!casts && casts_all) say_not_modelled("bf16", "false");
    if (in_megatron() || deepspeed) {
      training().precision = half ? model::Precision::fp16_mixed : model::Precision::bf16_mixed;
      return;
    }
    if (program_ == Program::verl) {
      const bool held = word({"actor_rollout_ref.actor.fsdp_config.model_dtype"}).starts_with("bf");
      training().precision = sharding != none ? model::Precision::bf16_mixed : model::Precision::amp_bf16;
      if (held) training().precision = model::Precision::bf16;
      return;
    }
    if (usual) say_missing("the type of its weights; TRL's default float32 is taken", {"precision"}, false);
    const bool whole = type == "float32";
    const bool autocast = (casts || quantised) && (adapts || whole);
    training().precision = whole ? model::Precision::fp32 : model::Precision::bf16;
    if (autocast) training().precision = half ? model::Precision::amp_fp16 : model::Precision::amp_bf16;
    training().float_outputs = casts && !adapts && !whole;
    if (autocast && !whole) training().base_dtype = half ? model::BaseType::fp16 : model::BaseType::bf16;
  }
};

}  // namespace launch_detail

}  // namespace gpumem::posttrain
