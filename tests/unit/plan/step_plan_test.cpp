#include "gpumem/plan/step_plan.hpp"

#include <algorithm>

#include "plans.hpp"

namespace gpumem::plan {
namespace {

using core::ErrorCode;
using ops::Backend;
using testing::bytes_of;
using testing::events;
using testing::fails;
using testing::job_of;
using testing::planned;
using testing::Planned;
using testing::succeeds;

using Events = std::vector<std::string>;

constexpr std::string_view kRows = R"({"name": "x", "shape": ["N", 4]})";

/// Batch 2: x takes 32 B, a and b 64 B, c 16 B, the labels 16 B.
constexpr std::string_view kNet = R"(
  {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": true}},
  {"name": "b", "op": "relu", "inputs": ["a"]},
  {"name": "c", "op": "linear", "inputs": ["b"], "attrs": {"in_features": 8, "out_features": 2, "bias": true}})";

TrainingJob net() { return job_of(kRows, kNet, 2); }

/// How often an event comes in a phase.
std::ptrdiff_t count(const Events& all, std::string_view event) { return std::count(all.begin(), all.end(), event); }

/// Whether these come in this order, with others between them.
::testing::AssertionResult in_order(const Events& all, const Events& wanted) {
  auto from = all.begin();
  for (const std::string& event : wanted) {
    from = std::find(from, all.end(), event);
    if (from == all.end()) return ::testing::AssertionFailure() << event << " is missing, or comes too early";
    ++from;
  }
  return ::testing::AssertionSuccess();
}

TEST(StepPlan, RunsANetAsPyTorchDoes) {
  const TrainingJob job = net();
  const auto [recording, plan] = planned(job);
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
                       {"+64 c flow", "+64 c gradient", "+64 b flow", "-64 c flow", "-64 a activation"}))
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

constexpr std::string_view kResidual = R"(
  {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false}},
  {"name": "b", "op": "relu", "inputs": ["a"]},
  {"name": "s", "op": "add", "inputs": ["a", "b"]},
  {"name": "c", "op": "linear", "inputs": ["s"], "attrs": {"in_features": 8, "out_features": 2, "bias": false}})";

TEST(StepPlan, ASumHandsItsGradientOnAndGradientsThatMeetAreAdded) {
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

TEST(StepPlan, PartsOfASplitWaitForEachOther) {
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

TEST(StepPlan, TiedParametersHaveOneGradient) {
  const TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 4, "bias": false}},
    {"name": "b", "op": "relu", "inputs": ["a"]},
    {"name": "c", "op": "linear", "inputs": ["b"], "attrs": {"in_features": 4, "out_features": 4, "bias": false},
     "parameters": 16, "tied_parameters": 16})",
                                 2);
  const auto gpu = planned(job).plan;
  EXPECT_EQ(events(job, gpu, Phase::construction, 0), Events({"+64 a parameter"}));
  EXPECT_TRUE(in_order(events(job, gpu, Phase::backward), {"+64 c gradient", "+64 a gradient", "-64 a gradient"}))
      << "the second is added to the first";
  const Events cpu = events(job, planned(job, Backend::cpu).plan, Phase::backward);
  EXPECT_TRUE(in_order(cpu, {"+64 c gradient", "+64 a gradient", "+64 a gradient", "-64 c gradient", "-64 a gradient"}))
      << "their sum is a third";
}

