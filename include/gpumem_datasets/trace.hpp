// Input: a CSV file with the jobs that came to a server, one a row.
// Output: Trace.
// Units: seconds, bytes.
//
// Columns that must be there:
//   arrival_s     when the job was handed in, seconds from any beginning
//   task          what it runs; many jobs may run the same
//   gpus          how many GPUs it asks for, all or nothing
//   duration_s    how long it runs on them by itself; empty: nobody measured it (see MissingDuration)
//   measured_mib  what it really takes at its peak, MiB of each GPU
// Columns that may be there:
//   job           the job's own name, no two alike; without it, a job is called after its task: vgg16, vgg16#2, ...
//   smact         its mean SM activity when it runs by itself, 0 to 1
//   NAME_mib      the estimate of an estimator NAME; empty: it gave none
//   NAME_mb       the same as CARMA's workloads have it: 40000 and more means no estimate
// All others are ignored here.
//
// CARMA's MB are MiB: its scripts divide Horus' and FakeTensor's bytes by 2^20, GPUMemNet's bins are 8,000 MiB wide,
// and its server holds all of them against what nvidia-smi prints in MiB (GitHub: itu-rad/CARMA, workloads/
// ehsan-horus_estimator.py and src/server.py; GPUMemNet's data set). Its 40000 fits into no A100-40GB with a margin of
// 2 GiB: a task that was given it never shares a GPU when it starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/csv.hpp"
#include "gpumem/core/result.hpp"

namespace gpumem::datasets {

struct TracedJob {
  std::string id;  ///< no two alike
  std::string task;
  std::int64_t line = 0;  ///< of the file; 0: of none
  double arrival_s = 0.0;
  std::int64_t gpus = 1;
  std::optional<double> duration_s;                   ///< alone
  core::Bytes need;                                   ///< at its peak, on each GPU
  std::optional<double> smact;                        ///< alone
  std::vector<std::optional<core::Bytes>> estimates;  ///< in the order of Trace::estimators; nothing: none was given
  std::size_t row = 0;                                ///< in the table it was read from
};

struct Trace {
  std::string file;                     ///< as the caller named it
  std::vector<std::string> estimators;  ///< "horus" of the column horus_mb
  std::vector<TracedJob> jobs;          ///< as they arrive; those of one time in the order of the file

  /// The place of this estimator in TracedJob::estimates: by its name or its column's, "_" and "-" alike, and
  /// "fake-tensor" for "faketensor".
  [[nodiscard]] std::optional<std::size_t> find(std::string_view estimator) const;
};

/// Errors: malformed_input, naming the line: no jobs, a column that is missing, a cell that is no number or negative, a
/// job on no GPU or of no memory, a share above 1, two jobs of one name.
[[nodiscard]] core::Result<Trace> read_trace(const core::CsvTable& table);

/// The same of a file's text; `file` is for messages.
[[nodiscard]] core::Result<Trace> parse_trace(std::string_view text, std::string_view file = {});

/// What to make of jobs whose duration nobody measured. Nothing in a trace says how long they run, so that each choice
/// is an assumption, which a report states.
struct MissingDuration {
  enum class Rule : std::uint8_t {
    median,  ///< as long as the median of those whose duration is known
    given,   ///< `seconds`
    skip,    ///< left out
  };
  Rule rule = Rule::median;
  double seconds = 0.0;
};

/// What fill_durations() did.
struct FilledDurations {
  std::int64_t jobs = 0;  ///< that had none
  double seconds = 0.0;   ///< what they were given; 0 if they were left out
};

/// Errors: missing_information if no job has a duration that the others could be given, or if none is left.
[[nodiscard]] core::Result<FilledDurations> fill_durations(Trace& trace, const MissingDuration& missing);

}  // namespace gpumem::datasets
