#include "admission.hpp"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "gpumem/core/json.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/request/targets.hpp"

namespace gpumem::webhook {

namespace {

using core::JsonDocument;
using core::JsonValue;
using core::malformed;
using Json = nlohmann::ordered_json;
using request::GpuRequest;
using request::Setting;

/// Deeper than any pod: managedFields reach about 16.
constexpr core::JsonLimits kLimits = {.depth = 64, .values = std::size_t{1} << 18};
/// What the API server shows of a warning; it cuts longer ones.
constexpr std::size_t kLongestWarning = 250;
constexpr std::size_t kLongestMessage = 1000;

const JsonValue* field(const JsonValue* object, std::string_view key) {
  if (object == nullptr || !object->is(JsonValue::Kind::object)) return nullptr;
  for (const JsonValue& value : object->items()) {
    if (value.key() == key) return &value;
  }
  return nullptr;
}

std::string_view text(const JsonValue* value) {
  return value != nullptr && value->is(JsonValue::Kind::text) ? value->text() : std::string_view();
}

/// A resource's quantity: the API server takes numbers as well as texts.
std::string quantity(const JsonValue& value) {
  return value.is(JsonValue::Kind::integer) ? std::to_string(value.integer()) : std::string(text(&value));
}

std::string pointer(std::initializer_list<std::string_view> keys) {
  std::string path;
  for (const std::string_view key : keys) {
    path += '/';
    for (const char byte : key) {
      if (byte == '~') {
        path += "~0";
      } else if (byte == '/') {
        path += "~1";
      } else {
        path += byte;
      }
    }
  }
  return path;
}

Json add(const std::string& path, Json value) { return {{"op", "add"}, {"path", path}, {"value", std::move(value)}}; }

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// The parts of an AdmissionReview that count here; views of the document.
struct Incoming {
  std::string_view uid;
  const JsonValue* pod = nullptr;  ///< nothing: about something else than a pod that is to be made
};

Result<Incoming> incoming_of(const JsonDocument& document) {
  const JsonValue* root = &document.root();
  if (text(field(root, "kind")) != "AdmissionReview" || text(field(root, "apiVersion")) != "admission.k8s.io/v1") {
    return malformed("the body is not an AdmissionReview of admission.k8s.io/v1");
  }
  const JsonValue* request = field(root, "request");
  Incoming incoming{text(field(request, "uid"))};
  if (incoming.uid.empty()) return malformed("the AdmissionReview has no request.uid");
  const JsonValue* kind = field(request, "kind");
  const bool pod = text(field(kind, "kind")) == "Pod" && text(field(kind, "group")).empty();
  const bool part = !text(field(request, "subResource")).empty();
  if (pod && !part && text(field(request, "operation")) == "CREATE") incoming.pod = field(request, "object");
  return incoming;
}

std::vector<Annotation> annotations_of(const JsonValue* pod) {
  std::vector<Annotation> all;
  const JsonValue* map = field(field(pod, "metadata"), "annotations");
  if (map == nullptr || !map->is(JsonValue::Kind::object)) return all;
  for (const JsonValue& annotation : map->items()) all.push_back({annotation.key(), text(&annotation)});
  return all;
}

struct Container {
  std::string index;
  const JsonValue* value = nullptr;
};

/// The container of this name, or the first.
Result<Container> container_of(const JsonValue* pod, const std::string& name) {
  const JsonValue* containers = field(field(pod, "spec"), "containers");
  if (containers != nullptr && containers->is(JsonValue::Kind::list)) {
    std::size_t index = 0;
    for (const JsonValue& container : containers->items()) {
      if (name.empty() || text(field(&container, "name")) == name) return Container{std::to_string(index), &container};
      ++index;
    }
  }
  if (name.empty()) return malformed("the pod has no containers");
  return malformed("the pod has no container " + core::quoted(name) + ", which gpumem.io/container names");
}

/// " on each of 8 GPUs", " on each of 16 GPUs, 8 a pod"; empty for one.
std::string gpus_text(const GpuRequest& request) {
  const std::int64_t gpus = request.gpus_per_node * request.nodes;
  if (gpus == 1) return {};
  std::string text = " on each of " + core::with_separators(gpus) + " GPUs";
  if (request.nodes > 1) text += ", " + core::with_separators(request.gpus_per_node) + " a pod";
  return text;
}

std::string headline(const ModelGraph& graph, const job::JobRequest& asked, const MemoryEstimate& estimate,
                     const GpuRequest& request) {
  return core::shortened(graph.file(), 60) + " at batch " + core::with_separators(asked.training.batch_size) +
         " needs " + core::to_string(estimate.expected) + " on " + asked.gpu + ", asking for " +
         core::with_separators(request::mebibytes(request.memory)) + " MiB" + gpus_text(request);
}

/// The JSON patch of a pod, and what its owner should know.
struct Changes {
  Json patch = Json::array();
  std::vector<std::string> warnings = {};
};

class Patch {
 public:
  Patch(const Container& container, const GpuRequest& request) : container_(container), request_(request) {}

