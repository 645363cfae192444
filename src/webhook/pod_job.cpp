#include "pod_job.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/ml/trained_model.hpp"
#include "gpumem/request/targets.hpp"

namespace gpumem::webhook {

namespace {

using job::JobOption;
using job::JobRequest;

Error malformed(const Annotation& annotation, const std::string& fault) {
  return {ErrorCode::malformed_input, "the annotation " + core::quoted(annotation.name) + " " + fault, {}};
}

struct PodField {
  std::string_view name;
  std::string PodJob::*place;
};
constexpr std::array<PodField, 3> kPodTexts = {
    {{"summary-text", &PodJob::summary_text}, {"for", &PodJob::target}, {"container", &PodJob::container}}};

/// The option that an annotation gives; null: there is none of that name.
const JobOption* option_of(std::string_view flag) {
  const bool excluded = std::find(kNotForPods.begin(), kNotForPods.end(), flag) != kNotForPods.end();
  const JobOption* option = excluded ? nullptr : job::find_flag(flag);
  return option != nullptr && option->flag == flag ? option : nullptr;
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> all = {"gpus-per-node", "margin", "summary"};
  for (const PodField& field : kPodTexts) all.push_back(field.name);
  for (const JobOption& option : job::job_options()) {
    if (option_of(option.flag) != nullptr) all.push_back(option.flag);
  }
  return all;
}

Error unknown(const Annotation& annotation, std::string_view name) {
  const std::vector<std::string_view> all = names();
  std::string list;
  for (const std::string_view known : all) list += (list.empty() ? "" : ", ") + std::string(known);
  return malformed(annotation,
                   "is unknown" + core::did_you_mean(name, all) + "; gpumem.io/ must be followed by one of " + list);
}

core::Status take_margin(const Annotation& annotation, PodJob& job) {
  const auto margin = place::parse_margin(annotation.value);
  if (!margin) return malformed(annotation, "is wrong: " + margin.error().message);
  job.margin = *margin;
  return core::Done{};
}

core::Status take_gpus_per_node(const Annotation& annotation, PodJob& job) {
  constexpr std::int64_t kMost = 1024;
  const std::string_view text = annotation.value;
  const std::optional<std::int64_t> count = core::parse_whole(text);
  if (!count || *count < 1 || *count > kMost) {
    return malformed(annotation, "is " + core::quoted(text) + "; it counts the GPUs of this pod, 1 to 1024");
  }
  job.gpus_per_node = *count;
  return core::Done{};
}

core::Status take(const Annotation& annotation, PodJob& job) {
  const std::string_view name = annotation.name.substr(kPrefix.size());
  if (name == "margin") return take_margin(annotation, job);
  if (name == "gpus-per-node") return take_gpus_per_node(annotation, job);
  for (const PodField& field : kPodTexts) {
    if (field.name != name) continue;
    job.*field.place = annotation.value;
    return core::Done{};
  }
  if (name == "summary") {
    job.request.summary = annotation.value;
    return core::Done{};
  }
  const JobOption* option = option_of(name);
  if (option == nullptr) return unknown(annotation, name);
  core::Status taken = job::set_option_text(*option, job.request, annotation.value);
  if (!taken && taken.error().code == ErrorCode::malformed_input) return malformed(annotation, taken.error().message);
  return taken;
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
    if (auto taken = take(annotation, job); !taken) return taken.error();
  }
  const auto missing = [](std::string message) { return Error{ErrorCode::malformed_input, std::move(message), {}}; };
  if (job.request.summary.empty() == job.summary_text.empty()) {
    return missing("a pod needs one of the annotations gpumem.io/summary and gpumem.io/summary-text");
  }
  if (job.request.training.batch_size == 0) return missing("a pod needs the annotation gpumem.io/batch, 1 or more");
  if (auto fault = beyond_a_pod(job, defaults)) return *std::move(fault);
  const auto target = request::find_target(job.target);
  if (!target) return target.error();
  if (!(*target)->kubernetes) {
    return missing("the target " + job.target +
                   " is not for pods; see 'gpumem request --help' for those on Kubernetes");
  }
  return job;
}

}  // namespace gpumem::webhook
