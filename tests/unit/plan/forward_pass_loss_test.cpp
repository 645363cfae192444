#include "gpumem/plan/forward_pass.hpp"

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
using testing::job_of;
using testing::planned;
using testing::succeeds;

constexpr std::string_view kTokens = R"({"name": "x", "shape": ["N", 5, 4]}, )"
                                     R"({"name": "labels", "shape": ["N", 4], "dtype": "int64"})";

/// A head of 4 features and 6 words on the output of "body", batch 2, five tokens; as ForCausalLMLoss computes its
/// loss: all logits take 240 B, those of four tokens 192 B, the head's weight 96 B.
std::string language(std::string_view between = "", std::string_view logits = "head") {
  return R"({"name": "body", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 4, "bias": false}},
    {"name": "head", "op": "linear", "inputs": ["body"], "returned": true,
     "attrs": {"in_features": 4, "out_features": 6, "bias": false}},)" +
         std::string(between) + R"({"name": "all", "op": "slice", "inputs": [")" + std::string(logits) +
         R"("], "attrs": {"dim": 1, "start": 0, "length": 4}},
    {"name": "shifted", "op": "contiguous", "inputs": ["all"]},
    {"name": "rows", "op": "flatten", "inputs": ["shifted"], "attrs": {"start_dim": 0, "end_dim": 1}},
    {"name": "loss", "op": "cross_entropy", "inputs": ["rows", "labels"], "attrs": {"keeps_type": true}})";
}

TrainingJob job_with(model::LossForm form) {
  TrainingJob job = job_of(kTokens, language(), 2);
  job.loss_form = form;
  return job;
}

TEST(LanguageLoss, FindsTheHeadAndWhatStandsBeforeItsLoss) {
  const TrainingJob job = job_with({});
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(succeeds(wired));
  const auto found = find_head_and_loss(*wired);
  ASSERT_TRUE(succeeds(found));
  EXPECT_EQ(found->head, 1);
  EXPECT_EQ(found->loss, 5);
  EXPECT_EQ(found->replaced, (std::vector<bool>{false, true, true, true, true, false}));
}

TEST(LanguageLoss, ScalingAndASoftCapStandBetweenThemAndAnActivationDoesNot) {
  const auto found_of = [](std::string_view op, std::string_view before = {}) {
    const auto node = [](std::string_view name, std::string_view of, std::string_view input) {
      return R"({"name": ")" + std::string(name) + R"(", "op": ")" + std::string(of) + R"(", "inputs": [")" +
             std::string(input) + R"("]},)";
    };
    std::string nodes = before.empty() ? "" : node("before", before, "head");
    nodes += node("changed", op, before.empty() ? "head" : "before");
    const auto wired = connect::connect(job_of(kTokens, language(nodes, "changed"), 2), ops::catalogue());
    EXPECT_TRUE(succeeds(wired));
    return find_head_and_loss(*wired);
  };
  EXPECT_TRUE(succeeds(found_of("mul")));
  EXPECT_TRUE(succeeds(found_of("tanh", "mul")));
  EXPECT_TRUE(
      fails(found_of("tanh"), ErrorCode::missing_information, 6, "no linear layer with logits that go straight"));
}

TEST(LanguageLoss, AModelWithoutALossOfItsOwnIsRefused) {
  TrainingJob job = testing::net();
  job.loss_form = {model::LossForms::fused, 0};
  EXPECT_TRUE(fails(forward(job), ErrorCode::missing_information, 2, "give its config.json, or `loss=standard`"));
}

TEST(LanguageLoss, FusedWithTheHeadItMakesItsGradientsInForward) {
  const TrainingJob job = job_with({model::LossForms::fused, 0});
  const auto plan = planned(job).plan;
  const Events forward = events(job, plan, Phase::forward);
  EXPECT_EQ(count(forward, "+240 head activation"), 0) << "logits are never whole";
  EXPECT_EQ(count(forward, "+192 loss activation"), 0);
  EXPECT_EQ(count(forward, "+128 loss activation"), 2) << "the hidden states with a label, and their gradient";
  EXPECT_EQ(count(forward, "+96 loss activation"), 1) << "the weight's gradient";
  EXPECT_EQ(count(forward, "+96 loss temporary"), 2)
      << "logits of every second row (six words, four features), and those of the chunk before";
  const Events backward = events(job, plan, Phase::backward);
  EXPECT_EQ(count(backward, "+96 loss gradient") + count(backward, "+96 head gradient"), 0)
      << "it is the one of forward";
}

