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
#pragma once

#include <algorithm>

#include "gpumem/request/gpu_request.hpp"

namespace gpumem::request {

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

}  // namespace gpumem::request
