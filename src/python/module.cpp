// The extension module gpumem._gpumem: what the package gpumem (its Python files are in this folder too) needs from the
// library.
// Input: summaries, jobs in the user's terms.
// Output: plain Python values, and one exception for every error.
// It binds the C++ API and not the C one, because the C structs have no bins, no places of errors and no text.
//
// The GIL is released while the library works; all that is shared is immutable or itself safe to use from many threads.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <utility>

#include "call.hpp"
#include "gpumem/all.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/job/job_options.hpp"
#include "options.hpp"
#include "plan_report.hpp"
#include "post_training.hpp"
#include "report.hpp"
#include "reports.hpp"
#include "serving.hpp"

namespace gpumem::python {

namespace {

// --- Summaries --------------------------------------------------------------------------------------------------

std::unique_ptr<Session>& held_session() {
  static auto session = std::make_unique<Session>();
  return session;
}

/// What all calls of the process ask.
Session& process_session() { return *held_session(); }

/// In a child process. A thread of the parent, which the child does not have, may have been within the session: it is
/// left alone, and the child gets one of its own.
void forget() {
  Running::forget();
  (void)held_session().release();
  held_session() = std::make_unique<Session>();
}

/// A model, with analyses of its own: they go with it.
struct Summary {
  explicit Summary(ModelGraph read)
      : graph(std::make_shared<const ModelGraph>(std::move(read))), model(std::make_shared<const Model>(graph)) {}

  std::shared_ptr<const ModelGraph> graph;
  std::shared_ptr<const Model> model;
};

Result<std::shared_ptr<Summary>> shared(Result<ModelGraph> graph) {
  if (!graph) return graph.error();
  return std::make_shared<Summary>(*std::move(graph));
}

std::shared_ptr<Summary> read_file(const std::string& path, bool lenient, std::int64_t largest,
                                   std::int64_t deadline_ms) {
  const Running running;
  return without_gil(deadline_ms, [&]() -> Result<std::shared_ptr<Summary>> {
    const Result<std::string> content = core::read_regular_file(path, static_cast<std::size_t>(largest));
    if (!content) return content.error();
    return shared(summary::read(*content, {&ops::vocabulary(), path, lenient}));
  });
}

std::shared_ptr<Summary> read_text(const py::bytes& bytes, bool lenient, std::int64_t deadline_ms) {
  const Running running;
  const auto content = static_cast<std::string_view>(bytes);  // the caller holds them while this runs
  return without_gil(deadline_ms, [&] { return shared(summary::read(content, {&ops::vocabulary(), {}, lenient})); });
}

py::tuple warnings_of(const ModelGraph& graph) {
  std::vector<std::string> lines;
  for (const model::Warning& warning : graph.warnings()) lines.push_back(cli::to_text(warning));
  return texts(lines);
}

std::string shown(const Summary& summary) {
  const ModelGraph& graph = *summary.graph;
  return "<gpumem.Summary " + (graph.file().empty() ? "" : core::quoted(graph.file()) + " ") + graph.format() + ", " +
         core::with_separators(static_cast<std::int64_t>(graph.layers().size())) + " layers, " +
         core::with_separators(graph.parameters()) + " parameters>";
}

// --- What the command line would print --------------------------------------------------------------------------

/// A job on its GPU, with the estimator that it asks for; its reports may outlive the summary.
struct Asked {
  cli::EstimatedJob estimated_job;
  std::shared_ptr<const Estimator> estimator;

