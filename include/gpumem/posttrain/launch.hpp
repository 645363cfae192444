// Input: the settings that a post-training program is started with: the words of its command line, or keys and values
// of its config.
// Output: Launch, the job that they mean, with the keys that nothing is known about, those that change memory and are
// not modelled, and what they leave open.
// Source: ms-swift 4 (2026-08), swift/arguments and swift/megatron/arguments; TRL 1.9, trainer/*_config.py; verl 0.7,
// trainer/config; OpenRLHF 0.8, cli/train_ppo_ray.py and train_dpo.py.
//
// Lengths: a program's maximum is a limit. Only where samples are packed into rows of that length, or where completions
// are generated up to it, is it a length; else `missing` names the lengths, the request has what trainers cut sequences
// to by default, and the limit is its length_limit.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/adaptation.hpp"
#include "gpumem/posttrain/post_training_job.hpp"

namespace gpumem::posttrain {

/// "per_device_train_batch_size" and "4"; of a nested config "actor_rollout_ref.model.path". Environment variables
/// begin with "env:".
struct LaunchSetting {
  std::string key;
  std::string value;
};

/// The algorithm that the user gives beside the settings; no program has such a key.
inline constexpr std::string_view kGivenTrainer = "trainer:";

enum class Launcher : std::uint8_t { none, torchrun, accelerate, deepspeed, ray };

/// What starts a program, and is told something itself. In the keys of its settings '-' is '_'.
struct LauncherWords {
  Launcher launcher = Launcher::none;
  std::vector<LaunchSetting> environment = {};  ///< NAME=value before the command, by NAME
  std::vector<LaunchSetting> settings = {};
  std::size_t begin = 0;  ///< the program's first word; the number of words: there is none
};
/// Reads over variables, what stands before a launcher (env, uv run, srun -N1), python and the launcher. Source: torch
/// 2.6, distributed/run.py; accelerate 1.2, commands/launch.py; DeepSpeed 0.16, launcher/runner.py; Ray 2.44,
/// dashboard/modules/job/cli.py.
[[nodiscard]] LauncherWords read_launcher(std::span<const std::string> words);
/// The settings of torchrun in front of a program, from the word `at` on, as `tune run` takes them too; returns where
/// they end.
[[nodiscard]] std::size_t read_torchrun_words(std::span<const std::string> words, std::size_t at,
                                              std::vector<LaunchSetting>& settings);

/// The words that a program gets: --key value, --key=value, --switch, key=value, +key=value (hydra), a list behind one
/// key.
struct ProgramWords {
  struct Given {
    std::string key;                  ///< without what marks it; '-' in it is '_'
    std::vector<std::string> values;  ///< none: a switch
  };
  std::vector<Given> settings;
  std::vector<std::string> standing;  ///< words that belong to no key: a file, a subcommand
  std::size_t before = 0;             ///< how many of them come before the first setting
};
[[nodiscard]] ProgramWords read_program(std::span<const std::string> words);

/// The settings of a command line: those of its launcher, and the program's: --key value, --key=value, --flag,
/// key=value, +key=value; NAME=value are environment variables. Words that are none of these are skipped where they
/// come before the program's first setting, but one that names an algorithm ("scripts/dpo.py",
/// "openrlhf.cli.train_dpo") becomes the setting "trainer". Errors: invalid_argument for a word that stands alone
/// behind a setting.
[[nodiscard]] core::Result<std::vector<LaunchSetting>> launch_settings(std::span<const std::string> words);

/// Whether a command starts a post-training, by its program or by the algorithm that its words name. Supervised
/// fine-tuning is none.
[[nodiscard]] bool starts_post_training(std::span<const std::string> words);

/// What settings do not say.
struct MissingSetting {
  std::string what;                       ///< "the lengths of its batches", for people, and what is taken
  std::vector<std::string_view> options;  ///< of ours, each of which says it; the first is the remedy
  bool required = true;                   ///< false: the request holds something in its place
};

struct Launch {
  PostTrainingRequest request;            ///< without a model
  std::string model;                      ///< a path, or a name on the hub; empty: the settings name none
  std::vector<std::string> not_modelled;  ///< "vit_gradient_checkpointing false"
  std::vector<std::string> unknown;       ///< keys
  std::vector<MissingSetting> missing;
  std::vector<std::string> decided;  ///< between settings that contradict each other, for people
  std::int64_t gpus = 1;             ///< that the settings name, or their layout needs at least
};

/// The trainer of TRL that alone has one of these keys, and the key. Empty: none has.
struct DecidingKey {
  std::string_view trainer;
  std::string key;
};
[[nodiscard]] DecidingKey trainer_of_keys(std::span<const LaunchSetting> settings);

/// The program whose keys these are. Nothing: those of none, or of several.
[[nodiscard]] std::optional<Program> program_of(std::span<const LaunchSetting> settings);

/// `gpus`: how many the program runs on; 0: as the settings say. Errors: invalid_argument, naming a key whose value is
/// none.
[[nodiscard]] core::Result<Launch> read_launch(Program program, std::span<const LaunchSetting> settings,
                                               std::int64_t gpus = 0);

/// What a front end is given about a job.
struct PostTrainingWords {
  std::vector<LaunchSetting> settings = {};         ///< of a program's file
  std::span<const std::string> command = {};        ///< "swift rlhf --rlhf_type grpo ..."; empty: none
  std::map<std::string, std::string> options = {};  ///< by the names of post_training_options() and job::job_options()
};

/// Reads the words over a request that has what else was given, which holds over a program's settings. What the
/// settings leave open, and their keys that nobody models or knows, go to `assumed` of the request, on an error too.
/// Errors: those of launch_settings(), read_launch() and set_post_training_option(); missing_information for what the
/// job needs and nobody said; invalid_argument where nobody names a model.
[[nodiscard]] core::Status read_words(const PostTrainingWords& words, PostTrainingRequest& request);
/// What no job can do without: its model, its batch and its lengths. Errors: invalid_argument, which names all that
/// nobody said.
[[nodiscard]] core::Status check_complete(const PostTrainingRequest& request);

/// What a trainer's `fsdp` asks for: "full_shard auto_wrap offload", "no_shard", "true", or ms-swift's "fsdp2". Source:
/// transformers 4.57, trainer_utils.py: FSDPOption; training_args.py.
struct FsdpWords {
  bool shards = false;    ///< all that is trained, over all GPUs
  bool offloads = false;  ///< parameters, gradients and states are on the host
  bool known = true;      ///< false: it shards otherwise, as "shard_grad_op" does, or its words are none of FSDP's
};
[[nodiscard]] FsdpWords fsdp_words(std::string_view asked);

/// How Unsloth holds a model that it loads in four bits. Since December 2024 (`older`: before it) it takes a checkpoint
/// of its own, whose config lists layers that are whole, unless the model is one that bitsandbytes wrote alike. Source:
/// unsloth, models/mapper.py and models/loader.py.
[[nodiscard]] model::Quantization four_bits_of_unsloth(std::string_view model, bool older = false);

/// Pixels a side that a token of Qwen's processors stands for, by the name of its model. Nothing: the name is of none.
[[nodiscard]] std::optional<std::int64_t> side_of_qwen(std::string_view model);
/// The same of any model; `counted`: settings count an image in tokens, as they do since Qwen3-VL.
[[nodiscard]] std::int64_t side_of_token(std::string_view model, bool counted);

/// Whether ms-swift loads what makes speech, too, where ENABLE_AUDIO_OUTPUT has this value. Source: ms-swift 4.6
/// (2026-08), model/models/qwen.py (Qwen2_5OmniLoader.get_config, Qwen3OmniLoader.get_config), utils/utils.py
/// (get_env_args).
[[nodiscard]] bool holds_speech(std::string_view said);
/// Of a setting that says so, where the model is none that speaks.
[[nodiscard]] inline std::string no_speech(std::string_view key) {
  return std::string(key) + " changes nothing: the model's config names no class that makes speech";
}
/// Names the request's models as its program makes them where they speak; `named` is summary::named_with_speech(). A
/// setting that changes nothing goes to `assumed`.
void take_speech(PostTrainingRequest& request,
                 std::string (*named)(const std::string& name, std::string_view head, bool held));

/// The sizes of DeepSpeed's buckets that transformers puts in the place of "auto", for a model of this width. Source:
/// transformers 4.48, integrations/deepspeed.py: trainer_config_finalize.
void set_buckets(model::Layout& layout, std::int64_t width);

/// Which parts of a model that sees or hears ms-swift leaves as they are, unless it is told otherwise.
struct FrozenParts {
  bool towers = true;    ///< freeze_vit
  bool aligners = true;  ///< freeze_aligner: what joins towers to the text
};
/// The names that transformers' models have for these parts, each behind `before`. Source: ms-swift 4,
/// swift/model/model_arch.py.
[[nodiscard]] std::string part_names(FrozenParts parts, std::string_view before, std::string_view between);
/// Of names that ',' joins, those of parts of the graph with parameters.
[[nodiscard]] std::string parts_of(const model::ModelGraph& graph, std::string_view names);

/// Of image and audio towers, which Megatron's form of a model leaves out; 0: the model has none.
[[nodiscard]] std::int64_t tower_parameters(const model::ModelGraph& graph);

/// Megatron's arguments of a model whose config.json is transformers', as ms-swift and Megatron-Bridge make them; of
/// one that is Megatron's already, itself; of one that sees, those of its language model. Errors: malformed_input;
/// unknown_format for a model type without a rule.
[[nodiscard]] core::Result<std::string> megatron_arguments_of(std::string_view config_json,
                                                              std::int64_t expert_tensor_parallel = 0);
/// The same of a model of text alone whose experts are whole, with further fields of these arguments
/// ("\"moe_router_dtype\": \"fp32\""). Nothing: no rule is known for it, or it sees.
[[nodiscard]] std::optional<std::string> megatron_form(std::string_view config_json, std::string_view fields);

}  // namespace gpumem::posttrain
