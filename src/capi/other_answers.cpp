// The questions about servers and post-training, and about what there is, as the command line answers them.
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/all.hpp"
#include "gpumem/monitor/nvml.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem/posttrain/post_training_job.hpp"
#include "gpumem/search/frameworks.hpp"
#include "gpumem/serve/server_command.hpp"
#include "guarded.hpp"
#include "held.hpp"
#include "job_json.hpp"
#include "post_training_report.hpp"
#include "questions.hpp"
#include "report.hpp"
#include "serving_report.hpp"
#include "sized.hpp"

namespace gpumem::capi {

namespace {

std::unique_ptr<gpumem_answer> answer_of(const Json& json) {
  auto answer = std::make_unique<gpumem_answer>();
  answer->with("json", [json] { return printed(json); });
  return answer;
}

std::unique_ptr<gpumem_answer> answer_of(const Json& json, const std::string& text) {
  auto answer = answer_of(json);
  answer->with("text", [text] { return text; });
  return answer;
}

/// What has no GPU in its report.
template <typename Told>
Answered answer_of(const core::Result<Told>& told) {
  if (!told) return told.error();
  return answer_of(job_json::to_json(*told), cli::to_text(*told, cli::Terminal{}));
}

/// What `ask` is told of a request.
template <typename Request, typename Ask>
Answered answer_about(const core::Result<Request>& request, const Ask& ask) {
  if (!request) return request.error();
  return answer_of(ask(*request));
}

/// "-" is a file of that name, as everywhere in the C API.
std::string model_of(Words& words) {
  const std::string model = words.take("model").value_or("");
  return model == "-" ? "./-" : model;
}

// --- Servers ----------------------------------------------------------------------------------------------------

core::Result<serve::ServingRequest> serving_request(Words& words) {
  if (const core::Status taken = words.refuse_settings(); !taken) return taken.error();
  const std::string model = model_of(words);
  const std::string gpu = words.take("gpu").value_or(std::string(job::kDefaultGpu));
  const std::string version = words.take("engine_version").value_or("");
  return serve::serving_request_of({model, gpu, version, words.command(), words.options()});
}

// --- Post-training ----------------------------------------------------------------------------------------------

core::Result<posttrain::PostTrainingRequest> post_training_request(Words& words) {
  posttrain::PostTrainingRequest request;
  request.training.summary = model_of(words);
  request.training.gpu = words.take("gpu").value_or(std::string(job::kDefaultGpu));
  posttrain::PostTrainingWords said{.command = words.command(), .options = words.options()};
  for (const auto& [key, value] : words.settings()) said.settings.push_back({key, value});
  if (const core::Status read = posttrain::read_words(said, request); !read) return read.error();
  return request;
}

// --- What there is ----------------------------------------------------------------------------------------------

Json json_of(const device::GpuProfile& profile) {
  const auto figure = [](const std::optional<device::Figure>& known) {
    return known ? Json(known->value) : Json(nullptr);
  };
  std::vector<std::string> stacks;
  for (const device::ContextFigure& context : profile.contexts) stacks.push_back(context.name);
  Json json;
  json["name"] = profile.name;
  json["title"] = profile.title;
  json["aliases"] = profile.aliases;
  json["memory_bytes"] = profile.memory_bytes.value;
  json["capacity_bytes"] = profile.capacity().count();
  json["sm_count"] = figure(profile.sm_count);
  json["memory_bandwidth_bytes_per_second"] = figure(profile.memory_bandwidth_bytes_per_second);
  json["software"] = stacks;
  return json;
}

/// Of an estimate and the GPU that it is for, in words by `told`.
template <typename Estimate, typename Told>
Answered answer_on(const std::string& gpu_name, const core::Result<Estimate>& estimate, const Told& told) {
  if (!estimate) return estimate.error();
  const auto gpu = process_session().gpu(gpu_name);
  if (!gpu) return gpu.error();
  return answer_of(job_json::to_json(*estimate, **gpu), told(*estimate, **gpu));
}

const char* kind_of(job::OptionType type) {
  switch (type) {
    case job::OptionType::flag: return "flag";
    case job::OptionType::whole_number: return "whole_number";
    case job::OptionType::fraction: return "fraction";
    case job::OptionType::text: return "text";
    case job::OptionType::name_or_path: return "name_or_path";
    case job::OptionType::choice: return "choice";
    case job::OptionType::switch_or_choice: return "switch_or_choice";
    case job::OptionType::dimensions: return "dimensions";
  }
  return "text";
}

Json json_of(const job::JobOption& option) {
  const job::Names choices = option.place.choices == nullptr ? job::Names() : option.place.choices();
  return {{"name", option.name},
          {"kind", kind_of(option.place.type)},
          {"default", job_json::to_json(job::default_value(option))},
          {"choices", Json(std::vector<std::string>(choices.begin(), choices.end()))}};
}

template <typename List>
Json names_of(const List& list) {
  Json names = Json::array();
  for (const auto& row : list) names.push_back(row.name);
  return names;
}

}  // namespace

Answered answer_serve(Question& question) {
  const auto request = serving_request(question.words);
  if (!request) return request.error();
  return answer_on(request->gpu, process_session().serve(*request),
                   [](const auto& estimate, const auto&) { return cli::to_text(estimate, cli::Terminal{}); });
}

Answered answer_serving_limits(Question& question) {
  return answer_about(serving_request(question.words),
                      [](const auto& request) { return process_session().serving_limits(request); });
}

Answered answer_serving_advice(Question& question) {
  return answer_about(serving_request(question.words),
                      [](const auto& request) { return process_session().serving_advice(request); });
}

Answered answer_posttrain(Question& question) {
  const auto request = post_training_request(question.words);
  if (!request) return request.error();
  return answer_on(request->training.gpu, process_session().post_training(*request),
                   [](const auto& estimate, const auto& gpu) { return cli::to_text(estimate, gpu, cli::Terminal{}); });
}

Answered answer_posttrain_limits(Question& question) {
  return answer_about(post_training_request(question.words),
                      [](const auto& request) { return process_session().post_training_limits(request); });
}

Answered answer_posttrain_advice(Question& question) {
  return answer_about(post_training_request(question.words),
                      [](const auto& request) { return process_session().post_training_advice(request); });
}

Answered answer_posttrain_layouts(Question& question) {
  const auto gpus = question.words.take_whole("gpus");
  if (!gpus) return gpus.error();
  return answer_about(post_training_request(question.words), [&](const auto& request) {
    return process_session().post_training_layouts(request, gpus->value_or(1));
  });
}

Answered answer_gpus(Question& question) {
  if (const core::Status none = question.words.refuse_rest(); !none) return none.error();
  const auto& profiles = device::known_profiles();
  if (!profiles) return profiles.error();
  Json json = Json::array();
  for (const device::GpuProfile& profile : *profiles) json.push_back(json_of(profile));
  return answer_of(json);
}

Answered answer_estimators(Question& question) {
  if (const core::Status none = question.words.refuse_rest(); !none) return none.error();
  Json json = Json::array();
  for (const estimate::EstimatorEntry& entry : estimate::estimators()) {
    json.push_back({{"name", entry.name}, {"description", entry.description}});
  }
  return answer_of(json);
}

Answered answer_options(Question& question) {
  if (const core::Status none = question.words.refuse_rest(); !none) return none.error();
  Json json;
  json["job"] = Json::array();
  for (const job::JobOption& option : job::job_options()) json["job"].push_back(json_of(option));
  json["serving"] = names_of(serve::serving_options());
  json["posttrain"] = names_of(posttrain::post_training_options());
  Json& names = json["names"];
  names["attentions"] = names_of(model::kAttentionBackends);
  names["frameworks"] = names_of(search::frameworks());
  names["loops"] = names_of(model::kLoops);
  names["losses"] = names_of(model::kLosses);
  names["offloads"] = names_of(model::kOffloads);
  names["optimizers"] = names_of(model::kOptimizers);
  names["precisions"] = names_of(model::kPrecisions);
  names["schedules"] = names_of(model::kSchedules);
  names["shardings"] = names_of(model::kShardings);
  names["transformers"] = names_of(model::kTransformers);
  names["zero_grads"] = names_of(model::kZeroGrads);
  return answer_of(json);
}

Answered answer_server(Question& question) {
  const auto window_ms = question.words.take_whole("window_ms");
  if (!window_ms) return window_ms.error();
  if (const core::Status taken = question.words.refuse_rest(); !taken) return taken.error();
  const std::int64_t window = window_ms->value_or(0);
  if (window < 0 || window > kLongestWindow) return refused("window_ms is not from 0 to 3,600,000");
  const auto live = monitor::read_server(std::chrono::milliseconds(window));
  if (!live) return live.error();
  auto answer = std::make_unique<gpumem_answer>();
  answer->with("json", [server = place::to_json(live->server)] { return server; })
      .with("figures", [warnings = live->warnings] {
        return packed({{"warnings", warnings}});
      });
  return answer;
}

}  // namespace gpumem::capi
