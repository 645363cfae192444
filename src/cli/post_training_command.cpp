#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem/posttrain/post_training_options.hpp"
#include "gpumem/posttrain/post_training_questions.hpp"
#include "gpumem/serve/served_model.hpp"
#include "job_json.hpp"
#include "post_training_report.hpp"
#include "setting.hpp"

namespace gpumem::cli {

namespace {

using posttrain::Launch;
using posttrain::LaunchSetting;
using posttrain::PostTrainingRequest;

constexpr int kNoAnswer = 4;  ///< it does not fit

int print_answer(const std::string& text, const nlohmann::ordered_json& json, bool as_json, int code) {
  using Json = nlohmann::ordered_json;
  const std::string shown = as_json ? json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text;
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  return code;
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
  const Result<std::string> text = core::read_regular_file(request.summary, trainer_files::kLargestTrainerFile);
  if (!text) return text.error();
  const auto sizes = serve::read_served_model(*text);
  if (sizes) posttrain::set_buckets(request.training.layout, sizes->hidden);
  return core::Done{};
}

/// The request, and what of the program's settings nobody models or knows.
Result<PostTrainingRequest> request_of(const PostTrainingCommand& command, std::vector<std::string>& notes) {
  PostTrainingRequest request = command.request;
  if (!command.config.empty() || !command.command.empty()) {
    const auto settings = settings_of(command);
    if (!settings) return settings.error();
    const Result<posttrain::Program> program = program_of(command, *settings);
    if (!program) return program.error();
    Result<Launch> launch = posttrain::read_launch(*program, *settings);
    if (!launch) return launch.error();
    for (const std::string& text : launch->not_modelled) notes.push_back(text + " is not modelled");
    if (launch->expert_tensor_parallel >
        1) {  // the command asks with the model's own config, not with Megatron's arguments
      notes.push_back("expert_tensor_parallel_size " + std::to_string(launch->expert_tensor_parallel) +
                      " is not modelled");
    }
    for (const std::string& key : launch->unknown) notes.push_back("the key " + key + " is not known");
    for (const std::string& text : launch->missing) notes.push_back("the settings do not say " + text);
    request = std::move(launch->request);
    request.training.summary = std::move(launch->model);
    if (const core::Status laid = lay_over(command.request.training, request.training); !laid) return laid.error();
    if (const core::Status settled = settle(*launch, request.training); !settled) return settled.error();
  }
  for (const auto& [name, value] : command.values) {
    if (const core::Status set = posttrain::set_post_training_option(request.options, name, value); !set) {
      return set.error();
    }
  }
  if (!request.training.summary.empty()) return request;
  return Error{ErrorCode::invalid_argument, "give the policy's config.json", {}};
}

}  // namespace

int run_post_training(const PostTrainingCommand& command) {
  std::vector<std::string> notes;
  const Result<PostTrainingRequest> request = request_of(command, notes);
  if (!request) return report_error(request.error());
  Session& session = session::process_session();
  const Terminal terminal = terminal_of(STDOUT_FILENO);
  if (command.fit) {
    const auto limits = session.post_training_limits(*request);
    if (!limits) return report_error(limits.error());
    return print_answer(to_text(*limits, terminal), job_json::to_json(*limits), command.json,
                        limits->largest_batch ? 0 : kNoAnswer);
  }
  if (command.advise) {
    const auto advice = session.post_training_advice(*request);
    if (!advice) return report_error(advice.error());
    return print_answer(to_text(*advice, terminal), job_json::to_json(*advice), command.json,
                        advice->empty() ? kNoAnswer : 0);
  }
  auto estimate = session.post_training(*request);
  if (!estimate) return report_error(estimate.error());
  for (const std::string& note : notes) estimate->memory.assumed.push_back({"settings", note});
  const auto gpu = session.gpu(request->training.gpu);
  if (!gpu) return report_error(gpu.error());
  const bool fits = estimate->memory.verdict != estimate::Verdict::does_not_fit;
  return print_answer(to_text(*estimate, **gpu, terminal), job_json::to_json(*estimate, **gpu), command.json,
                      fits ? 0 : kNoAnswer);
}

}  // namespace gpumem::cli
