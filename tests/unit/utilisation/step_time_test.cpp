#include "gpumem/utilisation/step_time.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/ml/features.hpp"

namespace gpumem::utilisation {
namespace {

using core::ErrorCode;
using plan::Kernel;
using testing::fails;
using testing::succeeds;

GpuPeaks a100() { return *peaks_of(*find_profile("a100-40gb")); }

model::TrainingJob job_of(std::int64_t batch_size) { return {std::shared_ptr<const model::ModelGraph>(), batch_size}; }

TEST(GpuPeaks, AreTheProfiles) {
  const GpuPeaks peaks = a100();
  EXPECT_EQ(peaks.sms, 108.0);
  EXPECT_EQ(peaks.bandwidth, 1555e9);
  EXPECT_EQ(peaks.fp32, 19.5e12 / 2);
  EXPECT_EQ(peaks.tf32, 156e12 / 2);
  EXPECT_EQ(peaks.half, 312e12 / 2);
}

TEST(GpuPeaks, EveryBuiltinProfileHasThem) {
  for (const auto& builtin : device::builtin_profiles()) {
    const auto profile = find_profile(builtin.name);
    ASSERT_TRUE(succeeds(profile));
    const auto peaks = peaks_of(*profile);
    ASSERT_TRUE(succeeds(peaks)) << builtin.name;
    EXPECT_GT(peaks->bandwidth, 0.0) << builtin.name;
    EXPECT_GE(peaks->tf32, peaks->fp32) << builtin.name;
    EXPECT_GE(peaks->half, peaks->tf32) << builtin.name;
  }
}

TEST(GpuPeaks, OfAMigSliceAreItsShareOfTheWhole) {
  const GpuPeaks slice = *peaks_of(*find_profile("a100-40gb-mig-3g.20gb"));
  EXPECT_EQ(slice.sms, 42.0);
  EXPECT_NEAR(slice.fp32, a100().fp32 * 42.0 / 108.0, 1.0);
  EXPECT_LT(slice.bandwidth, 0.6 * a100().bandwidth);
}

TEST(GpuPeaks, AreNeverGuessed) {
  device::GpuProfile profile = *find_profile("a100-40gb");
  profile.sm_count.reset();
  EXPECT_TRUE(fails(peaks_of(profile), ErrorCode::missing_information, 0, "does not say its SM count"));
  profile = *find_profile("a100-40gb");
  profile.peak_fp32_flops.reset();
  EXPECT_TRUE(fails(peaks_of(profile), ErrorCode::missing_information, 0, "does not say its FP32 peak"));
  profile = *find_profile("a100-40gb");
  profile.memory_bandwidth_bytes_per_second.reset();
  EXPECT_TRUE(fails(peaks_of(profile), ErrorCode::missing_information, 0, "memory bandwidth"));
  profile = *find_profile("a100-40gb-mig-3g.20gb");
  profile.parent = "gtx9999";
  EXPECT_TRUE(fails(peaks_of(profile), ErrorCode::unknown_gpu, 0, "gtx9999"));
}

/// A square matrix product in float32.
Kernel product(double side) {
  return {.multiply_adds = side * side * side,
          .bytes = 3.0 * 4.0 * side * side,
          .outputs = side * side,
          .depth = side,
          .kind = Kernel::Kind::product};
}

constexpr HostCosts kNoHost = {0.0, 0.0, 0.0, 0.0};

TEST(StepTime, ALargeProductRunsAtThePeak) {
  const StepTime time = step_time({.kernels = {product(16384)}}, job_of(1), a100(), kNoHost);
  const double at_peak = std::pow(16384.0, 3) / a100().fp32;
  EXPECT_GT(time.kernels, at_peak);
  EXPECT_LT(time.kernels, 1.3 * at_peak);
  EXPECT_GT(time.gract, 0.9);
  EXPECT_DOUBLE_EQ(time.smact, time.gract);
  EXPECT_GT(time.fp32, 0.7);
  EXPECT_DOUBLE_EQ(time.product_share, 1.0);
}

TEST(StepTime, ASmallProductFillsFewSms) {
  const StepTime time = step_time({.kernels = {product(128)}}, job_of(1), a100(), kNoHost);
  EXPECT_NEAR(time.smact / time.gract, 1.0 / 108.0, 1e-9);
  EXPECT_GT(step_time({.kernels = {product(16)}}, job_of(1), a100(), kNoHost).floored_share, 0.9);
}

TEST(StepTime, ALongSumIsSplit) {
  Kernel narrow = product(128);
  narrow.multiply_adds *= 1000.0;
  narrow.depth *= 1000.0;
  EXPECT_DOUBLE_EQ(step_time({.kernels = {narrow}}, job_of(1), a100(), kNoHost).smact,
                   step_time({.kernels = {narrow}}, job_of(1), a100(), kNoHost).gract);
}

TEST(StepTime, WhatMovesBytesRunsAtTheBandwidth) {
  const Kernel copy = {.bytes = 1555e9, .outputs = 1555e9 / 8};
  const StepTime time = step_time({.kernels = {copy}}, job_of(1), a100(), kNoHost);
  EXPECT_NEAR(time.kernels, 1.0 / 0.85, 1e-3);
  EXPECT_GT(time.smocc, 0.5);
}

TEST(StepTime, TensorCoresServeConvolutionsAndHalfPrecision) {
  Kernel kernel = product(8192);
  const auto time_of = [&](model::Precision precision) {
    model::TrainingJob job = job_of(1);
    job.precision = precision;
    return step_time({.kernels = {kernel}}, job, a100(), kNoHost);
  };
  const double plain = time_of(model::Precision::fp32).kernels;
  EXPECT_GT(time_of(model::Precision::fp32).fp32, 0.5);
  kernel.kind = Kernel::Kind::convolution;
  EXPECT_LT(time_of(model::Precision::fp32).kernels, plain / 3);
  EXPECT_EQ(time_of(model::Precision::fp32).fp32, 0.0) << "TF32 is not the FP32 pipe's";
  EXPECT_DOUBLE_EQ(time_of(model::Precision::fp32_strict).kernels, plain);
  kernel.kind = Kernel::Kind::product;
  kernel.dtype = core::DType::bfloat16;
  EXPECT_LT(time_of(model::Precision::amp_bf16).kernels, plain / 6);
}

TEST(StepTime, AttentionReachesTheShareOfThePeakThatIsPublished) {
  Kernel attention = product(1 << 16);  // so many blocks that the last one says nothing
  attention.dtype = core::DType::bfloat16;
  attention.attends = true;
  Kernel other = attention;
  other.attends = false;
  Kernel gradients = attention;
  gradients.backwards = true;
  const auto over_other = [&](const char* name, bool large) {
    const auto gpu = *find_profile(name);
    const GpuPeaks peaks = large ? for_large_products(*peaks_of(gpu), gpu) : *peaks_of(gpu);
    const auto time_of = [&](const Kernel& kernel) {
      return step_time({.kernels = {kernel}}, job_of(1), peaks, kNoHost).kernels;
    };
    return time_of(attention) / time_of(other);
  };
  EXPECT_DOUBLE_EQ(over_other("a100-80gb", false), 1.0);
  EXPECT_NEAR(over_other("a100-80gb", true), 0.737 / 0.615, 0.02);
  EXPECT_NEAR(over_other("h100-80gb", true), 0.50 / 0.35, 0.02);
  EXPECT_NEAR(over_other("b200-180gb", true), 0.49 / 0.546, 0.02);
  attention = gradients;
  EXPECT_NEAR(over_other("a100-80gb", true), 0.737 / 0.531, 0.02);
  EXPECT_NEAR(over_other("h100-80gb", true), 0.50 / 0.3215, 0.02);
  EXPECT_NEAR(over_other("b200-180gb", true), 0.49 / 0.4246, 0.02);
  EXPECT_DOUBLE_EQ(over_other("l40s-48gb", true), 1.0) << "nothing is known of it";
}

TEST(StepTime, AnSmThatGetsTheLongestRowsLastIsWaitedFor) {
  const auto gpu = *find_profile("b200-180gb");
  const GpuPeaks peaks = for_large_products(*peaks_of(gpu), gpu);
  const auto time_of = [&](double heads, bool backwards) {
    constexpr double kPositions = 4096.0;
    constexpr double kHead = 128.0;
    const Kernel kernel = {.multiply_adds = heads * kPositions * kPositions * kHead,
                           .outputs = heads * kPositions * kHead,
                           .dtype = core::DType::bfloat16,
                           .kind = Kernel::Kind::product,
                           .attends = true,
                           .backwards = backwards};
    return step_time({.kernels = {kernel}}, job_of(1), peaks, kNoHost).kernels / heads;
  };
  // 128 blocks of 256 positions, and 2,048; 148 SMs.
  constexpr double kUneven = (1.0 + 2.0 * 148.0 / 128.0) / (1.0 + 2.0 * 148.0 / 2048.0);
  EXPECT_NEAR(time_of(8, false) / time_of(128, false), kUneven, 0.2) << "and the least time of a kernel";
  EXPECT_LT(time_of(8, true) / time_of(128, true), 1.2) << "gradients are cut finer";
}

TEST(StepTime, TheHostLaunchesAndReads) {
  const plan::StepWork work = {.kernels = {product(128)}, .input_bytes = 1e6};
  const HostCosts host = {.launch = 1e-3, .step = 2e-3, .sample = 1e-4, .byte = 1e-9};
  const StepTime time = step_time(work, job_of(10), a100(), host);
  EXPECT_DOUBLE_EQ(time.host, 3e-3);
  EXPECT_DOUBLE_EQ(time.data, 1e-3 + 1e-3);
  EXPECT_DOUBLE_EQ(time.step, 5e-3) << "the kernels hide behind the launches";
  EXPECT_LT(time.gract, 0.01);
  EXPECT_DOUBLE_EQ(step_time(work, job_of(10), a100(), host.times(2)).step, 10e-3);
}

TEST(StepTime, OfNothingIsIdle) {
  const StepTime time = step_time({}, job_of(1), a100(), kNoHost);
  EXPECT_EQ(time.step, 0.0);
  EXPECT_EQ(time.gract, 0.0);
}

TEST(StepTime, GivesItsFiguresToLearnedModels) {
  const StepTime time = step_time({.kernels = {product(2048)}}, job_of(4), a100());
  const auto figures = roofline_figures(time);
  const auto figure = [&](ml::RooflineFigure of) { return figures[static_cast<std::size_t>(of)]; };
  EXPECT_EQ(figure(ml::RooflineFigure::smact), time.smact);
  EXPECT_DOUBLE_EQ(figure(ml::RooflineFigure::step_us), time.step * 1e6);
  EXPECT_EQ(figure(ml::RooflineFigure::launches), 1.0);
  EXPECT_DOUBLE_EQ(figure(ml::RooflineFigure::filled), 1.0);
}

}  // namespace
}  // namespace gpumem::utilisation
