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
// The model is the one by which NCCL itself chooses (NVIDIA/nccl 5067397c, src/graph/tuning.cc, ncclTopoTuneModel and
// ncclTopoGetAlgoTime): a base latency, one for each hop, and the bytes over the bandwidth; of the ways to do it the
// fastest.
//
//   ring       of n ranks each sends (n - 1) / n of the whole in n - 1 hops, twice that where all get the sum; with
//              protocol Simple (8.4 us, 3.4 us a hop over NVLink, 5.7 us over PCIe, 14 us over the network), or, where
//              a node has NVLink, LL128 (14, 1.9 and 4 us, and 92 % of the bandwidth). A ring that leaves the node goes
//              out of each of its members there, over as many network cards
//   tree       sums over nodes: up and down, 92 % of the bandwidth; 8.4 us, 4 us a hop, 14 us a doubling of nodes
//   multicast  sums within a node of NVSwitches that add (NVLS, from Hopper on); 25 us. Each of n ranks heads a
//              channel, and a channel takes one part of each rank's links and two of its head's
//              (src/graph/search.cc, ncclTopoSearchTryNvls). It carries 0.85 of that part on Hopper and 0.74 on
//              Blackwell, (n - 1) / n of it, and twice that, as the sum goes up while it comes down; at most the
//              fastest speed that the search tries, 60 and 90 GB/s. So eight H100s sum faster than any ring, and four
//              do not
//
// Left out are protocol LL, what a channel of LL128 and of a tree carries at most, the correction of a tree by the size
// of its message, and what it takes to post to the network.
//
// An NVLink reaches what NCCL counts of it (src/graph/topo.h): 20 of 25 GB/s a link of V100 and A100, 20.6 of 25 on
// H100, 40.1 of 50 on Blackwell. What other links and the network reach is assumed: on 256 H100s, whose cards have
// 400 GB/s a node, 340 were seen of a sum and 200 of a gather (NVIDIA/nccl, issue 1218).
//
// A collective beside kernels takes SMs from them, one a channel: NCCL finds 12 rings in a node with NVSwitches and
// doubles them (src/graph/connect.cc). Without NVLink one ring, doubled, is assumed.

/// What a user knows better than the profile.
struct LinkOptions {
  std::optional<std::int64_t> gpus_per_node = {};
  std::optional<double> network_gbps = {};  ///< of one GPU, in 10^9 bits a second
  bool overlap = true;                      ///< Megatron's gradients and parameters travel beside kernels
};

/// Switches of a node that sum.
struct AddingSwitches {
  double efficiency = 0.0;  ///< of a channel's bandwidth
  double channel = 0.0;     ///< bytes a second that a channel carries at most
};

struct Links {
  double link = 0.0;     ///< bytes a second within a node, one direction
  double network = 0.0;  ///< the same of one GPU to other nodes
  std::int64_t gpus_per_node = 1;
  double reached = 0.8;                            ///< of `link`
  bool nvlink = true;                              ///< `link` is NVLink, not PCIe
  double busy_share = 0.0;                         ///< of the SMs, while a collective runs
  std::optional<AddingSwitches> adds = {};         ///< nothing: GPUs sum themselves
  bool overlap = true;                             ///< as LinkOptions says
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
//              where a block is computed again. With sequence parallelism a sum is a scatter, and a gather before the
//              next layer. Megatron gathers the inputs once more in backward, beside the product of the gradient, and
//              sums the inputs' gradients beside that of the weight's; nothing else overlaps
//   context    keys and values go around the context parallel ranks, in backward with their gradients; Megatron's
//              (TransformerEngine's) beside the attention of those that are there
//   experts    tokens go to their experts and back. Not overlapped
//   sharding   gathered parameters and reduced gradients, as far as they outlast the computation that they overlap:
//              a block's where parameters are sharded, a micro-batch's where gradients are reduced once a step; ZeRO-1
//              and ZeRO-2 overlap nothing, as the memory model has them (no overlap_comm)
//   pipeline   the bubble, (stages - 1) / virtual stages micro-batches, and activations that are sent
//   optimizer  the states' traffic
//
// What overlaps still slows the kernels beside it: they miss the SMs that it takes.
//
// Source: Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM"
// (bubble, sums); Megatron-LM core r0.12, core/tensor_parallel/layers.py,
// LinearWithGradAccumulationAndAsyncCommunication (what overlaps); TransformerEngine, attention/context_parallel.py,
// cp_comm_type p2p; parallel/sharing.hpp for what each sharding gathers and reduces.

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
