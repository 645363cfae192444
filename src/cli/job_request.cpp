#include "job_request.hpp"

#include <algorithm>
#include <array>

#include "gpumem/core/error.hpp"
#include "gpumem/summary/text.hpp"

namespace gpumem::cli {

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

constexpr std::array<std::string_view, 12> kFields = {"id",        "summary",    "batch_size", "batch",
                                                      "input",     "seq_length", "seq",        "gpu",
                                                      "optimizer", "precision",  "estimator",  "lenient"};

bool is_field(const std::string& name) { return std::find(kFields.begin(), kFields.end(), name) != kFields.end(); }

std::string field_names() {
  std::string names;
  for (const std::string_view field : kFields) names += (names.empty() ? "" : ", ") + std::string(field);
  return names;
}

bool take_field(const std::string& name, const nlohmann::ordered_json& field, JobRequest& request) {
  if (name == "id") return true;
  if (name == "summary") return take_text(field, request.summary);
  if (name == "input") return take_input(field, request.input);
  if (name == "gpu") return take_text(field, request.gpu);
  if (name == "optimizer") return take_text(field, request.optimizer);
  if (name == "precision") return take_text(field, request.precision);
  if (name == "estimator") return take_text(field, request.estimator);
  if (name == "lenient" && field.is_boolean()) {
    request.lenient = field.get<bool>();
    return true;
  }
  const auto value = integer(field);
  if (!value) return false;
  if (name == "batch_size" || name == "batch") request.batch_size = *value;
  else if (name == "seq_length" || name == "seq") request.sequence_length = *value;
  else return false;
  return true;
}

}  // namespace

Result<JobRequest> request_from(const nlohmann::ordered_json& json, const JobRequest& defaults) {
  if (!json.is_object()) return malformed("a job is one JSON object a line");
  JobRequest request = defaults;
  for (const auto& [name, field] : json.items()) {
    if (!is_field(name))
      return malformed("a job has no field " + core::quoted(name) + "; its fields are " + field_names());
    if (!take_field(name, field, request)) return malformed("the field " + core::quoted(name) + " has the wrong type");
  }
  if (request.summary.empty()) return malformed("the job names no \"summary\"");
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
  const auto valid = model::validate(job);
  if (!valid) return valid.error();
  return job;
}

}  // namespace gpumem::cli
