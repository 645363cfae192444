#pragma once

#include "gpumem/parallel/sharing.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "gpumem/parallel/layout.hpp"
#include "gpumem/parallel/rank_graph.hpp"

namespace gpumem::parallel {

namespace sharing_detail {

using model::Precision;
using model::Shardings;

/// The library's way of training in two bytes is with float32 masters, whatever else is asked for.
inline constexpr bool keeps_masters(Precision precision) {
  return model::has_masters(precision) || precision == Precision::fp32 || precision == Precision::fp32_strict;
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
  if (job.offload == model::Offload::parameters && !fully) {
    return "`offload=parameters` is FSDP's CPU offload; " +
           (kind == Shardings::none ? "say `sharding=fsdp2`" : name + " has none that is modelled");
  }
  if (model::bounces_weights(job.offload)) {
    if (std::string shared = shared_weights_fault(job); !shared.empty()) return shared;
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
  const std::int64_t all = ranks * (layout.tensor_parallel / expert_tensor_ranks(*job.graph, layout));
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
