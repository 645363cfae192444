#pragma once

#include "gpumem/request/targets.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>

namespace gpumem::request {

namespace nvidia_mig_detail {

inline constexpr std::string_view kMark = "-mig-";

/// "2g.10gb" of "a100-40gb-mig-2g.10gb".
GPUMEM_INLINE std::string slice_of(const device::GpuProfile& gpu) {
  const std::size_t at = gpu.name.rfind(kMark);
  return at == std::string::npos ? std::string() : gpu.name.substr(at + kMark.size());
}

/// The least memory first; where it is the same, the least compute.
GPUMEM_INLINE bool smaller(const device::GpuProfile& left, const device::GpuProfile& right) {
  return std::tuple(left.capacity(), slice_of(left)) < std::tuple(right.capacity(), slice_of(right));
}

/// The slices of this GPU, the smallest first; of a slice, only itself.
GPUMEM_INLINE core::Result<std::vector<device::GpuProfile>> slices_of(const device::GpuProfile& gpu) {
  if (!gpu.parent.empty()) return std::vector{gpu};
  const core::Result<std::vector<device::GpuProfile>>& known = device::known_profiles();
  if (!known) return known.error();
  std::vector<device::GpuProfile> slices;
  std::copy_if(known->begin(), known->end(), std::back_inserter(slices),
               [&](const device::GpuProfile& each) { return each.parent == gpu.name; });
  std::sort(slices.begin(), slices.end(), smaller);
  return slices;
}

}  // namespace nvidia_mig_detail

GPUMEM_INLINE core::Result<GpuRequest> NvidiaMig::make(const Need& need) {
  if (need.gpus_per_node * need.nodes > 1) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "MIG slices cannot reach each other's memory, and a process sees only one of them, so that a "
                       "job on several GPUs takes none; ask for whole GPUs (nvidia-gpu), or for hami or volcano",
                       {}};
  }
  const auto slices = nvidia_mig_detail::slices_of(*need.gpu);
  if (!slices) return slices.error();
  if (slices->empty()) {
    return core::Error{core::ErrorCode::invalid_argument,
                       "no MIG slices of " + need.gpu->name + " are known; see gpumem gpus for GPUs with some",
                       {}};
  }
  for (const device::GpuProfile& slice : *slices) {
    if (need.memory > slice.capacity()) continue;
    const std::string resource = "nvidia.com/mig-" + nvidia_mig_detail::slice_of(slice);
    return GpuRequest{.target = std::string(kName),
                      .memory = slice.capacity(),
                      .limits = {{resource, "1"}},
                      .count_limit = resource,
                      .excluded_limits = {"nvidia.com/gpu"}};
  }
  const device::GpuProfile& largest = slices->back();
  return core::Error{core::ErrorCode::missing_information,
                     "no MIG slice of " + need.gpu->name + " holds it: it needs " + core::to_string(need.memory) +
                         ", the largest slice (" + largest.name + ") has " + core::to_string(largest.capacity()),
                     {}};
}

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
