// Input: the body of an admission request: an AdmissionReview of admission.k8s.io/v1, as the Kubernetes API server
// sends it for a new pod.
// Output: the AdmissionReview that answers it, and what happened to the pod. No I/O except the summaries.
// Source: kubernetes.io, "Dynamic Admission Control" and "kube-apiserver Admission (v1)".
//
// A pod with annotations of ours (pod_job.hpp) gets the limits or annotations of its target. One that no GPU of its
// type holds is denied, with need and limit. What cannot be told (a summary that cannot be read, an annotation that is
// wrong) is denied as well, or let pass with a warning, as `on_error` says. Any other pod passes untouched.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "pod_job.hpp"
#include "summaries.hpp"

namespace gpumem::webhook {

enum class OnError : std::uint8_t { allow, deny };

struct AdmissionOptions {
  PodJob defaults;  ///< of pods that leave it out; target, GPU, ...
  OnError on_error = OnError::deny;
};

/// What became of a request.
enum class Outcome : std::uint8_t {
  untouched,        ///< no pod, or one that does not ask
  patched,          ///< asks for what it needs now
  does_not_fit,     ///< denied: no GPU of its type holds it
  allowed_unknown,  ///< passes though nothing could be told
  denied_unknown,   ///< denied because nothing could be told
  malformed,        ///< no AdmissionReview: the API server's failurePolicy decides
};
struct OutcomeName {
  Outcome outcome;
  std::string_view name;
};
/// The names in metrics.
inline constexpr std::array<OutcomeName, 6> kOutcomes = {{{Outcome::untouched, "untouched"},
                                                          {Outcome::patched, "patched"},
                                                          {Outcome::does_not_fit, "does_not_fit"},
                                                          {Outcome::allowed_unknown, "allowed_unknown"},
                                                          {Outcome::denied_unknown, "denied_unknown"},
                                                          {Outcome::malformed, "malformed"}}};

struct Reply {
  Outcome outcome = Outcome::malformed;
  std::string body;  ///< JSON; of a malformed request one line of text
};

/// Serves any number of threads.
class Admission {
 public:
  Admission(AdmissionOptions options, Folder folder) : options_(std::move(options)), summaries_(std::move(folder)) {}

  /// Answers one request.
  [[nodiscard]] Reply review(std::string_view body);
  /// The answer where nothing can be told for this reason: the estimate takes too long.
  [[nodiscard]] Reply give_up(std::string_view body, const std::string& why) const;

  [[nodiscard]] Summaries::Counters summaries() const { return summaries_.counters(); }

 private:
  friend class Review;
  AdmissionOptions options_;
  Summaries summaries_;
  Session session_;
};

/// RFC 4648, with padding.
[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace gpumem::webhook
