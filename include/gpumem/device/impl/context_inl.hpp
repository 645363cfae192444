#pragma once

#include "gpumem/device/context.hpp"

#include <array>
#include <cmath>

#include "gpumem/core/result.hpp"

namespace gpumem::device {

namespace context_detail {

inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;

/// Of an architecture: threads that one SM holds at once (CUDA C++ Programming Guide, table of compute capabilities),
/// and the MiB of the kernels that a process which trains loads, with lazy module loading: guesses in the range that
/// was seen of all architectures (40 to 230 MiB).
struct ArchitectureRow {
  std::string_view compute_capability;
  std::int64_t threads_per_sm = 2048;
  std::int64_t kernels_mib = 0;
};
inline constexpr std::array<ArchitectureRow, 12> kArchitectures = {{{"6.0", 2048, 75},
                                                                    {"6.1", 2048, 65},
                                                                    {"7.0", 2048, 60},
                                                                    {"7.5", 1024, 40},
                                                                    {"8.0", 2048, 95},
                                                                    {"8.6", 1536, 70},
                                                                    {"8.9", 1536, 85},
                                                                    {"9.0", 2048, 155},
                                                                    {"10.0", 2048, 165},
                                                                    {"10.3", 2048, 165},
                                                                    {"12.0", 1536, 95},
                                                                    {"12.1", 1536, 95}}};
inline constexpr ArchitectureRow kUnknownArchitecture = {{}, 2048, 100};

/// The most that kernels were seen to add.
inline constexpr std::int64_t kMostKernelsMib = 230;

/// For an unknown GPU: the A100's, and the range of all GPUs with a published figure.
inline constexpr Context kUnknownGpu = {core::Bytes(550 * kMiB), core::Bytes(70 * kMiB), core::Bytes(1000 * kMiB),
                                        ContextBasis::nothing};

}  // namespace context_detail

GPUMEM_INLINE Context context_by_size(const GpuProfile& gpu) {
  namespace detail = context_detail;
  if (!gpu.sm_count) return detail::kUnknownGpu;
  detail::ArchitectureRow row = detail::kUnknownArchitecture;
  for (const detail::ArchitectureRow& known : detail::kArchitectures) {
    if (known.compute_capability == gpu.compute_capability) row = known;
  }
  constexpr double kFixedMib = 18.0;
  constexpr double kMibPerThousand = 1.93;
  constexpr double kThousand = 1024.0;
  const double threads = static_cast<double>(gpu.sm_count->value) * static_cast<double>(row.threads_per_sm);
  const double most = 1000.0 * 1024.0;  // no GPU comes near; a profile of one's own may say anything
  const std::int64_t bare = std::llround(std::min(kFixedMib + kMibPerThousand * threads / kThousand, most));
  return {core::Bytes((bare + row.kernels_mib) * detail::kMiB), core::Bytes(bare * detail::kMiB),
          core::Bytes((bare + detail::kMostKernelsMib) * detail::kMiB), ContextBasis::size};
}

GPUMEM_INLINE core::Result<Context> context_of(const GpuProfile& gpu, std::string_view software,
                                               const LoadedKernels& kernels) {
  for (const ContextFigure& figure : gpu.contexts) {
    if (!software.empty() && software != figure.name) continue;
    const std::int64_t loaded = (kernels.convolutions ? figure.convolution_bytes : 0) +
                                (kernels.convolutions && kernels.batch_norm ? figure.batch_norm_bytes : 0);
    const auto with = [&](std::int64_t bytes) { return core::Bytes((bytes > 0 ? bytes : figure.bytes) + loaded); };
    const bool ranged = figure.lower_bytes > 0 || figure.upper_bytes > 0;
    return Context{with(figure.bytes), with(figure.lower_bytes), with(figure.upper_bytes),
                   ranged ? ContextBasis::range : ContextBasis::runs};
  }
  if (software.empty()) return context_by_size(gpu);
  std::string names;
  for (const ContextFigure& figure : gpu.contexts) names += (names.empty() ? "" : ", ") + figure.name;
  return core::Error{core::ErrorCode::invalid_argument,
                     gpu.name + " has no software stack " + core::quoted(software) +
                         (names.empty() ? "; its profile names none" : "; its profile names " + names),
                     {}};
}

}  // namespace gpumem::device
