#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "gpumem/serve/server_command.hpp"
#include "gpumem/serve/serving_questions.hpp"
#include "job_json.hpp"
#include "serving_report.hpp"

namespace gpumem::cli {

namespace {

template <typename Answer>
void print_answer(const Answer& answer, const nlohmann::ordered_json& json, bool as_json) {
  const std::string text = as_json ? json.dump(2) + "\n" : to_text(answer, terminal_of(STDOUT_FILENO));
  std::printf("%s", text.c_str());
}

int fit_server(const serve::ServingRequest& request, bool json) {
  const auto limits = session::process_session().serving_limits(request);
  if (!limits) return report_error(limits.error());
  print_answer(*limits, job_json::to_json(*limits), json);
  return limits->longest_context ? 0 : 4;
}

int advise_on_server(const serve::ServingRequest& request, bool json) {
  const auto advice = session::process_session().serving_advice(request);
  if (!advice) return report_error(advice.error());
  print_answer(*advice, job_json::to_json(*advice), json);
  return advice->empty() ? 4 : 0;
}

int plan_server(const serve::ServingRequest& request, std::int64_t gpus, bool json) {
  const auto layouts = session::process_session().serving_plan(request, gpus);
  if (!layouts) return report_error(layouts.error());
  print_answer(*layouts, job_json::to_json(*layouts), json);
  return layouts->empty() ? 4 : 0;
}

int request_for_server(const serve::ServingRequest& request, const ServeOptions& options) {
  const auto margin = place::parse_margin(options.margin);
  if (!margin) return report_error(margin.error());
  const auto asked = session::process_session().serving_request(request, options.target, *margin, {});
  if (!asked) return report_error(asked.error());
  std::printf("%s", request::to_text(*asked).c_str());
  return 0;
}

}  // namespace

int run_serve(const ServeOptions& options) {
  const Result<serve::ServingRequest> request =
      serve::serving_request_of({options.config, options.gpu, options.engine_version, options.command, options.values});
  if (!request) return report_error(request.error());
  if (options.fit) return fit_server(*request, options.json);
  if (options.advise) return advise_on_server(*request, options.json);
  if (!options.target.empty()) return request_for_server(*request, options);
  if (options.plan != 0) return plan_server(*request, options.plan, options.json);
  const auto estimate = session::process_session().serve(*request);
  if (!estimate) return report_error(estimate.error());
  const auto gpu = session::process_session().gpu(request->gpu);
  if (!gpu) return report_error(gpu.error());
  print_answer(*estimate, job_json::to_json(*estimate, **gpu), options.json);
  return estimate->starts ? 0 : 4;
}

}  // namespace gpumem::cli
