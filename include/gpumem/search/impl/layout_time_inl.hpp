#pragma once

#include "gpumem/search/layout_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/utilisation/step_time.hpp"

namespace gpumem::search {

namespace links_detail {

/// The share of the network's bandwidth that collectives reach. Assumed; see the header.
inline constexpr double kNetworkReached = 0.8;

/// A ring's protocol, as NCCL counts it. Latencies are in seconds.
struct Protocol {
  double bandwidth;  ///< of the links'
  double base;
  double nvlink_hop;
  double pcie_hop;
  double network_hop;

  [[nodiscard]] double link_hop(const Links& links) const { return links.nvlink ? nvlink_hop : pcie_hop; }
};
inline constexpr Protocol kSimple = {1.0, 8.4e-6, 3.4e-6, 5.7e-6, 14e-6};
inline constexpr Protocol kLl128 = {0.92, 14e-6, 1.9e-6, 2.5e-6, 4e-6};

inline constexpr double kTreeBandwidth = 0.92;      ///< of the links'
inline constexpr double kTreeLinkHop = 4e-6;        ///< seconds, over NVLink and PCIe alike
inline constexpr double kMulticastLatency = 25e-6;  ///< seconds
/// Thread blocks of a collective, one an SM.
inline constexpr double kNvlinkChannels = 24.0;
inline constexpr double kPcieChannels = 2.0;

/// What NCCL counts of an NVLink's bandwidth, and of sums by NVSwitches, by compute capability.
struct LinkReach {
  std::string_view compute_capability;
  double reached;
  std::optional<AddingSwitches> adds;
};
inline constexpr AddingSwitches kHopper = {0.85, 60e9};
inline constexpr AddingSwitches kBlackwell = {0.74, 90e9};
inline constexpr std::array<LinkReach, 5> kLinkReach = {{{"7.0", 20.0 / 25.0, std::nullopt},
                                                         {"8.0", 20.0 / 25.0, std::nullopt},
                                                         {"9.0", 20.6 / 25.0, kHopper},
                                                         {"10.0", 40.1 / 50.0, kBlackwell},
                                                         {"10.3", 40.1 / 50.0, kBlackwell}}};
/// A link as fast as this is NVLink.
inline constexpr double kLeastNvlink = 100e9;

/// For GPUs whose profile says nothing: PCIe 4.0 with 16 lanes, a network card of 100 Gb/s a GPU, 8 GPUs a node.
inline constexpr double kUsualLink = 32e9;
inline constexpr double kUsualNetwork = 12.5e9;
inline constexpr std::int64_t kUsualNode = 8;

inline constexpr double kGiga = 1e9;
inline constexpr double kBits = 8.0;

GPUMEM_INLINE std::string gigabytes(double bytes) {
  const auto tenths = static_cast<std::int64_t>(std::llround(bytes / kGiga * 10.0));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB/s";
}

/// How many of the group's ranks are in one node.
GPUMEM_INLINE std::int64_t in_a_node(const Links& links, const Group& group) {
  return std::clamp<std::int64_t>(links.gpus_per_node / group.apart, 1, group.count);
}

GPUMEM_INLINE double bandwidth(const Links& links, const Group& group) {
  const std::int64_t together = in_a_node(links, group);
  const double within = links.link * links.reached;
  if (together == group.count) return within;
  const double out = links.network * kNetworkReached * static_cast<double>(together);
  return together == 1 ? out : std::min(within, out);
}

GPUMEM_INLINE std::int64_t nodes_of(const Links& links, const Group& group) {
  const std::int64_t together = in_a_node(links, group);
  return (group.count + together - 1) / together;
}

/// All ranks' parts go around as often as there are rounds.
GPUMEM_INLINE double ring_seconds(const Links& links, const Group& group, double bytes, double rounds,
                                  const Protocol& protocol) {
  const auto ranks = static_cast<double>(group.count);
  const auto between = static_cast<double>(nodes_of(links, group) - 1);
  const double hops = protocol.network_hop * between + protocol.link_hop(links) * (ranks - 1.0 - between);
  const double sent = bytes * (ranks - 1.0) / ranks / (bandwidth(links, group) * protocol.bandwidth);
  return protocol.base + rounds * (hops + sent);
}

/// NCCL takes LL128 where the ranks of a node reach each other by NVLink, or a node has one of them.
GPUMEM_INLINE double fastest_ring(const Links& links, const Group& group, double bytes, double rounds) {
  const double simple = ring_seconds(links, group, bytes, rounds, kSimple);
  if (!links.nvlink && in_a_node(links, group) > 1) return simple;
  return std::min(simple, ring_seconds(links, group, bytes, rounds, kLl128));
}

GPUMEM_INLINE double tree_seconds(const Links& links, const Group& group, double bytes) {
  const auto together = static_cast<double>(in_a_node(links, group));
  const auto nodes = static_cast<double>(nodes_of(links, group));
  const double hops = kTreeLinkHop * (together - 1.0) + kSimple.network_hop * std::log2(nodes);
  return kSimple.base + 2.0 * (hops + bytes / (bandwidth(links, group) * kTreeBandwidth));
}

/// Each rank is the head of a channel, which takes a part of each rank's links, and a second one of its head's.
GPUMEM_INLINE double multicast_seconds(const Links& links, const AddingSwitches& adds, const Group& group,
                                       double bytes) {
  constexpr double kUpAndDown = 2.0;
  const auto ranks = static_cast<double>(group.count);
  const double others = (ranks - 1.0) / ranks;
  const double part = std::min(bandwidth(links, group) / (ranks + 1.0), adds.channel);
  const double channel = std::min(kUpAndDown * adds.efficiency * others * part, adds.channel);
  return kMulticastLatency + kUpAndDown * bytes * others / (ranks * channel);
}

/// The hop of a message between two ranks.
GPUMEM_INLINE double message_latency(const Links& links, bool within) {
  return kSimple.base + (within ? kSimple.link_hop(links) : kSimple.network_hop);
}

/// What the GPU's own NVLinks do; nothing: PCIe, or links that NCCL counts nothing of.
GPUMEM_INLINE const LinkReach* reach_of(const device::GpuProfile& gpu, const Links& links) {
  const auto* const row = std::find_if(kLinkReach.begin(), kLinkReach.end(), [&](const LinkReach& one) {
    return one.compute_capability == gpu.compute_capability;
  });
  return links.nvlink && row != kLinkReach.end() ? row : nullptr;
}

/// What collectives reach of these links, and the SMs that they take.
GPUMEM_INLINE void take_reach(const device::GpuProfile& gpu, Links& links) {
  links.nvlink = links.link >= kLeastNvlink;
  const LinkReach* const row = reach_of(gpu, links);
  if (row != nullptr) {
    links.reached = row->reached;
    if (links.gpus_per_node > 2) links.adds = row->adds;
  }
  const double channels = links.nvlink ? kNvlinkChannels : kPcieChannels;
  if (gpu.sm_count) links.busy_share = std::min(1.0, channels / static_cast<double>(gpu.sm_count->value));
  const std::string of = row == nullptr ? "the links and of the network" : "the network";
  links.assumed.push_back({"links", "collectives take as long as NCCL's own model says, and reach 0.8 of " + of});
}

}  // namespace links_detail

GPUMEM_INLINE core::Result<Links> links_of(const device::GpuProfile& gpu, const LinkOptions& options) {
  namespace detail = links_detail;
  const auto refused = [](const char* message) { return core::Error{core::ErrorCode::invalid_argument, message, {}}; };
  if (options.gpus_per_node && *options.gpus_per_node < 1) return refused("`gpus_per_node` counts from 1");
  const double told = options.network_gbps.value_or(1.0);
  if (!(std::isfinite(told) && told > 0.0)) return refused("`network_gbps` must be more than 0, such as 400");
  Links links;
  links.overlap = options.overlap;
  const auto take = [&](const std::optional<device::Figure>& figure, double usual, const char* what) {
    if (figure) return static_cast<double>(figure->value);
    links.assumed.push_back(
        {"links", detail::gigabytes(usual) + " " + what + ", which the profile of " + gpu.name + " does not name"});
    return usual;
  };
  links.link = take(gpu.link_bandwidth_bytes_per_second, detail::kUsualLink, "between the GPUs of a node");
  links.network = options.network_gbps ? *options.network_gbps * detail::kGiga / detail::kBits
                                       : take(gpu.network_bandwidth_bytes_per_second, detail::kUsualNetwork,
                                              "from each GPU to other nodes (`network_gbps`)");
  links.gpus_per_node = options.gpus_per_node.value_or(gpu.gpus_per_node ? gpu.gpus_per_node->value : 0);
  if (links.gpus_per_node == 0) {
    links.gpus_per_node = detail::kUsualNode;
    links.assumed.push_back({"links", std::to_string(detail::kUsualNode) + " GPUs a node (`gpus_per_node`)"});
  }
  detail::take_reach(gpu, links);
  return links;
}

GPUMEM_INLINE double gather_seconds(const Links& links, const Group& group, double bytes) {
  if (group.count <= 1 || bytes <= 0.0) return 0.0;
  return links_detail::fastest_ring(links, group, bytes, 1.0);
}

GPUMEM_INLINE double reduce_seconds(const Links& links, const Group& group, double bytes) {
  namespace detail = links_detail;
  if (group.count <= 1 || bytes <= 0.0) return 0.0;
  constexpr double kScatteredAndGathered = 2.0;
  const double ring = detail::fastest_ring(links, group, bytes, kScatteredAndGathered);
  const bool within = detail::in_a_node(links, group) == group.count;
  if (!within) return std::min(ring, detail::tree_seconds(links, group, bytes));
  if (!links.adds || group.count <= 2) return ring;
  return std::min(ring, detail::multicast_seconds(links, *links.adds, group, bytes));
}

GPUMEM_INLINE double exchange_seconds(const Links& links, const Group& group, double bytes) {
  namespace detail = links_detail;
  if (group.count <= 1 || bytes <= 0.0) return 0.0;
  const std::int64_t together = detail::in_a_node(links, group);
  const auto ranks = static_cast<double>(group.count);
  const double out =
      static_cast<double>(group.count - together) / ranks * bytes / (links.network * detail::kNetworkReached);
  const double within = static_cast<double>(together - 1) / ranks * bytes / (links.link * links.reached);
  return std::max(out, within) + detail::message_latency(links, together == group.count);
}

GPUMEM_INLINE double send_seconds(const Links& links, const Group& group, double bytes) {
  namespace detail = links_detail;
  if (group.count <= 1 || bytes <= 0.0) return 0.0;
  const bool within = detail::in_a_node(links, group) == group.count;
  return bytes / (within ? links.link * links.reached : links.network * detail::kNetworkReached) +
         detail::message_latency(links, within);
}

namespace layout_time_detail {

using parallel::Reduction;
using parallel::Sharing;

/// What the parts of the slowest stage come to.
struct Stage {
  double forward = 0.0;  ///< a micro-batch's
  double backward = 0.0;
  double launches = 0.0;
  double optimizer = 0.0;
  double parameters = 0.0;
  double root_parameters = 0.0;  ///< of the layers before and after the blocks
};

GPUMEM_INLINE Stage stage_of(const BlockWork& work, double blocks, bool first, bool last) {
  Stage stage;
  const auto add = [&](const PartWork& part, double times) {
    stage.forward += times * part.forward;
    stage.backward += times * part.backward;
    stage.launches += times * part.launches;
    stage.optimizer += times * part.optimizer;
    stage.parameters += times * static_cast<double>(part.parameters);
  };
  add(work.block, blocks);
  const double of_blocks = stage.parameters;
  if (first) add(work.before, 1.0);
  if (last) add(work.behind, 1.0);
  stage.root_parameters = stage.parameters - of_blocks;
  return stage;
}

/// The pipeline rank whose kernels take longest, and how many blocks it has. Nothing: the stages cannot share them.
struct Slowest {
  Stage stage;
  double blocks = 0.0;
};

GPUMEM_INLINE std::optional<Slowest> slowest_of(const model::TrainingJob& job, const BlockWork& work) {
  const std::vector<std::int64_t> ranks = parallel::blocks_of_ranks(work.blocks, job.layout, parallel::shares_of(job));
  std::optional<Slowest> slowest;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto blocks = static_cast<double>(ranks[rank]);
    const Stage stage = stage_of(work, blocks, rank == 0, rank + 1 == ranks.size());
    const bool slower = !slowest || stage.forward + stage.backward > slowest->stage.forward + slowest->stage.backward;
    if (slower) slowest = {stage, blocks};
  }
  return slowest;
}

GPUMEM_INLINE core::Error stages_cannot_share(std::int64_t blocks) {
  return {core::ErrorCode::invalid_argument,
          "the pipeline's stages cannot share " + std::to_string(blocks) + " blocks",
          {}};
}

/// The groups of a layout, whose ranks are numbered tensor parallel first, then context, data and pipeline parallel.
struct Groups {
  Group tensor;
  Group context;
  Group experts;
  Group sharing;
  Group replicas;  ///< of shards, under hsdp
  Group pipeline;
};

GPUMEM_INLINE Groups groups_of(const model::Layout& layout) {
  const std::int64_t tensor = layout.tensor_parallel;
  const std::int64_t shared = parallel::sharing_ranks(layout);
  const bool replicates = layout.sharding.kind == model::Shardings::hsdp;
  const std::int64_t shards = replicates ? layout.sharding.count : shared;
  return {.tensor = {tensor, 1},
          .context = {layout.context_parallel, tensor},
          .experts = {layout.expert_parallel, layout.expert_parallel <= shared ? tensor : 1},
          .sharing = {shards, tensor},
          .replicas = {shared / shards, tensor * shards},
          .pipeline = {layout.pipeline_parallel, tensor * shared}};
}

/// What a message takes that runs beside kernels: what outlasts them, and the SMs that they miss meanwhile.
GPUMEM_INLINE double beside(const Links& links, double message, double kernels) {
  const double hidden = std::min(message, kernels);
  return message - hidden + hidden * links.busy_share;
}

/// What goes between the ranks that share parameters, of one micro-batch and of a step.
struct Exposed {
  double a_pass = 0.0;
  double a_step = 0.0;
};

struct Traffic {
  const Links& links;
  Groups groups;
  double compute_bytes = 0.0;  ///< of a parameter that is gathered
  double reduced_bytes = 0.0;  ///< of a gradient

