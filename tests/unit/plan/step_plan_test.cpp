#include "gpumem/plan/step_plan.hpp"

#include "small_plans.hpp"

namespace gpumem::plan {
namespace {

using core::ErrorCode;
using testing::bytes_of;
using testing::count;
using testing::Events;
using testing::events;
using testing::fails;
using testing::forward;
using testing::in_order;
using testing::job_of;
using testing::kRows;
using testing::net;
using testing::planned;
using testing::products;
using testing::succeeds;

TEST(StepPlan, RunsANetAsPyTorchDoes) {
  const TrainingJob job = net();
  const auto [pass, plan] = planned(job);
  EXPECT_EQ(events(job, plan, Phase::construction, 0),
            Events({"+128 a parameter", "+32 a parameter", "+64 c parameter", "+8 c parameter"}));
  EXPECT_EQ(events(job, plan, Phase::batch), Events({"+32 input", "+16 input"}));
  EXPECT_EQ(events(job, plan, Phase::forward), Events({"+64 a activation", "+64 b activation",
                                                       "-64 a activation",  // relu keeps its output
                                                       "+16 c activation",
                                                       "+16 c activation",                       // log-softmax
                                                       "+4 c activation", "+4 c activation"}));  // the loss, its weight
  EXPECT_EQ(events(job, plan, Phase::backward),
            Events({"+4 flow",                                                      // ones
                    "+16 c flow", "-4 c activation",                                // nll_loss
                    "+16 c flow", "-16 c flow", "-16 c activation",                 // log_softmax
                    "+64 c flow", "+64 c gradient", "+8 c gradient", "-16 c flow",  // c
                    "+64 b flow", "-64 c flow", "-64 b activation",                 // b
                    "+128 a gradient", "+32 a gradient", "-64 b flow",              // a, whose input needs none
                    "-4 flow"}));
}

TEST(StepPlan, OutputsAndLossStandUntilTheNextStepHasNewOnes) {
  const TrainingJob job = net();
  const auto plan = planned(job).plan;
  const Events forward = events(job, plan, Phase::forward, 2);
  EXPECT_TRUE(in_order(forward, {"+64 b activation", "+16 c activation", "-16 c activation", "+16 c activation",
                                 "+4 c activation", "+4 c activation", "-4 c activation"}));
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
}

TEST(StepPlan, ALoopThatKeepsNothingLetsGoOfOutputsBeforeBackward) {
  TrainingJob job = net();
  for (const model::LoopRow& row : model::kLoopRows) {
    SCOPED_TRACE(row.name);
    job.loop = row.value;
    const auto plan = planned(job).plan;
    const Events forward = events(job, plan, Phase::forward, 1);
    const Events again = events(job, plan, Phase::forward, 2);
    const auto output_ends = [](const Events& all) { return count(all, "-16 c activation"); };
    EXPECT_EQ(output_ends(forward), row.keeps_outputs ? 0 : 1) << "log_softmax keeps its own result";
    EXPECT_EQ(output_ends(again), 1) << "the last step's, or this one's";
    EXPECT_EQ(forward.back() == "-16 c activation", !row.keeps_outputs);
    EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
  }
}

TEST(StepPlan, KeysAndValuesAreHandedOutByTransformersAlone) {
  TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false}},
    {"name": "k", "op": "cached", "inputs": ["a"], "attrs": {"cache": true}, "returned": true},
    {"name": "c", "op": "mean", "inputs": ["a"], "attrs": {"dim": 1}})",
                           2);
  const auto left_with = [&](model::Loop loop) {
    job.loop = loop;
    return bytes_of(planned(job).plan, 2).left;
  };
  EXPECT_EQ(left_with(model::Loop::script) - left_with(model::Loop::litgpt), 64);
  EXPECT_LT(left_with(model::Loop::hf_trainer), left_with(model::Loop::litgpt)) << "its outputs are gone too";
}

