// Input: a model's text, and a question about a job as JSON. Output: the answer as JSON, made by what answers the
// command line. Compiled to WebAssembly: a page has no command line, and these few functions are all that it calls.
#include <emscripten.h>  // NOLINT: of the other compiler

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "answers.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/search/frameworks.hpp"
#include "gpumem/serve/server_command.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "plan_report.hpp"
#include "report.hpp"
#include "timeline_page.hpp"

namespace gpumem::web {

namespace {

using cli::EstimatedJob;
using job::JobRequest;
using Json = nlohmann::ordered_json;

std::string dumped(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// What belongs to one model. A new text is a new model, whatever its name.
struct Page {
  std::unique_ptr<Session> session = std::make_unique<Session>();
  std::string answer;  ///< the last one, until the next is asked for
};

Page& page() {
  static Page page;
  return page;
}

Json error_reply(const Error& error) { return {{"error", cli::to_json(error)}, {"says", cli::said(error)}}; }

/// `text` is what the command line prints with --json, to the byte.
Json reply(const EstimatedJob& estimated_job, const Json& json) {
  Json warnings = Json::array();
  const auto add = [&](const model::Warning& warning) {
    warnings.push_back(
        {{"line", warning.place.line}, {"message", warning.message}, {"says", cli::said(cli::to_text(warning))}});
  };
  for (const model::Warning& warning : estimated_job.graph->warnings()) add(warning);
  for (const model::Warning& warning : estimated_job.guesses) add(warning);
  return {{"text", dumped(json, 2) + "\n"}, {"warnings", std::move(warnings)}};
}

Json estimate(const JobRequest& request, const Json& /*question*/) {
  const Result<EstimatedJob> estimated_job = cli::estimate_job(*page().session, request);
  if (!estimated_job) return error_reply(estimated_job.error());
  const auto& answers = estimated_job->answers;
  if (answers.size() == 1 && !answers[0].estimate) return error_reply(answers[0].estimate.error());
  return reply(*estimated_job, cli::to_json(*estimated_job));
}

Json fit(const JobRequest& request, const Json& /*question*/) {
  const auto found = cli::find_fit({.request = request}, *page().session);
  if (!found) return error_reply(found.error());
  Json said =
      reply(found->estimated_job, cli::to_json(found->estimated_job, found->estimator, found->fit, found->seconds));
  if (found->fit.estimate) return said;
  said.update(error_reply(cli::does_not_fit(found->fit, found->estimated_job)));
  said["why"] = cli::said(cli::why_nothing_fits(found->fit, found->estimated_job));  // the page has its own remedy
  return said;
}

Json timeline(const JobRequest& request, const Json& /*question*/) {
  const auto found = cli::find_timeline(request, *page().session);
  if (!found) return error_reply(found.error());
  return {{"page", cli::timeline_page(found->estimated_job, found->timeline)}};
}

// clang-format off
EM_JS(void, report_progress, (double done, double all), {
  if (Module['onProgress']) Module['onProgress'](done, all);
});
// clang-format on

Json plan(const JobRequest& request, const Json& question) {
  cli::PlanOptions options{.request = request};
  if (const auto taken = cli::take_plan_options(question.value("plan", Json::object()), options); !taken) {
    return error_reply(taken.error());
  }
  const auto found = cli::find_plan(options, *page().session, [](std::size_t done, std::size_t all) {
    report_progress(static_cast<double>(done), static_cast<double>(all));
  });
  if (!found) return error_reply(found.error());
  Json said = reply(found->estimated_job, cli::to_json(found->estimated_job, found->plan, found->question));
  if (found->plan.layouts.empty()) said.update(error_reply(cli::no_layout(found->plan, found->estimated_job)));
  Json texts = Json::array();
  for (const search::PlannedLayout& layout : found->plan.layouts) texts.push_back(cli::layout_text(layout.job));
  said["layouts"] = std::move(texts);
  return said;
}

Json advise(const JobRequest& request, const Json& /*question*/) {
  const auto found = cli::find_advice({.request = request}, *page().session);
  return found ? reply(found->estimated_job, cli::to_json(*found)) : error_reply(found.error());
}

Json gpus(const JobRequest& request, const Json& /*question*/) {
  cli::GpusOptions options;
  options.request = request;
  const auto found = cli::find_gpus(options, *page().session);
  return found ? reply(found->estimated_job, cli::to_json(*found)) : error_reply(found.error());
}

/// `question`: {"job": {"summary": ..., "gpu": ...}, "serve": {"version": ..., "command": [words]}}; the same as
/// `gpumem serve` prints.
Json serve_model(const JobRequest& request, const Json& question) {
  const auto text_of = [](const Json& json) { return json.is_string() ? json.get<std::string>() : std::string(); };
  const Json asked = question.value("serve", Json::object());
  std::vector<std::string> command;
  for (const Json& word : asked.value("command", Json::array())) command.push_back(text_of(word));
  serve::ServingWords words{request.summary, request.gpu, text_of(asked.value("version", Json("")))};
  words.command = command;
  const auto asked_server = serve::serving_request_of(words);
  if (!asked_server) return error_reply(asked_server.error());
  const auto server = cli::find_server(*asked_server, *page().session);
  if (!server) return error_reply(server.error());
  return {{"text", dumped(*server, 2) + "\n"}, {"warnings", Json::array()}};
}

Json answer_to(std::string_view verb, const Json& question) {
  using Answer = Json (*)(const JobRequest&, const Json&);
  constexpr std::pair<std::string_view, Answer> kVerbs[] = {
      {"estimate", &estimate}, {"fit", &fit},   {"timeline", &timeline}, {"plan", &plan},
      {"advise", &advise},     {"gpus", &gpus}, {"serve", &serve_model}};
  for (const auto& [name, answer] : kVerbs) {
    if (name != verb) continue;
    const auto request = job_json::fields_from(question.value("job", Json::object()), {});
    return request ? answer(*request, question) : error_reply(request.error());
  }
  return error_reply({ErrorCode::invalid_argument, "there is no question " + core::quoted(verb), {}});
}

constexpr std::string_view type_name(job::OptionType type) {
  switch (type) {
    case job::OptionType::flag: return "flag";
    case job::OptionType::whole_number: return "whole";
    case job::OptionType::fraction: return "fraction";
    case job::OptionType::choice: return "choice";
    case job::OptionType::switch_or_choice: return "switch";
    case job::OptionType::dimensions: return "dimensions";
    case job::OptionType::text:
    case job::OptionType::name_or_path: break;
  }
  return "text";
}

Json option_json(const job::JobOption& option) {
  Json json = {{"name", option.name}, {"flag", option.flag},   {"type", type_name(option.place.type)},
               {"help", option.help}, {"value", option.value}, {"default", job::default_text(option)}};
  if (option.place.choices != nullptr) json["choices"] = option.place.choices();
  return json;
}

template <typename Entries>
Json names_of(const Entries& entries) {
  Json names = Json::array();
  for (const auto& entry : entries) names.push_back(entry.name);
  return names;
}

/// Whether its job has a number of tokens: a config of images alone has no vocabulary.
bool reads_tokens(const summary::PublishedModel& model) {
  const auto names = [&](std::string_view key) { return model.config.find(key) != std::string::npos; };
  return names("\"vocab_size\"") || names("\"text_config\"");
}

/// What the page makes its form of.
Json about() {
  Json json = {{"version", GPUMEM_VERSION_STRING}, {"options", Json::array()}, {"gpus", Json::array()}};
  json["models"] = Json::array();
  for (const std::string_view name : summary::published_model_names()) {
    const auto model = summary::published_model(name);
    json["models"].push_back({{"name", name}, {"parameters", model->parameters}, {"tokens", reads_tokens(*model)}});
  }
  for (const job::JobOption& option : job::job_options()) json["options"].push_back(option_json(option));
  if (const auto profiles = device::known_profiles()) {
    for (const device::GpuProfile& profile : *profiles) {
      json["gpus"].push_back(
          {{"name", profile.name}, {"title", profile.title}, {"capacity_bytes", profile.capacity().count()}});
    }
  }
  json["estimators"] = names_of(estimate::estimators());
  json["frameworks"] = names_of(search::frameworks());
  return json;
}

const char* kept(const Json& json) {
  page().answer = dumped(json, -1);
  return page().answer.c_str();
}

}  // namespace

}  // namespace gpumem::web

extern "C" {

EMSCRIPTEN_KEEPALIVE const char* gpumem_web_about() { return gpumem::web::kept(gpumem::web::about()); }

/// Holds the text as a file of this name, which jobs then name as their "summary". Empty, or what is wrong.
EMSCRIPTEN_KEEPALIVE const char* gpumem_web_model(const char* name, const char* text, std::size_t length) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::path path(name);
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), failure);
  const gpumem::core::Status written = gpumem::core::write_file(name, {text, length});
  gpumem::web::page() = {};
  if (!written) gpumem::web::page().answer = gpumem::core::to_string(written.error());
  return gpumem::web::page().answer.c_str();
}

/// `question`: {"job": {"summary": ..., ...}}, and beside it {"plan": {...}} of a plan, {"serve": {...}} of a server.
EMSCRIPTEN_KEEPALIVE const char* gpumem_web_answer(const char* verb, const char* question) {
  const auto json = gpumem::job_json::parse_json(question);
  if (!json || !json->is_object()) {
    return gpumem::web::kept(gpumem::web::error_reply(
        {gpumem::core::ErrorCode::malformed_input, "the question is not a JSON object, or too large", {}}));
  }
  return gpumem::web::kept(gpumem::web::answer_to(verb, *json));
}
}
