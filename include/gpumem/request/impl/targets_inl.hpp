#pragma once

#include "gpumem/request/targets.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
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

namespace gpu_request_detail {

inline constexpr std::int64_t kWhole = 10'000;

/// For a job that no GPU holds, and for a tight one whose runs nobody measured: that one may run out of memory.
GPUMEM_INLINE core::Error does_not_fit(const estimate::MemoryEstimate& estimate, core::Bytes asked,
                                       const device::GpuProfile& gpu, std::string_view advisor) {
  const std::string has = ", the GPU has " + core::to_string(gpu.capacity());
  const std::string remedy = "; '" + std::string(advisor) + "' says what would make it fit";
  if (estimate.expected > gpu.capacity()) {
    return {core::ErrorCode::missing_information,
            "no " + gpu.name + " holds it: it needs " + core::to_string(estimate.expected) + has + remedy,
            {}};
  }
  return {core::ErrorCode::missing_information,
          "it is tight on " + gpu.name + ": it needs " + core::to_string(estimate.expected) + ", with the margin " +
              core::to_string(asked) + has + remedy,
          {}};
}

/// Why nothing can be asked for by this estimate; empty if it is more than a lower bound.
GPUMEM_INLINE std::string why_lower_bound(const estimate::MemoryEstimate& estimate) {
  if (estimate.coverage.layers_unknown > 0) {
    return core::with_separators(estimate.coverage.layers_unknown) +
           " layers have unknown classes, so the estimate is a lower bound and cannot be requested; use a summary "
           "that gpumem knows the layers of";
  }
  if (estimate.leaves_out.empty()) return {};
  return "the estimate is a lower bound without " + estimate.leaves_out +
         " and cannot be requested; use an estimator of all that a job takes, such as replay";
}

/// How many of the GPUs a node has.
GPUMEM_INLINE core::Result<std::int64_t> gpus_per_node(std::int64_t gpus, const Site& site) {
  const std::int64_t per_node = site.gpus_per_node == 0 ? std::min(gpus, kUsualGpusPerNode) : site.gpus_per_node;
  if (per_node >= 1 && per_node <= gpus && gpus % per_node == 0) return per_node;
  return core::Error{core::ErrorCode::invalid_argument,
                     "the job has " + core::with_separators(gpus) + " GPUs, which is not a multiple of " +
                         core::with_separators(per_node) +
                         " a node; say with `gpus_per_node` how many of them each node has",
                     {}};
}

GPUMEM_INLINE std::string lines(std::string_view indent, const std::vector<Setting>& settings, std::string_view quote) {
  std::string text;
  for (const Setting& setting : settings) {
    text.append(indent)
        .append(setting.name)
        .append(": ")
        .append(quote)
        .append(setting.value)
        .append(quote)
        .append("\n");
  }
  return text;
}

}  // namespace gpu_request_detail

GPUMEM_INLINE core::Result<Need> need_of(const estimate::MemoryEstimate& estimate, const device::GpuProfile& gpu,
                                         const place::Margin& margin, const Site& site) {
  place::Request asked;
  const core::Status asks = place::ask_for(asked, estimate, margin);
  if (!asks) return asks.error();
  const std::string lower_bound = gpu_request_detail::why_lower_bound(estimate);
  if (!lower_bound.empty()) return core::Error{core::ErrorCode::missing_information, lower_bound, {}};
  const core::Result<std::int64_t> per_node = gpu_request_detail::gpus_per_node(estimate.gpus, site);
  if (!per_node) return per_node.error();
  const core::Bytes capacity = gpu.capacity();
  // A job may be known to need more than the GPU has, and yet to run there because the allocator gives back its cache.
  if (*asked.memory <= capacity || (estimate.expected <= capacity && estimate.fits)) {
    return Need{.memory = std::min(*asked.memory, capacity),
                .gpu = &gpu,
                .expected = estimate.expected,
                .gpus_per_node = *per_node,
                .nodes = estimate.gpus / *per_node,
                .container = site.container};
  }
  return gpu_request_detail::does_not_fit(estimate, *asked.memory, gpu, site.advisor);
}

GPUMEM_INLINE std::int64_t mebibytes(const Need& need) {
  return std::min(mebibytes(need.memory), need.gpu->capacity().count() >> 20);
}

GPUMEM_INLINE std::int64_t ten_thousandths(const Need& need) {
  const std::int64_t capacity = need.gpu->capacity().count();
  if (need.memory.count() >= capacity) return gpu_request_detail::kWhole;
  // In MiB, so that no product leaves 64 bits; at least 1, for no target takes a share of 0.
  const std::int64_t whole = std::max<std::int64_t>(capacity >> 20, 1);
  const std::int64_t scaled = mebibytes(need.memory) * gpu_request_detail::kWhole;
  return std::clamp<std::int64_t>(scaled / whole + (scaled % whole == 0 ? 0 : 1), 1, gpu_request_detail::kWhole);
}

GPUMEM_INLINE core::Bytes memory_of_share(const Need& need, std::int64_t ten_thousandths) {
  const std::int64_t capacity = need.gpu->capacity().count();
  const std::int64_t part = capacity / gpu_request_detail::kWhole * ten_thousandths;
  return core::Bytes(part + capacity % gpu_request_detail::kWhole * ten_thousandths / gpu_request_detail::kWhole);
}

GPUMEM_INLINE std::string share_text(std::int64_t ten_thousandths) {
  if (ten_thousandths >= gpu_request_detail::kWhole) return "1";
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0.%04d", static_cast<int>(ten_thousandths));
  std::string share = text.data();
  while (share.ends_with('0')) share.pop_back();
  return share;
}

GPUMEM_INLINE std::string to_text(const GpuRequest& request) {
  if (!request.argument.empty()) return request.argument + "\n";
  std::string text;
  if (request.nodes > 1) text += "# each of " + core::with_separators(request.nodes) + " pods\n";
  if (!request.annotations.empty()) {
    text += "metadata:\n  annotations:\n" + gpu_request_detail::lines("    ", request.annotations, "\"");
  }
  if (!request.limits.empty()) {
    text += "spec:\n  containers:\n    - resources:\n        limits:\n" +
            gpu_request_detail::lines("          ", request.limits, "");
  }
  return text;
}

}  // namespace gpumem::request
