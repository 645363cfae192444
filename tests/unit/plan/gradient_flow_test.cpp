#include "gpumem/plan/gradient_flow.hpp"

#include "small_plans.hpp"
#include "small_transformers.hpp"

namespace gpumem::plan {
namespace {

using ops::Backend;
using testing::bytes_of;
using testing::count;
using testing::Events;
using testing::events;
using testing::in_order;
using testing::job_of;
using testing::kRows;
using testing::net;
using testing::planned;

constexpr std::string_view kResidual = R"(
  {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false}},
  {"name": "b", "op": "relu", "inputs": ["a"]},
  {"name": "s", "op": "add", "inputs": ["a", "b"]},
  {"name": "c", "op": "linear", "inputs": ["s"], "attrs": {"in_features": 8, "out_features": 2, "bias": false}})";

TEST(GradientFlow, ASumHandsItsGradientOnAndGradientsThatMeetAreAdded) {
  const TrainingJob job = job_of(kRows, kResidual, 2);
  const Events gpu = events(job, planned(job).plan, Phase::backward);
  EXPECT_EQ(count(gpu, "+64 s flow"), 0) << "a sum makes no gradient";
  EXPECT_TRUE(
      in_order(gpu, {"+64 c flow", "+64 b flow", "-64 b activation", "-64 b flow", "+128 a gradient", "-64 c flow"}))
      << "relu's gradient is added to the one that stands";
  const Events cpu = events(job, planned(job, Backend::cpu).plan, Phase::backward);
  EXPECT_TRUE(in_order(cpu, {"+64 c flow", "+64 b flow", "-64 b activation", "+64 a flow", "-64 c flow", "-64 b flow",
                             "+128 a gradient", "-64 a flow"}))
      << "out of place: old, new and sum at once";
}

TEST(GradientFlow, PartsOfASplitWaitForEachOther) {
  const TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false}},
    {"name": "s", "op": "split", "inputs": ["a"], "attrs": {"sizes": [6, 2], "dim": 1}},
    {"name": "l", "op": "item", "inputs": ["s"], "attrs": {"dim": 1, "start": 0, "length": 6}},
    {"name": "r", "op": "item", "inputs": ["s"], "attrs": {"dim": 1, "start": 6, "length": 2}},
    {"name": "m", "op": "linear", "inputs": ["l"], "attrs": {"in_features": 6, "out_features": 2, "bias": false}},
    {"name": "j", "op": "mul", "inputs": ["m", "r"]})",
                                 2);
  const auto plan = planned(job).plan;
  const Events forward = events(job, plan, Phase::forward);
  EXPECT_EQ(count(forward, "+64 s activation"), 0);
  EXPECT_EQ(count(forward, "+16 r activation"), 0) << "views";
  const Events backward = events(job, plan, Phase::backward);
  EXPECT_TRUE(in_order(backward, {"+16 j flow", "+16 j flow", "+48 m flow", "+64 s flow", "-16 j flow", "-48 m flow",
                                  "+128 a gradient", "-64 s flow"}))
      << "both parts' gradients stand until they are copied into one";
  EXPECT_EQ(count(backward, "+64 l flow") + count(backward, "+64 r flow"), 0);
}

TEST(GradientFlow, TiedParametersHaveOneGradient) {
  const TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 4, "bias": false}},
    {"name": "b", "op": "relu", "inputs": ["a"]},
    {"name": "c", "op": "linear", "inputs": ["b"], "attrs": {"in_features": 4, "out_features": 4, "bias": false},
     "parameters": 16, "tied_parameters": 16})",
                                 2);
  const auto gpu = planned(job).plan;
  EXPECT_EQ(events(job, gpu, Phase::construction, 0), Events({"+64 a parameter"}));
  for (const Backend backend : {Backend::cuda, Backend::cpu}) {
    const Events backward = events(job, planned(job, backend).plan, Phase::backward);
    EXPECT_TRUE(
        in_order(backward, {"+64 c gradient", "+64 a gradient", "+64 a gradient", "-64 c gradient", "-64 a gradient"}))
        << "their sum is a third: the gradient of a product's weight is a view, which takes no sum";
  }
}

