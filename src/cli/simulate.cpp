#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "commands.hpp"
#include "gpumem/core/bytes.hpp"
#include "gpumem/core/file.hpp"
#include "gpumem/job/job_options.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/place/policies.hpp"
#include "placement_options.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "simulation_report.hpp"

namespace gpumem::cli {

namespace {

/// A number that is not negative.
std::optional<double> number_of(std::string_view text) {
  const std::optional<double> value = core::parse_number(text);
  return value && *value >= 0.0 ? value : std::nullopt;
}

/// "4xa100-40gb", "a100-40gb,2xh200": the GPUs by number, each with what jobs can have of it.
Result<place::Server> server_of(const std::string& list) {
  constexpr std::int64_t kMostGpus = 100'000;
  place::Server server;
  std::size_t begin = 0;
  while (begin <= list.size()) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    std::string name = list.substr(begin, end - begin);
    begin = end + 1;
    std::int64_t count = 1;
    const auto [after, code] = std::from_chars(name.data(), name.data() + name.size(), count);
    const auto digits = static_cast<std::size_t>(after - name.data());
    if (code == std::errc() && digits > 0 && digits < name.size() && name[digits] == 'x') name.erase(0, digits + 1);
    else count = 1;
    if (count < 1 || count > kMostGpus)
      return wrong_usage("--gpus asks for " + std::to_string(count) + " GPUs of a kind");
    const Result<GpuProfile> profile = find_profile(name);
    if (!profile) return profile.error();
    for (std::int64_t copy = 0; copy < count; ++copy) {
      place::ServerGpu gpu;
      gpu.id = std::to_string(server.gpus.size());
      gpu.profile = profile->name;
      gpu.total = profile->capacity();
      server.gpus.push_back(std::move(gpu));
    }
  }
  return server;
}

/// What is set aside beyond the estimate.
struct MarginRule {
  place::Margin margin;
  double factor = 0.0;  ///< instead of the margin; 0: not given
  std::string words;
};

Result<MarginRule> margin_of(const std::string& text) {
  MarginRule rule;
  if (const Result<place::Margin> margin = place::parse_margin(text); margin) {
    rule.margin = *margin;
    if (margin->upper) rule.words = "up to its own upper figure";
    else rule.words = margin->bytes == Bytes() ? "without a margin" : "+ " + text;
    return rule;
  }
  constexpr double kMostTimes = 1000.0;
  const std::string times = text.ends_with('x') ? text.substr(0, text.size() - 1) : std::string();
  const std::optional<double> factor = number_of(times);
  if (!factor || *factor <= 0.0 || *factor > kMostTimes) {
    return wrong_usage("--margin is " + core::quoted(text) + "; write it as 2GiB, 1.15x or upper");
  }
  rule.factor = *factor;
  rule.words = "x " + times;
  return rule;
}

/// Sets what is known about a job by an estimate of one figure.
void know(datasets::SimulatedJob& job, const std::optional<Bytes>& estimate, const MarginRule& margin) {
  job.knowledge = estimate ? datasets::Knowledge::estimated : datasets::Knowledge::none;
  if (!estimate) return;
  const double expected = static_cast<double>(estimate->count());
  const double reserve =
      margin.factor > 0.0 ? expected * margin.factor : expected + static_cast<double>(margin.margin.bytes.count());
  // With a factor, the product is the estimate: a job with a GPU to itself gets it too.
  job.reserve = Bytes(std::llround(std::min(reserve, 0x1p62)));
  job.expected = margin.factor > 0.0 ? job.reserve : *estimate;
}

/// Estimates the jobs of a trace that names their summaries, each kind of job once.
class OwnEstimates {
 public:
  OwnEstimates(const core::CsvTable& table, const std::string& estimator, const std::string& gpu)
      : table_(table), estimator_(estimator), gpu_(gpu) {}

  /// Nothing if the estimator gives none. Errors: of the row, of its summary, of the estimator's name.
  Result<std::optional<MemoryEstimate>> estimate(std::size_t row) {
    const core::CsvCells cells(table_, table_.rows[row]);
    const Result<JobRequest> request = request_of(cells);
    if (!request) return request.error();
    const std::string key = key_of(*request);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    const Result<EstimatedJob> estimated_job = estimate_job(session_, *request);
    if (!estimated_job) return Error(estimated_job.error()).in_file(table_.file);
    const Answer& answer = estimated_job->answers.front();
    std::optional<MemoryEstimate> estimate;
    if (answer.estimate) estimate = *answer.estimate;
    known_.emplace(key, estimate);
    return estimate;
  }

