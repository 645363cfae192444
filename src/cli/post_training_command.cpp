#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem/posttrain/post_training_options.hpp"
#include "gpumem/posttrain/post_training_questions.hpp"
#include "job_json.hpp"
#include "post_training_report.hpp"
#include "setting.hpp"

namespace gpumem::cli {

namespace {

using posttrain::Launch;
using posttrain::LaunchSetting;
using posttrain::PostTrainingRequest;

using Assumptions = std::vector<estimate::Assumption>;

constexpr int kNoAnswer = 4;  ///< it does not fit

int print_answer(const std::string& text, const nlohmann::ordered_json& json, bool as_json, int code) {
  using Json = nlohmann::ordered_json;
  const std::string shown = as_json ? json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text;
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  return code;
}

nlohmann::ordered_json json_of(const Assumptions& notes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const estimate::Assumption& note : notes) json.push_back({{"about", note.about}, {"text", note.text}});
  return json;
}

/// The leaves of a file's settings, with the keys above them: "actor_rollout_ref.model.path".
void flatten(const trainer_files::Setting& setting, const std::string& path, std::vector<LaunchSetting>& all) {
  using Kind = trainer_files::Setting::Kind;
  if (setting.kind == Kind::object) {
    for (const trainer_files::Setting& item : setting.items) {
      flatten(item, path.empty() ? item.key : path + "." + item.key, all);
    }
    return;
  }
  std::string value = setting.word;
  for (const trainer_files::Setting& item : setting.items) value += (value.empty() ? "" : "+") + item.word;
  if (setting.kind != Kind::null) all.push_back({path, std::move(value)});
}

Result<std::vector<LaunchSetting>> settings_of(const PostTrainingCommand& command) {
  std::vector<LaunchSetting> settings;
  if (!command.config.empty()) {
    const Result<std::string> text = core::read_regular_file(command.config, trainer_files::kLargestTrainerFile);
    if (!text) return text.error();
    const Result<trainer_files::Setting> root = trainer_files::parse_settings(*text);
    if (!root) return Error(root.error()).in_file(command.config);
    flatten(*root, {}, settings);
  }
  auto words = posttrain::launch_settings(command.command);
  if (!words) return words.error();
  settings.insert(settings.end(), words->begin(), words->end());
  return settings;
}

/// The program that the options name, or whose keys the settings are.
Result<posttrain::Program> program_of(const PostTrainingCommand& command, std::span<const LaunchSetting> settings) {
  if (const auto named = command.values.find("program"); named != command.values.end()) {
    posttrain::PostTrainingOptions options;
    const core::Status set = posttrain::set_post_training_option(options, "program", named->second);
    if (!set) return set.error();
    return options.program;
  }
  if (const auto known = posttrain::program_of(settings)) return *known;
  return Error{ErrorCode::missing_information, "whose settings are these? give --program", {}};
}

/// Options that were given on our command line count more than the program's settings.
core::Status lay_over(const JobRequest& given, JobRequest& request) {
  for (const job::JobOption& option : job::job_options()) {
    if (!job::is_given(option, given)) continue;
    const std::optional<job::OptionValue> value = option.place.get(given);
    if (!value) continue;
    if (core::Status set = job::set_option(option, request, *value); !set) return set;
  }
  if (!given.summary.empty()) request.summary = given.summary;
  return core::Done{};
}

/// What the settings leave to the model: DeepSpeed's buckets, and a tower that is not trained.
core::Status settle(const Launch& launch, JobRequest& request) {
  if (launch.freezes_tower && request.training.freeze.empty()) {
    const auto known = session::process_session().read(request.summary, request.lenient);
    if (!known) return known.error();
    const ModelGraph& graph = *(*known)->graph();
    const auto of_tower = [&](const model::Layer& layer) {
      return graph.path(layer).find("visual") != std::string::npos;
    };
    if (std::any_of(graph.layers().begin(), graph.layers().end(), of_tower)) request.training.freeze = "*visual*";
  }
  if (!launch.buckets_by_width) return core::Done{};
  const auto sizes = session::process_session().served(request.summary);
  if (sizes) posttrain::set_buckets(request.training.layout, (*sizes)->hidden);
  return core::Done{};
}

/// "; give --batch", for an option of the job or of post-training.
std::string remedy_of(std::string_view name) {
  if (job::find_option(name) != nullptr) return job::spelled("; give `" + std::string(name) + "`", job::kCommandLine);
  std::string flag(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return "; give --" + flag;
}

/// Whether somebody gave the option on our command line.
bool gives(const PostTrainingCommand& command, std::string_view name) {
  if (command.values.contains(std::string(name))) return true;
  const job::JobOption* const option = job::find_option(name);
  return option != nullptr && job::is_given(*option, command.request.training);
}

/// What the settings do not say and no option says, as notes. Errors: missing_information where the job needs it.
core::Status say_missing(const PostTrainingCommand& command, const Launch& launch, Assumptions& notes) {
  for (const posttrain::MissingSetting& missing : launch.missing) {
    const auto given = [&](std::string_view name) { return gives(command, name); };
    if (std::any_of(missing.options.begin(), missing.options.end(), given)) continue;
    const std::string text = "the settings do not say " + missing.what;
    if (missing.required) {
      const std::string remedy = remedy_of(missing.options.front());
      return Error{ErrorCode::missing_information, text + remedy, {}};
    }
    notes.push_back({"settings", text});
  }
  return core::Done{};
}

/// The job of a program's settings, and what of them nobody models or knows.
core::Status take_settings(const PostTrainingCommand& command, PostTrainingRequest& request, Assumptions& notes) {
  const auto settings = settings_of(command);
  if (!settings) return settings.error();
  const Result<posttrain::Program> program = program_of(command, *settings);
  if (!program) return program.error();
  Result<Launch> launch = posttrain::read_launch(*program, *settings);
  if (!launch) return launch.error();
  const auto say = [&](std::string text) { notes.push_back({"settings", std::move(text)}); };
  for (const std::string& text : launch->decided) say(text);
  for (const std::string& text : launch->not_modelled) say(text + " is not modelled");
  // The command asks with the model's own config, not with Megatron's arguments.
  const std::int64_t experts = launch->expert_tensor_parallel;
  if (experts > 1) say("expert_tensor_parallel_size " + std::to_string(experts) + " is not modelled");
  for (const std::string& key : launch->unknown) say("the key " + key + " is not known");
  if (core::Status said = say_missing(command, *launch, notes); !said) return said;
  request = std::move(launch->request);
  request.training.summary = std::move(launch->model);
  if (core::Status laid = lay_over(command.request.training, request.training); !laid) return laid;
  return settle(*launch, request.training);
}

/// The request, with notes of what it leaves out.
Result<PostTrainingRequest> request_of(const PostTrainingCommand& command, Assumptions& notes) {
  PostTrainingRequest request = command.request;
  if (!command.config.empty() || !command.command.empty()) {
    if (const core::Status taken = take_settings(command, request, notes); !taken) return taken.error();
  }
  for (const auto& [name, value] : command.values) {
    if (const core::Status set = posttrain::set_post_training_option(request.options, name, value); !set) {
      return set.error();
    }
  }
  if (!request.training.summary.empty()) return request;
  return Error{ErrorCode::invalid_argument, "give the policy's config.json", {}};
}

/// The answer to one of the three questions. Errors: those of the session.
Result<int> answer(const PostTrainingCommand& command, const PostTrainingRequest& request, const Assumptions& notes) {
  Session& session = session::process_session();
  const Terminal terminal = terminal_of(STDOUT_FILENO);
  if (command.fit) {
    const auto limits = session.post_training_limits(request);
    if (!limits) return limits.error();
    nlohmann::ordered_json json = job_json::to_json(*limits);
    json["assumed"] = json_of(notes);
    return print_answer(to_text(*limits, terminal) + cli::to_text(notes), json, command.json,
                        limits->largest_batch ? 0 : kNoAnswer);
  }
  if (command.advise) {
    const auto advice = session.post_training_advice(request);
    if (!advice) return advice.error();
    const nlohmann::ordered_json json = {{"changes", job_json::to_json(*advice)}, {"assumed", json_of(notes)}};
    return print_answer(to_text(*advice, terminal) + cli::to_text(notes), json, command.json,
                        advice->empty() ? kNoAnswer : 0);
  }
  auto estimate = session.post_training(request);
  if (!estimate) return estimate.error();
  estimate->memory.assumed.insert(estimate->memory.assumed.end(), notes.begin(), notes.end());
  const auto gpu = session.gpu(request.training.gpu);
  if (!gpu) return gpu.error();
  const bool fits = estimate->memory.verdict != estimate::Verdict::does_not_fit;
  return print_answer(to_text(*estimate, **gpu, terminal), job_json::to_json(*estimate, **gpu), command.json,
                      fits ? 0 : kNoAnswer);
}

}  // namespace

int run_post_training(const PostTrainingCommand& command) {
  Assumptions notes;
  const Result<PostTrainingRequest> request = request_of(command, notes);
  const Result<int> code = request ? answer(command, *request, notes) : Result<int>(request.error());
  if (code) return *code;
  std::fputs(to_text(notes).c_str(), stderr);
  return report_error(code.error());
}

}  // namespace gpumem::cli