  [[nodiscard]] double gather(double parameters) const {
    return gather_seconds(links, groups.sharing, parameters * compute_bytes);
  }
  /// Each rank keeps its share; under hsdp, of the sum over all replicas.
  [[nodiscard]] double scatter(double parameters) const {
    const auto shards = static_cast<double>(groups.sharing.count);
    return gather_seconds(links, groups.sharing, parameters * reduced_bytes) +
           reduce_seconds(links, groups.replicas, parameters * reduced_bytes / shards);
  }
  [[nodiscard]] double reduce(double parameters) const {
    return reduce_seconds(links, groups.sharing, parameters * reduced_bytes);
  }
};

/// Parameters are gathered block by block: while a block runs, the next one comes and the last one's gradients go. A
/// pipeline's stage that stays gathered is so once a step, and its gradients go when the last micro-batch has run.
GPUMEM_INLINE Exposed of_sharded_parameters(const Traffic& traffic, const Sharing& sharing, const BlockWork& work,
                                            const Stage& stage, double blocks) {
  const auto parameters = static_cast<double>(work.block.parameters);
  const double gathered = traffic.gather(parameters);
  const double forward = beside(traffic.links, gathered, work.block.forward);
  const bool stays = sharing.kept_over == 1;
  if (stays && sharing.whole_for_step) {
    return {0.0, blocks * forward + traffic.gather(stage.root_parameters) + traffic.scatter(stage.parameters)};
  }
  const double again = stays ? 0.0 : gathered;
  const double backward = beside(traffic.links, again + traffic.scatter(parameters), work.block.backward);
  const double root = traffic.gather(stage.root_parameters) + traffic.scatter(stage.root_parameters);
  return {blocks * (forward + backward) + root, 0.0};
}

GPUMEM_INLINE Exposed of_whole_parameters(const Traffic& traffic, const Sharing& sharing, const Stage& stage) {
  const double gathered = sharing.state_ranks > 1 ? traffic.gather(stage.parameters) : 0.0;
  switch (sharing.reduction) {
    case Reduction::bucketed: return {0.0, beside(traffic.links, traffic.reduce(stage.parameters), stage.backward)};
    case Reduction::main_buffer: {
      const bool shares = sharing.state_ranks > 1;
      const double reduced = shares ? traffic.scatter(stage.parameters) : traffic.reduce(stage.parameters);
      if (!traffic.links.overlap) return {0.0, reduced + gathered};
      return {0.0, beside(traffic.links, reduced, stage.backward) + beside(traffic.links, gathered, stage.forward)};
    }
    case Reduction::partitioned: return {traffic.scatter(stage.parameters), gathered};
    case Reduction::scattered:
    case Reduction::none: break;
  }
  return {0.0, traffic.reduce(stage.parameters) + gathered};
}

GPUMEM_INLINE Exposed exposed(const Traffic& traffic, const Sharing& sharing, const BlockWork& work, const Stage& stage,
                              double blocks) {
  if (traffic.groups.sharing.count <= 1 && traffic.groups.replicas.count <= 1) return {};
  if (sharing.gather != parallel::Gather::never) return of_sharded_parameters(traffic, sharing, work, stage, blocks);
  return of_whole_parameters(traffic, sharing, stage);
}

/// The bytes of a parameter as its rank's optimizer holds it, over those that the plan counted.
GPUMEM_INLINE double states_factor(const Sharing& sharing, double compute_bytes) {
  constexpr double kFloat = 4.0;
  const bool wide = sharing.masters || sharing.float32_shards;
  return (wide ? kFloat / compute_bytes : 1.0) / static_cast<double>(sharing.state_ranks);
}

/// How often a block's forward runs for a micro-batch.
GPUMEM_INLINE double forwards(const model::TrainingJob& job) {
  const bool again = job.activation_checkpointing && job.checkpoints.kind != model::Checkpoints::selective_attention &&
                     job.checkpoints.kind != model::Checkpoints::selective_op;
  return again ? 2.0 : 1.0;
}

/// Of one block's backward under Megatron: gathers of the gradients that wait, and what runs beside products. About
/// half of a block's products are of column-parallel layers.
GPUMEM_INLINE double sums_back(const model::TrainingJob& job, const BlockWork& work, const Links& links,
                               const Groups& groups) {
  const auto sums = static_cast<double>(work.sent.sums);
  const double products = work.block.backward / 2.0;
  if (!job.layout.sequence_parallel) {
    return beside(links, sums * reduce_seconds(links, groups.tensor, work.sent.hidden), products);
  }
  const double one = sums * gather_seconds(links, groups.tensor, work.sent.hidden);
  constexpr double kGatheredAndScattered = 2.0;
  return one + beside(links, kGatheredAndScattered * one, products);
}

/// For a micro-batch, on one stage.
GPUMEM_INLINE double sums_seconds(const model::TrainingJob& job, const BlockWork& work, const Links& links,
                                  const Groups& groups, double blocks) {
  if (groups.tensor.count <= 1) return 0.0;
  const double sum = job.layout.sequence_parallel ? 2.0 * gather_seconds(links, groups.tensor, work.sent.hidden)
                                                  : reduce_seconds(links, groups.tensor, work.sent.hidden);
  const double forward = sum * static_cast<double>(work.sent.sums);
  const bool overlaps = job.loop == model::Loop::megatron;
  const double backward = overlaps ? sums_back(job, work, links, groups) : forward;
  const double ends = 2.0;  // the embedding's, and the gradient of what the head reads
  return blocks * (forwards(job) * forward + backward) + ends * sum;
}

/// Keys and values pass every rank; in backward with their gradients.
GPUMEM_INLINE double ring_seconds(const model::TrainingJob& job, const BlockWork& work, const Links& links,
                                  const Groups& groups, double blocks) {
  const auto ranks = static_cast<double>(groups.context.count);
  const double around = gather_seconds(links, groups.context, work.sent.keys_values * ranks);
  constexpr double kBackward = 2.0;
  if (job.loop != model::Loop::megatron) return blocks * around * (forwards(job) + kBackward);
  const double forward = beside(links, around, work.block.forward);
  return blocks * (forwards(job) * forward + beside(links, kBackward * around, work.block.backward));
}

/// To the experts and back.
GPUMEM_INLINE double routing_seconds(const model::TrainingJob& job, const BlockWork& work, const Links& links,
                                     const Groups& groups, double blocks) {
  constexpr double kThereAndBack = 2.0;
  return blocks * kThereAndBack * (forwards(job) + 1.0) * exchange_seconds(links, groups.experts, work.sent.routed);
}

}  // namespace layout_time_detail