TEST(GradientFlow, GradientsOfRowsThatWereFoldedAreViewsWhichTakeNoSum) {
  const auto backward = [](std::string_view input) {
    const TrainingJob job = job_of(input, R"(
      {"name": "e", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 4, "bias": false}},
      {"name": "a", "op": "relu", "inputs": ["e"]},
      {"name": "b", "op": "linear", "inputs": ["a"], "attrs": {"in_features": 4, "out_features": 2, "bias": false}},
      {"name": "c", "op": "linear", "inputs": ["a"], "attrs": {"in_features": 4, "out_features": 2, "bias": false}},
      {"name": "m", "op": "mul", "inputs": ["b", "c"]})",
                                   2);
    return events(job, planned(job).plan, Phase::backward);
  };
  const Events rows = backward(kRows);
  EXPECT_TRUE(in_order(rows, {"+32 c flow", "+32 b flow", "-32 b flow"})) << "of a matrix: in the first one's place";
  EXPECT_EQ(count(rows, "+32 a flow"), 1) << "relu's own";
  const Events folded = backward(R"({"name": "x", "shape": ["N", 3, 4]})");
  EXPECT_TRUE(in_order(folded, {"+96 c flow", "+96 b flow", "+96 a flow", "-96 c flow", "-96 b flow"}));
}

TEST(GradientFlow, AFurtherPassAddsToTheGradientsThatStand) {
  TrainingJob job = net();
  job.gradient_accumulation = 2;
  const auto plan = planned(job).plan;
  const Events first = events(job, plan, Phase::backward, 1, 0);
  const Events second = events(job, plan, Phase::backward, 1, 1);
  EXPECT_EQ(count(first, "-128 a gradient"), 0);
  EXPECT_EQ(count(second, "+128 a gradient"), 1);
  EXPECT_EQ(count(second, "-128 a gradient"), 1);
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(planned(net()).plan, 1).left);
}

// derivatives.yaml: logsumexp and gather, _log_softmax, unbind. Three samples: of float32 each one's difference,
// exponential and gradient, then one tensor of all, and gather's; else gather's of each, and what was kept of it goes.
TEST(GradientFlow, SamplesHaveTheirGradientsOneAfterAnother) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    TrainingJob job = testing::small_llama(1);
    job.batch_size = 3;
    job.precision = precision;
    job.objective = {model::Objective::log_probabilities, 0};
    const bool lower = precision == Precision::bf16;
    const std::int64_t each = *job.sequence_length * 1024 * (lower ? 2 : 4);
    const StepPlan plan = planned(job).plan;
    const auto made = [&](std::int64_t bytes, Category category) {
      const auto begin = plan.events.begin();
      std::ptrdiff_t all = 0;
      for (std::size_t at = 0; at < plan.phases.size(); ++at) {
        if (plan.phases[at].phase != Phase::backward || plan.phases[at].step != 1) continue;
        const auto end = at + 1 < plan.phases.size()
                             ? begin + static_cast<std::ptrdiff_t>(plan.phases[at + 1].first_event)
                             : plan.events.end();
        all += std::count_if(
            begin + static_cast<std::ptrdiff_t>(plan.phases[at].first_event), end, [&](const Event& event) {
              return event.kind == Event::Kind::allocate && event.bytes == bytes && event.category == category;
            });
      }
      return all;
    };
    EXPECT_EQ(made(each, Category::activation_gradient), 3);
    EXPECT_EQ(made(each, Category::temporary), lower ? 3 : 6);
    EXPECT_EQ(made(each, Category::activation), lower ? 3 : 0) << "what was kept, in samples";
    EXPECT_EQ(made(3 * each, Category::temporary), lower ? 0 : 1);
  }
}

TEST(GradientFlow, NoGradientFlowsIntoFrozenLayers) {
  const TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false},
     "frozen": true},
    {"name": "b", "op": "relu", "inputs": ["a"]},
    {"name": "c", "op": "linear", "inputs": ["b"], "attrs": {"in_features": 8, "out_features": 8, "bias": false}},
    {"name": "d", "op": "linear", "inputs": ["c"], "attrs": {"in_features": 8, "out_features": 8, "bias": false},
     "frozen": true},
    {"name": "e", "op": "linear", "inputs": ["d"], "attrs": {"in_features": 8, "out_features": 2, "bias": false}})",
                                 2);
  const auto plan = planned(job).plan;
  const Events backward = events(job, plan, Phase::backward);
  EXPECT_EQ(count(backward, "+128 a gradient") + count(backward, "+256 d gradient"), 0);
  EXPECT_EQ(count(backward, "+64 d flow"), 1) << "it flows through a frozen layer to one that is trained";
  EXPECT_EQ(count(backward, "+64 c flow") + count(backward, "+64 b flow"), 0) << "and no further";
  TrainingJob adam = job;
  adam.optimizer = Optimizer::adam;
  EXPECT_EQ(count(events(adam, planned(adam).plan, Phase::optimizer), "+256 d optimizer"), 0);
}

}  // namespace
}  // namespace gpumem::plan
