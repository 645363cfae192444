// Enters: the jobs of a trace with what is to be set aside for each, a server and a policy. Leaves: Simulation: when
// each job ran where, which ran out of memory, and what that makes of time, utilisation and energy. Discrete events;
// the same input and seed give the same output, bit for bit. Units: seconds, bytes, shares from 0 to 1, watts, joules.
//
// What is simulated, and what is assumed:
// - Jobs wait in one queue, first in, first out; those that ran out of memory in a second one, which goes first. Only
// the
//   head of the queue is looked at, and one job is placed at most every `window_s` seconds, so that the monitoring has
//   seen the last one: CARMA waits about a minute between two placements (its server sleeps for 30 s and, before a job
//   joins others, for 30 s more; later versions close single GPUs for 30 s instead).
// - Memory. A job grows in eight equal steps to what it needs; the time that this takes is drawn for each run, uniform
//   from 0 to twice `ramp_s`, at most half of the job: programs import, read their data set and build their model in
//   very different times. Who asks for more than a GPU has left has run out of memory, not who is there already.
//   Fragmentation between processes is left out.
// - What the policy sees of a GPU is what its jobs have taken by now, what was set aside for them, and its SM activity
// of
//   the moment.
// - Speed. Jobs on one GPU are slowed down by the rule of utilisation/collocation.hpp; a job of several GPUs is as fast
//   as on the slowest of them, for it waits for all at every step. Durations are as on these GPUs: a trace of one kind
//   of GPU is not translated to another.
// - A job that ran out of memory starts anew: what it had done is lost.
// - Energy. P = idle + (peak - idle) x SM activity, summed over all GPUs from the first arrival to the last end. Real
//   power rises faster at low activity, so that what collocation saves is a lower bound.
// - A job whose estimator gives no estimate starts on an idle GPU only; others may join it by what it is seen to take.
//   That is what becomes of it in CARMA. So is a job whose estimate no GPU could hold: it fits by itself or not at all.
//
// Memory for 100,000 jobs: about 100 MB. Time: O(n log n) in the jobs, and O(GPUs) a placement.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/place/policy.hpp"
#include "gpumem/place/recovery.hpp"
#include "gpumem/place/server.hpp"
#include "gpumem/utilisation/collocation.hpp"

namespace gpumem::place {

/// What an estimator said of a job.
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
  core::Bytes reserve = {};   ///< what is set aside for it beside others: the estimate with its margin
};

/// How much power a GPU draws.
struct PowerModel {
  double idle_w = 0.0;
  double peak_w = 0.0;
};

struct SimulationOptions {
  Conditions conditions = {};
  utilisation::Sharing sharing = utilisation::Sharing::mps;
  RecoveryRule recovery = {};
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

/// Errors: invalid_argument, naming the job or the option: no jobs, a time or size that is negative or not a number, a
/// share outside of 0 to 1, two jobs of one name, a job that asks for more GPUs or needs more memory than the server
/// has; what validate(server) says; a server that has jobs already.
[[nodiscard]] core::Result<Simulation> simulate(const std::vector<SimulatedJob>& jobs, const Server& server,
                                                const Policy& policy, const SimulationOptions& options,
                                                const std::optional<PowerModel>& power = {});

}  // namespace gpumem::place

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/impl/simulator_inl.hpp"
#endif
