#include "occupancy.hpp"

#include <gtest/gtest.h>

#include "queue_events.hpp"

namespace gpumem::launcher {
namespace {

using testing::join;
using testing::mib;
using testing::start;

/// A GPU of 40,000 MiB with these processes.
monitor::LiveGpu gpu(const std::string& uuid, std::int64_t used_mib, std::vector<monitor::GpuProcess> processes) {
  monitor::LiveGpu live;
  live.uuid = uuid;
  live.total = mib(40'000);
  live.used = mib(used_mib);
  live.processes = std::move(processes);
  return live;
}

place::Server server_with(const monitor::Machine& machine) {
  place::Server server;
  for (const monitor::LiveGpu& live : machine.gpus) {
    place::ServerGpu gpu;
    gpu.id = live.uuid;
    gpu.total = live.total;
    gpu.used = live.used;
    gpu.smact = live.sm_activity.value_or(0.0);
    server.gpus.push_back(std::move(gpu));
  }
  return server;
}

Ledger ledger_of(const std::vector<Event>& events) {
  Ledger ledger;
  EXPECT_TRUE(ledger.apply({0, 0.0, Opened{}}));
  for (const Event& event : events) EXPECT_TRUE(ledger.apply(event));
  return ledger;
}

/// 500 is the leader of a job, 501 its child, 502 of its group and an orphan, 600 a stranger, 700 the job's launcher,
/// 701 an orphan that came to it.
std::optional<ProcessFacts> facts(std::int64_t pid) {
  switch (pid) {
    case 500: return ProcessFacts{'S', 700, 500, 77};
    case 501: return ProcessFacts{'S', 500, 501, 78};
    case 502: return ProcessFacts{'S', 1, 500, 79};
    case 600: return ProcessFacts{'S', 1, 600, 80};
    case 700: return ProcessFacts{'S', 600, 700, 70};
    case 701: return ProcessFacts{'S', 700, 701, 81};
    default: return std::nullopt;
  }
}

/// One job, which 500 leads, with a promise on GPU-0.
Ledger one_job(std::int64_t promised_mib) {
  Event joins = join(1, promised_mib);
  std::get<Joined>(joins.what).launcher = {700, 70};
  return ledger_of({joins, start(1, {{"GPU-0", mib(promised_mib)}}, 500)});
}

place::ServerGpu occupied_gpu(const monitor::LiveGpu& live, const Ledger& ledger) {
  monitor::Machine machine;
  machine.gpus = {live};
  const auto server = occupied(server_with(machine), use_of(machine, ledger, facts), ledger);
  EXPECT_TRUE(server);
  return server->gpus.front();
}

TEST(Occupancy, AProcessBelongsToTheJobItCameFrom) {
  const Ledger ledger = one_job(1000);
  for (const std::int64_t pid : {500, 501, 502, 701}) EXPECT_EQ(job_of(pid, ledger, facts), 1) << pid;
  for (const std::int64_t pid : {600, 1, 999}) EXPECT_EQ(job_of(pid, ledger, facts), std::nullopt) << pid;
}

TEST(Occupancy, WhatProcHidesBelongsToTheJobOfItsGroup) {
  const Ledger ledger = one_job(1000);
  const auto hidden = [](std::int64_t pid) -> std::optional<ProcessFacts> {
    if (pid == 500 || pid == 503) return ProcessFacts{'R', 0, 500, 0};
    return pid == 600 ? std::optional(ProcessFacts{'R', 0, 600, 0}) : std::nullopt;
  };
  for (const std::int64_t pid : {500, 503}) EXPECT_EQ(job_of(pid, ledger, hidden), 1) << pid;
  EXPECT_EQ(job_of(600, ledger, hidden), std::nullopt);
}

TEST(Occupancy, APromiseCountsBeforeTheJobHasGrownToIt) {
  const place::ServerGpu gpu0 = occupied_gpu(gpu("GPU-0", 3000, {{501, mib(3000)}}), one_job(10'000));
  EXPECT_EQ(gpu0.free(), mib(30'000));
  EXPECT_EQ(gpu0.jobs.size(), 1U);
  EXPECT_FALSE(gpu0.idle());
}

TEST(Occupancy, WhatIsSeenCountsOnceItIsMore) {
  const place::ServerGpu gpu0 =
      occupied_gpu(gpu("GPU-0", 15'000, {{500, mib(3000)}, {501, mib(9000)}, {502, mib(3000)}}), one_job(10'000));
  EXPECT_EQ(gpu0.free(), mib(25'000));
}

TEST(Occupancy, OthersCountBesideThePromises) {
  const place::ServerGpu gpu0 = occupied_gpu(gpu("GPU-0", 8000, {{501, mib(3000)}, {600, mib(5000)}}), one_job(10'000));
  EXPECT_EQ(gpu0.free(), mib(25'000)) << "5,000 of a stranger and the promise of 10,000";
}

TEST(Occupancy, APromiseStandsForAHiddenUse) {
  const place::ServerGpu gpu0 = occupied_gpu(gpu("GPU-0", 9000, {{501, std::nullopt}}), one_job(10'000));
  EXPECT_EQ(gpu0.free(), mib(30'000));
  const place::ServerGpu grown = occupied_gpu(gpu("GPU-0", 12'000, {{501, std::nullopt}}), one_job(10'000));
  EXPECT_EQ(grown.free(), mib(28'000));
}

TEST(Occupancy, AJobThatNobodyKnowsHasItsGpuUntilItHasSettled) {
  Event joins = join(1, 0);
  std::get<Joined>(joins.what).launcher = {700, 70};
  std::get<Joined>(joins.what).asked.memory.reset();
  const Ledger ledger = ledger_of({joins, start(1, {{"GPU-0", core::Bytes()}}, 500)});
  monitor::Machine machine;
  machine.gpus = {gpu("GPU-0", 3000, {{501, mib(3000)}})};
  const auto free_at = [&](double now) {
    const auto server = occupied(server_with(machine), use_of(machine, ledger, facts), ledger, now);
    EXPECT_TRUE(server);
    return server->gpus.front().free();
  };
  EXPECT_EQ(free_at(100.0), core::Bytes()) << "it started at 100";
  EXPECT_EQ(free_at(129.9), core::Bytes());
  EXPECT_EQ(free_at(130.1), mib(37'000));
}

TEST(Occupancy, AnotherGpuIsUntouched) {
  const place::ServerGpu gpu1 = occupied_gpu(gpu("GPU-1", 100, {}), one_job(10'000));
  EXPECT_TRUE(gpu1.idle());
  EXPECT_EQ(gpu1.free(), mib(39'900));
}

TEST(Occupancy, AJobThatIsToBeAloneClosesItsGpu) {
  Event joins = join(1, 1000);
  std::get<Joined>(joins.what).asked.exclusive = true;
  const Ledger ledger = ledger_of({joins, start(1, {{"GPU-0", mib(1000)}}, 500)});
  EXPECT_TRUE(occupied_gpu(gpu("GPU-0", 0, {}), ledger).jobs.exclusive());
}

TEST(Occupancy, AGpuForOneProcessIsClosedOnceItIsPromised) {
  monitor::LiveGpu live = gpu("GPU-0", 0, {});
  live.compute_mode = monitor::ComputeMode::exclusive_process;
  setenv("CUDA_MPS_PIPE_DIRECTORY", "/nowhere", 1);
  EXPECT_TRUE(occupied_gpu(live, one_job(1000)).jobs.exclusive());
  unsetenv("CUDA_MPS_PIPE_DIRECTORY");
}

TEST(Occupancy, ActivityIsWhatIsSeenOrWhatTheJobsAreExpectedToMake) {
  Event joins = join(1, 1000);
  std::get<Joined>(joins.what).asked.smact = 0.6;
  const Ledger ledger = ledger_of({joins, start(1, {{"GPU-0", mib(1000)}}, 500)});
  monitor::LiveGpu live = gpu("GPU-0", 0, {});
  EXPECT_DOUBLE_EQ(occupied_gpu(live, ledger).smact, 0.6) << "it has just come, and does not show yet";
  live.sm_activity = 0.9;
  EXPECT_DOUBLE_EQ(occupied_gpu(live, ledger).smact, 0.9);
}

}  // namespace
}  // namespace gpumem::launcher
