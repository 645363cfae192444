#include "told_jobs.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "gpumem/architectures/denoiser.hpp"
#include "gpumem/posttrain/launch.hpp"
#include "gpumem/session/session.hpp"
#include "gpumem/summary/model_folder.hpp"
#include "report.hpp"
#include "told_models.hpp"
#include "trainer_files.hpp"

namespace gpumem::cli {

namespace {

namespace told_jobs_detail {

using estimate::Assumption;
using trainer_files::LaunchedJob;
using trainer_files::LaunchedProgram;

std::vector<Assumption> notes_of_file(const std::vector<std::string>& texts) {
  std::vector<Assumption> notes;
  notes.reserve(texts.size());
  for (const std::string& text : texts) notes.push_back({"trainer", "trainer's file: " + text});
  return notes;
}

bool is_one_of(const LeftOut& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// "--batch 4", as one gives it.
std::string words_of(const job::JobOption& option, const JobRequest& request) {
  const auto value = option.place.get(request);
  const std::string text = value ? job::to_text(*value) : std::string();
  if (text == "true") return "--" + std::string(option.flag);
  if (text == "false") return "--no-" + std::string(option.flag);
  return "--" + std::string(option.flag) + " " + text;
}

/// Lays `told` under the request. Returns the options that it sets, as words.
Result<std::string> lay_under(const JobRequest& told, const LeftOut& left_out, JobRequest& request) {
  std::string words;
  for (const job::JobOption& option : job::job_options()) {
    const bool says = job::is_given(option, told) || !job::is_default(option, told);
    if (!says || job::is_given(option, request) || is_one_of(left_out, option.name)) continue;
    const auto value = option.place.get(told);
    if (!value) continue;
    if (const core::Status set = job::set_option(option, request, *value); !set) return set.error();
    words += (words.empty() ? "" : ", ") + words_of(option, request);
  }
  return words;
}

/// What the command and its files say, as a request of its own. `given`: what need not be said again.
Result<JobRequest> request_of(const LaunchedJob& launched, const JobRequest& given, std::vector<std::string>& texts) {
  JobRequest told;
  auto missing = trainer_files::apply(launched.job, told);
  if (!missing) return missing.error();
  texts.insert(texts.end(), missing->begin(), missing->end());
  // A layout that was given is not filled up: its sizes are taken before the rest is spread.
  const model::Layout& layout = given.training.layout;
  for (const std::string_view name : {"tensor_parallel", "pipeline_parallel", "context_parallel"}) {
    const job::JobOption& option = *job::find_option(name);
    const auto value = option.place.get(given);
    if (!job::is_given(option, given) || !value) continue;
    if (const core::Status set = job::set_option(option, told, *value); !set) return set.error();
  }
  if (layout.data_parallel > 1) return told;
  if (const core::Status spread = trainer_files::spread(launched.job, launched.gpus, told); !spread) {
    return spread.error();
  }
  return told;
}

/// The job as DeepSpeed may run it at most sharded, where its file is not here. Nothing: it is no such job.
std::optional<JobRequest> sharded_otherwise(const LaunchedJob& launched, const JobRequest& told) {
  if (launched.missing_deepspeed.empty()) return std::nullopt;
  JobRequest other = told;
  const auto set = [&](std::string_view name, const char* value) {
    return static_cast<bool>(job::set_option(*job::find_option(name), other, std::string(value)));
  };
  if (!set("sharding", "zero-3")) return std::nullopt;
  const model::Precision precision = told.training.precision;
  if (precision == model::Precision::fp32) return other;
  const bool half = precision == model::Precision::amp_fp16 || precision == model::Precision::fp16_mixed;
  if (!set("precision", half ? "fp16-mixed" : "bf16-mixed")) return std::nullopt;
  return other;
}

/// The model that the command names: a path from here or from one of its files, or a name on the hub.
std::string model_of(const LaunchedJob& launched, bool strict, std::vector<std::string>& texts) {
  const std::string beside = launched.files.empty() ? std::string() : launched.files.front();
  auto found = told_model(launched.job, beside, strict, texts);
  return found ? *std::move(found) : launched.job.model;
}

Error unknown_job(const LaunchedJob& launched, std::string_view what) {
  const std::string script = core::shortened(launched.script, 80);
  if (launched.known) {
    return {ErrorCode::missing_information, script + " does not say " + std::string(what), {}};
  }
  return {ErrorCode::missing_information,
          "what " + script + " trains is not known; record one step of it (gpumem.record), or say " +
              std::string(what) + " and how it trains in options",
          {}};
}

/// No published pipeline has larger parts besides its denoiser than FLUX.2-dev, whose text encoder has 24 billion
/// parameters in two bytes.
constexpr std::int64_t kLargestParts = std::int64_t{45} << 30;

/// A trainer's other parts count where the model is a diffusers folder, or of a family whose published parts are known.
/// Of others the range reaches up by the largest that are published.
void leave_out_parts(Session& session, const trainer_files::TrainerJob& told, const JobRequest& given,
                     JobRequest& request, std::vector<std::string>& texts) {
  TrainingJob& job = request.training;
  const bool asked = job::is_given(*job::find_option("parts"), given);
  if (!asked) job.trained_parts = told.trained_parts;
  if (job.parts.empty() || asked) return;
  if (std::filesystem::exists(std::filesystem::path(summary::path_of_model(request.summary)) / "model_index.json"))
    return;
  if (request.summary != "-") {
    const auto model = session.read(request.summary, request.lenient);
    if (!model || architectures::tells_parts((*model)->graph()->config())) return;
  }
  const bool held = job::is_given(*job::find_option("resident"), given);
  texts.push_back("the weights of its other parts (" + core::shortened(job.parts, 80) +
                  "), which lie on the GPU too, " +
                  (held ? "are taken to be what --resident says"
                        : "are not counted, and the upper figure is 45 GiB more, the largest that are published: "
                          "--resident counts them, or --parts of a diffusers folder"));
  if (!held) job.uncounted = kLargestParts;
  job.parts.clear();
  const bool freezes = job.has_adapters() || !job.freeze.empty() || !job.train.empty();
  if (!freezes && !job::is_given(*job::find_option("base_dtype"), given)) job.base_dtype = model::BaseType::precision;
}

/// The notes of a command: what it set, then what it leaves open.
std::vector<Assumption> notes_of_command(const LaunchedJob& launched, const std::string& words,
                                         const std::vector<std::string>& texts) {
  std::string source = "from the command";
  for (const std::string& file : launched.files) source.append(" and ").append(core::shortened(file, 80));
  source += ": ";
  std::vector<Assumption> notes;
  if (!words.empty()) notes.push_back({"command", source + words});
  for (const std::string& text : launched.notes) notes.push_back({"command", "from the command: " + text});
  for (const std::string& text : texts) notes.push_back({"command", source + text});
  return notes;
}

Error other_program(const LaunchedJob& launched) {
  const bool server = launched.program == LaunchedProgram::server;
  return {ErrorCode::invalid_argument,
          std::string("the command starts ") + (server ? "an inference server" : "a post-training") + "; ask `gpumem " +
              (server ? "serve" : "posttrain") + "` about it",
          {}};
}

/// The range of either job; runs of a job that may be otherwise were not measured.
void widen(MemoryEstimate& estimate, const MemoryEstimate& other, const EstimatedJob& estimated_job) {
  estimate.ranged = true;
  estimate.lower = std::min(estimate.lower, other.lower);
  estimate.upper = std::max(estimate.upper, other.upper);
  estimate.upper_uncut = std::max(estimate.upper_uncut, other.upper_uncut);
  estimate.most_needed = std::max(estimate.most_needed, other.most_needed);
  estimate.fits = estimate.fits && other.fits;
  estimate.upper_coverage.reset();
  estimate.verdict = estimate::verdict_of(estimate, estimated_job.gpu->capacity());
}

int serve_it(const LaunchedJob& launched, const JobRequest& request, Question question, bool json) {
  if (const core::Status asks = asks_of_a_server(request); !asks) return report_error(asks.error());
  ServeOptions options;
  options.config = request.summary;
  options.gpu = request.gpu;
  options.command = launched.words;
  options.fit = question == Question::fit;
  options.advise = question == Question::advise;
  options.json = json;
  return run_serve(options);
}

int post_train_it(const LaunchedJob& launched, const JobRequest& request, Question question, bool json) {
  PostTrainingCommand command;
  command.request.training = request;
  command.command = launched.words;
  command.fit = question == Question::fit;
  command.advise = question == Question::advise;
  command.json = json;
  return run_post_training(command);
}

/// The model with the head that the file asks for, where it is a config: its body alone for embeddings, and of one that
/// speaks what the program loads. Printed models and recordings have the head that they have.
core::Status take_head(Session& session, const trainer_files::TrainerJob& job, JobRequest& request,
                       std::vector<std::string>& texts) {
  if (!summary::named_model(request.summary).head.empty()) return core::Done{};
  if (job.holds_speech) {
    std::string made = summary::named_with_speech(request.summary, job.head, *job.holds_speech);
    if (made != request.summary) {
      request.summary = std::move(made);
      const auto whole = session.read(request.summary, request.lenient);
      return whole ? core::Status(core::Done{}) : core::Status(whole.error());
    }
    if (!job.speech_key.empty()) texts.push_back(posttrain::no_speech(job.speech_key));
  }
  if (job.head.empty()) return core::Done{};
  const bool is_text = request.summary == "-" || request.summary.starts_with('{');
  const auto given =
      is_text ? Result<std::shared_ptr<const session::Model>>(Error{}) : session.read(request.summary, request.lenient);
  if (given && (*given)->graph()->format() == "config_json") {
    request.summary += ":" + job.head;
    const auto headed = session.read(request.summary, request.lenient);
    return headed ? core::Status(core::Done{}) : core::Status(headed.error());
  }
  texts.push_back("the model's class ends in " + job.head + "; the estimate is of the class that was given");
  return core::Done{};
}

/// Megatron's own form of the model, where the job runs it and it is known; standard input is read once, and so not
/// here.
void take_megatron_form(const trainer_files::TrainerJob& job, JobRequest& request, std::vector<std::string>& texts) {
  if (job.megatron_fields.empty() || request.summary == "-" || request.summary.starts_with('{')) return;
  const std::string path = summary::path_of_model(request.summary);
  const auto file = core::read_regular_file(path, summary::kLargestConfig);
  const auto published = file ? std::nullopt : summary::published_model(summary::named_model(request.summary).name);
  const auto arguments = posttrain::megatron_form(file        ? *file
                                                  : published ? published->config
                                                              : std::string_view(),
                                                  job.megatron_fields);
  if (!arguments) return;
  if (published) texts.push_back("published sizes of " + std::string(published->name));
  request.summary = *arguments;
}

/// Blocks that the file trains, and parts that it leaves as they are, by their names in this model; an image that it
/// speaks of for models that see is none of the others'. What the user asks for stays (`given`). What is wrong with the
/// model the estimate says; standard input is read once, and so not here.
core::Status fit_to_model(Session& session, const trainer_files::TrainerJob& job, const JobRequest& given,
                          JobRequest& request) {
  const auto is_asked = [&](std::string_view option) { return job::is_given(*job::find_option(option), given); };
  const bool pictures = job.find("image") != nullptr && !is_asked("image");
  const bool blocks = job.trained_blocks.count != 0 && !is_asked("train");
  if ((job.frozen_parts.empty() && !pictures && !blocks) || request.summary == "-") return core::Done{};
  const auto model = session.read(request.summary, request.lenient);
  if (!model) return core::Done{};
  const ModelGraph& graph = *(*model)->graph();
  if (pictures && graph.config().empty()) request.training.image = {};
  if (blocks) {
    const auto patterns = trainer_files::trained_patterns(job.trained_blocks, graph);
    if (!patterns) return patterns.error();
    if (const std::string rest = trainer_files::frozen_patterns(job.trained_blocks, graph); !rest.empty()) {
      if (core::Status set = job::set_option_text(*job::find_option("freeze"), request, rest); !set) return set.error();
    }
    return job::set_option_text(*job::find_option("train"), request, *patterns);
  }
  const std::string frozen = posttrain::parts_of(graph, job.frozen_parts);
  const job::JobOption& freeze = *job::find_option("freeze");
  if (frozen.empty() || job::is_given(freeze, request)) return core::Done{};
  if (!request.training.has_adapters()) return job::set_option_text(freeze, request, frozen);
  if (is_asked("lora_targets")) return core::Done{};
  std::string targets = job.find("lora_targets") == nullptr ? "all-linear" : job.find("lora_targets")->value;
  if (!targets.starts_with("all-linear") || targets.find("not:") != std::string::npos) return core::Done{};
  trainer_files::each_name(frozen, [&](std::string_view name) { targets.append("+not:").append(name); });
  return job::set_option_text(*job::find_option("lora_targets"), request, targets);
}

}  // namespace told_jobs_detail

}  // namespace

void assume(const std::vector<estimate::Assumption>& notes, MemoryEstimate& estimate) {
  estimate.assumed.insert(estimate.assumed.end(), notes.begin(), notes.end());
}

void assume(const std::vector<estimate::Assumption>& notes, EstimatedJob& estimated_job) {
  for (Answer& answer : estimated_job.answers) {
    if (answer.estimate) assume(notes, *answer.estimate);
  }
}

Error assuming(const std::vector<estimate::Assumption>& notes, Error error) {
  for (const estimate::Assumption& note : notes) error.message += "; " + note.text;
  return error;
}

std::string assumed_lines(const std::vector<estimate::Assumption>& notes) {
  std::string text;
  for (const estimate::Assumption& note : notes) {
    text += "assumed: " + job::spelled(note.text, job::kCommandLine) + "\n";
  }
  return text;
}

Result<ToldJob> told_by_trainer_file(Session& session, const EstimateOptions& options) {
  namespace detail = told_jobs_detail;
  ToldJob told{options.request, {}};
  if (options.trainer.empty()) {
    if (options.adapter.empty()) return told;
    const auto adapter = trainer_files::read_adapter_job(options.adapter);
    if (!adapter) return adapter.error();
    auto missing = trainer_files::apply(*adapter, told.request);
    if (!missing) return std::move(missing).error().in_file(options.adapter);
    told.notes = detail::notes_of_file(*missing);
    return told;
  }
  const auto job = trainer_files::read_trainer_job(options.trainer, options.adapter);
  if (!job) return job.error();
  auto missing = trainer_files::apply(*job, told.request);
  if (!missing) return std::move(missing).error().in_file(options.trainer);
  if (told.request.training.batch_size == 0) {
    return Error{
        ErrorCode::missing_information, "it has no batch size; give it with --batch", {options.trainer, 0, {}}};
  }
  if (told.request.summary.empty()) {
    auto model = told_model(*job, options.trainer, told.request.training.strict, *missing);
    if (!model) return model.error();
    told.request.summary = *std::move(model);
  }
  detail::leave_out_parts(session, *job, options.request, told.request, *missing);
  if (const core::Status taken = detail::take_head(session, *job, told.request, *missing); !taken) return taken.error();
  detail::take_megatron_form(*job, told.request, *missing);
  told.notes = detail::notes_of_file(*missing);
  if (const core::Status fits = detail::fit_to_model(session, *job, options.request, told.request); !fits) {
    return core::Error(fits.error()).in_file(options.trainer);
  }
  return told;
}

Result<Launched> launched_by(const std::vector<std::string>& command) {
  if (command.empty()) return Launched();
  auto launched = trainer_files::read_launch_command(command);
  if (!launched) return launched.error();
  return Launched(*std::move(launched));
}

Result<ToldJob> told_by_command(Session& session, const Launched& launched, const JobRequest& request,
                                const LeftOut& left_out) {
  namespace detail = told_jobs_detail;
  if (!launched) return ToldJob{request, {}};
  if (launched->program != trainer_files::LaunchedProgram::training) return detail::other_program(*launched);
  std::vector<std::string> texts;
  const Result<JobRequest> told = detail::request_of(*launched, request, texts);
  if (!told) return told.error();
  ToldJob made{request, {}, launched->gpus};
  const TrainingJob& job = told->training;
  made.global_batch = core::bounded_product({job.batch_size, job.gradient_accumulation, job.layout.data_parallel});
  const Result<std::string> words = detail::lay_under(*told, left_out, made.request);
  if (!words) return words.error();
  if (made.request.summary.empty()) {
    made.request.summary = detail::model_of(*launched, made.request.training.strict, texts);
  }
  if (made.request.summary.empty()) return detail::unknown_job(*launched, "its model (a config.json or a summary)");
  detail::leave_out_parts(session, launched->job, request, made.request, texts);
  if (const core::Status taken = detail::take_head(session, launched->job, made.request, texts); !taken)
    return taken.error();
  detail::take_megatron_form(launched->job, made.request, texts);
  if (const core::Status fits = detail::fit_to_model(session, launched->job, request, made.request); !fits)
    return fits.error();
  const bool recorded = made.request.summary.ends_with(".gz");  // a recording has a batch size
  if (!recorded && made.request.training.batch_size == 0 && !detail::is_one_of(left_out, "batch_size"))
    return detail::unknown_job(*launched, "its batch size (--batch)");
  made.notes = detail::notes_of_command(*launched, *words, texts);
  if (!job::is_given(*job::find_option("sharding"), request)) {
    made.otherwise = detail::sharded_otherwise(*launched, made.request);
  }
  return made;
}

Result<ToldJob> told_without_estimate(Session& session, const Launched& launched, const JobRequest& request) {
  Result<ToldJob> told = told_by_command(session, launched, request);
  if (told || !launched || told.error().code != ErrorCode::missing_information) return told;
  return ToldJob{request, told_jobs_detail::notes_of_command(*launched, {}, {}), launched->gpus};
}

Result<ToldJob> told_for_fit(Session& session, const Launched& launched, FitOptions& options) {
  const Result<Grows> grows = estimate::what_grows(options.find, options.batch.has_value());
  if (!grows) return grows.error();
  LeftOut left_out = {option_of(*grows)};
  if (options.batch) left_out.emplace_back("batch_size");
  Result<ToldJob> told = told_by_command(session, launched, options.request, left_out);
  if (told) options.request = told->request;
  return told;
}

Result<ToldJob> told_for_plan(Session& session, const Launched& launched, PlanOptions& options) {
  Result<ToldJob> told =
      told_by_command(session, launched, options.request, {std::begin(kChosenByPlan), std::end(kChosenByPlan)});
  if (!told) return told;
  options.request = told->request;
  if (options.gpus.empty() && told->gpus > 1) options.gpus = {told->gpus};
  if (!launched) return told;
  if (options.global_batch == 0) options.global_batch = told->global_batch;  // not given
  if (options.global_batch == 0) {
    return Error{ErrorCode::missing_information, "the command does not say a batch size; give --global-batch", {}};
  }
  return told;
}

Result<EstimatedJob> estimate_told_job(Session& session, const ToldJob& told) {
  Result<EstimatedJob> estimated_job = estimate_job(session, told.request);
  if (!estimated_job) return estimated_job;
  assume(told.notes, *estimated_job);
  if (!told.otherwise) return estimated_job;
  const Result<EstimatedJob> other = estimate_job(session, *told.otherwise);
  if (!other) return estimated_job;  // what is not modelled says nothing
  for (std::size_t index = 0; index < other->answers.size(); ++index) {
    Answer& answer = estimated_job->answers[index];
    if (answer.estimate && other->answers[index].estimate) {
      told_jobs_detail::widen(*answer.estimate, *other->answers[index].estimate, *estimated_job);
      assume({{"command", "without DeepSpeed's file, the range is from ZeRO-3 to no sharding"}}, *answer.estimate);
    }
  }
  return estimated_job;
}

core::Status asks_of_a_server(const JobRequest& request) {
  for (const job::JobOption& option : job::job_options()) {
    if (option.name == "gpu" || !job::is_given(option, request)) continue;
    return Error{ErrorCode::invalid_argument,
                 "--" + std::string(option.flag) +
                     " is a training's, and the command starts an inference server: leave it out, or give the server's "
                     "own flags behind --",
                 {}};
  }
  return core::Done{};
}

std::optional<int> answered_elsewhere(const Launched& launched, const JobRequest& request, Question question,
                                      bool json) {
  namespace detail = told_jobs_detail;
  if (!launched || launched->program == trainer_files::LaunchedProgram::training) return std::nullopt;
  const bool server = launched->program == trainer_files::LaunchedProgram::server;
  if (question == Question::plan || question == Question::other) {
    return report_error(detail::other_program(*launched));
  }
  return server ? detail::serve_it(*launched, request, question, json)
                : detail::post_train_it(*launched, request, question, json);
}

}  // namespace gpumem::cli
