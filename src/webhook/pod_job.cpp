#include "pod_job.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "gpumem/ml/builtin_models.hpp"
#include "gpumem/request/targets.hpp"

namespace gpumem::webhook {

namespace {

using job_request::JobRequest;

Error malformed(const Annotation& annotation, const std::string& fault) {
  return {ErrorCode::malformed_input, "the annotation " + core::quoted(annotation.name) + " " + fault, {}};
}

template <typename Type>
struct Field {
  std::string_view name;
  Type JobRequest::*place;
};

constexpr std::array<Field<std::string>, 10> kTexts = {{{"summary", &JobRequest::summary},
                                                        {"input", &JobRequest::input},
                                                        {"gpu", &JobRequest::gpu},
                                                        {"optimizer", &JobRequest::optimizer},
                                                        {"precision", &JobRequest::precision},
                                                        {"zero-grad", &JobRequest::zero_grad},
                                                        {"software", &JobRequest::software},
                                                        {"alloc-conf", &JobRequest::alloc_conf},
                                                        {"estimator", &JobRequest::estimator},
                                                        {"model", &JobRequest::model}}};
constexpr std::array<Field<std::int64_t>, 2> kNumbers = {
    {{"batch", &JobRequest::batch_size}, {"accumulate", &JobRequest::accumulate}}};
constexpr std::array<Field<std::optional<std::int64_t>>, 2> kOptionalNumbers = {
    {{"seq", &JobRequest::sequence_length}, {"samples", &JobRequest::samples}}};
constexpr std::array<Field<bool>, 4> kFlags = {{{"fused", &JobRequest::fused},
                                                {"foreach", &JobRequest::foreach},
                                                {"validation", &JobRequest::validation},
                                                {"checkpointing", &JobRequest::checkpointing}}};
struct PodField {
  std::string_view name;
  std::string PodJob::*place;
};
constexpr std::array<PodField, 3> kPodTexts = {
    {{"summary-text", &PodJob::summary_text}, {"for", &PodJob::target}, {"container", &PodJob::container}}};

std::string names() {
  std::string all = "margin";
  const auto add = [&](const auto& fields) {
    for (const auto& field : fields) all += ", " + std::string(field.name);
  };
  add(kPodTexts);
  add(kTexts);
  add(kNumbers);
  add(kOptionalNumbers);
  add(kFlags);
  return all;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  return fault == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

template <typename Fields>
auto find(const Fields& fields, std::string_view name) {
  return std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.name == name; });
}

template <typename Fields, typename Set>
bool set_if_known(const Fields& fields, std::string_view name, const Set& set) {
  const auto row = find(fields, name);
  if (row == fields.end()) return false;
  set(row->place);
  return true;
}

/// Nothing if the annotation was taken.
std::optional<Error> take(const Annotation& annotation, PodJob& job) {
  const std::string_view name = annotation.name.substr(kPrefix.size());
  const std::string_view value = annotation.value;
  if (name == "margin") {
    const auto margin = request::parse_margin(value);
    if (!margin) return malformed(annotation, "is wrong: " + margin.error().message);
    job.margin = *margin;
    return std::nullopt;
  }
  if (set_if_known(kPodTexts, name, [&](auto place) { job.*place = value; })) return std::nullopt;
  if (set_if_known(kTexts, name, [&](auto place) { job.request.*place = value; })) return std::nullopt;
  const auto flag = find(kFlags, name);
  if (flag != kFlags.end()) {
    if (value != "true" && value != "false") return malformed(annotation, "must be \"true\" or \"false\"");
    job.request.*(flag->place) = value == "true";
    return std::nullopt;
  }
  const auto number = whole_number(value);
  const auto set = [&](auto place) { job.request.*place = number.value_or(0); };
  if (!set_if_known(kNumbers, name, set) && !set_if_known(kOptionalNumbers, name, set)) {
    return malformed(annotation, "is unknown; behind gpumem.io/ stands one of " + names());
  }
  if (!number) return malformed(annotation, "must be a whole number, not " + core::quoted(value));
  return std::nullopt;
}

bool is_path(std::string_view name) { return name.find('/') != std::string_view::npos || name.ends_with(".json"); }

bool is_builtin_model(std::string_view name) {
  const auto models = ml::builtin_models();
  return std::any_of(models.begin(), models.end(), [&](const auto& model) { return model.name == name; });
}

/// What a command line may do and a pod may not: name files of the webhook, or ask for everything at once.
std::optional<Error> beyond_a_pod(const PodJob& job, const PodJob& defaults) {
  const JobRequest& request = job.request;
  const auto fault = [](std::string message) { return Error{ErrorCode::malformed_input, std::move(message), {}}; };
  if (is_path(request.gpu) && request.gpu != defaults.request.gpu) {
    return fault("the annotation gpumem.io/gpu must be a name from 'gpumem gpus', not a path");
  }
  if (!request.model.empty() && request.model != defaults.request.model && !is_builtin_model(request.model)) {
    return fault("the annotation gpumem.io/model must be the name of a built-in model, not " +
                 core::quoted(request.model));
  }
  if (request.estimator == "all") return fault("the annotation gpumem.io/estimator must name one estimator");
  return std::nullopt;
}

}  // namespace

std::vector<Annotation> annotations_of_ours(const std::vector<Annotation>& annotations) {
  std::vector<Annotation> ours;
  std::copy_if(annotations.begin(), annotations.end(), std::back_inserter(ours), [](const Annotation& annotation) {
    return annotation.name.starts_with(kPrefix) && annotation.name != kNeed;
  });
  return ours;
}

Result<PodJob> job_of(const std::vector<Annotation>& ours, const PodJob& defaults) {
  PodJob job = defaults;
  for (const Annotation& annotation : ours) {
    if (auto fault = take(annotation, job)) return *std::move(fault);
  }
  const auto missing = [](std::string message) { return Error{ErrorCode::malformed_input, std::move(message), {}}; };
  if (job.request.summary.empty() == job.summary_text.empty()) {
    return missing("a pod needs one of the annotations gpumem.io/summary and gpumem.io/summary-text");
  }
  if (job.request.batch_size == 0) return missing("a pod needs the annotation gpumem.io/batch, 1 or more");
  if (auto fault = beyond_a_pod(job, defaults)) return *std::move(fault);
  const auto target = request::find_target(job.target);
  if (!target) return target.error();
  if (!(*target)->kubernetes) {
    return missing("the target " + job.target + " is no pod's; see 'gpumem request --help' for those on Kubernetes");
  }
  return job;
}

}  // namespace gpumem::webhook