TEST(StepPlan, WhatOutlivesTheLossStandsUntilBackwardHasRun) {
  TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"],
     "attrs": {"in_features": 4, "out_features": 8, "bias": false, "outlives_loss": true}, "returned": true},
    {"name": "c", "op": "mean", "inputs": ["a"], "attrs": {"dim": 1}})",
                           2);
  job.loop = model::Loop::hf_trainer;
  const auto plan = planned(job).plan;
  EXPECT_EQ(count(events(job, plan, Phase::forward, 1), "-64 a activation"), 0);
  EXPECT_EQ(events(job, plan, Phase::backward, 1).back(), "-64 a activation");
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
}

TEST(StepPlan, UnderAutocastSomeLoopsGetOutputsInFloat32) {
  TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false},
     "returned": true},
    {"name": "c", "op": "mean", "inputs": ["a"], "attrs": {"dim": 1}})",
                           2);
  job.precision = Precision::amp_bf16;
  const auto copies = [&](model::Loop loop) {
    job.loop = loop;
    return count(events(job, planned(job).plan, Phase::forward, 1), "+64 a activation");
  };
  EXPECT_EQ(copies(model::Loop::hf_trainer), copies(model::Loop::script) + 1);
  job.precision = Precision::fp32;
  EXPECT_EQ(copies(model::Loop::hf_trainer), copies(model::Loop::script));
}

TEST(StepPlan, WhereTheFirstBatchIsTheLongestOutputsStandUntilBackwardHasRun) {
  TrainingJob job = net();
  job.loop = model::Loop::litgpt;
  job.batch_lengths = model::BatchLengths::longest_first;
  const auto plan = planned(job).plan;
  const Events backward = events(job, plan, Phase::backward, 1);
  ASSERT_GE(backward.size(), 2U);
  EXPECT_EQ(count(events(job, plan, Phase::forward, 1), "-16 c activation"), 0);
  EXPECT_EQ(backward.back(), "-16 c activation");
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
}

TEST(StepPlan, BeforeTransformers446TheFloat32LogitsAreHandedOut) {
  TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false},
     "returned": true},
    {"name": "wide", "op": "cast", "inputs": ["a"], "attrs": {"dtype": "float32"}},
    {"name": "c", "op": "tanh", "inputs": ["wide"]},
    {"name": "m", "op": "mean", "inputs": ["c"], "attrs": {"dim": 1}})",
                           2);
  job.precision = Precision::bf16;
  const auto later = planned(job).plan;
  EXPECT_EQ(count(events(job, later, Phase::forward), "-32 a activation"), 0);
  job.transformers = model::Transformers::v4_45;
  const auto older = planned(job).plan;
  EXPECT_EQ(count(events(job, older, Phase::forward), "-32 a activation"), 1) << "the name is the copy's";
  EXPECT_EQ(bytes_of(older, 2).left - bytes_of(later, 2).left, 64 - 32);
}

TEST(StepPlan, TwoReturnedViewsHoldTheirTensorUntilTheNextStepHasNewOnes) {
  const TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false}},
    {"name": "s", "op": "split", "inputs": ["a"], "attrs": {"dim": 1, "sizes": [4, 4]}},
    {"name": "k", "op": "item", "inputs": ["s"], "attrs": {"dim": 1, "start": 0, "length": 4}, "returned": true},
    {"name": "v", "op": "item", "inputs": ["s"], "attrs": {"dim": 1, "start": 4, "length": 4}, "returned": true},
    {"name": "c", "op": "mean", "inputs": ["a"], "attrs": {"dim": 1}})",
                                 2);
  const auto plan = planned(job).plan;
  EXPECT_EQ(count(events(job, plan, Phase::backward), "-64 a activation"), 0);
  EXPECT_EQ(count(events(job, plan, Phase::forward, 2), "-64 a activation"), 1) << "the first step's";
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
}

TEST(StepPlan, AnOpInPlaceMakesNothing) {
  const TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false}},
    {"name": "b", "op": "relu", "inputs": ["a"], "attrs": {"inplace": true}},
    {"name": "c", "op": "linear", "inputs": ["b"], "attrs": {"in_features": 8, "out_features": 2, "bias": false}})",
                                 2);
  const auto plan = planned(job).plan;
  EXPECT_EQ(count(events(job, plan, Phase::forward), "+64 b activation"), 0);
  EXPECT_TRUE(in_order(events(job, plan, Phase::backward),
                       {"+64 c gradient", "+64 c flow", "+64 b flow", "-64 c flow", "-64 a activation"}))
      << "the one tensor lives until relu has read it again";
}

