// Input: what a job needs on each of its GPUs, and how many of them a node has.
// Output: GpuRequest, the same in the words of one scheduler or launcher. One file a target, with the source of its
// unit; targets.hpp is the list.
// Units: bytes; targets count in MiB, or in shares of the GPU's memory, always rounded up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/place/policies.hpp"

namespace gpumem::request {

/// GPUs of a node where none are given: as NVIDIA's HGX and DGX boards have them.
inline constexpr std::int64_t kUsualGpusPerNode = 8;

/// The commands that say what would make a job fit, by what the job is.
inline constexpr std::string_view kTrainingAdvisor = "gpumem advise";
inline constexpr std::string_view kServerAdvisor = "gpumem serve --advise";
inline constexpr std::string_view kPostTrainingAdvisor = "gpumem posttrain --advise";

/// What a target is told in addition to the job.
struct Site {
  std::int64_t gpus_per_node = 0;     ///< that the job uses of each node; 0: all of its GPUs, but no more than usual
  std::string container = "trainer";  ///< of the pod that trains, for targets that name it
  std::string advisor = std::string(kTrainingAdvisor);  ///< the command that says what makes such a job fit
};

/// What a job asks for on each of its GPUs, all of this type.
struct Need {
  core::Bytes memory;  ///< to set aside, margin included; at most the GPU's capacity
  const device::GpuProfile* gpu = nullptr;
  core::Bytes expected = {};       ///< the same without a margin
  std::int64_t gpus_per_node = 1;  ///< one process each
  std::int64_t nodes = 1;
  std::string container = "trainer";
};

/// One entry of a map in a manifest.
struct Setting {
  std::string name;
  std::string value;

