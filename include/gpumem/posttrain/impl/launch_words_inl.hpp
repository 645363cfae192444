#pragma once

#include "gpumem/posttrain/impl/post_training_job_options_inl.hpp"
#include "gpumem/posttrain/launch.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>

#include "gpumem/job/job_options.hpp"
#include "gpumem/posttrain/post_training_job.hpp"

namespace gpumem::posttrain {

namespace launch_words_detail {

// --- Launchers -----------------------------------------------------------------------------------------------------

/// What a launcher is called, and its settings without a value, with a space between them; all others take one.
/// Source: PyTorch 2.6, distributed/run.py, launch.py (--use_env).
struct LauncherRow {
  std::string_view name;
  std::string_view command;  ///< the word behind it; empty: none
  Launcher launcher;
  std::string_view switches;
};
inline constexpr std::string_view kTorchrunSwitches = " standalone no_python run_path m module use_env ";
inline constexpr std::string_view kAccelerateSwitches =
    " multi_gpu cpu use_deepspeed use_fsdp use_megatron_lm use_xpu use_parallelism_config quiet q tpu no_tpu_cluster "
    "tpu_use_cluster tpu_use_sudo debug m module no_python enable_cpu_affinity dynamo_use_dynamic "
    "dynamo_use_fullgraph ipex same_network ";
inline constexpr std::string_view kDeepSpeedSwitches =
    " module no_python no_local_rank no_ssh no_ssh_check force_multi save_pid elastic_training bind_cores_to_rank ";
inline constexpr LauncherRow kLaunchers[] = {
    {"torchrun", "", Launcher::torchrun, kTorchrunSwitches},
    {"torch.distributed.run", "", Launcher::torchrun, kTorchrunSwitches},
    {"torch.distributed.launch", "", Launcher::torchrun, kTorchrunSwitches},
    {"accelerate", "launch", Launcher::accelerate, kAccelerateSwitches},
    {"accelerate.commands.launch", "", Launcher::accelerate, kAccelerateSwitches},
    {"deepspeed", "", Launcher::deepspeed, kDeepSpeedSwitches},
    {"ray", "job", Launcher::ray, " no_wait verbose v "}};

/// Reads a command up to its program.
class LauncherReader {
 public:
  explicit LauncherReader(std::span<const std::string> words) : words_(words) {}

  /// What Ray is given starts a program as any other command does: one launcher more, and no second Ray.
  LauncherWords read() {
    read_launch();
    if (read_.launcher == Launcher::ray || skip_mason()) read_launch();
    read_.begin = std::min(at_, words_.size());
    return std::move(read_);
  }

  std::size_t read_settings(std::size_t at, std::string_view switches, std::vector<LaunchSetting>& settings) const {
    while (word(at).starts_with('-')) {
      const std::string_view flag = word(at++);
      if (flag == "--") break;
      const std::size_t equals = flag.find('=');
      std::string key(flag.substr(0, equals));
      key.erase(0, key.find_first_not_of('-'));
      std::replace(key.begin(), key.end(), '-', '_');
      if (equals != std::string_view::npos) settings.push_back({key, std::string(flag.substr(equals + 1))});
      else if (switches.find(" " + key + " ") != std::string_view::npos) settings.push_back({key, "true"});
      else if (at < words_.size()) settings.push_back({key, words_[at++]});
    }
    return at;
  }

 private:
  /// open-instruct's mason.py sends what is behind its "--" to a cluster.
  bool skip_mason() {
    if (name_at(at_) != "mason.py") return false;
    const auto begin = words_.begin() + static_cast<std::ptrdiff_t>(at_);
    const auto dashes = std::find(begin, words_.end(), "--");
    if (dashes == words_.end()) return false;
    at_ = static_cast<std::size_t>(dashes - words_.begin()) + 1;
    return true;
  }

