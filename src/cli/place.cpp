#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "commands.hpp"
#include "figures.hpp"
#include "gpumem/core/csv.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "placed_job.hpp"
#include "report.hpp"
#include "server_table.hpp"
#include "told_jobs.hpp"

namespace gpumem::cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using place::Decision;

/// Not now, but later: neither done nor an error.
constexpr int kMustWait = 5;

/// What is to be placed, out of a .rad file, out of the options or out of the command that starts it.
struct Job {
  ToldJob told;
  std::string id;
  std::string policy;
  std::optional<std::int64_t> gpus = {};  ///< as somebody said
  std::optional<datasets::RadFile> rad;
};

/// The estimate on one of the server's kinds of GPUs.
struct Need {
  std::string profile;
  EstimatedJob estimated_job;
  place::Request request;
};

struct Placing {
  const Job& job;
  const place::Server& server;
  const place::Policy& policy;
  const place::Conditions& conditions;
  const place::Margin& margin;
  std::vector<Need> needs;      ///< one a kind of GPU, the largest first; none without an estimator
  std::optional<double> smact;  ///< the job's own, where it was asked for
  place::Request request;
  Decision decision;
};

core::Result<Job> job_of(const PlaceOptions& options, const Launched& launched, Session& session) {
  Job job;
  JobRequest request = options.request;
  const std::string& named = options.job.empty() && launched ? launched->script : options.job;
  job.id = options.id.empty() ? fs::path(named).stem().string() : options.id;
  if (job.id.empty() || job.id == "-") job.id = "job";
  job.policy = options.placing.policy;
  job.gpus = options.gpus;
  if (core::lower_case(options.job).ends_with(".rad")) {
    auto rad = take_rad(options.job, {request, job.policy, job.gpus});
    if (!rad) return rad.error();
    job.rad = *std::move(rad);
  } else {
    request.summary = options.job;
  }
  const bool estimated = request.estimator != kNoEstimator || options.smact == kEstimateSmact;
  auto told =
      estimated ? told_by_command(session, launched, request) : told_without_estimate(session, launched, request);
  if (!told) return told.error();
  job.told = *std::move(told);
  if (job.policy.empty()) job.policy = "magm";
  return job;
}

core::Result<std::unique_ptr<place::Policy>> policy_of(const Job& job, const PlaceOptions& options) {
  auto policy = place::make_policy(job.policy);
  if (policy || !options.placing.policy.empty()) return policy;
  Error error = policy.error();
  error.code = ErrorCode::malformed_input;
  error.place = {options.job, job.rad->policy_line, {}};
  return error;
}

/// The job's need on every kind of GPU that the server has; `gpu` is the kind of those that tell none.
core::Result<std::vector<Need>> needs_of(const Job& job, const place::Server& server, const place::Margin& margin,
                                         Session& session) {
  std::vector<Need> needs;
  for (const std::string& kind : kinds_of(server, job.told.request.gpu)) {
    ToldJob on_gpu = job.told;
    on_gpu.request.gpu = kind;
    if (on_gpu.otherwise) on_gpu.otherwise->gpu = kind;
    auto estimated_job = estimate_told_job(session, on_gpu);
    if (!estimated_job) return without_estimate(estimated_job.error(), on_gpu.request);
    if (estimated_job->answers.size() > 1) return wrong_usage("place takes one estimator, not all of them");
    const auto& estimate = estimated_job->answers.front().estimate;
    if (!estimate) return estimate.error();
    place::Request request;
    const core::Status asked = place::ask_for(request, *estimate, margin);
    if (!asked) return asked.error();
    needs.push_back({kind, *std::move(estimated_job), request});
  }
  std::stable_sort(needs.begin(), needs.end(), [](const Need& left, const Need& right) {
    return left.request.memory.value_or(Bytes()) > right.request.memory.value_or(Bytes());
  });
  return needs;
}

/// What the layout takes, or a recording ran on, or the command starts on, or somebody said.
core::Result<std::int64_t> gpus_of(const Job& job, const std::vector<Need>& needs) {
  if (!needs.empty()) return gpus_to_place(needs.front().request.gpus, job.gpus);
  const auto layout = parallel::world_size(job.told.request.training.layout);
  if (!layout) return layout.error();
  return gpus_to_place(*layout > 1 ? *layout : job.told.gpus, job.gpus);
}