  friend bool operator==(const Setting&, const Setting&) = default;
};

/// What to write into a manifest, on a command line or into a program. A Kubernetes target fills annotations and
/// limits, any other one the argument.
struct GpuRequest {
  std::string target;
  core::Bytes memory;                     ///< what the target sets aside on each GPU: the need, rounded up
  std::vector<Setting> annotations = {};  ///< of the pod
  std::vector<Setting> limits = {};       ///< of the container that trains: resources.limits
  /// Which of the limits counts GPUs: a job that trains on several alike keeps the number it has.
  std::string count_limit = {};
  /// Limits that must not be combined with these: the target takes the GPU from elsewhere.
  std::vector<std::string> excluded_limits = {};
  std::string argument = {};
  std::int64_t gpus_per_node = 1;
  std::int64_t nodes = 1;  ///< each with a pod like this, or counted in the argument
};

/// What to set aside for a job of this estimate, on each of its GPUs. The margin ends where the GPU does: if it has the
/// GPU to itself, the job needs no more than is expected. Errors: missing_information where no GPU of this type holds
/// it, saying need and limit, and for an estimate that is only a lower bound; invalid_argument where nodes cannot be
/// equally full; overflow.
[[nodiscard]] core::Result<Need> need_of(const estimate::MemoryEstimate& estimate, const device::GpuProfile& gpu,
                                         const place::Margin& margin = {.bytes = {}, .upper = true},
                                         const Site& site = {});

/// The bytes in MiB, rounded up.
[[nodiscard]] constexpr std::int64_t mebibytes(core::Bytes bytes) {
  constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
  return bytes.count() / kMebibyte + (bytes.count() % kMebibyte == 0 ? 0 : 1);
}

/// The MiB that the target counts: the need rounded up, but no more whole MiB than the GPU has.
[[nodiscard]] std::int64_t mebibytes(const Need& need);

/// The need as a share of the GPU's memory in ten-thousandths, rounded up; 10,000 is the whole GPU.
[[nodiscard]] std::int64_t ten_thousandths(const Need& need);

/// What this share of the GPU's memory comes to.
[[nodiscard]] core::Bytes memory_of_share(const Need& need, std::int64_t ten_thousandths);

/// "0.3062", "1".
[[nodiscard]] std::string share_text(std::int64_t ten_thousandths);

/// A manifest's lines (YAML) for a Kubernetes target, else the argument; ends with a line end.
[[nodiscard]] std::string to_text(const GpuRequest& request);

// Input: a target's name and an estimate.
// Output: what to ask this scheduler or launcher for. To add a target: a function here and a row in the list of
// targets_inl.hpp.

// Input: a job's need.
// Output: options of sbatch, srun and salloc: shards of 1 MiB each, or whole GPUs. A job on several GPUs also gets its
// nodes, and a task for each GPU.
//
// Source: Slurm's documentation, "Generic Resource (GRES) Scheduling", "Sharding": shards of a GPU are given to jobs
// that share it, and a job's shards are all on one GPU. The meaning of one shard is the site's choice; here the count
// of each GPU in gres.conf is its usable memory in MiB (as examples/slurm sets it up). --gres counts on each node. A
// job on several GPUs of a node asks for whole ones: its shards there would be of one GPU, or, under slurm.conf's
// MULTIPLE_SHARING_GRES_PJ, of any, however many of each.

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

// Input: a job's need.
// Output: a pod's annotations for the KAI scheduler: gpu-memory in MiB, or gpu-fraction, a share of the GPU's memory,
// with the number of GPUs if there are several; or request and limit of the container that trains. The pod's
// schedulerName must be that of KAI, and its label must name a queue.
//
// Source: github.com/NVIDIA/KAI-Scheduler, docs/gpu-sharing/README.md and gpu-memory.yaml: 'gpu-memory: "2000" # in
// Mib', 'gpu-fraction: "0.5"', above 0 and below 1; GPU sharing must be enabled, and KAI does not enforce what is asked
// for. Its examples have no limit nvidia.com/gpu in addition, which asks for whole GPUs. gpu-fraction-num-devices: the
// same on each of this many GPUs. In the mode NvFractions KAI places by nvidia.com/container.NAME.gpu-memory.request,
// and MPS holds the container to the .limit; both are quantities ("4096Mi"), the request no larger than the limit.

struct Kai {
  static constexpr std::string_view kName = "kai";
  static constexpr std::string_view kDevices = "gpu-fraction-num-devices";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    const std::int64_t size = mebibytes(need);
    return GpuRequest{.target = std::string(kName),
                      .memory = core::Bytes(size << 20),
                      .annotations = on_each(need, {{"gpu-memory", std::to_string(size)}}),
                      .excluded_limits = {"nvidia.com/gpu"}};
  }

  /// With the number of GPUs, where there are several.
  [[nodiscard]] static std::vector<Setting> on_each(const Need& need, std::vector<Setting> annotations) {
    if (need.gpus_per_node > 1) {
      annotations.push_back({std::string(kDevices), std::to_string(need.gpus_per_node)});
    }
    return annotations;
  }
};

struct KaiFraction {
  static constexpr std::string_view kName = "kai-fraction";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    const std::int64_t share = ten_thousandths(need);
    if (memory_of_share(need, share) == need.gpu->capacity()) return whole(need);
    return GpuRequest{.target = std::string(kName),
                      .memory = memory_of_share(need, share),
                      .annotations = Kai::on_each(need, {{"gpu-fraction", share_text(share)}}),
                      .excluded_limits = {"nvidia.com/gpu"}};
  }

 private:
  /// A share is below 1.
  [[nodiscard]] static GpuRequest whole(const Need& need) {
    return GpuRequest{.target = std::string(kName),
                      .memory = need.gpu->capacity(),
                      .limits = {{"nvidia.com/gpu", std::to_string(need.gpus_per_node)}},
                      .count_limit = "nvidia.com/gpu"};
  }
};

/// Placed by what is expected, held to what is the most.
struct KaiLimit {
  static constexpr std::string_view kName = "kai-limit";

