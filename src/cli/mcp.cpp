#include "mcp.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "answers.hpp"
#include "gpumem/serve/server_command.hpp"
#include "json_lines.hpp"
#include "plan_report.hpp"
#include "report.hpp"
#include "told_jobs.hpp"

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

/// What a tool is asked.
struct Asked {
  const JobRequest& request;
  const Launched& launched;  ///< the command that starts the job, if there is one
  const Json& own;
  Session& session;
};

/// One question about a job.
struct Tool {
  std::string_view name;
  std::string_view description;
  bool takes_batch = true;  ///< it has to be told the batch size
  Result<Json> (*answer)(const Asked& asked);
  std::span<const OwnArgument> own = {};
  bool needs_first = false;  ///< the first of these is required
};

/// Standard input is where the messages come from: a model that is read from there would swallow them.
core::Status not_standard_input(const std::string& model) {
  if (model != "-") return core::Done{};
  return Error{ErrorCode::malformed_input, "the model must be a file, not standard input (\"-\")", {}};
}

/// The job of the arguments and the command, whichever of them names its model.
Result<ToldJob> told_job(const Asked& asked) {
  Result<ToldJob> told = told_by_command(asked.session, asked.launched, asked.request);
  if (!told) return told;
  if (const core::Status readable = not_standard_input(told->request.summary); !readable) return readable.error();
  return told;
}

Result<Json> answer_estimate(const Asked& asked) {
  const Result<ToldJob> told = told_job(asked);
  if (!told) return told.error();
  const Result<EstimatedJob> estimated_job = estimate_told_job(asked.session, *told);
  if (!estimated_job) return estimated_job.error();
  const auto& answers = estimated_job->answers;
  if (answers.size() == 1 && !answers[0].estimate) return answers[0].estimate.error();
  return to_json(*estimated_job);
}

Result<Json> answer_fit(const Asked& asked) {
  FitOptions options;
  const Json find = asked.own.value("find", Json());
  const Json batch = asked.own.value("batch_size", Json());
  if (!find.is_null() && !find.is_string()) return Error{ErrorCode::malformed_input, "\"find\" must be a string", {}};
  if (!batch.is_null() && !batch.is_number_integer()) {
    return Error{ErrorCode::malformed_input, "\"batch_size\" must be a whole number", {}};
  }
  if (find.is_string()) options.find = find.get<std::string>();
  if (batch.is_number_integer()) options.batch = batch.get<std::int64_t>();
  options.request = asked.request;
  const Result<ToldJob> told = told_for_fit(asked.session, asked.launched, options);
  if (!told) return told.error();
  if (const core::Status readable = not_standard_input(options.request.summary); !readable) return readable.error();
  Result<FoundFit> found = find_fit(options, asked.session);
  if (!found) return found.error();
  if (!found->fit.estimate) return assuming(told->notes, does_not_fit(found->fit, found->estimated_job));
  assume(told->notes, *found->fit.estimate);
  return to_json(found->estimated_job, found->estimator, found->fit, found->seconds);
}

Result<Json> answer_advise(const Asked& asked) {
  const Result<ToldJob> told = told_job(asked);
  if (!told) return told.error();
  Result<FoundAdvice> found = find_advice({.request = told->request}, asked.session);
  if (!found) return found.error();
  assume(told->notes, found->advice.now);
  return to_json(*found);
}

Result<Json> answer_gpus(const Asked& asked) {
  const Result<ToldJob> told = told_job(asked);
  if (!told) return told.error();
  GpusOptions options;
  options.request = told->request;
  const Result<FoundGpus> found = find_gpus(options, asked.session);
  if (!found) return found.error();
  Json json = to_json(*found);
  if (asked.launched) json["assumed"] = cli::to_json(told->notes);
  return json;
}

Result<Json> answer_plan(const Asked& asked) {
  PlanOptions options;
  options.request = asked.request;
  options.global_batch = 0;  // not given
  if (const core::Status taken = take_plan_options(asked.own, options); !taken) return taken.error();
  const Result<ToldJob> told = told_for_plan(asked.session, asked.launched, options);
  if (!told) return told.error();
  if (const core::Status readable = not_standard_input(options.request.summary); !readable) return readable.error();
  Result<FoundPlan> found = find_plan(options, asked.session, nullptr);
  if (!found) return found.error();
  if (found->plan.layouts.empty()) return assuming(told->notes, no_layout(found->plan, found->estimated_job));
  found->plan.assumed.insert(found->plan.assumed.end(), told->notes.begin(), told->notes.end());
  return to_json(found->estimated_job, found->plan, found->question, found->told ? &*found->told : nullptr);
}

