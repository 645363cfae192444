// Input: a job with its layout (model/layout.hpp).
// Output: whether such a layout is possible, which rule it breaks if not, and what gpumem models of it; Sharing: what
// its sharding does to parameters, gradients and the optimizer's states, as figures and choices that the step's plan
// follows. One function a sharding says how its framework does it; sharing_of() is the list.
// Units: ranks, elements, element types.
// Source: the rules of megatron/core/parallel_state.py and megatron/training/arguments.py of Megatron-LM,
// torchtitan/distributed/parallel_dims.py, torch/distributed/device_mesh.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/core/shape.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::parallel {

/// For the whole job. Errors: overflow for more than 64 bits count.
[[nodiscard]] core::Result<std::int64_t> world_size(const model::Layout& layout);

/// Ranks that hold the same parameters where nothing is sharded, and so share them where something is: Megatron's and
/// torchtitan's shards span context parallel ranks as well. The job passed check().
[[nodiscard]] std::int64_t sharing_ranks(const model::Layout& layout);

/// Ranks that hold the same part of the same experts, where this many tensor parallel ranks share an expert's weights.
[[nodiscard]] std::int64_t expert_sharing_ranks(const model::Layout& layout, std::int64_t tensor_ranks);

/// Of so many ranks that could share a distributed optimizer's states, those that do: with several instances
/// (num_distributed_optimizer_instances) each cuts masters and states over its part of the ranks.
[[nodiscard]] std::int64_t ranks_of_instance(const model::TrainingJob& job, std::int64_t ranks);

/// How many times its even share of tokens the experts of a rank may get: as the job says, or else as the router's rule
/// allows. Experts take no more than their capacity, and exactly that where they are padded to it; without a capacity
/// (dropless, with an auxiliary loss or a bias in its place) nothing bounds it, and 1.5 is a guess. Source: Megatron-LM
/// core r0.12, core/transformer/moe/moe_utils.py (get_capacity, topk_softmax_with_capacity), router.py
/// (moe_router_force_load_balancing).
[[nodiscard]] double most_routed(const model::TrainingJob& job);

/// The same for people: "each expert gets the same number of tokens; upper is for ..".
[[nodiscard]] std::string routing_text(const model::TrainingJob& job);

/// Sequences are a multiple of this many tokens: context parallel ranks have two parts of each (torch and Megatron
/// balance causal masks so), and sequence parallel ranks a part of these.
[[nodiscard]] std::int64_t tokens_multiple(const model::Layout& layout);

/// Whether it is one GPU's job.
[[nodiscard]] bool on_one_gpu(const model::Layout& layout);

/// Done if the layout can be. What needs the model (heads, layers, experts that must divide) is looked at where the
/// model is split. Errors: invalid_argument, naming the rule.
[[nodiscard]] core::Status check(const model::TrainingJob& job);

/// Done if the job trains on one GPU. `method` is named in the message. Errors: invalid_argument for several GPUs.
[[nodiscard]] core::Status check_one_gpu(const model::TrainingJob& job, std::string_view method);

/// Done if the job trains on one GPU, or on several in data parallel without further options: for formulas that are
/// about one sharding. `remedy`: what the caller has in place of it. Errors: invalid_argument for any other layout.
[[nodiscard]] core::Status check_data_parallel(const model::TrainingJob& job, std::string_view method,
                                               std::string_view remedy = "use `estimator=replay`");

/// Done if `method` may answer for the layout by the step's plan: it can be, and gpumem models each part of it. Errors:
/// those of check(); invalid_argument, naming the option that is not modelled.
[[nodiscard]] core::Status check_modelled(const model::TrainingJob& job, std::string_view method);

/// "fsdp2", "hsdp:4".
[[nodiscard]] std::string name_of(const model::Sharding& sharding);

/// How a unit (a repeated block, or all that is in none; or a layer) gets its whole parameters before it is called.
enum class Gather : std::uint8_t {
  never,       ///< they are whole all the time
  in_place,    ///< into one flat parameter, of which the parameters are views
  copied_out,  ///< into a buffer, and from there into each parameter
};

