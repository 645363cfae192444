#pragma once

#include "gpumem/search/links.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace gpumem::search {

namespace links_detail {

/// The share of a data sheet's bandwidth that rings reach. Assumed.
inline constexpr double kReached = 0.8;
inline constexpr double kLinkHop = 3.4e-6;
inline constexpr double kNetworkHop = 14e-6;

/// For GPUs whose profile says nothing: PCIe 4.0 with 16 lanes, a network card of 100 Gb/s a GPU, 8 GPUs a node.
inline constexpr double kUsualLink = 32e9;
inline constexpr double kUsualNetwork = 12.5e9;
inline constexpr std::int64_t kUsualNode = 8;

inline constexpr double kGiga = 1e9;
inline constexpr double kBits = 8.0;

GPUMEM_INLINE std::string gigabytes(double bytes) {
  const auto tenths = static_cast<std::int64_t>(std::llround(bytes / kGiga * 10.0));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB/s";
}

/// How many of the group's ranks are in one node.
GPUMEM_INLINE std::int64_t in_a_node(const Links& links, const Group& group) {
  return std::clamp<std::int64_t>(links.gpus_per_node / group.apart, 1, group.count);
}

GPUMEM_INLINE double bandwidth(const Links& links, const Group& group) {
  const std::int64_t together = in_a_node(links, group);
  if (together == group.count) return links.link * kReached;
  const double out = links.network * static_cast<double>(together);
  return (together == 1 ? out : std::min(links.link, out)) * kReached;
}

/// Once around the ring.
GPUMEM_INLINE double hops_seconds(const Links& links, const Group& group) {
  const std::int64_t together = in_a_node(links, group);
  const std::int64_t nodes = (group.count + together - 1) / together;
  const std::int64_t between = nodes - 1;
  return kNetworkHop * static_cast<double>(between) + kLinkHop * static_cast<double>(group.count - 1 - between);
}

}  // namespace links_detail

GPUMEM_INLINE core::Result<Links> links_of(const device::GpuProfile& gpu, const LinkOptions& options) {
  namespace detail = links_detail;
  const auto refused = [](const char* message) { return core::Error{core::ErrorCode::invalid_argument, message, {}}; };
  if (options.gpus_per_node && *options.gpus_per_node < 1) return refused("`gpus_per_node` counts from 1");
  const double told = options.network_gbps.value_or(1.0);
  if (!(std::isfinite(told) && told > 0.0)) return refused("`network_gbps` must be more than 0, such as 400");
  Links links;
  const auto take = [&](const std::optional<device::Figure>& figure, double usual, const char* what) {
    if (figure) return static_cast<double>(figure->value);
    links.assumed.push_back(
        {"links", detail::gigabytes(usual) + " " + what + ", which the profile of " + gpu.name + " does not name"});
    return usual;
  };
  links.link = take(gpu.link_bandwidth_bytes_per_second, detail::kUsualLink, "between the GPUs of a node");
  links.network = options.network_gbps ? *options.network_gbps * detail::kGiga / detail::kBits
                                       : take(gpu.network_bandwidth_bytes_per_second, detail::kUsualNetwork,
                                              "from each GPU to other nodes (`network_gbps`)");
  links.gpus_per_node = options.gpus_per_node.value_or(gpu.gpus_per_node ? gpu.gpus_per_node->value : 0);
  if (links.gpus_per_node == 0) {
    links.gpus_per_node = detail::kUsualNode;
    links.assumed.push_back({"links", std::to_string(detail::kUsualNode) + " GPUs a node (`gpus_per_node`)"});
  }
  links.assumed.push_back(
      {"links", "collectives reach 0.8 of the bandwidth that data sheets give for links and network"});
  return links;
}

GPUMEM_INLINE double gather_seconds(const Links& links, const Group& group, double bytes) {
  if (group.count <= 1 || bytes <= 0.0) return 0.0;
  const auto ranks = static_cast<double>(group.count);
  return bytes * (ranks - 1.0) / ranks / links_detail::bandwidth(links, group) +
         links_detail::hops_seconds(links, group);
}

GPUMEM_INLINE double reduce_seconds(const Links& links, const Group& group, double bytes) {
  return 2.0 * gather_seconds(links, group, bytes);
}

GPUMEM_INLINE double exchange_seconds(const Links& links, const Group& group, double bytes) {
  if (group.count <= 1 || bytes <= 0.0) return 0.0;
  const std::int64_t together = links_detail::in_a_node(links, group);
  const auto ranks = static_cast<double>(group.count);
  const double out = static_cast<double>(group.count - together) / ranks * bytes / links.network;
  const double within = static_cast<double>(together - 1) / ranks * bytes / links.link;
  const double hop = together < group.count ? links_detail::kNetworkHop : links_detail::kLinkHop;
  return std::max(out, within) / links_detail::kReached + hop;
}

GPUMEM_INLINE double send_seconds(const Links& links, const Group& group, double bytes) {
  if (group.count <= 1 || bytes <= 0.0) return 0.0;
  const bool within = links_detail::in_a_node(links, group) == group.count;
  return bytes / ((within ? links.link : links.network) * links_detail::kReached) +
         (within ? links_detail::kLinkHop : links_detail::kNetworkHop);
}

}  // namespace gpumem::search
