// Input: a job's need.
// Output: options of LSF's bsub: shared GPUs, and the memory to reserve on each. A job on several GPUs gets a process
// for each GPU, and the number of processes on a host.
//
// Source: IBM Spectrum LSF 10.1 documentation, "bsub -gpu" (gmem reserves the amount of memory on each GPU that the job
// requires; needs LSB_GPU_NEW_SYNTAX=extend) and "LSF_UNIT_FOR_LIMITS" (without a unit, the cluster's configuration
// says what a number means; with the unit M it is what it says, since 10.1.0.2). "bsub -gpu": num counts physical GPUs
// of each host; "span string": ptile is how many processes a host has.
#pragma once

#include "gpumem/request/gpu_request.hpp"

namespace gpumem::request {

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

}  // namespace gpumem::request
