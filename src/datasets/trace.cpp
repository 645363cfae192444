#include "gpumem_datasets/trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace gpumem::datasets {

namespace {

inline constexpr std::array<std::string_view, 5> kColumns = {"arrival_s", "task", "gpus", "duration_s", "measured_mib"};
inline constexpr double kNoEstimateMb = 40'000.0;  ///< and more, in a column of CARMA's
inline constexpr double kMostSeconds = 1e10;       ///< three centuries: beyond them, a second is lost in the sums
inline constexpr double kMostMib = 1e12;
inline constexpr std::int64_t kMostGpus = 1'000'000;

/// A column with an estimator's figures.
struct EstimateColumn {
  std::string_view column;
  std::string name;
  bool carma = false;  ///< its largest figures mean no estimate
};

std::vector<EstimateColumn> estimate_columns(const core::CsvTable& table) {
  constexpr std::string_view kMib = "_mib";
  constexpr std::string_view kMb = "_mb";
  std::vector<EstimateColumn> columns;
  for (const std::string_view column : table.header) {
    const bool carma = column.ends_with(kMb);
    if (column == "measured_mib" || (!carma && !column.ends_with(kMib))) continue;
    const std::string_view name = column.substr(0, column.size() - (carma ? kMb : kMib).size());
    if (!name.empty()) columns.push_back({column, std::string(name), carma});
  }
  return columns;
}

/// A number in a column that may not be left empty, at most `most`.
core::Result<double> required(const core::CsvCells& cells, std::string_view column, double most) {
  const auto value = cells.number(column);
  if (!value) return value.error();
  if (!*value) return cells.malformed(std::string(column) + " is empty; it must be a number");
  if (**value <= most) return **value;
  return cells.malformed(std::string(column) + " is " + core::quoted(cells.text(column)) +
                         ", which is more than any job has");
}

core::Result<core::Bytes> bytes_of(const core::CsvCells& cells, std::string_view column) {
  const auto mib = required(cells, column, kMostMib);
  if (!mib) return mib.error();
  return core::Bytes(std::llround(*mib * 1024.0 * 1024.0));
}

core::Status take_size(const core::CsvCells& cells, TracedJob& job) {
  const auto need = bytes_of(cells, "measured_mib");
  if (!need) return need.error();
  if (need->count() == 0) return cells.malformed("measured_mib is 0; every job takes some memory");
  job.need = *need;
  const auto gpus = cells.whole("gpus");
  if (!gpus) return gpus.error();
  job.gpus = gpus->value_or(1);
  if (job.gpus >= 1 && job.gpus <= kMostGpus) return core::Done{};
  return cells.malformed("gpus is " + std::to_string(job.gpus) + "; it must be at least 1, and no more than 1,000,000");
}

core::Status take_times(const core::CsvCells& cells, TracedJob& job) {
  const auto arrival = required(cells, "arrival_s", kMostSeconds);
  if (!arrival) return arrival.error();
  job.arrival_s = *arrival;
  if (cells.text("duration_s").empty()) return core::Done{};
  const auto duration = required(cells, "duration_s", kMostSeconds);
  if (!duration) return duration.error();
  if (*duration == 0.0) return cells.malformed("duration_s is 0; leave it empty if it was not measured");
  job.duration_s = *duration;
  return core::Done{};
}

core::Status take_smact(const core::CsvCells& cells, TracedJob& job) {
  const auto smact = cells.number("smact");
  if (!smact) return smact.error();
  if (smact->value_or(0.0) > 1.0) {
    return cells.malformed("smact is " + core::quoted(cells.text("smact")) + "; it must be a share from 0 to 1");
  }
  job.smact = *smact;
  return core::Done{};
}

core::Status take_estimates(const core::CsvCells& cells, const std::vector<EstimateColumn>& columns, TracedJob& job) {
  for (const EstimateColumn& column : columns) {
    job.estimates.emplace_back();
    if (cells.text(column.column).empty()) continue;
    const auto bytes = bytes_of(cells, column.column);
    if (!bytes) return bytes.error();
    if (!column.carma || bytes->mib() < kNoEstimateMb) job.estimates.back() = *bytes;
  }
  return core::Done{};
}

core::Result<TracedJob> job_of(const core::CsvCells& cells, const std::vector<EstimateColumn>& columns) {
  TracedJob job;
  job.line = cells.line();
  job.task = cells.text("task");
  job.id = cells.text("job");
  if (job.task.empty()) return cells.malformed("task is empty; it must say what the job runs");
  for (const core::Status& status :
       {take_times(cells, job), take_size(cells, job), take_smact(cells, job), take_estimates(cells, columns, job)}) {
    if (!status) return status.error();
  }
  return job;
}

/// Names the jobs that have no name: the first of a task as the task, the second "task#2".
void name_jobs(std::vector<TracedJob>& jobs) {
  std::unordered_map<std::string, std::int64_t> seen;
  for (TracedJob& job : jobs) {
    const std::int64_t number = ++seen[job.task];
    if (job.id.empty()) job.id = number == 1 ? job.task : job.task + "#" + std::to_string(number);
  }
}

core::Status all_different(const Trace& trace) {
  std::unordered_map<std::string_view, std::int64_t> lines;
  for (const TracedJob& job : trace.jobs) {
    const auto [first, added] = lines.emplace(job.id, job.line);
    if (added) continue;
    return core::Error{core::ErrorCode::malformed_input,
                       "names the job " + core::quoted(job.id) + ", as does line " + std::to_string(first->second) +
                           "; each job needs a name of its own in the column job",
                       core::Place{trace.file, job.line, {}}};
  }
  return core::Done{};
}

/// The name in one form: lower case, without "-" and "_", and without the unit.
std::string plain(std::string_view name) {
  std::string text;
  for (const char byte : core::lower_case(name)) {
    if (byte != '-' && byte != '_') text += byte;
  }
  return text;
}

}  // namespace

