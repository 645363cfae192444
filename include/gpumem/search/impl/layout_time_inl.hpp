#pragma once

#include "gpumem/search/layout_time.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/parallel/layout.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/utilisation/step_time.hpp"

namespace gpumem::search {

namespace links_detail {

/// The share of a data sheet's bandwidth that rings reach. Assumed.
inline constexpr double kReached = 0.8;
inline constexpr double kLinkHop = 3.4e-6;
inline constexpr double kNetworkHop = 14e-6;

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
  if (together == group.count) return links.link * kReached;
  const double out = links.network * static_cast<double>(together);
  return (together == 1 ? out : std::min(links.link, out)) * kReached;
}

/// Once around the ring.
GPUMEM_INLINE double hops_seconds(const Links& links, const Group& group) {
  const std::int64_t together = in_a_node(links, group);
  const std::int64_t nodes = (group.count + together - 1) / together;
  const std::int64_t between = nodes - 1;
  return kNetworkHop * static_cast<double>(between) + kLinkHop * static_cast<double>(group.count - 1 - between);
}

}  // namespace links_detail

GPUMEM_INLINE core::Result<Links> links_of(const device::GpuProfile& gpu, const LinkOptions& options) {
  namespace detail = links_detail;
  const auto refused = [](const char* message) { return core::Error{core::ErrorCode::invalid_argument, message, {}}; };
  if (options.gpus_per_node && *options.gpus_per_node < 1) return refused("`gpus_per_node` counts from 1");
  const double told = options.network_gbps.value_or(1.0);
  if (!(std::isfinite(told) && told > 0.0)) return refused("`network_gbps` must be more than 0, such as 400");
  Links links;
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
  links.assumed.push_back(
      {"links", "collectives reach 0.8 of the bandwidth that data sheets give for links and network"});
  return links;
}

GPUMEM_INLINE double gather_seconds(const Links& links, const Group& group, double bytes) {
  if (group.count <= 1 || bytes <= 0.0) return 0.0;
  const auto ranks = static_cast<double>(group.count);
  return bytes * (ranks - 1.0) / ranks / links_detail::bandwidth(links, group) +
         links_detail::hops_seconds(links, group);
}

GPUMEM_INLINE double reduce_seconds(const Links& links, const Group& group, double bytes) {
  return 2.0 * gather_seconds(links, group, bytes);
}

GPUMEM_INLINE double exchange_seconds(const Links& links, const Group& group, double bytes) {
  if (group.count <= 1 || bytes <= 0.0) return 0.0;
  const std::int64_t together = links_detail::in_a_node(links, group);
  const auto ranks = static_cast<double>(group.count);
  const double out = static_cast<double>(group.count - together) / ranks * bytes / links.network;
  const double within = static_cast<double>(together - 1) / ranks * bytes / links.link;
  const double hop = together < group.count ? links_detail::kNetworkHop : links_detail::kLinkHop;
  return std::max(out, within) / links_detail::kReached + hop;
}

GPUMEM_INLINE double send_seconds(const Links& links, const Group& group, double bytes) {
  if (group.count <= 1 || bytes <= 0.0) return 0.0;
  const bool within = links_detail::in_a_node(links, group) == group.count;
  return bytes / ((within ? links.link : links.network) * links_detail::kReached) +
         (within ? links_detail::kLinkHop : links_detail::kNetworkHop);
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

/// Parameters are gathered block by block: while a block runs, the next one comes and the last one's gradients go.
GPUMEM_INLINE Exposed of_sharded_parameters(const Traffic& traffic, const BlockWork& work, const Stage& stage,
                                            double blocks) {
  const auto parameters = static_cast<double>(work.block.parameters);
  const double gathered = traffic.gather(parameters);
  const double forward = std::max(0.0, gathered - work.block.forward);
  const double backward = std::max(0.0, gathered + traffic.scatter(parameters) - work.block.backward);
  const double root = traffic.gather(stage.root_parameters) + traffic.scatter(stage.root_parameters);
  return {blocks * (forward + backward) + root, 0.0};
}

GPUMEM_INLINE Exposed of_whole_parameters(const Traffic& traffic, const Sharing& sharing, const Stage& stage) {
  const double gathered = sharing.state_ranks > 1 ? traffic.gather(stage.parameters) : 0.0;
  switch (sharing.reduction) {
    case Reduction::bucketed: return {0.0, std::max(0.0, traffic.reduce(stage.parameters) - stage.backward)};
    case Reduction::main_buffer: {
      const bool shares = sharing.state_ranks > 1;
      const double reduced = shares ? traffic.scatter(stage.parameters) : traffic.reduce(stage.parameters);
      return {0.0, std::max(0.0, reduced - stage.backward) + std::max(0.0, gathered - stage.forward)};
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
  if (sharing.gather != parallel::Gather::never) return of_sharded_parameters(traffic, work, stage, blocks);
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

/// For a micro-batch, on one stage.
GPUMEM_INLINE double sums_seconds(const model::TrainingJob& job, const BlockWork& work, const Links& links,
                                  const Groups& groups, double blocks) {
  const double one = reduce_seconds(links, groups.tensor, work.sent.hidden);
  const double ends = 2.0;  // the embedding's, and the gradient of what the head reads
  return one * (static_cast<double>(work.sent.sums) * blocks * (forwards(job) + 1.0) + ends);
}

/// Keys and values pass every rank; in backward with their gradients.
GPUMEM_INLINE double ring_seconds(const model::TrainingJob& job, const BlockWork& work, const Links& links,
                                  const Groups& groups, double blocks) {
  const auto ranks = static_cast<double>(groups.context.count);
  const double around = gather_seconds(links, groups.context, work.sent.keys_values * ranks);
  constexpr double kBackward = 2.0;
  return blocks * around * (forwards(job) + kBackward);
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
    time.pipeline = micro_batches * sends + (stages - 1.0) / virtual_stages * pass;
  }
  time.optimizer = slowest.optimizer * detail::states_factor(*sharing, compute_bytes);
  return time;
}

}  // namespace gpumem::search