  void read_launch() {
    read_environment();
    skip_to_launcher();
    if (is_python(at_)) at_ = behind_python(at_);
    const std::size_t name = at_ + (word(at_) == "-m" ? 1 : 0);
    const LauncherRow* const row = row_at(name);
    at_ = name;
    if (row == nullptr) return;
    read_.launcher = row->launcher;
    at_ += row->command.empty() ? 1 : 2;
    const bool ray = row->launcher == Launcher::ray;
    if (ray && word(at_) == "submit") ++at_;
    std::vector<LaunchSetting> settings;
    at_ = read_settings(at_, row->switches, settings);
    if (ray) return;  // its own settings say where, and nothing of the job
    read_.settings = std::move(settings);
    if (is_python(at_)) at_ = behind_python(at_);  // --no-python python
    if (word(at_) == "-m") ++at_;
  }

  [[nodiscard]] std::string_view word(std::size_t at) const {
    return at < words_.size() ? std::string_view(words_[at]) : std::string_view();
  }
  [[nodiscard]] std::string_view name_at(std::size_t at) const { return word(at).substr(word(at).rfind('/') + 1); }
  [[nodiscard]] bool is_python(std::size_t at) const { return name_at(at).starts_with("python"); }
  [[nodiscard]] const LauncherRow* row_at(std::size_t at) const {
    for (const LauncherRow& row : kLaunchers) {
      if (row.name == name_at(at) && (row.command.empty() || row.command == word(at + 1))) return &row;
    }
    return nullptr;
  }

  /// CUDA_VISIBLE_DEVICES=0,1, also behind env, and what runs a command as it is: uv run, nohup.
  void read_environment() {
    constexpr std::string_view kWrappers = " env nohup exec time sudo command ";
    constexpr std::string_view kRunners = " uv poetry pixi rye ";  // "uv run"
    for (; at_ < words_.size(); ++at_) {
      const std::string named = " " + words_[at_] + " ";
      if (take_variable(at_)) continue;
      if (word(at_ + 1) == "run" && kRunners.find(named) != std::string_view::npos) ++at_;
      else if (kWrappers.find(named) == std::string_view::npos) return;
    }
  }
  bool take_variable(std::size_t at) {
    const std::string_view one = word(at);
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos || equals == 0) return false;
    const std::string_view name = one.substr(0, equals);
    const bool variable = std::all_of(name.begin(), name.end(), [](char byte) {
      return (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_';
    });
    if (variable) read_.environment.push_back({std::string(name), std::string(one.substr(equals + 1))});
    return variable;
  }

  /// Over a scheduler's words, "srun -N1 env X=1 torchrun", if a launcher or python is behind them. Else they are a
  /// program's, and its "A=1" is no variable.
  void skip_to_launcher() {
    std::size_t at = at_;
    const auto variables = static_cast<std::ptrdiff_t>(read_.environment.size());
    const auto starts = [&] { return row_at(at) != nullptr || is_python(at); };
    const auto skipped = [&] {
      const std::string_view one = word(at);
      return !one.empty() && !one.starts_with("--") && !one.ends_with(".py") &&
             (one.find('=') == std::string_view::npos || take_variable(at));
    };
    while (!starts() && skipped()) ++at;
    if (starts()) at_ = at;
    else read_.environment.erase(read_.environment.begin() + variables, read_.environment.end());
  }

  /// "-u -m torch.distributed.run": behind python, and its own options but -m.
  [[nodiscard]] std::size_t behind_python(std::size_t at) const {
    ++at;
    while (word(at).starts_with('-') && word(at) != "-m") at += word(at) == "-W" || word(at) == "-X" ? 2 : 1;
    return std::min(at, words_.size());
  }