TEST(StepPlan, AViewMakesNothingUntilItsAxesAreOutOfOrder) {
  const TrainingJob job = job_of(R"({"name": "x", "shape": ["N", 4, 4]})", R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 4, "bias": false}},
    {"name": "v", "op": "flatten", "inputs": ["a"]},
    {"name": "w", "op": "unflatten", "inputs": ["v"], "attrs": {"dim": 1, "sizes": [4, 4]}},
    {"name": "p", "op": "permute", "inputs": ["w"], "attrs": {"dims": [0, 2, 1]}},
    {"name": "f", "op": "flatten", "inputs": ["p"]},
    {"name": "c", "op": "linear", "inputs": ["f"], "attrs": {"in_features": 16, "out_features": 2, "bias": false}})",
                                 2);
  const auto plan = planned(job).plan;
  const Events forward = events(job, plan, Phase::forward);
  EXPECT_TRUE(in_order(forward, {"+128 a activation", "+128 f activation", "-128 a activation", "+16 c activation"}));
  EXPECT_EQ(count(forward, "+128 v activation") + count(forward, "+128 p activation"), 0);
}

TEST(StepPlan, GradientsEndWhereZeroGradIsCalled) {
  TrainingJob job = net();
  const auto ended_in = [&](model::ZeroGrad position, Phase phase, std::int32_t step) {
    job.zero_grad = position;
    return count(events(job, planned(job).plan, phase, step), "-128 a gradient");
  };
  EXPECT_EQ(ended_in(model::ZeroGrad::step_start, Phase::batch, 2), 1);
  EXPECT_EQ(events(job, planned(job).plan, Phase::batch, 2).back(), "+16 input") << "before the batch comes";
  EXPECT_EQ(ended_in(model::ZeroGrad::before_forward, Phase::batch, 2), 1);
  EXPECT_EQ(events(job, planned(job).plan, Phase::batch, 2).back(), "-8 c gradient") << "behind it";
  EXPECT_EQ(ended_in(model::ZeroGrad::before_backward, Phase::forward, 2), 1);
  EXPECT_EQ(ended_in(model::ZeroGrad::step_end, Phase::optimizer, 1), 1);
}

TEST(StepPlan, GradientsThatAreSetToZeroStand) {
  TrainingJob job = net();
  job.zero_grad = model::ZeroGrad::in_place;
  const auto plan = planned(job).plan;
  EXPECT_EQ(count(events(job, plan, Phase::batch, 2), "-128 a gradient"), 0);
  EXPECT_EQ(count(events(job, plan, Phase::backward, 2), "-128 a gradient"), 1) << "the new one, when it is added";
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
}

TEST(StepPlan, ASummaryPassLeavesNothing) {
  TrainingJob job = net();
  job.batch_size = 8;
  job.summary_pass = true;
  const auto plan = planned(job).plan;
  const Events summary = events(job, plan, Phase::summary, 0);
  EXPECT_TRUE(in_order(summary, {"+32 input", "+64 a activation", "+64 b activation", "-64 a activation",
                                 "+16 c activation", "-16 c activation", "-64 b activation", "-32 input"}))
      << "batch 2, saved tensors as in training, no loss";
  EXPECT_EQ(summary.size() % 2, 0U);
  EXPECT_EQ(events(job, plan, Phase::batch).front(), "+128 input");
}

TEST(StepPlan, ThePeakOfLiveBytesIsThatOfAllItsSteps) {
  TrainingJob job = net();
  job.optimizer = Optimizer::adam;
  job.samples_per_epoch = 19;
  const auto plan = planned(job).plan;
  std::int64_t peak = 0;
  for (std::int32_t step = 0; step <= plan.phases.back().step; ++step) {
    peak = std::max(peak, bytes_of(plan, step).peak);
  }
  EXPECT_EQ(plan.peak_bytes, peak);
  EXPECT_GT(peak, bytes_of(plan, 0).peak);
}

