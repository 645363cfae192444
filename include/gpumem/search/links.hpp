// Input: a GPU's profile, what the user says about the cluster, and a group of ranks.
// Output: Links: how fast the group's ranks reach each other, and how long a collective takes over these links if
// nothing else runs.
// Units: bytes, seconds.
//
// Collectives run as rings: of n ranks each sends (n - 1) / n of the whole in n - 1 hops, twice that where all get the
// sum (Thakur, Rabenseifner & Gropp 2005, "Optimization of Collective Communication Operations in MPICH"; nccl-tests,
// doc/PERFORMANCE.md). A ring that leaves the node goes out of each of its members there, over as many network cards. A
// hop has NCCL's latency of a ring with the Simple protocol (NCCL 2.20, src/graph/tuning.cc: 3.4 us over NVLink, 14 us
// over the network). What rings reach of a data sheet's bandwidth is assumed: nobody measured it here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/memory_estimate.hpp"

namespace gpumem::search {

/// What a user knows better than the profile.
struct LinkOptions {
  std::optional<std::int64_t> gpus_per_node = {};
  std::optional<double> network_gbps = {};  ///< of one GPU, in 10^9 bits a second
};

struct Links {
  double link = 0.0;     ///< bytes a second within a node, one direction
  double network = 0.0;  ///< the same of one GPU to other nodes
  std::int64_t gpus_per_node = 1;
  std::vector<estimate::Assumption> assumed = {};  ///< what neither the profile nor the user says
};

/// Errors: invalid_argument for figures out of range.
[[nodiscard]] core::Result<Links> links_of(const device::GpuProfile& gpu, const LinkOptions& options);

/// Ranks that talk: `count` of them, each `apart` from the next in the numbering, in which a node's GPUs follow each
/// other.
struct Group {
  std::int64_t count = 1;
  std::int64_t apart = 1;
};

/// Each rank gets what all have, `bytes` in all; or, of as much, its part of the sum.
[[nodiscard]] double gather_seconds(const Links& links, const Group& group, double bytes);
/// Each rank gets the sum of `bytes`.
[[nodiscard]] double reduce_seconds(const Links& links, const Group& group, double bytes);
/// Each rank has `bytes`, of which it sends each other one its part.
[[nodiscard]] double exchange_seconds(const Links& links, const Group& group, double bytes);
/// A rank sends `bytes` to the next one.
[[nodiscard]] double send_seconds(const Links& links, const Group& group, double bytes);

}  // namespace gpumem::search
