#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "commands.hpp"
#include "gpumem/serve/server_command.hpp"
#include "gpumem/serve/serving_questions.hpp"
#include "job_json.hpp"
#include "placed_job.hpp"
#include "placement_options.hpp"
#include "report.hpp"
#include "server_table.hpp"
#include "told_jobs.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;

/// What the server takes on one kind of GPU, and whether it gets GPUs of this kind.
struct KindOfGpu {
  std::string profile;
  serve::ServingEstimate estimate;
  place::Server gpus;  ///< those of this kind
  place::Request request;
  place::Decision decision;
};

place::Server of_kind(const place::Server& server, const std::string& kind, const std::string& untold) {
  place::Server part;
  for (const place::ServerGpu& gpu : server.gpus) {
    if ((gpu.profile.empty() ? untold : gpu.profile) == kind) part.gpus.push_back(gpu);
  }
  return part;
}

/// An engine takes a share of a GPU, so that its need differs from kind to kind; the GPUs that share its layers are of
/// one kind.
core::Result<KindOfGpu> on_kind(serve::ServingRequest asked, const std::string& profile, const place::Server& server,
                                const PlaceOptions& options, const place::Margin& margin) {
  asked.gpu = profile;
  auto estimate = session::process_session().serve(asked);
  if (!estimate) return estimate.error();
  const core::Result<std::int64_t> layout = serve::gpus_of(asked.job);
  if (!layout) return layout.error();
  const core::Result<std::int64_t> gpus = gpus_to_place(*layout, options.gpus);
  if (!gpus) return gpus.error();
  KindOfGpu kind{profile, *std::move(estimate), of_kind(server, profile, options.request.gpu), {}, {}};
  const core::Status need = place::ask_for(kind.request, serve::memory_of(kind.estimate, *gpus), margin);
  if (!need) return need.error();
  kind.request.id = options.id.empty() ? std::string_view("server") : std::string_view(options.id);
  kind.request.exclusive = options.exclusive;
  if (const core::Status valid = place::validate(kind.request); !valid) return valid.error();
  return kind;
}

/// On each kind of GPU, the one with the least need first.
core::Result<std::vector<KindOfGpu>> kinds_of_gpus(const PlaceOptions& options, const place::Server& server,
                                                   const place::Margin& margin) {
  const auto asked =
      serve::serving_request_of({options.job, options.request.gpu, options.engine_version, options.command});
  if (!asked) return asked.error();
  std::vector<KindOfGpu> kinds;
  for (const std::string& profile : kinds_of(server, options.request.gpu)) {
    auto kind = on_kind(*asked, profile, server, options, margin);
    if (!kind) return kind.error();
    kinds.push_back(*std::move(kind));
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const KindOfGpu& one, const KindOfGpu& other) {
    return one.request.memory.value_or(core::Bytes()) < other.request.memory.value_or(core::Bytes());
  });
  return kinds;
}

std::string words_of(const KindOfGpu& kind, const place::Conditions& conditions) {
  if (!kind.estimate.starts) return "does not start on " + kind.profile + ": " + kind.estimate.reason;
  return place::explain(kind.decision, kind.request, kind.gpus, conditions);
}

std::string to_text(const KindOfGpu& kind, const place::Conditions& conditions, const Terminal& terminal) {
  std::string text = "on " + kind.profile + ": ";
  if (!kind.estimate.starts) return text + "it does not start: " + kind.estimate.reason + "\n";
  text += core::to_string(kind.estimate.expected()) + " expected, " + core::to_string(*kind.request.memory) +
          " with the margin";
  if (kind.request.gpus > 1) text += ", on each of " + core::with_separators(kind.request.gpus) + " GPUs";
  return text + "\n" + server_table(kind.gpus, {kind.decision.gpus, kind.request.id}, terminal) +
         printable_id(kind.request.id) + ": " + words_of(kind, conditions) + "\n";
}

Json to_json(const KindOfGpu& kind, const place::Conditions& conditions, const device::GpuProfile& profile) {
  Json json = job_json::to_json(kind.estimate, profile);
  Json gpus = Json::array();
  for (const std::size_t index : kind.decision.gpus) gpus.push_back(kind.gpus.gpus[index].id);
  const bool placed = kind.estimate.starts && kind.decision.placed();
  const bool waits = kind.estimate.starts && !placed;
  json["request"] = {{"id", kind.request.id},
                     {"gpus", kind.request.gpus},
                     {"memory_bytes", kind.request.memory->count()},
                     {"exclusive", kind.request.exclusive}};
  json["decision"] = {{"placed", placed},
                      {"gpus", std::move(gpus)},
                      {"refusal", waits ? Json(place::to_string(kind.decision.refusal)) : Json(nullptr)},
                      {"words", words_of(kind, conditions)}};
  return json;
}

bool placed(const KindOfGpu& kind) { return kind.estimate.starts && kind.decision.placed(); }

/// 5: it has to wait for GPUs on which it could run; 4: there are none.
int exit_code_of(const std::vector<KindOfGpu>& kinds) {
  if (std::any_of(kinds.begin(), kinds.end(), placed)) return 0;
  const bool waits = std::any_of(kinds.begin(), kinds.end(), [](const KindOfGpu& kind) {
    return kind.estimate.starts && kind.decision.refusal != place::Refusal::never;
  });
  return waits ? 5 : core::exit_code(ErrorCode::missing_information);
}

int print_kinds(const std::vector<KindOfGpu>& kinds, const place::Conditions& conditions, bool as_json) {
  if (!as_json) {
    for (const KindOfGpu& kind : kinds) {
      std::printf("%s", to_text(kind, conditions, terminal_of(STDOUT_FILENO)).c_str());
    }
    return exit_code_of(kinds);
  }
  Json json = {{"schema", 1}, {"kinds", Json::array()}};
  for (const KindOfGpu& kind : kinds) {
    const auto profile = session::process_session().gpu(kind.profile);
    if (!profile) return report_error(profile.error());
    json["kinds"].push_back(to_json(kind, conditions, **profile));
  }
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
  return exit_code_of(kinds);
}

}  // namespace

int run_place_server(const PlaceOptions& options) {
  if (const core::Status asks = asks_of_a_server(options.request); !asks) return report_error(asks.error());
  const auto conditions = conditions_from(options.placing);
  if (!conditions) return report_error(conditions.error());
  const auto margin = place::parse_margin(options.placing.margin);
  if (!margin) return report_error(margin.error());
  const auto policy = place::make_policy(options.placing.policy.empty() ? "magm" : options.placing.policy);
  if (!policy) return report_error(policy.error());
  const auto server = server_from(options.server, options.window);
  if (!server) return report_error(server.error());
  auto kinds = kinds_of_gpus(options, *server, *margin);
  if (!kinds) return report_error(kinds.error());
  for (auto kind = kinds->begin(); kind != kinds->end(); ++kind) {
    if (!kind->estimate.starts) continue;
    std::size_t turn = options.turn;
    kind->decision = (*policy)->decide(kind->request, kind->gpus, *conditions, turn);
    if (!kind->decision.placed()) continue;
    kinds->erase(kind + 1, kinds->end());
    break;
  }
  return print_kinds(*kinds, *conditions, options.json);
}

}  // namespace gpumem::cli