  std::span<const std::string> words_;
  std::size_t at_ = 0;
  LauncherWords read_;
};

// --- Programs ------------------------------------------------------------------------------------------------------

/// The program that the command itself starts: "trl dpo --config dpo.yaml", "megatron rlhf".
inline std::optional<Program> program_in(std::span<const std::string> command) {
  const std::size_t at = read_launcher(command).begin;
  if (at >= command.size()) return std::nullopt;
  const std::string_view word = command[at];
  if (word.substr(word.rfind('/') + 1) == "trl" || word.find("trl/scripts/") != std::string_view::npos) {
    return Program::trl;
  }
  const bool of_open_instruct = word.find("open_instruct/") != std::string_view::npos;
  if (of_open_instruct) return Program::open_instruct;
  constexpr std::pair<std::string_view, Program> kNames[] = {{"rl", Program::prime_rl},
                                                             {"megatron", Program::megatron},
                                                             {"swift", Program::ms_swift},
                                                             {"llamafactory-cli", Program::llama_factory},
                                                             {"lmf", Program::llama_factory},
                                                             {"axolotl", Program::axolotl},
                                                             {"axolotl.cli.train", Program::axolotl}};
  for (const auto& [name, program] : kNames) {
    if (word.substr(word.rfind('/') + 1) == name) return program;
  }
  return std::nullopt;
}

/// One of TRL's examples, which may hold its settings itself.
inline bool is_example_of_trl(std::span<const std::string> command) {
  const std::size_t at = read_launcher(command).begin;
  const std::string_view word = at < command.size() ? std::string_view(command[at]) : std::string_view();
  const bool folder = word.find("examples/scripts/") != std::string_view::npos ||
                      word.find("trl/experimental/") != std::string_view::npos;
  return folder && word.ends_with(".py");
}

/// open-instruct's scripts that train with OLMo-core; empty: the command is none of them.
inline std::string_view script_without_rules(std::span<const std::string> command) {
  const std::size_t at = read_launcher(command).begin;
  const std::string_view word = at < command.size() ? std::string_view(command[at]) : std::string_view();
  const bool has = word.ends_with("open_instruct/dpo.py") || word.ends_with("open_instruct/grpo.py");
  return has ? word : std::string_view();
}

/// The program that the options name, or whose keys the settings are.
inline core::Result<Program> program_of_words(const PostTrainingWords& words, std::span<const LaunchSetting> settings) {
  if (const auto named = words.options.find("program"); named != words.options.end()) {
    PostTrainingOptions options;
    const core::Status set = set_post_training_option(options, "program", named->second);
    if (!set) return set.error();
    return options.program;
  }
  if (const std::string_view other = script_without_rules(words.command); !other.empty()) {
    return core::Error{core::ErrorCode::unknown_format,
                       core::quoted(core::shortened(other, 60)) +
                           " trains with OLMo-core, whose settings are not read; give the job with options",
                       {}};
  }
  if (const auto named = program_in(words.command)) return *named;
  if (const auto known = program_of(settings)) return *known;
  if (is_example_of_trl(words.command)) return Program::trl;
  for (const LaunchSetting& setting : settings) {
    if (setting.key == "trainer" && launch_detail::is_supervised(setting.value)) {
      return launch_detail::supervised(setting.value);
    }
  }
  const auto is_script = [](std::string_view word) { return word.ends_with(".sh"); };
  const auto script = std::find_if(words.command.begin(), words.command.end(), is_script);
  if (script != words.command.end()) {
    return core::Error{
        core::ErrorCode::invalid_argument,
        core::quoted(core::shortened(*script, 60)) + " is a script, which is not read; give the command that it runs",
        {}};
  }
  return core::Error{
      core::ErrorCode::missing_information, "the settings do not say which program they are for; give `program`", {}};
}

/// Options of ours count more than the program's settings.
inline core::Status lay_over(const job::JobRequest& given, job::JobRequest& request) {
  for (const job::JobOption& option : job::job_options()) {
    if (!job::is_given(option, given)) continue;
    const std::optional<job::OptionValue> value = option.place.get(given);
    if (!value) continue;
    if (core::Status set = job::set_option(option, request, *value); !set) return set;
  }
  if (!given.summary.empty()) request.summary = given.summary;
  return core::Done{};
}

/// Whether somebody gave the option to us.
inline bool gives(const PostTrainingWords& words, const job::JobRequest& given, std::string_view name) {
  if (words.options.contains(std::string(name))) return true;
  const job::JobOption* const option = job::find_option(name);
  return option != nullptr && job::is_given(*option, given);
}

/// All that is missing at once, for the user to give at once.
inline core::Status say_missing(const PostTrainingWords& words, const Launch& launch, PostTrainingRequest& request) {
  std::vector<std::string> what;
  std::vector<std::string> remedies;
  for (const MissingSetting& missing : launch.missing) {
    const auto given = [&](std::string_view name) { return gives(words, request.training, name); };
    if (std::any_of(missing.options.begin(), missing.options.end(), given)) continue;
    if (missing.required) {
      what.push_back(missing.what);
      const bool of_trl = missing.options.front() == "algorithm" && launch.request.options.program == Program::trl;
      remedies.push_back("`" + std::string(missing.options.front()) + "`" +
                         (of_trl ? " (TRL's configs name no trainer), or a setting such as trainer: GRPOTrainer" : ""));
    } else {
      request.assumed.push_back({"settings", "the settings do not say " + missing.what});
    }
  }
  if (what.empty()) return core::Done{};
  return core::Error{core::ErrorCode::missing_information,
                     "the settings do not say " + core::listed(what) + "; give " + core::listed(remedies),
                     {}};
}

/// A folder of another machine, such as "$HOME/models/Qwen3-8B", says by its name which model is in it.
inline void take_folder_name(std::string& model, std::vector<estimate::Assumption>& assumed) {
  const bool path = !model.empty() && std::string_view("/.~$").find(model.front()) != std::string_view::npos;
  const std::string name(launch_detail::folder_of(model));
  std::error_code failure;
  if (!path || name.empty() || name.ends_with(".json") || std::filesystem::exists(model, failure)) return;
  if (launch_detail::is_variable(name)) return;
  const std::string whole = core::quoted(core::shortened(model, 80));
  assumed.push_back({"settings", whole + " is not here; a published model of its name is looked for"});
  model = name;
}

/// The further models that a program's settings name. One with the policy's own name is the policy's, whatever of it is
/// given to us.
inline void name_models(PostTrainingRequest& request, const std::string& policy,
                        std::vector<estimate::Assumption>& assumed) {
  PostTrainingOptions& to = request.options;
  for (std::string* const name : {&to.reference_model, &to.critic_model, &to.teacher_model}) {
    if (*name == policy) name->clear();
  }
  for (std::string* const name : {&to.reference_model, &to.critic_model, &to.reward_model, &to.teacher_model}) {
    take_folder_name(*name, assumed);
    if (!name->empty()) request.named.push_back(*name);
  }
}

/// `strict` takes no settings of which the estimate would have to leave some out.
inline core::Status refuse_guesses(const PostTrainingRequest& request, const Launch& launch) {
  std::vector<std::string> what;
  for (const std::string& key : launch.unknown) what.push_back("the key " + key + " is not known");
  for (const std::string& text : launch.not_modelled) what.push_back(text + " is not modelled");
  if (!request.training.training.strict || what.empty()) return core::Done{};
  return core::Error{core::ErrorCode::invalid_argument,
                     "`strict` refuses the settings: " + core::listed(what) + "; leave them out, or `strict`",
                     {}};
}

/// The trainer, if nobody names it: the user's algorithm, or the one whose key the settings have.
inline void add_trainer(const PostTrainingWords& words, Program program, std::vector<LaunchSetting>& settings,
                        std::vector<estimate::Assumption>& assumed) {
  const auto given = words.options.find("algorithm");
  if (given != words.options.end()) settings.push_back({std::string(kGivenTrainer), given->second});
  const bool named = given != words.options.end() ||
                     std::ranges::any_of(settings, [](const LaunchSetting& at) { return at.key == "trainer"; });
  if (named || program != Program::trl) return;
  const DecidingKey decides = trainer_of_keys(settings);
  if (decides.trainer.empty()) return;
  settings.push_back({"trainer", std::string(decides.trainer)});
  const bool either = launch_detail::is_among(decides.key, "num_generations reward_weights");
  assumed.push_back({"settings", "`algorithm`: " + decides.key + " is a setting of " + std::string(decides.trainer) +
                                     (either ? ", or of RLOOTrainer, which `algorithm` rloo says" : "")});
}

/// The job of a program's settings, and what of them nobody models or knows.
inline core::Status take_settings(const PostTrainingWords& words, PostTrainingRequest& request) {
  auto settings = words.settings;
  auto command = launch_settings(words.command);
  if (!command) return command.error();
  settings.insert(settings.end(), command->begin(), command->end());
  const core::Result<Program> program = program_of_words(words, settings);
  if (!program) return program.error();
  if (core::Status fit = launch_detail::check_words(*program, settings); !fit) return fit;
  for (const LaunchSetting& setting : settings) {
    const bool sharded = setting.key != "deepspeed" || gives(words, request.training, "sharding");
    if (core::Status fit = sharded ? core::Done{} : launch_detail::check_deepspeed(setting); !fit) return fit;
  }
  add_trainer(words, *program, settings, request.assumed);
  core::Result<Launch> launch = read_launch(*program, settings);
  if (!launch) return launch.error();
  const auto say = [&](std::string text) { request.assumed.push_back({"settings", std::move(text)}); };
  if (core::Status strict = refuse_guesses(request, *launch); !strict) return strict;
  for (const std::string& text : launch->decided) say(text);
  for (const std::string& text : launch->not_modelled) say(text + " is not modelled");
  for (const std::string& key : launch->unknown) say("the key " + key + " is not known");
  if (core::Status said = say_missing(words, *launch, request); !said) return said;
  PostTrainingRequest made = std::move(launch->request);
  name_models(made, launch->model, request.assumed);
  if (request.training.summary.empty()) take_folder_name(launch->model, request.assumed);
  made.training.summary = std::move(launch->model);
  if (core::Status laid = lay_over(request.training, made.training); !laid) return laid;
  // Who says how long the sequences are has no use for a limit.
  const auto says = [&](std::string_view name) { return gives(words, request.training, name); };
  if (says("seq_length") || says("prompt_length") || says("completion_length")) made.options.length_limit.reset();
  if (says("seq_length") || says("prompt_length")) made.text_prompt = false;
  made.assumed = std::move(request.assumed);
  request = std::move(made);
  return core::Done{};
}

/// What somebody tells us of lengths has to go together.
inline core::Status check_lengths(const PostTrainingWords& words, const PostTrainingRequest& request) {
  const PostTrainingOptions& to = request.options;
  const bool told = words.options.contains("prompt_length") && words.options.contains("completion_length");
  const auto whole = request.training.training.sequence_length;
  if (!told || to.packing || !whole || !to.prompt_length || !to.completion_length) return core::Done{};
  if (core::bounded_sum({*to.prompt_length, *to.completion_length}) == *whole) return core::Done{};
  return core::Error{core::ErrorCode::invalid_argument,
                     "`seq_length` " + std::to_string(*whole) + " is not `prompt_length` " +
                         std::to_string(*to.prompt_length) + " with `completion_length` " +
                         std::to_string(*to.completion_length) + "; leave one of them out",
                     {}};
}

// --- Words of a program --------------------------------------------------------------------------------------------

/// A flag, and not a number below zero.
inline bool is_flag(std::string_view word) {
  return word.size() > 1 && word.front() == '-' && !core::parse_number(word).has_value();
}

/// key=value as hydra, LLaMA-Factory and torchtune take it, and no path or URL.
inline bool is_pair(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0 || word.front() == '/' || word.front() == '.') return false;
  const auto of_name = [](char byte) {
    const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
    return letter || std::string_view("_.-+/@~").find(byte) != std::string_view::npos;
  };
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), of_name);
}

