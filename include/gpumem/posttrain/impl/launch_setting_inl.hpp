#pragma once

#include "gpumem/posttrain/impl/launch_inl.hpp"
#include "gpumem/posttrain/launch.hpp"

#include <charconv>
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
  SettingReader(Program program, std::span<const LaunchSetting> settings) : program_(program), settings_(settings) {
    made_.request.options.program = program_;
  }

  /// All whose row says which option they are.
  core::Status take_all() {
    for (const LaunchSetting& setting : settings_) {
      if (core::Status taken = take(setting); !taken) return taken;
    }
    return core::Done{};
  }

  [[nodiscard]] bool of_trl() const { return program_ == Program::trl || program_ == Program::unsloth; }
  [[nodiscard]] bool of_swift() const { return program_ == Program::ms_swift || program_ == Program::megatron; }
  [[nodiscard]] model::TrainingJob& training() { return made_.request.training.training; }
  [[nodiscard]] PostTrainingOptions& options() { return made_.request.options; }
  [[nodiscard]] const AlgorithmRow& algorithm() { return row_of(options().algorithm); }

  core::Status take(const LaunchSetting& setting) {
    const LaunchKey* const row = find_key(program_, setting.key);
    if (row == nullptr) {
      if (!changes_nothing(setting.key)) made_.unknown.push_back(core::shortened(setting.key, 80));
      return core::Done{};
    }
    if (is_variable(setting.value) && row->means != Means::nothing) return core::Done{};  // as if it was not given
    switch (row->means) {
      case Means::training: return take_training(*row, setting);
      case Means::post: return take_post(*row, setting);
      case Means::model: made_.model = setting.value; break;
      case Means::not_modelled:
        if (!is_usual(setting.value, row->option)) say_not_modelled(setting);
        break;
      case Means::named:
      case Means::nothing: break;
    }
    return core::Done{};
  }

  void say_not_modelled(const LaunchSetting& setting) {
    made_.not_modelled.push_back(core::shortened(setting.key, 80) + " " + core::shortened(setting.value, 60));
  }

  core::Status take_training(const LaunchKey& row, const LaunchSetting& setting) {
    if (is_false(setting.value) && row.option != "sequence_parallel") return core::Done{};
    return with_key(set(row.option, setting.value), setting);
  }
  core::Status take_post(const LaunchKey& row, const LaunchSetting& setting) {
    if (is_false(setting.value)) return core::Done{};
    return with_key(set_post_training_option(options(), row.option, setting.value), setting);
  }
  void say_missing(std::string what, std::vector<std::string_view> options, bool required = true) {
    made_.missing.push_back({std::move(what), std::move(options), required});
  }
  static core::Status with_key(core::Status taken, const LaunchSetting& setting) {
    if (taken) return taken;
    return core::Error{
        core::ErrorCode::invalid_argument, core::shortened(setting.key, 60) + ": " + taken.error().message, {}};
  }
  core::Status set(std::string_view name, std::string_view word) {
    const job::JobOption* const option = job::find_option(name);
    if (option == nullptr) return core::Done{};
    return job::set_option_text(*option, made_.request.training, word);
  }
  void refuse(std::string message) {
    if (!fault_) fault_ = core::Error{core::ErrorCode::invalid_argument, std::move(message), {}};
  }
  /// Of a word of ours, which the option takes.
  void want(std::string_view name, std::string_view word) {
    if (core::Status taken = set(name, word); !taken && !fault_) fault_ = taken.error();
  }

  /// The value of a setting; the last one counts. Nothing: it is not given, or a variable of the shell.
  [[nodiscard]] std::optional<std::string_view> value(std::string_view key) const {
    std::optional<std::string_view> found;
    for (const LaunchSetting& setting : settings_) {
      if (setting.key == key && !is_variable(setting.value)) found = setting.value;
    }
    return found;
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
    const std::string_view text = word(keys);
    if (text.empty()) return usual;
    std::int64_t number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed == std::errc{} && end == text.data() + text.size() && number >= 0 && number <= INT32_MAX) return number;
    refuse(std::string(*keys.begin()) + ": " + core::quoted(core::shortened(text, 60)) + " is no whole number");
    return usual;
  }

  Program program_;
  std::span<const LaunchSetting> settings_;
  Launch made_;
  std::optional<core::Error> fault_;
};

/// What is trained, and over which GPUs.
class LayoutReader : protected SettingReader {
 public:
  LayoutReader(Program program, std::span<const LaunchSetting> settings, std::int64_t gpus)
      : SettingReader(program, settings), gpus_(gpus) {}

