// Enters: a job's need. Leaves: a pod's annotation for the KAI scheduler: gpu-memory in MiB, or gpu-fraction, a share
// of the GPU's memory. The pod's schedulerName must be that of KAI, and its label must name a queue.
//
// Source: github.com/NVIDIA/KAI-Scheduler, docs/gpu-sharing/README.md and gpu-memory.yaml: 'gpu-memory: "2000" # in
// Mib', 'gpu-fraction: "0.5"'; GPU sharing must be enabled, and KAI does not enforce what is asked for. Its examples
// have no limit nvidia.com/gpu beside, which asks for whole GPUs.
#pragma once

#include "gpumem/request/gpu_request.hpp"

namespace gpumem::request {

struct Kai {
  static constexpr std::string_view kName = "kai";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    const std::int64_t size = mebibytes(need);
    return GpuRequest{.target = std::string(kName),
                      .memory = core::Bytes(size << 20),
                      .annotations = {{"gpu-memory", std::to_string(size)}},
                      .excluded_limits = {"nvidia.com/gpu"}};
  }
};

struct KaiFraction {
  static constexpr std::string_view kName = "kai-fraction";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    const std::int64_t share = ten_thousandths(need);
    return GpuRequest{.target = std::string(kName),
                      .memory = memory_of_share(need, share),
                      .annotations = {{"gpu-fraction", share_text(share)}},
                      .excluded_limits = {"nvidia.com/gpu"}};
  }
};

}  // namespace gpumem::request
