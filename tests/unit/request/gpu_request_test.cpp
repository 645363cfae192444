#include "gpumem/request/targets.hpp"

#include "expect.hpp"
#include "servers.hpp"

namespace gpumem::request {
namespace {

using core::Bytes;
using core::ErrorCode;
using testing::fails;
using testing::gib;
using testing::succeeds;

device::GpuProfile gpu_of(Bytes capacity) {
  device::GpuProfile gpu;
  gpu.name = "made-up";
  gpu.memory_bytes.value = capacity.count();
  return gpu;
}

estimate::MemoryEstimate estimate_of(double expected, double upper, bool fits = true) {
  estimate::MemoryEstimate estimate;
  estimate.expected = gib(expected);
  estimate.lower = gib(expected);
  estimate.upper = gib(upper);
  estimate.fits = fits;
  return estimate;
}

constexpr place::Margin kTwo = {.bytes = Bytes(std::int64_t{2} << 30), .upper = false};

TEST(NeedOf, IsTheUpperFigureOrTheExpectedOneWithAMargin) {
  const auto gpu = gpu_of(gib(40));
  const auto estimate = estimate_of(10, 11);
  EXPECT_EQ(need_of(estimate, gpu)->memory, gib(11));
  EXPECT_EQ(need_of(estimate, gpu, kTwo)->memory, gib(12));
  EXPECT_EQ(need_of(estimate, gpu)->gpu, &gpu);
}

TEST(NeedOf, TheMarginEndsWhereTheGpuDoes) {
  const auto gpu = gpu_of(gib(16));
  EXPECT_EQ(need_of(estimate_of(15, 17), gpu)->memory, gib(16));
  EXPECT_EQ(need_of(estimate_of(16, 16), gpu)->memory, gib(16));
  EXPECT_EQ(need_of(estimate_of(15, 15), gpu, kTwo)->memory, gib(16));
}

TEST(NeedOf, SaysNeedAndLimitWhereNoGpuHoldsIt) {
  const auto gpu = gpu_of(gib(16));
  EXPECT_TRUE(fails(need_of(estimate_of(17, 18, false), gpu), ErrorCode::missing_information, 0,
                    "no made-up holds it: it needs 17.0 GiB, the GPU has 16.0 GiB"));
  EXPECT_TRUE(fails(need_of(estimate_of(15, 17, false), gpu), ErrorCode::missing_information, 0,
                    "it is tight on made-up: it needs 15.0 GiB, with the margin 17.0 GiB, the GPU has 16.0 GiB"));
}

TEST(NeedOf, RefusesALowerBoundAndWhatDoesNotFit64Bits) {
  const auto gpu = gpu_of(gib(16));
  auto estimate = estimate_of(1, 1);
  estimate.coverage.layers_unknown = 2;
  EXPECT_TRUE(fails(need_of(estimate, gpu), ErrorCode::missing_information, 0, "2 layers have unknown classes"));
  estimate.coverage.layers_unknown = 0;
  estimate.leaves_out = "activations";
  EXPECT_TRUE(fails(need_of(estimate, gpu), ErrorCode::missing_information, 0, "a lower bound without activations"));
  const place::Margin most = {.bytes = Bytes(INT64_MAX), .upper = false};
  EXPECT_TRUE(fails(need_of(estimate_of(1, 1), gpu, most), ErrorCode::overflow, 0, "does not fit 64 bits"));
}

TEST(Mebibytes, AreRoundedUpButNotBeyondTheGpu) {
  EXPECT_EQ(mebibytes(Bytes(0)), 0);
  EXPECT_EQ(mebibytes(Bytes(1)), 1);
  EXPECT_EQ(mebibytes(Bytes(1 << 20)), 1);
  EXPECT_EQ(mebibytes(Bytes((1 << 20) + 1)), 2);
  EXPECT_EQ(mebibytes(Bytes(INT64_MAX)), (std::int64_t{1} << 43));
  const auto gpu = gpu_of(Bytes((std::int64_t{40} << 30) + 5));
  EXPECT_EQ(mebibytes(Need{gpu.capacity(), &gpu}), 40960);
}

TEST(TenThousandths, CoverTheNeed) {
  const auto gpu = gpu_of(gib(40));
  for (const double size : {0.0, 0.001, 1.0, 3.999, 10.0, 39.999, 40.0}) {
    const Need need{gib(size), &gpu};
    const std::int64_t share = ten_thousandths(need);
    EXPECT_GE(share, 1);
    EXPECT_LE(share, 10'000);
    EXPECT_GE(memory_of_share(need, share), need.memory) << size;
  }
  EXPECT_EQ(ten_thousandths(Need{gib(10), &gpu}), 2500);
}

TEST(ShareText, HasNoZerosBehind) {
  EXPECT_EQ(share_text(1), "0.0001");
  EXPECT_EQ(share_text(2500), "0.25");
  EXPECT_EQ(share_text(3062), "0.3062");
  EXPECT_EQ(share_text(10'000), "1");
}

TEST(ToText, IsAManifestOrAnArgument) {
  GpuRequest request;
  request.annotations = {{"gpu-memory", "7"}};
  request.limits = {{"nvidia.com/gpu", "1"}};
  EXPECT_EQ(to_text(request),
            "metadata:\n  annotations:\n    gpu-memory: \"7\"\n"
            "spec:\n  containers:\n    - resources:\n        limits:\n          nvidia.com/gpu: 1\n");
  request.argument = "--gres=shard:7";
  EXPECT_EQ(to_text(request), "--gres=shard:7\n");
}

}  // namespace
}  // namespace gpumem::request
