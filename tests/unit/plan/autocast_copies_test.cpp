#include "gpumem/plan/run_state.hpp"

#include "small_plans.hpp"

namespace gpumem::plan {
namespace {

using testing::bytes_of;
using testing::count;
using testing::Events;
using testing::events;
using testing::in_order;
using testing::job_of;
using testing::kRows;
using testing::net;
using testing::planned;
using testing::products;

TEST(AutocastCopies, AutocastCopiesParametersOnceAForwardPass) {
  TrainingJob job = net();
  job.precision = Precision::amp_fp16;
  const auto plan = planned(job).plan;
  EXPECT_EQ(count(events(job, plan, Phase::forward), "+64 a activation"), 1) << "the weight";
  EXPECT_EQ(count(events(job, plan, Phase::forward), "+32 a activation"), 1) << "the output";
  EXPECT_EQ(count(events(job, plan, Phase::backward), "+128 a gradient"), 1) << "gradients are float32";
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
}

TEST(AutocastCopies, AutocastByHand) {
  const TrainingJob job = products(Precision::amp_bf16);
  const auto plan = planned(job).plan;
  EXPECT_EQ(events(job, plan, Phase::forward),
            Events({"+16 a activation",                      // x in half precision
                    "+64 a activation", "+32 a activation",  // the weight's copy, the output
                    "+32 c activation", "+8 c activation",   // and again
                    "+16 c activation",                      // mse_loss reads float32
                    "+4 c activation", "+16 c temporary", "-16 c temporary",
                    "-64 a activation"}))  // autocast ends: backward needs no copy of the first weight
      << "labels and logits stay";
  EXPECT_EQ(events(job, plan, Phase::backward),
            Events({"+4 flow", "+16 c flow", "-16 c activation",                 // mse_loss
                    "+8 c flow", "-16 c flow",                                   // cast back
                    "+32 c flow", "+32 c flow", "+64 c gradient", "-32 c flow",  // the weight's, cast to float32
                    "-8 c flow", "-32 a activation", "-32 c activation", "+64 a flow", "+128 a gradient", "-64 a flow",
                    "-32 c flow", "-16 a activation", "-4 flow"}));
}

TEST(AutocastCopies, CopiesOfFrozenParametersGoWithTheCallOrWithItsBackward) {
  TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false},
     "frozen": true},
    {"name": "b", "op": "linear", "inputs": ["a"], "attrs": {"in_features": 8, "out_features": 8, "bias": false}},
    {"name": "c", "op": "linear", "inputs": ["b"], "attrs": {"in_features": 8, "out_features": 2, "bias": false},
     "frozen": true})",
                           2);
  job.precision = Precision::amp_bf16;
  const auto plan = planned(job).plan;
  EXPECT_TRUE(
      in_order(events(job, plan, Phase::forward), {"+64 a activation", "-64 a activation", "+128 b activation"}));
  EXPECT_TRUE(in_order(events(job, plan, Phase::backward), {"+32 c flow", "-32 c activation"}));
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
}

}  // namespace
}  // namespace gpumem::plan
