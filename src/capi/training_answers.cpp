// The questions about a model and its training, as the command line answers them.
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "advise_report.hpp"
#include "gpumem/all.hpp"
#include "gpumem/job/lengths.hpp"
#include "held.hpp"
#include "plan_report.hpp"
#include "plan_words.hpp"
#include "questions.hpp"
#include "report.hpp"
#include "sized.hpp"

namespace gpumem::capi {

namespace {

using job::JobRequest;

/// A job on its GPU, with the estimator that it asks for; its answer may outlive the summary.
struct AskedJob {
  cli::EstimatedJob estimated_job;
  std::shared_ptr<const Estimator> estimator;
};

/// What was answered, and how long that took.
template <typename Answer>
struct Timed {
  AskedJob asked;
  Answer answer;
  double seconds = 0.0;
};

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

Result<AskedJob> asked_of(const Question& question, const JobRequest& request) {
  if (question.summary == nullptr) return refused("summary is a null pointer");
  auto estimator = process_session().estimator(request);
  if (!estimator) return estimator.error();
  auto estimated_job = cli::read_job(process_session(), request, question.summary->model);
  if (!estimated_job) return estimated_job.error();
  return AskedJob{*std::move(estimated_job), *std::move(estimator)};
}

template <typename Answer, typename Work>
Result<std::shared_ptr<const Timed<Answer>>> timed(const Question& question, const JobRequest& request,
                                                   const Work& work) {
  Result<AskedJob> asked = asked_of(question, request);
  if (!asked) return asked.error();
  const Stopwatch stopwatch;
  const auto analysis = asked->estimated_job.analysis();
  Result<Answer> answer = work(*asked, *analysis);
  if (!answer) return answer.error();
  return std::make_shared<const Timed<Answer>>(
      Timed<Answer>{*std::move(asked), *std::move(answer), stopwatch.seconds()});
}

std::vector<std::string> warnings_of(const ModelGraph& graph) {
  std::vector<std::string> lines;
  for (const model::Warning& warning : graph.warnings()) lines.push_back(cli::to_text(warning));
  return lines;
}

/// What one of the command line's "estimates" has, and what stands beside these.
Json figures_of(const AskedJob& asked, std::int64_t batch_size, const MemoryEstimate& estimate) {
  Json figures = cli::to_json(estimate);
  if (estimate.peak_layer) {
    const std::string& name = estimate.peak_layer->class_name;
    figures["peak"]["class_name"] = name.empty() ? Json(nullptr) : Json(name);
  }
  figures["estimator"] = asked.estimator->name();
  figures["batch_size"] = batch_size;
  figures["gpu"] = asked.estimated_job.gpu->name;
  figures["capacity_bytes"] = asked.estimated_job.gpu->capacity().count();
  figures["gpus"] = estimate.gpus;
  figures["warnings"] = warnings_of(*asked.estimated_job.graph);
  return figures;
}

/// `kept` keeps `asked` and `estimate`.
std::unique_ptr<gpumem_answer> answer_of(const std::shared_ptr<const void>& kept, const AskedJob& asked,
                                         const MemoryEstimate& estimate, std::int64_t batch_size, double seconds) {
  const auto evaluated = [kept, &asked, &estimate, batch_size, seconds] {
    cli::EstimatedJob job = asked.estimated_job;
    job.job.batch_size = batch_size;
    job.answers.push_back({asked.estimator->name(), estimate, seconds});
    return job;
  };
  auto answer = std::make_unique<gpumem_answer>();
  answer
      ->with("figures",
             [kept, &asked, &estimate, batch_size] { return packed(figures_of(asked, batch_size, estimate)); })
      .with("json", [evaluated] { return printed(cli::to_json(evaluated())); })
      .with("text", [evaluated] { return cli::to_table(evaluated(), cli::Terminal()); });
  return answer;
}

std::string text_of(const Fit& fit, const cli::EstimatedJob& estimated_job) {
  if (!fit.estimate) return core::to_string(cli::does_not_fit(fit, estimated_job));
  std::string lines = cli::to_text(fit, *estimated_job.gpu);
  lines.pop_back();
  return lines;
}

Json figures_of(const Fit& fit) {
  Json figures;
  figures["batch_size"] = fit.batch_size;
  figures["safe"] = fit.safe.size;
  figures["without_flushes"] = fit.without_flushes.size;
  figures["at_least"] = fit.at_least;
  figures["estimates_made"] = fit.estimates;
  figures["sequence_length"] = fit.grows == Grows::sequence ? Json(fit.size) : Json(nullptr);
  figures["find"] = model::name_of(estimate::kGrows, fit.grows);
  figures["size"] = fit.size;
  figures["image"] = Json(nullptr);
  if (fit.grows == Grows::image && fit.size > 0) {
    const auto [width, height] = estimate::image_with_side(fit.shape, fit.size);
    figures["image"] = {width, height};
  }
  figures["model_ends"] = fit.model_ends ? Json(fit.model_ends->message) : Json(nullptr);
  return figures;
}

/// Takes from the words what is about the plan, not about the job. One layout where the words do not say how many.
Result<search::Question> search_question(Words& words) {
  cli::PlanOptions options;
  options.show = 1;
  for (const auto& [name, word] : words.take_if(&cli::is_plan_word)) {
    if (const core::Status taken = cli::take_plan_word(name, word, options); !taken) return taken.error();
  }
  if (!options.explain.empty()) return refused("this question explains no layout: leave `explain` out");
  const auto allocator = words.options().find("alloc_conf");
  if (allocator != words.options().end()) options.request.alloc_conf = allocator->second;
  return cli::question_of(options);
}

struct Planned {
  search::LayoutPlan plan;
  search::Question question;
};

}  // namespace

Answered answer_estimate(Question& question) {
  const Result<JobRequest> request = question.words.job();
  if (!request) return request.error();
  const auto done = timed<MemoryEstimate>(question, *request, [](const AskedJob& asked, analysis::Analysis& analysis) {
    return asked.estimator->estimate(analysis, *asked.estimated_job.gpu);
  });
  if (!done) return done.error();
  const auto& kept = *done;
  return answer_of(kept, kept->asked, kept->answer, request->training.batch_size, kept->seconds);
}

/// What the word `find` names, else the longest sequence where the job has a batch size, else the largest batch.
Answered answer_fit(Question& question) {
  const std::optional<std::string> find = question.words.take("find");
  Result<JobRequest> request = question.words.job();
  if (!request) return request.error();
  const bool has_batch = request->training.batch_size > 0;
  const Result<Grows> grows = estimate::what_grows(find, has_batch);
  if (!grows) return grows.error();
  if (const core::Status left = session::leave_to_find(*grows, has_batch, *request); !left) return left.error();
  const auto done = timed<Fit>(question, *request, [&](const AskedJob& asked, analysis::Analysis& analysis) {
    const GpuProfile& gpu = *asked.estimated_job.gpu;
    return estimate::find_largest(analysis, *grows, gpu, *asked.estimator);
  });
  if (!done) return done.error();
  const auto& kept = *done;
  const Fit& fit = kept->answer;
  auto answer = std::make_unique<gpumem_answer>();
  const auto add = [&](const char* part, const std::optional<MemoryEstimate>& estimate, std::int64_t batch_size) {
    if (estimate) answer->parts.emplace(part, answer_of(kept, kept->asked, *estimate, batch_size, kept->seconds));
  };
  add("estimate", fit.estimate, fit.batch_size);
  add("one_more", fit.next, fit.batch_size + (*grows == Grows::batch ? 1 : 0));
  answer->with("figures", [kept] { return packed(figures_of(kept->answer)); })
      .with("json",
            [kept] {
              const auto& [asked, found, seconds] = *kept;
              return printed(cli::to_json(asked.estimated_job, asked.estimator->name(), found, seconds));
            })
      .with("text", [kept] { return text_of(kept->answer, kept->asked.estimated_job); });
  return answer;
}

Answered answer_advise(Question& question) {
  const Result<JobRequest> request = question.words.job();
  if (!request) return request.error();
  Result<AskedJob> asked = asked_of(question, *request);
  if (!asked) return asked.error();
  Result<cli::FoundAdvice> found = cli::advice_of(std::move(asked->estimated_job), *asked->estimator);
  if (!found) return found.error();
  // The estimator, whose name it is, lives as long.
  struct Kept {
    std::shared_ptr<const Estimator> estimator;
    cli::FoundAdvice found;
  };
  const auto kept = std::make_shared<const Kept>(Kept{std::move(asked->estimator), *std::move(found)});
  auto answer = std::make_unique<gpumem_answer>();
  answer->with("json", [kept] { return printed(cli::to_json(kept->found)); }).with("text", [kept] {
    return cli::to_text(kept->found, cli::Terminal());
  });
  return answer;
}

Answered answer_plan(Question& question) {
  const Result<search::Question> about = search_question(question.words);
  if (!about) return about.error();
  Result<JobRequest> request = question.words.job();
  if (!request) return request.error();
  job::take_any_batch(*request);
  const auto done =
      timed<Planned>(question, *request, [&](const AskedJob& asked, analysis::Analysis&) -> Result<Planned> {
        auto plan = search::find_layouts(asked.estimated_job.job, *asked.estimated_job.gpu, *about);
        if (!plan) return plan.error();
        return Planned{*std::move(plan), *about};
      });
  if (!done) return done.error();
  const auto& kept = *done;
  auto answer = std::make_unique<gpumem_answer>();
  answer
      ->with("json",
             [kept] {
               const auto& [plan, asked] = kept->answer;
               return printed(cli::to_json(kept->asked.estimated_job, plan, asked));
             })
      .with("text", [kept] {
        const auto& [plan, asked] = kept->answer;
        const cli::EstimatedJob& job = kept->asked.estimated_job;
        if (plan.layouts.empty()) return core::to_string(cli::no_layout(plan, job));
        return cli::to_text(plan, *job.gpu, cli::PlanShown{asked.global_batch, 1, {}});
      });
  return answer;
}

Answered answer_job(Question& question) {
  const Result<JobRequest> request = question.words.job();
  if (!request) return request.error();
  Json options;
  for (const job::JobOption& option : job::job_options()) {
    options[std::string(option.name)] = job_json::to_json(option.place.get(*request));
  }
  auto answer = std::make_unique<gpumem_answer>();
  answer->with("json", [options] { return printed(options); });
  return answer;
}

Answered answer_summary(Question& question) {
  if (const core::Status none = question.words.refuse_rest(); !none) return none.error();
  if (question.summary == nullptr) return refused("summary is a null pointer");
  const ModelGraph& graph = *question.summary->graph;
  const auto text_or_none = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json figures;
  figures["file"] = text_or_none(graph.file());
  figures["format"] = graph.format();
  figures["layers"] = graph.layers().size();
  figures["unknown_layers"] = graph.unknown_layers();
  figures["parameters"] = graph.parameters();
  figures["trainable_parameters"] = graph.trainable_parameters();
  figures["printed_batch_size"] = graph.printed_batch_size() ? Json(*graph.printed_batch_size()) : Json(nullptr);
  figures["warnings"] = warnings_of(graph);
  const std::string name = graph.file().empty() ? "" : core::quoted(graph.file()) + " ";
  std::string text = name + graph.format() + ", " +
                     core::with_separators(static_cast<std::int64_t>(graph.layers().size())) + " layers, " +
                     core::with_separators(graph.parameters()) + " parameters";
  auto answer = std::make_unique<gpumem_answer>();
  answer->with("json", [figures] { return printed(figures); }).with("text", [text = std::move(text)] { return text; });
  return answer;
}

}  // namespace gpumem::capi
