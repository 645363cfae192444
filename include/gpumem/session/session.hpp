// Input: a JobRequest, which names a model, or a model that was read and a JobRequest.
// Output: the answer to every question about the job: how much memory it takes, which batch fits, what would make it
// fit, which layout over GPUs, how busy a GPU is, what to ask a scheduler for, its memory event by event.
// Units: bytes.
//
// What answers have in common is made once: models that were read, GPU profiles, estimators with their trained models,
// and the stages of an analysis. A file is read again when it has changed. The command line, the C API, Python, the
// webhook and the web page ask through a Session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/advise.hpp"
#include "gpumem/estimate/estimator.hpp"
#include "gpumem/estimate/fit.hpp"
#include "gpumem/estimate/timeline.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/model/model_graph.hpp"

// Answers of rooms that not every program needs. Who asks for one includes its header, which is named there.
namespace gpumem::search {
struct LayoutPlan;
struct Question;
}  // namespace gpumem::search
namespace gpumem::utilisation {
class UtilisationEstimator;
struct UtilisationEstimate;
}  // namespace gpumem::utilisation
namespace gpumem::request {
struct GpuRequest;
struct Site;
}  // namespace gpumem::request
namespace gpumem::place {
struct Margin;
}  // namespace gpumem::place
namespace gpumem::serve {
struct ServedModel;
struct ServingRequest;
struct ServingEstimate;
struct ServingLayout;
struct ServingLimits;
struct ServingChange;
}  // namespace gpumem::serve

namespace gpumem::posttrain {
struct PostTrainingRequest;
struct PostTrainingJob;
struct PostTrainingEstimate;
struct PostTrainingLimits;
struct PostTrainingChange;
struct PostTrainingLayout;
}  // namespace gpumem::posttrain

namespace gpumem::session {

/// Reads a model summary in any format, with every op that gpumem knows; "-" is standard input, and a folder is that of
/// a HuggingFace model: its config.json, held to the headers of its safetensors files. With `lenient`,
/// unknown layers that hold parameters are counted instead of bounded, and estimates are lower bounds.
[[nodiscard]] core::Result<model::ModelGraph> read_summary(const std::string& path, bool lenient = false);

/// The same for a summary that is in memory. `file` is its name in messages.
[[nodiscard]] core::Result<model::ModelGraph> parse_summary(std::string_view text, bool lenient = false,
                                                            const std::string& file = {});

/// A model, and what answers about it share.
/// Thread safety: it never changes; any number of threads may use one.
class Model {
 public:
  /// With analyses of its own, or with those that other models have, too.
  explicit Model(std::shared_ptr<const model::ModelGraph> graph,
                 std::shared_ptr<analysis::Analyses> analyses = nullptr);

  [[nodiscard]] const std::shared_ptr<const model::ModelGraph>& graph() const { return graph_; }
  [[nodiscard]] analysis::Analyses& analyses() const { return *analyses_; }

 private:
  std::shared_ptr<const model::ModelGraph> graph_;
  std::shared_ptr<analysis::Analyses> analyses_;  ///< itself safe to use from many threads
};

/// What a request asks about. It keeps alive what it names, also beyond the Session.
struct Asked {
  std::shared_ptr<const Model> model;
  model::TrainingJob job;
  std::shared_ptr<const device::GpuProfile> gpu;

  /// An analysis of the job, to be put back before this ends; it keeps what other jobs of the model can use.
  [[nodiscard]] analysis::Analyses::Lent analysis() const { return model->analyses().take(job); }
};

/// Makes the request one that leaves open what is looked for; its batch size is 1 where it says none. Errors:
/// invalid_argument where it says the batch size or the length that is looked for; images and frames are not looked at.
[[nodiscard]] core::Status leave_to_find(estimate::Grows grows, bool has_batch, job::JobRequest& request);

/// Values by name, each made when it is first asked for; when there are too many, the one made first goes.
/// Thread safety: any number of threads may ask. Two that ask for one name at once may both make it; nobody waits for
/// another, who may have more time.
template <typename Value>
class Kept {
 public:
  using Shared = core::Result<std::shared_ptr<const Value>>;
  /// With `errors` those of `make` are kept as well, but not those of a file that cannot be read now and of a deadline.
  explicit Kept(std::size_t most, bool errors = false) : most_(most), errors_(errors) {}

  /// `stamp` tells whether what the value was made from is still the same. Errors: those of `make`.
  template <typename Make>
  [[nodiscard]] Shared get(const std::string& key, std::uint64_t stamp, const Make& make);