TEST(LanguageLoss, UnslothsChunksHaveLogitsAndTheirGradientInTheTypeOfTheProduct) {
  TrainingJob job = job_with({model::LossForms::fused_target, 1});
  const auto plan = planned(job).plan;
  const Events forward = events(job, plan, Phase::forward);
  EXPECT_EQ(count(forward, "+240 loss temporary"), 2) << "all tokens are one chunk, with the last one";
  EXPECT_EQ(count(forward, "+160 loss activation"), 1) << "the gradient of all hidden states, which are not copied";
  EXPECT_EQ(count(forward, "+96 loss activation") + count(forward, "+96 loss temporary"), 2)
      << "the weight's gradient, and that of a chunk";
  job.precision = Precision::amp_bf16;
  const Events under_autocast = events(job, planned(job).plan, Phase::forward);
  EXPECT_EQ(count(under_autocast, "+120 loss temporary"), 2);
  EXPECT_EQ(count(under_autocast, "+48 loss temporary"), 1) << "the weight, cast";
  const auto chunked = [](std::int64_t batch) {
    TrainingJob large = job_with({model::LossForms::fused_target, 1});
    large.batch_size = batch;
    return events(large, planned(large).plan, Phase::forward);
  };
  EXPECT_EQ(count(chunked(8738), "+1048560 loss temporary"), 2) << "120 B a sample: just below a MiB";
  EXPECT_EQ(count(chunked(8740), "+262200 loss temporary"), 2) << "four chunks";
}

TEST(LanguageLoss, AFusedCrossEntropyWritesItsGradientOverTheLogits) {
  const TrainingJob job = job_with({model::LossForms::fused_ce, 0});
  const auto plan = planned(job).plan;
  const Events forward = events(job, plan, Phase::forward);
  EXPECT_EQ(count(forward, "+240 head activation"), 1);
  EXPECT_EQ(count(forward, "+192 shifted activation"), 1);
  EXPECT_EQ(count(forward, "+192 loss activation"), 0) << "no log_softmax";
  EXPECT_EQ(count(forward, "+32 loss activation"), 2) << "a loss and a log-sum a row";
  EXPECT_EQ(count(events(job, plan, Phase::backward), "+192 loss flow"), 0);
}

/// The golden: of two ranks' shared vocabulary, in bytes of the rank's logits in float32.
TEST(LanguageLoss, OfASharedVocabularyHoldsWhatPyTorchWasSeenToHold) {
  constexpr std::string_view kNodes = R"(
    {"name": "head", "op": "linear", "inputs": ["rows"], "attrs": {"in_features": 4, "out_features": 4096, "bias": false}},
    {"name": "loss", "op": "cross_entropy", "inputs": ["head", "labels"],
     "attrs": {"keeps_type": true, "loss_parallel": true}})";
  TrainingJob job = job_of(
      R"({"name": "rows", "shape": ["N", 4]}, {"name": "labels", "shape": ["N"], "dtype": "int64"})", kNodes, 128);
  job.precision = Precision::bf16;
  const auto plan = planned(job).plan;
  constexpr std::int64_t kWide = 128 * 4096 * 4;
  const auto most_beyond_one = [&](Phase phase) {
    testing::Live live(plan);
    std::int64_t most = 0;
    for (std::size_t at = 0; at < plan.events.size(); ++at) {
      live.apply(plan.events[at]);
      if (plan.phase_of(at).phase == phase && plan.phase_of(at).step == 2) most = std::max(most, live.total());
    }
    return most / kWide;
  };
  // tests/golden/loss_parallel/golden.json: 3.0 in forward beside the logits, 4.0 in backward.
  EXPECT_EQ(most_beyond_one(Phase::forward), 3);
  EXPECT_EQ(most_beyond_one(Phase::backward), 4);
}