constexpr std::array<OwnArgument, 12> kPlanOwn = {
    {{"global_batch", "samples per step, on all GPUs together"},
     {"gpus", "how many GPUs; default: the fewest on which a layout fits"},
     {"at_most_tensor_parallel", "the most tensor parallel ranks of a layout"},
     {"at_most_context_parallel", "the most context parallel ranks"},
     {"at_most_pipeline_parallel", "the most pipeline stages, virtual ones not counted"},
     {"at_most_expert_parallel", "the most expert parallel ranks"},
     {"gpus_per_node", "GPUs in a node; default: from the GPU's profile, or 8"},
     {"network_gbps", "network speed of one GPU, in Gbit/s; default: from the GPU's profile, or 100", "number"},
     {"no_overlap", "Megatron without overlap of gradients and parameters with kernels", "boolean"},
     {"framework", "of which framework the layouts are: a name that `gpumem plan --help` lists, or any", "string"},
     {"explain", "a layout, as \"tensor-parallel=8 sharding=fsdp2\": why it is not the first one", "string"},
     {"show", "how many layouts"}}};

constexpr std::array<OwnArgument, 2> kFitOwn = {
    {{"find",
      "what to make as large as fits: batch, sequence, image, images or frames; default: the batch, or with a "
      "batch_size the sequence",
      "string"},
     {"batch_size", "samples per step, where something else is looked for"}}};

constexpr std::array<Tool, 5> kTools = {
    {{"estimate", "How much GPU memory one training job takes, and whether it fits the GPU.", true, &answer_estimate},
     {"fit",
      "The largest batch with which a training job fits a GPU, or the longest sequence, the largest image, the "
      "most images or frames.",
      false, &answer_fit, kFitOwn},
     {"advise", "Which changes make a training job fit a GPU, the cheapest first.", true, &answer_advise},
     {"gpus", "On which of all known GPUs a training job fits, with headroom and the largest batch.", true,
      &answer_gpus},
     {"plan", "Which layouts over many GPUs fit: the fastest with headroom first, those without last.", false,
      &answer_plan, kPlanOwn, true}}};

constexpr std::string_view kServe = "serve";
constexpr std::string_view kServeHelp =
    "What an inference server (vLLM, SGLang) takes on each GPU, how many tokens its KV cache holds, and whether it "
    "starts.";
constexpr std::string_view kCommandHelp =
    "the command that starts the job, word by word: [\"torchrun\", \"--nproc-per-node\", \"8\", \"train.py\"]; it says "
    "what no other argument does";

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

Json command_schema() { return {{"type", "array"}, {"items", {{"type", "string"}}}, {"description", kCommandHelp}}; }

