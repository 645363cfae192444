#include "mcp.hpp"

#include <array>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "answers.hpp"
#include "json_lines.hpp"
#include "plan_report.hpp"
#include "report.hpp"

namespace gpumem::cli {

namespace {

using Json = nlohmann::ordered_json;
using job::JobOption;
using job::OptionType;

constexpr std::string_view kProtocol = "2025-06-18";
// Codes of JSON-RPC 2.0.
constexpr int kNotJson = -32700;
constexpr int kNotARequest = -32600;
constexpr int kNoMethod = -32601;
constexpr int kWrongParameters = -32602;

/// An argument that is no option of a job.
struct OwnArgument {
  std::string_view name;
  std::string_view says;
  std::string_view type = "integer";  ///< in JSON Schema
};

/// One question about a job.
struct Tool {
  std::string_view name;
  std::string_view description;
  bool takes_batch = true;  ///< it has to be told the batch size
  Result<Json> (*answer)(const JobRequest& request, const Json& own, Session& session);
  std::span<const OwnArgument> own = {};  ///< the first is required
};

Result<Json> answer_estimate(const JobRequest& request, const Json& /*own*/, Session& session) {
  const Result<EstimatedJob> estimated_job = estimate_job(session, request);
  if (!estimated_job) return estimated_job.error();
  const auto& answers = estimated_job->answers;
  if (answers.size() == 1 && !answers[0].estimate) return answers[0].estimate.error();
  return to_json(*estimated_job);
}

Result<Json> answer_fit(const JobRequest& request, const Json& /*own*/, Session& session) {
  const Result<FoundFit> found = find_fit({.request = request}, session);
  if (!found) return found.error();
  if (!found->fit.estimate) return does_not_fit(found->fit, found->estimated_job);
  return to_json(found->estimated_job, found->estimator, found->fit, found->seconds);
}

Result<Json> answer_advise(const JobRequest& request, const Json& /*own*/, Session& session) {
  const Result<FoundAdvice> found = find_advice({.request = request}, session);
  if (!found) return found.error();
  return to_json(*found);
}

Result<Json> answer_gpus(const JobRequest& request, const Json& /*own*/, Session& session) {
  GpusOptions options;
  options.request = request;
  const Result<FoundGpus> found = find_gpus(options, session);
  if (!found) return found.error();
  return to_json(*found);
}

Result<Json> answer_plan(const JobRequest& request, const Json& own, Session& session) {
  PlanOptions options;
  options.request = request;
  if (const core::Status taken = take_plan_options(own, options); !taken) return taken.error();
  const Result<FoundPlan> found = find_plan(options, session, nullptr);
  if (!found) return found.error();
  if (found->plan.layouts.empty()) return no_layout(found->plan, found->estimated_job);
  return to_json(found->estimated_job, found->plan, found->question, found->told ? &*found->told : nullptr);
}

constexpr std::array<OwnArgument, 11> kPlanOwn = {
    {{"global_batch", "samples per step, on all GPUs together"},
     {"gpus", "how many GPUs; default: the fewest on which a layout fits"},
     {"at_most_tensor_parallel", "the most tensor parallel ranks of a layout"},
     {"at_most_context_parallel", "the most context parallel ranks"},
     {"at_most_pipeline_parallel", "the most pipeline stages, virtual ones not counted"},
     {"at_most_expert_parallel", "the most expert parallel ranks"},
     {"gpus_per_node", "GPUs in a node; default: from the GPU's profile, or 8"},
     {"network_gbps", "network speed of one GPU, in Gbit/s; default: from the GPU's profile, or 100", "number"},
     {"framework", "whose layouts: a name that `gpumem plan --help` lists, or any", "string"},
     {"explain", "a layout, as \"tensor-parallel=8 sharding=fsdp2\": why it is not the first one", "string"},
     {"show", "how many layouts"}}};

constexpr std::array<Tool, 5> kTools = {
    {{"estimate", "How much GPU memory one training job takes, and whether it fits the GPU.", true, &answer_estimate},
     {"fit", "The largest batch with which a training job fits a GPU.", false, &answer_fit},
     {"advise", "Which changes make a training job fit a GPU, the cheapest first.", true, &answer_advise},
     {"gpus", "On which of all known GPUs a training job fits, with headroom and the largest batch.", true,
      &answer_gpus},
     {"plan", "Which layouts over many GPUs fit, the fastest first.", false, &answer_plan, kPlanOwn}}};

constexpr std::string_view kSummaryHelp =
    "path of the model: a config.json or its folder, a printed module tree or summary table, graph JSON, or a "
    "recording; or "
    "the name of a model that is known, or in the local HuggingFace cache";

Json type_of(const JobOption& option) {
  Json schema = {{"description", job::help_text(option)}};
  switch (option.place.type) {
    case OptionType::flag: schema["type"] = "boolean"; break;
    case OptionType::whole_number: schema["type"] = "integer"; break;
    case OptionType::fraction: schema["type"] = "number"; break;
    case OptionType::switch_or_choice: schema["type"] = {"boolean", "string"}; break;
    case OptionType::dimensions:
    case OptionType::text:
    case OptionType::name_or_path:
    case OptionType::choice: schema["type"] = "string"; break;
  }
  return schema;
}

Json schema_of(const Tool& tool) {
  Json properties = {{"summary", {{"type", "string"}, {"description", kSummaryHelp}}}};
  for (const JobOption& option : job::job_options()) {
    const bool is_batch = option.name == "batch_size";
    if (!is_batch || tool.takes_batch) properties[std::string(option.name)] = type_of(option);
  }
  for (const auto& [name, says, type] : tool.own) {
    properties[std::string(name)] = {{"type", type}, {"description", says}};
  }
  Json required = {"summary"};
  if (tool.takes_batch) required.push_back("batch_size");
  if (!tool.own.empty()) required.push_back(tool.own.front().name);
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

Json tool_list() {
  Json tools = Json::array();
  for (const Tool& tool : kTools) {
    tools.push_back({{"name", tool.name}, {"description", tool.description}, {"inputSchema", schema_of(tool)}});
  }
  return {{"tools", std::move(tools)}};
}

Json content(std::string text, bool failed) {
  return {{"content", Json::array({{{"type", "text"}, {"text", std::move(text)}}})}, {"isError", failed}};
}

/// What the tool's schema requires and the arguments lack, or the other way round.
core::Status check(const Tool& tool, const Json& arguments) {
  const auto refuse = [](std::string_view name, const char* what) {
    return Error{ErrorCode::invalid_argument, "\"" + std::string(name) + "\" " + what, {}};
  };
  if (!tool.takes_batch && arguments.contains("batch_size")) return refuse("batch_size", "is what this tool finds");
  if (!tool.own.empty() && !arguments.contains(std::string(tool.own.front().name))) {
    return refuse(tool.own.front().name, "is required");
  }
  return core::Done{};
}

/// A call's own failure is content too, so that the assistant can mend it.
Json call(const Tool& tool, const Json& arguments, Session& session) {
  if (const core::Status sound = check(tool, arguments); !sound) {
    return content(core::to_string(sound.error()), true);
  }
  Json fields = arguments;
  Json own = Json::object();
  for (const OwnArgument& argument : tool.own) {
    const auto found = fields.find(std::string(argument.name));
    if (found == fields.end()) continue;
    own[found.key()] = *found;
    fields.erase(found);
  }
  JobRequest defaults;
  if (!tool.takes_batch) defaults.training.batch_size = 1;
  Result<JobRequest> request = job_json::request_from(fields, defaults);
  if (request && request->summary == "-") {  // that is where the messages come from
    request = Error{ErrorCode::malformed_input, "\"summary\" must name a file, not standard input", {}};
  }
  const Result<Json> answer = request ? tool.answer(*request, own, session) : Result<Json>(request.error());
  if (!answer) return content(core::to_string(answer.error()), true);
  Json result = content(answer->dump(-1, ' ', false, Json::error_handler_t::replace), false);
  result["structuredContent"] = *answer;
  return result;
}

Json refused(const Json& id, int code, std::string_view message) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", message}}}};
}

Json answered(const Json& id, Json result) { return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}}; }