TEST(StepPlan, AFurtherPassAddsToTheGradientsThatStand) {
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
  job.zero_grad_to_none = false;
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

TEST(StepPlan, NoGradientFlowsIntoFrozenLayers) {
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

TEST(StepPlan, OptimizersKeepTheirStateAndGiveTemporariesBack) {
  TrainingJob job = net();
  const auto in = [&](Optimizer optimizer, std::int32_t step, Backend backend = Backend::cuda) {
    job.optimizer = optimizer;
    return events(job, planned(job, backend).plan, Phase::optimizer, step);
  };
  EXPECT_EQ(count(in(Optimizer::sgd, 1), "+128 a temporary"), 0);
  EXPECT_EQ(count(in(Optimizer::sgd_momentum, 1), "+128 a optimizer"), 1);
  EXPECT_EQ(count(in(Optimizer::sgd_momentum, 2), "+128 a optimizer"), 0);
  EXPECT_EQ(count(in(Optimizer::adam, 1), "+128 a optimizer"), 2);
  EXPECT_TRUE(in_order(in(Optimizer::adam, 2), {"+128 a temporary", "+32 a temporary", "+64 c temporary",
                                                "+8 c temporary", "-128 a temporary", "-32 a temporary"}))
      << "foreach: all parameters at once";
  EXPECT_EQ(count(in(Optimizer::adagrad, 1), "+128 a optimizer"), 0);
  EXPECT_EQ(count(events(job, planned(job).plan, Phase::construction, 0), "+128 a optimizer"), 1)
      << "Adagrad's state is made with it";
}

/// The bytes of a category that a step's optimizer phase allocates.
std::int64_t allocated(const Planned& made, Category category, Phase phase, std::int32_t step) {
  std::int64_t bytes = 0;
  for (std::size_t index = 0; index < made.plan.events.size(); ++index) {
    const Event& event = made.plan.events[index];
    const PhaseMark& mark = made.plan.phase_of(index);
    const bool counts = event.kind == Event::Kind::allocate && event.category == category;
    if (counts && mark.phase == phase && mark.step == step) bytes += event.bytes;
  }
  return bytes;
}

TEST(StepPlan, EveryOptimizersRowIsWhatItsStepTakes) {
  constexpr std::int64_t kParameters = 128 + 32 + 64 + 8;                 // of four tensors
  constexpr std::int64_t kFactored = (4 + 8) * 4 + 32 + (8 + 2) * 4 + 8;  // rows and columns of two matrices
  for (const model::OptimizerRow& row : model::kOptimizerRows) {
    for (const Backend backend : {Backend::cuda, Backend::cpu}) {
      SCOPED_TRACE(std::string(row.name) + (backend == Backend::cpu ? " cpu" : " cuda"));
      TrainingJob job = net();
      job.optimizer = row.value;
      const Planned made = planned(job, backend);
      const bool at_creation = row.state_made == model::OptimizerRow::StateMade::creation;
      const bool factored = row.state_shape == model::OptimizerRow::StateShape::factored;
      const std::int64_t scalars = backend == Backend::cpu ? 4 * 4 * row.scalars : 0;
      EXPECT_EQ(allocated(made, Category::optimizer, at_creation ? Phase::construction : Phase::optimizer,
                          at_creation ? 0 : 1),
                row.states * (factored ? kFactored : kParameters) + scalars);
      EXPECT_EQ(allocated(made, Category::optimizer, Phase::optimizer, 2), 0) << "it stands since the first";
      const bool foreach = backend == Backend::cuda && row.foreach_temporaries > 0;
      EXPECT_EQ(allocated(made, Category::temporary, Phase::optimizer, 2),
                kParameters * (foreach ? row.foreach_temporaries : row.single_temporaries));
      EXPECT_EQ(bytes_of(made.plan, 2).left, bytes_of(made.plan, 1).left) << "temporaries are given back";
    }
  }
}

TEST(StepPlan, AFusedStepTakesNothingAndCountsItsStepsOnTheGpu) {
  for (const model::OptimizerRow& row : model::kOptimizerRows) {
    if (!row.has_fused) continue;
    SCOPED_TRACE(row.name);
    TrainingJob job = net();
    job.optimizer = row.value;
    job.fused = true;
    const Planned made = planned(job);
    EXPECT_EQ(allocated(made, Category::temporary, Phase::optimizer, 2), 0);
    EXPECT_EQ(allocated(made, Category::optimizer, Phase::optimizer, 1),
              (128 + 32 + 64 + 8) * row.states + 4 * 4 * row.scalars);
  }
}

TEST(StepPlan, OneByOneAnOptimizersLastTemporaryOutlivesTheNextOnesFirst) {
  TrainingJob job = net();
  job.optimizer = Optimizer::adam;
  const Events one_by_one = {"+128 a temporary", "+128 a temporary", "-128 a temporary",  // a's weight
                             "+32 a temporary",  "+32 a temporary",  "-128 a temporary", "-32 a temporary",
                             "+64 c temporary",  "+64 c temporary",  "-32 a temporary",  "-64 c temporary",
                             "+8 c temporary",   "+8 c temporary",   "-64 c temporary",  "-8 c temporary",
                             "-8 c temporary"};
  job.foreach = false;
  const auto optimizer_phase = [&](Backend backend) {
    Events all = events(job, planned(job, backend).plan, Phase::optimizer, 2);
    std::erase_if(all, [](const std::string& event) { return event.ends_with("input"); });
    return all;
  };
  EXPECT_EQ(optimizer_phase(Backend::cuda), one_by_one);
  job.foreach = true;
  EXPECT_EQ(optimizer_phase(Backend::cpu), one_by_one) << "foreach is for GPUs";
  job.fused = true;
  EXPECT_EQ(optimizer_phase(Backend::cuda), Events());
}

TEST(StepPlan, StepCountsAreOnTheCpu) {
  TrainingJob job = net();
  job.optimizer = Optimizer::adam;
  EXPECT_EQ(count(events(job, planned(job).plan, Phase::optimizer), "+4 a optimizer"), 0);
  EXPECT_EQ(count(events(job, planned(job, Backend::cpu).plan, Phase::optimizer), "+4 a optimizer"), 2)
      << "where all tensors are: one a parameter";
}

TEST(StepPlan, AutocastCopiesParametersOnceAForwardPass) {
  TrainingJob job = net();
  job.precision = Precision::amp_fp16;
  const auto plan = planned(job).plan;
  EXPECT_EQ(count(events(job, plan, Phase::forward), "+64 a activation"), 1) << "the weight";
  EXPECT_EQ(count(events(job, plan, Phase::forward), "+32 a activation"), 1) << "the output";
  EXPECT_EQ(count(events(job, plan, Phase::backward), "+128 a gradient"), 1) << "gradients are float32";
  EXPECT_EQ(bytes_of(plan, 1).left, bytes_of(plan, 2).left);
}

/// Two linear layers without biases, batch 2: x 32 B, weights 128 B and 64 B, and the mean of squares.
TrainingJob products(Precision precision) {
  TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false}},
    {"name": "c", "op": "linear", "inputs": ["a"], "attrs": {"in_features": 8, "out_features": 2, "bias": false}})",
                           2);
  job.loss = model::Loss::mse;
  job.precision = precision;
  return job;
}