 private:
  Result<JobRequest> request_of(const core::CsvCells& cells) const {
    JobRequest request;
    if (cells.text("summary").empty())
      return cells.malformed("names no summary that " + estimator_ + " could estimate");
    const auto folder = std::filesystem::path(table_.file).parent_path();
    request.summary = (folder / cells.text("summary")).lexically_normal().string();
    if (cells.text("batch_size").empty()) return cells.malformed("batch_size is empty; it must be a number");
    if (const auto taken = job::take_option_cells(cells, request); !taken) return taken.error();
    request.estimator = estimator_;
    request.gpu = gpu_;
    return request;
  }

  static std::string key_of(const JobRequest& request) {
    std::string key = request.summary;
    for (const job::JobOption& option : job::job_options()) {
      const auto value = option.place.get(request);
      key += '\n' + (value ? job::to_text(*value) : std::string());
    }
    return key;
  }

  Session session_;
  const core::CsvTable& table_;
  std::string estimator_;
  std::string gpu_;
  std::unordered_map<std::string, std::optional<MemoryEstimate>> known_;
};

Result<core::CsvTable> table_of(const std::string& file) {
  const Result<std::string> text = core::read_file(file);
  if (!text) return text.error();
  return core::parse_csv(*text, file);
}

std::string unknown_estimator(const datasets::Trace& trace, const core::CsvTable& table, const std::string& name) {
  std::string text = "the trace has no estimates of " + core::quoted(name) + "; choose one of none, true";
  for (const std::string& column : trace.estimators) text += ", " + column;
  if (!table.has("summary")) return text + "; it names no summaries that gpumem's own could read";
  for (const auto& entry : estimate::estimators()) text += ", " + std::string(entry.name);
  return text;
}

/// Sets what the estimator knows about each job.
core::Status estimate_all(std::vector<datasets::SimulatedJob>& jobs, const datasets::Trace& trace,
                          const core::CsvTable& table, const SimulateOptions& options, const std::string& gpu) {
  const Result<MarginRule> margin = margin_of(options.margin);
  if (!margin) return margin.error();
  if (options.estimator == "none") return core::Done{};
  const auto column = trace.find(options.estimator);
  const bool figure = options.estimator == "true" || column;
  if (figure && margin->margin.upper) {
    return wrong_usage("--margin upper needs an estimator with a range; " + options.estimator + " has one figure");
  }
  if (!figure) {
    const auto own_names = estimate::estimators();
    const bool ours = std::any_of(own_names.begin(), own_names.end(),
                                  [&](const auto& entry) { return entry.name == options.estimator; });
    if (!ours || !table.has("summary")) return wrong_usage(unknown_estimator(trace, table, options.estimator));
  }
  OwnEstimates own(table, options.estimator, gpu);
  Progress progress("estimating", "jobs", jobs.size());
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    progress.step();
    const datasets::TracedJob& traced = trace.jobs[index];
    if (figure) {
      know(jobs[index], column ? traced.estimates[*column] : std::optional(traced.need), *margin);
      continue;
    }
    const auto estimate = own.estimate(traced.row);
    if (!estimate) return estimate.error();
    know(jobs[index], *estimate ? std::optional((*estimate)->expected) : std::nullopt, *margin);
    if (*estimate && margin->margin.upper) jobs[index].reserve = (*estimate)->upper;
  }
  return core::Done{};
}

Result<datasets::MissingDuration> missing_of(const std::string& text) {
  using Rule = datasets::MissingDuration::Rule;
  if (text == "median") return datasets::MissingDuration{Rule::median, 0.0};
  if (text == "skip") return datasets::MissingDuration{Rule::skip, 0.0};
  const std::optional<double> seconds = number_of(text);
  if (seconds && *seconds > 0.0) return datasets::MissingDuration{Rule::given, *seconds};
  return wrong_usage("--missing-duration is " + core::quoted(text) + "; write median, skip or a number of seconds");
}

