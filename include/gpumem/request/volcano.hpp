// Input: a job's need.
// Output: limits for Volcano's virtual GPUs: how many, and the memory of each in MiB. The pod's schedulerName must be
// that of Volcano.
//
// Source: github.com/volcano-sh/volcano, docs/user-guide/how_to_use_volcano_vgpu.md: volcano.sh/vgpu-number and
// volcano.sh/vgpu-memory, "3000" for "3G" on each of them; github.com/Project-HAMi/volcano-vgpu-device-plugin,
// doc/config.md, says "MB"; that MiB are meant, one entry each, says github.com/Project-HAMi/HAMi,
// docs/gpu-memory-factor.md, also that a cluster may count in multiples of them.
#pragma once

#include "gpumem/request/gpu_request.hpp"

namespace gpumem::request {

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

}  // namespace gpumem::request