/// What becomes of a gradient that backward has made.
enum class Reduction : std::uint8_t {
  none,         ///< it stays whole until zero_grad
  bucketed,     ///< it stays too, and is copied into a bucket that is reduced
  scattered,    ///< those of a unit are reduced together, and each rank keeps its share
  partitioned,  ///< those of a bucket are reduced, and each rank keeps its share
  main_buffer,  ///< it is added to a buffer in float32 that is never freed
};

struct Sharing {
  Gather gather = Gather::never;
  std::int64_t parameter_ranks = 1;  ///< that share each parameter
  /// Weights that are multiplied in eight bits are gathered so. Source: torchao 0.9, float8/fsdp_utils.py
  /// (WeightWithDynamicFloat8CastTensor: fsdp_pre_all_gather, fsdp_post_all_gather).
  bool gathers_float8 = false;
  bool layer_by_layer = false;           ///< each layer with parameters is a unit of its own
  std::int64_t persistent_elements = 0;  ///< parameters up to this size are always whole, in addition to their shards
  std::int64_t reuse_elements = 0;       ///< a unit that is called again before this many other elements is not freed
  bool prefetches = true;                ///< in backward the next unit is gathered while this one runs
  std::int64_t prefetch_elements = 0;    ///< of units gathered ahead in backward; 0: one unit
  std::int64_t expert_ranks = 0;  ///< that share an expert's parameters, gradients and states; 0: as many as others'
  bool whole_for_step =
      false;  ///< gradients stay whole while a step's micro-batches run, and units gathered behind a backward
  std::int64_t queue_elements = 0;  ///< of gradients whose reductions may be under way; 0: one unit's
  /// Ranks over which a unit's parameters are cut between its forward and its backward. 1: they stay whole; 0: nothing
  /// of them stays but the shards.
  std::int64_t kept_over = 0;
  bool ends_apart = false;         ///< what comes before the blocks, and what comes after them, are units of their own
  std::int64_t end_kept_over = 1;  ///< the same as `kept_over`, of what comes after the blocks
  bool gathers_again = false;      ///< behind a second run; ended blocks are gathered, too, until backward has ended
  bool shares_ended = false;       ///< each is used up when it is there: the optimizer runs in backward
  bool shares_stand = false;       ///< the shares of gradients are there from the start on
  bool float32_shards = false;     ///< shards of trained parameters are float32, whatever is gathered and computed in

  Reduction reduction = Reduction::none;
  std::int64_t gradient_ranks = 1;             ///< that share each gradient after its reduction
  std::optional<core::DType> reduced_in = {};  ///< nothing: in the gradient's type
  std::int64_t bucket_bytes = 0;               ///< of bucketed gradients
  std::int64_t first_bucket_bytes = 0;         ///< of the first bucket to be full
  std::int64_t bucket_elements = 0;            ///< of partitioned gradients
  bool buffers_stand = false;                  ///< bucket and shares of partitioned gradients, from the start on
  bool cat_gradients = false;                  ///< a unit's gradients become one tensor before they are reduced
  bool keeps_frozen_inputs = false;            ///< until backward ends: of units whose parameters are all frozen
  bool adapters_apart = false;                 ///< adapters are no part of the unit that they are in
  bool shares_on_host = false;                 ///< of partitioned gradients
  bool gradients_until_forward = false;        ///< zero_grad() does not release them; the next forward does

  bool moves_weights = false;  ///< trained weights are copied into a buffer, which comes with that of the gradients

  std::int64_t state_ranks = 1;                      ///< that share masters and states
  bool masters = false;                              ///< float32 masters, besides the parameters
  bool gradients_copied = false;                     ///< the step makes float32 copies of the gradients for the masters
  bool on_host = false;                              ///< shards, their gradients and states are in the host's memory
  model::Counted<model::BlockSwap> block_swap = {};  ///< of a model that nothing shards