/// What to do with a job of more GPUs than one server has; empty: it has as many.
std::string beyond_one_server(const Placing& placing) {
  const auto gpus = static_cast<std::int64_t>(placing.server.gpus.size());
  if (placing.request.gpus <= gpus || placing.needs.empty()) return {};
  return "several servers are a scheduler's to place on: gpumem request says what to ask it for (--gpus-per-node " +
         std::to_string(gpus) + ")\n";
}

/// The job's SM activity without other jobs, on the kind of GPU that it keeps busiest.
core::Result<std::optional<double>> most_smact(const Job& job, const place::Server& server, Session& session) {
  std::optional<double> most;
  for (const std::string& kind : kinds_of(server, job.told.request.gpu)) {
    JobRequest on_gpu = job.told.request;
    on_gpu.gpu = kind;
    if (on_gpu.training.batch_size == 0)
      return wrong_usage("--smact estimate needs a batch size: give it with --batch");
    const auto estimated_job = read_job(session, on_gpu);
    if (!estimated_job) return estimated_job.error();
    const auto smact = estimated_smact(session, *estimated_job);
    if (!smact) return smact.error();
    most = std::max(most.value_or(0.0), *smact);
  }
  return most;
}

/// The server as it was decided on, the GPUs that are given marked.
std::string decided_table(const Placing& placing, const Terminal& terminal) {
  return server_table(placing.server, {placing.decision.gpus, placing.job.id}, terminal);
}

std::string need_line(const Placing& placing) {
  if (placing.needs.empty()) return "no estimate\n" + assumed_lines(placing.job.told.notes);
  const Need& need = placing.needs.front();
  const Answer& answer = need.estimated_job.answers.front();
  std::string text = std::string(answer.estimator) + ": " + core::to_string(answer.estimate->expected) + " expected, ";
  text += core::to_string(*placing.request.memory) + " with ";
  text += placing.margin.upper ? "its upper bound" : "a margin of " + core::to_string(placing.margin.bytes);
  if (placing.request.gpus > 1) text += ", on each of " + core::with_separators(placing.request.gpus) + " GPUs";
  text += "\n";
  if (answer.estimate->coverage.layers_unknown > 0) text += "a lower bound: layers have unknown classes\n";
  if (!answer.estimate->leaves_out.empty()) text += "a lower bound: without " + answer.estimate->leaves_out + "\n";
  if (!answer.estimate->out_of_domain.empty())
    text += "do not trust this: the job is unlike the jobs that the model was trained on\n";
  return text + why_tight(*answer.estimate, *need.estimated_job.gpu, {}) + assumed_text(*answer.estimate);
}

std::string policy_line(const Placing& placing) {
  std::string text = "policy " + std::string(placing.policy.name()) + ": next to other jobs with at least " +
                     core::to_string(placing.conditions.free_floor) + " free";
  if (placing.policy.name() == "exclusive" || placing.request.exclusive) {
    text = "policy " + std::string(placing.policy.name()) + ": on idle GPUs, without other jobs";
  }
  if (placing.conditions.smact_cap) text += ", SM activity below " + percent(*placing.conditions.smact_cap);
  if (placing.conditions.smact_together) text += ", together below it while a GPU is left";
  if (placing.conditions.idle_first) text += ", idle GPUs first";
  return text + "\n";
}

std::string to_text(const Placing& placing, const Terminal& terminal) {
  std::string text = placing.needs.empty() ? "" : headline(placing.needs.front().estimated_job);
  text += need_line(placing);
  if (placing.smact) text += "SM activity " + percent(*placing.smact) + " by itself\n";
  text += policy_line(placing) + "\n" + decided_table(placing, terminal) + "\n";
  return text + printable_id(placing.job.id) + ": " +
         place::explain(placing.decision, placing.request, placing.server, placing.conditions) + "\n" +
         beyond_one_server(placing);
}

Json bytes_or_null(const std::optional<Bytes>& bytes) { return bytes ? Json(bytes->count()) : Json(nullptr); }

Json decision_json(const Placing& placing) {
  const Decision& decision = placing.decision;
  const bool named = !decision.placed();
  Json gpus = Json::array();
  for (const std::size_t index : decision.gpus) gpus.push_back(placing.server.gpus[index].id);
  return {{"placed", decision.placed()},
          {"gpus", std::move(gpus)},
          {"refusal", named ? Json(place::to_string(decision.refusal)) : Json(nullptr)},
          {"nearest", named ? Json(placing.server.gpus[decision.nearest].id) : Json(nullptr)},
          {"words", place::explain(decision, placing.request, placing.server, placing.conditions)}};
}

