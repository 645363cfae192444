#include <cstdio>

#include "commands.hpp"
#include "gpumem/serve/server_command.hpp"
#include "job_json.hpp"
#include "report.hpp"
#include "told_jobs.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;
using request::GpuRequest;

Json map_of(const std::vector<request::Setting>& settings) {
  Json json = Json::object();
  for (const request::Setting& setting : settings) json[setting.name] = setting.value;
  return json;
}

Json request_json(const GpuRequest& asked, std::int64_t gpus) {
  Json json = {{"for", asked.target},
               {"memory_bytes", asked.memory.count()},
               {"annotations", map_of(asked.annotations)},
               {"limits", map_of(asked.limits)},
               {"argument", asked.argument.empty() ? Json(nullptr) : Json(asked.argument)}};
  if (gpus > 1) {
    json["gpus_per_node"] = asked.gpus_per_node;
    json["nodes"] = asked.nodes;
  }
  return json;
}

Json to_json(const EstimatedJob& estimated_job, const GpuRequest& asked, const std::string& margin) {
  const MemoryEstimate& estimate = *estimated_job.answers.front().estimate;
  Json json = head_json(estimated_job);
  json["estimator"] = estimated_job.answers.front().estimator;
  json["expected_bytes"] = estimate.expected.count();
  json["upper_bytes"] = estimate.upper.count();
  json["verdict"] = model::name_of(estimate::kVerdicts, estimate.verdict);
  json["assumed"] = cli::to_json(estimate.assumed);
  json["margin"] = margin;
  json["request"] = request_json(asked, estimate.gpus);
  return json;
}

/// " on each of 16 GPUs, 8 a node"; empty for one.
std::string gpus_text(const GpuRequest& asked) {
  const std::int64_t gpus = asked.gpus_per_node * asked.nodes;
  if (gpus == 1) return {};
  std::string text = " on each of " + core::with_separators(gpus) + " GPUs";
  if (asked.nodes > 1) text += ", " + core::with_separators(asked.gpus_per_node) + " a node";
  return text;
}

/// To standard error, so that standard output can be given to another command.
void print_headline(const EstimatedJob& estimated_job, const GpuRequest& asked) {
  const MemoryEstimate& estimate = *estimated_job.answers.front().estimate;
  std::fprintf(stderr, "gpumem: %s at batch %s needs %s on %s, asking for %s MiB%s\n",
               core::shortened(estimated_job.graph->file(), 200).c_str(),
               core::with_separators(estimated_job.job.batch_size).c_str(), core::to_string(estimate.expected).c_str(),
               estimated_job.gpu->name.c_str(), core::with_separators(request::mebibytes(asked.memory)).c_str(),
               gpus_text(asked).c_str());
  std::fputs(why_tight(estimate, *estimated_job.gpu, "gpumem: ").c_str(), stderr);
  for (const estimate::Assumption& assumption : estimate.assumed) {
    std::fprintf(stderr, "gpumem: assumed: %s\n", said(assumption.text).c_str());
  }
}

/// `words`: the server's command, without what starts it; empty: there is none.
int request_for_server(const RequestOptions& options, const std::vector<std::string>& words,
                       const place::Margin& margin) {
  if (const core::Status asks = asks_of_a_server(options.request); !asks) return report_error(asks.error());
  Session& session = session::process_session();
  const auto question =
      serve::serving_request_of({options.request.summary, options.request.gpu, options.engine_version, words});
  if (!question) return report_error(question.error());
  const auto asked = session.serving_request(*question, options.target, margin, options.site);
  if (!asked) return report_error(asked.error());
  if (options.json) {
    const auto server = session.serve(*question);
    const auto gpu = session.gpu(question->gpu);
    if (!server) return report_error(server.error());
    if (!gpu) return report_error(gpu.error());
    Json json = job_json::to_json(*server, **gpu);
    json["margin"] = options.margin;
    json["request"] = request_json(*asked, asked->gpus_per_node * asked->nodes);
    std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return 0;
  }
  std::printf("%s", request::to_text(*asked).c_str());
  return 0;
}

}  // namespace

int run_request(const RequestOptions& options) {
  // What is wrong with the words is said before anything is read.
  const auto target = request::find_target(options.target);
  if (!target) return report_error(target.error());
  const auto margin = place::parse_margin(options.margin);
  if (!margin) return report_error(margin.error());
  const Result<Launched> launched = launched_by(options.command);
  if (!launched) return report_error(launched.error());
  const bool serves = *launched && (*launched)->program == trainer_files::LaunchedProgram::server;
  if (serves) return request_for_server(options, (*launched)->words, *margin);
  Session session;
  const Result<ToldJob> told = told_by_command(session, *launched, options.request);
  if (!told) return report_error(told.error());
  if (options.request.estimator == "all") {
    return report_error({ErrorCode::invalid_argument, "request takes one estimator, not all of them", {}});
  }
  const Result<EstimatedJob> estimated_job = estimate_told_job(session, *told);
  if (!estimated_job) return report_error(estimated_job.error());
  const Answer& answer = estimated_job->answers.front();
  if (!answer.estimate) return report_error(answer.estimate.error());
  print_warnings(*estimated_job);
  const Result<GpuRequest> asked =
      request::make_request(options.target, *answer.estimate, *estimated_job->gpu, *margin, options.site);
  if (!asked) return report_error(Error(asked.error()).in_file(estimated_job->graph->file()));
  if (options.json) {
    const Json json = to_json(*estimated_job, *asked, options.margin);
    std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
    return 0;
  }
  print_headline(*estimated_job, *asked);
  std::printf("%s", request::to_text(*asked).c_str());
  return 0;
}

}  // namespace gpumem::cli