inline std::string key_of(std::string_view word) {
  while (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  std::string key(word);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

}  // namespace launch_words_detail

GPUMEM_INLINE ProgramWords read_program(std::span<const std::string> words) {
  namespace detail = launch_words_detail;
  const auto begins = [&](std::size_t at) {
    return words[at] == "--" || detail::is_flag(words[at]) || detail::is_pair(words[at]);
  };
  ProgramWords read;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--") continue;
    if (!begins(at)) {
      read.standing.push_back(word);
      if (read.settings.empty()) ++read.before;
      continue;
    }
    const std::size_t equals = word.find('=');
    ProgramWords::Given given{detail::key_of(word.substr(0, equals)), {}};
    if (equals != std::string::npos) given.values.push_back(word.substr(equals + 1));
    const bool pairs = given.key.ends_with("_args");  // kohya's --optimizer_args weight_decay=0.1 eps=1e-6
    const auto goes_on = [&](std::size_t next) {
      return !begins(next) || (pairs && words[next] != "--" && !detail::is_flag(words[next]));
    };
    while (equals == std::string::npos && at + 1 < words.size() && goes_on(at + 1)) given.values.push_back(words[++at]);
    read.settings.push_back(std::move(given));
  }
  return read;
}

GPUMEM_INLINE LauncherWords read_launcher(std::span<const std::string> words) {
  return launch_words_detail::LauncherReader(words).read();
}

