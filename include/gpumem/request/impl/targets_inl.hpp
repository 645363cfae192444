#pragma once

#include "gpumem/request/targets.hpp"

#include <array>

#include "gpumem/request/hami.hpp"
#include "gpumem/request/kai.hpp"
#include "gpumem/request/lsf.hpp"
#include "gpumem/request/nvidia_mig.hpp"
#include "gpumem/request/ray.hpp"
#include "gpumem/request/slurm.hpp"
#include "gpumem/request/volcano.hpp"

namespace gpumem::request {

namespace targets_detail {

inline constexpr std::array<TargetEntry, 8> kAll = {{
    {Hami::kName, "HAMi on Kubernetes: limits nvidia.com/gpu and nvidia.com/gpumem", Hami::make, true},
    {Volcano::kName, "Volcano on Kubernetes: limits volcano.sh/vgpu-number and volcano.sh/vgpu-memory", Volcano::make,
     true},
    {Kai::kName, "KAI scheduler on Kubernetes: annotation gpu-memory", Kai::make, true},
    {KaiFraction::kName, "KAI scheduler on Kubernetes: annotation gpu-fraction", KaiFraction::make, true},
    {NvidiaMig::kName, "NVIDIA's device plugin on Kubernetes: the smallest MIG slice", NvidiaMig::make, true},
    {Ray::kName, "Ray: num_gpus of a task or actor", Ray::make, false},
    {Slurm::kName, "Slurm: --gres=shard:N, one shard a MiB", Slurm::make, false},
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
                                                    const device::GpuProfile& gpu, const place::Margin& margin) {
  const auto entry = find_target(target);
  if (!entry) return entry.error();
  const core::Result<Need> need = need_of(estimate, gpu, margin);
  if (!need) return need.error();
  return (*entry)->make(*need);
}

}  // namespace gpumem::request
