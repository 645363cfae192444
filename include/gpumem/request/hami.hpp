// Input: a job's need.
// Output: limits for HAMi (Project-HAMi, a device plugin and scheduler extender for Kubernetes): virtual GPUs, and the
// memory of each in MiB.
//
// Source: project-hami.io, "Lab 3: GPU Partitioning with HAMi", step 1: nvidia.com/gpu is the number of virtual GPUs,
// nvidia.com/gpumem the memory of each in MiB; each is of a physical GPU of its own
// (github.com/Project-HAMi/HAMi, README.md: "declare how many physical GPUs the pod needs"). HAMi multiplies it by its
// memoryFactor, 1 by default (github.com/Project-HAMi/HAMi, docs/gpu-memory-factor.md); a cluster with another factor
// must divide by it.
#pragma once

#include "gpumem/request/gpu_request.hpp"

namespace gpumem::request {

struct Hami {
  static constexpr std::string_view kName = "hami";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    const std::int64_t size = mebibytes(need);
    return GpuRequest{
        .target = std::string(kName),
        .memory = core::Bytes(size << 20),
        .limits = {{"nvidia.com/gpu", std::to_string(need.gpus_per_node)}, {"nvidia.com/gpumem", std::to_string(size)}},
        .count_limit = "nvidia.com/gpu"};
  }
};

}  // namespace gpumem::request