  // Of a trained parameter whose own type this is: what its shard, its masters and states, and its gradient while it is
  // reduced are held in.
  [[nodiscard]] core::DType shard_type(core::DType own) const { return float32_shards ? core::DType::float32 : own; }
  [[nodiscard]] core::DType state_type(core::DType own) const {
    return masters || float32_shards ? core::DType::float32 : own;
  }
  [[nodiscard]] core::DType reduced_type(core::DType own) const { return reduced_in.value_or(own); }
};

/// What the job's layout does. Errors: invalid_argument where the sharding is not modelled, or not with the job's
/// precision or offloading.
[[nodiscard]] core::Result<Sharing> sharing_of(const model::TrainingJob& job);

/// "sharded: parameters over 8 ranks, ...", for people; empty for a job whose layout names no sharding.
[[nodiscard]] std::string sharing_text(const model::TrainingJob& job);

// Input: a job under DistributedDataParallel.
// Output: its Sharing: every rank holds everything, and gradients are copied into buckets, in the order in which
// backward makes them.
// Units: bytes.
//
// Source: torch/nn/parallel/distributed.py and torch/csrc/distributed/c10d/reducer.cpp of PyTorch 2.6: buckets of 25
// MiB (bucket_cap_mb), a first one of 1 MiB (kDefaultFirstBucketBytes), allocated when the model is wrapped;
// gradient_as_bucket_view=False, so that gradients are held in addition to the buckets.

[[nodiscard]] inline Sharing ddp(const model::TrainingJob& job) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  Sharing sharing;
  sharing.reduction = Reduction::bucketed;
  sharing.bucket_bytes = 25 * kMiB;
  sharing.first_bucket_bytes = kMiB;
  sharing.masters = model::has_masters(job.precision);
  sharing.gradients_copied = sharing.masters;
  sharing.block_swap = job.block_swap;
  return sharing;
}

// Input: a job under DeepSpeed's ZeRO-1, ZeRO-2 or ZeRO-3.
// Output: its Sharing: parameters are whole; masters and states, always float32, are split over the ranks. Gradients
// stay whole until the step (1), or are reduced a bucket at a time, and each rank then keeps its share (2). Updated
// parameters are gathered.
// Units: ranks, elements.
//
// Source: DeepSpeed 0.15, runtime/zero/stage_1_and_2.py and runtime/zero/config.py: reduce_bucket_size,
// contiguous_gradients, no overlap_comm (whose buffer would be double). The shares of the gradients become float32 in
// the step (get_flat_partition, .to(fp32)).

[[nodiscard]] inline Sharing zero_1(const model::TrainingJob& job) {
  Sharing sharing;
  sharing.state_ranks = sharing_ranks(job.layout);
  sharing.masters = true;
  sharing.gradients_copied = true;
  return sharing;
}

[[nodiscard]] inline Sharing zero_2(const model::TrainingJob& job) {
  Sharing sharing = zero_1(job);
  sharing.reduction = Reduction::partitioned;
  sharing.gradient_ranks = sharing.state_ranks;
  sharing.bucket_elements = job.layout.zero_reduce_bucket;
  sharing.shares_on_host = job.offload == model::Offload::optimizer || job.offload == model::Offload::parameters;
  return sharing;
}

/// Parameters are cut as well, and gathered layer by layer; small ones stay whole. The bucket and the shares of
/// gradients are made with the optimizer and stay.
///
/// Source: DeepSpeed 0.15, runtime/zero/stage3.py (__ipg_bucket_flat_buffer, grad_partitions_flat_buffer),
/// partitioned_param_coordinator.py (release_sub_module, __params_to_release: max_reuse_distance) and config.py:
/// stage3_param_persistence_threshold, stage3_prefetch_bucket_size, stage3_max_reuse_distance.
///
/// Where the optimizer is offloaded, a rank's shares of gradients go to the host as they come (stage3.py:
/// grad_partitions_flat_buffer is on the optimizer's device; stage_1_and_2.py: copy_grads_in_partition). With
/// offload_param, to the host or to NVMe, the shards of parameters are there too, and each gather copies its own to the
/// GPU first (ZeRO-Infinity; partition_parameters.py: AllGatherCoalescedHandle); persistent ones stay on the GPU.
[[nodiscard]] inline Sharing zero_3(const model::TrainingJob& job) {
  Sharing sharing = zero_2(job);
  sharing.gather = Gather::in_place;
  sharing.parameter_ranks = sharing.state_ranks;
  sharing.layer_by_layer = true;
  sharing.persistent_elements = job.layout.zero_persistence_threshold;
  sharing.reuse_elements = job.layout.zero_reuse_distance;
  sharing.prefetch_elements = job.layout.zero_prefetch_bucket;
  sharing.buffers_stand = true;
  sharing.on_host = job.offload == model::Offload::parameters;
  return sharing;
}

