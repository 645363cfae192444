// Layout: how a job is spread over GPUs, in the terms of Megatron and torchtitan, and the names that people write.
// parallel/ decides which layouts are possible and which rank holds what.
// Units: GPUs, counts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "gpumem/model/named.hpp"

namespace gpumem::model {

// The choices of a job that save memory, each a list with the names that people write: which activations backward
// computes again, how a language model's loss is computed, which attention runs, what is kept on the host.
// Units: counts of layers and of positions.
//
// A choice whose name ends in ":N" has a number: "every:2".

/// A choice with its number; 0 where it has none.
template <typename Enum>
struct Counted {
  Enum kind{};
  std::int64_t count = 0;

  friend bool operator==(const Counted&, const Counted&) = default;
};

/// What activation checkpointing computes again in backward.
enum class Checkpoints : std::uint8_t {
  full,                 ///< every repeated block (gradient_checkpointing_enable)
  first,                ///< the first N blocks (Megatron's --recompute-method block)
  every,                ///< the Nth, 2Nth, ... block (torchtitan's selective_ac_option)
  selective_op,         ///< all of a block but every other matrix product and the attention (torchtitan's "op")
  selective_attention,  ///< only the attention (Megatron's --recompute-granularity selective)
  selective_modules,    ///< every module of these names, such as mlp+self_attn
  joined,               ///< each N blocks that follow each other as one (SimpleTuner's interval)
  joined_every_other,   ///< N blocks as one, the next N not at all (SimpleTuner's segments with a stride)
  first_of,             ///< the first of each N blocks (SimpleTuner's should_checkpoint_block with an interval)
  every_other,          ///< N blocks, each by itself, the next N not at all (the same with a stride)
};
/// Which of an attention's calls save into the host's memory, whatever checkpoint is around them; they run again with
/// their block all the same. Source: SimpleTuner 2026-08, --gradient_checkpointing_offload_attention.
enum class HostAttention : std::uint8_t {
  none,
  module,  ///< all of the module: projections, norms, adapters (Wan, Chroma, FLUX.1)
  kernel,  ///< scaled-dot-product attention alone (Kandinsky 5, FLUX.2)
};
/// Whether a block is called through torch.utils.checkpoint with use_reentrant=True: its backward is then one of its
/// own, within the model's.
enum class Reentrance : std::uint8_t {
  usual,  ///< as the training loop has it: has_reentrant_checkpoints()
  on,
  off,
};
struct CheckpointPolicy {
  Checkpoints kind = Checkpoints::full;
  std::int64_t count = 0;    ///< of those with N
  std::string modules = {};  ///< of `selective_modules`: names, joined by '+'
  HostAttention host_attention = HostAttention::none;
  Reentrance reentrance = Reentrance::usual;

