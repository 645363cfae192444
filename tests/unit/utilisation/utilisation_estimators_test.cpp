#include <gtest/gtest.h>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "gpumem/utilisation/utilisation_estimators.hpp"
#include "graphs.hpp"
#include "linear_models.hpp"

namespace gpumem::utilisation {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::linear_model;
using testing::succeeds;

TrainingJob resnet50(std::int64_t batch_size) {
  auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchinfo.txt");
  EXPECT_TRUE(succeeds(graph));
  return {graph ? *std::move(graph) : ModelGraph(), batch_size};
}

UtilisationEstimate roofline_on(const char* gpu, std::int64_t batch_size, const HostCosts& host = {}) {
  const auto estimate = Roofline(host).estimate(resnet50(batch_size), *find_profile(gpu));
  EXPECT_TRUE(succeeds(estimate));
  return estimate ? *estimate : UtilisationEstimate();
}

TEST(Roofline, NamesItselfAndItsGpu) {
  const UtilisationEstimate estimate = roofline_on("h200-141gb", 32);
  EXPECT_EQ(estimate.estimator, "roofline");
  EXPECT_EQ(estimate.gpu, "h200-141gb");
  EXPECT_TRUE(estimate.weights.empty());
  EXPECT_TRUE(estimate.out_of_domain.empty());
}

TEST(Roofline, ALargerGpuIsLessBusyWithTheSameJob) {
  EXPECT_GT(roofline_on("t4-16gb", 32).smact.expected, roofline_on("a100-40gb", 32).smact.expected);
  EXPECT_GT(roofline_on("a100-40gb", 32).smact.expected, roofline_on("h200-141gb", 32).smact.expected);
}

TEST(Roofline, ASlowHostIdlesTheGpu) {
  const HostCosts usual;
  EXPECT_GT(roofline_on("a100-40gb", 32).smact.expected, roofline_on("a100-40gb", 32, usual.times(4)).smact.expected);
}

TEST(Roofline, AJobThatCannotBePlannedIsAnError) {
  const auto estimate = Roofline().estimate(resnet50(0), *find_profile("a100-40gb"));
  EXPECT_TRUE(fails(estimate, core::ErrorCode::invalid_argument, 0, "batch"));
}

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

TEST(UtilisationEstimators, EachIsMadeByItsName) {
  for (const UtilisationEstimatorEntry& entry : utilisation_estimators()) {
    const auto estimator = make_utilisation_estimator(entry.name);
    ASSERT_TRUE(succeeds(estimator)) << entry.name;
    EXPECT_EQ((*estimator)->name(), entry.name);
    EXPECT_FALSE(entry.description.empty());
  }
}

TEST(UtilisationEstimators, AnUnknownNameListsThem) {
  EXPECT_TRUE(fails(make_utilisation_estimator("guess"), core::ErrorCode::invalid_argument, 0,
                    "choose one of utilisation-mlp, utilisation-bins, roofline"));
}

TEST(UtilisationEstimators, LearnedOnesTakeAModelOfTheirKind) {
  EXPECT_TRUE(succeeds(make_utilisation_estimator("utilisation-mlp", "utilisation-mlp-cnn")));
  EXPECT_TRUE(fails(make_utilisation_estimator("utilisation-mlp", "gpumemnet-mlp-mlp"),
                    core::ErrorCode::invalid_argument, 0, "does not tell a GPU's counters"));
  EXPECT_TRUE(fails(make_utilisation_estimator("utilisation-bins", "utilisation-mlp-cnn"),
                    core::ErrorCode::invalid_argument, 0, "no bins of smact"));
}

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

UtilisationEstimate translate_on(const UtilisationEstimate& estimate, const char* gpu) {
  const auto made = translate(estimate, *find_profile("a100-40gb"), *find_profile(gpu));
  EXPECT_TRUE(succeeds(made));
  return made ? *made : UtilisationEstimate();
}

TEST(Translate, ToTheSameGpuChangesNothing) {
  const UtilisationEstimate same = translate_on(measured(0.9, 0.8), "a100-40gb");
  EXPECT_DOUBLE_EQ(same.gract.expected, 0.9);
  EXPECT_DOUBLE_EQ(same.smact.expected, 0.8);
  EXPECT_DOUBLE_EQ(same.smocc.expected, 0.2);
  EXPECT_DOUBLE_EQ(same.fp32.expected, 0.3);
}

TEST(Translate, ALargerGpuIsLessBusy) {
  const UtilisationEstimate h200 = translate_on(measured(0.9, 0.8), "h200-141gb");
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
  const UtilisationEstimate t4 = translate_on(measured(0.5, 0.3), "t4-16gb");
  EXPECT_GT(t4.gract.expected, 0.5);
  EXPECT_GT(t4.smact.expected, 0.3);
  EXPECT_LE(t4.smact.upper, 1.0);
}

TEST(Translate, WhatIsAlwaysBusyStaysSoAndWhatIdlesToo) {
  EXPECT_DOUBLE_EQ(translate_on(measured(1.0, 1.0), "t4-16gb").smact.expected, 1.0);
  const UtilisationEstimate idle = translate_on(measured(0.0, 0.0, 0.0, 0.0), "h200-141gb");
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
