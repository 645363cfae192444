// Enters: a job's need. Leaves: num_gpus of a Ray task or actor: the share of the GPU's memory, in ten-thousandths.
//
// Source: docs.ray.io, Ray Core, "Resources", "Fractional Resource Requirements": the precision is 0.0001, and a
// fraction stands between 0 and 1; Ray schedules by it and does not limit the memory. The share is that of the GPU
// named: a cluster of several types must ask for this one by accelerator_type.
#pragma once

#include "gpumem/request/gpu_request.hpp"

namespace gpumem::request {

struct Ray {
  static constexpr std::string_view kName = "ray";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    const std::int64_t share = ten_thousandths(need);
    return GpuRequest{.target = std::string(kName),
                      .memory = memory_of_share(need, share),
                      .argument = "num_gpus=" + share_text(share)};
  }
};

}  // namespace gpumem::request
