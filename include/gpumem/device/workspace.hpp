// Input: a GPU's profile, a software stack, and the library calls of a job.
// Output: what CUDA and its libraries take besides tensors: the context before the first tensor, and the workspaces of
// calls from PyTorch's allocator.
// Units: bytes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/device/gpu_profile.hpp"

namespace gpumem::device {

// Input: a GPU's profile, a software stack, and which of cuDNN's kernels a job loads.
// Output: what CUDA takes of the GPU before the first tensor: context, driver, loaded libraries.
// Units: bytes.
// Source: the profile's figures; where it has none, a rule of thumb (context_by_size()).

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

// Input: a library call's sizes and the GPU.
// Output: the bytes of workspace that the call takes from PyTorch's allocator.
// Units: bytes, pixels a sample and channel.
// Source: this project fitted the rule to GPUMemNet's published CNN runs (A100-40GB, PyTorch 2.x, TF32 allowed);
// bench/fit says how.
//
// cuDNN's tensor-core kernels work on channels-last tensors whose channels are a multiple of four elements. For
// tensors laid out otherwise the workspace holds copies, and a weight gradient also holds the slices that it is
// summed from (x', y', w': bytes of input, output and weight with their channels rounded up; m: the wider side):
//
//   forward            0 if the channels are aligned, else x' + y' + w'
//   data gradient      x' + y' + w'
//   weight gradient    x' + y' + s w', with s slices: narrow layers (m <= 200) about 5 MiB of them, at least two;
//                      wider ones 4, or 1 once the weight is large or where both sides are multiples of 32, or in
//                      groups
//   first layer        an image's (up to 3 channels): weight gradient x' + y' if it has many outputs, else nothing
//   1 x 1, aligned     nothing: a matrix product
//   depthwise          nothing: PyTorch's own kernels
//
// It is a rule of thumb for what a heuristic of cuDNN's decides per shape: kernels, slices and so the workspace of
// single layers differ from it. The multiples of 32 were told by CARMA's published runs of VGG-16 and ResNet, and
// change little on GPUMemNet's, of whose widths few are such. That groups are not summed in slices was told by one half
// of the FakeTensor study's runs of timm's models (A100-40GB, 123 runs of nets with groups): median error 2.1 % with
// slices, 1.7 % without. On the other half, 95 runs, it is 3.4 % and 1.8 %.
// GpuProfile::convolution_workspace holds its constants.

enum class ConvolutionPass : std::uint8_t { forward, data_gradient, weight_gradient };

struct ConvolutionCall {
  std::int64_t batch_size = 0;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t groups = 1;
  std::int64_t input_pixels = 0;
  std::int64_t output_pixels = 0;
  std::int64_t kernel_elements = 1;
  std::int64_t stride = 1;
  std::int64_t element_bytes = 4;
  ConvolutionPass pass = ConvolutionPass::forward;
};

/// What cuDNN asks for first, and what it falls back to when that cannot be had (0: a kernel that needs none).
struct WorkspaceChoice {
  std::int64_t first = 0;
  std::int64_t fallback = 0;
};

/// Sizes must fit 64 bits, which those of a forward pass do.
[[nodiscard]] WorkspaceChoice convolution_workspace(const GpuProfile& gpu, const ConvolutionCall& call);

/// Ways in which cuDNN was seen to decide otherwise, each on some of GPUMemNet's published CNN runs: among the rule and
/// these, the best for each run is off by about 1 % (with only the rule: 3.4 %), but which one it is, shapes tell only
/// in part.
[[nodiscard]] std::span<const WorkspaceVariant> workspace_variants();

/// cuBLAS' workspace, which each thread that calls it takes once.
[[nodiscard]] std::int64_t cublas_workspace(const GpuProfile& gpu);

/// Those of a grouped product, together: 32 MiB from Hopper on, else 4 MiB, for each of four streams, kept. Source:
/// TransformerEngine 2.1, pytorch/module/base.py: get_multi_stream_cublas_workspace, get_cublas_workspace_size_bytes;
/// common/util/multi_stream.cpp: four streams.
[[nodiscard]] std::int64_t grouped_workspace(const GpuProfile& gpu);

// Input: a GPU, and the groups of ranks that NCCL connects.
// Output: what NCCL's buffers take of the GPU, by cudaMalloc, outside of PyTorch's allocator.
// Units: bytes, MiB.
// Source: NCCL 2.18 to 2.30. src/init.cc, computeBuffSizes(), and src/transport/p2p.cc: a channel's connection has a
// buffer for each protocol, 9.2 MiB on one side and what both ranks write on the other; in pages of 2 MiB 12 together.
// Over the network (src/transport/net.cc) each side has one without that of LL, which the host has: 8.7 MiB, 10 in
// pages; a rank that is alone on its node has the channels of its own adapter: one, doubled, and doubled again from
// Hopper on (connect.cc). What it sends to other nodes by itself goes through a pool of a few MiB.
// src/graph/connect.cc: where NVSwitches join a node's GPUs there are 12 rings, doubled; a ring's rank has one
// connection, a tree's inside a node as many as it has neighbours in a chain. src/graph/paths.cc,
// ncclTopoComputeP2pChannels(): a rank sends to each other rank over 32 channels of their own.
//
// src/transport/nvls.cc: from Hopper on more than two ranks sum by their switches, with buffers of 1 MiB.
//
// Of 4 and 2 A100s this says 720 and 576 MiB a communicator, and 688 and 544 were seen (NVIDIA/nccl, issue 964); of the
// first all-to-all of 8 H100s 2.6 GiB, and 3.3 GB were seen (issue 1685). All of a Megatron job's with TP 2, PP 2 and
// DP 2 on 8 H100s took 7 GB a rank (verl-project/verl, pull request 6408), 1.3 times what this says. Since NCCL 2.22 a
// tree is connected, and the switches are used, only when a sum first asks for it.

/// Ranks that NCCL connects.
struct Communicator {
  std::int64_t ranks = 1;
  std::int64_t peers = 0;  ///< ranks that each rank sends to by itself: in an all-to-all, a pipeline, a ring of pairs
  std::int64_t apart = 1;  ///< how many ranks from one to the next
};

/// What all of a job's communicators take.
struct Communicators {
  core::Bytes expected;
  core::Bytes lower;
  core::Bytes upper;
  std::int64_t count = 0;
};

/// Whether the profile has links as fast as those that NVSwitches join: A100's 300 GB/s and more. A V100's 150 are
/// often a mesh, whose pairs have one link or two.
[[nodiscard]] bool has_nvswitch(const GpuProfile& gpu);

/// Nothing of no communicators. Of GPUs without NVSwitches it is a guess for all together: 0.2 to 2 GiB were seen.
[[nodiscard]] Communicators nccl_buffers(const GpuProfile& gpu, std::span<const Communicator> groups);

/// What a report says of them.
[[nodiscard]] std::string nccl_text(const GpuProfile& gpu, const Communicators& all);

/// cublasLt's, for a matrix product with a bias, for the length of the call.
inline constexpr std::int64_t kCublasLtWorkspace = std::int64_t{1} << 20;

}  // namespace gpumem::device
