// One decision of each policy, on servers of 8 to 10,000 GPUs: a job that is placed, one of eight GPUs, and one that
// finds no room, which is looked at twice.
#include <benchmark/benchmark.h>

#include <optional>
#include <random>
#include <string>

#include "gpumem/place/policies.hpp"

namespace {

using gpumem::core::Bytes;
using namespace gpumem::place;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

/// GPUs in all states: from idle to full, with up to four jobs each.
Server server_of(std::int64_t count) {
  std::mt19937 random(1);  // NOLINT: the same server in every run
  Server server;
  for (std::int64_t index = 0; index < count; ++index) {
    ServerGpu gpu;
    gpu.id = "node" + std::to_string(index / 8) + ":" + std::to_string(index % 8);
    gpu.profile = "a100-40gb";
    gpu.total = Bytes(40 * kGiB);
    const auto jobs = static_cast<std::int64_t>(random() % 5);
    gpu.used = Bytes(jobs * 4 * kGiB);
    gpu.smact = static_cast<double>(random() % 100) / 100.0;
    for (std::int64_t job = 0; job < jobs; ++job) {
      const auto added =
          gpu.jobs.add({"job" + std::to_string(job), Bytes(static_cast<std::int64_t>(random() % 10) * kGiB)});
      benchmark::DoNotOptimize(added.has_value());
    }
    server.gpus.push_back(std::move(gpu));
  }
  return server;
}

void decide(benchmark::State& state, std::string_view name, std::int64_t gpus, std::optional<double> smact_cap) {
  const Server server = server_of(state.range(0));
  const auto policy = make_policy(name);
  Request request;
  request.id = "job";
  request.gpus = gpus;
  request.memory = Bytes(10 * kGiB);
  const Conditions conditions = {.smact_cap = smact_cap};
  std::size_t turn = 0;
  for (auto _ : state) {
    Decision decision = (*policy)->decide(request, server, conditions, turn);
    benchmark::DoNotOptimize(decision);
  }
}

void with_every_policy(std::string_view kind, std::int64_t gpus, std::optional<double> smact_cap) {
  for (const PolicyEntry& entry : policies()) {
    const std::string name = "place_" + std::string(kind) + "/" + std::string(entry.name);
    benchmark::RegisterBenchmark(name.c_str(), decide, entry.name, gpus, smact_cap)->Arg(8)->Arg(1000)->Arg(10000);
  }
}

[[maybe_unused]] const bool kRegistered = [] {
  with_every_policy("one", 1, 0.80);
  with_every_policy("eight", 8, std::nullopt);
  with_every_policy("refused", 1, 0.0);
  return true;
}();

}  // namespace
