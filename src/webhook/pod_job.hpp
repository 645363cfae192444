// Input: a pod's annotations.
// Output: PodJob: the training job that they describe, or that they describe none.
//
// Annotations (keys below gpumem.io/): summary (a path below the configured folder) or summary-text (the summary
// itself), for (a Kubernetes target of request/targets.hpp), margin, container (whose limits are set; the first),
// gpus-per-node (of a job on several GPUs, that this pod has; all of them, up to 8), and the options of a job by their
// names on the command line (job/job_options.hpp: batch, gpu, optimizer, zero-grad, ...; a flag is "true" or "false"),
// except kNotForPods. "need" is what the webhook itself wrote. They are a user's words: nothing of them is opened as a
// path but the summary, below its folder.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/all.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/place/policies.hpp"

namespace gpumem::webhook {

inline constexpr std::string_view kPrefix = "gpumem.io/";
/// What the webhook writes for people who look at the pod.
inline constexpr std::string_view kNeed = "gpumem.io/need";

/// Options that no annotation gives: a limit must not be a lower bound, and no file of this machine is opened.
inline constexpr std::array<std::string_view, 3> kNotForPods = {"lenient", "lengths", "lengths-options"};

struct Annotation {
  std::string_view name;
  std::string_view value;
};

struct PodJob {
  job::JobRequest request;  ///< its summary is a path below the folder; empty: it is `summary_text`
  std::string summary_text;
  std::string target;
  place::Margin margin;
  std::string container;           ///< empty: the first
  std::int64_t gpus_per_node = 0;  ///< as of request::Site
};

/// The annotations that are ours to read.
[[nodiscard]] std::vector<Annotation> annotations_of_ours(const std::vector<Annotation>& annotations);

/// The job that a pod with these annotations trains, where `defaults` says what they leave out. Errors:
/// malformed_input, naming the annotation: unknown, out of its range, or missing.
[[nodiscard]] Result<PodJob> job_of(const std::vector<Annotation>& ours, const PodJob& defaults);

}  // namespace gpumem::webhook