TEST(LanguageLoss, ACompiledOneMakesNothingOfTheLogitsSizeButTheirGradient) {
  TrainingJob job = job_of(kTokens,
                           language(R"({"name": "float", "op": "cast", "inputs": ["head"],
    "attrs": {"dtype": "float32"}},)",
                                    "float"),
                           2);
  job.loss_form = {model::LossForms::compiled, 0};
  job.precision = Precision::bf16;
  const auto plan = planned(job).plan;
  const Events forward = events(job, plan, Phase::forward);
  EXPECT_EQ(count(forward, "+120 head activation"), 1) << "in two bytes";
  EXPECT_EQ(count(forward, "+240 float activation"), 0) << "the cast is fused";
  EXPECT_EQ(count(forward, "+192 shifted activation") + count(forward, "+96 shifted activation"), 0);
  EXPECT_EQ(count(forward, "+192 loss activation"), 0) << "no log_softmax";
  EXPECT_EQ(count(forward, "+32 loss activation"), 2) << "a maximum and a log-sum a row";
  const Events backward = events(job, plan, Phase::backward);
  EXPECT_EQ(count(backward, "+120 loss flow"), 1) << "beside the logits, which are not written to";
  EXPECT_EQ(count(backward, "+240 loss flow") + count(backward, "+240 float flow"), 0);
}

TEST(LanguageLoss, ACompiledOneStandsBehindAModelWithoutOne) {
  TrainingJob job = testing::net();
  job.loss_form = {model::LossForms::compiled, 0};
  job.loss = model::Loss::cross_entropy;
  EXPECT_TRUE(succeeds(forward(job))) << "the loop compiles it by itself";
}

TEST(LanguageLoss, InChunksTheHeadRunsOnSomePositionsAtATime) {
  const TrainingJob job = job_with({model::LossForms::chunked, 2});
  const auto plan = planned(job).plan;
  const Events forward = events(job, plan, Phase::forward);
  EXPECT_EQ(count(forward, "+96 loss activation"), 4) << "of two chunks of two positions logits and their log_softmax";
  EXPECT_EQ(count(forward, "+48 loss activation"), 2) << "of the last position";
  EXPECT_EQ(count(forward, "+240 head activation"), 0);
  EXPECT_EQ(count(events(job, plan, Phase::backward), "+96 head gradient"), 4)
      << "the weight's of each of three chunks, and the sum of the first two, which are views";
  EXPECT_EQ(bytes_of(plan, 2).left, bytes_of(plan, 1).left);
}

TEST(LanguageLoss, LitgptsLogitsAreInFloat32BeforeTheirLossBegins) {
  TrainingJob job = job_with({model::LossForms::chunked, 5});
  job.precision = Precision::bf16;
  job.loop = model::Loop::litgpt;
  const Events forward = events(job, planned(job).plan, Phase::forward);
  EXPECT_EQ(count(forward, "+120 loss activation"), 1) << "the head's";
  EXPECT_EQ(count(forward, "+240 loss activation"), 2) << "Fabric's copy, and log_softmax of it";
}

TEST(LanguageLoss, TorchtuneComputesTheLossOfChunksInFloat32) {
  TrainingJob job = job_with({model::LossForms::chunked, 5});
  job.precision = Precision::bf16;
  EXPECT_EQ(count(events(job, planned(job).plan, Phase::forward), "+240 loss activation"), 0);
  job.loop = model::Loop::torchtune;
  EXPECT_EQ(count(events(job, planned(job).plan, Phase::forward), "+240 loss activation"), 2) << "a copy, log_softmax";
}

TEST(LanguageLoss, WhatEveryFormLeavesIsTheSame) {
  for (const model::LossForms form :
       {model::LossForms::standard, model::LossForms::chunked, model::LossForms::fused, model::LossForms::fused_ce,
        model::LossForms::compiled, model::LossForms::fused_target, model::LossForms::fused_free}) {
    const bool counts = form == model::LossForms::chunked || form == model::LossForms::fused_target;
    TrainingJob job = job_with({form, counts ? 2 : 0});
    job.loop = model::Loop::hf_trainer;
    job.zero_grad = model::ZeroGrad::step_end;
    const auto plan = planned(job).plan;
    const std::int64_t inputs = 2 * 5 * 4 * 4 + 2 * 4 * 8;
    EXPECT_EQ(bytes_of(plan, 2).left, 64 + 96 + inputs + 4) << "weights, the batch and the loss";
  }
}

}  // namespace
}  // namespace gpumem::plan
