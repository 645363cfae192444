#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include "gpumem/adapt/adapt.hpp"
#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/estimate/evidence.hpp"
#include "gpumem/parallel/pipeline_parallel.hpp"
#include "gpumem/parallel/sharing.hpp"
#include "gpumem/search/block_work.hpp"
#include "gpumem/search/impl/block_work_inl.hpp"

namespace gpumem::search {

namespace memory_bound_detail {

/// Blocks of the shorter models.
inline constexpr std::array<std::size_t, 2> kFewer = {3, 4};

/// Bytes of an element.
GPUMEM_INLINE double size_of(core::DType type) { return static_cast<double>(core::element_size(type)); }

/// Whether what is held between steps, or a part of it, is in the host's memory.
GPUMEM_INLINE bool holds_on_host(model::Offload offload) {
  return offload == model::Offload::optimizer || offload == model::Offload::parameters;
}

/// Bytes that one parameter takes on the GPU between steps, at the least, in the types that plan/ gives them.
GPUMEM_INLINE double held_bytes(const model::TrainingJob& job, const parallel::Sharing& sharing) {
  if (sharing.on_host) return 0.0;
  const bool states_here = job.offload != model::Offload::optimizer;
  const core::DType own = model::parameter_dtype(job.precision);
  const auto state_ranks = static_cast<double>(sharing.state_ranks);
  double bytes = size_of(sharing.shard_type(own)) / static_cast<double>(sharing.parameter_ranks);
  const bool remainders = model::row_of(job.optimizer).keeps_remainders;  // of masters: two bytes at the least
  const core::DType master = remainders ? core::DType::bfloat16 : sharing.state_type(own);
  if (sharing.masters && states_here) bytes += size_of(master) / state_ranks;
  if (sharing.reduction == parallel::Reduction::main_buffer) bytes += size_of(sharing.reduced_type(own));
  const model::OptimizerRow& row = model::row_of(job.optimizer);
  const bool whole_states = row.state_shape == model::OptimizerRow::StateShape::whole && !row.paged &&
                            row.projection == model::OptimizerRow::Projection::none;
  if (whole_states && states_here) bytes += row.states * size_of(sharing.state_type(own)) / state_ranks;
  return bytes;
}

/// Blocks of the first rank, which has so many, whose activations are kept when its first backward begins.
GPUMEM_INLINE double blocks_under_way(const model::TrainingJob& job, std::int64_t of_first) {
  const model::Layout& layout = job.layout;
  const std::int64_t each = of_first / layout.virtual_stages;
  return static_cast<double>(parallel::forwards_before_backward(layout, 0, job.gradient_accumulation) * each);
}

/// Of a block's parameters, when the first block in backward has made all its gradients: these are whole, and the block
/// is, or what they are reduced in; and so is the next block, where there is one and it is gathered ahead.
GPUMEM_INLINE double backward_bytes(const parallel::Sharing& sharing, double gathered, bool has_next) {
  const double next = sharing.prefetches && has_next ? gathered : 0.0;
  if (sharing.reduction != parallel::Reduction::scattered) return gathered + next;
  const double reduced = sharing.reduced_in ? size_of(*sharing.reduced_in) : gathered;
  const double made = gathered + gathered;
  return next + std::max(made, (sharing.cat_gradients ? made : gathered) + reduced);
}

/// Of a parameter's gradient, where passes add to the rank's share of it. `own`: the type of the parameter.
GPUMEM_INLINE double share_bytes(const model::TrainingJob& job, const parallel::Sharing& sharing, core::DType own) {
  const bool stands = job.gradient_accumulation > 1 && job.layout.pipeline_parallel == 1 && !sharing.on_host;
  if (!stands || sharing.reduction != parallel::Reduction::scattered) return 0.0;
  return size_of(sharing.shard_type(own)) / static_cast<double>(sharing.gradient_ranks);
}

/// What a step's plan has of activations: when backward begins, and at most.
struct Live {
  double kept = 0.0;
  double most = 0.0;
};

GPUMEM_INLINE bool is_activation(plan::Category category) {
  using plan::Category;
  return category == Category::activation || category == Category::activation_gradient || category == Category::input ||
         category == Category::temporary;
}

/// For the second step, in which states exist.
GPUMEM_INLINE Live live_of(const plan::StepPlan& steps) {
  constexpr std::int32_t kSecond = 2;
  std::vector<double> held(steps.slots, 0.0);
  Live live;
  double now = 0.0;
  std::size_t mark = 0;
  for (std::size_t at = 0; at < steps.events.size(); ++at) {
    while (mark + 1 < steps.phases.size() && steps.phases[mark + 1].first_event <= at) ++mark;
    const plan::PhaseMark& phase = steps.phases[mark];
    const bool counts = phase.step == kSecond;
    if (counts && phase.phase == plan::Phase::backward && phase.first_event == at) live.kept = now;
    const plan::Event& event = steps.events[at];
    if (event.kind == plan::Event::Kind::allocate && is_activation(event.category)) {
      held[event.slot] = static_cast<double>(event.bytes);
      now += held[event.slot];
    } else if (event.kind == plan::Event::Kind::release) {
      now -= std::exchange(held[event.slot], 0.0);
    }
    const bool passes = phase.phase == plan::Phase::forward || phase.phase == plan::Phase::backward;
    if (counts && passes) live.most = std::max(live.most, now);
  }
  return live;
}

/// The job's split and micro-batch on one GPU of each part, nothing sharded.
GPUMEM_INLINE model::TrainingJob of_split(const model::TrainingJob& job, std::int64_t samples) {
  model::TrainingJob one = job;
  one.layout = split_of(job.layout);
  one.batch_size = samples;
  one.gradient_accumulation = 1;
  if (holds_on_host(one.offload)) one.offload = model::Offload::none;  // activations are the same
  return one;
}

}  // namespace memory_bound_detail

GPUMEM_INLINE MemoryBound::MemoryBound(const connect::WiredGraph& whole, const device::GpuProfile& gpu)
    : whole_(whole), gpu_(gpu) {
  constexpr std::array<std::size_t, 4> kFirst = {0, 1, 2, 3};
  const auto blocks = connect::repeated_blocks(whole.graph());
  if (!block_work_detail::blocks_alike(whole.graph(), blocks) || blocks.size() < kFirst.size()) return;
  for (std::size_t at = 0; at < fewer_.size(); ++at) {
    const std::span<const std::size_t> kept(kFirst.data(), memory_bound_detail::kFewer[at]);
    fewer_[at] = block_work_detail::some_blocks(whole, blocks, kept);
  }
}

/// What tensors may hold of a job that fits.
GPUMEM_INLINE std::int64_t MemoryBound::room_for(const model::TrainingJob& job) {
  const device::Communicators more = analysis::communicators(job, gpu_);
  const auto [known, fresh] =
      rooms_.try_emplace({more.count > 0, job.layout.sharding.kind, job.activation_checkpointing});
  Room& room = known->second;
  if (fresh) {
    model::TrainingJob small = job;
    if (fewer_[0] != nullptr) small = of_fewer_blocks(std::move(small), fewer_[0]);
    small.layout.pipeline_parallel = 1;
    small.layout.virtual_stages = 1;
    small.layout.schedule = {};
    analysis::Analysis analysis(std::move(small));
    const auto source = analysis.source();
    const auto context = analysis.context(gpu_);
    if (source && context) {
      const estimate::Margin margin = estimate::margin_of(job, *source, gpu_);
      const auto beside = [&](core::Bytes of_cuda) { return gpu_.capacity().count() - of_cuda.count(); };
      room = {beside(context->expected), beside(context->upper), margin.upper, margin.coverage.has_value()};
    }
  }
  const std::int64_t expected = room.expected - more.expected.count();
  if (room.covered) return expected;
  const double upper = static_cast<double>(room.upper - more.upper.count()) / room.margin;
  return std::min(expected, static_cast<std::int64_t>(std::max(upper, 0.0)));
}

GPUMEM_INLINE bool MemoryBound::too_large(const model::TrainingJob& job, std::int64_t peak) {
  return peak > room_for(job);
}

GPUMEM_INLINE std::optional<Activations> MemoryBound::measured(const model::TrainingJob& job) {
  namespace detail = memory_bound_detail;
  std::array<std::array<detail::Live, 2>, 2> live;  // by model, by samples
  for (std::size_t which = 0; which < fewer_.size(); ++which) {
    if (fewer_[which] == nullptr) return std::nullopt;
    for (std::size_t more = 0; more < 2; ++more) {
      model::TrainingJob one = detail::of_split(job, static_cast<std::int64_t>(more) + 1);
      one = of_fewer_blocks(std::move(one), fewer_[which]);
      auto& analysis = analyses_[which][one.activation_checkpointing ? 1 : 0];
      if (analysis == nullptr) analysis = std::make_unique<analysis::Analysis>(std::move(one));
      else analysis->set_job(std::move(one));
      const auto steps = analysis->steps();
      if (!steps) return std::nullopt;
      live[which][more] = detail::live_of(**steps);
    }
  }
  const auto of_block = [&](double detail::Live::*figure, std::size_t more) {
    return std::max(0.0, live[1][more].*figure - live[0][more].*figure);
  };
  Activations found;
  found.kept = of_block(&detail::Live::kept, 0);
  found.kept_more = of_block(&detail::Live::kept, 1) - found.kept;
  found.most = live[1][0].most;
  found.most_more = live[1][1].most - live[1][0].most;
  found.most_block = of_block(&detail::Live::most, 0);
  found.most_block_more = of_block(&detail::Live::most, 1) - found.most_block;
  return found;
}

GPUMEM_INLINE const std::optional<Activations>& MemoryBound::activations_of(const model::TrainingJob& job) {
  const model::Layout& layout = job.layout;
  const std::int64_t kind = job.activation_checkpointing ? 1 + static_cast<std::int64_t>(job.checkpoints.kind) : 0;
  const Split split = {layout.tensor_parallel,
                       layout.sequence_parallel ? 1 : 0,
                       layout.context_parallel,
                       layout.expert_parallel,
                       kind,
                       static_cast<std::int64_t>(job.loop)};
  const auto [known, fresh] = known_.try_emplace(split);
  if (fresh) known->second = measured(job);
  return known->second;
}

GPUMEM_INLINE bool MemoryBound::too_large(const model::TrainingJob& job, const BlockWork& work) {
  namespace detail = memory_bound_detail;
  const bool counted = job.activation_checkpointing &&
                       (job.checkpoints.count > 0 || job.checkpoints.host_attention != model::HostAttention::none);
  const bool known = job.offload == model::Offload::none || detail::holds_on_host(job.offload);
  if (adapt::adapts(job) || !known || counted) return false;
  const auto sharing = parallel::sharing_of(job);
  if (!sharing) return false;
  const model::Layout& layout = job.layout;
  const bool whole = layout.pipeline_parallel == 1;
  const std::vector<std::int64_t> ranks = parallel::blocks_of_ranks(work.blocks, layout, parallel::shares_of(job));
  if (ranks.empty()) return false;
  const auto of_block = static_cast<double>(work.block.parameters);
  const auto before = static_cast<double>(work.before.parameters);
  const auto behind = static_cast<double>(work.behind.parameters);
  // What is gathered in addition to the shards: the root's while a pass runs, a block's while it runs.
  const bool gathers = sharing->gather != parallel::Gather::never && !sharing->layer_by_layer;
  const core::DType own = model::parameter_dtype(job.precision);
  const double gathered = gathers ? detail::size_of(own) : 0.0;
  const double held = detail::held_bytes(job, *sharing) + detail::share_bytes(job, *sharing, own);
  double first =
      held * static_cast<double>(ranks.front()) * of_block + (held + gathered) * (before + (whole ? behind : 0.0));
  double last =
      held * static_cast<double>(ranks.back()) * of_block + (held + gathered) * (behind + (whole ? before : 0.0));
  const auto room = static_cast<double>(room_for(job));
  if (std::max(first, last) > room) return true;
  if (model::asks_for_free(job.loss_form.kind)) return false;  // its chunks are known where the job is run
  const std::optional<Activations>& activations = activations_of(job);
  if (!activations) return false;
  const auto more = static_cast<double>(job.batch_size - 1);
  const double kept = activations->kept + more * activations->kept_more;
  const double under_way = detail::blocks_under_way(job, ranks.front());
  const double in_backward = detail::backward_bytes(*sharing, gathered, ranks.front() > 1) * of_block;
  // A first stage of an embedding alone has no block to run.
  if (ranks.front() > 0) {
    first += std::max(kept * under_way + gathered * of_block, kept * (under_way - 1.0) + in_backward);
  }
  const double further = static_cast<double>(ranks.back()) - static_cast<double>(detail::kFewer.back());
  const double a_block = activations->most_block + more * activations->most_block_more;
  // A rank of fewer blocks than the smaller model has: nothing is said about it.
  if (further >= 0.0) last += activations->most + more * activations->most_more + further * a_block;
  return std::max(first, last) > room;
}

GPUMEM_INLINE bool MemoryBound::first_rank_too_large(analysis::Analysis& analysis, model::TrainingJob job) {
  if (model::asks_for_free(job.loss_form.kind)) return false;
  if (job.layout.pipeline_parallel > 1) job.layout.rank = {model::Ranks::one, 0};
  analysis.set_job(job);
  const auto more = analysis.holds_more_than(room_for(job));
  return more && *more;
}

}  // namespace gpumem::search
