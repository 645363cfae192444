// Input: a layout, the work of a model's blocks, and what connects the GPUs.
// Output: the time of a step, and of what its messages take of it.
// Units: seconds, bytes a second.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/search/block_work.hpp"

namespace gpumem::search {

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

// Input: a job with its layout, the work of one block and of the layers around the blocks, and the links between GPUs.
// Output: LayoutTime: how long a training step takes by a roofline, part by part.
// Units: seconds.
//
// The times rank layouts. They are not measured, and leave out what all layouts pay alike (reading data, saving).
//
//   compute    kernels of the slowest pipeline stage, or their launches where the host is slower, of all micro-batches
//   tensor     sums over tensor parallel ranks: one after each row-parallel layer forward, as many backward, again
//              where a block is computed again. Not overlapped
//   context    keys and values go around the context parallel ranks, in backward with their gradients. Not overlapped
//   experts    tokens go to their experts and back. Not overlapped
//   sharding   gathered parameters and reduced gradients, as far as they outlast the computation that they overlap:
//              a block's where parameters are sharded, a micro-batch's where gradients are reduced once a step; ZeRO-1
//              and ZeRO-2 overlap nothing, as the memory model has them (no overlap_comm)
//   pipeline   the bubble, (stages - 1) / virtual stages micro-batches, and activations that are sent
//   optimizer  the states' traffic
//
// Source: Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM"
// (bubble, sums); parallel/sharing.hpp for what each sharding gathers and reduces.

struct LayoutTime {
  double compute = 0.0;
  double tensor = 0.0;
  double context = 0.0;
  double experts = 0.0;
  double sharding = 0.0;
  double pipeline = 0.0;
  double optimizer = 0.0;

  [[nodiscard]] double step() const { return compute + tensor + context + experts + sharding + pipeline + optimizer; }
};

/// The layout passed parallel::check_modelled(). Errors: those of parallel::sharing_of(); invalid_argument where the
/// pipeline's stages cannot share the blocks.
[[nodiscard]] core::Result<LayoutTime> layout_time(const model::TrainingJob& job, const BlockWork& work,
                                                   const Links& links);

}  // namespace gpumem::search