// Input: a job under FullyShardedDataParallel (FSDP1, FULL_SHARD).
// Output: its Sharing: a unit's parameters are one flat parameter, split over the ranks. It is gathered in place, in
// backward one unit ahead (BACKWARD_PRE), and freed after forward, except the root's. The gradients of its views become
// one tensor, which is reduce-scattered.
// Units: ranks.
//
// Source: torch/distributed/fsdp/_flat_param.py and _runtime_utils.py of PyTorch 2.6. The share of the gradient stays
// until the next forward (_reset_flat_param_grad_info_if_needed). accelerate 1.0, accelerator.py: with mixed precision
// it makes the trained flat parameters float32, and computes and reduces in the lower type (MixedPrecision of
// param_dtype and reduce_dtype).
//
// A frozen flat parameter is given back in backward by a hook on the unit's inputs, which is held until backward has
// ended (_register_post_backward_reshard_only_hook in _runtime_utils.py). HuggingFace's Trainer checkpoints by calling
// the wrapped block in reentrant torch.utils.checkpoint, whose second run makes leaves of these inputs: each keeps its
// memory and its gradient as long. Where the checkpoint is within the wrapped block (apply_activation_checkpointing),
// none does. PEFT's policy (fsdp_auto_wrap_policy) wraps adapters by themselves, which leaves the block frozen. Nor is
// a unit gathered ahead under reentrant checkpointing: only a forward with gradients says that a unit will be needed
// (_needs_pre_backward_unshard), and the first run has none.
//
// On one rank it shards nothing (NO_SHARD).

[[nodiscard]] inline Sharing fsdp1(const model::TrainingJob& job) {
  Sharing sharing;
  if (sharing_ranks(job.layout) == 1) {
    sharing.masters = model::has_masters(job.precision);
    sharing.gradients_copied = sharing.masters;
    return sharing;
  }
  sharing.gather = Gather::in_place;
  sharing.parameter_ranks = sharing_ranks(job.layout);
  sharing.float32_shards = model::has_masters(job.precision);
  sharing.reduction = Reduction::scattered;
  sharing.gradient_ranks = sharing.parameter_ranks;
  sharing.cat_gradients = true;
  sharing.gradients_until_forward = true;
  const bool reentrant = model::has_reentrant_checkpoints(job);
  sharing.keeps_frozen_inputs = reentrant;
  sharing.adapters_apart = job.has_adapters();
  sharing.prefetches = !reentrant;
  sharing.state_ranks = sharing.parameter_ranks;
  sharing.on_host = job.offload == model::Offload::parameters;
  return sharing;
}

// Input: a job under fully_shard() (FSDP2), over all ranks or in groups (HSDP).
// Output: its Sharing: each parameter is split in its first dimension. A unit's parameters are gathered into a buffer
// in the compute type and copied out of it; in backward the next unit's while the last one's runs. Units except the
// root are freed after forward. A unit's gradients are reduce-scattered, and each rank keeps its share in the shards'
// type.
// Units: ranks.
//
// Source: torch/distributed/fsdp/_fully_shard of PyTorch 2.6: _fsdp_param_group.py, _fsdp_collectives.py
// (foreach_all_gather, foreach_reduce), _fsdp_state.py. Mixed precision is MixedPrecisionPolicy(param_dtype=bfloat16,
// reduce_dtype=float32), as torchtitan has it: then the shards are float32, and the optimizer needs no other masters.

