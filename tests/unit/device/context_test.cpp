#include "gpumem/device/workspace.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"

namespace gpumem::device {

namespace {

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

}  // namespace

}  // namespace gpumem::device