  /// With another batch size and this answer.
  [[nodiscard]] cli::EstimatedJob answered(std::int64_t batch_size, const MemoryEstimate& estimate,
                                           double seconds) const {
    cli::EstimatedJob copy = estimated_job;
    copy.job.batch_size = batch_size;
    copy.answers.push_back({estimator->name(), estimate, seconds});
    return copy;
  }
};

Result<std::shared_ptr<const Asked>> asked_of(const Summary& summary, const JobRequest& request) {
  auto estimator = process_session().estimator(request);
  if (!estimator) return estimator.error();
  auto estimated_job = cli::read_job(process_session(), request, summary.model);
  if (!estimated_job) return estimated_job.error();
  return std::make_shared<const Asked>(Asked{*std::move(estimated_job), *std::move(estimator)});
}

// --- Answers ----------------------------------------------------------------------------------------------------

py::object bytes_or_none(const std::optional<Bytes>& bytes) {
  return bytes ? py::object(py::int_(bytes->count())) : py::none();
}

py::object breakdown_of(const MemoryEstimate& estimate) {
  if (estimate.breakdown.total().value() == 0) return py::none();
  py::dict parts;
  for (const auto& part : estimate.breakdown.parts()) {
    if (estimate.tells(part.name)) parts[text(part.name)] = part.bytes.count();
  }
  return parts;
}

py::object peak_of(const MemoryEstimate& estimate) {
  if (!estimate.peak_layer) return py::none();
  const estimate::PeakLayer& peak = *estimate.peak_layer;
  return py::make_tuple(text_or_none(peak.path), text_or_none(peak.class_name), text(peak.phase), peak.step);
}

py::tuple bins_of(const MemoryEstimate& estimate) {
  py::tuple bins(estimate.bins.size());
  for (std::size_t index = 0; index < estimate.bins.size(); ++index) {
    const estimate::Bin& bin = estimate.bins[index];
    bins[index] = py::make_tuple(bin.lower.count(), bin.upper.count(), bin.probability);
  }
  return bins;
}

py::tuple assumed_of(const MemoryEstimate& estimate) {
  py::tuple assumed(estimate.assumed.size());
  for (std::size_t index = 0; index < estimate.assumed.size(); ++index) {
    const estimate::Assumption& assumption = estimate.assumed[index];
    assumed[index] = py::make_tuple(text(assumption.about), text(assumption.text));
  }
  return assumed;
}

/// The fields of gpumem.Estimate.
py::dict fields_of(const std::shared_ptr<const Asked>& asked, std::int64_t batch_size, const MemoryEstimate& estimate,
                   double seconds) {
  py::dict fields;
  fields["expected_bytes"] = estimate.expected.count();
  fields["lower_bytes"] = estimate.lower.count();
  fields["upper_bytes"] = estimate.upper.count();
  fields["upper_coverage"] = estimate.upper_coverage;
  fields["allocated_bytes"] = bytes_or_none(estimate.allocated);
  fields["reserved_bytes"] = bytes_or_none(estimate.reserved);
  fields["device_bytes"] = bytes_or_none(estimate.device);
  fields["gpus"] = estimate.gpus;
  fields["capacity_bytes"] = asked->estimated_job.gpu->capacity().count();
  fields["fits"] = estimate.fits;
  fields["verdict"] = text(model::name_of(estimate::kVerdicts, estimate.verdict));
  fields["most_needed_bytes"] = estimate.most_needed.count();
  fields["retries"] = estimate.retries;
  fields["breakdown"] = breakdown_of(estimate);
  fields["peak"] = peak_of(estimate);
  fields["bins"] = bins_of(estimate);
  fields["assumed"] = assumed_of(estimate);
  fields["out_of_domain"] = texts(estimate.out_of_domain);
  fields["warnings"] = warnings_of(*asked->estimated_job.graph);
  fields["layers"] = estimate.coverage.layers_total;
  fields["unknown_layers"] = estimate.coverage.layers_unknown;
  fields["batch_size"] = batch_size;
  fields["estimator"] = text(asked->estimator->name());
  fields["model"] = text_or_none(estimate.provenance.weights);
  fields["gpu"] = text(asked->estimated_job.gpu->name);
  const auto evaluated = [=] { return asked->answered(batch_size, estimate, seconds); };
  fields["report"] = Report{[=] { return dumped(cli::to_json(evaluated())); },
                            [=] { return cli::to_table(evaluated(), cli::Terminal()); }};
  return fields;
}

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

template <typename Answer>
struct Timed {
  std::shared_ptr<const Asked> asked;
  Answer answer;
  double seconds;
};

/// Asks `work` of a job, without the GIL.
template <typename Answer, typename Work>
Timed<Answer> timed(const Summary& summary, const JobRequest& request, std::int64_t deadline_ms, const Work& work) {
  return without_gil(deadline_ms, [&]() -> Result<Timed<Answer>> {
    Result<std::shared_ptr<const Asked>> asked = asked_of(summary, request);
    if (!asked) return asked.error();
    const Stopwatch stopwatch;
    const auto analysis = (*asked)->estimated_job.analysis();
    Result<Answer> answer = work(**asked, *analysis);
    if (!answer) return answer.error();
    return Timed<Answer>{*std::move(asked), *std::move(answer), stopwatch.seconds()};
  });
}

py::dict estimate_job(const Summary& summary, const JobRequest& request, std::int64_t deadline_ms) {
  const Running running;
  const auto done =
      timed<MemoryEstimate>(summary, request, deadline_ms, [](const Asked& asked, analysis::Analysis& analysis) {
        return asked.estimator->estimate(analysis, *asked.estimated_job.gpu);
      });
  return fields_of(done.asked, request.training.batch_size, done.answer, done.seconds);
}

std::string text_of(const Fit& fit, const Asked& asked) {
  if (!fit.estimate) return core::to_string(cli::does_not_fit(fit, asked.estimated_job));
  const std::int64_t step = fit.of_sequence ? parallel::tokens_multiple(asked.estimated_job.job.layout) : 1;
  std::string lines = cli::to_text(fit, *asked.estimated_job.gpu, step);
  lines.pop_back();
  return lines;
}

/// The longest sequence where the request has a batch size, else the largest batch.
py::dict fit_job(const Summary& summary, JobRequest request, std::int64_t deadline_ms) {
  const Running running;
  const bool of_sequence = request.training.batch_size > 0;
  if (!of_sequence) request.training.batch_size = 1;
  const auto done =
      timed<Fit>(summary, request, deadline_ms, [of_sequence](const Asked& asked, analysis::Analysis& analysis) {
        return of_sequence ? longest_sequence(analysis, *asked.estimated_job.gpu, *asked.estimator)
                           : largest_batch(analysis, *asked.estimated_job.gpu, *asked.estimator);
      });
  const Fit& fit = done.answer;
  const auto fields = [&](const std::optional<MemoryEstimate>& estimate, std::int64_t batch_size) -> py::object {
    if (!estimate) return py::none();
    return fields_of(done.asked, batch_size, *estimate, done.seconds);
  };
  py::dict answer;
  answer["batch_size"] = fit.batch_size;
  answer["safe"] = fit.safe.size;
  answer["without_flushes"] = fit.without_flushes.size;
  answer["at_least"] = fit.at_least;
  answer["estimate"] = fields(fit.estimate, fit.batch_size);
  answer["one_more"] = fields(fit.next, fit.batch_size + (of_sequence ? 0 : 1));
  answer["sequence_length"] = of_sequence ? py::object(py::int_(fit.sequence_length)) : py::none();
  answer["model_ends"] = fit.model_ends ? py::object(py::str(fit.model_ends->message)) : py::none();
  answer["estimates_made"] = fit.estimates;
  const auto kept = std::make_shared<const Timed<Fit>>(done);
  answer["report"] =
      Report{[kept] {
               const Asked& asked = *kept->asked;
               return dumped(cli::to_json(asked.estimated_job, asked.estimator->name(), kept->answer, kept->seconds));
             },
             [kept] { return text_of(kept->answer, *kept->asked); }};
  return answer;
}

/// What is asked about a plan, in addition to the job.
struct PlanArguments {
  std::int64_t global_batch = 1;
  std::optional<std::int64_t> gpus;
  std::string framework;
  std::optional<std::int64_t> gpus_per_node;
  std::optional<double> network_gbps;
  std::int64_t show = 1;  ///< from 1, which Python has checked
};

Result<search::Question> question_of(const PlanArguments& arguments, const JobRequest& request) {
  Result<search::Question> question = search::question_about(arguments.framework, request.alloc_conf);
  if (!question) return question;
  question->gpus = arguments.gpus;
  question->global_batch = arguments.global_batch;
  question->show = static_cast<std::size_t>(arguments.show);
  question->links = {arguments.gpus_per_node, arguments.network_gbps};
  return question;
}

/// The layouts that fit, as the command line reports them.
Report plan_layouts(const Summary& summary, const JobRequest& request, const PlanArguments& arguments,
                    std::int64_t deadline_ms) {
  const Running running;
  using Planned = std::pair<search::LayoutPlan, search::Question>;
  const auto done =
      timed<Planned>(summary, request, deadline_ms, [&](const Asked& asked, analysis::Analysis&) -> Result<Planned> {
        Result<search::Question> question = question_of(arguments, request);
        if (!question) return question.error();
        Result<search::LayoutPlan> plan =
            search::find_layouts(asked.estimated_job.job, *asked.estimated_job.gpu, *question);
        if (!plan) return plan.error();
        return Planned{*std::move(plan), *std::move(question)};
      });
  const auto kept = std::make_shared<const Timed<Planned>>(done);
  return Report{
      [kept] {
        const auto& [plan, question] = kept->answer;
        return dumped(cli::to_json(kept->asked->estimated_job, plan, question));
      },
      [kept] {
        const auto& [plan, question] = kept->answer;
        if (plan.layouts.empty()) return core::to_string(cli::no_layout(plan, kept->asked->estimated_job));
        return cli::to_text(plan, *kept->asked->estimated_job.gpu, cli::PlanShown{question.global_batch, 1, {}});
      }};
}

// --- What there is ----------------------------------------------------------------------------------------------

py::object figure_or_none(const std::optional<device::Figure>& figure) {
  return figure ? py::object(py::int_(figure->value)) : py::none();
}

/// The fields of gpumem.Gpu.
py::dict fields_of(const GpuProfile& profile) {
  std::vector<std::string> stacks;
  for (const device::ContextFigure& context : profile.contexts) stacks.push_back(context.name);
  py::dict fields;
  fields["name"] = text(profile.name);
  fields["title"] = text(profile.title);
  fields["aliases"] = texts(profile.aliases);
  fields["memory_bytes"] = profile.memory_bytes.value;
  fields["capacity_bytes"] = profile.capacity().count();
  fields["sm_count"] = figure_or_none(profile.sm_count);
  fields["memory_bandwidth_bytes_per_second"] = figure_or_none(profile.memory_bandwidth_bytes_per_second);
  fields["software"] = texts(stacks);
  return fields;
}

py::list gpus() {
  const Running running;
  py::list list;
  const auto profiles = without_gil(0, [] { return device::known_profiles(); });
  for (const device::GpuProfile& profile : profiles) list.append(fields_of(profile));
  return list;
}

py::list estimators() {
  py::list list;
  for (const estimate::EstimatorEntry& entry : estimate::estimators()) {
    list.append(py::make_tuple(text(entry.name), text(entry.description)));
  }
  return list;
}

/// The server as JSON, and its warnings.
py::tuple read_server(std::int64_t window_ms) {
  const Running running;
  const auto live = without_gil(0, [&] { return monitor::read_server(std::chrono::milliseconds(window_ms)); });
  return py::make_tuple(text(place::to_json(live.server)), texts(live.warnings));
}

template <typename List>
py::tuple names_of(const List& list) {
  std::vector<std::string_view> names;
  names.reserve(list.size());
  for (const auto& row : list) names.push_back(row.name);
  return texts(names);
}

void define_summary(py::module_& module) {
  py::class_<Summary, std::shared_ptr<Summary>> summary(
      module, "Summary", "A model as its summary tells it; made by read_summary(). Immutable: threads may share it.");
  summary.attr("__module__") = "gpumem";
  const auto property = [&](const char* name, auto get, const char* doc) {
    summary.def_property_readonly(
        name, [get](const Summary& self) -> py::object { return get(*self.graph); }, doc);
  };
  property(
      "file", [](const ModelGraph& graph) { return text_or_none(graph.file()); },
      "The path that it was read from, or None.");
  property(
      "format", [](const ModelGraph& graph) { return text(graph.format()); },
      "The format that it is in: 'torchsummary', 'graph_json', ...");
  property(
      "layers", [](const ModelGraph& graph) { return py::int_(graph.layers().size()); },
      "How many layers are computed.");
  property(
      "unknown_layers", [](const ModelGraph& graph) { return py::int_(graph.unknown_layers()); },
      "Those of them that gpumem does not know; 0 unless read with lenient=True.");
  property(
      "parameters", [](const ModelGraph& graph) { return py::int_(graph.parameters()); },
      "Elements of all parameters, tied ones counted once.");
  property(
      "trainable_parameters", [](const ModelGraph& graph) { return py::int_(graph.trainable_parameters()); },
      "Elements of those that get gradients.");
  property(
      "printed_batch_size",
      [](const ModelGraph& graph) -> py::object {
        const auto batch = graph.printed_batch_size();
        return batch ? py::object(py::int_(*batch)) : py::none();
      },
      "The batch size that it was printed at, or None.");
  property(
      "warnings", [](const ModelGraph& graph) { return warnings_of(graph); },
      "What was odd about the text, one line each, such as a printed total that is not the sum.");
  summary.def("__repr__", [](const Summary& self) { return text(shown(self)); });
}

void define_job(py::module_& module) {
  py::class_<JobRequest>(module, "Job", "What is asked of a model; the package makes them.")
      .def(py::init(&request_of), py::arg("options"))
      .def("options", &options_of);
}

void define_module(py::module_& module) {
  module.doc() = "The compiled part of gpumem; use the package.";
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(std::move(thrown));
    } catch (const Failure& failure) {
      raise(failure.error);
    }
  });
  define_summary(module);
  define_job(module);
  define_report(module);
  module.def("read_file", &read_file, py::arg("path"), py::arg("lenient"), py::arg("largest_bytes"),
             py::arg("deadline_ms"));
  module.def("read_text", &read_text, py::arg("text"), py::arg("lenient"), py::arg("deadline_ms"));
  module.def("estimate", &estimate_job, py::arg("summary"), py::arg("job"), py::arg("deadline_ms"));
  module.def("fit", &fit_job, py::arg("summary"), py::arg("job"), py::arg("deadline_ms"));
  module.def(
      "plan",
      [](const Summary& summary, const JobRequest& request, std::int64_t global_batch, std::optional<std::int64_t> gpus,
         std::string framework, std::optional<std::int64_t> gpus_per_node, std::optional<double> network_gbps,
         std::int64_t show, std::int64_t deadline_ms) {
        return plan_layouts(summary, request,
                            {global_batch, gpus, std::move(framework), gpus_per_node, network_gbps, show}, deadline_ms);
      },
      py::arg("summary"), py::arg("job"), py::arg("global_batch"), py::arg("gpus"), py::arg("framework"),
      py::arg("gpus_per_node"), py::arg("network_gbps"), py::arg("show"), py::arg("deadline_ms"));
  define_serving(module);
  define_post_training(module);
  module.def("gpus", &gpus);
  module.def("read_server", &read_server, py::arg("window_ms"));
  module.def("estimators", &estimators);
  module.def("close", &Running::close);
  module.def("forget", &forget);
  module.attr("OPTIONS") = options();
  module.attr("OPTIMIZERS") = names_of(model::kOptimizers);
  module.attr("PRECISIONS") = names_of(model::kPrecisions);
  module.attr("LOSSES") = names_of(model::kLosses);
  module.attr("ATTENTIONS") = names_of(model::kAttentionBackends);
  module.attr("OFFLOADS") = names_of(model::kOffloads);
  module.attr("SCHEDULES") = names_of(model::kSchedules);
  module.attr("FRAMEWORKS") = names_of(search::frameworks());
  module.attr("SHARDINGS") = names_of(model::kShardings);
  module.attr("LOOPS") = names_of(model::kLoops);
  module.attr("TRANSFORMERS") = names_of(model::kTransformers);
  module.attr("ZERO_GRADS") = names_of(model::kZeroGrads);
  module.attr("VERSION") = GPUMEM_VERSION_STRING;
}

}  // namespace

}  // namespace gpumem::python

PYBIND11_MODULE(_gpumem, module) { gpumem::python::define_module(module); }
