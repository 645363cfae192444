#pragma once

#include "gpumem/search/layout_time.hpp"

#include <algorithm>

#include "gpumem/parallel/layout.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/utilisation/step_time.hpp"

namespace gpumem::search {

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
  const double blocks = static_cast<double>(work.blocks) / stages;
  const bool pipelined = layout.pipeline_parallel > 1;
  const double front = work.before.forward + work.before.backward;
  const bool last_is_slower = work.behind.forward + work.behind.backward > front;
  const detail::Stage slowest =
      detail::stage_of(work, blocks, !pipelined || !last_is_slower, !pipelined || last_is_slower);

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
