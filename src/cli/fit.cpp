#include <chrono>
#include <cstdio>

#include "commands.hpp"
#include "gpumem/estimate/fit.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;

Json optional_estimate(const std::optional<MemoryEstimate>& estimate) {
  return estimate ? to_json(*estimate) : Json(nullptr);
}

Json to_json(const Evaluation& evaluation, std::string_view estimator, const Fit& fit, double seconds) {
  Json json = head_json(evaluation);
  json["job"].erase("batch_size");
  json["estimator"] = estimator;
  json["largest_batch"] = fit.batch_size;
  json["at_least"] = fit.at_least;
  json["estimate"] = optional_estimate(fit.estimate);
  json["one_more"] = optional_estimate(fit.next);
  json["estimates_made"] = fit.estimates;
  json["seconds"] = seconds;
  return json;
}

std::string need_of(const std::optional<MemoryEstimate>& estimate) {
  return estimate ? core::to_string(estimate->expected) : "more than 64 bits can count";
}

std::string to_text(const Fit& fit, const GpuProfile& gpu) {
  const std::string batch = core::with_separators(fit.batch_size);
  const std::string takes = need_of(fit.estimate) + " of " + core::to_string(gpu.capacity());
  if (fit.at_least) return "largest batch: at least " + batch + " (" + takes + "); larger ones are not tried\n";
  std::string text = "largest batch " + batch + ": " + takes + "; batch " + core::with_separators(fit.batch_size + 1) +
                     " would need " + need_of(fit.next) + "\n";
  if (fit.estimate->retries > 0) {
    text += "it fits because the allocator gives back its cache " + core::with_separators(fit.estimate->retries) +
            " times, which slows the job down\n";
  }
  return text;
}

Error does_not_fit(const Fit& fit, const Evaluation& evaluation) {
  return {ErrorCode::missing_information,
          "not even batch 1 fits: it would need " + need_of(fit.next) + " of " +
              core::to_string(evaluation.gpu->capacity()) + " on " + evaluation.gpu->name,
          {evaluation.graph->file(), 0, {}}};
}

}  // namespace

int run_fit(const FitOptions& options) {
  JobRequest request = options.request;
  request.batch_size = 1;
  Evaluator evaluator;
  const auto estimators = evaluator.estimators_of(request.estimator, request.alloc_conf, request.model);
  if (!estimators) return report_error(estimators.error());
  if (estimators->size() > 1) {
    return report_error({ErrorCode::invalid_argument, "fit takes one estimator, not all of them", {}});
  }
  const Estimator& estimator = *estimators->front();
  const Result<Evaluation> evaluation = evaluator.read(request);
  if (!evaluation) return report_error(evaluation.error());

  const auto begin = std::chrono::steady_clock::now();
  const Result<Fit> fit = estimate::largest_batch(evaluation->job, *evaluation->gpu, estimator);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!fit) return report_error(fit.error());
  print_warnings(*evaluation->graph);
  if (options.json) {
    const Json json = to_json(*evaluation, estimator.name(), *fit, seconds.count());
    std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  }
  if (fit->batch_size == 0) return report_error(does_not_fit(*fit, *evaluation));
  if (!options.json) {
    std::printf("%s%s", headline(*evaluation, false).c_str(), to_text(*fit, *evaluation->gpu).c_str());
  }
  return 0;
}

}  // namespace gpumem::cli
