// Enters: a pod's annotations. Leaves: PodJob, the training job that they describe, or that they describe none.
//
// Annotations (keys below gpumem.io/): summary (a path below the configured folder) or summary-text (the summary
// itself), batch, for (a Kubernetes target of request/targets.hpp), margin, container (whose limits are set; the
// first), and the job options of the command line by their names: input, seq, gpu, optimizer, precision, samples,
// accumulate, zero-grad, fused, foreach, validation, checkpointing, software, alloc-conf, estimator, model. "need" is
// what the webhook itself wrote. They are a user's words: nothing of them is opened as a path but the summary, below
// its folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/place/policy.hpp"
#include "job_request.hpp"

namespace gpumem::webhook {

inline constexpr std::string_view kPrefix = "gpumem.io/";
/// What the webhook writes for people who look at the pod.
inline constexpr std::string_view kNeed = "gpumem.io/need";

struct Annotation {
  std::string_view name;
  std::string_view value;
};

struct PodJob {
  job_request::JobRequest request;  ///< its summary is a path below the folder; empty: it is `summary_text`
  std::string summary_text;
  std::string target;
  place::Margin margin;
  std::string container;  ///< empty: the first
};

/// The annotations that are ours to read.
[[nodiscard]] std::vector<Annotation> annotations_of_ours(const std::vector<Annotation>& annotations);

/// The job that a pod with these annotations trains, where `defaults` says what they leave out. Errors:
/// malformed_input, naming the annotation: unknown, out of its range, or missing.
[[nodiscard]] Result<PodJob> job_of(const std::vector<Annotation>& ours, const PodJob& defaults);

}  // namespace gpumem::webhook
