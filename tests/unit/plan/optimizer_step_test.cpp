#include "gpumem/plan/optimizer_step.hpp"

#include "small_plans.hpp"

namespace gpumem::plan {
namespace {

using ops::Backend;
using testing::bytes_of;
using testing::count;
using testing::Events;
using testing::events;
using testing::in_order;
using testing::net;
using testing::Planned;
using testing::planned;
using testing::products;

TEST(OptimizerStep, OptimizersKeepTheirStateAndGiveTemporariesBack) {
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

TEST(OptimizerStep, EveryOptimizersRowIsWhatItsStepTakes) {
  struct Parameter {
    std::int64_t elements;
    std::int64_t factored;  // rows and columns of a matrix
  };
  constexpr Parameter kEach[] = {{32, 12}, {8, 0}, {16, 10}, {2, 0}};
  constexpr std::int64_t kParameters = 128 + 32 + 64 + 8;
  for (const model::OptimizerRow& row : model::kOptimizerRows) {
    if (row.projection != model::OptimizerRow::Projection::none) continue;  // their own test is below
    for (const Backend backend : {Backend::cuda, Backend::cpu}) {
      SCOPED_TRACE(std::string(row.name) + (backend == Backend::cpu ? " cpu" : " cuda"));
      TrainingJob job = net();
      job.optimizer = row.value;
      const Planned made = planned(job, backend);
      const bool at_creation = row.state_made == model::OptimizerRow::StateMade::creation;
      std::int64_t states = 0;
      for (const Parameter& each : kEach) {
        for (int kept = 0; kept < row.states; ++kept) {
          states += model::state_bytes(row, kept, each.elements, each.elements * 4, each.factored);
        }
      }
      const std::int64_t scalars = backend == Backend::cpu ? 4 * 4 * row.scalars : 0;
      EXPECT_EQ(allocated(made, Category::optimizer, at_creation ? Phase::construction : Phase::optimizer,
                          at_creation ? 0 : 1),
                states + scalars);
      EXPECT_EQ(allocated(made, Category::optimizer, Phase::optimizer, 2), 0) << "it stands since the first";
      const bool foreach = backend == Backend::cuda && row.foreach_temporaries > 0;
      EXPECT_EQ(allocated(made, Category::temporary, Phase::optimizer, 2),
                kParameters * (foreach ? row.foreach_temporaries : row.single_temporaries));
      EXPECT_EQ(bytes_of(made.plan, 2).left, bytes_of(made.plan, 1).left) << "temporaries are given back";
    }
  }
}

TEST(OptimizerStep, StatesOfProjectedGradientsHaveTheirRank) {
  TrainingJob job = net();  // a is 8 x 4 with a bias of 8, c is 2 x 8 with a bias of 2, all in float32
  const auto states = [&](Optimizer optimizer) {
    job.optimizer = optimizer;
    return allocated(planned(job), Category::optimizer, Phase::optimizer, 1);
  };
  job.optimizer_rank = 2;
  constexpr std::int64_t kBiases = 2 * (32 + 8);
  constexpr std::int64_t kProjected = 2 * (2 * 8 * 4) + 2 * (2 * 8 * 4);
  EXPECT_EQ(states(Optimizer::galore_adamw), 4 * 4 * 4 + 2 * 2 * 4 + kProjected + kBiases)
      << "a view keeps all singular vectors of the shorter side";
  EXPECT_EQ(states(Optimizer::apollo_adamw), 2 * 4 * 4 + 2 * 2 * 4 + kProjected + kBiases);
  EXPECT_EQ(states(Optimizer::galore_adafactor), 4 * 4 * 4 + 2 * 2 * 4 + 2 * (2 + 8) * 4 + 32 + 8);
  job.optimizer_targets = "c";
  EXPECT_EQ(states(Optimizer::apollo_adamw), 2 * 128 + 2 * 2 * 4 + kProjected / 2 + kBiases) << "a's are whole";
  job.optimizer_targets = "all-linear";
  job.optimizer_rank = 0;
  EXPECT_EQ(states(Optimizer::galore_adamw), 4 * 4 * 4 + 2 * 2 * 4 + 2 * (4 * 8 * 4) + 2 * (2 * 8 * 4) + kBiases)
      << "of more directions than the matrix has there are fewer";
}

TEST(OptimizerStep, GaLoreDecomposesAGradientInFloat32) {
  TrainingJob job = net();
  job.optimizer_rank = 2;
  const auto taken = [&](Optimizer optimizer) {
    job.optimizer = optimizer;
    return allocated(planned(job), Category::temporary, Phase::optimizer, 2);
  };
  // Of each matrix a copy, the longer kind of singular vectors, and the shorter.
  EXPECT_EQ(taken(Optimizer::galore_adamw) - taken(Optimizer::apollo_adamw), 2 * 128 + 64 + 2 * 64 + 16);
  job.optimizer_in_backward = true;
  EXPECT_EQ(taken(Optimizer::galore_adamw), 0) << "backward takes it";
}

TEST(OptimizerStep, AFusedStepTakesNothingAndCountsItsStepsOnTheGpu) {
  for (const model::OptimizerRow& row : model::kOptimizerRows) {
    if (!row.has_fused) continue;
    SCOPED_TRACE(row.name);
    TrainingJob job = net();
    job.optimizer = row.value;
    job.fused = true;
    const Planned made = planned(job);
    EXPECT_EQ(allocated(made, Category::temporary, Phase::optimizer, 2), 0);
    const int part = row.state_shape == model::OptimizerRow::StateShape::halves ? 2 : 1;  // two bytes of float32's four
    EXPECT_EQ(allocated(made, Category::optimizer, Phase::optimizer, 1),
              (128 + 32 + 64 + 8) * row.states / part + 4 * 4 * row.scalars);
  }
}

TEST(OptimizerStep, MegatronsOptimizerIsOneKernelUnasked) {
  TrainingJob job = net();
  job.precision = model::Precision::bf16_mixed;
  job.optimizer = Optimizer::adamw;
  const auto taken = [&] { return allocated(planned(job), Category::temporary, Phase::optimizer, 2); };
  EXPECT_GT(taken(), 0) << "torch's own works on all parameters at once";
  job.loop = model::Loop::megatron;
  EXPECT_EQ(taken(), 0);
  job.optimizer = Optimizer::adafactor;
  EXPECT_GT(taken(), 0) << "there is no such kernel";
}

// The largest weight has 32 elements: torch's own form takes three of its size, transformers' two, or four in float32.
TEST(OptimizerStep, TransformersAdafactorWorksInFloat32) {
  TrainingJob job = net();
  job.optimizer = Optimizer::adafactor;
  const auto taken = [&] { return allocated(planned(job), Category::temporary, Phase::optimizer, 2); };
  const auto own = taken();
  job.loop = model::Loop::hf_trainer;
  EXPECT_EQ(3 * taken(), 2 * own);
  job.precision = model::Precision::bf16;
  EXPECT_EQ(3 * taken(), 4 * own) << "though the weights are half as large";
}

TEST(OptimizerStep, OneByOneAnOptimizersLastTemporaryOutlivesTheNextOnesFirst) {
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

TEST(OptimizerStep, StepCountsAreOnTheCpu) {
  TrainingJob job = net();
  job.optimizer = Optimizer::adam;
  EXPECT_EQ(count(events(job, planned(job).plan, Phase::optimizer), "+4 a optimizer"), 0);
  EXPECT_EQ(count(events(job, planned(job, Backend::cpu).plan, Phase::optimizer), "+4 a optimizer"), 2)
      << "where all tensors are: one a parameter";
}

TEST(OptimizerStep, GradientsOfFloat16AreScaled) {
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

TEST(OptimizerStep, AFusedOptimizerCountsItsStepsOnTheGpu) {
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

TEST(OptimizerStep, WeightDecayCopiesTheGradients) {
  constexpr std::int64_t kParameters = 128 + 32 + 64 + 8;
  for (const model::OptimizerRow& row : model::kOptimizerRows) {
    SCOPED_TRACE(row.name);
    TrainingJob job = net();
    job.optimizer = row.value;
    const auto temporaries = [&] { return allocated(planned(job), Category::temporary, Phase::optimizer, 2); };
    for (const bool foreach : {true, false}) {
      job.foreach = foreach;
      job.weight_decay = false;
      const std::int64_t without = temporaries();
      job.weight_decay = true;
      const bool in_place_of_another = foreach && row.works_in_decayed;
      EXPECT_EQ(temporaries() - without, row.decay_copies && !in_place_of_another ? kParameters : 0);
    }
    job.fused = true;
    if (row.has_fused) {
      EXPECT_EQ(temporaries(), 0) << "the fused kernel makes no copy";
    }
  }
}

TEST(OptimizerStep, MastersAreFloat32AndStandFromTheBeginning) {
  constexpr std::int64_t kParameters = 128 + 32 + 64 + 8;  // in float32
  for (const Precision precision : {Precision::bf16_mixed, Precision::fp16_mixed}) {
    TrainingJob job = net();
    job.precision = precision;
    job.optimizer = Optimizer::adamw;
    const Planned made = planned(job);
    EXPECT_EQ(allocated(made, Category::parameter, Phase::construction, 0), kParameters / 2);
    EXPECT_EQ(allocated(made, Category::optimizer, Phase::construction, 0), kParameters);
    EXPECT_EQ(allocated(made, Category::optimizer, Phase::optimizer, 1), 2 * kParameters)
        << "states are of the masters";
    EXPECT_GE(allocated(made, Category::temporary, Phase::optimizer, 2), 2 * kParameters)
        << "gradients in float32, and foreach's temporaries";
    EXPECT_EQ(bytes_of(made.plan, 2).left, bytes_of(made.plan, 1).left);
  }
}

TEST(OptimizerStep, OnTheHostItTakesNothing) {
  TrainingJob job = net();
  job.precision = Precision::bf16_mixed;
  job.optimizer = Optimizer::adamw;
  job.offload = model::Offload::optimizer;
  const Planned made = planned(job);
  EXPECT_EQ(allocated(made, Category::optimizer, Phase::construction, 0), 0);
  EXPECT_EQ(allocated(made, Category::optimizer, Phase::optimizer, 1), 0);
  EXPECT_EQ(allocated(made, Category::temporary, Phase::optimizer, 2), 0);
}

TEST(OptimizerStep, DecayedGradientsLiveUntilTheStepReturns) {
  TrainingJob job = net();
  job.optimizer = Optimizer::sgd_momentum;
  job.weight_decay = true;
  EXPECT_TRUE(in_order(events(job, planned(job).plan, Phase::optimizer, 2),
                       {"+128 a temporary", "+32 a temporary", "+64 c temporary", "+8 c temporary", "-128 a temporary",
                        "-32 a temporary", "-64 c temporary", "-8 c temporary"}));
}

}  // namespace
}  // namespace gpumem::plan
