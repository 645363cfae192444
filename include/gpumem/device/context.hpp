// Input: a GPU's profile, a software stack, and which of cuDNN's kernels a job loads.
// Output: what CUDA takes of the GPU before the first tensor: context, driver, loaded libraries.
// Units: bytes.
// Source: the profile's figures; where it has none, a rule of thumb (context_by_size()).
#pragma once

#include <string>
#include <string_view>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"

namespace gpumem::device {

/// What a figure of a context rests on.
enum class ContextBasis : std::uint8_t {
  runs,     ///< measured runs on this GPU
  range,    ///< what was seen on such GPUs, which differs
  size,     ///< the number of threads that the GPU holds
  nothing,  ///< the A100's figure: the profile does not say how many SMs there are
};

struct Context {
  core::Bytes expected;
  core::Bytes lower;
  core::Bytes upper;
  ContextBasis basis = ContextBasis::nothing;

  friend bool operator==(const Context&, const Context&) = default;
};

/// Which kernels of cuDNN a job loads.
struct LoadedKernels {
  bool convolutions = false;
  bool batch_norm = false;
};

/// Errors: invalid_argument for a software stack that the profile does not name.
[[nodiscard]] core::Result<Context> context_of(const GpuProfile& gpu, std::string_view software,
                                               const LoadedKernels& kernels);

/// A CUDA context reserves local memory for every thread that the GPU can hold at once, and kernels are added as they
/// are loaded. Fitted by this project to 11 published figures of processes that had a context and no kernels (T4, A100,
/// RTX 3090, RTX 4090, RTX 6000 Ada, H100, H200, B200, RTX 5090; PyTorch 2.4 to 2.10, CUDA 12 and 13, lazy module
/// loading): 18 MiB and 1.93 MiB for each 1,024 threads, at most 25 MiB off. Processes that train were seen to take 40
/// to 230 MiB more, for the kernels that they load. How much of that a GPU's kernels take was not measured for each
/// architecture: those figures are guesses, and `assumed` says so.
[[nodiscard]] Context context_by_size(const GpuProfile& gpu);

}  // namespace gpumem::device
