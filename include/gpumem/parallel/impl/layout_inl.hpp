#pragma once

#include "gpumem/parallel/layout.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "gpumem/core/bytes.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/parallel/sharing.hpp"

namespace gpumem::parallel {

namespace layout_detail {

using model::Layout;
using model::Ranks;
using model::Schedule;
using model::Shardings;
using model::TrainingJob;

GPUMEM_INLINE core::Error refused(std::string message) {
  return {core::ErrorCode::invalid_argument, std::move(message), {}};
}

/// "`tensor_parallel=8`".
GPUMEM_INLINE std::string counted(std::string_view option, std::int64_t value) {
  return "`" + std::string(option) + "=" + std::to_string(value) + "`";
}

/// The rule that the counts themselves break; empty: none. What is beyond is no cluster, and products of such counts
/// would not fit 64 bits.
GPUMEM_INLINE std::string size_fault(const TrainingJob& job) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  constexpr std::int64_t kMostKept = 4096;
  const Layout& layout = job.layout;
  for (const std::int64_t count : {layout.data_parallel, layout.tensor_parallel, layout.pipeline_parallel,
                                   layout.virtual_stages, layout.context_parallel, layout.expert_parallel}) {
    if (count < 1 || count > kMost) {
      return "a layout counts from 1 to " + std::to_string(kMost) + " of each, and here are " + std::to_string(count);
    }
  }
  const bool keeps_all = layout.pipeline_parallel > 1 && layout.schedule == Schedule::gpipe;
  if (keeps_all && job.gradient_accumulation > kMostKept) {
    return "`schedule=gpipe` keeps every micro-batch of a step: " + std::to_string(kMostKept) +
           " at most; say `schedule=1f1b`";
  }
  return {};
}

/// The rule of sharding that the layout breaks; empty: none.
GPUMEM_INLINE std::string sharding_fault(const Layout& layout) {
  const std::int64_t group = layout.sharding.count;
  const std::int64_t ranks = sharing_ranks(layout);
  if (layout.sharding.kind != Shardings::hsdp || (group >= 1 && ranks % group == 0)) return {};
  const std::int64_t shared = std::gcd(ranks, std::max<std::int64_t>(group, 1));
  return "`sharding=" + parallel::name_of(layout.sharding) + "` cuts parameters within groups of " +
         std::to_string(group) + " ranks, and " + std::to_string(ranks) +
         " ranks are not a multiple of that; say `sharding=" +
         (shared > 1 ? "hsdp:" + std::to_string(shared) : std::string("fsdp2")) + "`";
}

/// Whether an interleaved schedule can run the step's micro-batches: torch's in groups that are alike; Megatron's last
/// group may be smaller, but not smaller than the pipeline.
GPUMEM_INLINE bool groups_share(const TrainingJob& job) {
  const std::int64_t group = micro_batch_group(job);
  const std::int64_t ranks = job.layout.pipeline_parallel;
  const std::int64_t rest = job.gradient_accumulation % group;
  if (job.loop != model::Loop::megatron) return rest == 0 && job.gradient_accumulation >= ranks;
  return group >= ranks && group <= job.gradient_accumulation && (rest == 0 || rest >= ranks);
}

/// The rule of pipelines that the layout breaks; empty: none.
GPUMEM_INLINE std::string pipeline_fault(const TrainingJob& job) {
  const Layout& layout = job.layout;
  if (layout.pipeline_parallel == 1) {
    if (layout.virtual_stages > 1) return "`virtual_stages` needs a pipeline; say `pipeline_parallel=4`";
    if (layout.first_stage_layers || layout.last_stage_layers) {
      return "`first_stage_layers` and `last_stage_layers` are a pipeline's; say `pipeline_parallel=4`";
    }
    if (!layout.pipeline_layers.empty()) {
      return "`pipeline_layers` is a pipeline's, and is " + core::quoted(core::shortened(layout.pipeline_layers, 60)) +
             "; say `pipeline_parallel=4`";
    }
    if (layout.schedule != Schedule::one_forward_one_backward) {
      return "`schedule` is a pipeline's; say `pipeline_parallel=4`";
    }
    return {};
  }
  const bool interleaved = layout.schedule == Schedule::interleaved;
  if (layout.virtual_stages > 1 && !interleaved) {
    return "`virtual_stages` needs `schedule=interleaved-1f1b`";
  }
  if (interleaved && layout.virtual_stages == 1) {
    return "`schedule=interleaved-1f1b` needs two stages a rank or more; say `virtual_stages=2`";
  }
  if (interleaved && !groups_share(job)) {
    return "`schedule=interleaved-1f1b` needs a number of micro-batches (`accumulate`) that is a multiple of "
           "`pipeline_parallel`";
  }
  const bool by_ends = layout.first_stage_layers || layout.last_stage_layers;
  if (by_ends && !layout.pipeline_layers.empty()) {
    return "`pipeline_layers` says the layers of every stage; leave out `first_stage_layers` and `last_stage_layers`";
  }
  if (layout.pipeline_layers.empty() || layers_of_stages(layout.pipeline_layers)) return {};
  return "`pipeline_layers` is " + core::quoted(core::shortened(layout.pipeline_layers, 60)) +
         "; give the layers of each stage as 15,16,15, or Megatron's layout as Et*15|t*16|t*15L";
}

/// The rule of groups and ranks that the layout breaks, `world` ranks in all; empty: none.
GPUMEM_INLINE std::string group_fault(const Layout& layout, std::int64_t world) {
  if (layout.sequence_parallel && layout.tensor_parallel == 1) {
    return "`sequence_parallel` splits what tensor parallel ranks hold in common; say `tensor_parallel=2`";
  }
  const std::int64_t stage = world / layout.pipeline_parallel;
  if (stage % layout.expert_parallel != 0) {
    return counted("expert_parallel", layout.expert_parallel) + " must divide the " + std::to_string(stage) +
           " ranks of a pipeline stage (data x tensor x context parallel); say " +
           counted("expert_parallel", std::gcd(stage, layout.expert_parallel));
  }
  if (layout.rank.kind == Ranks::one && (layout.rank.count < 0 || layout.rank.count >= world)) {
    return "there is no rank " + std::to_string(layout.rank.count) + " among " + std::to_string(world) +
           "; ranks count from 0: say " + counted("rank", world - 1) + " for the last one";
  }
  return {};
}

/// The first of the options that split the model itself; empty: none.
GPUMEM_INLINE std::string split_of_model(const Layout& layout) {
  if (layout.tensor_parallel > 1) return counted("tensor_parallel", layout.tensor_parallel);
  if (layout.pipeline_parallel > 1) return counted("pipeline_parallel", layout.pipeline_parallel);
  if (layout.context_parallel > 1) return counted("context_parallel", layout.context_parallel);
  if (layout.expert_parallel > 1) return counted("expert_parallel", layout.expert_parallel);
  return {};
}

/// The rule of updates in backward that the job breaks; empty: none. Source: torchtune 0.4,
/// recipes/full_finetune_single_device.py and full_finetune_distributed.py (optimizer_in_bwd).
GPUMEM_INLINE std::string in_backward_fault(const TrainingJob& job) {
  if (!job.optimizer_in_backward) return {};
  const Shardings kind = job.layout.sharding.kind;
  if (job.gradient_accumulation > 1) return "`optimizer_in_backward` with `accumulate`; each pass would be a step";
  if (job.layout.pipeline_parallel > 1) return "`optimizer_in_backward` in a pipeline";
  if (kind != Shardings::none && kind != Shardings::fsdp2 && kind != Shardings::hsdp) {
    return "`optimizer_in_backward` with `sharding=" + parallel::name_of(job.layout.sharding) +
           "`; say `sharding=fsdp2`";
  }
  return {};
}

/// The first combination that no plan follows; empty: none.
GPUMEM_INLINE std::string not_modelled(const TrainingJob& job) {
  const Layout& layout = job.layout;
  if (layout.pipeline_parallel > 1) {
    if (job.prefetch) return "`prefetch` in a pipeline";
    if (job.batch_lengths != model::BatchLengths::alike) return "`batch_lengths` in a pipeline";
  }
  // Ranks that share parameters do not hold the same experts.
  const Shardings kind = layout.sharding.kind;
  const bool deepspeed = job.loop != model::Loop::megatron &&
                         (kind == Shardings::zero_1 || kind == Shardings::zero_2 || kind == Shardings::zero_3);
  if (layout.expert_parallel > 1 && (deepspeed || kind == Shardings::fsdp1)) {
    return counted("expert_parallel", layout.expert_parallel) +
           " cannot be combined with `sharding=" + parallel::name_of(layout.sharding) +
           "`; say `sharding=fsdp2`, `sharding=distributed-optimizer` or `sharding=ddp`";
  }
  return in_backward_fault(job);
}

}  // namespace layout_detail

