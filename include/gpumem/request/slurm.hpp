// Enters: a job's need. Leaves: an option of sbatch, srun and salloc: shards, of which one is 1 MiB.
//
// Source: Slurm's documentation, "Generic Resource (GRES) Scheduling", "Sharding": shards of a GPU are given to jobs
// that share it, and a job's shards are all on one GPU. What one shard stands for is the site's choice; here the count
// of each GPU in gres.conf is its usable memory in MiB (as examples/slurm sets it up).
#pragma once

#include "gpumem/request/gpu_request.hpp"

namespace gpumem::request {

struct Slurm {
  static constexpr std::string_view kName = "slurm";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    const std::int64_t size = mebibytes(need);
    return GpuRequest{.target = std::string(kName),
                      .memory = core::Bytes(size << 20),
                      .argument = "--gres=shard:" + std::to_string(size)};
  }
};

}  // namespace gpumem::request
