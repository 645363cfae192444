// Input: a job's need.
// Output: a limit for NVIDIA's device plugin for Kubernetes: whole GPUs, for a job that shares none. Most jobs on
// several GPUs are such jobs.
//
// Source: NVIDIA/k8s-device-plugin, README.md: a resource nvidia.com/gpu, counted in whole GPUs of the pod's node.
#pragma once

#include "gpumem/request/gpu_request.hpp"

namespace gpumem::request {

struct NvidiaGpu {
  static constexpr std::string_view kName = "nvidia-gpu";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    return GpuRequest{.target = std::string(kName),
                      .memory = need.gpu->capacity(),
                      .limits = {{"nvidia.com/gpu", std::to_string(need.gpus_per_node)}},
                      .count_limit = "nvidia.com/gpu"};
  }
};

}  // namespace gpumem::request