  /// Errors: invalid_argument for a name that no container has.
  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    if (!is_label(need.container)) {
      return core::Error{core::ErrorCode::invalid_argument,
                         "no container is called " + core::quoted(need.container) +
                             ": its name has small letters, digits and hyphens, 63 at most",
                         {}};
    }
    const std::int64_t limit = mebibytes(need);
    const std::int64_t request = std::min(mebibytes(need.expected), limit);
    const std::string name = "nvidia.com/container." + need.container + ".gpu-memory.";
    return GpuRequest{.target = std::string(kName),
                      .memory = core::Bytes(limit << 20),
                      .annotations = Kai::on_each(need, {{name + "request", std::to_string(request) + "Mi"},
                                                         {name + "limit", std::to_string(limit) + "Mi"}}),
                      .excluded_limits = {"nvidia.com/gpu"}};
  }

 private:
  /// A DNS label (RFC 1123), as Kubernetes names containers.
  [[nodiscard]] static bool is_label(std::string_view name) {
    constexpr std::size_t kLongest = 63;
    const auto fits = [](char byte) {
      return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-';
    };
    return !name.empty() && name.size() <= kLongest && std::all_of(name.begin(), name.end(), fits);
  }
};

// Input: a job's need.
// Output: limits for HAMi (Project-HAMi, a device plugin and scheduler extender for Kubernetes): virtual GPUs, and the
// memory of each in MiB.
//
// Source: project-hami.io, "Lab 3: GPU Partitioning with HAMi", step 1: nvidia.com/gpu is the number of virtual GPUs,
// nvidia.com/gpumem the memory of each in MiB; each is of a physical GPU of its own
// (github.com/Project-HAMi/HAMi, README.md: "declare how many physical GPUs the pod needs"). HAMi multiplies it by its
// memoryFactor, 1 by default (github.com/Project-HAMi/HAMi, docs/gpu-memory-factor.md); a cluster with another factor
// must divide by it.

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

// Input: a job's need.
// Output: limits for Volcano's virtual GPUs: how many, and the memory of each in MiB. The pod's schedulerName must be
// that of Volcano.
//
// Source: github.com/volcano-sh/volcano, docs/user-guide/how_to_use_volcano_vgpu.md: volcano.sh/vgpu-number and
// volcano.sh/vgpu-memory, "3000" for "3G" on each of them; github.com/Project-HAMi/volcano-vgpu-device-plugin,
// doc/config.md, says "MB"; that MiB are meant, one entry each, says github.com/Project-HAMi/HAMi,
// docs/gpu-memory-factor.md, also that a cluster may count in multiples of them.

struct Volcano {
  static constexpr std::string_view kName = "volcano";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    const std::int64_t size = mebibytes(need);
    return GpuRequest{.target = std::string(kName),
                      .memory = core::Bytes(size << 20),
                      .limits = {{"volcano.sh/vgpu-number", std::to_string(need.gpus_per_node)},
                                 {"volcano.sh/vgpu-memory", std::to_string(size)}},
                      .count_limit = "volcano.sh/vgpu-number"};
  }
};

// Input: a job's need.
// Output: a limit for NVIDIA's device plugin for Kubernetes: whole GPUs, for a job that shares none. Most jobs on
// several GPUs are such jobs.
//
// Source: NVIDIA/k8s-device-plugin, README.md: a resource nvidia.com/gpu, counted in whole GPUs of the pod's node.

struct NvidiaGpu {
  static constexpr std::string_view kName = "nvidia-gpu";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    return GpuRequest{.target = std::string(kName),
                      .memory = need.gpu->capacity(),
                      .limits = {{"nvidia.com/gpu", std::to_string(need.gpus_per_node)}},
                      .count_limit = "nvidia.com/gpu"};
  }
};

