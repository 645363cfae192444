#include <cstdio>

#include "commands.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;
using request::GpuRequest;

Json map_of(const std::vector<request::Setting>& settings) {
  Json json = Json::object();
  for (const request::Setting& setting : settings) json[setting.name] = setting.value;
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
  json["request"] = {{"for", asked.target},
                     {"memory_bytes", asked.memory.count()},
                     {"annotations", map_of(asked.annotations)},
                     {"limits", map_of(asked.limits)},
                     {"argument", asked.argument.empty() ? Json(nullptr) : Json(asked.argument)}};
  if (estimate.gpus > 1) {
    json["request"]["gpus_per_node"] = asked.gpus_per_node;
    json["request"]["nodes"] = asked.nodes;
  }
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

}  // namespace

int run_request(const RequestOptions& options) {
  // What is wrong with the words is said before anything is read.
  const auto target = request::find_target(options.target);
  if (!target) return report_error(target.error());
  const auto margin = place::parse_margin(options.margin);
  if (!margin) return report_error(margin.error());
  if (options.request.estimator == "all") {
    return report_error({ErrorCode::invalid_argument, "request takes one estimator, not all of them", {}});
  }
  Session session;
  const Result<EstimatedJob> estimated_job = estimate_job(session, options.request);
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
