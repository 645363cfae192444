// Layout: how a job is spread over GPUs, in the terms of Megatron and torchtitan, and the names that people write.
// parallel/ decides which layouts are possible and which rank holds what.
// Units: GPUs, counts.
#pragma once

#include <array>
#include <cstdint>

#include "gpumem/model/memory_savers.hpp"
#include "gpumem/model/named.hpp"

namespace gpumem::model {

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

/// In which order a pipeline's stages run the micro-batches of a step.
enum class Schedule : std::uint8_t {
  one_forward_one_backward,  ///< PipeDream-Flush
  interleaved,               ///< the same over several stages a rank
  gpipe,                     ///< all forward, then all backward
};
inline constexpr std::array<Named<Schedule>, 3> kSchedules = {{{Schedule::one_forward_one_backward, "1f1b"},
                                                               {Schedule::interleaved, "interleaved-1f1b"},
                                                               {Schedule::gpipe, "gpipe"}}};

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
  std::int64_t tensor_parallel = 1;
  bool sequence_parallel = false;  ///< within the tensor parallel group
  std::int64_t pipeline_parallel = 1;
  std::int64_t virtual_stages = 1;  ///< stages of the model on one pipeline rank
  Schedule schedule = Schedule::one_forward_one_backward;
  std::int64_t context_parallel = 1;
  std::int64_t expert_parallel = 1;  ///< of the ranks above: groups that share the experts
  Rank rank = {};
  // DeepSpeed's zero_optimization, in elements, with its defaults.
  std::int64_t zero_reduce_bucket = 500'000'000;      ///< of gradients that are reduced together
  std::int64_t zero_prefetch_bucket = 50'000'000;     ///< of parameters that are gathered ahead
  std::int64_t zero_persistence_threshold = 100'000;  ///< parameters that have no more stay whole
  std::int64_t zero_reuse_distance = 1'000'000'000;   ///< a unit needed again within this many elements stays gathered

  friend bool operator==(const Layout&, const Layout&) = default;
};

}  // namespace gpumem::model
