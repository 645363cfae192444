// Input: what a job needs on each of its GPUs, and how many of them a node has.
// Output: GpuRequest, the same in the words of one scheduler or launcher. One file a target, with the source of its
// unit; targets.hpp is the list.
// Units: bytes; targets count in MiB, or in shares of the GPU's memory, always rounded up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/estimate/memory_estimate.hpp"
#include "gpumem/place/policy.hpp"

namespace gpumem::request {

/// GPUs of a node where none are given: as NVIDIA's HGX and DGX boards have them.
inline constexpr std::int64_t kUsualGpusPerNode = 8;

/// What a target is told in addition to the job.
struct Site {
  std::int64_t gpus_per_node = 0;     ///< that the job uses of each node; 0: all of its GPUs, but no more than usual
  std::string container = "trainer";  ///< of the pod that trains, for targets that name it
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

}  // namespace gpumem::request