 private:
  struct Entry {
    std::uint64_t stamp = 0;
    Shared value;
  };
  std::mutex mutex_;
  std::size_t most_;
  bool errors_;
  std::list<std::string> order_;  ///< keys, the oldest first
  std::unordered_map<std::string, Entry> entries_;
};

template <typename Value>
template <typename Make>
typename Kept<Value>::Shared Kept<Value>::get(const std::string& key, std::uint64_t stamp, const Make& make) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = entries_.find(key);
    if (known != entries_.end() && known->second.stamp == stamp) return known->second.value;
  }
  Shared value = make();
  const bool passes = !value && (value.error().code == core::ErrorCode::unreadable_file ||
                                 value.error().code == core::ErrorCode::deadline_exceeded);
  if (passes || (!value && !errors_)) return value;
  const std::lock_guard lock(mutex_);
  if (const auto known = entries_.find(key); known != entries_.end()) {
    if (known->second.stamp == stamp) return known->second.value;  // somebody else was quicker
    known->second.stamp = stamp;
    known->second.value = value;
    return value;
  }
  if (entries_.size() >= most_) {
    entries_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(key);
  return entries_.emplace(key, Entry{stamp, std::move(value)}).first->second.value;
}

/// Thread safety: any number of threads may ask one Session at a time. What it returns never changes and lives as long
/// as somebody holds it.
class Session {
 public:
  Session();
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // --- What answers are made of ---------------------------------------------------------------------------------

  /// The model of this path. Errors: those of read_summary().
  [[nodiscard]] core::Result<std::shared_ptr<const Model>> read(const std::string& path, bool lenient = false);
  /// A model that somebody else read, with the session's analyses.
  [[nodiscard]] std::shared_ptr<const Model> model_of(std::shared_ptr<const model::ModelGraph> graph) const;
  /// The profile of this name, alias or path. Errors: those of device::find_profile().
  [[nodiscard]] core::Result<std::shared_ptr<const device::GpuProfile>> gpu(const std::string& name);
  /// The estimator that a request names, with the allocator and the trained model that it names. Errors: those of
  /// estimate::make_estimator() and of device::parse_allocator_options().
  [[nodiscard]] core::Result<std::shared_ptr<const estimate::Estimator>> estimator(const job::JobRequest& request);
  /// The same, of "all" each one; at least one.
  [[nodiscard]] core::Result<std::vector<std::shared_ptr<const estimate::Estimator>>> estimators(
      const job::JobRequest& request);
  /// The estimator of utilisation of this name. Errors: those of utilisation::make_utilisation_estimator().
  [[nodiscard]] core::Result<std::shared_ptr<const utilisation::UtilisationEstimator>> utilisation_estimator(
      const std::string& name, const std::string& model = {});
  /// The job that is asked about, for those who ask several questions. Without `model` it is the one that the request
  /// names as its summary. Errors: those of gpu(), of read() and of job::job_from().
  [[nodiscard]] core::Result<Asked> ask(const job::JobRequest& request, std::shared_ptr<const Model> model = nullptr);

  // --- Questions ------------------------------------------------------------------------------------------------
  // Each takes the request, and the model where the caller has it. Errors: those of ask() and of estimator(), and those
  // of the function that is named.

  /// Estimator::estimate().
  [[nodiscard]] core::Result<estimate::MemoryEstimate> estimate(const job::JobRequest& request,
                                                                std::shared_ptr<const Model> model = nullptr);
  /// estimate::largest_batch(); the request's batch size is not looked at.
  [[nodiscard]] core::Result<estimate::Fit> fit(const job::JobRequest& request,
                                                std::shared_ptr<const Model> model = nullptr);
  /// estimate::longest_sequence(), at the request's batch size.
  [[nodiscard]] core::Result<estimate::Fit> fit_sequence(const job::JobRequest& request,
                                                         std::shared_ptr<const Model> model = nullptr);
  /// estimate::find_largest(), of the largest image, or the most images or frames, at the request's batch size.
  [[nodiscard]] core::Result<estimate::Fit> find_largest(const job::JobRequest& request, estimate::Grows grows,
                                                         std::shared_ptr<const Model> model = nullptr);
  /// estimate::fit_each(), of all GPUs that gpumem knows; the request's own is not looked at.
  [[nodiscard]] core::Result<std::vector<estimate::GpuFit>> gpus(const job::JobRequest& request,
                                                                 std::shared_ptr<const Model> model = nullptr);
  /// estimate::advise().
  [[nodiscard]] core::Result<estimate::Advice> advise(const job::JobRequest& request,
                                                      std::shared_ptr<const Model> model = nullptr);
  /// estimate::make_timeline().
  [[nodiscard]] core::Result<estimate::Timeline> timeline(const job::JobRequest& request,
                                                          std::shared_ptr<const Model> model = nullptr);
  /// search::find_layouts(), of gpumem/search/find_layouts.hpp; search::question_about() makes the question. The batch
  /// size is the search's to find.
  [[nodiscard]] core::Result<search::LayoutPlan> plan(const job::JobRequest& request, const search::Question& question,
                                                      std::shared_ptr<const Model> model = nullptr);
  /// UtilisationEstimator::estimate(), of gpumem/utilisation/utilisation_estimators.hpp.
  [[nodiscard]] core::Result<utilisation::UtilisationEstimate> utilisation(
      const job::JobRequest& request, const std::string& estimator = "utilisation-mlp",
      std::shared_ptr<const Model> model = nullptr);
  /// request::make_request(), of gpumem/request/targets.hpp.
  [[nodiscard]] core::Result<request::GpuRequest> request(const job::JobRequest& request, std::string_view target,
                                                          const place::Margin& margin, const request::Site& site,
                                                          std::shared_ptr<const Model> model = nullptr);

