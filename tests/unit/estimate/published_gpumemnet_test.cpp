#include "gpumem/estimate/published.hpp"

#include <gtest/gtest.h>

#include "graphs.hpp"
#include "linear_models.hpp"

namespace gpumem::estimate {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::linear_model;
using testing::succeeds;

constexpr std::int64_t kMiB = 1048576;

TrainingJob small_job(std::int64_t batch_size = 8) { return {*parse_summary(testing::kSmallGraph), batch_size}; }

/// Bins of 1,000 MiB: the second is the likelier the larger the batch.
ml::TrainedModel by_batch() {
  return linear_model({"batch_size"}, {.edges_mib = {0, 1000, 2000, 3000}}, {0, 1, 0}, {4, 0, -20});
}

core::Result<std::unique_ptr<Estimator>> made(ml::TrainedModel model) {
  std::vector<ml::TrainedModel> models;
  models.push_back(std::move(model));
  return Gpumemnet::create(Gpumemnet::kMlpName, std::move(models));
}

core::Result<MemoryEstimate> estimate_of(ml::TrainedModel model, const TrainingJob& job,
                                         const std::string& gpu = "a100-40gb") {
  const auto estimator = made(std::move(model));
  if (!estimator) return estimator.error();
  return (*estimator)->estimate(job, *find_profile(gpu));
}

TEST(Gpumemnet, TheLikeliestBinIsTheRange) {
  const auto low = estimate_of(by_batch(), small_job(1));
  ASSERT_TRUE(succeeds(low));
  EXPECT_EQ(low->lower.count(), 0);
  EXPECT_EQ(low->upper.count(), 1000 * kMiB);
  const auto high = estimate_of(by_batch(), small_job(8));
  ASSERT_TRUE(succeeds(high));
  EXPECT_EQ(high->lower.count(), 1000 * kMiB);
  EXPECT_EQ(high->expected.count(), 1500 * kMiB);
  EXPECT_EQ(high->upper.count(), 2000 * kMiB);
  EXPECT_EQ(high->device, high->expected);
  EXPECT_FALSE(high->reserved);
  EXPECT_TRUE(high->fits);
  EXPECT_EQ(high->provenance.weights, "linear");
  EXPECT_EQ(high->provenance.estimator, "gpumemnet-mlp");
}

TEST(Gpumemnet, AllBinsHaveAProbability) {
  const auto estimate = estimate_of(by_batch(), small_job(4));
  ASSERT_TRUE(succeeds(estimate));
  ASSERT_EQ(estimate->bins.size(), 3U);
  EXPECT_NEAR(estimate->bins[0].probability, 0.5, 1e-6);
  EXPECT_NEAR(estimate->bins[1].probability, 0.5, 1e-6);
  EXPECT_EQ(estimate->bins[2].upper.count(), 3000 * kMiB);
}

TEST(Gpumemnet, AJobFitsIfItsBinDoes) {
  const auto estimate =
      estimate_of(linear_model({"batch_size"}, {.edges_mib = {0, 8000, 50000}}, {0, 0}, {0, 1}), small_job());
  ASSERT_TRUE(succeeds(estimate));
  EXPECT_FALSE(estimate->fits);
}

TEST(Gpumemnet, AJobUnlikeTheTrainingRunsIsOutOfDomain) {
  ml::TrainedModel model = by_batch();
  EXPECT_TRUE(estimate_of(model, small_job())->out_of_domain.empty());
  model.config.features[0].max = 4.0;
  model.config.nets = ml::NetKind::mlp;
  model.config.provenance.emplace_back("profile", "a100-40gb");
  // The features are bound when the estimator is made.
  const auto estimate = estimate_of(model, small_job(), "t4-16gb");
  ASSERT_TRUE(succeeds(estimate));
  EXPECT_EQ(estimate->out_of_domain, (std::vector<std::string>{"batch_size", "nets", "gpu"}));
}

TEST(Gpumemnet, SettingsThatNoFeatureTellsAreOutOfDomain) {
  TrainingJob job = small_job();
  job.gradient_accumulation = 4;
  job.activation_checkpointing = true;
  const auto estimate = estimate_of(by_batch(), job);
  ASSERT_TRUE(succeeds(estimate));
  EXPECT_EQ(estimate->out_of_domain, (std::vector<std::string>{"accumulate", "checkpointing"}));
}

TEST(Gpumemnet, EachKindOfNetHasItsModel) {
  ml::TrainedModel mlps = linear_model({"batch_size"}, {.edges_mib = {0, 10, 20}}, {0, 0}, {1, 0});
  mlps.config.nets = ml::NetKind::mlp;
  ml::TrainedModel cnns = linear_model({"batch_size"}, {.edges_mib = {0, 10, 20}}, {0, 0}, {0, 1});
  cnns.config.nets = ml::NetKind::cnn;
  cnns.config.name = "cnns";
  std::vector<ml::TrainedModel> models = {mlps, cnns};
  const auto estimator = Gpumemnet::create(Gpumemnet::kTransformerName, std::move(models));
  ASSERT_TRUE(succeeds(estimator));
  EXPECT_EQ((*estimator)->name(), "gpumemnet-transformer");
  const auto estimate = (*estimator)->estimate(small_job(), *find_profile("a100-40gb"));
  ASSERT_TRUE(succeeds(estimate));
  EXPECT_EQ(estimate->provenance.weights, "cnns");
  EXPECT_TRUE(estimate->out_of_domain.empty());
}

TEST(Gpumemnet, OnlyClassifiersServe) {
  EXPECT_TRUE(fails(Gpumemnet::create(Gpumemnet::kMlpName, {}), ErrorCode::invalid_argument, 0, "no trained model"));
  EXPECT_TRUE(fails(made(linear_model({"batch_size"}, {.names = {"mib"}}, {1}, {0})), ErrorCode::invalid_argument, 0,
                    "not memory bins"));
}

}  // namespace
}  // namespace gpumem::estimate
