// The choices of a job that save memory, each a list with the names that people write: which activations backward
// computes again, how a language model's loss is computed, which attention runs, what is kept on the host.
// Units: counts of layers and of positions.
//
// A choice whose name ends in ":N" has a number: "every:2".
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "gpumem/model/named.hpp"

namespace gpumem::model {

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
};
struct CheckpointPolicy {
  Checkpoints kind = Checkpoints::full;
  std::int64_t count = 0;    ///< of `first` and `every`
  std::string modules = {};  ///< of `selective_modules`: names, joined by '+'

  friend bool operator==(const CheckpointPolicy&, const CheckpointPolicy&) = default;
};
inline constexpr std::array<Named<Checkpoints>, 6> kCheckpoints = {
    {{Checkpoints::full, "full"},
     {Checkpoints::first, "full:N"},
     {Checkpoints::every, "every:N"},
     {Checkpoints::selective_op, "selective-op"},
     {Checkpoints::selective_attention, "selective-attention"},
     {Checkpoints::selective_modules, "selective:NAMES"}}};

/// How the cross entropy of a language model's head is computed.
enum class LossForms : std::uint8_t {
  standard,  ///< logits, log_softmax, nll_loss
  chunked,   ///< the head runs on N positions at a time; their logits live until backward (litgpt, torchtune)
  fused,     ///< head and loss are one function, and the logits are never whole (Liger)
  fused_ce,  ///< the loss is one kernel, which leaves its gradient in the logits' place (Liger, unsloth)
  compiled,  ///< torch.compile of the loss: one kernel each way, which reads the logits in their own type (torchtitan)
};
using LossForm = Counted<LossForms>;
inline constexpr std::array<Named<LossForms>, 5> kLossForms = {{{LossForms::standard, "standard"},
                                                                {LossForms::chunked, "chunked:N"},
                                                                {LossForms::fused, "fused"},
                                                                {LossForms::fused_ce, "fused-ce"},
                                                                {LossForms::compiled, "compiled"}}};

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
  optimizer,    ///< states and masters; the step runs on the host (DeepSpeed's DeepSpeedCPUAdam)
  parameters,   ///< and shards of parameters and gradients (CPUOffloadPolicy, CPUOffload, offload_param)
};
inline constexpr std::array<Named<Offload>, 4> kOffloads = {{{Offload::none, "none"},
                                                             {Offload::activations, "activations"},
                                                             {Offload::optimizer, "optimizer"},
                                                             {Offload::parameters, "parameters"}}};

}  // namespace gpumem::model