// In a pipeline, units are not given back after forward (torchtitan 0.1, parallelize_llama.py: reshard_after_forward),
// nor reduced before the last micro-batch: each stage's backward runs without the sync of gradients, which become whole
// ones in the type that they are reduced in (torch/distributed/pipelining/stage.py: backward_maybe_with_nosync;
// _fsdp_param.py: to_accumulated_grad_if_needed). Where forward gives them back all the same, those of a backward stay
// until the next forward. `reshard_after_forward` as a number leaves each rank a part of the gathered parameters, in
// the compute type (_fsdp_param.py: to_sharded_post_forward).
//
// torchtitan shards the embedding apart, and norm and head together, which stay gathered unless it is told `always`.
// Tied ones are one unit, as the root is.
//
// A reentrant checkpoint runs a block again as if it was a forward: it gives the parameters back and is noted in the
// order of forward (_fsdp_param_group.py: post_forward). The block's own backward then gathers them once more, and
// ahead what was noted before it: the block whose backward has just ended (_backward_prefetch). Nobody waits for that
// gather, which holds its buffer until backward has ended (finalize_backward). PyTorch 2.10 does neither (#164009).
//
// Ranks that share experts cut each expert over those that have the same ones (torchtitan of October 2025,
// models/llama4/infra/parallelize.py: apply_fsdp, dp_mod_ep_mesh).

/// Of a sharding over `ranks`: those that have the same part of an expert; 0: experts are nothing else.
[[nodiscard]] std::int64_t expert_ranks_among(const model::TrainingJob& job, std::int64_t ranks);

/// The rule that the layout's reshard_after_forward breaks; empty: none. Source: _fsdp_init.py
/// (_get_post_forward_mesh_info), _fsdp_param.py (to_sharded_post_forward).
[[nodiscard]] inline std::string reshard_fault(const model::Layout& layout) {
  const model::Counted<model::Reshard> reshard = layout.reshard_after_forward;
  if (reshard.kind == model::Reshard::usual) return {};
  const bool groups = layout.sharding.kind == model::Shardings::hsdp;
  if (!groups && layout.sharding.kind != model::Shardings::fsdp2) {
    return "`reshard_after_forward` is fully_shard()'s; say `sharding=fsdp2`";
  }
  if (reshard.kind != model::Reshard::within) return {};
  const std::int64_t ranks = groups ? layout.sharding.count : sharing_ranks(layout);
  if (reshard.count < 1 || ranks % reshard.count != 0) {
    std::int64_t fits = std::clamp<std::int64_t>(reshard.count, 1, ranks);
    while (ranks % fits != 0) --fits;
    return "`reshard_after_forward` as a number divides the " + std::to_string(ranks) +
           " ranks that share parameters, and is " + std::to_string(reshard.count) +
           "; say `reshard_after_forward=" + (fits > 1 ? std::to_string(fits) : std::string("never")) + "`";
  }
  if (reshard.count == 1 || reshard.count == ranks || layout.tensor_parallel == 1) return {};
  return "fully_shard() does not cut tensor parallel parameters over fewer ranks after forward; say "
         "`reshard_after_forward=always`";
}

/// The rule that the job's way to meet other copies breaks; empty: none. Source: torchft 2025-10, local_sgd.py, whose
/// hooks stand around the optimizer's step; torchtitan of October 2025, components/ft/manager.py
/// (maybe_semi_sync_training), which passes them one part of the model.
[[nodiscard]] inline std::string semi_sync_fault(const model::TrainingJob& job) {
  if (job.layout.semi_sync.kind == model::SemiSync::none) return {};
  const model::Shardings kind = job.layout.sharding.kind;
  const bool known = kind == model::Shardings::none || kind == model::Shardings::ddp ||
                     kind == model::Shardings::fsdp2 || kind == model::Shardings::hsdp;
  if (!known || model::row_of(job.loop).main_gradients) {
    return "`semi_sync` is torchft's, which is modelled with `sharding=fsdp2`, `sharding=hsdp:8` and `sharding=ddp`; "
           "leave it out";
  }
  if (job.layout.pipeline_parallel > 1) return "`semi_sync` in a pipeline is not modelled; say `pipeline_parallel=1`";
  if (job.optimizer_in_backward) return "`semi_sync` waits for the optimizer's step; leave out `optimizer_in_backward`";
  if (job.has_adapters()) return "`semi_sync` of adapters is not modelled; leave it out";
  return {};
}