TEST(StepPlan, TheLastBatchIsSmaller) {
  TrainingJob job = net();
  job.batch_size = 8;
  job.samples_per_epoch = 19;
  std::vector<std::int64_t> batches;
  for (const PhaseMark& mark : planned(job).plan.phases) {
    if (mark.phase == Phase::forward) batches.push_back(mark.batch_size);
  }
  EXPECT_EQ(batches, std::vector<std::int64_t>({8, 8, 3, 8})) << "and a full one follows in the next epoch";
  job.samples_per_epoch = 16;
  EXPECT_EQ(planned(job).plan.phases.back().step, 2) << "every batch is full";
}

TEST(StepPlan, AValidationPassKeepsNothingForBackward) {
  TrainingJob job = net();
  job.validation_pass = true;
  const auto plan = planned(job).plan;
  const Events validation = events(job, plan, Phase::validation, 2);
  EXPECT_TRUE(in_order(validation, {"+64 a activation", "+64 b activation", "-64 a activation", "+16 c activation",
                                    "-64 b activation"}));
  EXPECT_EQ(count(validation, "+128 a gradient"), 0);
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 3).left);
}

TEST(StepPlan, PureBfloat16HalvesEverything) {
  const TrainingJob half = products(Precision::bf16);
  const TrainingJob full = products(Precision::fp32);
  EXPECT_EQ(events(half, planned(half).plan, Phase::construction, 0), Events({"+64 a parameter", "+32 c parameter"}));
  EXPECT_EQ(count(events(half, planned(half).plan, Phase::backward), "+64 a gradient"), 1);
  EXPECT_EQ(count(events(full, planned(full).plan, Phase::backward), "+128 a gradient"), 1);
}

TEST(StepPlan, AccumulatedPassesBeyondTheThirdAreAlike) {
  TrainingJob job = net();
  job.gradient_accumulation = 3;
  const auto three = planned(job).plan;
  job.gradient_accumulation = INT64_MAX;
  EXPECT_EQ(planned(job).plan.events.size(), three.events.size());
}

TEST(StepPlan, AccumulatedGradientsSetToZeroStand) {
  TrainingJob job = net();
  job.gradient_accumulation = 2;
  job.zero_grad = model::ZeroGrad::in_place;
  const auto plan = planned(job).plan;
  for (const std::size_t pass : {0U, 1U}) {
    const Events backward = events(job, plan, Phase::backward, 2, pass);
    EXPECT_EQ(count(backward, "+128 a gradient"), 1) << pass;
    EXPECT_EQ(count(backward, "-128 a gradient"), 1) << "added in place, then gone; pass " << pass;
  }
}

TEST(StepPlan, ATensorBeyondSixtyFourBitsNamesItsLayer) {
  TrainingJob job = net();
  job.batch_size = INT64_MAX / 20;
  const auto pass = testing::forward(job);
  ASSERT_TRUE(succeeds(pass));
  const auto plan = make_step_plan(job, *pass);
  ASSERT_TRUE(fails(plan, ErrorCode::overflow, 2, "does not fit 64 bits"));
  EXPECT_EQ(plan.error().place.element, "a");
}

TEST(StepPlan, UpdatesInBackwardEndEachGradientAtOnce) {
  TrainingJob job(*read_summary(GPUMEM_SOURCE_DIR "/models/graphs/gpt_like.json"), 2);
  job.sequence_length = 64;
  job.optimizer = Optimizer::adamw;
  job.fused = true;
  const auto most_of_gradients = [](const TrainingJob& asked) {
    const auto plan = testing::planned(asked).plan;
    testing::Live live(plan);
    std::int64_t most = 0;
    for (const Event& event : plan.events) {
      live.apply(event);
      most = std::max(most, live.of(Category::gradient));
    }
    EXPECT_GT(live.of(Category::optimizer), 0) << "the states are there";
    return most;
  };
  const std::int64_t usual = most_of_gradients(job);
  job.optimizer_in_backward = true;
  EXPECT_LT(most_of_gradients(job), usual * 2 / 3) << "two of a tied embedding, and their sum";
  job.gradient_accumulation = 2;
  EXPECT_TRUE(parallel::check_modelled(job, "the replay").error().message.find("accumulate") != std::string::npos);
}

}  // namespace
}  // namespace gpumem::plan
