// Input: a job with its layout (model/layout.hpp).
// Output: whether such a layout is possible, which rule it breaks if not, and what gpumem models of it.
// Units: ranks.
// Source: the rules of megatron/core/parallel_state.py and megatron/training/arguments.py of Megatron-LM,
// torchtitan/distributed/parallel_dims.py, torch/distributed/device_mesh.py.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
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

/// What communicators take of each GPU outside of the allocator.
struct Communicators {
  core::Bytes expected;
  core::Bytes lower;
  core::Bytes upper;
};
/// Nothing on one GPU. NCCL allocates by cudaMalloc, for each connection that it receives over a buffer a protocol: 4
/// MiB (Simple), 512 KiB (LL) and 4,800 KiB (LL128), 9.2 MiB together (NCCL 2.19, src/init.cc: computeBuffSizes();
/// src/include/device.h). A ring of 24 channels has 24 such connections (220 MiB), trees and further communicators have
/// theirs. 0.2 to 2 GiB were seen of jobs with one to several communicators. The expected figure is a guess in this
/// range, 43 connections, and `assumed` says so.
[[nodiscard]] Communicators communicators(const model::Layout& layout);

/// "fsdp2", "hsdp:4".
[[nodiscard]] std::string name_of(const model::Sharding& sharding);

}  // namespace gpumem::parallel
