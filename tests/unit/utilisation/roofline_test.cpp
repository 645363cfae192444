#include "gpumem/utilisation/utilisation_estimators.hpp"

#include <gtest/gtest.h>

#include "graphs.hpp"

namespace gpumem::utilisation {
namespace {

using testing::fails;
using testing::succeeds;

TrainingJob resnet50(std::int64_t batch_size) {
  auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchinfo.txt");
  EXPECT_TRUE(succeeds(graph));
  return {graph ? *std::move(graph) : ModelGraph(), batch_size};
}

UtilisationEstimate on(const char* gpu, std::int64_t batch_size, const HostCosts& host = {}) {
  const auto estimate = Roofline(host).estimate(resnet50(batch_size), *find_profile(gpu));
  EXPECT_TRUE(succeeds(estimate));
  return estimate ? *estimate : UtilisationEstimate();
}

TEST(Roofline, NamesItselfAndItsGpu) {
  const UtilisationEstimate estimate = on("h200-141gb", 32);
  EXPECT_EQ(estimate.estimator, "roofline");
  EXPECT_EQ(estimate.gpu, "h200-141gb");
  EXPECT_TRUE(estimate.weights.empty());
  EXPECT_TRUE(estimate.out_of_domain.empty());
}

TEST(Roofline, ALargerGpuIsLessBusyWithTheSameJob) {
  EXPECT_GT(on("t4-16gb", 32).smact.expected, on("a100-40gb", 32).smact.expected);
  EXPECT_GT(on("a100-40gb", 32).smact.expected, on("h200-141gb", 32).smact.expected);
}

TEST(Roofline, ASlowHostIdlesTheGpu) {
  const HostCosts usual;
  EXPECT_GT(on("a100-40gb", 32).smact.expected, on("a100-40gb", 32, usual.times(4)).smact.expected);
}

TEST(Roofline, AJobThatCannotBePlannedIsAnError) {
  const auto estimate = Roofline().estimate(resnet50(0), *find_profile("a100-40gb"));
  EXPECT_TRUE(fails(estimate, core::ErrorCode::invalid_argument, 0, "batch"));
}

}  // namespace
}  // namespace gpumem::utilisation
