#include "gpumem/estimate/estimator.hpp"

#include "graphs.hpp"

namespace gpumem::estimate {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

/// Answers with a fixed figure, or with an error.
class Fixed final : public Estimator {
 public:
  explicit Fixed(std::int64_t bytes) : bytes_(bytes) {}
  [[nodiscard]] std::string_view name() const override { return "fixed"; }

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis& /*analysis*/,
                                                         const GpuProfile& /*gpu*/) const override {
    if (bytes_ < 0) return core::Error{ErrorCode::missing_information, "cannot tell", {}};
    MemoryEstimate estimate;
    estimate.expected = estimate.lower = estimate.upper = Bytes(bytes_);
    estimate.breakdown.activations = Bytes(bytes_);
    return estimate;
  }
  std::int64_t bytes_;
};

TrainingJob job() {
  model::GraphBuilder builder("test", "model.txt");
  builder.infer_edges();
  builder.add({.name = "a", .parameters = 3});
  builder.add({.name = "b", .op = ops::vocabulary().find_op("relu")});
  return TrainingJob(*std::move(builder).build(), 1);
}

GpuProfile gpu() {
  GpuProfile profile;
  profile.name = "mine";
  profile.memory_bytes.value = 1000;
  return profile;
}

TEST(Estimator, StampsCoverageAndProvenance) {
  const auto estimate = Fixed(10).estimate(job(), gpu());
  ASSERT_TRUE(succeeds(estimate));
  EXPECT_EQ(estimate->coverage.layers_total, 2);
  EXPECT_EQ(estimate->coverage.layers_unknown, 1);
  EXPECT_TRUE(estimate->coverage.edges_inferred);
  EXPECT_EQ(estimate->provenance.estimator, "fixed");
  EXPECT_EQ(estimate->provenance.gpu, "mine");
}

TEST(Estimator, AJobFitsIfItsUpperFigureDoes) {
  model::GraphBuilder builder("test");
  builder.infer_edges();
  builder.add({.name = "a", .op = ops::vocabulary().find_op("relu")});
  const TrainingJob known(*std::move(builder).build(), 1);
  EXPECT_TRUE(Fixed(1000).estimate(known, gpu())->fits);
  EXPECT_FALSE(Fixed(1001).estimate(known, gpu())->fits);
}

TEST(Estimator, AJobWithAnUnknownLayerIsNotKnownToFit) {
  EXPECT_FALSE(Fixed(1).estimate(job(), gpu())->fits);
  EXPECT_EQ(Fixed(1).estimate(job(), gpu())->verdict, Verdict::unknown);
  EXPECT_EQ(Fixed(1001).estimate(job(), gpu())->verdict, Verdict::does_not_fit) << "it needs even more";
}

TEST(Verdict, IsTightWhereOnlyTheExpectedFigureFitsOrTheCacheIsGivenBack) {
  MemoryEstimate estimate;
  estimate.expected = Bytes(90);
  estimate.most_needed = Bytes(100);
  estimate.fits = true;
  EXPECT_EQ(verdict_of(estimate, Bytes(100)), Verdict::fits);
  EXPECT_EQ(verdict_of(estimate, Bytes(99)), Verdict::tight);
  EXPECT_EQ(verdict_of(estimate, Bytes(90)), Verdict::tight);
  EXPECT_EQ(verdict_of(estimate, Bytes(89)), Verdict::does_not_fit);
  estimate.retries = 1;
  EXPECT_EQ(verdict_of(estimate, Bytes(1000)), Verdict::tight);
  estimate.retries = 0;
  estimate.fits = false;
  EXPECT_EQ(verdict_of(estimate, Bytes(1000)), Verdict::tight) << "the estimator knows better";
}

/// A formula that counts no activations, and knows about several GPUs.
class Partial final : public Estimator {
 public:
  [[nodiscard]] std::string_view name() const override { return "partial"; }

 private:
  [[nodiscard]] core::Result<MemoryEstimate> do_estimate(analysis::Analysis&, const GpuProfile&) const override {
    MemoryEstimate estimate;
    estimate.leaves_out = "activations";
    return estimate;
  }
  [[nodiscard]] bool takes_data_parallel() const override { return true; }
};

TrainingJob known_job() {
  model::GraphBuilder builder("test");
  builder.infer_edges();
  builder.add({.name = "a", .op = ops::vocabulary().find_op("relu")});
  return {*std::move(builder).build(), 1};
}

TEST(Estimator, WhatLeavesSomethingOutIsALowerBoundAndNotKnownToFit) {
  const auto estimate = Partial().estimate(known_job(), gpu());
  EXPECT_TRUE(estimate->lower_bound);
  EXPECT_FALSE(estimate->fits);
  EXPECT_FALSE(Fixed(1).estimate(known_job(), gpu())->lower_bound);
  EXPECT_TRUE(Fixed(1).estimate(job(), gpu())->lower_bound) << "a layer is unknown";
}

TEST(Estimator, RefusesSeveralGpusUnlessItKnowsOfThem) {
  TrainingJob several = known_job();
  several.layout.data_parallel = 8;
  EXPECT_TRUE(fails(Fixed(1).estimate(several, gpu()), ErrorCode::invalid_argument, 0,
                    "fixed is for one GPU, not for 8 in data parallel"));
  EXPECT_TRUE(succeeds(Partial().estimate(several, gpu())));
}

TEST(Estimator, ChecksTheJobFirst) {
  TrainingJob wrong = job();
  wrong.batch_size = 0;
  EXPECT_TRUE(fails(Fixed(1).estimate(wrong, gpu()), ErrorCode::invalid_argument, 0, "the batch size is 0"));
  EXPECT_TRUE(fails(Fixed(1).estimate(TrainingJob(), gpu()), ErrorCode::invalid_argument, 0, "no model"));
}

TEST(Estimator, AnErrorNamesTheSummary) {
  const auto estimate = Fixed(-1).estimate(job(), gpu());
  ASSERT_TRUE(fails(estimate, ErrorCode::missing_information, 0, "cannot tell"));
  EXPECT_EQ(estimate.error().place.file, "model.txt");
}

}  // namespace
}  // namespace gpumem::estimate