GPUMEM_INLINE core::Result<std::int64_t> world_size(const model::Layout& layout) {
  const core::Checked ranks = core::Checked(layout.data_parallel) * core::Checked(layout.tensor_parallel) *
                              core::Checked(layout.pipeline_parallel) * core::Checked(layout.context_parallel);
  if (!ranks.valid())
    return core::Error{core::ErrorCode::overflow, "the layout has more ranks than can be counted", {}};
  return *ranks.value();
}

GPUMEM_INLINE std::int64_t sharing_ranks(const model::Layout& layout) {
  return layout.data_parallel * layout.context_parallel;
}

GPUMEM_INLINE std::int64_t ranks_of_instance(const model::TrainingJob& job, std::int64_t ranks) {
  return job.graph == nullptr ? ranks
                              : std::max<std::int64_t>(ranks / job.graph->run_settings().optimizer_instances, 1);
}

GPUMEM_INLINE std::int64_t expert_sharing_ranks(const model::Layout& layout, std::int64_t tensor_ranks) {
  const std::int64_t ranks = sharing_ranks(layout) * (layout.tensor_parallel / tensor_ranks);
  return std::max<std::int64_t>(ranks / layout.expert_parallel, 1);
}

GPUMEM_INLINE std::int64_t tokens_multiple(const model::Layout& layout) {
  const core::Checked parts =
      layout.context_parallel > 1 ? core::Checked(2) * core::Checked(layout.context_parallel) : core::Checked(1);
  const core::Checked multiple = parts * core::Checked(layout.sequence_parallel ? layout.tensor_parallel : 1);
  return multiple.value().value_or(1);
}