/// CARMA's conditions: none for round-robin, no floor where there is an estimate.
Result<place::Conditions> conditions_of(const SimulateOptions& options, std::string_view policy) {
  place::Conditions conditions;
  conditions.idle_first = !options.no_idle_first;
  const bool free = policy == "round-robin";
  const bool estimated = options.estimator != "none";
  if (free) conditions.smact_cap.reset();
  if (free || estimated) conditions.free_floor = Bytes();
  if (options.smact_cap == "none") conditions.smact_cap.reset();
  else if (!options.smact_cap.empty()) {
    const std::optional<double> cap = number_of(options.smact_cap);
    if (!cap || *cap <= 0.0 || *cap > 1.0) {
      return wrong_usage("--smact-cap is " + core::quoted(options.smact_cap) +
                         "; write a share above 0, up to 1, or none");
    }
    conditions.smact_cap = *cap;
  }
  if (options.free_floor.empty()) return conditions;
  const Result<Bytes> floor = bytes_from(options.free_floor, "free-floor");
  if (!floor) return floor.error();
  conditions.free_floor = *floor;
  return conditions;
}

Result<utilisation::Sharing> sharing_of(const std::string& text) {
  for (const auto sharing : {utilisation::Sharing::streams, utilisation::Sharing::mps}) {
    if (text == utilisation::to_string(sharing)) return sharing;
  }
  return wrong_usage("--sharing is " + core::quoted(text) + "; write streams or mps");
}

/// The power of a GPU, where it is known: only of the A100. Peak: NVIDIA's data sheet of the A100 SXM (400 W). Idle:
/// nobody publishes it; 50 W is what simulations of others assume (GitHub: filrg/distributed_cluster_GPUs).
Result<std::optional<datasets::PowerModel>> power_of(const SimulateOptions& options, const place::Server& server) {
  if (options.idle_watts.has_value() != options.peak_watts.has_value()) {
    return wrong_usage("--idle-watts and --peak-watts go together");
  }
  if (options.idle_watts) return std::optional(datasets::PowerModel{*options.idle_watts, *options.peak_watts});
  const bool known = std::all_of(server.gpus.begin(), server.gpus.end(),
                                 [](const place::ServerGpu& gpu) { return gpu.profile == "a100-40gb"; });
  return known ? std::optional(datasets::PowerModel{.idle_w = 50.0, .peak_w = 400.0}) : std::nullopt;
}

/// The options of a job that say how many GPUs it takes.
constexpr std::array<std::string_view, 4> kLayoutColumns = {"data_parallel", "tensor_parallel", "pipeline_parallel",
                                                            "context_parallel"};

/// A job whose layout the trace tells takes all of its GPUs.
core::Status take_layouts(datasets::Trace& trace, const core::CsvTable& table) {
  const auto told = [&](std::string_view column) { return table.has(column); };
  if (std::none_of(kLayoutColumns.begin(), kLayoutColumns.end(), told)) return core::Done{};
  for (datasets::TracedJob& job : trace.jobs) {
    const core::CsvCells cells(table, table.rows[job.row]);
    JobRequest request;
    if (core::Status taken = job::take_option_cells(cells, request); !taken) return taken;
    const Result<std::int64_t> gpus = parallel::world_size(request.training.layout);
    if (!gpus) return gpus.error();
    if (*gpus == 1) continue;
    if (!cells.text("gpus").empty() && job.gpus != *gpus) {
      return cells.malformed("gpus is " + std::to_string(job.gpus) + ", and the layout has " + std::to_string(*gpus) +
                             "; leave gpus empty, or change data_parallel");
    }
    job.gpus = *gpus;
  }
  return core::Done{};
}

