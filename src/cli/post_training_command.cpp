#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "gpumem/core/csv.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/posttrain/estimate_post_training.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "job_json.hpp"
#include "post_training_report.hpp"
#include "report.hpp"
#include "setting.hpp"

namespace gpumem::cli {

namespace {

using posttrain::LaunchSetting;
using posttrain::PostTrainingRequest;

using Assumptions = std::vector<estimate::Assumption>;

constexpr int kNoAnswer = 4;  ///< it does not fit

int print_answer(const std::string& text, const nlohmann::ordered_json& json, bool as_json, int code) {
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  const std::string shown = as_json ? json.dump(2, ' ', false, kReplace) + "\n" : text;
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  return code;
}

/// The leaves of a file's settings, with the keys above them: "actor_rollout_ref.model.path".
void flatten(const trainer_files::Setting& setting, const std::string& path, std::vector<LaunchSetting>& all) {
  if (path == "defaults") return;  // take_defaults()
  if (setting.kind == trainer_files::Setting::Kind::object) {
    for (const trainer_files::Setting& item : setting.items) {
      flatten(item, path.empty() ? item.key : path + "." + item.key, all);
    }
    return;
  }
  std::string value = setting.word;
  for (const trainer_files::Setting& item : setting.items) value += (value.empty() ? "" : "+") + item.word;
  if (setting.kind != trainer_files::Setting::Kind::null) all.push_back({path, std::move(value)});
}

Result<std::vector<LaunchSetting>> settings_of_file(const std::string& file, int depth = 0);

/// The files below which hydra puts this one, "defaults: [../base, _self_]", if they are there; the words of others
/// stay settings.
core::Status take_defaults(const std::string& file, const trainer_files::Setting& root, int depth,
                           std::vector<LaunchSetting>& all) {
  constexpr int kDeepest = 16;
  const auto begin = root.items.begin();
  const auto named = std::find_if(begin, root.items.end(), [](const auto& item) { return item.key == "defaults"; });
  if (named == root.items.end()) return core::Done{};
  std::vector<std::string> words = {named->word};
  for (const trainer_files::Setting& item : named->items) words.push_back(item.word);
  for (std::string word : words) {
    word.resize(std::min(word.find('@'), word.size()));
    if (word.empty() || word == "_self_") continue;
    const std::string name = word.ends_with(".yaml") ? word : word + ".yaml";
    const std::string path = (std::filesystem::path(file).parent_path() / name).string();
    const bool there = depth < kDeepest && core::read_regular_file(path, trainer_files::kLargestTrainerFile);
    if (!there) {
      all.push_back({"defaults", word});
      continue;
    }
    auto settings = settings_of_file(path, depth + 1);
    if (!settings) return settings.error();
    all.insert(all.end(), settings->begin(), settings->end());
  }
  return core::Done{};
}

Result<std::vector<LaunchSetting>> settings_of_file(const std::string& file, int depth) {
  std::vector<LaunchSetting> settings;
  if (file.empty()) return settings;
  const Result<std::string> text = core::read_regular_file(file, trainer_files::kLargestTrainerFile);
  if (!text) return text.error();
  const Result<trainer_files::Setting> root = trainer_files::parse_settings(*text);
  if (!root) return Error(root.error()).in_file(file);
  if (const core::Status taken = take_defaults(file, *root, depth, settings); !taken) return taken.error();
  flatten(*root, {}, settings);
  return settings;
}

/// The file of settings that a command names, if it is there: "trl dpo --config dpo.yaml", "--config=dpo.yaml",
/// EasyR1's config=config.yaml, "axolotl train dpo.yaml". Its words leave the command. Empty: there is none.
std::string take_named_file(std::vector<std::string>& words) {
  for (auto at = words.begin(); at != words.end(); ++at) {
    const bool flag = *at == "--config" && at + 1 != words.end();
    const bool ends = at->ends_with(".yaml") || at->ends_with(".yml");
    const bool alone = ends && at->front() != '-' && at != words.begin() && !(at - 1)->starts_with('-');
    const bool stands = alone && at->find('=') == std::string::npos;
    const bool pair = stands || at->starts_with("config=") || at->starts_with("--config=");
    if (!flag && !pair) continue;
    std::string file = flag ? *(at + 1) : at->substr(at->find('=') + 1);  // all of a word without one
    if (!core::read_regular_file(file, trainer_files::kLargestTrainerFile)) continue;
    words.erase(at, at + (flag ? 2 : 1));
    return file;
  }
  return {};
}

/// The value of a flag, "--config-name X" or "--config-name=X", which leaves the words.
std::string take_flag(std::vector<std::string>& words, const std::string& flag) {
  for (auto at = words.begin(); at != words.end(); ++at) {
    if (at->starts_with(flag + "=")) {
      std::string value = at->substr(flag.size() + 1);
      words.erase(at);
      return value;
    }
    if (*at != flag || at + 1 == words.end()) continue;
    std::string value = *(at + 1);
    words.erase(at, at + 2);
    return value;
  }
  return {};
}

/// What accelerate's file says of the GPUs, the precision and the compiler, if it is there, in words that the trainers'
/// own settings have for it. Its words leave the command. Source: accelerate 1.2, commands/config/config_args.py.
Result<std::vector<LaunchSetting>> take_accelerate_file(std::vector<std::string>& words) {
  std::vector<LaunchSetting> settings;
  std::vector<std::string> rest = words;
  std::string file = take_flag(rest, "--config_file");
  if (file.empty()) file = take_flag(rest, "--accelerate_config");
  const auto text = core::read_regular_file(file, trainer_files::kLargestTrainerFile);
  if (file.empty() || !text) return settings;
  const Result<trainer_files::Setting> root = trainer_files::parse_settings(*text);
  if (!root) return Error(root.error()).in_file(file);
  const auto word = [&](std::string_view section, std::string_view key) {
    const trainer_files::Setting* const in = section.empty() ? &*root : root->field(section);
    const trainer_files::Setting* const found = in == nullptr ? nullptr : in->field(key);
    return found == nullptr ? std::string() : found->word;
  };
  const std::string type = word({}, "distributed_type");
  const auto away = [&](std::string_view key) {
    const std::string device = word("deepspeed_config", key);
    return device == "cpu" || device == "nvme";
  };
  if (type == "DEEPSPEED") {
    const std::string own = word("deepspeed_config", "deepspeed_config_file");
    const std::string stage = word("deepspeed_config", "zero_stage");
    const bool offloads = away("offload_optimizer_device") || away("offload_param_device");
    const std::string kind = "zero" + (stage.empty() ? std::string("2") : stage) + (offloads ? "_offload" : "");
    settings.push_back({"deepspeed", own.empty() ? kind : own});
  }
  if (type == "FSDP") {
    std::string kind = core::lower_case(word("fsdp_config", "fsdp_sharding_strategy"));
    const std::string again = core::lower_case(word("fsdp_config", "fsdp_reshard_after_forward"));
    if (kind.empty() && again != "true") kind = again == "false" ? "shard_grad_op" : again;
    if (kind.empty() || kind == "1") kind = "full_shard";
    settings.push_back({"fsdp", kind + (word("fsdp_config", "fsdp_offload_params") == "true" ? "+offload" : "")});
    for (const char* key : {"fsdp_version", "fsdp_activation_checkpointing"}) {
      std::string value = word("fsdp_config", key);
      if (!value.empty()) settings.push_back({std::string("fsdp_config.") + key, std::move(value)});
    }
  }
  for (const char* key : {"num_processes", "mixed_precision"}) {
    if (std::string value = word({}, key); !value.empty()) settings.push_back({key, std::move(value)});
  }
  std::string compiler = core::lower_case(word("dynamo_config", "dynamo_backend"));
  if (!compiler.empty()) settings.push_back({"dynamo_backend", std::move(compiler)});
  words = std::move(rest);
  return settings;
}

/// The file that hydra is told of by its folder and its name, if it is there. Its words leave the command.
std::string take_hydra_file(std::vector<std::string>& words) {
  std::vector<std::string> rest = words;
  const std::string folder = take_flag(rest, "--config-path");
  std::string name = take_flag(rest, "--config-name");
  if (name.empty()) return {};
  if (!name.ends_with(".yaml")) name += ".yaml";
  std::string file = (std::filesystem::path(folder) / name).string();
  if (!core::read_regular_file(file, trainer_files::kLargestTrainerFile)) return {};
  words = std::move(rest);
  return file;
}

/// PRIME-RL's "@ rl.toml", of which the last file counts most, and "@rl.toml"; those that are there leave the words.
std::vector<std::string> take_files_at(std::vector<std::string>& words) {
  std::vector<std::string> files;
  for (auto at = words.begin(); at != words.end();) {
    const bool apart = *at == "@" && at + 1 != words.end();
    const std::string file = apart ? *(at + 1) : at->starts_with('@') ? at->substr(1) : std::string();
    const bool there = !file.empty() && core::read_regular_file(file, trainer_files::kLargestTrainerFile);
    if (there) files.push_back(file);
    at = there ? words.erase(at, at + (apart ? 2 : 1)) : at + 1;
  }
  return files;
}

std::vector<std::string> settings_files(const PostTrainingCommand& command, std::vector<std::string>& words) {
  if (!command.config.empty()) return {command.config};
  if (std::vector<std::string> files = take_files_at(words); !files.empty()) return files;
  std::string named = take_named_file(words);
  return {named.empty() ? take_hydra_file(words) : named};
}

core::Status read_request(const PostTrainingCommand& command, PostTrainingRequest& request) {
  std::vector<std::string> words = command.command;
  auto accelerate = take_accelerate_file(words);
  if (!accelerate) return accelerate.error();
  std::vector<LaunchSetting> all = *std::move(accelerate);
  for (const std::string& file : settings_files(command, words)) {
    const auto settings = settings_of_file(file);
    if (!settings) return settings.error();
    all.insert(all.end(), settings->begin(), settings->end());
  }
  return posttrain::read_words({std::move(all), words, command.values}, request);
}

Result<int> ask_scheduler(const PostTrainingCommand& command, const PostTrainingRequest& request) {
  const auto margin = place::parse_margin(command.margin);
  if (!margin) return margin.error();
  const auto asked = session::process_session().post_training_request(request, command.target, *margin, {});
  if (!asked) return asked.error();
  std::printf("%s", request::to_text(*asked).c_str());
  return 0;
}

/// The answer to one of the questions. Errors: those of the session.
Result<int> answer(const PostTrainingCommand& command, const PostTrainingRequest& request) {
  const Assumptions& notes = request.assumed;
  Session& session = session::process_session();
  const Terminal terminal = terminal_of(STDOUT_FILENO);
  if (command.fit) {
    const auto limits = session.post_training_limits(request);
    if (!limits) return limits.error();
    nlohmann::ordered_json json = job_json::to_json(*limits);
    json["assumed"] = cli::to_json(notes);
    return print_answer(to_text(*limits, terminal) + cli::to_text(notes), json, command.json,
                        limits->largest_batch ? 0 : kNoAnswer);
  }
  if (command.advise) {
    const auto advice = session.post_training_advice(request);
    if (!advice) return advice.error();
    const nlohmann::ordered_json json = {{"changes", job_json::to_json(*advice)}, {"assumed", cli::to_json(notes)}};
    return print_answer(to_text(*advice, terminal) + cli::to_text(notes), json, command.json,
                        advice->empty() ? kNoAnswer : 0);
  }
  if (command.plan != 0) {
    const auto layouts = session.post_training_layouts(request, command.plan);
    if (!layouts) return layouts.error();
    const nlohmann::ordered_json json = {{"layouts", job_json::to_json(*layouts)}, {"assumed", cli::to_json(notes)}};
    return print_answer(to_text(*layouts, terminal) + cli::to_text(notes), json, command.json,
                        layouts->empty() ? kNoAnswer : 0);
  }
  if (!command.target.empty()) return ask_scheduler(command, request);
  const auto estimate = session.post_training(request);
  if (!estimate) return estimate.error();
  const auto gpu = session.gpu(request.training.gpu);
  if (!gpu) return gpu.error();
  const bool fits = estimate->memory.verdict != estimate::Verdict::does_not_fit;
  return print_answer(to_text(*estimate, **gpu, terminal), job_json::to_json(*estimate, **gpu), command.json,
                      fits ? 0 : kNoAnswer);
}

}  // namespace

int run_post_training(const PostTrainingCommand& command) {
  PostTrainingRequest request = command.request;
  const core::Status read = read_request(command, request);
  const Result<int> code = read ? answer(command, request) : Result<int>(read.error());
  if (code) return *code;
  std::fputs(to_text(request.assumed).c_str(), stderr);
  return report_error(code.error());
}

}  // namespace gpumem::cli
