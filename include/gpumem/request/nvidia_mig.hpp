// Input: a job's need.
// Output: a limit for NVIDIA's device plugin for Kubernetes: the smallest MIG slice of this GPU that holds the need. If
// the profile is a slice itself, only this slice is tried.
//
// Source: NVIDIA/k8s-device-plugin, README.md, "mixed" MIG strategy: a resource nvidia.com/mig-<slice>g.<memory>gb for
// each profile. What a slice holds is that of its profile in models/gpus, which names its source. NVIDIA's MIG user
// guide, "Application considerations": no peer-to-peer access between slices; "CUDA device enumeration": one a process.
#pragma once

#include "gpumem/request/gpu_request.hpp"

namespace gpumem::request {

struct NvidiaMig {
  static constexpr std::string_view kName = "nvidia-mig";

  /// Errors: invalid_argument for a GPU of which no slices are known, and for a job on several GPUs;
  /// missing_information where none holds the need.
  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need);
};

}  // namespace gpumem::request