  friend bool operator==(const CheckpointPolicy&, const CheckpointPolicy&) = default;
};
inline constexpr std::array<Named<Checkpoints>, 10> kCheckpoints = {
    {{Checkpoints::full, "full"},
     {Checkpoints::first, "full:N"},
     {Checkpoints::every, "every:N"},
     {Checkpoints::selective_op, "selective-op"},
     {Checkpoints::selective_attention, "selective-attention"},
     {Checkpoints::selective_modules, "selective:NAMES"},
     {Checkpoints::joined, "joined:N"},
     {Checkpoints::joined_every_other, "joined-every-other:N"},
     {Checkpoints::first_of, "first-of:N"},
     {Checkpoints::every_other, "every-other:N"}}};

/// Whether the policy needs a number of blocks.
[[nodiscard]] constexpr bool counts_blocks(Checkpoints kind) {
  return kind == Checkpoints::first || kind == Checkpoints::every || kind == Checkpoints::joined ||
         kind == Checkpoints::joined_every_other || kind == Checkpoints::first_of || kind == Checkpoints::every_other;
}

/// How the cross entropy of a language model's head is computed.
enum class LossForms : std::uint8_t {
  standard,  ///< logits, log_softmax, nll_loss
  chunked,   ///< the head runs on N positions at a time; their logits live until backward (litgpt, torchtune)
  fused,     ///< head and loss are one function, and the logits are never whole (Liger)
  fused_ce,  ///< the loss is one kernel, which leaves its gradient in the logits' place (Liger, unsloth)
  compiled,  ///< torch.compile of the loss: one kernel each way, which reads the logits in their own type (torchtitan)
  fused_target,     ///< fused, in chunks of tokens whose logits would take N MiB in float32 (Unsloth)
  fused_free,       ///< the same: half of what is free on the GPU, 4 GiB at most (Unsloth since July 2026)
  fused_free_2025,  ///< the same: half of what is free, the number of chunks rounded (Unsloth until then)
  checkpointed,     ///< the head runs on N tokens at a time, and again in backward (TRL's chunked_nll)
};
using LossForm = Counted<LossForms>;
inline constexpr std::array<Named<LossForms>, 9> kLossForms = {{{LossForms::standard, "standard"},
                                                                {LossForms::chunked, "chunked:N"},
                                                                {LossForms::fused, "fused"},
                                                                {LossForms::fused_ce, "fused-ce"},
                                                                {LossForms::compiled, "compiled"},
                                                                {LossForms::fused_target, "fused-target:N"},
                                                                {LossForms::fused_free, "fused-free"},
                                                                {LossForms::fused_free_2025, "fused-free-2025"},
                                                                {LossForms::checkpointed, "checkpointed:N"}}};

/// Whether a chunk is the larger the more memory is free when the first loss is computed.
[[nodiscard]] constexpr bool asks_for_free(LossForms kind) {
  return kind == LossForms::fused_free || kind == LossForms::fused_free_2025;
}

/// Whether head and loss are one function that goes by chunks of tokens, whose logits have a size to keep to.
[[nodiscard]] constexpr bool sizes_chunks(LossForms kind) {
  return kind == LossForms::fused_target || asks_for_free(kind);
}

/// Whether head and loss are one function, which reads the head's own weight.
[[nodiscard]] constexpr bool joins_head(LossForms kind) {
  return kind == LossForms::fused || kind == LossForms::checkpointed || sizes_chunks(kind);
}

/// Which kernels compute scaled-dot-product attention.
enum class AttentionBackend : std::uint8_t {
  sdpa,   ///< what PyTorch picks for type, mask and head size
  flash,  ///< the flash-attn package on heads as they are projected, none repeated (attn_implementation)
  eager,  ///< products and softmax written out, the softmax in float32
};
inline constexpr std::array<Named<AttentionBackend>, 3> kAttentionBackends = {
    {{AttentionBackend::sdpa, "sdpa"}, {AttentionBackend::flash, "flash"}, {AttentionBackend::eager, "eager"}}};

/// What is kept in the host's memory.
enum class Offload : std::uint8_t {
  none,
  activations,  ///< what backward reads, except parameters (torchtune's OffloadActivations without streams)
  checkpoints,  ///< of activations, what checkpointed blocks keep: their arguments that have gradients (Unsloth)
  optimizer,    ///< states and masters; the step runs on the host (DeepSpeed's DeepSpeedCPUAdam)
  parameters,   ///< and shards of parameters and gradients (CPUOffloadPolicy, CPUOffload, offload_param)
  ramtorch,  ///< frozen weights of linear layers, each copied for each of its products (RamTorch's CPUBouncingLinear)
  ramtorch_blocks,  ///< those of the repeated blocks alone (SimpleTuner's ramtorch_target_modules=blocks.*)
};
inline constexpr std::array<Named<Offload>, 7> kOffloads = {{{Offload::none, "none"},
                                                             {Offload::activations, "activations"},
                                                             {Offload::checkpoints, "checkpoints"},
                                                             {Offload::optimizer, "optimizer"},
                                                             {Offload::parameters, "parameters"},
                                                             {Offload::ramtorch, "ramtorch"},
                                                             {Offload::ramtorch_blocks, "ramtorch-blocks"}}};

/// Whether frozen weights stay in the host's memory and come for each product.
[[nodiscard]] constexpr bool bounces_weights(Offload offload) {
  return offload == Offload::ramtorch || offload == Offload::ramtorch_blocks;
}

/// How weights of repeated blocks take turns on the GPU; those of the others lie in the host's memory. With N of them.
enum class BlockSwap : std::uint8_t {
  none,
  exchanged,  ///< linear layers' weights of N blocks, each in the place of another block's (kohya's ModelOffloader)
  streamed,   ///< frozen weights of the last N blocks: there for their forward, and from their backward to the step's
              ///< end
};
inline constexpr std::array<Named<BlockSwap>, 3> kBlockSwaps = {
    {{BlockSwap::none, "none"}, {BlockSwap::exchanged, "exchanged:N"}, {BlockSwap::streamed, "streamed:N"}}};

/// Fused kernels that compute in place of a decoder's own calls, and keep less of a block for backward.
enum class Kernels : std::uint8_t {
  usual,
  liger,     ///< of RMS norms, and of a gated layer's activation and product
  lora_mlp,  ///< a gated layer, and any other, is one function with its LoRA adapters; gated ones make the product
             ///< again (axolotl)
  unsloth,   ///< the same, and RMS norms
};
inline constexpr std::array<Named<Kernels>, 4> kKernels = {{{Kernels::usual, "usual"},
                                                            {Kernels::liger, "liger"},
                                                            {Kernels::lora_mlp, "lora-mlp"},
                                                            {Kernels::unsloth, "unsloth"}}};

/// Which data parallel rank holds which parameters, gradients and states.
enum class Shardings : std::uint8_t {
  none,                   ///< nothing is said
  ddp,                    ///< all of each rank has them (DistributedDataParallel)
  fsdp1,                  ///< flat parameters, cut (FullyShardedDataParallel, full shard)
  fsdp2,                  ///< each parameter, cut (fully_shard)
  hsdp,                   ///< fully_shard in groups of N ranks, which all hold the same
  zero_1,                 ///< DeepSpeed: states are cut
  zero_2,                 ///< and gradients
  zero_3,                 ///< and parameters
  distributed_optimizer,  ///< Megatron: masters and states are cut
};
using Sharding = Counted<Shardings>;
inline constexpr std::array<Named<Shardings>, 9> kShardings = {
    {{Shardings::none, "none"},
     {Shardings::ddp, "ddp"},
     {Shardings::fsdp1, "fsdp1"},
     {Shardings::fsdp2, "fsdp2"},
     {Shardings::hsdp, "hsdp:N"},
     {Shardings::zero_1, "zero-1"},
     {Shardings::zero_2, "zero-2"},
     {Shardings::zero_3, "zero-3"},
     {Shardings::distributed_optimizer, "distributed-optimizer"}}};

/// What of a unit's gathered parameters stays between its forward and its backward (fully_shard's
/// reshard_after_forward, torchtitan's fsdp_reshard_after_forward).
enum class Reshard : std::uint8_t {
  usual,   ///< only the shards, and in a pipeline all (torchtitan's default)
  always,  ///< only the shards
  never,   ///< all
  within,  ///< an N-th of them, cut over groups of N ranks
};
inline constexpr std::array<Named<Reshard>, 3> kReshards = {
    {{Reshard::usual, "default"}, {Reshard::always, "always"}, {Reshard::never, "never"}}};

/// How copies of the model that train apart meet every few steps (torchft's local_sgd.py). The other copies' GPUs do
/// not count as data parallel ones.
enum class SemiSync : std::uint8_t {
  none,
  local_sgd,         ///< parameters are averaged
  diloco,            ///< an outer optimizer steps by what the copies have moved, a fragment of N at a time
  streaming_diloco,  ///< likewise, and a fragment's sums are on their way while the next steps run
};
inline constexpr std::array<Named<SemiSync>, 4> kSemiSyncs = {{{SemiSync::none, "none"},
                                                               {SemiSync::local_sgd, "local-sgd"},
                                                               {SemiSync::diloco, "diloco:N"},
                                                               {SemiSync::streaming_diloco, "streaming-diloco:N"}}};

/// In which order a pipeline's stages run the micro-batches of a step.
enum class Schedule : std::uint8_t {
  one_forward_one_backward,  ///< PipeDream-Flush
  interleaved,               ///< the same over several stages a rank
  gpipe,                     ///< all forward, then all backward
  looped_bfs,                ///< the same over several stages a rank (torch's ScheduleLoopedBFS)
  zero_bubble,               ///< interleaved, weights' gradients apart (torch's ScheduleInterleavedZeroBubble)
  zero_bubble_v,             ///< the second of a rank's two stages mirrors the first (torch's ScheduleZBVZeroBubble)
  dual_pipe_v,               ///< likewise, forward beside backward (torch's ScheduleDualPipeV)
};
inline constexpr std::array<Named<Schedule>, 7> kSchedules = {{{Schedule::one_forward_one_backward, "1f1b"},
                                                               {Schedule::interleaved, "interleaved-1f1b"},
                                                               {Schedule::gpipe, "gpipe"},
                                                               {Schedule::looped_bfs, "looped-bfs"},
                                                               {Schedule::zero_bubble, "interleaved-zero-bubble"},
                                                               {Schedule::zero_bubble_v, "zbv-zero-bubble"},
                                                               {Schedule::dual_pipe_v, "dual-pipe-v"}}};

/// Whether the gradients of a stage's weights are made in a pass of their own, at least for some micro-batches.
[[nodiscard]] constexpr bool splits_backward(Schedule schedule) {
  return schedule == Schedule::zero_bubble || schedule == Schedule::zero_bubble_v || schedule == Schedule::dual_pipe_v;
}
/// Whether a rank has the N-th stage and the N-th from the end.
[[nodiscard]] constexpr bool is_v_shaped(Schedule schedule) {
  return schedule == Schedule::zero_bubble_v || schedule == Schedule::dual_pipe_v;
}
/// Whether a step keeps what all of its micro-batches have made.
[[nodiscard]] constexpr bool keeps_all(Schedule schedule) {
  return schedule == Schedule::gpipe || schedule == Schedule::looped_bfs;
}

/// Whose memory is asked for.
enum class Ranks : std::uint8_t {
  max,   ///< of the rank that takes most
  last,  ///< of the last one: the pipeline's last stage
  all,   ///< of every pipeline stage
  one,   ///< of the rank with this number
};
using Rank = Counted<Ranks>;  ///< the number counts from 0
inline constexpr std::array<Named<Ranks>, 3> kRanks = {
    {{Ranks::max, "max"}, {Ranks::last, "last"}, {Ranks::all, "all"}}};

/// The ranks are data_parallel x tensor_parallel x pipeline_parallel x context_parallel. Micro-batches of a step are
/// TrainingJob::gradient_accumulation.
struct Layout {
  std::int64_t data_parallel = 1;  ///< groups that train on other samples, each on batches of its own
  Sharding sharding = {};
  Counted<Reshard> reshard_after_forward = {};
  Counted<SemiSync> semi_sync = {};
  std::int64_t tensor_parallel = 1;
  bool sequence_parallel = false;  ///< within the tensor parallel group
  std::int64_t pipeline_parallel = 1;
  std::int64_t virtual_stages = 1;  ///< stages of the model on one pipeline rank
  Schedule schedule = Schedule::one_forward_one_backward;
  /// How many layers each stage has: "15,16,15", or Megatron's layout "Et*15|t*16|t*15L"; empty: as the framework
  /// shares them.
  std::string pipeline_layers = {};
  std::optional<std::int64_t> first_stage_layers = {};  ///< of the pipeline's first rank, where the others are alike
  std::optional<std::int64_t> last_stage_layers = {};   ///< of its last rank
  std::int64_t context_parallel = 1;
  std::int64_t expert_parallel = 1;  ///< of the ranks above: groups that share the experts
  /// How many times its even share of tokens a rank's experts may get; nothing: as the router's rule says.
  std::optional<double> expert_imbalance = {};
  Rank rank = {};
  // DeepSpeed's zero_optimization, in elements, with its defaults.
  std::int64_t zero_reduce_bucket = 500'000'000;      ///< of gradients that are reduced together
  std::int64_t zero_prefetch_bucket = 50'000'000;     ///< of parameters that are gathered ahead
  std::int64_t zero_persistence_threshold = 100'000;  ///< parameters that have no more stay whole
  std::int64_t zero_reuse_distance = 1'000'000'000;   ///< a unit needed again within this many elements stays gathered

  friend bool operator==(const Layout&, const Layout&) = default;
};

}  // namespace gpumem::model
