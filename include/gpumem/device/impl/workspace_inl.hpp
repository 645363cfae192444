#pragma once

#include "gpumem/device/workspace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "gpumem/core/bytes.hpp"
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

namespace workspace_detail {

/// Into how many slices a weight gradient of w bytes is split.
GPUMEM_INLINE std::int64_t slices(const ConvolutionWorkspaceRule& rule, std::int64_t in_channels, std::int64_t w,
                                  bool wide, bool whole) {
  if (rule.variant.slices > 0) return rule.variant.slices;
  if (rule.variant.split_bytes > 0) return std::max<std::int64_t>(1, (rule.variant.split_bytes + w / 2) / w);
  if (whole) return 1;
  if (wide) return w <= rule.wide_split_most_bytes ? rule.wide_slices : 1;
  if (in_channels <= rule.narrow_least_inputs) return 1;
  constexpr std::int64_t kLeast = 2;
  return std::max(kLeast, (rule.narrow_split_bytes + w / 2) / w);
}

/// Whether a pass copies its tensors, where the rule says `by_rule`.
GPUMEM_INLINE bool copies(Copies variant, bool aligned, bool by_rule) {
  switch (variant) {
    case Copies::by_rule: return by_rule;
    case Copies::always: return true;
    case Copies::unaligned: return !aligned;
    case Copies::never: return false;
  }
  return by_rule;
}

inline constexpr std::int64_t kSplitMiB = std::int64_t{1} << 20;
inline constexpr std::array<WorkspaceVariant, 21> kVariants = {{
    {.name = "slices-1", .slices = 1},
    {.name = "slices-2", .slices = 2},
    {.name = "slices-4", .slices = 4},
    {.name = "slices-8", .slices = 8},
    {.name = "slices-16", .slices = 16},
    {.name = "split-5mib", .split_bytes = 5 * kSplitMiB},
    {.name = "split-10mib", .split_bytes = 10 * kSplitMiB},
    {.name = "split-20mib", .split_bytes = 20 * kSplitMiB},
    {.name = "split-40mib", .split_bytes = 40 * kSplitMiB},
    {.name = "forward-always", .forward = Copies::always},
    {.name = "forward-unaligned", .forward = Copies::unaligned},
    {.name = "forward-never", .forward = Copies::never},
    {.name = "data-unaligned", .data_gradient = Copies::unaligned},
    {.name = "data-never", .data_gradient = Copies::never},
    {.name = "weight-unaligned", .weight_gradient = Copies::unaligned},
    {.name = "weight-never", .weight_gradient = Copies::never},
    {.name = "gradients-unaligned", .data_gradient = Copies::unaligned, .weight_gradient = Copies::unaligned},
    {.name = "none", .forward = Copies::never, .data_gradient = Copies::never, .weight_gradient = Copies::never},
    {.name = "multiple-8", .channel_multiple = 8},
    {.name = "first-always", .first_layer = Copies::always},
    {.name = "first-never", .first_layer = Copies::never},
}};

GPUMEM_INLINE bool from_hopper(const GpuProfile& gpu) {
  constexpr std::size_t kOneDigit = 3;  // "8.0"; "10.0" is longer
  return gpu.compute_capability.size() > kOneDigit || gpu.compute_capability >= "9";
}

}  // namespace workspace_detail

GPUMEM_INLINE std::span<const WorkspaceVariant> workspace_variants() { return workspace_detail::kVariants; }

GPUMEM_INLINE WorkspaceChoice convolution_workspace(const GpuProfile& gpu, const ConvolutionCall& call) {
  using core::bounded_product;
  using core::rounded_up;
  using workspace_detail::copies;
  const ConvolutionWorkspaceRule& rule = gpu.convolution_workspace;
  const WorkspaceVariant& variant = rule.variant;
  const std::int64_t in = call.in_channels;
  const std::int64_t out = call.out_channels;
  const bool depthwise = call.groups > 1 && call.groups == in;
  if (depthwise) return {};
  constexpr std::int64_t kFloatBytes = 4;
  const std::int64_t narrower = std::min(call.element_bytes, kFloatBytes);
  const std::int64_t multiple = rule.channel_multiple * kFloatBytes / narrower;
  const auto operands = [&] {  // x' + y'
    return bounded_product({rounded_up(in, multiple), call.input_pixels, call.batch_size, call.element_bytes}) +
           bounded_product({rounded_up(out, multiple), call.output_pixels, call.batch_size, call.element_bytes});
  };
  const bool weight_gradient = call.pass == ConvolutionPass::weight_gradient;
  constexpr std::int64_t kImageChannels = 3;
  if (in <= kImageChannels) {
    const bool by_rule = out > rule.first_layer_channels;
    return {weight_gradient && copies(variant.first_layer, !by_rule, by_rule) ? operands() : 0, 0};
  }
  const bool wide = std::max(in, out) > rule.narrow_channels;
  const std::int64_t aligned_to =
      variant.channel_multiple > 0 ? variant.channel_multiple * kFloatBytes / narrower : multiple;
  const bool both_aligned = out % aligned_to == 0 && in % aligned_to == 0;
  const bool aligned = out % aligned_to == 0 && (in % aligned_to == 0 || wide);
  if (aligned && call.kernel_elements == 1) return {};
  const std::int64_t w = bounded_product(
      {rounded_up(in / call.groups, multiple), rounded_up(out, multiple), call.kernel_elements, call.element_bytes});
  if (call.pass == ConvolutionPass::forward) {
    return {copies(variant.forward, both_aligned, !aligned) ? operands() + w : 0, 0};
  }
  if (!weight_gradient) return {copies(variant.data_gradient, aligned, true) ? operands() + w : 0, 0};
  if (variant.weight_gradient == Copies::never) return {};
  const std::int64_t copied = copies(variant.weight_gradient, aligned, true) ? operands() : 0;
  if (w == 0) return {copied, 0};  // more groups than channels: no sizes of a real layer
  const bool multiples = wide && in % rule.whole_multiple == 0 && out % rule.whole_multiple == 0;
  const bool whole = multiples || call.groups > 1;
  return {copied + bounded_product({workspace_detail::slices(rule, in, w, wide, whole), w}), 0};
}

