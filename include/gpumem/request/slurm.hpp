// Input: a job's need.
// Output: options of sbatch, srun and salloc: shards of 1 MiB each, or whole GPUs. A job on several GPUs also gets its
// nodes, and a task for each GPU.
//
// Source: Slurm's documentation, "Generic Resource (GRES) Scheduling", "Sharding": shards of a GPU are given to jobs
// that share it, and a job's shards are all on one GPU. The meaning of one shard is the site's choice; here the count
// of each GPU in gres.conf is its usable memory in MiB (as examples/slurm sets it up). --gres counts on each node. A
// job on several GPUs of a node asks for whole ones: its shards there would be of one GPU, or, under slurm.conf's
// MULTIPLE_SHARING_GRES_PJ, of any, however many of each.
#pragma once

#include "gpumem/request/gpu_request.hpp"

namespace gpumem::request {

struct Slurm {
  static constexpr std::string_view kName = "slurm";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    if (need.gpus_per_node > 1) {
      return GpuRequest{.target = std::string(kName),
                        .memory = need.gpu->capacity(),
                        .argument = tasks(need) + "--gres=gpu:" + std::to_string(need.gpus_per_node)};
    }
    const std::int64_t size = mebibytes(need);
    return GpuRequest{
        .target = std::string(kName),
        .memory = core::Bytes(size << 20),
        .argument = (need.nodes > 1 ? tasks(need) : std::string()) + "--gres=shard:" + std::to_string(size)};
  }

 private:
  [[nodiscard]] static std::string tasks(const Need& need) {
    return "--nodes=" + std::to_string(need.nodes) + " --ntasks-per-node=" + std::to_string(need.gpus_per_node) + " ";
  }
};

}  // namespace gpumem::request