GPUMEM_INLINE core::Result<LayoutTime> layout_time(const model::TrainingJob& job, const BlockWork& work,
                                                   const Links& links) {
  namespace detail = layout_time_detail;
  const core::Result<parallel::Sharing> sharing = parallel::sharing_of(job);
  if (!sharing) return sharing.error();
  const model::Layout& layout = job.layout;
  const detail::Groups groups = detail::groups_of(layout);
  const double stages = static_cast<double>(layout.pipeline_parallel);
  const bool pipelined = layout.pipeline_parallel > 1;
  const std::optional<detail::Slowest> found = detail::slowest_of(job, work);
  if (!found) return detail::stages_cannot_share(work.blocks);
  const auto& [slowest, blocks] = *found;

  const auto micro_batches = static_cast<double>(job.gradient_accumulation);
  const utilisation::HostCosts host;
  const double computing = std::max(slowest.forward + slowest.backward, slowest.launches * host.launch);
  const auto compute_bytes = static_cast<double>(core::element_size(model::parameter_dtype(job.precision)));
  const double reduced_bytes =
      sharing->reduced_in ? static_cast<double>(core::element_size(*sharing->reduced_in)) : compute_bytes;
  const detail::Exposed shared =
      detail::exposed({links, groups, compute_bytes, reduced_bytes}, *sharing, work, slowest, blocks);

  LayoutTime time;
  time.compute = micro_batches * computing + host.step;
  const double sums = detail::sums_seconds(job, work, links, groups, blocks);
  const double ring = detail::ring_seconds(job, work, links, groups, blocks);
  const double routing = detail::routing_seconds(job, work, links, groups, blocks);
  time.tensor = micro_batches * sums;
  time.context = micro_batches * ring;
  time.experts = micro_batches * routing;
  time.sharding = micro_batches * shared.a_pass + shared.a_step;
  if (pipelined) {
    const auto virtual_stages = static_cast<double>(layout.virtual_stages);
    const double part =
        layout.sequence_parallel ? work.sent.hidden / static_cast<double>(layout.tensor_parallel) : work.sent.hidden;
    const double sends = 2.0 * virtual_stages * send_seconds(links, groups.pipeline, part);
    const double pass = computing + sums + ring + routing + shared.a_pass + sends;
    const double idle = model::splits_backward(layout.schedule)
                            ? parallel::idle_passes(layout, job.gradient_accumulation, parallel::micro_batch_group(job))
                            : (stages - 1.0) / virtual_stages;
    time.pipeline = micro_batches * sends + idle * pass;
  }
  time.optimizer = slowest.optimizer * detail::states_factor(*sharing, compute_bytes);
  return time;
}

}  // namespace gpumem::search
