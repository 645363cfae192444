// Simulations of large traces: 10,000 to 100,000 jobs on 1,000 GPUs that are kept busy, with estimates and without.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gpumem/place/policies.hpp"
#include "gpumem_datasets/simulator.hpp"

namespace {

using gpumem::core::Bytes;
using namespace gpumem::datasets;
using namespace gpumem::place;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGpus = 1000;

Server server() {
  Server made;
  for (std::int64_t index = 0; index < kGpus; ++index) {
    ServerGpu gpu;
    gpu.id = std::to_string(index);
    gpu.total = Bytes(40000 * kMiB);
    made.gpus.push_back(std::move(gpu));
  }
  return made;
}

/// As many jobs as the server works off in the time in which they arrive, roughly: the queue grows and empties again.
std::vector<SimulatedJob> jobs(std::int64_t count, bool estimated) {
  std::mt19937_64 random(1);  // NOLINT: the same trace in every run
  const auto draw = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  std::vector<SimulatedJob> made;
  double at = 0.0;
  for (std::int64_t index = 0; index < count; ++index) {
    SimulatedJob job;
    job.id = "job" + std::to_string(index);
    at += static_cast<double>(draw(0, 200)) / 100.0;
    job.arrival_s = at;
    job.duration_s = static_cast<double>(draw(60, 3000));
    job.gpus = draw(1, 10) == 1 ? draw(2, 8) : 1;
    job.need = Bytes(draw(600, 30000) * kMiB);
    job.smact = static_cast<double>(draw(10, 95)) / 100.0;
    if (estimated) {
      job.knowledge = Knowledge::estimated;
      job.expected = Bytes(job.need.count() / 100 * draw(80, 140));
      job.reserve = Bytes(job.expected.count() + 2048 * kMiB);
    }
    made.push_back(std::move(job));
  }
  return made;
}

void simulate_jobs(benchmark::State& state, std::string_view name, bool estimated) {
  const Server gpus = server();
  const std::vector<SimulatedJob> trace = jobs(state.range(0), estimated);
  const auto policy = make_policy(name);
  SimulationOptions options;
  options.window_s = 0.0;
  Totals totals;
  for (auto _ : state) {
    const auto done = simulate(trace, gpus, **policy, options);
    totals = done->totals;
    benchmark::DoNotOptimize(totals);
  }
  using benchmark::Counter;
  state.counters["a_job"] =
      Counter(static_cast<double>(state.range(0)), Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["oom"] = static_cast<double>(totals.out_of_memory);
  state.counters["smact"] = totals.mean_smact;
}
BENCHMARK_CAPTURE(simulate_jobs, magm_estimated, "magm", true)
    ->Arg(10'000)
    ->Arg(30'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_jobs, magm_blind, "magm", false)
    ->Arg(10'000)
    ->Arg(30'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_jobs, exclusive, "exclusive", false)
    ->Arg(10'000)
    ->Arg(30'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);

}  // namespace
