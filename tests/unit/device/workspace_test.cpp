#include "gpumem/device/workspace.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <utility>

#include "expect.hpp"

namespace gpumem::device {
namespace {

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
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
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

}  // namespace
}  // namespace gpumem::device