/// The rule that gathering in eight bits breaks; empty: none.
[[nodiscard]] inline std::string float8_gather_fault(const model::TrainingJob& job) {
  const model::Shardings kind = job.layout.sharding.kind;
  const bool gathers = kind == model::Shardings::fsdp2 || kind == model::Shardings::hsdp;
  if (job.quantize != model::Quantization::float8_gather || gathers) return {};
  return "`quantize=float8-gather` is of weights that FSDP2 gathers; say `sharding=fsdp2`, or `quantize=float8`";
}

/// Of units that are cut over `ranks`: Sharing::kept_over.
[[nodiscard]] inline std::int64_t kept_over(const model::Layout& layout, std::int64_t ranks) {
  switch (layout.reshard_after_forward.kind) {
    case model::Reshard::usual: return layout.pipeline_parallel > 1 ? 1 : 0;
    case model::Reshard::always: return 0;
    case model::Reshard::never: return 1;
    case model::Reshard::within: break;
  }
  return layout.reshard_after_forward.count == ranks ? 0 : layout.reshard_after_forward.count;
}

/// Parameters are cut over `ranks`.
[[nodiscard]] inline Sharing fsdp2(const model::TrainingJob& job, std::int64_t ranks) {
  Sharing sharing;
  sharing.gather = Gather::copied_out;
  sharing.parameter_ranks = ranks;
  sharing.float32_shards = model::has_masters(job.precision);
  sharing.reduction = Reduction::scattered;
  sharing.gradient_ranks = ranks;
  if (sharing.float32_shards) sharing.reduced_in = core::DType::float32;
  sharing.state_ranks = ranks;
  sharing.expert_ranks = expert_ranks_among(job, ranks);
  sharing.whole_for_step = job.layout.pipeline_parallel > 1;
  sharing.kept_over = kept_over(job.layout, ranks);
  sharing.ends_apart = model::row_of(job.loop).shards_ends_apart;
  sharing.end_kept_over = job.layout.reshard_after_forward.kind == model::Reshard::always ? 0 : 1;
  sharing.shares_ended = job.optimizer_in_backward;
  sharing.gathers_again = model::has_reentrant_checkpoints(job);
  sharing.gathers_float8 = job.quantize == model::Quantization::float8_gather;
  sharing.on_host = job.offload == model::Offload::parameters;
  return sharing;
}

[[nodiscard]] inline Sharing fsdp2(const model::TrainingJob& job) { return fsdp2(job, sharing_ranks(job.layout)); }

/// The same in groups of N ranks, which hold the same and sum their gradients in place.
[[nodiscard]] inline Sharing hsdp(const model::TrainingJob& job) { return fsdp2(job, job.layout.sharding.count); }

// Input: a job under Megatron's distributed optimizer.
// Output: its Sharing: parameters are whole, in one buffer. Every gradient is added to a float32 main gradient, also in
// one buffer, which is never freed. Masters and states are split over the data and context parallel ranks.
// Units: ranks.
//
// Source: Megatron-LM core r0.12, core/parallel_state.py (intra_partial_data_parallel_group) for several instances.
// Megatron-LM core 0.9: core/distributed/param_and_grad_buffer.py (grad_reduce_in_fp32), core/optimizer/
// distrib_optimizer.py: the shard of the main gradient is a view of the buffer, so a step copies none. The weights'
// products add to main gradients themselves (gradient_accumulation_fusion), so a gradient in the lower type is not
// kept. With --grad-reduce-in-bf16 the buffer is in the weights' type, and the step makes float32 copies of the rank's
// part for the masters (distrib_optimizer.py: _copy_model_grads_to_main_grads; optimizer.py:
// Float16OptimizerWithFloat16Params). The weights that the model was made with live until both buffers are there;
// experts have buffers of their own, which are made last (core/distributed/param_and_grad_buffer.py:
// _ParamAndGradBuffer.__init__; distributed_data_parallel.py).

