#pragma once

#include "gpumem/request/targets.hpp"

#include <array>

#include "gpumem/request/hami.hpp"
#include "gpumem/request/kai.hpp"
#include "gpumem/request/lsf.hpp"
#include "gpumem/request/nvidia_gpu.hpp"
#include "gpumem/request/nvidia_mig.hpp"
#include "gpumem/request/ray.hpp"
#include "gpumem/request/slurm.hpp"
#include "gpumem/request/volcano.hpp"

namespace gpumem::request {

namespace targets_detail {

inline constexpr std::array<TargetEntry, 10> kAll = {{
    {Hami::kName, "HAMi on Kubernetes: limits nvidia.com/gpu and nvidia.com/gpumem", Hami::make, true},
    {Volcano::kName, "Volcano on Kubernetes: limits volcano.sh/vgpu-number and volcano.sh/vgpu-memory", Volcano::make,
     true},
    {Kai::kName, "KAI scheduler on Kubernetes: annotation gpu-memory", Kai::make, true},
    {KaiFraction::kName, "KAI scheduler on Kubernetes: annotation gpu-fraction", KaiFraction::make, true},
    {KaiLimit::kName, "KAI scheduler on Kubernetes, NvFractions: gpu-memory.request and .limit of a container",
     KaiLimit::make, true},
    {NvidiaGpu::kName, "NVIDIA's device plugin on Kubernetes: whole GPUs, limit nvidia.com/gpu", NvidiaGpu::make, true},
    {NvidiaMig::kName, "NVIDIA's device plugin on Kubernetes: the smallest MIG slice", NvidiaMig::make, true},
    {Ray::kName, "Ray: num_gpus of a task or actor, or a ScalingConfig", Ray::make, false},
    {Slurm::kName, "Slurm: --gres=shard:N, one shard a MiB; several GPUs of a node whole", Slurm::make, false},
    {Lsf::kName, "IBM Spectrum LSF: gmem of bsub -gpu", Lsf::make, false},
}};

}  // namespace targets_detail

GPUMEM_INLINE std::span<const TargetEntry> targets() { return targets_detail::kAll; }

GPUMEM_INLINE core::Result<const TargetEntry*> find_target(std::string_view name) {
  std::string names;
  for (const TargetEntry& entry : targets()) {
    if (entry.name == name) return &entry;
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return core::Error{
      core::ErrorCode::invalid_argument, "there is no target " + core::quoted(name) + "; choose one of " + names, {}};
}

GPUMEM_INLINE core::Result<GpuRequest> make_request(std::string_view target, const estimate::MemoryEstimate& estimate,
                                                    const device::GpuProfile& gpu, const place::Margin& margin,
                                                    const Site& site) {
  const auto entry = find_target(target);
  if (!entry) return entry.error();
  const core::Result<Need> need = need_of(estimate, gpu, margin, site);
  if (!need) return need.error();
  core::Result<GpuRequest> request = (*entry)->make(*need);
  if (!request) return request;
  request->gpus_per_node = need->gpus_per_node;
  request->nodes = need->nodes;
  return request;
}

}  // namespace gpumem::request
