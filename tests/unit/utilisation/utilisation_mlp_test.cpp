#include "gpumem/utilisation/utilisation_estimators.hpp"

#include <gtest/gtest.h>

#include "graphs.hpp"
#include "linear_models.hpp"

namespace gpumem::utilisation {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::linear_model;
using testing::succeeds;

TrainingJob small_job(std::int64_t batch_size = 8) { return {*parse_summary(testing::kSmallGraph), batch_size}; }

ml::Head values() {
  return {.names = {"smact", "gract"}, .residuals = {.lower = {-0.1, -0.2}, .upper = {0.05, 0.3}, .coverage = 0.9}};
}

/// SMACT is half of what the batch divided by 16 is, GRACT a quarter more.
ml::TrainedModel by_batch(ml::Head head = values()) {
  ml::TrainedModel model = linear_model({"batch_size"}, std::move(head), {0.03125, 0.03125}, {0.0, 0.25});
  model.config.provenance.emplace_back("profile", "a100-40gb");
  return model;
}

core::Result<std::unique_ptr<UtilisationEstimator>> made(ml::TrainedModel model,
                                                         std::string_view name = UtilisationMlp::kName) {
  std::vector<ml::TrainedModel> models;
  models.push_back(std::move(model));
  return UtilisationMlp::create(name, std::move(models));
}

core::Result<UtilisationEstimate> estimate_of(ml::TrainedModel model, const TrainingJob& job,
                                              const char* gpu = "a100-40gb",
                                              std::string_view name = UtilisationMlp::kName) {
  const auto estimator = made(std::move(model), name);
  if (!estimator) return estimator.error();
  return (*estimator)->estimate(job, *find_profile(gpu));
}

TEST(UtilisationMlp, SaysWhatTheNetworkGives) {
  const auto estimate = estimate_of(by_batch(), small_job(8));
  ASSERT_TRUE(succeeds(estimate));
  EXPECT_NEAR(estimate->smact.expected, 0.25, 1e-6);
  EXPECT_NEAR(estimate->smact.lower, 0.15, 1e-6);
  EXPECT_NEAR(estimate->smact.upper, 0.30, 1e-6);
  EXPECT_NEAR(estimate->gract.expected, 0.5, 1e-6);
  EXPECT_EQ(estimate->coverage, 0.9);
  EXPECT_EQ(estimate->weights, "linear");
  EXPECT_EQ(estimate->estimator, "utilisation-mlp");
  EXPECT_TRUE(estimate->out_of_domain.empty());
}

TEST(UtilisationMlp, StaysBetween0And1AndInOrder) {
  const auto high = estimate_of(by_batch(), small_job(1000));
  ASSERT_TRUE(succeeds(high));
  for (const auto& [name, share] : high->counters()) {
    EXPECT_LE(0.0, share.lower) << name;
    EXPECT_LE(share.lower, share.expected) << name;
    EXPECT_LE(share.expected, share.upper) << name;
    EXPECT_LE(share.upper, 1.0) << name;
  }
  EXPECT_EQ(high->smact.expected, 1.0);
}

TEST(UtilisationMlp, OnAnotherGpuTheRooflineCarriesIt) {
  const auto there = estimate_of(by_batch(), small_job(8));
  const auto here = estimate_of(by_batch(), small_job(8), "h200-141gb");
  ASSERT_TRUE(succeeds(here));
  EXPECT_EQ(here->gpu, "h200-141gb");
  EXPECT_EQ(here->out_of_domain, (std::vector<std::string>{"gpu"}));
  EXPECT_EQ(here->coverage, 0.0);
  EXPECT_LT(here->smact.expected, there->smact.expected);
  const Roofline roofline;
  const auto from = roofline.estimate(small_job(8), *find_profile("a100-40gb"));
  const auto to = roofline.estimate(small_job(8), *find_profile("h200-141gb"));
  const auto odds = [](double share) { return share / (1.0 - share); };
  EXPECT_NEAR(odds(here->smact.expected) / odds(there->smact.expected),
              odds(to->smact.expected) / odds(from->smact.expected), 1e-3);
}

TEST(UtilisationMlp, OfAKindOfNetWithoutAModelTheRooflineSpeaks) {
  ml::TrainedModel mlps = by_batch();
  mlps.config.nets = ml::NetKind::mlp;
  const auto estimate = estimate_of(mlps, small_job(8));
  ASSERT_TRUE(succeeds(estimate));
  EXPECT_EQ(estimate->out_of_domain, (std::vector<std::string>{"nets"}));
  EXPECT_TRUE(estimate->weights.empty());
  const auto roofline = Roofline().estimate(small_job(8), *find_profile("a100-40gb"));
  EXPECT_DOUBLE_EQ(estimate->smact.expected, roofline->smact.expected);
}

TEST(UtilisationMlp, AJobUnlikeTheTrainingRunsIsOutOfDomain) {
  ml::TrainedModel model = by_batch();
  model.config.features[0].max = 4.0;
  const auto estimate = estimate_of(model, small_job(8));
  ASSERT_TRUE(succeeds(estimate));
  EXPECT_EQ(estimate->out_of_domain, (std::vector<std::string>{"batch_size"}));
}

TEST(UtilisationMlp, BinsHaveProbabilitiesAndARangeOfThem) {
  const ml::Head bins = {.edges_mib = {0.0, 0.5, 1.0}, .of = "smact"};
  ml::TrainedModel model = linear_model({"batch_size"}, bins, {0.0, 0.0}, {0.0, 0.0});
  model.config.provenance.emplace_back("profile", "a100-40gb");
  const auto estimate = estimate_of(model, small_job(8), "a100-40gb", UtilisationMlp::kBinsName);
  ASSERT_TRUE(succeeds(estimate));
  ASSERT_EQ(estimate->smact_bins.size(), 2U);
  EXPECT_NEAR(estimate->smact_bins[0].probability, 0.5, 1e-6);
  EXPECT_NEAR(estimate->smact.expected, 0.5, 1e-6);
  EXPECT_NEAR(estimate->smact.lower, 0.05, 1e-6);
  EXPECT_NEAR(estimate->smact.upper, 0.95, 1e-6);
  EXPECT_EQ(estimate->estimator, "utilisation-bins");
}

TEST(UtilisationMlp, OnlyModelsOfCountersServe) {
  EXPECT_TRUE(fails(UtilisationMlp::create(UtilisationMlp::kName, {}), ErrorCode::invalid_argument, 0, "no trained"));
  EXPECT_TRUE(fails(made(by_batch({.names = {"smact", "log_mib"}})), ErrorCode::invalid_argument, 0,
                    "does not tell a GPU's counters"));
  EXPECT_TRUE(fails(made(by_batch({.names = {"smocc", "gract"}})), ErrorCode::invalid_argument, 0, "smact among them"));
  EXPECT_TRUE(fails(made(by_batch(), UtilisationMlp::kBinsName), ErrorCode::invalid_argument, 0, "no bins of smact"));
  ml::TrainedModel nowhere = by_batch();
  nowhere.config.provenance.clear();
  EXPECT_TRUE(fails(made(nowhere), ErrorCode::invalid_argument, 0, "does not say which GPU"));
}

}  // namespace
}  // namespace gpumem::utilisation