  Result<Changes> make() && {
    const JsonValue* limits = field(field(container_.value, "resources"), "limits");
    for (const std::string& excluded : request_.excluded_limits) {
      if (field(limits, excluded) != nullptr) {
        return malformed("container " + name() + " has the limit " + excluded + ", which the target " +
                         request_.target + " gives by other means; remove it");
      }
    }
    for (const Setting& annotation : request_.annotations) {
      changes_.patch.push_back(add(pointer({"metadata", "annotations", annotation.name}), annotation.value));
    }
    if (const JsonValue* count = field(limits, request_.count_limit); is_wrong(count)) {
      return malformed("container " + name() + " has the limit " + request_.count_limit + " of " +
                       core::quoted(quantity(*count)) + ", and the job takes " +
                       std::to_string(request_.gpus_per_node) +
                       " GPUs of a node; say by gpumem.io/gpus-per-node how "
                       "many of its GPUs this pod has");
    }
    if (!request_.limits.empty()) make_maps();
    for (const Setting& limit : request_.limits) set(limit);
    return std::move(changes_);
  }

 private:
  [[nodiscard]] std::string name() const { return core::quoted(text(field(container_.value, "name"))); }

  /// Whether the pod names another number of GPUs than its job's layout has.
  [[nodiscard]] bool is_wrong(const JsonValue* count) const {
    const bool several = request_.gpus_per_node * request_.nodes > 1;
    return several && count != nullptr && quantity(*count) != std::to_string(request_.gpus_per_node);
  }

  /// A member can be added only to an object that is there.
  void make_maps() {
    const JsonValue* resources = field(container_.value, "resources");
    const auto absent = [](const JsonValue* value) { return value == nullptr || value->is(JsonValue::Kind::null); };
    if (absent(resources)) {
      changes_.patch.push_back(add(pointer({"spec", "containers", container_.index, "resources"}), Json::object()));
    }
    if (absent(resources) || absent(field(resources, "limits"))) {
      changes_.patch.push_back(
          add(pointer({"spec", "containers", container_.index, "resources", "limits"}), Json::object()));
    }
  }

  void set(const Setting& limit) {
    const JsonValue* resources = field(container_.value, "resources");
    const JsonValue* former = field(field(resources, "limits"), limit.name);
    if (former != nullptr && limit.name == request_.count_limit) return;
    if (former != nullptr && quantity(*former) == limit.value) return;
    if (former != nullptr) {
      changes_.warnings.push_back("the limit " + limit.name + " of container " + name() + " was " +
                                  core::quoted(quantity(*former)) + ", is now " + limit.value);
    }
    // A request of such a resource must equal its limit; where there is none the API server takes the limit.
    for (const std::string_view map : {"limits", "requests"}) {
      if (map == "requests" && field(field(resources, map), limit.name) == nullptr) continue;
      changes_.patch.push_back(
          add(pointer({"spec", "containers", container_.index, "resources", map, limit.name}), limit.value));
    }
  }

  const Container& container_;
  const GpuRequest& request_;
  Changes changes_;
};

Json response_of(std::string_view uid, bool allowed) { return {{"uid", uid}, {"allowed", allowed}}; }

void warn(Json& response, const std::vector<std::string>& warnings) {
  if (warnings.empty()) return;
  response["warnings"] = Json::array();
  for (const std::string& warning : warnings) {
    response["warnings"].push_back(core::shortened("gpumem: " + warning, kLongestWarning));
  }
}

Reply reply_of(Outcome outcome, Json response) {
  return {
      outcome,
      dump({{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}})};
}

Reply denial(std::string_view uid, Outcome outcome, const std::string& message) {
  constexpr int kForbidden = 403;
  Json response = response_of(uid, false);
  response["status"] = {{"code", kForbidden}, {"message", core::shortened("gpumem: " + message, kLongestMessage)}};
  return reply_of(outcome, std::move(response));
}

Reply unknown(std::string_view uid, OnError on_error, const std::string& message) {
  if (on_error == OnError::deny) return denial(uid, Outcome::denied_unknown, message);
  Json response = response_of(uid, true);
  warn(response, {message});
  return reply_of(Outcome::allowed_unknown, std::move(response));
}

/// With a job's options as annotations.
std::string said(const Error& error) { return job::spelled(core::to_string(error), {"gpumem.io/", ": "}); }

Reply not_understood(const Error& error) {
  return {Outcome::malformed, core::shortened(said(error), kLongestMessage) + "\n"};
}

}  // namespace

/// One request on its way to an answer.
class Review {
 public:
  Review(Admission& admission, const Incoming& incoming, const std::vector<Annotation>& ours)
      : admission_(admission), incoming_(incoming), ours_(ours) {}