GPUMEM_INLINE bool on_one_gpu(const model::Layout& layout) {
  return layout.data_parallel == 1 && layout.tensor_parallel == 1 && layout.pipeline_parallel == 1 &&
         layout.context_parallel == 1 && layout.expert_parallel == 1 && layout.sharding.kind == model::Shardings::none;
}

GPUMEM_INLINE core::Status check(const model::TrainingJob& job) {
  if (std::string fault = layout_detail::size_fault(job); !fault.empty()) {
    return layout_detail::refused(std::move(fault));
  }
  const core::Result<std::int64_t> world = world_size(job.layout);
  if (!world) return world.error();
  for (std::string fault : {layout_detail::pipeline_fault(job), layout_detail::group_fault(job.layout, *world),
                            layout_detail::sharding_fault(job.layout)}) {
    if (!fault.empty()) return layout_detail::refused(std::move(fault));
  }
  return core::Done{};
}

GPUMEM_INLINE core::Status check_modelled(const model::TrainingJob& job, std::string_view method) {
  core::Status possible = check(job);
  if (!possible) return possible;
  if (const std::string missing = layout_detail::not_modelled(job); !missing.empty()) {
    return layout_detail::refused(std::string(method) + " does not model " + missing);
  }
  const auto sharing = sharing_of(job);
  if (!sharing) return sharing.error();
  const std::string split = layout_detail::split_of_model(job.layout);
  if (job.layout.sharding.kind != model::Shardings::none) return core::Done{};
  if (split.empty()) return check_one_gpu(job, method);
  if (job.layout.data_parallel == 1) return core::Done{};
  return layout_detail::refused(
      std::string(method) + " takes " + split + " together with " +
      layout_detail::counted("data_parallel", job.layout.data_parallel) +
      " only where it is said how these share the model: say `sharding=ddp`, `sharding=fsdp2` or "
      "`sharding=distributed-optimizer`");
}

GPUMEM_INLINE core::Status check_one_gpu(const model::TrainingJob& job, std::string_view method) {
  if (core::Status possible = check(job); !possible) return possible;
  if (on_one_gpu(job.layout) && job.offload != model::Offload::parameters) return core::Done{};
  core::Status alone = check_data_parallel(job, method);
  if (!alone) return alone;
  return layout_detail::refused(std::string(method) + " is for one GPU, not for " +
                                std::to_string(job.layout.data_parallel) +
                                " in data parallel; model-states and the zero- estimators take these, and replay where "
                                "it is said how they share the model: say `sharding=ddp` or `sharding=fsdp2`");
}

GPUMEM_INLINE core::Status check_data_parallel(const model::TrainingJob& job, std::string_view method,
                                               std::string_view remedy) {
  core::Status possible = check(job);
  if (!possible) return possible;
  std::string split = layout_detail::split_of_model(job.layout);
  if (split.empty() && job.layout.sharding.kind != model::Shardings::none) {
    split = "`sharding=" + name_of(job.layout.sharding) + "`";
  }
  if (split.empty() && job.offload == model::Offload::parameters) split = "`offload=parameters`";
  if (split.empty()) return core::Done{};
  return layout_detail::refused(std::string(method) + " does not model " + split + "; " + std::string(remedy));
}

GPUMEM_INLINE Communicators communicators(const model::Layout& layout) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  constexpr std::int64_t kGuess = 400;
  constexpr std::int64_t kLeastSeen = 200;
  constexpr std::int64_t kMostSeen = 2048;
  const bool alone = layout.data_parallel == 1 && layout.tensor_parallel == 1 && layout.pipeline_parallel == 1 &&
                     layout.context_parallel == 1;
  if (alone) return {};
  return {core::Bytes(kGuess * kMiB), core::Bytes(kLeastSeen * kMiB), core::Bytes(kMostSeen * kMiB)};
}

GPUMEM_INLINE std::string name_of(const model::Sharding& sharding) {
  std::string text(model::name_of(model::kShardings, sharding.kind));
  if (text.ends_with(":N")) text.replace(text.size() - 1, 1, std::to_string(sharding.count));
  return text;
}

}  // namespace gpumem::parallel