 protected:
  /// The word that names it. A script's name ("train_ppo_ray") says less than an estimator of advantages.
  [[nodiscard]] std::string_view algorithm_word() const {
    std::string_view name = word({"rlhf_type", "algorithm.adv_estimator", "advantage_estimator", "trainer"});
    // OpenRLHF's script of PPO alone has these.
    const bool generates = value("prompt_max_len") || value("generate_max_len") || value("micro_rollout_batch_size");
    const bool ppo = program_ == Program::verl || (program_ == Program::openrlhf && generates);
    return name.empty() && ppo ? "gae" : name;
  }

  void choose_algorithm() {
    const std::string_view name = algorithm_word();
    // Source of verl's: trainer/ppo/core_algos.py, AdvantageEstimator; "gae" alone has a critic.
    constexpr std::pair<std::string_view, Algorithm> kOthers[] = {{"cpo", Algorithm::orpo},
                                                                  {"DPOTrainer", Algorithm::dpo},
                                                                  {"KTOTrainer", Algorithm::kto},
                                                                  {"GRPOTrainer", Algorithm::grpo},
                                                                  {"ORPOTrainer", Algorithm::orpo},
                                                                  {"RewardTrainer", Algorithm::reward},
                                                                  {"PPOTrainer", Algorithm::ppo},
                                                                  {"RLOOTrainer", Algorithm::grpo},
                                                                  {"rloo", Algorithm::grpo},
                                                                  {"reinforce", Algorithm::grpo},
                                                                  {"gae", Algorithm::ppo},
                                                                  {"dr_grpo", Algorithm::grpo},
                                                                  {"gigpo", Algorithm::grpo},
                                                                  {"opo", Algorithm::grpo},
                                                                  {"gpg", Algorithm::grpo},
                                                                  {"grpo_passk", Algorithm::grpo},
                                                                  {"reinforce_baseline", Algorithm::grpo},
                                                                  {"reinforce_plus_plus", Algorithm::grpo},
                                                                  {"reinforce_plus_plus_baseline", Algorithm::grpo},
                                                                  {"remax", Algorithm::grpo}};
    const bool normed = name.starts_with("group");  // OpenRLHF's name of it
    if (const auto known = normed ? std::optional(Algorithm::grpo) : model::value_of(kAlgorithms, name)) {
      options().algorithm = *known;
      return;
    }
    for (const auto& [other, means] : kOthers) {
      if (other != name) continue;
      options().algorithm = means;
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
    return per_node * whole({"env:NNODES", "nnodes"}, 1);
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
    if (named == 0 && value("config_file")) say_not_modelled({"config_file", std::string(*value("config_file"))});
    if (layout.tensor_parallel == 1) layout.sequence_parallel = false;  // Megatron switches it off then
    if (program_ == Program::megatron) layout.sharding.kind = model::Shardings::distributed_optimizer;
    if (program_ == Program::megatron || made_.gpus == 1) return;
    if (program_ == Program::verl) layout.sharding.kind = model::Shardings::fsdp1;
    const std::string_view strategy = word({"actor_rollout_ref.actor.strategy"}, "fsdp");
    if (program_ == Program::verl && strategy == "fsdp2") layout.sharding.kind = model::Shardings::fsdp2;
    choose_deepspeed();
    if (layout.sharding.kind == model::Shardings::none) layout.sharding.kind = model::Shardings::ddp;
  }

  /// "zero2", "zero3_offload" of ms-swift, a path that says so, or OpenRLHF's stage, which is 2 unless it is given.
  void choose_deepspeed() {
    const std::string_view own = word({"deepspeed", "deepspeed_config_file"});
    const std::string_view config = own.empty() ? word({"config_file"}) : own;  // accelerate's
    if (own.empty() && config.find("fsdp") != std::string_view::npos) {
      want("sharding", config.find("fsdp2") != std::string_view::npos ? "fsdp2" : "fsdp1");
      return;
    }
    if (own.empty() && config.find("_gpu") != std::string_view::npos) return;  // multi_gpu.yaml
    std::string_view stage = word({"zero_stage"}, program_ == Program::openrlhf ? "2" : "");
    for (const std::string_view each : {"1", "2", "3"}) {
      const bool named = config.find("zero" + std::string(each)) != std::string_view::npos ||
                         config.find("zero_" + std::string(each)) != std::string_view::npos;
      if (named) stage = each;
    }
    if (stage == "1" || stage == "2" || stage == "3") want("sharding", "zero-" + std::string(stage));
    made_.request.buckets_by_width = of_swift() && stage == "3";  // its zero3.json says "auto"
    if (!config.empty() && stage.empty()) say_missing("what is in " + core::quoted(config), {"sharding"});
    const bool offloads = config.find("offload") != std::string_view::npos || on({"adam_offload"});
    if (offloads) training().offload = stage == "3" ? model::Offload::parameters : model::Offload::optimizer;
  }

  std::int64_t gpus_;  ///< 0: as the settings say
};

}  // namespace launch_detail

}  // namespace gpumem::posttrain