  Reply answer() {
    const Result<PodJob> job = job_of(ours_, admission_.options_.defaults);
    if (!job) return told_nothing(job.error());
    const Result<Container> container = container_of(incoming_.pod, job->container);
    if (!container) return told_nothing(container.error());
    const Summaries::Model graph = job->request.summary.empty() ? admission_.summaries_.from_text(job->summary_text)
                                                                : admission_.summaries_.from_file(job->request.summary);
    if (!graph) return told_nothing(graph.error());
    Session& session = admission_.session_;
    const auto gpu = session.gpu(job->request.gpu);
    if (!gpu) return told_nothing(gpu.error());
    const Result<MemoryEstimate> estimate = session.estimate(job->request, session.model_of(*graph));
    if (!estimate) return told_nothing(estimate.error());
    return ask(*job, *container, **graph, **gpu, *estimate);
  }

 private:
  [[nodiscard]] Reply told_nothing(const Error& error) const {
    return unknown(incoming_.uid, admission_.options_.on_error, said(error));
  }

  [[nodiscard]] Reply ask(const PodJob& job, const Container& container, const ModelGraph& graph, const GpuProfile& gpu,
                          const MemoryEstimate& estimate) const {
    const request::Site site{job.gpus_per_node, std::string(text(field(container.value, "name")))};
    const Result<GpuRequest> request = request::make_request(job.target, estimate, gpu, job.margin, site);
    // The summary and the job are sound: what is missing is a GPU that is large enough.
    if (!request && request.error().code == ErrorCode::missing_information) {
      return denial(incoming_.uid, Outcome::does_not_fit, said(Error(request.error()).in_file(graph.file())));
    }
    if (!request) return told_nothing(request.error());
    Result<Changes> changes = Patch(container, *request).make();
    if (!changes) return told_nothing(changes.error());
    const std::string need = headline(graph, job.request, estimate, *request);
    changes->patch.push_back(add(pointer({"metadata", "annotations", kNeed}), need));
    changes->warnings.insert(changes->warnings.begin(), need);
    Json response = response_of(incoming_.uid, true);
    response["patchType"] = "JSONPatch";
    response["patch"] = base64(dump(changes->patch));
    warn(response, changes->warnings);
    return reply_of(Outcome::patched, std::move(response));
  }

  Admission& admission_;
  const Incoming& incoming_;
  const std::vector<Annotation>& ours_;
};

Reply Admission::review(std::string_view body) {
  const Result<JsonDocument> document = JsonDocument::parse(body, kLimits);
  if (!document) return not_understood(document.error());
  const Result<Incoming> incoming = incoming_of(*document);
  if (!incoming) return not_understood(incoming.error());
  const std::vector<Annotation> ours = annotations_of_ours(annotations_of(incoming->pod));
  if (ours.empty()) return reply_of(Outcome::untouched, response_of(incoming->uid, true));
  return Review(*this, *incoming, ours).answer();
}

Reply Admission::give_up(std::string_view body, const std::string& why) const {
  const Result<JsonDocument> document = JsonDocument::parse(body, kLimits);
  if (!document) return not_understood(document.error());
  const Result<Incoming> incoming = incoming_of(*document);
  if (!incoming) return not_understood(incoming.error());
  // A pod that does not ask is let through at once.
  if (annotations_of_ours(annotations_of(incoming->pod)).empty()) {
    return reply_of(Outcome::untouched, response_of(incoming->uid, true));
  }
  return unknown(incoming->uid, options_.on_error, why);
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr std::size_t kGroup = 3;
  std::string text;
  text.reserve((bytes.size() + kGroup - 1) / kGroup * 4);
  for (std::size_t at = 0; at < bytes.size(); at += kGroup) {
    const std::size_t count = std::min(kGroup, bytes.size() - at);
    std::uint32_t bits = 0;
    for (std::size_t byte = 0; byte < kGroup; ++byte) {
      bits = bits << 8 | (byte < count ? static_cast<unsigned char>(bytes[at + byte]) : 0U);
    }
    for (std::size_t digit = 0; digit <= kGroup; ++digit) {
      text += digit <= count ? kDigits[bits >> (18 - 6 * digit) & 0x3F] : '=';
    }
  }
  return text;
}

}  // namespace gpumem::webhook
