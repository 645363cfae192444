// A trace of jobs, and its simulation.
#include "gpumem_datasets/trace.hpp"

#include <cmath>
#include <set>

#include "fuzz.hpp"
#include "gpumem/place/policies.hpp"
#include "gpumem_datasets/simulator.hpp"

namespace {

using namespace gpumem;

void simulate(const datasets::Trace& trace) {
  std::vector<datasets::SimulatedJob> jobs;
  constexpr std::size_t kMostJobs = 64;
  for (const datasets::TracedJob& traced : trace.jobs) {
    if (jobs.size() == kMostJobs) break;
    datasets::SimulatedJob job;
    job.id = traced.id;
    job.arrival_s = traced.arrival_s;
    job.duration_s = traced.duration_s.value_or(1.0);
    job.gpus = traced.gpus;
    job.need = traced.need;
    job.smact = traced.smact.value_or(0.5);
    jobs.push_back(std::move(job));
  }
  place::Server server;
  for (const char* id : {"0", "1"}) {
    place::ServerGpu gpu;
    gpu.id = id;
    gpu.total = Bytes(std::int64_t{40} << 30);
    server.gpus.push_back(std::move(gpu));
  }
  const auto policy = place::make_policy("magm");
  const auto done = datasets::simulate(jobs, server, **policy, {});
  if (!done) return;  // a job that the server cannot hold
  fuzz::require(done->totals.finished + done->totals.failed == static_cast<std::int64_t>(jobs.size()),
                "every job ends finished or with a verdict");
  fuzz::require(std::isfinite(done->totals.total_s) && done->totals.total_s >= 0.0, "the total time is a time");
}

}  // namespace

GPUMEM_FUZZ_TARGET(trace) {
  auto trace = datasets::parse_trace(input, "fuzzed.csv");
  if (!trace) {
    require_readable(trace.error(), input);
    return false;
  }
  require(!trace->jobs.empty(), "a trace has jobs");
  std::set<std::string> ids;
  double before = 0.0;
  for (const datasets::TracedJob& job : trace->jobs) {
    require(ids.insert(job.id).second, "no two jobs have one name");
    require(job.arrival_s >= before, "jobs stand as they arrive");
    before = job.arrival_s;
    require(job.gpus >= 1 && job.need.count() > 0, "a job is on a GPU and takes memory");
    require(job.duration_s.value_or(1.0) > 0.0, "a duration is above 0");
    require(job.estimates.size() == trace->estimators.size(), "an estimate for each column");
    for (const auto& estimate : job.estimates) require(!estimate || estimate->count() >= 0, "none is negative");
  }
  simulate(*trace);
  const auto filled = datasets::fill_durations(*trace, {});
  if (!filled) require_readable(filled.error(), input);
  return true;
}
