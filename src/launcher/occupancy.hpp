// Input: the GPUs as the driver sees them now, and the queue's ledger.
// Output: the server that a policy decides on. For each job the larger of two figures counts: its promise, or what its
// processes are seen to use. A job may not have grown to its promise yet, or may have grown beyond it. What others use
// counts as seen.
// Units: bytes; shares from 0 to 1.
//
// A process belongs to the job whose process group it is in, or which is the nearest among its ancestors: the job's
// first process, or its launcher, to which orphans of the job fall. Where the driver hides what a process of a job
// uses, the promise counts instead. A job without an estimate has all of its GPUs until it has had the time to take
// what it takes: CARMA waits 30 s for that too (github.com/itu-rad/CARMA, src/server.py).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "gpumem/core/result.hpp"
#include "gpumem/monitor/nvml.hpp"
#include "gpumem/place/server.hpp"
#include "ledger.hpp"

namespace gpumem::launcher {

/// The job of the ledger that this process belongs to. Nothing: it is somebody else's.
[[nodiscard]] std::optional<std::int64_t> job_of(std::int64_t pid, const Ledger& ledger,
                                                 const FindFacts& facts_of = launcher::facts_of);

/// What is seen on one GPU.
struct GpuUse {
  std::map<std::int64_t, core::Bytes> jobs;  ///< of the queue; one whose use is hidden counts with what is told
  core::Bytes others;                        ///< what is used besides, by anybody
  bool one_process = false;                  ///< no second process can come to it
  bool strangers = false;                    ///< a process of no job of the queue is there
  bool hidden = false;                       ///< the driver does not tell what a process of a job uses
};

/// By the GPUs' UUIDs.
[[nodiscard]] std::map<std::string, GpuUse> use_of(const monitor::Machine& machine, const Ledger& ledger,
                                                   const FindFacts& facts_of = launcher::facts_of);

/// Whether nobody knows yet what the job takes.
[[nodiscard]] bool settles(const Entry& entry, double now);

/// `server` is monitor's for the same machine, its GPUs named by UUID. Errors: those of place::PlacedJobs::add().
[[nodiscard]] core::Result<place::Server> occupied(place::Server server, const std::map<std::string, GpuUse>& use,
                                                   const Ledger& ledger, double now = seconds_since_boot());

}  // namespace gpumem::launcher