std::vector<datasets::SimulatedJob> jobs_of(const datasets::Trace& trace, double smact) {
  std::vector<datasets::SimulatedJob> jobs;
  jobs.reserve(trace.jobs.size());
  for (const datasets::TracedJob& traced : trace.jobs) {
    datasets::SimulatedJob job;
    job.id = traced.id;
    job.arrival_s = traced.arrival_s;
    job.duration_s = traced.duration_s.value_or(0.0);
    job.gpus = traced.gpus;
    job.need = traced.need;
    job.smact = traced.smact.value_or(smact);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

/// Says which line of the trace a job that does not fit is in.
core::Status fit_all(const datasets::Trace& trace, const place::Server& server) {
  std::vector<Bytes> totals;
  for (const place::ServerGpu& gpu : server.gpus) totals.push_back(gpu.total);
  std::sort(totals.begin(), totals.end(), std::greater<>());
  for (const datasets::TracedJob& job : trace.jobs) {
    std::string fault;
    if (static_cast<std::size_t>(job.gpus) > totals.size()) {
      fault = "asks for " + std::to_string(job.gpus) + " GPUs; there are " + std::to_string(totals.size());
    } else if (const Bytes most = totals[static_cast<std::size_t>(job.gpus) - 1]; job.need > most) {
      fault = "needs " + core::to_string(job.need) + ", more than the " + core::to_string(most) + " of a GPU";
    }
    if (fault.empty()) continue;
    return Error{ErrorCode::malformed_input,
                 "job " + core::quoted(job.id) + " " + fault + "; take larger GPUs, or more",
                 core::Place{trace.file, job.line, {}}};
  }
  return core::Done{};
}

Result<SimulationReport> simulated(const SimulateOptions& options) {
  SimulationReport report;
  report.file = options.trace;
  const Result<core::CsvTable> table = table_of(options.trace);
  if (!table) return table.error();
  Result<datasets::Trace> trace = datasets::read_trace(*table);
  if (!trace) return trace.error();
  if (const core::Status laid_out = take_layouts(*trace, *table); !laid_out) return laid_out.error();
  const Result<datasets::MissingDuration> missing = missing_of(options.missing_duration);
  if (!missing) return missing.error();
  const Result<datasets::FilledDurations> filled = datasets::fill_durations(*trace, *missing);
  if (!filled) return filled.error();
  Result<place::Server> server = server_of(options.gpus);
  if (!server) return server.error();
  if (const core::Status fits = fit_all(*trace, *server); !fits) return fits.error();
  const Result<std::unique_ptr<place::Policy>> policy = place::make_policy(options.policy);
  if (!policy) return policy.error();
  const Result<place::Conditions> conditions = conditions_of(options, (*policy)->name());
  if (!conditions) return conditions.error();
  const Result<place::RecoveryRule> recovery = recovery_from(options.recovery);
  if (!recovery) return recovery.error();
  const Result<utilisation::Sharing> sharing = sharing_of(options.sharing);
  if (!sharing) return sharing.error();
  const Result<std::optional<datasets::PowerModel>> power = power_of(options, *server);
  if (!power) return power.error();
  report.jobs = jobs_of(*trace, options.smact);
  const core::Status estimated = estimate_all(report.jobs, *trace, *table, options, server->gpus.front().profile);
  if (!estimated) return estimated.error();
  report.options = {.conditions = *conditions,
                    .sharing = *sharing,
                    .recovery = *recovery,
                    .window_s = options.window_s,
                    .ramp_s = options.ramp_s,
                    .seed = options.seed,
                    .keep_usage = true};
  Result<datasets::Simulation> simulation = datasets::simulate(report.jobs, *server, **policy, report.options, *power);
  if (!simulation) return simulation.error();
  report.server = *std::move(server);
  report.policy = (*policy)->name();
  report.estimator = options.estimator;
  if (options.estimator != "none") report.margin = margin_of(options.margin)->words;
  report.filled = *filled;
  report.assumed_smact = options.smact;
  report.power = *power;
  report.without_smact =
      std::count_if(trace->jobs.begin(), trace->jobs.end(), [](const datasets::TracedJob& job) { return !job.smact; });
  report.simulation = *std::move(simulation);
  return report;
}

}  // namespace

int run_simulate(const SimulateOptions& options) {
  const Result<SimulationReport> report = simulated(options);
  if (!report) return report_error(report.error());
  if (!options.out.empty()) {
    const Result<std::string> picture = to_svg(*report);
    if (!picture) return report_error(picture.error());
    const core::Status written = core::write_file(options.out, *picture);
    if (!written) return report_error(written.error());
  }
  const std::string text =
      options.json ? to_json(*report).dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : to_table(*report);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace gpumem::cli