Json call_named(const Json& id, const Json& parameters, Session& session) {
  const Json name = parameters.is_object() ? parameters.value("name", Json()) : Json();
  const Json arguments = parameters.is_object() ? parameters.value("arguments", Json::object()) : Json();
  for (const Tool& tool : kTools) {
    if (name != tool.name) continue;
    if (!arguments.is_object()) return refused(id, kWrongParameters, "the arguments must be an object");
    return answered(id, call(tool, arguments, session));
  }
  return refused(id, kWrongParameters, "there is no such tool; tools/list names them");
}

/// Nothing for text that is not JSON, or that nests deeper than any message.
std::optional<Json> parsed(std::string_view message) {
  constexpr int kDeepest = 16;
  bool shallow = true;
  const auto keep = [&](int depth, Json::parse_event_t, Json&) {
    shallow = shallow && depth <= kDeepest;
    return shallow;
  };
  Json json = Json::parse(message, keep, false);
  return !shallow || json.is_discarded() ? std::nullopt : std::optional(std::move(json));
}

Json initialized() {
  return {{"protocolVersion", kProtocol},
          {"capabilities", {{"tools", Json::object()}}},
          {"serverInfo", {{"name", "gpumem"}, {"version", GPUMEM_VERSION_STRING}}}};
}

std::optional<Json> reply_to(const Json& message, Session& session) {
  const bool sound = message.is_object() && message.contains("method") && message["method"].is_string();
  const Json id = message.is_object() ? message.value("id", Json()) : Json();
  if (!sound) return refused(id, kNotARequest, "a message is one object with a method");
  if (!message.contains("id")) return std::nullopt;  // a notification
  const std::string method = message["method"].get<std::string>();
  if (method == "initialize") return answered(id, initialized());
  if (method == "ping") return answered(id, Json::object());
  if (method == "tools/list") return answered(id, tool_list());
  if (method == "tools/call") return call_named(id, message.value("params", Json()), session);
  return refused(id, kNoMethod, "there is no method " + core::quoted(method));
}

}  // namespace

std::optional<std::string> McpServer::answer(std::string_view message) {
  const std::optional<std::string> fault = fault_of(message);
  const std::optional<Json> json = fault ? std::nullopt : parsed(message);
  const std::optional<Json> reply =
      json ? reply_to(*json, session_) : refused(Json(), kNotJson, "the line is not JSON, or nests too deep");
  if (!reply) return std::nullopt;
  return reply->dump(-1, ' ', false, Json::error_handler_t::replace);
}

int run_mcp(const McpOptions& /*options*/) {
  McpServer server;
  for (std::string line; read_line(std::cin, line);) {
    const std::optional<std::string> reply = server.answer(line);
    if (reply) std::printf("%s\n", reply->c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace gpumem::cli