// Input: a job's need.
// Output: a limit for NVIDIA's device plugin for Kubernetes: the smallest MIG slice of this GPU that holds the need. If
// the profile is a slice itself, only this slice is tried.
//
// Source: NVIDIA/k8s-device-plugin, README.md, "mixed" MIG strategy: a resource nvidia.com/mig-<slice>g.<memory>gb for
// each profile. What a slice holds is that of its profile in models/gpus, which names its source. NVIDIA's MIG user
// guide, "Application considerations": no peer-to-peer access between slices; "CUDA device enumeration": one a process.

struct NvidiaMig {
  static constexpr std::string_view kName = "nvidia-mig";

  /// Errors: invalid_argument for a GPU of which no slices are known, and for a job on several GPUs;
  /// missing_information where none holds the need.
  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need);
};

// Input: a job's need.
// Output: options of LSF's bsub: shared GPUs, and the memory to reserve on each. A job on several GPUs gets a process
// for each GPU, and the number of processes on a host.
//
// Source: IBM Spectrum LSF 10.1 documentation, "bsub -gpu" (gmem reserves the amount of memory on each GPU that the job
// requires; needs LSB_GPU_NEW_SYNTAX=extend) and "LSF_UNIT_FOR_LIMITS" (without a unit, the cluster's configuration
// says what a number means; with the unit M it is what it says, since 10.1.0.2). "bsub -gpu": num counts physical GPUs
// of each host; "span string": ptile is how many processes a host has.

struct Lsf {
  static constexpr std::string_view kName = "lsf";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    const std::int64_t size = mebibytes(need);
    const std::string gpus = std::to_string(need.gpus_per_node);
    return GpuRequest{
        .target = std::string(kName),
        .memory = core::Bytes(size << 20),
        .argument = processes(need) + "-gpu num=" + gpus + ":mode=shared:gmem=" + std::to_string(size) + "M"};
  }

 private:
  /// "-n 16 -R span[ptile=8] "; nothing for one process.
  [[nodiscard]] static std::string processes(const Need& need) {
    const std::int64_t all = need.gpus_per_node * need.nodes;
    if (all == 1) return {};
    return "-n " + std::to_string(all) + " -R span[ptile=" + std::to_string(need.gpus_per_node) + "] ";
  }
};

// Input: a job's need.
// Output: num_gpus of a Ray task or actor: the share of the GPU's memory, in ten-thousandths; for a job on several GPUs
// the ScalingConfig of Ray Train.
//
// Source: docs.ray.io, Ray Core, "Resources", "Fractional Resource Requirements": the precision is 0.0001, and a
// fraction is between 0 and 1; Ray schedules by it and does not limit the memory. The share is that of the GPU named: a
// cluster of several types must ask for this one by accelerator_type. Of a job on several GPUs: Ray Train, "Configuring
// Scale and GPUs": ScalingConfig, a worker a process. Each takes a whole GPU, for Ray puts workers with less on one GPU
// together, and NCCL refuses two ranks of one GPU (nccl, src/init.cc: "Duplicate GPU detected").

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

struct TargetEntry {
  std::string_view name;
  std::string_view description;  ///< one line for people
  core::Result<GpuRequest> (*make)(const Need& need);
  bool kubernetes = false;  ///< fills annotations and limits of a pod
};

/// Every target that gpumem has.
[[nodiscard]] std::span<const TargetEntry> targets();

/// The target of this name. Errors: invalid_argument, listing the names.
[[nodiscard]] core::Result<const TargetEntry*> find_target(std::string_view name);

/// Asks the target of this name for a job of this estimate. Errors: those of find_target(), of need_of() and of the
/// target.
[[nodiscard]] core::Result<GpuRequest> make_request(std::string_view target, const estimate::MemoryEstimate& estimate,
                                                    const device::GpuProfile& gpu,
                                                    const place::Margin& margin = {.bytes = {}, .upper = true},
                                                    const Site& site = {});

}  // namespace gpumem::request