GPUMEM_INLINE std::int64_t grouped_workspace(const GpuProfile& gpu) {
  constexpr std::int64_t kStreams = 4;
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  return kStreams * (workspace_detail::from_hopper(gpu) ? 32 : 4) * kMiB;
}

GPUMEM_INLINE bool has_nvswitch(const GpuProfile& gpu) {
  constexpr std::int64_t kLeast = 200'000'000'000;
  return gpu.link_bandwidth_bytes_per_second && gpu.link_bandwidth_bytes_per_second->value >= kLeast;
}

namespace workspace_detail {

/// Of one group, on nodes of so many GPUs.
GPUMEM_INLINE std::int64_t buffers_of(const Communicator& group, std::int64_t node, bool hopper) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  constexpr std::int64_t kConnection = 12 * kMiB;
  constexpr std::int64_t kChannels = 24;
  constexpr std::int64_t kChannelsToAPeer = 32;
  constexpr std::int64_t kOverNetwork = 10 * kMiB;    // one way
  constexpr std::int64_t kMulticast = kMiB * 2 * 16;  // both ways, of 16 channels, for each rank that heads some
  const std::int64_t most = std::max<std::int64_t>(node / std::max<std::int64_t>(group.apart, 1), 1);
  const std::int64_t together = std::min(group.ranks, most);
  // A ring, which one sends to and receives from, and a tree, whose ranks have two neighbours or fewer on average.
  if (together == 1) {
    const std::int64_t channels = hopper ? 4 : 2;
    return channels * (group.ranks > 2 ? 2 + 4 : 2 + 2) * kOverNetwork;
  }
  const std::int64_t connections = kChannels + kChannels * 2 * (together - 1) / together;
  const std::int64_t to_peers = kChannelsToAPeer * std::min(group.peers, together - 1);
  const std::int64_t multicast = hopper && together > 2 ? together * kMulticast : 0;
  return (connections + to_peers) * kConnection + multicast;
}

}  // namespace workspace_detail

GPUMEM_INLINE Communicators nccl_buffers(const GpuProfile& gpu, std::span<const Communicator> groups) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  constexpr std::int64_t kLeastSeen = 200 * kMiB;
  constexpr std::int64_t kMostSeen = 2048 * kMiB;
  constexpr std::int64_t kGuess = 400 * kMiB;
  constexpr std::int64_t kUsualNode = 8;
  constexpr std::int64_t kLargestNode = 1024;
  if (groups.empty()) return {};
  const auto count = static_cast<std::int64_t>(groups.size());
  if (!has_nvswitch(gpu)) return {core::Bytes(kGuess), core::Bytes(kLeastSeen), core::Bytes(kMostSeen), count};
  const std::int64_t node =
      std::clamp<std::int64_t>(gpu.gpus_per_node ? gpu.gpus_per_node->value : kUsualNode, 2, kLargestNode);
  std::int64_t expected = 0;
  for (const Communicator& group : groups) {
    expected += workspace_detail::buffers_of(group, node, workspace_detail::from_hopper(gpu));
  }
  return {core::Bytes(expected), core::Bytes(std::min(kLeastSeen, expected)),
          core::Bytes(std::max(kMostSeen, expected + expected / 2)), count};
}

GPUMEM_INLINE std::string nccl_text(const GpuProfile& gpu, const Communicators& all) {
  const std::string range = core::to_string(all.lower) + " to " + core::to_string(all.upper);
  const std::string text = core::to_string(all.expected) + " for NCCL's buffers";
  if (!has_nvswitch(gpu)) return text + ", a guess (" + range + " were seen with one or more communicators)";
  const std::string many = all.count == 1 ? "one communicator" : std::to_string(all.count) + " communicators";
  return text + ", as NCCL 2.18 to 2.30 connects the GPUs of a node over NVLink for " + many + " (" + range + ")";
}

GPUMEM_INLINE std::int64_t cublas_workspace(const GpuProfile& gpu) {
  constexpr std::int64_t kBeforeHopper = 8519680;  // :4096:2:16:8, PyTorch's default
  return gpu.cublas_workspace_bytes ? gpu.cublas_workspace_bytes->value : kBeforeHopper;
}

}  // namespace gpumem::device
