#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "gpumem/serve/serving_questions.hpp"
#include "gpumem/serve/vllm_command.hpp"
#include "job_json.hpp"
#include "serving_report.hpp"

namespace gpumem::cli {

namespace {

Result<serve::ServingRequest> serving_request_of(const ServeOptions& options) {
  serve::ServingRequest request;
  request.config = options.config;
  request.gpu = options.gpu;
  request.job.version = options.engine_version;
  if (!options.command.empty()) {
    Result<serve::ServingJob> asked = serve::read_vllm_command(options.command, request.job);
    if (!asked) return asked.error();
    request.job = *std::move(asked);
    if (request.config.empty() && options.command.size() > 2) request.config = options.command[2];  // "vllm serve NAME"
  }
  for (const auto& [name, value] : options.values) {
    if (const core::Status set = serve::set_serving_option(request.job, name, value); !set) return set.error();
  }
  if (request.config.empty()) {
    return Error{core::ErrorCode::invalid_argument,
                 "give a config.json, a folder that has one, or a name in the local HuggingFace cache",
                 {}};
  }
  return request;
}

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

}  // namespace

int run_serve(const ServeOptions& options) {
  const Result<serve::ServingRequest> request = serving_request_of(options);
  if (!request) return report_error(request.error());
  if (options.fit) return fit_server(*request, options.json);
  if (options.advise) return advise_on_server(*request, options.json);
  const auto estimate = session::process_session().serve(*request);
  if (!estimate) return report_error(estimate.error());
  const auto gpu = session::process_session().gpu(request->gpu);
  if (!gpu) return report_error(gpu.error());
  print_answer(*estimate, job_json::to_json(*estimate, **gpu), options.json);
  return estimate->starts ? 0 : 4;
}

}  // namespace gpumem::cli
