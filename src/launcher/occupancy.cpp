#include "occupancy.hpp"

#include <algorithm>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/monitor/nvml.hpp"
#include "gpumem/utilisation/collocation.hpp"

namespace gpumem::launcher {

namespace {

/// No tree of processes is deeper; a loop in what /proc says ends here.
constexpr int kDeepest = 256;

core::Bytes sum(core::Bytes left, core::Bytes right) {
  const auto total = (core::Checked(left.count()) + right.count()).value();
  return core::Bytes(total.value_or(INT64_MAX));
}

core::Bytes less(core::Bytes from, core::Bytes what) {
  return core::Bytes(std::max<std::int64_t>(0, from.count() - what.count()));
}

/// The process itself, or the group it is in.
std::optional<std::int64_t> owner_of(std::int64_t pid, const ProcessFacts& facts, const Ledger& ledger) {
  for (const Entry* entry : ledger.running()) {
    const Process& leader = entry->holding->leader;
    const bool is_leader = pid == leader.pid && is_same(facts, leader);
    const Process& launcher = entry->launcher;
    const bool is_launcher = pid == launcher.pid && is_same(facts, launcher);
    if (is_leader || is_launcher || facts.group == leader.pid) return entry->job;
  }
  return std::nullopt;
}

GpuUse use_of(const monitor::LiveGpu& gpu, const Ledger& ledger, const FindFacts& facts_of) {
  GpuUse use;
  core::Bytes own;
  for (const monitor::GpuProcess& process : gpu.processes) {
    const auto job = job_of(process.pid, ledger, facts_of);
    if (!job) {
      use.strangers = true;
      continue;
    }
    use.hidden = use.hidden || !process.used;
    core::Bytes& seen = use.jobs[*job];
    seen = sum(seen, process.used.value_or(core::Bytes()));
    own = sum(own, process.used.value_or(core::Bytes()));
  }
  use.others = less(gpu.used, own);
  const bool shared = gpu.compute_mode == monitor::ComputeMode::shared;
  use.one_process = !shared && !monitor::can_be_shared(gpu, monitor::find_mps_daemon());
  return use;
}

/// A job of the queue on this GPU. Nothing: nothing is promised to it there.
std::optional<place::PlacedJob> placed_on(const place::ServerGpu& gpu, const Entry& entry, const GpuUse& use,
                                          double now) {
  for (const Promise& promise : entry.holding->promises) {
    if (promise.gpu != gpu.id) continue;
    const auto seen = use.jobs.find(entry.job);
    const core::Bytes known = std::max(promise.memory, seen == use.jobs.end() ? core::Bytes() : seen->second);
    const core::Bytes memory = settles(entry, now) ? std::max(known, gpu.total) : known;
    return place::PlacedJob{entry.id(), memory, entry.asked.smact, entry.asked.exclusive};
  }
  return std::nullopt;
}

/// What the processes of jobs use whose use is hidden is in `others`; their promises count instead.
core::Bytes taken(const GpuUse& use, core::Bytes of_jobs, core::Bytes seen_of_jobs) {
  const core::Bytes hidden = use.hidden ? less(of_jobs, seen_of_jobs) : core::Bytes();
  return sum(less(use.others, hidden), of_jobs);
}

core::Status occupy(place::ServerGpu& gpu, const GpuUse& use, const Ledger& ledger, double now) {
  const place::PlacedJobs before = std::move(gpu.jobs);
  gpu.jobs = place::PlacedJobs();
  std::vector<double> shares;
  core::Bytes of_jobs;
  core::Bytes seen;
  for (const auto& [job, bytes] : use.jobs) seen = sum(seen, bytes);
  for (const Entry* entry : ledger.running()) {
    auto job = placed_on(gpu, *entry, use, now);
    if (!job) continue;
    // A driver that lets one process at a time on the GPU does so for this one.
    job->exclusive = (job->exclusive || use.one_process) && gpu.jobs.empty();
    of_jobs = sum(of_jobs, job->memory);
    shares.push_back(job->smact);
    if (gpu.jobs.exclusive()) continue;  // started by other rules: what it takes counts, and the GPU is closed
    if (core::Status added = gpu.jobs.add(*std::move(job)); !added) return added;
  }
  if (gpu.jobs.empty()) gpu.jobs = before;
  gpu.used = std::max(gpu.used, taken(use, of_jobs, seen));
  gpu.smact = std::max(gpu.smact, utilisation::combined_smact(shares));
  return core::Done{};
}

}  // namespace

std::optional<std::int64_t> job_of(std::int64_t pid, const Ledger& ledger, const FindFacts& facts_of) {
  for (int steps = 0; pid > 1 && steps < kDeepest; ++steps) {
    const auto facts = facts_of(pid);
    if (!facts) return std::nullopt;
    if (const auto job = owner_of(pid, *facts, ledger)) return job;
    pid = facts->parent;
  }
  return std::nullopt;
}

std::map<std::string, GpuUse> use_of(const monitor::Machine& machine, const Ledger& ledger, const FindFacts& facts_of) {
  std::map<std::string, GpuUse> all;
  for (const monitor::LiveGpu& gpu : machine.gpus) all.emplace(gpu.uuid, use_of(gpu, ledger, facts_of));
  return all;
}

bool settles(const Entry& entry, double now) {
  return entry.holding && !entry.asked.memory && now - entry.holding->since < entry.terms.settle_s;
}

core::Result<place::Server> occupied(place::Server server, const std::map<std::string, GpuUse>& use,
                                     const Ledger& ledger, double now) {
  for (place::ServerGpu& gpu : server.gpus) {
    const auto found = use.find(gpu.id);
    const core::Status done = occupy(gpu, found == use.end() ? GpuUse() : found->second, ledger, now);
    if (!done) return done.error();
  }
  return server;
}

}  // namespace gpumem::launcher