TEST(StepPlan, AutocastByHand) {
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

TEST(StepPlan, PureBfloat16HalvesEverything) {
  const TrainingJob half = products(Precision::bf16);
  const TrainingJob full = products(Precision::fp32);
  EXPECT_EQ(events(half, planned(half).plan, Phase::construction, 0), Events({"+64 a parameter", "+32 c parameter"}));
  EXPECT_EQ(count(events(half, planned(half).plan, Phase::backward), "+64 a gradient"), 1);
  EXPECT_EQ(count(events(full, planned(full).plan, Phase::backward), "+128 a gradient"), 1);
}

TEST(StepPlan, GradientsOfFloat16AreScaled) {
  const TrainingJob job = products(Precision::amp_fp16);
  const auto plan = planned(job).plan;
  const Events backward = events(job, plan, Phase::backward);
  EXPECT_EQ(Events(backward.begin(), backward.begin() + 5),
            Events({"+4 optimizer", "+4 optimizer", "+4 activation", "+4 flow", "+4 flow"}))
      << "scale, growth tracker, scaled loss, ones, the loss's gradient";
  EXPECT_EQ(count(events(job, plan, Phase::backward, 2), "+4 optimizer"), 0) << "they stay";
  EXPECT_EQ(events(job, plan, Phase::optimizer, 2),
            Events({"+8 temporary", "+8 temporary", "-8 temporary", "+4 temporary", "-8 temporary", "+4 temporary",
                    "-4 temporary", "-4 temporary"}))
      << "the inverse of the scale by way of float64, found_inf";
  const TrainingJob bfloat = products(Precision::amp_bf16);
  EXPECT_EQ(count(events(bfloat, planned(bfloat).plan, Phase::backward), "+4 optimizer"), 0);
}

TEST(StepPlan, CopiesOfFrozenParametersGoWithTheCallOrWithItsBackward) {
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

TEST(StepPlan, AFusedOptimizerCountsItsStepsOnTheGpu) {
  TrainingJob job = net();
  job.optimizer = Optimizer::adam;
  job.fused = true;
  const auto plan = planned(job).plan;
  EXPECT_EQ(events(job, plan, Phase::optimizer),
            Events({"+4 a optimizer", "+128 a optimizer", "+128 a optimizer", "+4 a optimizer", "+32 a optimizer",
                    "+32 a optimizer", "+4 c optimizer", "+64 c optimizer", "+64 c optimizer", "+4 c optimizer",
                    "+8 c optimizer", "+8 c optimizer"}));
  EXPECT_EQ(events(job, plan, Phase::optimizer, 2), Events());
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
  job.zero_grad_to_none = false;
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
  const auto recording = testing::recorded(job);
  ASSERT_TRUE(succeeds(recording));
  const auto plan = make_step_plan(job, *recording);
  ASSERT_TRUE(fails(plan, ErrorCode::overflow, 2, "does not fit 64 bits"));
  EXPECT_EQ(plan.error().place.element, "a");
}

}  // namespace
}  // namespace gpumem::plan