GPUMEM_INLINE std::size_t read_torchrun_words(std::span<const std::string> words, std::size_t at,
                                              std::vector<LaunchSetting>& settings) {
  using launch_words_detail::LauncherReader;
  return LauncherReader(words).read_settings(at, launch_words_detail::kTorchrunSwitches, settings);
}

GPUMEM_INLINE core::Status read_words(const PostTrainingWords& words, PostTrainingRequest& request) {
  namespace detail = launch_words_detail;
  for (const auto& [name, value] : words.options) {
    const job::JobOption* const option = find_post_training_option(name) == nullptr ? job::find_option(name) : nullptr;
    if (option == nullptr) continue;
    if (core::Status set = job::set_option_text(*option, request.training, value); !set) return set;
  }
  const bool whole = detail::gives(words, request.training, "seq_length");
  const bool reads = !words.settings.empty() || !words.command.empty();
  if (reads) {
    if (core::Status taken = detail::take_settings(words, request); !taken) return taken;
  }
  for (const auto& [name, value] : words.options) {
    if (find_post_training_option(name) == nullptr && job::find_option(name) != nullptr) continue;
    if (reads && name == "program") continue;  // whose settings they are; they say whether verl trains with Megatron
    if (core::Status set = set_post_training_option(request.options, name, value); !set) return set;
  }
  const auto trainer = words.options.find("algorithm");
  const bool of_trl = request.options.program == Program::trl || request.options.program == Program::unsloth;
  const bool compares = trainer != words.options.end() && launch_detail::compares_in_trl(trainer->second) && of_trl;
  if (!reads && compares && request.options.reference == Reference::usual) {
    request.options.reference = request.training.training.has_adapters() ? Reference::base : Reference::own;
  }
  if (core::Status fit = whole ? detail::check_lengths(words, request) : core::Done{}; !fit) return fit;
  return request.training.summary.empty() ? check_complete(request) : core::Done{};
}

GPUMEM_INLINE core::Status check_complete(const PostTrainingRequest& request) {
  const PostTrainingOptions& to = request.options;
  const bool generates = row_of(to.algorithm).generates;
  std::vector<std::string> what;
  std::vector<std::string> remedies;
  const auto miss = [&](const char* said, const char* remedy) {
    what.emplace_back(said);
    remedies.emplace_back(remedy);
  };
  if (request.training.summary.empty()) miss("the policy's model", "its config.json");
  if (request.training.training.batch_size == 0) miss("the samples of a forward pass", "`batch_size`");
  const bool parts = to.prompt_length && to.completion_length;
  if (!request.training.training.sequence_length && !parts) {
    miss("the length of the sequences", generates ? "`prompt_length` with `completion_length`"
                                                  : "`seq_length` (or `prompt_length` with `completion_length`)");
  }
  if (what.empty()) return core::Done{};
  namespace detail = launch_words_detail;
  return core::Error{
      core::ErrorCode::invalid_argument, "nothing says " + core::listed(what) + "; give " + core::listed(remedies), {}};
}

}  // namespace gpumem::posttrain
