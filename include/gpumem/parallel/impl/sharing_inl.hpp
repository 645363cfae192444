
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/parallel/rank_graph.hpp"
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

/// "`schedule=gpipe`".
GPUMEM_INLINE std::string name_of(Schedule schedule) {
  return "`schedule=" + std::string(model::name_of(model::kSchedules, schedule)) + "`";
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
  const bool keeps_all = layout.pipeline_parallel > 1 && model::keeps_all(layout.schedule);
  if (keeps_all && job.gradient_accumulation > kMostKept) {
    return name_of(layout.schedule) + " keeps every micro-batch of a step: " + std::to_string(kMostKept) +
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

/// The rule of schedules that the layout breaks; empty: none.
GPUMEM_INLINE std::string schedule_fault(const TrainingJob& job) {
  const Layout& layout = job.layout;
  const Schedule schedule = layout.schedule;
  const bool grouped = schedule == Schedule::interleaved || schedule == Schedule::zero_bubble;
  const bool single = schedule == Schedule::one_forward_one_backward || schedule == Schedule::gpipe;
  const bool of_megatron = schedule == Schedule::one_forward_one_backward || schedule == Schedule::interleaved;
  if (job.loop == model::Loop::megatron && !of_megatron && schedule != Schedule::gpipe) {
    return "Megatron-LM has no " + name_of(schedule) + "; say `schedule=interleaved-1f1b`";
  }
  if (layout.virtual_stages > 1 && single) return "`virtual_stages` needs `schedule=interleaved-1f1b`";
  if (!single && layout.virtual_stages == 1) {
    return name_of(schedule) + " needs two stages a rank or more; say `virtual_stages=2`";
  }
  if (model::is_v_shaped(schedule) && layout.virtual_stages != 2) {
    return name_of(schedule) + " has two stages a rank; say `virtual_stages=2`";
  }
  if (grouped && !groups_share(job)) {
    return name_of(schedule) +
           " needs a number of micro-batches (`accumulate`) that is a multiple of "
           "`pipeline_parallel`";
  }
  const std::int64_t stages = 2 * layout.pipeline_parallel;
  if (schedule == Schedule::dual_pipe_v && job.gradient_accumulation < stages) {
    return name_of(schedule) + " needs as many micro-batches as stages or more; say " + counted("accumulate", stages);
  }
  return {};
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
  if (std::string fault = schedule_fault(job); !fault.empty()) return fault;
  const Shardings kind = layout.sharding.kind;
  if (job.loop != model::Loop::megatron && (kind == Shardings::zero_2 || kind == Shardings::zero_3)) {
    return "DeepSpeed's pipelines do not take `sharding=" + parallel::name_of(layout.sharding) +
           "` (runtime/pipe/engine.py); say `sharding=zero-1`";
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
    const bool splits = model::splits_backward(layout.schedule);
    // torch refuses the latter, too (schedules.py: _check_torch_compile_compatibility).
    if (splits && (job.activation_checkpointing || job.compile)) {
      return (job.compile ? "`compile` with " : "`checkpointing` with ") + name_of(layout.schedule) +
             ", which makes weights' gradients in passes of their own; say `schedule=interleaved-1f1b`";
    }
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

GPUMEM_INLINE double most_routed(const model::TrainingJob& job) {
  constexpr double kUneven = 1.5;
  if (job.layout.expert_imbalance) return *job.layout.expert_imbalance;
  if (job.graph == nullptr) return kUneven;
  const model::RunSettings& run = job.graph->run_settings();
  if (run.even_experts) return 1.0;
  return run.expert_capacity > 0.0 ? std::max(run.expert_capacity, 1.0) : kUneven;
}

GPUMEM_INLINE std::string routing_text(const model::TrainingJob& job) {
  std::string even = "each expert gets the same number of tokens";
  const std::string rank = even + "; upper is for a rank with experts that get ";
  const double more = most_routed(job) - 1.0;
  const bool capacity = job.graph != nullptr && job.graph->run_settings().expert_capacity > 0.0;
  if (more <= 0.0) return even;
  const std::string percent = std::to_string(std::llround(more * 100.0)) + " % more";
  if (job.layout.expert_imbalance) return rank + percent + ", as the job says";
  return rank +
         (capacity ? percent + ", which their capacity allows" : "half as many again, which depends on the data");
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
  return layout_detail::refused(std::string(method) + " takes " + split + " together with " +
                                layout_detail::counted("data_parallel", job.layout.data_parallel) +
                                " only if it knows how these share the model: say `sharding=ddp`, `sharding=fsdp2` or "
                                "`sharding=distributed-optimizer`");
}

GPUMEM_INLINE core::Status check_one_gpu(const model::TrainingJob& job, std::string_view method) {
  if (core::Status possible = check(job); !possible) return possible;
  if (on_one_gpu(job.layout) && job.offload != model::Offload::parameters) return core::Done{};
  core::Status alone = check_data_parallel(job, method);
  if (!alone) return alone;
  return layout_detail::refused(std::string(method) + " is for one GPU, not for " +
                                std::to_string(job.layout.data_parallel) +
                                " in data parallel that share nothing; say how they share the model: `sharding=ddp` or "
                                "`sharding=fsdp2`, or ask model-states or one of the zero- estimators");
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

GPUMEM_INLINE std::string name_of(const model::Sharding& sharding) {
  std::string text(model::name_of(model::kShardings, sharding.kind));
  if (text.ends_with(":N")) text.replace(text.size() - 1, 1, std::to_string(sharding.count));
  return text;
}

namespace sharing_detail {

using model::Precision;
using model::Shardings;

/// The library's way of training in two bytes is with float32 masters, whatever else is asked for.
inline constexpr bool keeps_masters(Precision precision) {
  return model::has_masters(precision) || model::is_float32(precision);
}

/// Of weights that stay whole in the host's memory; empty: no option has GPUs share them.
GPUMEM_INLINE std::string shared_weights_fault(const model::TrainingJob& job) {
  const Shardings kind = job.layout.sharding.kind;
  std::string remedy;
  if (job.layout.tensor_parallel > 1) remedy = "leave out `tensor_parallel`";
  else if (job.layout.pipeline_parallel > 1) remedy = "leave out `pipeline_parallel`";
  else if (kind != Shardings::ddp && kind != Shardings::none) remedy = "say `sharding=ddp`";
  if (remedy.empty()) return {};
  const std::string offload = "`offload=" + std::string(model::name_of(model::kOffloads, job.offload)) + "`";
  return offload + " keeps whole weights in the host's memory, and is not modelled where GPUs share them; " + remedy +
         ", or leave out " + offload;
}

/// The rule that the job's precision or offloading breaks; empty: none.
GPUMEM_INLINE std::string fault(const model::TrainingJob& job) {
  const Shardings kind = job.layout.sharding.kind;
  const std::string name = "`sharding=" + name_of(job.layout.sharding) + "`";
  const bool fully = kind == Shardings::fsdp1 || kind == Shardings::fsdp2 || kind == Shardings::hsdp;
  const bool infinite = kind == Shardings::zero_3 && job.loop != model::Loop::megatron;
  if (job.offload == model::Offload::parameters && !fully && !infinite) {
    return "`offload=parameters` is FSDP's CPU offload, and ZeRO-3's; " +
           (kind == Shardings::none ? "say `sharding=fsdp2`" : name + " has none that is modelled");
  }
  for (std::string broken : {reshard_fault(job.layout), semi_sync_fault(job), float8_gather_fault(job),
                             model::bounces_weights(job.offload) ? shared_weights_fault(job) : std::string()}) {
    if (!broken.empty()) return broken;
  }
  if (job.activation_checkpointing && job.checkpoints.host_attention != model::HostAttention::none &&
      job.layout.pipeline_parallel > 1) {
    return "`+host-attention` is not modelled in the stages of a pipeline; leave it out of `checkpointing`";
  }
  if (fully || kind == Shardings::ddp || kind == Shardings::none) return {};
  if (!keeps_masters(job.precision)) {
    return name + " keeps float32 masters; say `precision=bf16-mixed`, fp16-mixed or fp32";
  }
  return {};
}

}  // namespace sharing_detail

GPUMEM_INLINE std::int64_t expert_ranks_among(const model::TrainingJob& job, std::int64_t ranks) {
  const model::Layout& layout = job.layout;
  if (layout.expert_parallel == 1 || job.graph == nullptr) return 0;
  const std::int64_t all = ranks * (layout.tensor_parallel / expert_tensor_ranks(job));
  return std::max<std::int64_t>(all / layout.expert_parallel, 1);
}

GPUMEM_INLINE core::Result<Sharing> sharing_of(const model::TrainingJob& job) {
  if (std::string fault = sharing_detail::fault(job); !fault.empty()) {
    return core::Error{core::ErrorCode::invalid_argument, std::move(fault), {}};
  }
  const bool one_rank_or_alike =
      job.layout.sharding.kind == model::Shardings::none || job.layout.sharding.kind == model::Shardings::ddp;
  if (model::row_of(job.loop).main_gradients && model::has_masters(job.precision) && one_rank_or_alike) {
    return main_gradients(job);
  }
  const model::Shardings kind = job.layout.sharding.kind;
  const bool zero =
      kind == model::Shardings::zero_1 || kind == model::Shardings::zero_2 || kind == model::Shardings::zero_3;
  if (job.loop == model::Loop::megatron && zero) return megatron_fsdp(job);
  switch (kind) {
    case model::Shardings::ddp: return ddp(job);
    case model::Shardings::fsdp1: return fsdp1(job);
    case model::Shardings::fsdp2: return fsdp2(job);
    case model::Shardings::hsdp: return hsdp(job);
    case model::Shardings::zero_1: return zero_1(job);
    case model::Shardings::zero_2: return zero_2(job);
    case model::Shardings::distributed_optimizer: return distributed_optimizer(job);
    case model::Shardings::zero_3: return zero_3(job);
    case model::Shardings::none: break;
  }
  Sharing alone;
  alone.masters = model::has_masters(job.precision);
  alone.gradients_copied = alone.masters;
  alone.block_swap = job.block_swap;
  return alone;
}

GPUMEM_INLINE std::string sharing_text(const model::TrainingJob& job) {
  const auto sharing = sharing_of(job);
  if (!sharing || job.layout.sharding.kind == model::Shardings::none) return {};
  std::string parts;
  const auto add = [&](const char* what, std::int64_t ranks) {
    if (ranks > 1)
      parts += (parts.empty() ? "" : ", ") + std::string(what) + " over " + std::to_string(ranks) + " ranks";
  };
  add("parameters", sharing->parameter_ranks);
  add("gradients", sharing->gradient_ranks);
  add("states", sharing->state_ranks);
  return parts.empty() ? "nothing is sharded" : "sharded: " + parts;
}

namespace layer_wise_detail {

/// The rank of each parameter of one kind; -1: of the other kind.
GPUMEM_INLINE std::vector<std::int64_t> owners(const std::vector<SharedParameter>& parameters, bool of_expert,
                                               std::int64_t ranks) {
  std::vector<std::size_t> by_size(parameters.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t left, std::size_t right) {
    return parameters[left].elements < parameters[right].elements;
  });
  std::vector<std::int64_t> owner(parameters.size(), -1);
  std::int64_t turn = 0;
  for (const std::size_t at : by_size) {
    if (parameters[at].of_expert != of_expert) continue;
    owner[at] = turn < ranks ? turn : 2 * ranks - 1 - turn;
    turn = (turn + 1) % (2 * ranks);
  }
  return owner;
}

/// The rank that holds most elements.
GPUMEM_INLINE std::int64_t fullest(const std::vector<SharedParameter>& parameters,
                                   const std::vector<std::int64_t>& owner, std::int64_t ranks) {
  std::vector<double> held(static_cast<std::size_t>(ranks), 0.0);
  for (std::size_t at = 0; at < parameters.size(); ++at) {
    if (owner[at] >= 0) held[static_cast<std::size_t>(owner[at])] += static_cast<double>(parameters[at].elements);
  }
  return std::max_element(held.begin(), held.end()) - held.begin();
}

/// The rank's place among those that share what is of this kind. A pipeline stage's ranks are tensor, then context,
/// then data parallel ones; those that share experts are the ones whose places in the stage differ by the experts' own
/// ranks, which are nearest.
GPUMEM_INLINE std::int64_t place_of(const model::Layout& layout, std::int64_t ranks) {
  const std::int64_t stage = layout.tensor_parallel * layout.context_parallel * layout.data_parallel;
  const std::int64_t place = layout.rank.kind == model::Ranks::one ? layout.rank.count % stage : stage - 1;
  return std::min(place / std::max<std::int64_t>(stage / ranks, 1), ranks - 1);
}

}  // namespace layer_wise_detail

GPUMEM_INLINE bool shares_layer_by_layer(const model::TrainingJob& job) {
  return job.optimizer == model::Optimizer::muon && job.layout.sharding.kind == model::Shardings::distributed_optimizer;
}

GPUMEM_INLINE std::vector<bool> held_layer_by_layer(const std::vector<SharedParameter>& parameters,
                                                    const model::Layout& layout, std::int64_t expert_ranks) {
  namespace detail = layer_wise_detail;
  std::vector<bool> held(parameters.size(), false);
  for (const bool of_expert : {false, true}) {
    const std::int64_t ranks = of_expert ? expert_ranks : sharing_ranks(layout);
    const std::vector<std::int64_t> owner = detail::owners(parameters, of_expert, ranks);
    const bool any = layout.rank.kind == model::Ranks::max || layout.rank.kind == model::Ranks::all;
    const std::int64_t rank = any ? detail::fullest(parameters, owner, ranks) : detail::place_of(layout, ranks);
    for (std::size_t at = 0; at < owner.size(); ++at) held[at] = held[at] || owner[at] == rank;
  }
  return held;
}

}  // namespace gpumem::parallel
