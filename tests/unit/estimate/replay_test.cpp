#include "gpumem/estimate/replay.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "gpumem/all.hpp"
#include "linear_models.hpp"
#include "recordings.hpp"

namespace gpumem::estimate {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::linear_model;
using testing::succeeds;

const std::string kModels = GPUMEM_SOURCE_DIR "/models/";

TrainingJob resnet() { return {*read_summary(kModels + "summaries/resnet50.torchsummary.txt"), 32}; }

ml::Head mixture() {
  return {.names = {"rule", "replay.slices-16"}, .spread = 1e-6, .lower_share = 0.025, .upper_share = 0.95};
}

/// As sure of one component as its bias says.
ml::TrainedModel corrector(float rule, float other) {
  return linear_model({"replay.slices-16"}, mixture(), {0, 0}, {rule, other});
}

MemoryEstimate estimate_of(const Estimator& estimator, const TrainingJob& job, const std::string& gpu = "a100-40gb") {
  const auto estimate = estimator.estimate(job, *find_profile(gpu));
  EXPECT_TRUE(succeeds(estimate));
  return *estimate;
}

MemoryEstimate corrected(ml::TrainedModel model, const TrainingJob& job, const std::string& gpu = "a100-40gb") {
  const auto estimator = CorrectedReplay::create(std::move(model));
  EXPECT_TRUE(succeeds(estimator));
  return estimate_of(**estimator, job, gpu);
}

MemoryEstimate replayed(const TrainingJob& job, const std::string& gpu = "a100-40gb") {
  return estimate_of(**make_estimator("replay"), job, gpu);
}

/// A language model that is trained on very few tokens: its optimizer's step takes most.
TrainingJob few_tokens() {
  TrainingJob job{*read_summary("EleutherAI/pythia-410m"), 1};
  job.sequence_length = 16;
  return job;
}

TEST(Replay, SaysWhatThePeakIsAndWhatAvoidsIt) {
  TrainingJob job = few_tokens();
  const MemoryEstimate foreach = replayed(job);
  ASSERT_TRUE(foreach.peak_layer);
  EXPECT_EQ(foreach.peak_layer->phase, "optimizer");
  EXPECT_NE(foreach.peak_layer->text.find("are temporaries of foreach adam; `fused` avoids them"), std::string::npos)
      << foreach.peak_layer->text;
  EXPECT_NEAR(foreach.breakdown.temporaries.mib(), foreach.breakdown.parameters.mib(), 20.0);
  job.fused = true;
  const MemoryEstimate fused = replayed(job);
  EXPECT_EQ(fused.breakdown.temporaries.count(), 0);
  EXPECT_EQ(fused.peak_layer->text.find("temporaries of"), std::string::npos) << fused.peak_layer->text;
  job.fused = false;
  job.precision = model::Precision::bf16_mixed;  // copies of the gradients, which a fused step makes too
  EXPECT_EQ(replayed(job).peak_layer->text.find("fused"), std::string::npos);
}

TEST(Replay, KeepsTheUpperEndThatTheGpuCuts) {
  const auto of_batch = [](std::int64_t batch) {
    TrainingJob job = resnet();
    job.batch_size = batch;
    return replayed(job);
  };
  const core::Bytes capacity = find_profile("a100-40gb")->capacity();
  const MemoryEstimate cut = of_batch(400);
  EXPECT_EQ(cut.upper, capacity);
  EXPECT_GT(cut.upper_uncut, capacity);
  const MemoryEstimate roomy = of_batch(32);
  EXPECT_EQ(roomy.upper_uncut, roomy.upper);
}

TEST(Replay, LittleThatAStepTakesForAMomentIsNotThePeaksReason) {
  TrainingJob job = few_tokens();
  job.foreach = false;  // one parameter's temporaries at a time
  const MemoryEstimate found = replayed(job);
  EXPECT_EQ(found.peak_layer->phase, "optimizer");
  EXPECT_GT(found.breakdown.temporaries.count(), 0);
  EXPECT_NE(found.peak_layer->text.find("are states of the optimizer"), std::string::npos) << found.peak_layer->text;
}

TEST(Replay, NamesNoOptimizerOfARecordedStep) {
  TrainingJob job{*read_summary(testing::golden_recording("mlp")), 1};
  const MemoryEstimate recorded = replayed(job);
  EXPECT_EQ(recorded.peak_layer->phase, "optimizer");
  EXPECT_TRUE(recorded.peak_layer->text.ends_with(" are temporaries")) << recorded.peak_layer->text;
  job.optimizer = model::Optimizer::adam;
  job.replaces_optimizer = true;
  const std::string other = replayed(job).peak_layer->text;
  EXPECT_NE(other.find("are temporaries of foreach adam"), std::string::npos) << other;
}

TEST(Replay, AFractionOfTheMemoryIsAllThereIs) {
  const GpuProfile gpu = *find_profile("a100-40gb");
  const auto within = [&](double fraction) {
    TrainingJob job = resnet();
    job.batch_size = 200;
    device::AllocatorOptions options;
    options.memory_fraction = fraction;
    return *(*make_estimator("replay", {options}))->estimate(job, gpu);
  };
  const MemoryEstimate whole = within(1.0);
  EXPECT_FALSE(whole.limit) << "CUDA's context lies beside it, so the GPU ends first";
  EXPECT_EQ(whole.verdict, Verdict::fits);
  const auto share_of = [&](const MemoryEstimate& estimate) {
    return static_cast<double>(estimate.reserved->count()) / static_cast<double>(gpu.capacity().count());
  };
  const MemoryEstimate tight = within(share_of(whole) * 1.01);
  ASSERT_TRUE(tight.fits);
  EXPECT_EQ(tight.upper, *tight.limit);
  EXPECT_GT(tight.upper_uncut, tight.upper);
  EXPECT_LT(tight.upper, gpu.capacity());
  EXPECT_EQ(tight.verdict, tight.most_needed <= *tight.limit ? Verdict::fits : Verdict::tight);
  const MemoryEstimate none = within(share_of(whole) * 0.5);
  EXPECT_FALSE(none.fits);
  EXPECT_EQ(none.verdict, Verdict::does_not_fit);
}

TEST(CorrectedReplay, SureOfTheRuleIsTheReplay) {
  const MemoryEstimate with = corrected(corrector(30, 0), resnet());
  const MemoryEstimate without = replayed(resnet());
  EXPECT_NEAR(with.expected.mib(), without.expected.mib(), 0.1);
  EXPECT_NEAR(with.upper.mib(), with.expected.mib(), 0.1) << "and so is the range narrow";
  EXPECT_EQ(with.provenance.weights, "linear");
}

TEST(CorrectedReplay, SureOfAnotherWorkspaceIsThatReplay) {
  const TrainingJob job = resnet();
  device::GpuProfile varied = *find_profile("a100-40gb");
  varied.convolution_workspace.variant = {.slices = 16};
  const auto expected = (*make_estimator("replay"))->estimate(job, varied);
  ASSERT_TRUE(succeeds(expected));
  const MemoryEstimate with = corrected(corrector(0, 30), job);
  EXPECT_NEAR(with.expected.mib(), expected->expected.mib(), 0.1);
  EXPECT_GT(std::abs(with.expected.mib() - replayed(job).expected.mib()), 1.0);
}

TEST(CorrectedReplay, TheRangeHoldsWhatMayBe) {
  const TrainingJob job = resnet();
  const MemoryEstimate both = corrected(corrector(1, 0), job);
  const double rule = corrected(corrector(30, 0), job).expected.mib();
  const double other = corrected(corrector(0, 30), job).expected.mib();
  EXPECT_NEAR(both.expected.mib(), rule, 0.1) << "the likelier one is the median";
  EXPECT_NEAR(both.lower.mib(), std::min(rule, other), 0.1);
  EXPECT_NEAR(both.upper.mib(), std::max(rule, other), 0.1);
}

TEST(CorrectedReplay, AJobThatFitsIsNoneThatWouldNot) {
  const TrainingJob job = resnet();
  const MemoryEstimate rule = replayed(job);
  ml::TrainedModel model = corrector(30, 0);
  model.config.head.spread = 0.05;
  const auto estimator = CorrectedReplay::create(std::move(model));
  ASSERT_TRUE(succeeds(estimator));

  device::GpuProfile full = *find_profile("a100-40gb");
  full.usable_bytes->value = rule.expected.count();
  const auto fits = (*estimator)->estimate(job, full);
  ASSERT_TRUE(succeeds(fits));
  EXPECT_TRUE(fits->fits);
  // Half of the Laplace distribution fits: its median is the quarter of the whole.
  EXPECT_NEAR(fits->reserved->mib(), rule.reserved->mib() * std::exp(-0.05 * std::log(2.0)), 2.0);
  EXPECT_EQ(fits->upper, full.capacity()) << "it may yet be one that does not fit";

  device::GpuProfile small = full;
  small.usable_bytes->value = rule.allocated->count() / 2;
  const auto too_large = (*estimator)->estimate(job, small);
  ASSERT_TRUE(succeeds(too_large));
  EXPECT_FALSE(too_large->fits);
  EXPECT_NEAR(too_large->expected.mib(), rule.expected.mib(), 0.1) << "what it would take, whatever there is";
  EXPECT_GT(too_large->upper, too_large->expected);
  EXPECT_LT(too_large->lower, too_large->expected);
}

TEST(CorrectedReplay, PartsStillSumToTheWhole) {
  for (const float bias : {-30.0F, 0.5F, 30.0F}) {
    const MemoryEstimate estimate = corrected(corrector(0, bias), resnet());
    EXPECT_EQ(estimate.breakdown.total().value(), estimate.expected.count());
    EXPECT_EQ(estimate.breakdown.context.count() + estimate.reserved->count(), estimate.expected.count());
    EXPECT_LE(*estimate.allocated, *estimate.reserved);
    for (const auto& part : estimate.breakdown.parts()) EXPECT_GE(part.bytes.count(), 0) << part.name;
  }
}

TEST(CorrectedReplay, LeavesAloneWhatItWasNotTrainedFor) {
  ml::TrainedModel elsewhere = corrector(0, 30);
  elsewhere.config.provenance.emplace_back("profile", "a100-40gb");
  EXPECT_EQ(corrected(elsewhere, resnet(), "t4-16gb").expected, replayed(resnet(), "t4-16gb").expected);
  ml::TrainedModel narrow = corrector(0, 30);
  narrow.config.features[0].max = -5.0;
  const MemoryEstimate outside = corrected(narrow, resnet());
  EXPECT_EQ(outside.expected, replayed(resnet()).expected);
  EXPECT_EQ(outside.provenance.weights, "");
}

TEST(CorrectedReplay, OnlyMixturesServe) {
  EXPECT_TRUE(fails(CorrectedReplay::create(linear_model({"batch_size"}, {.names = {"mib"}}, {1}, {0})),
                    ErrorCode::invalid_argument, 0, "is not a corrector"));
}

}  // namespace
}  // namespace gpumem::estimate
