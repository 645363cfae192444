// Enters: a job's need. Leaves: an option of LSF's bsub: one shared GPU, and the memory to reserve on it.
//
// Source: IBM Spectrum LSF 10.1 documentation, "bsub -gpu" (gmem reserves the amount of memory on each GPU that the job
// requires; needs LSB_GPU_NEW_SYNTAX=extend) and "LSF_UNIT_FOR_LIMITS" (without a unit, the cluster's configuration
// says what a number means; with the unit M it is what it says, since 10.1.0.2).
#pragma once

#include "gpumem/request/gpu_request.hpp"

namespace gpumem::request {

struct Lsf {
  static constexpr std::string_view kName = "lsf";

  [[nodiscard]] static core::Result<GpuRequest> make(const Need& need) {
    const std::int64_t size = mebibytes(need);
    return GpuRequest{.target = std::string(kName),
                      .memory = core::Bytes(size << 20),
                      .argument = "-gpu num=1:mode=shared:gmem=" + std::to_string(size) + "M"};
  }
};

}  // namespace gpumem::request
