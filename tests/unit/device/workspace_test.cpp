#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <utility>

#include "expect.hpp"
#include "gpumem/device/workspace.hpp"

namespace gpumem::device {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

GpuProfile profile(const char* name) { return *find_profile(name); }

TEST(Context, OfMeasuredRunsIsOneFigureWithWhatCudnnLoads) {
  const GpuProfile gpu = profile("a100-40gb");
  const auto plain = context_of(gpu, {}, {});
  ASSERT_TRUE(succeeds(plain));
  EXPECT_EQ(plain->basis, ContextBasis::runs);
  EXPECT_EQ(plain->expected, core::Bytes(550 * kMiB));
  EXPECT_EQ(plain->lower, plain->expected);
  EXPECT_EQ(plain->upper, plain->expected);
  const auto eager = context_of(gpu, "eager-loading", {});
  const auto with_kernels = context_of(gpu, "eager-loading", {.convolutions = true, .batch_norm = true});
  ASSERT_TRUE(succeeds(eager) && succeeds(with_kernels));
  EXPECT_EQ(with_kernels->expected.count() - eager->expected.count(), 290 * kMiB);
  // cuDNN's batch normalisation is loaded only in addition to its convolutions.
  EXPECT_EQ(context_of(gpu, "eager-loading", {.batch_norm = true})->expected, eager->expected);
}

TEST(Context, OfPublishedFiguresIsARange) {
  const auto found = context_of(profile("t4-16gb"), "lazy-loading", {.convolutions = true});
  ASSERT_TRUE(succeeds(found));
  EXPECT_EQ(found->basis, ContextBasis::range);
  EXPECT_LT(found->lower, found->expected);
  EXPECT_LT(found->expected, found->upper);
  EXPECT_EQ(found->expected, core::Bytes((141 + 4) * kMiB));
}

TEST(Context, OfAnUnknownStackIsAnError) {
  EXPECT_TRUE(fails(context_of(profile("t4-16gb"), "eager-loading", {}), ErrorCode::invalid_argument, 0,
                    "its profile names lazy-loading"));
  EXPECT_TRUE(fails(context_of(profile("a30-24gb"), "lazy-loading", {}), ErrorCode::invalid_argument, 0,
                    "its profile names none"));
}

/// Bare contexts that others published, in MiB: T4 102 to 105, A100 414, RTX 3090 256, RTX 4090 384, H100 534, B200
/// 612. The rule was fitted to these among others, so this holds its form, not its truth.
TEST(Context, BySizeIsNearWhatOthersSaw) {
  struct Known {
    const char* gpu;
    std::int64_t mib;
  };
  for (const Known& known : {Known{"t4-16gb", 102}, Known{"a100-80gb", 414}, Known{"rtx3090-24gb", 256},
                             Known{"rtx4090-24gb", 384}, Known{"h100-80gb", 534}, Known{"b200-180gb", 612}}) {
    const Context found = context_by_size(profile(known.gpu));
    EXPECT_EQ(found.basis, ContextBasis::size);
    EXPECT_NEAR(static_cast<double>(found.lower.count() / kMiB), static_cast<double>(known.mib), 26.0) << known.gpu;
    EXPECT_GT(found.expected, found.lower);
    EXPECT_GT(found.upper, found.expected);
  }
}

TEST(Context, BySizeOfASliceIsSmallerThanOfItsWhole) {
  const Context slice = context_by_size(profile("a100-40gb-mig-1g.5gb"));
  EXPECT_LT(slice.upper, context_by_size(profile("a100-40gb")).expected);
}

TEST(Context, OfAProfileThatSaysNothingIsTheWidest) {
  GpuProfile gpu;
  const Context found = context_by_size(gpu);
  EXPECT_EQ(found.basis, ContextBasis::nothing);
  for (const BuiltinProfile& builtin : builtin_profiles()) {
    const auto known = context_of(profile(std::string(builtin.name).c_str()), {}, {});
    ASSERT_TRUE(succeeds(known));
    EXPECT_LE(found.lower, known->lower) << builtin.name;
    EXPECT_GE(found.upper, known->upper) << builtin.name;
  }
  gpu.sm_count = Figure{INT64_MAX, "a hostile profile"};
  EXPECT_GT(context_by_size(gpu).upper.count(), 0);
}

/// 64 to 64 channels of 10 x 10 images, 3 x 3, batch 2, by the default rule: aligned and narrow.
ConvolutionCall call_of(ConvolutionPass pass) {
  return {.batch_size = 2,
          .in_channels = 64,
          .out_channels = 64,
          .input_pixels = 100,
          .output_pixels = 100,
          .kernel_elements = 9,
          .pass = pass};
}

constexpr std::int64_t kOperand = 2 * 64 * 100 * 4;
constexpr std::int64_t kWeight = 64 * 64 * 9 * 4;

std::int64_t bytes(const ConvolutionCall& call, const WorkspaceVariant& variant = {}) {
  GpuProfile gpu;
  gpu.convolution_workspace.variant = variant;
  return convolution_workspace(gpu, call).first;
}

TEST(ConvolutionWorkspace, FollowsTheRule) {
  EXPECT_EQ(bytes(call_of(ConvolutionPass::forward)), 0);
  EXPECT_EQ(bytes(call_of(ConvolutionPass::data_gradient)), 2 * kOperand + kWeight);
  // About 5 MiB of slices.
  EXPECT_EQ(bytes(call_of(ConvolutionPass::weight_gradient)), 2 * kOperand + 36 * kWeight);
}

TEST(ConvolutionWorkspace, UnalignedChannelsAreRoundedUp) {
  ConvolutionCall call = call_of(ConvolutionPass::forward);
  call.out_channels = 62;
  EXPECT_EQ(bytes(call), 2 * kOperand + kWeight);
}

TEST(ConvolutionWorkspace, DepthwiseAndAlignedPointwiseTakeNone) {
  for (const ConvolutionPass pass :
       {ConvolutionPass::forward, ConvolutionPass::data_gradient, ConvolutionPass::weight_gradient}) {
    ConvolutionCall depthwise = call_of(pass);
    depthwise.groups = 64;
    EXPECT_EQ(bytes(depthwise), 0);
    ConvolutionCall pointwise = call_of(pass);
    pointwise.kernel_elements = 1;
    EXPECT_EQ(bytes(pointwise), 0);
  }
}

TEST(ConvolutionWorkspace, GroupsAreNotSummedInSlices) {
  ConvolutionCall call = call_of(ConvolutionPass::weight_gradient);
  call.groups = 4;
  EXPECT_EQ(bytes(call), 2 * kOperand + kWeight / 4);
  call.pass = ConvolutionPass::data_gradient;
  EXPECT_EQ(bytes(call), 2 * kOperand + kWeight / 4) << "so that one block of memory serves both";
}

TEST(GroupedWorkspace, IsOneForEachStreamAndLargerFromHopperOn) {
  constexpr std::array<std::pair<const char*, std::int64_t>, 4> kGpus = {
      {{"a100-40gb", 16}, {"rtx4090-24gb", 16}, {"h100-80gb", 128}, {"b200-180gb", 128}}};
  for (const auto& [gpu, mebibytes] : kGpus) {
    const auto profile = find_profile(gpu);
    ASSERT_TRUE(testing::succeeds(profile)) << gpu;
    EXPECT_EQ(grouped_workspace(*profile), mebibytes * kMiB) << gpu;
  }
}

TEST(WorkspaceVariants, DeviateInWhatTheySay) {
  const ConvolutionCall forward = call_of(ConvolutionPass::forward);
  const ConvolutionCall data = call_of(ConvolutionPass::data_gradient);
  const ConvolutionCall weight = call_of(ConvolutionPass::weight_gradient);
  EXPECT_EQ(bytes(forward, {.forward = Copies::always}), 2 * kOperand + kWeight);
  EXPECT_EQ(bytes(data, {.data_gradient = Copies::unaligned}), 0);
  EXPECT_EQ(bytes(data, {.data_gradient = Copies::never}), 0);
  EXPECT_EQ(bytes(weight, {.weight_gradient = Copies::never}), 0);
  EXPECT_EQ(bytes(weight, {.weight_gradient = Copies::unaligned}), 36 * kWeight);
  EXPECT_EQ(bytes(weight, {.slices = 2}), 2 * kOperand + 2 * kWeight);
  EXPECT_EQ(bytes(weight, {.split_bytes = 3 * kWeight}), 2 * kOperand + 3 * kWeight);
  EXPECT_EQ(bytes(forward, {.channel_multiple = 128}), 2 * kOperand + kWeight);
}

TEST(WorkspaceVariants, AreNamedOnceEach) {
  std::set<std::string_view> names;
  for (const WorkspaceVariant& variant : workspace_variants()) {
    EXPECT_FALSE(variant.name.empty());
    EXPECT_TRUE(names.insert(variant.name).second) << variant.name;
  }
}

TEST(Nccl, BuffersAreNearWhatOthersSaw) {
  const GpuProfile a100 = profile("a100-80gb");
  const auto mib_of = [](const GpuProfile& gpu, Communicator group) {
    return static_cast<double>(nccl_buffers(gpu, std::array{group}).expected.count()) / static_cast<double>(kMiB);
  };
  // NVIDIA/nccl, issue 964: one communicator of 2 A100s took 544 MB, of 4 of them 688. The rule has no figure of
  // theirs.
  EXPECT_NEAR(mib_of(a100, {.ranks = 2}), 544.0, 544.0 * 0.07);
  EXPECT_NEAR(mib_of(a100, {.ranks = 4}), 688.0, 688.0 * 0.05);
  // Issue 1685: the first all-to-all of 8 H100s took 3.28 GB more.
  const GpuProfile h100 = profile("h100-80gb");
  constexpr double kSeen = 3280.0 / 1.048576;
  EXPECT_NEAR(mib_of(h100, {8, 7}) - mib_of(h100, {8, 0}), kSeen, kSeen * 0.15);
}

TEST(Nccl, RanksOnOtherNodesAddNoConnections) {
  const GpuProfile gpu = profile("h100-80gb");
  const auto bytes = [&](Communicator group) { return nccl_buffers(gpu, std::array{group}).expected; };
  EXPECT_EQ(bytes({8, 0}), bytes({512, 0}));
  EXPECT_EQ(bytes({8, 7}), bytes({64, 63}));
}

TEST(Nccl, RanksThatAreAloneOnTheirNodesHaveTheChannelsOfAnAdapter) {
  const GpuProfile gpu = profile("h100-80gb");
  const auto bytes = [&](Communicator group) { return nccl_buffers(gpu, std::array{group}).expected; };
  EXPECT_EQ(bytes({64, 0, 8}).count(), 4 * 6 * 10 * kMiB) << "four channels, in a ring and a tree";
  EXPECT_EQ(bytes({64, 0, 8}), bytes({4, 3, 64}));
  EXPECT_EQ(bytes({64, 0, 2}), bytes({4, 0})) << "four of them are on a node";
}

TEST(Nccl, WithoutSwitchesAllTogetherAreAGuess) {
  EXPECT_FALSE(has_nvswitch(profile("v100-32gb")));
  const GpuProfile gpu = profile("rtx4090-24gb");
  const std::array groups = {Communicator{8, 0}, Communicator{4, 3}};
  const Communicators all = nccl_buffers(gpu, groups);
  EXPECT_EQ(all.expected.count(), 400 * kMiB);
  EXPECT_LT(all.lower, all.expected);
  EXPECT_LT(all.expected, all.upper);
  EXPECT_NE(nccl_text(gpu, all).find("a guess"), std::string::npos);
  EXPECT_EQ(nccl_text(profile("h100-80gb"), nccl_buffers(profile("h100-80gb"), groups)).find("a guess"),
            std::string::npos);
  EXPECT_EQ(nccl_buffers(gpu, {}).count, 0);
}

}  // namespace
}  // namespace gpumem::device
