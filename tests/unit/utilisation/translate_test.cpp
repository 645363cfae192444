#include "gpumem/utilisation/utilisation_estimators.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "gpumem/all.hpp"

namespace gpumem::utilisation {
namespace {

using testing::fails;
using testing::succeeds;

UtilisationEstimate measured(double gract, double smact, double smocc = 0.2, double fp32 = 0.3) {
  UtilisationEstimate estimate;
  estimate.gract = {gract, gract, gract};
  estimate.gpu_utilisation = estimate.gract;
  estimate.smact = {smact, smact, smact};
  estimate.smocc = {smocc, smocc, smocc};
  estimate.fp32 = {fp32, fp32, fp32};
  estimate.gpu = "a100-40gb";
  return estimate;
}

UtilisationEstimate on(const UtilisationEstimate& estimate, const char* gpu) {
  const auto made = translate(estimate, *find_profile("a100-40gb"), *find_profile(gpu));
  EXPECT_TRUE(succeeds(made));
  return made ? *made : UtilisationEstimate();
}

TEST(Translate, ToTheSameGpuChangesNothing) {
  const UtilisationEstimate same = on(measured(0.9, 0.8), "a100-40gb");
  EXPECT_DOUBLE_EQ(same.gract.expected, 0.9);
  EXPECT_DOUBLE_EQ(same.smact.expected, 0.8);
  EXPECT_DOUBLE_EQ(same.smocc.expected, 0.2);
  EXPECT_DOUBLE_EQ(same.fp32.expected, 0.3);
}

TEST(Translate, ALargerGpuIsLessBusy) {
  const UtilisationEstimate h200 = on(measured(0.9, 0.8), "h200-141gb");
  EXPECT_EQ(h200.gpu, "h200-141gb");
  EXPECT_NEAR(h200.smact.expected, 0.53, 0.03) << "the header's example";
  EXPECT_LT(h200.gract.expected, 0.9);
  EXPECT_LT(h200.smact.expected, h200.gract.expected);
  EXPECT_LE(h200.smact.lower, h200.smact.expected);
  EXPECT_LT(h200.smact.lower, h200.smact.upper);
  EXPECT_LT(h200.fp32.expected, 0.3);
  EXPECT_EQ(h200.coverage, 0.0);
}

TEST(Translate, ASmallerGpuIsBusier) {
  const UtilisationEstimate t4 = on(measured(0.5, 0.3), "t4-16gb");
  EXPECT_GT(t4.gract.expected, 0.5);
  EXPECT_GT(t4.smact.expected, 0.3);
  EXPECT_LE(t4.smact.upper, 1.0);
}

TEST(Translate, WhatIsAlwaysBusyStaysSoAndWhatIdlesToo) {
  EXPECT_DOUBLE_EQ(on(measured(1.0, 1.0), "t4-16gb").smact.expected, 1.0);
  const UtilisationEstimate idle = on(measured(0.0, 0.0, 0.0, 0.0), "h200-141gb");
  EXPECT_EQ(idle.smact.expected, 0.0);
  EXPECT_EQ(idle.fp32.expected, 0.0);
}

TEST(Translate, NeedsBothProfilesFigures) {
  device::GpuProfile bare = *find_profile("a100-40gb");
  bare.sm_count.reset();
  EXPECT_TRUE(fails(translate(measured(0.5, 0.5), bare, *find_profile("h200-141gb")),
                    core::ErrorCode::missing_information, 0, "SM count"));
}

}  // namespace
}  // namespace gpumem::utilisation
