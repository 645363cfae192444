#include "simulation_report.hpp"
#include "figures.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace gpumem::cli {

namespace {

using datasets::Run;
using datasets::Totals;

constexpr double kJoulesPerKilowattHour = 3.6e6;

std::string count_of(std::int64_t count, const std::string& what) {
  return core::with_separators(count) + " " + what + (count == 1 ? "" : "s");
}

/// "4 x a100-40gb", "1 x a100-40gb, 2 x h200".
std::string gpus_of(const place::Server& server) {
  std::string text;
  for (std::size_t begin = 0; begin < server.gpus.size();) {
    const std::string& profile = server.gpus[begin].profile;
    std::size_t end = begin;
    while (end < server.gpus.size() && server.gpus[end].profile == profile) ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(end - begin) + " x " + profile;
    begin = end;
  }
  return text;
}

/// Adds to each step the part of the time from `from` to `to` that lies in it, times `value`.
void spread(std::vector<double>& steps, double step_s, double from, double to, double value) {
  if (to <= from || value == 0.0) return;
  const auto last = static_cast<double>(steps.size() - 1);
  const auto first = static_cast<std::size_t>(std::clamp(std::floor(from / step_s), 0.0, last));
  const auto end = static_cast<std::size_t>(std::clamp(std::floor(to / step_s), 0.0, last));
  for (std::size_t at = first; at <= end; ++at) {
    const double begin_s = static_cast<double>(at) * step_s;
    const double part = std::min(to, begin_s + step_s) - std::max(from, begin_s);
    if (part > 0.0) steps[at] += part * value / step_s;
  }
}

Json usage_json(const SimulationReport& report) {
  constexpr std::size_t kSteps = 120;
  const OverTime all = over_time(report, kSteps);
  return {{"step_s", all.step_s}, {"smact", all.smact}, {"memory", all.memory}, {"waiting", all.waiting}};
}

Json run_json(const SimulationReport& report, const Run& run) {
  Json gpus = Json::array();
  for (const std::size_t gpu : run.gpus) gpus.push_back(report.server.gpus[gpu].id);
  return {{"job", report.jobs[run.job].id},
          {"gpus", std::move(gpus)},
          {"start_s", run.start_s},
          {"end_s", run.end_s},
          {"out_of_memory", run.out_of_memory}};
}

Json job_json(const SimulationReport& report, std::size_t index) {
  const datasets::JobOutcome& outcome = report.simulation.jobs[index];
  const datasets::SimulatedJob& job = report.jobs[index];
  const bool finished = outcome.verdict == datasets::Verdict::finished;
  Json json = {{"job", job.id},
               {"arrival_s", job.arrival_s},
               {"verdict", datasets::to_string(outcome.verdict)},
               {"out_of_memory", outcome.out_of_memory}};
  json["start_s"] = finished ? Json(outcome.start_s) : Json();
  json["end_s"] = outcome.end_s;
  return json;
}

Json options_json(const SimulationReport& report) {
  const datasets::SimulationOptions& options = report.options;
  return {{"policy", report.policy},
          {"estimator", report.estimator},
          {"margin", report.margin.empty() ? Json() : Json(report.margin)},
          {"sharing", utilisation::to_string(options.sharing)},
          {"recovery", options.recovery.kind == place::RecoveryKind::growing ? "growing" : "exclusive"},
          {"smact_cap", options.conditions.smact_cap ? Json(*options.conditions.smact_cap) : Json()},
          {"free_floor_bytes", options.conditions.free_floor.count()},
          {"idle_first", options.conditions.idle_first},
          {"window_s", options.window_s},
          {"ramp_s", options.ramp_s},
          {"assumed_smact", report.assumed_smact},
          {"jobs_without_smact", report.without_smact},
          {"jobs_without_duration", report.filled.jobs},
          {"assumed_duration_s", report.filled.seconds > 0.0 ? Json(report.filled.seconds) : Json()},
          {"idle_watts", report.power ? Json(report.power->idle_w) : Json()},
          {"peak_watts", report.power ? Json(report.power->peak_w) : Json()},
          {"seed", options.seed}};
}

Json totals_json(const Totals& totals) {
  return {{"total_s", totals.total_s},
          {"mean_wait_s", totals.mean_wait_s},
          {"mean_execution_s", totals.mean_execution_s},
          {"mean_completion_s", totals.mean_completion_s},
          {"finished", totals.finished},
          {"failed", totals.failed},
          {"out_of_memory", totals.out_of_memory},
          {"mean_smact", totals.mean_smact},
          {"mean_memory", totals.mean_memory},
          {"energy_j", totals.energy_j ? Json(*totals.energy_j) : Json()}};
}

std::string row(const std::string& name, const std::string& value) {
  constexpr std::size_t kName = 28;
  std::string text = "  " + name;
  text.resize(std::max(text.size() + 1, kName), ' ');
  return text + value + "\n";
}

/// "2 times (bert, vgg16 twice)": whom it happened to, the first few of them.
std::string crashes(const SimulationReport& report) {
  constexpr std::size_t kNamed = 4;
  std::string names;
  std::size_t jobs = 0;
  for (std::size_t index = 0; index < report.jobs.size(); ++index) {
    const std::int64_t times = report.simulation.jobs[index].out_of_memory;
    if (times == 0 || ++jobs > kNamed) continue;
    const std::string name = core::quoted(report.jobs[index].id);
    names += (names.empty() ? "" : ", ") + name.substr(1, name.size() - 2);
    if (times > 1) names += " " + std::to_string(times) + " times";
  }
  const std::int64_t all = report.simulation.totals.out_of_memory;
  if (all == 0) return "never";
  if (jobs > kNamed) names += ", ...";
  return count_of(all, "time") + " (" + names + ")";
}

std::string finished(const SimulationReport& report) {
  const Totals& totals = report.simulation.totals;
  std::string text = core::with_separators(totals.finished) + " of " + count_of(totals.finished + totals.failed, "job");
  for (const datasets::Verdict verdict : {datasets::Verdict::refused, datasets::Verdict::given_up}) {
    const auto count = std::count_if(report.simulation.jobs.begin(), report.simulation.jobs.end(),
                                     [&](const datasets::JobOutcome& job) { return job.verdict == verdict; });
    if (count == 0) continue;
    text += "; " + core::with_separators(count) + (verdict == datasets::Verdict::refused ? " refused" : " given up");
  }
  return text;
}

std::string assumptions(const SimulationReport& report) {
  std::string text;
  if (report.filled.jobs > 0) {
    text += count_of(report.filled.jobs, "job") + " without a duration: ";
    text += report.filled.seconds > 0.0 ? "taken as " + duration_words(report.filled.seconds) : std::string("left out");
    text += " (--missing-duration)\n";
  }
  if (report.without_smact > 0) {
    text += count_of(report.without_smact, "job") + " without an SM activity: taken as " +
            text_of("%.0f %%", kHundred * report.assumed_smact) + " (--smact)\n";
  }
  const auto none = std::count_if(report.jobs.begin(), report.jobs.end(), [](const datasets::SimulatedJob& job) {
    return job.knowledge == datasets::Knowledge::none;
  });
  if (none > 0) text += count_of(none, "job") + " without an estimate: only to idle GPUs\n";
  return text;
}

std::string energy(const SimulationReport& report) {
  const std::optional<double>& joules = report.simulation.totals.energy_j;
  if (!joules) return "not known: the power of these GPUs is not (--idle-watts, --peak-watts)";
  return text_of("%.2f kWh", *joules / kJoulesPerKilowattHour) + " (" + text_of("%.0f W", report.power->idle_w) +
         " idle, " + text_of("%.0f W", report.power->peak_w) + " at 100 % SM activity)";
}

}  // namespace

