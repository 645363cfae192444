// Input: the kernels of a training step, a GPU's profile, and the host's costs.
// Output: StepTime: how long the step takes and which part of the GPU is busy meanwhile, by a roofline.
// Units: seconds, shares 0 to 1.
//
// A kernel takes as long as its multiply-adds at the peak of the units that compute them, or as its bytes at the
// memory's bandwidth, whichever is longer (Williams, Waterman & Patterson 2009, "Roofline"), and a least time on top.
// Its grid is cut of its outputs, and of the sum after each where that is long (split-K); SMs beyond the grid's blocks
// stay idle, so that a small grid computes at a part of the peak. The host launches kernels one after the other, ahead
// of the GPU: the slower of both counts. Reading a batch is not overlapped with the GPU's work.
//
//   GRACT = kernels' time / step          SMACT = the same, each kernel's weighted by the SMs that it fills
//   SMOCC = with the warps that are resident as well   FP32 = instructions of the FP32 pipes / those that the step had
//                                                            room for
//
// What no data sheet says (efficiencies, the least time of a kernel, warps that are resident, the host's costs) was
// fitted by this project to GPUMemNet's published MLP and CNN runs (A100-40GB), both together: a dozen figures to 2,242
// runs. A host of another speed is told by HostCosts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "gpumem/analysis/analysis.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/plan/step_plan.hpp"

namespace gpumem::utilisation {

/// What the host spends, in seconds. The launch is what NVIDIA reports of PyTorch's elementwise kernels on a V100,
/// about 20 us ("Understanding the Visualization of Overhead and Latency in NVIDIA Nsight Systems"); the others were
/// fitted.
struct HostCosts {
  double launch = 20e-6;   ///< a recorded kernel: PyTorch's dispatch, autograd's node, the driver's call
  double step = 1.55e-3;   ///< a step besides: the loop, loss.item(), a progress bar
  double sample = 5.3e-6;  ///< a sample that is read and collated
  double byte = 2.9e-10;   ///< of a batch: collated, and copied to the GPU from pageable memory

  /// All of them by one factor: of a slower or faster host.
  [[nodiscard]] HostCosts times(double factor) const {
    return {launch * factor, step * factor, sample * factor, byte * factor};
  }
};

/// What a roofline needs of a GPU.
struct GpuPeaks {
  double sms = 0.0;
  double bandwidth = 0.0;  ///< bytes a second
  double fp32 = 0.0;       ///< multiply-adds a second
  double tf32 = 0.0;       ///< the same of tensor cores, where convolutions may use them
  double half = 0.0;       ///< and in float16 or bfloat16
  /// What products reach of tensor cores' peak, layout changes included; fitted, see above.
  double tensor_efficiency = 0.5;
  double memory_efficiency = 0.85;    ///< of the bandwidth; fitted, too
  double attention_efficiency = 0.0;  ///< and what attention in one kernel reaches; 0: as other products
  double attention_backward = 0.0;    ///< the same of its gradients
  double attention_rows = 0.0;        ///< positions that a block of it computes
};

/// Of a MIG slice that names no figures of its own: its share of the whole GPU's, by SMs and by memory. The peaks of
/// tensor cores are multiples of FP32's by compute capability. Errors: missing_information for a profile without SM
/// count, bandwidth or peak; unknown_gpu for a slice of an unknown GPU.
[[nodiscard]] core::Result<GpuPeaks> peaks_of(const device::GpuProfile& gpu);

/// The same where products are large, as in models that train on many GPUs. On A100 they reach 230 of 312 TFLOPS in 16
/// bits (M. Li, "Transformers benchmarks", micro_bench.ipynb: the best of square products up to 8,192). A30 and slices
/// of both, which have its compute capability, are taken to be alike. On B200 it is 49 %, the middle of 408 products of
/// training's shapes (MooreThreads/SimuMax 1.2, configs/system/b200_bf16_ceperm.json), and norms move 6.0 of 8 TB/s
/// (NVIDIA/cudnn-frontend, benchmark/norms, RMSNorm of 8,192 x 8,192 on GB200). Other GPUs keep the fitted shares: the
/// best that others measure of single products on H200 (755 of 989; S. Bekman, github.com/stas00/ml-engineering,
/// compute/accelerator/README.md) is not reached in training, see docs/many-gpus.md.
///
/// Attention in one kernel, of float16 or bfloat16, reaches a share of its own: less than other products on A100 and
/// H100, a little more on B200. On A100 flash attention 2 reaches 50 to 73 % of the peak, here the middle (T. Dao 2023,
/// "FlashAttention-2", abstract). The same kernel, which is PyTorch's too, reaches 35 % on H100 (J. Shah et al. 2024,
/// "FlashAttention-3", abstract; figure 7 of Dao's paper agrees: up to 335 of 989 TFLOPS, forward and backward). On
/// B200 it is cuDNN 9.13's, 55 %: flash attention 4 reaches up to 71 % and is up to 1.3 times as fast (T. Zadouri et
/// al. 2026, "FlashAttention-4", abstract). That is the forward pass, and cuDNN's later versions are nearer to 71 %
/// (figure 4). Its gradients reach less: on A100 63 where forward reaches 73 (FlashAttention-2, section 4), on H100 318
/// of 989 TFLOPS (FlashAttention-3, figure 6), with cuDNN on Blackwell 1,328 where forward reaches 1,708
/// (NVIDIA/cudnn-frontend, benchmark/sdpa_benchmark_training, Llama 3.1 on GB200, causal, 16,384 positions).
///
/// A thread block attends for some positions of a head. Under a causal mask the last positions have twice the average
/// work, and in a grid of few blocks the SM that got them finishes last (Graham 1966: at worst the average of all SMs
/// and one of the longest blocks). Forward of the table just named follows: 0.64, 0.82, 0.92 and 1 of 1,708 TFLOPS with
/// 2,048 to 16,384 positions; the rule says 0.80, 0.91, 0.97 and 1. Gradients are cut finer, so they have no such rule.
[[nodiscard]] GpuPeaks for_large_products(GpuPeaks peaks, const device::GpuProfile& gpu);

struct StepTime {
  double kernels = 0.0;  ///< the GPU's time
  double host = 0.0;     ///< for launching them
  double data = 0.0;     ///< for the batches
  double step = 0.0;     ///< all in all
  double gract = 0.0;
  double smact = 0.0;
  double smocc = 0.0;
  double fp32 = 0.0;
  double product_share = 0.0;  ///< of the kernels' time, in matrix products
  double convolution_share = 0.0;
  double optimizer_share = 0.0;
  double floored_share = 0.0;  ///< the part of it that is least times of kernels
  double launches = 0.0;
  double multiply_adds = 0.0;
  double bytes = 0.0;
};

/// The job is asked for its batch, precision and passes.
[[nodiscard]] StepTime step_time(const plan::StepWork& work, const model::TrainingJob& job, const GpuPeaks& gpu,
                                 const HostCosts& host = {});

/// The figures as features of learned models, in the order of ml/features.hpp.
[[nodiscard]] std::array<double, ml::kRooflineFigures> roofline_figures(const StepTime& time);

/// The same of a job on this GPU. Errors: those of the job's kernels and of peaks_of().
[[nodiscard]] core::Result<std::array<double, ml::kRooflineFigures>> roofline_figures_of(analysis::Analysis& analysis,
                                                                                         const device::GpuProfile& gpu);

}  // namespace gpumem::utilisation