[[nodiscard]] inline Sharing distributed_optimizer(const model::TrainingJob& job) {
  Sharing sharing;
  sharing.reduction = Reduction::main_buffer;
  sharing.masters = model::has_masters(job.precision);
  const bool said = model::megatron_option(job, "grad_reduce_in_bf16").value_or("false") == "true";
  const bool half =
      sharing.masters && (said || (job.graph != nullptr && job.graph->run_settings().half_main_gradients));
  if (!half) sharing.reduced_in = core::DType::float32;
  sharing.gradients_copied = half;
  sharing.state_ranks = ranks_of_instance(job, sharing_ranks(job.layout));
  sharing.moves_weights = job.layout.sharding.kind == model::Shardings::distributed_optimizer;
  return sharing;
}

// Input: a job under Megatron-FSDP (--use-megatron-fsdp), whose --data-parallel-sharding-strategy is optim, optim_grads
// or optim_grads_params, here zero-1, zero-2 and zero-3.
// Output: its Sharing: as under the distributed optimizer (1); gradients are cut as well (2), and parameters (3), a
// layer at a time. Shares of gradients, in the parameters' type, stand from the start on. Whole gradients wait until
// their reductions are through, of which as many may be under way as a queue has room for.
// Units: ranks, elements.
//
// Source: Megatron-LM of August 2026, core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py
// (suggested_RS_queue_capacity), param_and_grad_buffer.py (GradReducePipeline.wait_for_previous_grad_reduce;
// main_grads_dtype None is the parameters' type). All-gathers are not made ahead, as without --overlap-param-gather.

[[nodiscard]] inline Sharing megatron_fsdp(const model::TrainingJob& job) {
  constexpr std::int64_t kQueue = 1'000'000'000;
  const model::Shardings kind = job.layout.sharding.kind;
  if (kind == model::Shardings::zero_1) return distributed_optimizer(job);
  Sharing sharing;
  sharing.reduction = Reduction::scattered;
  sharing.state_ranks = sharing_ranks(job.layout);
  sharing.gradient_ranks = sharing.state_ranks;
  sharing.expert_ranks = expert_ranks_among(job, sharing.state_ranks);
  sharing.queue_elements = kQueue;
  sharing.shares_stand = true;
  sharing.masters = model::has_masters(job.precision);
  sharing.prefetches = false;
  if (kind == model::Shardings::zero_2) return sharing;
  sharing.gather = Gather::in_place;
  sharing.parameter_ranks = sharing.state_ranks;
  return sharing;
}

/// Megatron's without it: the same buffer of gradients, and masters and states whole on each rank.
[[nodiscard]] inline Sharing main_gradients(const model::TrainingJob& job) {
  Sharing sharing = distributed_optimizer(job);
  sharing.state_ranks = 1;
  return sharing;
}

// Input: the sizes of a model's trained parameters, in the model's order, and a layout.
// Output: the parameters for which a rank holds masters and states, if these are shared out parameter by parameter:
// Megatron's distributed Muon, whose step reads whole matrices.
// Units: elements.
//
// Source: Megatron-LM core 0.16, core/optimizer/layer_wise_optimizer.py: LayerWiseDistributedOptimizer.shard_params():
// parameters in the order of their sizes go to rank 0, 1, ..., n - 1, n - 1, ..., 0, and so on; experts' apart, over
// the ranks that hold the same experts.

struct SharedParameter {
  std::int64_t elements = 0;
  bool of_expert = false;
};

/// Whether the job shares states so.
[[nodiscard]] bool shares_layer_by_layer(const model::TrainingJob& job);

/// For each parameter whether the job's rank holds its states; of Ranks::max the rank that holds most elements.
/// `expert_ranks`: that hold the same experts.
[[nodiscard]] std::vector<bool> held_layer_by_layer(const std::vector<SharedParameter>& parameters,
                                                    const model::Layout& layout, std::int64_t expert_ranks);

}  // namespace gpumem::parallel