std::string duration_words(double seconds) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  const std::int64_t all = std::llround(seconds);
  if (all < kMinute) return std::to_string(all) + " s";
  if (all < kHour) {
    return std::to_string(all / kMinute) + " min" +
           (all % kMinute > 0 ? " " + std::to_string(all % kMinute) + " s" : "");
  }
  const std::int64_t minutes = (all + kMinute / 2) / kMinute;
  return core::with_separators(minutes / 60) + " h " + std::to_string(minutes % 60) + " min";
}

std::vector<Waiting> waiting_over_time(const SimulationReport& report) {
  const datasets::Simulation& simulation = report.simulation;
  std::map<double, std::int64_t> changes;
  for (const datasets::SimulatedJob& job : report.jobs) ++changes[job.arrival_s];
  for (const Run& run : simulation.runs) --changes[run.start_s];
  for (const Run& run : simulation.runs) {
    if (run.out_of_memory) ++changes[run.end_s];
  }
  for (const datasets::JobOutcome& job : simulation.jobs) {
    if (job.verdict != datasets::Verdict::finished) --changes[job.end_s];
  }
  std::vector<Waiting> waiting;
  std::int64_t jobs = 0;
  for (const auto& [at_s, change] : changes) {
    jobs += change;
    if (change != 0) waiting.push_back({at_s, jobs});
  }
  return waiting;
}

