// Input of a simulation: jobs with their arrivals, needs and estimates, and the rules of the server
// (SimulationOptions).
// Output: Simulation: every run of every job, the use of every GPU, and their totals. simulator.hpp says how it is
// computed.
// Units: seconds, bytes, shares from 0 to 1, watts, joules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/place/policies.hpp"
#include "gpumem/place/server.hpp"
#include "gpumem/utilisation/collocation.hpp"

namespace gpumem::datasets {

/// What an estimator said about a job.
enum class Knowledge : std::uint8_t {
  blind,      ///< nobody was asked: placed by what is free
  none,       ///< it was asked, and gives no estimate
  estimated,  ///< `reserve` and `expected`
};

struct SimulatedJob {
  std::string id;
  double arrival_s = 0.0;
  double duration_s = 0.0;  ///< alone
  std::int64_t gpus = 1;
  core::Bytes need;    ///< what it really takes of each GPU
  double smact = 0.5;  ///< its SM activity alone
  Knowledge knowledge = Knowledge::blind;
  core::Bytes expected = {};  ///< the estimate
  core::Bytes reserve = {};   ///< what is set aside for it on a shared GPU: the estimate with its margin
};

/// How much power a GPU draws.
struct PowerModel {
  double idle_w = 0.0;
  double peak_w = 0.0;
};

struct SimulationOptions {
  place::Conditions conditions = {};
  utilisation::Sharing sharing = utilisation::Sharing::mps;
  place::RecoveryRule recovery = {};
  double window_s = 60.0;  ///< between two placements; 0: as many as fit at once
  double ramp_s = 60.0;    ///< mean time in which a job grows to what it needs; 0: at once
  std::uint64_t seed = 1;
  bool keep_usage = false;  ///< fills Simulation::usage
};

/// One run of a job, from its start to its end or to where memory ran out.
struct Run {
  std::size_t job = 0;  ///< in the order of the jobs that were given
  std::vector<std::size_t> gpus;
  double start_s = 0.0;
  double end_s = 0.0;
  bool out_of_memory = false;
};

enum class Verdict : std::uint8_t {
  finished,
  refused,   ///< no GPU of this server could ever hold what it asks for
  given_up,  ///< it ran out of memory as often as the recovery allows
};
[[nodiscard]] std::string_view to_string(Verdict verdict);

struct JobOutcome {
  Verdict verdict = Verdict::finished;
  std::int64_t out_of_memory = 0;  ///< how often
  double start_s = 0.0;            ///< of the run that finished
  double end_s = 0.0;              ///< of the last run; of one that was refused, when that was decided
};

/// A GPU from this time on.
struct Usage {
  double at_s = 0.0;
  core::Bytes used;
  double smact = 0.0;
};

/// Sums over all finished jobs and all GPUs.
struct Totals {
  double total_s = 0.0;            ///< from the first arrival to the last end
  double mean_wait_s = 0.0;        ///< from arrival to end, less the run that finished: runs that crashed are waiting
  double mean_execution_s = 0.0;   ///< of the run that finished
  double mean_completion_s = 0.0;  ///< from arrival to end
  std::int64_t finished = 0;
  std::int64_t failed = 0;         ///< refused or given up
  std::int64_t out_of_memory = 0;  ///< crashes
  double mean_smact = 0.0;         ///< over all GPUs and the total time
  double mean_memory = 0.0;        ///< share of all GPUs' memory that is in use
  std::optional<double> energy_j;  ///< with a power model
};

struct Simulation {
  std::vector<JobOutcome> jobs;           ///< in the order in which they were given
  std::vector<Run> runs;                  ///< as they started
  std::vector<std::vector<Usage>> usage;  ///< of each GPU, if it was asked for
  double begin_s = 0.0;                   ///< the first arrival
  Totals totals;
};

/// Errors: invalid_argument, naming the job: no jobs, a time or size that is negative or not a number, a share outside
/// of 0 to 1, two jobs of one name, a job that asks for more GPUs or needs more memory than the server has; what
/// validate(server) says; a server that has jobs already.
[[nodiscard]] core::Status validate(const std::vector<SimulatedJob>& jobs, const place::Server& server);

/// Errors: invalid_argument, naming the option or the power: negative or not a number, or more idle than at the peak.
[[nodiscard]] core::Status validate(const SimulationOptions& options, const std::optional<PowerModel>& power);

}  // namespace gpumem::datasets