  // --- Servers: gpumem/serve/serving_job.hpp and serving_questions.hpp ---------------------------------------------
  // Errors: those of gpu(), of serve::read_served_model() and of the function that is named.

  /// serve::estimate_server().
  [[nodiscard]] core::Result<serve::ServingEstimate> serve(const serve::ServingRequest& request);
  /// serve::find_serving_limits().
  [[nodiscard]] core::Result<serve::ServingLimits> serving_limits(const serve::ServingRequest& request);
  /// serve::advise_server().
  [[nodiscard]] core::Result<std::vector<serve::ServingChange>> serving_advice(const serve::ServingRequest& request);
  /// request::make_request() for a server on all its GPUs. Errors: also missing_information for one that does not
  /// start.
  [[nodiscard]] core::Result<request::GpuRequest> serving_request(const serve::ServingRequest& request,
                                                                  std::string_view target, const place::Margin& margin,
                                                                  const request::Site& site);
  /// serve::plan_server().
  [[nodiscard]] core::Result<std::vector<serve::ServingLayout>> serving_plan(const serve::ServingRequest& request,
                                                                             std::int64_t gpus);

  // --- Post-training: gpumem/posttrain/post_training_job.hpp and estimate_post_training.hpp -----------------------
  // Errors: those of ask(), of read() for each model, of serve::read_served_model() and of the function that is named.

  /// posttrain::estimate_post_training().
  [[nodiscard]] core::Result<posttrain::PostTrainingEstimate> post_training(
      const posttrain::PostTrainingRequest& request);
  /// posttrain::find_post_training_limits().
  [[nodiscard]] core::Result<posttrain::PostTrainingLimits> post_training_limits(
      const posttrain::PostTrainingRequest& request);
  /// posttrain::advise_post_training().
  [[nodiscard]] core::Result<std::vector<posttrain::PostTrainingChange>> post_training_advice(
      const posttrain::PostTrainingRequest& request);

  /// posttrain::find_post_training_layouts().
  [[nodiscard]] core::Result<std::vector<posttrain::PostTrainingLayout>> post_training_layouts(
      const posttrain::PostTrainingRequest& request, std::int64_t gpus);
  /// request::make_request() for the job on all its GPUs. Errors: also missing_information for one that does not fit.
  [[nodiscard]] core::Result<request::GpuRequest> post_training_request(const posttrain::PostTrainingRequest& request,
                                                                        std::string_view target,
                                                                        const place::Margin& margin,
                                                                        const request::Site& site);

  /// The model of a config.json, of a folder, or of a name: in the local HuggingFace cache, or a published one.
  [[nodiscard]] core::Result<std::shared_ptr<const serve::ServedModel>> served(const std::string& config);

 private:
  /// A model beside the policy, as the program runs it.
  [[nodiscard]] core::Result<std::shared_ptr<const model::ModelGraph>> further_model(
      const std::string& path, const posttrain::PostTrainingRequest& request);
  /// What a request leaves to the model: DeepSpeed's buckets, and a tower that is not trained.
  [[nodiscard]] core::Status settle_training(const posttrain::PostTrainingRequest& request, job::JobRequest& training);
  /// The request's job with its models read, asked on its GPU by `question`.
  template <typename Question>
  auto ask_post_training(const posttrain::PostTrainingRequest& request, const Question& question);
  /// Asks a function of the room serve about the model and the GPU that the request names.
  template <typename Question>
  [[nodiscard]] auto ask_about_server(const serve::ServingRequest& request, const Question& question);

  std::shared_ptr<analysis::Analyses> analyses_;  ///< of the models that it reads
  Kept<Model> models_;
  Kept<device::GpuProfile> gpus_;
  Kept<estimate::Estimator> estimators_;
  Kept<utilisation::UtilisationEstimator> utilisation_estimators_;
  Kept<serve::ServedModel> served_;
};

/// The Session of the process, for callers that have no place for one; made when it is first asked for.
[[nodiscard]] Session& process_session();

}  // namespace gpumem::session
