// Input: a job's need.
// Output: num_gpus of a Ray task or actor: the share of the GPU's memory, in ten-thousandths; for a job on several GPUs
// the ScalingConfig of Ray Train.
//
// Source: docs.ray.io, Ray Core, "Resources", "Fractional Resource Requirements": the precision is 0.0001, and a
// fraction is between 0 and 1; Ray schedules by it and does not limit the memory. The share is that of the GPU named: a
// cluster of several types must ask for this one by accelerator_type. Of a job on several GPUs: Ray Train, "Configuring
// Scale and GPUs": ScalingConfig, a worker a process. Each takes a whole GPU, for Ray puts workers with less on one GPU
// together, and NCCL refuses two ranks of one GPU (nccl, src/init.cc: "Duplicate GPU detected").
#pragma once

#include "gpumem/request/gpu_request.hpp"

namespace gpumem::request {

struct Ray {
  static constexpr std::string_view kName = "ray";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    if (const std::int64_t workers = need.gpus_per_node * need.nodes; workers > 1) {
      return GpuRequest{.target = std::string(kName),
                        .memory = need.gpu->capacity(),
                        .argument = "ScalingConfig(num_workers=" + std::to_string(workers) +
                                    ", use_gpu=True, resources_per_worker={\"GPU\": 1}, placement_strategy=\"" +
                                    (need.nodes == 1 ? "STRICT_PACK" : "PACK") + "\")"};
    }
    const std::int64_t share = ten_thousandths(need);
    return GpuRequest{.target = std::string(kName),
                      .memory = memory_of_share(need, share),
                      .argument = "num_gpus=" + share_text(share)};
  }
};

}  // namespace gpumem::request