OverTime over_time(const SimulationReport& report, std::size_t steps) {
  const datasets::Simulation& simulation = report.simulation;
  OverTime all;
  all.step_s = simulation.totals.total_s / static_cast<double>(steps);
  all.smact.assign(steps, 0.0);
  all.memory.assign(steps, 0.0);
  all.waiting.assign(steps, 0);
  if (all.step_s == 0.0) return all;
  double memory = 0.0;
  for (const place::ServerGpu& gpu : report.server.gpus) memory += static_cast<double>(gpu.total.count());
  const auto gpus = static_cast<double>(report.server.gpus.size());
  for (const std::vector<datasets::Usage>& usage : simulation.usage) {
    for (std::size_t at = 0; at < usage.size(); ++at) {
      const double from = usage[at].at_s - simulation.begin_s;
      const double to = at + 1 < usage.size() ? usage[at + 1].at_s - simulation.begin_s : simulation.totals.total_s;
      spread(all.smact, all.step_s, from, to, usage[at].smact / gpus);
      spread(all.memory, all.step_s, from, to, static_cast<double>(usage[at].used.count()) / memory);
    }
  }
  const std::vector<Waiting> waiting = waiting_over_time(report);
  auto next = waiting.begin();
  std::int64_t jobs = 0;
  for (std::size_t at = 0; at < steps; ++at) {
    const double end = simulation.begin_s + static_cast<double>(at + 1) * all.step_s;
    for (; next != waiting.end() && next->at_s <= end; ++next) jobs = next->jobs;
    all.waiting[at] = jobs;
  }
  return all;
}

Json to_json(const SimulationReport& report) {
  Json json;
  json["schema"] = 1;
  json["trace"] = report.file;
  json["gpus"] = gpus_of(report.server);
  json["options"] = options_json(report);
  json["totals"] = totals_json(report.simulation.totals);
  json["over_time"] = usage_json(report);
  json["jobs"] = Json::array();
  for (std::size_t index = 0; index < report.jobs.size(); ++index) json["jobs"].push_back(job_json(report, index));
  json["runs"] = Json::array();
  for (const Run& run : report.simulation.runs) json["runs"].push_back(run_json(report, run));
  return json;
}

std::string to_table(const SimulationReport& report) {
  const Totals& totals = report.simulation.totals;
  std::string text = report.file + ": " + count_of(static_cast<std::int64_t>(report.jobs.size()), "job") + " on " +
                     gpus_of(report.server) + "\n" + report.policy;
  text += report.estimator == "none" ? ", no estimates" : ", estimator " + report.estimator + " " + report.margin;
  text += ", sharing by " + std::string(utilisation::to_string(report.options.sharing)) + ", seed " +
          std::to_string(report.options.seed) + "\n" + assumptions(report) + "\n";
  text += row("total time", duration_words(totals.total_s));
  text += row("mean waiting time", duration_words(totals.mean_wait_s));
  text += row("mean execution time", duration_words(totals.mean_execution_s));
  text += row("mean completion time", duration_words(totals.mean_completion_s));
  text += row("finished", finished(report));
  text += row("out of memory", crashes(report));
  text += row("SM activity", text_of("%.1f %%", kHundred * totals.mean_smact));
  text += row("memory in use", text_of("%.1f %%", kHundred * totals.mean_memory));
  text += row("energy", energy(report));
  return text;
}

}  // namespace gpumem::cli
