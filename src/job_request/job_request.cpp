#include "job_request.hpp"

#include <algorithm>
#include <array>

#include "gpumem/core/error.hpp"
#include "gpumem/summary/text.hpp"

namespace gpumem::job_request {

namespace {

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message), {}}; }
Error malformed(std::string message) { return {ErrorCode::malformed_input, std::move(message), {}}; }

/// "3x224x224" as {3, 224, 224}.
Result<std::vector<std::int64_t>> dimensions_of(const std::string& text) {
  std::vector<std::int64_t> dimensions;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t first = at;
    const auto size = summary::read_digits(text, at);
    const bool more = at < text.size() && text[at] == 'x' && at + 1 < text.size();
    if (at == first || !size || (at < text.size() && !more)) {
      return invalid("the input " + core::quoted(text) + " is not of the form 3x224x224");
    }
    dimensions.push_back(*size);
    if (more) ++at;
  }
  return dimensions;
}

template <typename Enum, std::size_t Count>
Result<Enum> choose(std::string_view what, const std::array<model::Named<Enum>, Count>& list, const std::string& name) {
  if (const auto value = model::value_of(list, name)) return *value;
  std::string names;
  for (const auto& row : list) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return invalid("there is no " + std::string(what) + " " + core::quoted(name) + "; choose one of " + names);
}

bool take_text(const nlohmann::ordered_json& field, std::string& to) {
  if (!field.is_string()) return false;
  to = field.get<std::string>();
  return true;
}

std::optional<std::int64_t> integer(const nlohmann::ordered_json& field) {
  if (!field.is_number_integer()) return std::nullopt;
  if (field.is_number_unsigned() && field.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  return field.get<std::int64_t>();
}

/// "3x224x224", or a list of numbers.
bool take_input(const nlohmann::ordered_json& field, std::string& to) {
  if (!field.is_array()) return take_text(field, to);
  to.clear();
  for (const auto& item : field) {
    const auto size = integer(item);
    if (!size) return false;
    to += (to.empty() ? "" : "x") + std::to_string(*size);
  }
  return true;
}

template <typename Type>
struct Field {
  std::string_view name;
  Type JobRequest::*place;
};

constexpr std::array<Field<std::string>, 9> kTexts = {{{"summary", &JobRequest::summary},
                                                       {"gpu", &JobRequest::gpu},
                                                       {"optimizer", &JobRequest::optimizer},
                                                       {"precision", &JobRequest::precision},
                                                       {"estimator", &JobRequest::estimator},
                                                       {"model", &JobRequest::model},
                                                       {"zero_grad", &JobRequest::zero_grad},
                                                       {"software", &JobRequest::software},
                                                       {"alloc_conf", &JobRequest::alloc_conf}}};
constexpr std::array<Field<std::int64_t>, 4> kNumbers = {{{"batch_size", &JobRequest::batch_size},
                                                          {"batch", &JobRequest::batch_size},
                                                          {"accumulate", &JobRequest::accumulate},
                                                          {"data_parallel", &JobRequest::data_parallel}}};
constexpr std::array<Field<std::optional<std::int64_t>>, 3> kOptionalNumbers = {
    {{"seq_length", &JobRequest::sequence_length},
     {"seq", &JobRequest::sequence_length},
     {"samples", &JobRequest::samples}}};
constexpr std::array<Field<bool>, 5> kFlags = {{{"foreach", &JobRequest::foreach},
                                                {"fused", &JobRequest::fused},
                                                {"validation", &JobRequest::validation},
                                                {"checkpointing", &JobRequest::checkpointing},
                                                {"lenient", &JobRequest::lenient}}};

/// The row of that name, or the list's end.
template <typename Fields>
auto find(const Fields& fields, std::string_view name) {
  return std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.name == name; });
}

bool is_field(std::string_view name) {
  const auto in = [&](const auto& fields) { return find(fields, name) != fields.end(); };
  return name == "id" || name == "input" || in(kTexts) || in(kNumbers) || in(kOptionalNumbers) || in(kFlags);
}

std::string field_names() {
  std::string names = "id, input";
  const auto add = [&](const auto& fields) {
    for (const auto& field : fields) names += ", " + std::string(field.name);
  };
  add(kTexts);
  add(kNumbers);
  add(kOptionalNumbers);
  add(kFlags);
  return names;
}

bool take_flag(const nlohmann::ordered_json& field, bool& to) {
  if (!field.is_boolean()) return false;
  to = field.get<bool>();
  return true;
}

/// False if the field has the wrong type.
bool take_field(std::string_view name, const nlohmann::ordered_json& field, JobRequest& request) {
  if (name == "id") return true;
  if (name == "input") return take_input(field, request.input);
  if (const auto* text = find(kTexts, name); text != kTexts.end()) return take_text(field, request.*(text->place));
  if (const auto* flag = find(kFlags, name); flag != kFlags.end()) return take_flag(field, request.*(flag->place));
  const auto value = integer(field);
  if (!value) return false;
  if (const auto* number = find(kNumbers, name); number != kNumbers.end()) request.*(number->place) = *value;
  if (const auto* number = find(kOptionalNumbers, name); number != kOptionalNumbers.end()) {
    request.*(number->place) = *value;
  }
  return true;
}

}  // namespace

std::optional<nlohmann::ordered_json> parse_json(std::string_view text) {
  using Json = nlohmann::ordered_json;
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

Result<JobRequest> fields_from(const nlohmann::ordered_json& json, const JobRequest& defaults) {
  if (!json.is_object()) return malformed("a job is one JSON object");
  JobRequest request = defaults;
  for (const auto& [name, field] : json.items()) {
    if (!is_field(name))
      return malformed("a job has no field " + core::quoted(name) + "; its fields are " + field_names());
    if (!take_field(name, field, request)) return malformed("the field " + core::quoted(name) + " has the wrong type");
  }
  return request;
}

Result<JobRequest> request_from(const nlohmann::ordered_json& json, const JobRequest& defaults) {
  if (!json.is_object()) return malformed("a job is one JSON object a line");
  Result<JobRequest> request = fields_from(json, defaults);
  if (!request) return request;
  if (request->summary.empty()) return malformed("the job names no \"summary\"");
  if (!json.contains("batch_size") && !json.contains("batch") && defaults.batch_size == 0) {
    return malformed("the job names no \"batch_size\"");
  }
  return request;
}

Result<TrainingJob> job_from(const JobRequest& request, std::shared_ptr<const ModelGraph> graph) {
  TrainingJob job(std::move(graph), request.batch_size);
  auto dimensions = dimensions_of(request.input);
  if (!dimensions) return dimensions.error();
  job.input_shape = *std::move(dimensions);
  job.sequence_length = request.sequence_length;
  const auto optimizer = choose("optimizer", model::kOptimizers, request.optimizer);
  if (!optimizer) return optimizer.error();
  job.optimizer = *optimizer;
  const auto precision = choose("precision", model::kPrecisions, request.precision);
  if (!precision) return precision.error();
  job.precision = *precision;
  const auto zero_grad = choose("place of zero_grad", model::kZeroGrads, request.zero_grad);
  if (!zero_grad) return zero_grad.error();
  job.zero_grad = *zero_grad;
  job.software = request.software;
  job.samples_per_epoch = request.samples;
  job.gradient_accumulation = request.accumulate;
  job.data_parallel = request.data_parallel;
  job.foreach = request.foreach;
  job.fused = request.fused;
  job.validation_pass = request.validation;
  job.activation_checkpointing = request.checkpointing;
  const auto valid = model::validate(job);
  if (!valid) return valid.error();
  return job;
}

}  // namespace gpumem::job_request
