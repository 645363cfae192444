#pragma once

#include "gpumem/utilisation/step_time.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "gpumem/ml/features.hpp"
#include "gpumem/plan/forward_pass.hpp"

namespace gpumem::utilisation {

namespace step_time_detail {

using plan::Kernel;

/// Tensor cores' dense peaks as multiples of FP32's, from NVIDIA's architecture whitepapers and data sheets: P100
/// (FP16 without tensor cores), V100 125 / 15.7, T4 65 / 8.1, A100 156 and 312 / 19.5, A10 62.5 and 125 / 31.2, L40S
/// 183 and 362 / 91.6 TFLOPS, H100 494 and 989 / 67, B200 1,100 and 2,250 / 75 TFLOPS. GeForce boards of 8.6, 8.9
/// and 12.0 have half of that.
struct TensorCores {
  std::string_view compute_capability;
  double tf32;
  double half;
};
inline constexpr std::array<TensorCores, 9> kTensorCores = {{{"6.0", 1.0, 2.0},
                                                             {"7.0", 1.0, 8.0},
                                                             {"7.5", 1.0, 8.0},
                                                             {"8.0", 8.0, 16.0},
                                                             {"8.6", 2.0, 4.0},
                                                             {"8.9", 2.0, 4.0},
                                                             {"9.0", 7.4, 14.8},
                                                             {"10.0", 14.7, 30.0},
                                                             {"12.0", 2.0, 4.0}}};

inline constexpr double kProductTile = 128.0 * 128.0;  ///< outputs a block: cuBLAS' and cuDNN's most frequent tile
inline constexpr double kSplitDepth = 512.0;           ///< multiply-adds an output from which a sum may be split
/// ATen/native/cuda/thread_constants.h: 128 threads of 4 elements a block; float32, read once and written once.
inline constexpr double kElementwiseBlockBytes = 512.0 * 8.0;

// Fitted; see the header.
inline constexpr double kProductEfficiency = 0.85;  ///< of the FP32 peak
inline constexpr double kLeastKernel = 5.7e-6;      ///< seconds in addition to its roofline
inline constexpr double kProductWarps = 0.24;       ///< resident, of those that fit
inline constexpr double kElementwiseWarps = 0.6;
inline constexpr double kWarpBlocksPerSm = 16.0;  ///< blocks of 128 threads that fill an SM's 2,048
/// FP32 instructions an output of what is no product: exponentials and divisions take many.
inline constexpr double kElementwiseInstructions = 14.0;
/// The least share of the bandwidth that a grid of few blocks gets.
inline constexpr double kLeastFill = 0.05;
// For large products: shares of the tensor cores' peak, measured. Sources: see for_large_products.
inline constexpr double kProductsOnA100 = 230.0 / 312.0;
inline constexpr double kProductsOnB200 = 0.49;
inline constexpr double kMemoryOnB200 = 6.0 / 8.0;
inline constexpr double kFlashAttention2OnA100 = (0.50 + 0.73) / 2.0;
inline constexpr double kBackwardOnA100 = kFlashAttention2OnA100 * 63.0 / 73.0;
inline constexpr double kFlashAttention2OnH100 = 0.35;
inline constexpr double kBackwardOnH100 = 318.0 / 989.0;
inline constexpr double kFlashAttention4OnB200 = 0.71;
inline constexpr double kFlashAttention4OverCudnn = 1.3;  ///< how many times as fast
inline constexpr double kCudnnOnB200 = kFlashAttention4OnB200 / kFlashAttention4OverCudnn;
inline constexpr double kBackwardOnB200 = kCudnnOnB200 * 1328.0 / 1708.0;
/// What a block of attention makes: 128 positions of a head in FlashAttention-2, two times that on Blackwell
/// (FlashAttention-4, section 3.1: two tiles of queries in turn). Heads of 128 are taken.
inline constexpr double kRowsOfABlock = 128.0;
inline constexpr double kRowsOfABlockOnB200 = 256.0;
inline constexpr double kHeadSize = 128.0;
inline constexpr double kLongestOverAverage = 2.0;  ///< under a causal mask

/// A run's averages include its beginning, when the GPU idles.
inline constexpr double kSteadyShare = 1.0 / 1.07;

GPUMEM_INLINE bool multiplies(const Kernel& kernel) { return kernel.multiply_adds > 0.0; }

/// Which peak a kernel's products run at.
GPUMEM_INLINE double peak_of(const Kernel& kernel, model::Precision precision, const GpuPeaks& gpu) {
  const double fp32 = gpu.fp32 * kProductEfficiency;
  const bool attends = kernel.attends && gpu.attention_efficiency > 0.0;
  const double attention = kernel.backwards ? gpu.attention_backward : gpu.attention_efficiency;
  const double reached = attends ? attention : gpu.tensor_efficiency;
  if (core::element_size(kernel.dtype) == 2) return std::max(gpu.half * reached, fp32);
  const bool tf32 = kernel.kind == Kernel::Kind::convolution && precision != model::Precision::fp32_strict;
  return tf32 ? std::max(gpu.tf32 * gpu.tensor_efficiency, fp32) : fp32;
}

/// Whether its products keep the FP32 pipes busy, and not tensor cores.
GPUMEM_INLINE bool uses_fp32(const Kernel& kernel, model::Precision precision, const GpuPeaks& gpu) {
  return peak_of(kernel, precision, gpu) <= gpu.fp32;
}

/// Thread blocks of one launch.
GPUMEM_INLINE double blocks_of(const Kernel& kernel, double sms) {
  const double launches = kernel.launches;
  if (!multiplies(kernel)) return std::max(1.0, kernel.bytes / launches / kElementwiseBlockBytes);
  const double tiles = std::max(1.0, kernel.outputs / launches / kProductTile);
  return tiles * std::max(1.0, std::min(sms / tiles, kernel.depth / kSplitDepth));
}

/// How much longer attention takes than if its blocks were alike: one SM gets a longest block last.
GPUMEM_INLINE double uneven_blocks(const Kernel& kernel, const GpuPeaks& gpu) {
  if (!kernel.attends || kernel.backwards || gpu.attention_rows <= 0.0) return 1.0;
  const double blocks = kernel.outputs / kernel.launches / (gpu.attention_rows * kHeadSize);
  return 1.0 + kLongestOverAverage * gpu.sms / std::max(1.0, blocks);
}

/// Sums over a step's kernels.
struct Sums {
  double time = 0.0;
  double filled = 0.0;
  double occupied = 0.0;
  double fp32 = 0.0;  ///< instructions, all lanes of an SM together counted as the peak counts them
  double product = 0.0;
  double convolution = 0.0;
  double optimizer = 0.0;
  double floored = 0.0;
};

GPUMEM_INLINE void add(Sums& sums, const Kernel& kernel, model::Precision precision, const GpuPeaks& gpu) {
  const bool product = multiplies(kernel);
  const double blocks = blocks_of(kernel, gpu.sms);
  const double fill = std::min(1.0, blocks / gpu.sms);
  const double attending = uneven_blocks(kernel, gpu);
  const double computing = kernel.multiply_adds / peak_of(kernel, precision, gpu) * std::max(attending, 1.0 / fill);
  const double moving = kernel.bytes / (gpu.bandwidth * gpu.memory_efficiency * std::max(fill, kLeastFill));
  const double least = kLeastKernel * kernel.launches;
  const double time = std::max(computing, moving) + least;
  const double warps = product ? kProductWarps : std::min(kElementwiseWarps, blocks / (gpu.sms * kWarpBlocksPerSm));
  sums.time += time;
  sums.filled += time * fill;
  sums.occupied += time * fill * warps;
  sums.floored += least;
  if (!product) sums.fp32 += kernel.outputs * kElementwiseInstructions;
  else if (uses_fp32(kernel, precision, gpu)) sums.fp32 += kernel.multiply_adds;
  if (kernel.kind == Kernel::Kind::product) sums.product += time;
  if (kernel.kind == Kernel::Kind::convolution) sums.convolution += time;
  if (kernel.kind == Kernel::Kind::optimizer) sums.optimizer += time;
}

GPUMEM_INLINE core::Error lacks(const device::GpuProfile& gpu, std::string_view what) {
  return {core::ErrorCode::missing_information,
          "the profile " + core::quoted(gpu.name) + " does not say its " + std::string(what) +
              ", which a roofline needs; add it to a copy of the profile and name that",
          {}};
}

}  // namespace step_time_detail

GPUMEM_INLINE core::Result<GpuPeaks> peaks_of(const device::GpuProfile& gpu) {
  namespace detail = step_time_detail;
  if (!gpu.sm_count) return detail::lacks(gpu, "SM count");
  GpuPeaks peaks;
  peaks.sms = static_cast<double>(gpu.sm_count->value);
  const bool own = gpu.peak_fp32_flops && gpu.memory_bandwidth_bytes_per_second;
  if (!own && !gpu.parent.empty()) {
    const core::Result<device::GpuProfile> whole = device::find_profile(gpu.parent);
    if (!whole) return whole.error();
    const core::Result<GpuPeaks> all = peaks_of(*whole);
    if (!all) return all.error();
    const double compute = peaks.sms / all->sms;
    const double memory = static_cast<double>(gpu.memory_bytes.value) / static_cast<double>(whole->memory_bytes.value);
    return GpuPeaks{peaks.sms, all->bandwidth * memory, all->fp32 * compute, all->tf32 * compute, all->half * compute};
  }
  if (!gpu.memory_bandwidth_bytes_per_second) return detail::lacks(gpu, "memory bandwidth");
  if (!gpu.peak_fp32_flops) return detail::lacks(gpu, "FP32 peak");
  constexpr double kFlopsAMultiplyAdd = 2.0;
  peaks.bandwidth = static_cast<double>(gpu.memory_bandwidth_bytes_per_second->value);
  peaks.fp32 = static_cast<double>(gpu.peak_fp32_flops->value) / kFlopsAMultiplyAdd;
  peaks.tf32 = peaks.fp32;
  peaks.half = peaks.fp32;
  for (const detail::TensorCores& cores : detail::kTensorCores) {
    if (cores.compute_capability != gpu.compute_capability) continue;
    peaks.tf32 = peaks.fp32 * cores.tf32;
    peaks.half = peaks.fp32 * cores.half;
  }
  return peaks;
}

GPUMEM_INLINE GpuPeaks for_large_products(GpuPeaks peaks, const device::GpuProfile& gpu) {
  namespace detail = step_time_detail;
  const auto attention = [&](double forward, double backward, double rows) {
    peaks.attention_efficiency = forward;
    peaks.attention_backward = backward;
    peaks.attention_rows = rows;
  };
  if (gpu.compute_capability == "8.0") {
    peaks.tensor_efficiency = detail::kProductsOnA100;
    attention(detail::kFlashAttention2OnA100, detail::kBackwardOnA100, detail::kRowsOfABlock);
  }
  if (gpu.compute_capability == "9.0") {
    attention(detail::kFlashAttention2OnH100, detail::kBackwardOnH100, detail::kRowsOfABlock);
  }
  if (gpu.compute_capability == "10.0") {
    peaks.tensor_efficiency = detail::kProductsOnB200;
    peaks.memory_efficiency = detail::kMemoryOnB200;
    attention(detail::kCudnnOnB200, detail::kBackwardOnB200, detail::kRowsOfABlockOnB200);
  }
  return peaks;
}

GPUMEM_INLINE StepTime step_time(const plan::StepWork& work, const model::TrainingJob& job, const GpuPeaks& gpu,
                                 const HostCosts& host) {
  namespace detail = step_time_detail;
  detail::Sums sums;
  StepTime time;
  for (const plan::Kernel& kernel : work.kernels) {
    detail::add(sums, kernel, job.precision, gpu);
    time.launches += kernel.launches;
    time.multiply_adds += kernel.multiply_adds;
    time.bytes += kernel.bytes;
  }
  const double samples = static_cast<double>(job.batch_size) * static_cast<double>(work.passes);
  time.kernels = sums.time;
  time.host = host.step + host.launch * time.launches;
  time.data = host.sample * samples + host.byte * work.input_bytes;
  time.step = std::max(time.kernels, time.host) + time.data;
  if (time.step <= 0.0) return time;
  const double share = detail::kSteadyShare / time.step;
  time.gract = std::min(1.0, sums.time * share);
  time.smact = std::min(time.gract, sums.filled * share);
  time.smocc = std::min(time.smact, sums.occupied * share);
  time.fp32 = std::min(time.smact, sums.fp32 / gpu.fp32 * share);
  time.product_share = sums.product / sums.time;
  time.convolution_share = sums.convolution / sums.time;
  time.optimizer_share = sums.optimizer / sums.time;
  time.floored_share = sums.floored / sums.time;
  return time;
}

GPUMEM_INLINE std::array<double, ml::kRooflineFigures> roofline_figures(const StepTime& time) {
  using ml::RooflineFigure;
  constexpr double kMicroseconds = 1e6;
  constexpr double kBillions = 1e-9;
  std::array<double, ml::kRooflineFigures> figures{};
  const auto set = [&](RooflineFigure figure, double value) { figures[static_cast<std::size_t>(figure)] = value; };
  set(RooflineFigure::gract, time.gract);
  set(RooflineFigure::smact, time.smact);
  set(RooflineFigure::smocc, time.smocc);
  set(RooflineFigure::fp32, time.fp32);
  set(RooflineFigure::kernel_us, time.kernels * kMicroseconds);
  set(RooflineFigure::host_us, time.host * kMicroseconds);
  set(RooflineFigure::data_us, time.data * kMicroseconds);
  set(RooflineFigure::step_us, time.step * kMicroseconds);
  set(RooflineFigure::filled, time.gract > 0.0 ? time.smact / time.gract : 0.0);
  set(RooflineFigure::product_share, time.product_share);
  set(RooflineFigure::convolution_share, time.convolution_share);
  set(RooflineFigure::optimizer_share, time.optimizer_share);
  set(RooflineFigure::launches, time.launches);
  set(RooflineFigure::multiply_adds, time.multiply_adds * kBillions);
  set(RooflineFigure::bytes, time.bytes * kBillions);
  set(RooflineFigure::floored_share, time.floored_share);
  return figures;
}

GPUMEM_INLINE core::Result<std::array<double, ml::kRooflineFigures>> roofline_figures_of(
    analysis::Analysis& analysis, const device::GpuProfile& gpu) {
  const core::Result<GpuPeaks> peaks = peaks_of(gpu);
  if (!peaks) return peaks.error();
  const auto work = analysis.work();
  if (!work) return work.error();
  return roofline_figures(step_time(**work, analysis.job(), *peaks));
}

}  // namespace gpumem::utilisation
