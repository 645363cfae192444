#include "job_json.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/model/named.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::job_json {

namespace {

using core::Error;
using core::ErrorCode;
using core::Result;
using job::JobOption;
using job::JobRequest;
using job::OptionType;
using job::OptionValue;
using Json = nlohmann::ordered_json;

Error malformed(std::string message) { return {ErrorCode::malformed_input, std::move(message), {}}; }

std::vector<std::string_view> field_names() {
  std::vector<std::string_view> names = {"id", "summary"};
  for (const JobOption& option : job::job_options()) {
    names.push_back(option.name);
    std::copy_if(option.aliases.begin(), option.aliases.end(), std::back_inserter(names),
                 [](std::string_view alias) { return !alias.empty(); });
  }
  return names;
}

Error no_field(const std::string& name) {
  const std::vector<std::string_view> names = field_names();
  std::string list;
  for (const std::string_view known : names) list += (list.empty() ? "" : ", ") + std::string(known);
  return malformed("a job has no field " + core::quoted(name) + core::did_you_mean(name, names) + "; its fields are " +
                   list);
}

std::optional<std::int64_t> integer(const Json& field) {
  if (!field.is_number_integer()) return std::nullopt;
  if (field.is_number_unsigned() && field.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  return field.get<std::int64_t>();
}

std::optional<OptionValue> sizes(const Json& field) {
  job::Sizes sizes;
  for (const Json& item : field) {
    const auto size = integer(item);
    if (!size) return std::nullopt;
    sizes.push_back(*size);
  }
  return OptionValue(std::move(sizes));
}

/// The field as a value for an option of this type; nothing if it has the wrong type.
std::optional<OptionValue> value_of(OptionType type, const Json& field) {
  if (type == OptionType::switch_or_choice && field.is_boolean()) return OptionValue(field.get<bool>());
  if (type == OptionType::flag) {
    return field.is_boolean() ? std::optional(OptionValue(field.get<bool>())) : std::nullopt;
  }
  if (type == OptionType::whole_number) {
    const auto number = integer(field);
    return number ? std::optional(OptionValue(*number)) : std::nullopt;
  }
  if (type == OptionType::fraction) {
    return field.is_number() ? std::optional(OptionValue(field.get<double>())) : std::nullopt;
  }
  if (type == OptionType::dimensions && field.is_array()) return sizes(field);
  // A choice that a number or a switch makes, too: "rank": 3, "reshard_after_forward": true.
  if (type == OptionType::choice && (field.is_number_integer() || field.is_boolean())) return OptionValue(field.dump());
  return field.is_string() ? std::optional(OptionValue(field.get<std::string>())) : std::nullopt;
}

core::Status take_field(const std::string& name, const Json& field, JobRequest& request) {
  const auto wrong_type = [&] { return malformed("the field " + core::quoted(name) + " has the wrong type"); };
  if (name == "id") return core::Done{};
  if (name == "summary") {
    if (!field.is_string()) return wrong_type();
    request.summary = field.get<std::string>();
    return core::Done{};
  }
  const JobOption* option = job::find_option(name);
  if (option == nullptr) return no_field(name);
  const auto value = value_of(option->place.type, field);
  return value ? job::set_option(*option, request, *value) : core::Status(wrong_type());
}

}  // namespace

std::optional<Json> parse_json(std::string_view text) {
  constexpr int kDeepest = 4;
  constexpr int kMostFields = 64;  // an ordered object finds its keys one by one: many of them take their square
  int fields = 0;
  bool fits = true;
  const auto keep = [&](int depth, Json::parse_event_t event, Json&) {
    if (event == Json::parse_event_t::key) ++fields;
    fits = fits && depth <= kDeepest && fields <= kMostFields;
    return fits;
  };
  Json json = Json::parse(text, keep, false);
  if (!fits || json.is_discarded()) return std::nullopt;
  return json;
}

Result<JobRequest> fields_from(const Json& json, const JobRequest& defaults) {
  if (!json.is_object()) return malformed("a job is one JSON object");
  JobRequest request = defaults;
  for (const auto& [name, field] : json.items()) {
    if (auto taken = take_field(name, field, request); !taken) return taken.error();
  }
  return request;
}

Result<JobRequest> request_from(const Json& json, const JobRequest& defaults) {
  if (!json.is_object()) return malformed("a job is one JSON object a line");
  Result<JobRequest> request = fields_from(json, defaults);
  if (!request) return request;
  if (request->summary.empty()) return malformed("the job names no \"summary\"");
  if (!json.contains("batch_size") && !json.contains("batch") && defaults.training.batch_size == 0) {
    return malformed("the job names no \"batch_size\"");
  }
  return request;
}

Json to_json(const std::optional<OptionValue>& value) {
  if (!value) return nullptr;
  return std::visit([](const auto& held) { return Json(held); }, *value);
}

Json to_json(const serve::ServingEstimate& estimate, const device::GpuProfile& gpu) {
  const std::int64_t within = estimate.requested.count();
  Json json;
  json["schema"] = 1;
  json["gpu"] = gpu.name;
  json["capacity_bytes"] = gpu.capacity().count();
  json["engine"] = estimate.engine;
  json["rules_of"] = estimate.version;
  json["stage"] = estimate.stage;
  json["expected_bytes"] = estimate.expected().count();
  json["lower_bytes"] = within + (estimate.starts ? estimate.cuda_graphs_lower.count() : 0);
  json["upper_bytes"] = within + (estimate.starts ? estimate.cuda_graphs_upper.count() : 0);
  json["requested_bytes"] = within;
  json["weights_bytes"] = estimate.weights.count();
  json["adapter_bytes"] = estimate.adapters.count();
  json["draft_bytes"] = estimate.draft.count();
  json["activation_bytes"] = estimate.activation.count();
  json["outside_pytorch_bytes"] = estimate.outside_pytorch.count();
  json["outside_pytorch_range"] = {estimate.outside_pytorch_lower.count(), estimate.outside_pytorch_upper.count()};
  json["cuda_graph_bytes"] = estimate.cuda_graphs.count();
  json["cuda_graph_range"] = {estimate.cuda_graphs_lower.count(), estimate.cuda_graphs_upper.count()};
  json["kv_cache_bytes"] = estimate.kv_cache.count();
  json["kv_cache_blocks"] = estimate.kv_cache_blocks;
  json["kv_cache_tokens"] = estimate.kv_cache_tokens;
  json["max_model_len"] = estimate.max_model_len;
  json["largest_max_model_len"] = estimate.largest_max_model_len;
  json["max_concurrency"] = estimate.concurrency;
  json["max_num_seqs"] = estimate.max_num_seqs;
  json["max_num_batched_tokens"] = estimate.max_num_batched_tokens;
  json["kv_cache_needed_bytes"] = estimate.kv_cache_needed.count();
  json["starts"] = estimate.starts;
  json["fits"] = estimate.starts;
  json["verdict"] = model::name_of(estimate::kVerdicts, estimate.verdict());
  if (!estimate.starts) json["reason"] = estimate.reason;
  json["assumed"] = estimate.assumed;
  return json;
}

Json to_json(const serve::ServingLimits& limits) {
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json json;
  json["longest_context"] = or_null(limits.longest_context);
  json["most_sequences"] = or_null(limits.most_sequences);
  json["smallest_utilization"] = or_null(limits.smallest_utilization);
  json["fewest_ranks"] = or_null(limits.fewest_ranks);
  json["smallest_gpu"] = limits.smallest_gpu.empty() ? Json(nullptr) : Json(limits.smallest_gpu);
  return json;
}

Json to_json(const std::vector<serve::ServingChange>& advice) {
  Json json = Json::array();
  for (const serve::ServingChange& change : advice) {
    json.push_back({{"option", change.option},
                    {"value", change.value},
                    {"costs", change.costs},
                    {"starts", change.estimate.starts},
                    {"kv_cache_tokens", change.estimate.kv_cache_tokens},
                    {"max_concurrency", change.estimate.concurrency}});
  }
  return json;
}

Json to_json(const std::vector<serve::ServingLayout>& layouts) {
  Json json = Json::array();
  for (const serve::ServingLayout& layout : layouts) {
    json.push_back({{"tensor_parallel_size", layout.tensor_parallel},
                    {"pipeline_parallel_size", layout.pipeline_parallel},
                    {"data_parallel_size", layout.data_parallel},
                    {"kv_cache_tokens", layout.kv_cache_tokens},
                    {"max_concurrency", layout.concurrency},
                    {"weights_bytes", layout.estimate.weights.count()}});
  }
  return json;
}

Json to_json(const posttrain::PostTrainingEstimate& estimate, const device::GpuProfile& gpu) {
  const estimate::MemoryEstimate& memory = estimate.memory;
  Json json;
  json["schema"] = 1;
  json["gpu"] = gpu.name;
  json["capacity_bytes"] = gpu.capacity().count();
  json["gpus"] = memory.gpus;
  json["expected_bytes"] = memory.expected.count();
  json["lower_bytes"] = memory.lower.count();
  json["upper_bytes"] = memory.upper.count();
  json["upper_coverage"] = nullptr;
  json["allocated_bytes"] = memory.allocated->count();
  json["reserved_bytes"] = memory.reserved->count();
  json["device_bytes"] = memory.device->count();
  json["fits"] = memory.fits;
  json["verdict"] = model::name_of(estimate::kVerdicts, memory.verdict);
  json["peak_phase"] = estimate.phases[estimate.peak_phase].name;
  json["parts"] = Json::object();
  for (const posttrain::NamedBytes& part : estimate.parts) json["parts"][part.name] = part.bytes.count();
  if (!estimate.elsewhere.empty()) {
    json["elsewhere"] = Json::object();
    for (const posttrain::NamedBytes& part : estimate.elsewhere) json["elsewhere"][part.name] = part.bytes.count();
  }
  json["phases"] = Json::array();
  for (const posttrain::PhaseEstimate& phase : estimate.phases) {
    json["phases"].push_back({{"phase", phase.name},
                              {"allocated_bytes", phase.allocated.count()},
                              {"reserved_bytes", phase.reserved.count()},
                              {"rollout_bytes", phase.rollout.count()},
                              {"device_bytes", phase.device.count()}});
  }
  json["assumed"] = Json::array();
  for (const estimate::Assumption& line : memory.assumed) {
    json["assumed"].push_back({{"about", line.about}, {"text", line.text}});
  }
  return json;
}

Json to_json(const posttrain::PostTrainingLimits& limits) {
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json json;
  json["largest_batch"] = or_null(limits.largest_batch);
  json["largest_group"] = or_null(limits.largest_group);
  json["longest_completion"] = or_null(limits.longest_completion);
  json["longest_sequence"] = or_null(limits.longest_sequence);
  json["largest_utilization"] = or_null(limits.largest_utilization);
  json["reasons"] = Json::object();
  for (const auto& [limit, reason] : limits.reasons) json["reasons"][std::string(limit)] = reason;
  return json;
}

Json to_json(const std::vector<posttrain::PostTrainingChange>& advice) {
  Json json = Json::array();
  for (const posttrain::PostTrainingChange& change : advice) {
    Json also = Json::array();
    for (const auto& [option, value] : change.also) also.push_back({{"option", option}, {"value", value}});
    json.push_back({{"option", change.option},
                    {"value", change.value},
                    {"also", std::move(also)},
                    {"costs", change.costs},
                    {"expected_bytes", change.estimate.memory.expected.count()},
                    {"fits", change.estimate.memory.fits},
                    {"verdict", model::name_of(estimate::kVerdicts, change.estimate.memory.verdict)}});
  }
  return json;
}

Json to_json(const std::vector<posttrain::PostTrainingLayout>& layouts) {
  Json json = Json::array();
  for (const posttrain::PostTrainingLayout& layout : layouts) {
    const posttrain::PostTrainingEstimate& estimate = layout.estimate;
    json.push_back({{"sharding", parallel::name_of(layout.sharding)},
                    {"data_parallel", layout.data_parallel},
                    {"precision", model::name_of(model::kPrecisions, layout.precision)},
                    {"rollout_tensor_parallel", layout.rollout_tensor_parallel},
                    {"offload_policy", model::name_of(posttrain::kWaitings, layout.offload)},
                    {"expected_bytes", estimate.memory.expected.count()},
                    {"upper_bytes", estimate.memory.upper.count()},
                    {"peak_phase", estimate.phases[estimate.peak_phase].name},
                    {"fits", estimate.memory.fits},
                    {"verdict", model::name_of(estimate::kVerdicts, estimate.memory.verdict)}});
  }
  return json;
}

}  // namespace gpumem::job_json