std::optional<std::size_t> Trace::find(std::string_view estimator) const {
  const std::string name = plain(estimator);
  for (std::size_t index = 0; index < estimators.size(); ++index) {
    const std::string known = plain(estimators[index]);
    if (name == known || name == known + "mb" || name == known + "mib") return index;
  }
  return std::nullopt;
}

core::Result<Trace> read_trace(const core::CsvTable& table) {
  const auto fault = [&](std::string message) {
    return core::Error{core::ErrorCode::malformed_input, std::move(message), core::Place{table.file, 1, {}}};
  };
  for (const std::string_view column : kColumns) {
    if (!table.has(column)) {
      return fault("has no column " + core::quoted(column) +
                   "; a trace has arrival_s, task, gpus, duration_s and measured_mib");
    }
  }
  if (table.rows.empty()) return fault("holds no jobs: there is nothing below the header");
  const std::vector<EstimateColumn> columns = estimate_columns(table);
  Trace trace;
  trace.file = table.file;
  for (const EstimateColumn& column : columns) trace.estimators.push_back(column.name);
  trace.jobs.reserve(table.rows.size());
  for (const core::CsvRow& row : table.rows) {
    auto job = job_of(core::CsvCells(table, row), columns);
    if (!job) return job.error();
    job->row = trace.jobs.size();
    trace.jobs.push_back(*std::move(job));
  }
  std::stable_sort(trace.jobs.begin(), trace.jobs.end(),
                   [](const TracedJob& one, const TracedJob& other) { return one.arrival_s < other.arrival_s; });
  name_jobs(trace.jobs);
  if (const core::Status different = all_different(trace); !different) return different.error();
  return trace;
}

core::Result<Trace> parse_trace(std::string_view text, std::string_view file) {
  const auto table = core::parse_csv(text, file);
  if (!table) return table.error();
  return read_trace(*table);
}

core::Result<FilledDurations> fill_durations(Trace& trace, const MissingDuration& missing) {
  std::vector<double> known;
  for (const TracedJob& job : trace.jobs) {
    if (job.duration_s) known.push_back(*job.duration_s);
  }
  FilledDurations filled;
  filled.jobs = static_cast<std::int64_t>(trace.jobs.size() - known.size());
  if (filled.jobs == 0) return filled;
  const auto fault = [&](std::string message) {
    return core::Error{core::ErrorCode::missing_information, std::move(message), core::Place{trace.file, 0, {}}};
  };
  if (missing.rule == MissingDuration::Rule::skip) {
    if (known.empty()) return fault("no job has a duration, so that none is left; give them one");
    std::erase_if(trace.jobs, [](const TracedJob& job) { return !job.duration_s; });
    return filled;
  }
  if (missing.rule == MissingDuration::Rule::median) {
    if (known.empty()) return fault("no job has a duration that the others could be given; give them one");
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
    std::nth_element(known.begin(), middle, known.end());
    filled.seconds = *middle;
  } else {
    filled.seconds = missing.seconds;
  }
  for (TracedJob& job : trace.jobs) job.duration_s = job.duration_s.value_or(filled.seconds);
  return filled;
}

}  // namespace gpumem::datasets