Json placing_json(const Placing& placing) {
  Json json = {{"schema", 1}};
  if (!placing.needs.empty()) {
    json = head_json(placing.needs.front().estimated_job);
    json.erase("gpu");
    json.erase("capacity_bytes");
    json["estimates"] = Json::array();
  }
  for (const Need& need : placing.needs) {
    const Answer& answer = need.estimated_job.answers.front();
    Json estimate = {{"gpu", need.profile}, {"estimator", answer.estimator}};
    estimate.update(cli::to_json(*answer.estimate));
    estimate["seconds"] = answer.seconds;
    json["estimates"].push_back(std::move(estimate));
  }
  if (placing.job.rad) {
    json["rad"] = {{"commands", placing.job.rad->commands}, {"dataset", placing.job.rad->dataset}};
  }
  const place::Conditions& conditions = placing.conditions;
  json["request"] = {{"id", placing.job.id},
                     {"gpus", placing.request.gpus},
                     {"memory_bytes", bytes_or_null(placing.request.memory)},
                     {"alone_bytes", bytes_or_null(placing.request.alone)},
                     {"exclusive", placing.request.exclusive}};
  if (placing.smact) json["request"]["smact"] = rounded(*placing.smact);
  json["policy"] = placing.policy.name();
  json["conditions"] = {{"smact_cap", conditions.smact_cap ? Json(*conditions.smact_cap) : Json(nullptr)},
                        {"free_floor_bytes", conditions.free_floor.count()},
                        {"idle_first", conditions.idle_first}};
  json["decision"] = decision_json(placing);
  return json;
}

int exit_code_of(const Decision& decision) {
  if (decision.placed()) return 0;
  return decision.refusal == place::Refusal::never ? core::exit_code(ErrorCode::missing_information) : kMustWait;
}

int answer(Placing& placing, const PlaceOptions& options) {
  placing.request = placing.needs.empty() ? place::Request{} : placing.needs.front().request;
  placing.request.id = placing.job.id;
  const core::Result<std::int64_t> gpus = gpus_of(placing.job, placing.needs);
  if (!gpus) return report_error(gpus.error());
  placing.request.gpus = *gpus;
  placing.request.exclusive = options.exclusive;
  placing.request.smact = placing.smact.value_or(0.0);
  const core::Status valid = place::validate(placing.request);
  if (!valid) return report_error(valid.error());
  std::size_t turn = options.turn;
  placing.decision = placing.policy.decide(placing.request, placing.server, placing.conditions, turn);
  if (!placing.needs.empty()) print_warnings(placing.needs.front().estimated_job);
  const std::string text = options.json
                               ? placing_json(placing).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                               : to_text(placing, terminal_of(STDOUT_FILENO));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return exit_code_of(placing.decision);
}

}  // namespace

int run_place(const PlaceOptions& options) {
  const Result<Launched> launched = launched_by(options.command);
  if (!launched) return report_error(launched.error());
  const bool serves = *launched && (*launched)->program == trainer_files::LaunchedProgram::server;
  if (serves) return run_place_server(options);
  auto conditions = conditions_from(options.placing);
  if (!conditions) return report_error(conditions.error());
  const auto margin = place::parse_margin(options.placing.margin);
  if (!margin) return report_error(margin.error());
  auto smact = told_smact(options.smact);
  if (!smact) return report_error(smact.error());
  Session session;
  const auto job = job_of(options, *launched, session);
  if (!job) return report_error(job.error());
  const auto policy = policy_of(*job, options);
  if (!policy) return report_error(policy.error());
  const auto server = server_from(options.server, options.window);
  if (!server) return report_error(server.error());
  if (options.smact == kEstimateSmact) smact = most_smact(*job, *server, session);
  if (!smact) return report_error(smact.error());
  conditions->smact_together = smact->has_value();
  Placing placing = {*job, *server, **policy, *conditions, *margin, {}, *smact, {}, {}};
  if (job->told.request.estimator != kNoEstimator) {
    auto needs = needs_of(*job, *server, *margin, session);
    if (!needs) return report_error(needs.error());
    placing.needs = *std::move(needs);
  }
  return answer(placing, options);
}

}  // namespace gpumem::cli