/// Nothing is required: a command may say it.
Json schema_with(Json properties) {
  return {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
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
  properties["command"] = command_schema();
  return schema_with(std::move(properties));
}

/// Of a server: its options have vLLM's names.
Json server_schema() {
  Json properties = {{"summary", {{"type", "string"}, {"description", kSummaryHelp}}}};
  properties["gpu"] = type_of(*job::find_option("gpu"));
  properties["engine_version"] = {{"type", "string"}, {"description", "such as 0.19.0; default: the newest known"}};
  properties["command"] = command_schema();
  for (const serve::ServingOption& option : serve::serving_options()) {
    properties[std::string(option.name)] = {{"type", {"string", "number", "boolean"}}, {"description", option.help}};
  }
  return schema_with(std::move(properties));
}

Json tool_list() {
  Json tools = Json::array();
  for (const Tool& tool : kTools) {
    tools.push_back({{"name", tool.name}, {"description", tool.description}, {"inputSchema", schema_of(tool)}});
  }
  tools.push_back({{"name", kServe}, {"description", kServeHelp}, {"inputSchema", server_schema()}});
  return {{"tools", std::move(tools)}};
}

Json content(std::string text, bool failed) {
  return {{"content", Json::array({{{"type", "text"}, {"text", std::move(text)}}})}, {"isError", failed}};
}

/// The command among the arguments, which loses it.
Result<std::vector<std::string>> take_command(Json& arguments) {
  std::vector<std::string> words;
  const auto found = arguments.find("command");
  if (found == arguments.end()) return words;
  const auto is_word = [](const Json& word) { return word.is_string(); };
  if (!found->is_array() || !std::all_of(found->begin(), found->end(), is_word)) {
    return Error{ErrorCode::invalid_argument, "\"command\" must be a list of words", {}};
  }
  for (const Json& word : *found) words.push_back(word.get<std::string>());
  arguments.erase(found);
  return words;
}

/// What the tool needs and the arguments lack, or the other way round.
core::Status check(const Tool& tool, const Json& arguments, const Launched& launched) {
  const auto refuse = [](std::string_view name, const char* what) {
    return Error{ErrorCode::invalid_argument, "\"" + std::string(name) + "\" " + what, {}};
  };
  const bool finds_batch =
      !tool.takes_batch && std::ranges::find(tool.own, "batch_size", &OwnArgument::name) == tool.own.end();
  if (finds_batch && arguments.contains("batch_size")) return refuse("batch_size", "is what this tool finds");
  if (tool.needs_first && !launched && !arguments.contains(std::string(tool.own.front().name))) {
    return refuse(tool.own.front().name, "is required");
  }
  return core::Done{};
}

/// The arguments that are options of a job. Errors: also malformed_input where no command says what they leave out.
Result<JobRequest> job_of(const Tool& tool, const Json& fields, const Launched& launched) {
  JobRequest defaults;
  if (!tool.takes_batch && !launched) defaults.training.batch_size = 1;
  return launched ? job_json::fields_from(fields, defaults) : job_json::request_from(fields, defaults);
}

Result<Json> answer_of(const Tool& tool, Json fields, Session& session) {
  const Result<std::vector<std::string>> words = take_command(fields);
  if (!words) return words.error();
  const Result<Launched> launched = launched_by(*words);
  if (!launched) return launched.error();
  if (const core::Status sound = check(tool, fields, *launched); !sound) return sound.error();
  Json own = Json::object();
  for (const OwnArgument& argument : tool.own) {
    const auto found = fields.find(std::string(argument.name));
    if (found == fields.end()) continue;
    own[found.key()] = *found;
    fields.erase(found);
  }
  const Result<JobRequest> request = job_of(tool, fields, *launched);
  if (!request) return request.error();
  return tool.answer({*request, *launched, own, session});
}

Result<Json> answer_server(Json fields, Session& session) {
  const Result<std::vector<std::string>> command = take_command(fields);
  if (!command) return command.error();
  serve::ServingWords words{{}, job::kDefaultGpu, {}};
  words.command = *command;
  for (const auto& [name, value] : fields.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (name == "summary") words.config = text;
    else if (name == "gpu") words.gpu = text;
    else if (name == "engine_version") words.version = text;
    else words.options[name] = text;
  }
  const Result<serve::ServingRequest> request = serve::serving_request_of(words);
  if (!request) return request.error();
  const auto speculation = serve::read_speculation(request->job.speculative_config);
  if (!speculation) return speculation.error();
  for (const std::string& model : {request->config, *speculation ? (*speculation)->model : std::string()}) {
    if (const core::Status readable = not_standard_input(model); !readable) return readable.error();
  }
  return find_server(*request, session);
}

/// A call's own failure is content too, so that the assistant can mend it.
Json called(const Result<Json>& answer) {
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
  const auto* const tool =
      std::find_if(kTools.begin(), kTools.end(), [&name](const Tool& one) { return name == one.name; });
  const bool serves = name == kServe;
  if (tool == kTools.end() && !serves) {
    return refused(id, kWrongParameters, "there is no such tool; tools/list names them");
  }
  if (!arguments.is_object()) return refused(id, kWrongParameters, "the arguments must be an object");
  return answered(id, called(serves ? answer_server(arguments, session) : answer_of(*tool, arguments, session)));
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
