#include <filesystem>

#include "gpumem/connect/connect.hpp"
#include "gpumem/estimate/estimator.hpp"
#include "gpumem/estimate/published.hpp"
#include "gpumem/plan/step_plan.hpp"
#include "graphs.hpp"

namespace gpumem::estimate {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

constexpr std::int64_t kOverhead = std::int64_t{800} << 20;

std::string table(std::string_view rows) {
  return "----------------------------------------------------------------\n"
         "        Layer (type)               Output Shape         Param #\n"
         "================================================================\n" +
         std::string(rows) + "================================================================\n";
}

Result<MemoryEstimate> horus_estimate(std::string_view summary, std::int64_t batch,
                                      std::vector<std::int64_t> input = {},
                                      model::Precision precision = model::Precision::fp32) {
  auto graph = parse_summary(summary);
  if (!graph) return graph.error();
  TrainingJob job(*std::move(graph), batch);
  job.input_shape = std::move(input);
  job.precision = precision;
  return Horus().estimate(job, *find_profile("a100-80gb"));
}

TEST(Horus, IsThePublishedFormula) {
  // A = 10 + 10 (dropout is left out), P = 110: ((B A + P) + B P) 4 bytes + 800 MiB.
  const auto result = horus_estimate(table("Linear-1 [-1, 10] 110\nReLU-2 [-1, 10] 0\nDropout-3 [-1, 10] 0\n"), 32);
  ASSERT_TRUE(succeeds(result));
  EXPECT_EQ(result->expected.count(), ((32 * 20 + 110) + 32 * 110) * 4 + kOverhead);
  EXPECT_EQ(result->breakdown.context.count(), kOverhead);
  EXPECT_EQ(result->breakdown.parameters.count(), 440);
  EXPECT_EQ(result->breakdown.gradients.count(), 14080);
  EXPECT_EQ(result->breakdown.activations.count(), 2560);
  EXPECT_EQ(result->breakdown.optimizer.count(), 0) << "the published formula leaves it out";
  EXPECT_EQ(result->lower, result->expected);
  EXPECT_EQ(result->upper, result->expected);
  EXPECT_EQ(result->device, result->expected);
  EXPECT_FALSE(result->upper_coverage.has_value());
  EXPECT_FALSE(result->allocated.has_value());
  EXPECT_TRUE(result->fits);
}

TEST(Horus, LeavesOutPoolingsAndChangesOfShapeButNotAdaptivePoolings) {
  const auto result = horus_estimate(table("MaxPool2d-1 [-1, 4, 2, 2] 0\nFlatten-2 [-1, 16] 0\n"
                                           "AdaptiveAvgPool2d-3 [-1, 4, 1, 1] 0\n"),
                                     1, {4, 4, 4});
  ASSERT_TRUE(succeeds(result));
  EXPECT_EQ(result->breakdown.activations.count(), 16);
}

TEST(Horus, CountsTwoBytesAnElementInPureBfloat16) {
  const std::string summary = table("Linear-1 [-1, 10] 110\n");
  EXPECT_EQ(horus_estimate(summary, 2, {}, model::Precision::bf16)->expected.count(),
            ((20 + 110) + 220) * 2 + kOverhead);
  EXPECT_EQ(horus_estimate(summary, 2, {}, model::Precision::amp_bf16)->expected, horus_estimate(summary, 2)->expected);
}

TEST(Horus, EstimatesAJobBeyondEightyGibibytes) {
  // 1 Gi parameters and 1 Gi activations at batch 32: (32 + 1 + 32) 4 GiB + 800 MiB.
  const auto result = horus_estimate(table("Linear-1 [-1, 1073741824] 1,073,741,824\n"), 32, {1});
  ASSERT_TRUE(succeeds(result));
  EXPECT_EQ(result->expected.count(), (std::int64_t{260} << 30) + kOverhead);
  EXPECT_FALSE(result->fits);
}

TEST(Horus, AJobBeyondSixtyFourBitsIsAnErrorNeverASmallNumber) {
  const std::string summary = table("Linear-1 [-1, 1073741824] 1,073,741,824\n");
  const auto result = horus_estimate(summary, std::int64_t{1} << 31, {1});
  ASSERT_TRUE(fails(result, ErrorCode::overflow, 0, "does not fit 64 bits"));
  EXPECT_EQ(core::exit_code(result.error().code), 4);
  EXPECT_TRUE(fails(horus_estimate(summary, INT64_MAX, {1}), ErrorCode::overflow, 0, "does not fit 64 bits"));
  EXPECT_TRUE(fails(
      horus_estimate(table("ReLU-1 [-1, 9223372036854775807, 9223372036854775807] 0\n"), 1, {INT64_MAX, INT64_MAX}),
      ErrorCode::overflow, 0, "does not fit 64 bits"));
}

TEST(Horus, NamesTheLayerOfAnUnknownDimension) {
  const auto result = horus_estimate(table("Linear-1 [-1, -1, 10] 110\n"), 1, {5, 10});
  ASSERT_TRUE(fails(result, ErrorCode::missing_information, 4, "has the output shape [N, ?, 10]"));
  EXPECT_EQ(result.error().place.element, "Linear-1");
}

TEST(Horus, CountsALayerWhoseShapeIsNotPrintedOrRefusesIt) {
  // Keras prints "multiple" for a layer that is called on several inputs: its activations are not zero.
  const auto result = horus_estimate(R"(_________________________________________________________________
 Layer (type)                Output Shape              Param #   
=================================================================
 dense (Dense)               (None, 10)                110       
                                                                 
 dense_1 (Dense)             multiple                  110       
                                                                 
=================================================================
Total params: 220
)",
                                     1);
  EXPECT_TRUE(fails(result, ErrorCode::missing_information, 6, "")) << "an unknown size is not zero";
}

TEST(Horus, SeesTheNetThatTheReplaySees) {
  // Each print of ResNet-50 becomes the same graph: a module that is called three times counts three times, and a
  // block's sum, which no row shows, does not count.
  std::vector<std::int64_t> found;
  for (const char* name : {"resnet50.torchsummary", "resnet50.torchinfo", "resnet50.module_tree"}) {
    auto graph = read_summary(std::string(GPUMEM_SOURCE_DIR "/models/summaries/") + name + ".txt");
    ASSERT_TRUE(succeeds(graph));
    TrainingJob job(*std::move(graph), 32);
    job.input_shape = {3, 224, 224};
    const auto result = Horus().estimate(job, *find_profile("a100-40gb"));
    ASSERT_TRUE(succeeds(result)) << name;
    found.push_back(result->expected.count());
  }
  EXPECT_EQ(found[1], found[0]);
  EXPECT_EQ(found[2], found[0]);
}

TEST(Horus, RefusesATableWhoseInputNothingTells) {
  EXPECT_TRUE(fails(horus_estimate(table("MaxPool2d-1 [-1, 4, 2, 2] 0\n"), 1), ErrorCode::missing_information, 4,
                    "its input size is not printed"));
}

TEST(Horus, IsTheSameForEveryOptimizer) {
  auto graph = parse_summary(table("Linear-1 [-1, 10] 110\n"));
  ASSERT_TRUE(succeeds(graph));
  TrainingJob job(*std::move(graph), 4);
  const auto adam = Horus().estimate(job, *find_profile("t4-16gb"));
  job.optimizer = model::Optimizer::sgd;
  const auto sgd = Horus().estimate(job, *find_profile("t4-16gb"));
  EXPECT_EQ(adam->expected, sgd->expected);
}

struct Published {
  const char* summary;
  std::int64_t batch;
  double mib;
  double tolerance;  ///< of the figure
};

/// What GoogleTest prints after a test's name.
void PrintTo(const Published& row, std::ostream* to) { *to << row.summary << " at batch " << row.batch; }

class HorusPublished : public ::testing::TestWithParam<Published> {};

TEST_P(HorusPublished, FigureIsReproduced) {
  const Published& row = GetParam();
  auto graph = read_summary(std::string(GPUMEM_SOURCE_DIR "/models/summaries/") + row.summary);
  ASSERT_TRUE(succeeds(graph));
  const auto result = Horus().estimate(TrainingJob(*std::move(graph), row.batch), *find_profile("a100-40gb"));
  ASSERT_TRUE(succeeds(result));
  EXPECT_NEAR(result->expected.mib(), row.mib, row.mib * row.tolerance);
}

// Horus' estimates in MiB as published with CARMA's workloads.
INSTANTIATE_TEST_SUITE_P(Carma, HorusPublished,
                         ::testing::Values(Published{"resnet50.torchsummary.txt", 32, 7903.9, 1e-5},
                                           Published{"resnet50.torchsummary.txt", 128, 28923.25, 1e-5},
                                           Published{"mobilenet_v2.torchsummary.txt", 32, 3617.07, 1e-5},
                                           Published{"mobilenet_v2.torchsummary.txt", 128, 12028.16, 1e-5},
                                           Published{"vgg16.torchsummary.txt", 32, 21525.8, 2e-4}),
                         [](const auto& row) {
                           const std::string file = row.param.summary;
                           return file.substr(0, file.find('.')) + "_batch" + std::to_string(row.param.batch);
                         });

TEST(StateBytes, SumToOneFigureThatIsAllocated) {
  const auto estimate = estimate_of({100, 20, 3});
  ASSERT_TRUE(testing::succeeds(estimate));
  EXPECT_EQ(estimate->expected.count(), 123);
  EXPECT_EQ(estimate->lower, estimate->expected);
  EXPECT_EQ(estimate->upper, estimate->expected);
  EXPECT_EQ(estimate->allocated, estimate->expected);
  EXPECT_FALSE(estimate->reserved.has_value());
  EXPECT_FALSE(estimate->device.has_value());
  EXPECT_EQ(estimate->breakdown.parameters.count(), 100);
  EXPECT_EQ(estimate->breakdown.gradients.count(), 20);
  EXPECT_EQ(estimate->breakdown.optimizer.count(), 3);
  EXPECT_NE(estimate->leaves_out.find("activations"), std::string::npos);
}

TEST(StateBytes, BeyondSixtyFourBitsAreAnError) {
  EXPECT_TRUE(testing::fails(estimate_of({INT64_MAX, 1, 0}), core::ErrorCode::overflow, 0, "do not fit 64 bits"));
}

namespace fs = std::filesystem;

/// A trained matrix of 8 x 4 with its bias, a frozen one, and the first again.
constexpr std::string_view kThreeLinears = R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 4], "dtype": "float32"}],
 "nodes": [
  {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8}},
  {"name": "b", "op": "linear", "inputs": ["a"], "attrs": {"in_features": 8, "out_features": 4}, "frozen": true}
 ]}
)";

TrainingJob model_states_job_of(std::string_view summary, model::Optimizer optimizer = model::Optimizer::adam,
                                model::Precision precision = model::Precision::fp32) {
  TrainingJob job(*parse_summary(summary), 16);
  job.optimizer = optimizer;
  job.precision = precision;
  return job;
}

Result<MemoryEstimate> model_states_estimate(const TrainingJob& job, std::string_view gpu = "a100-40gb") {
  return ModelStates().estimate(job, *find_profile(std::string(gpu)));
}

std::int64_t total(model::Optimizer optimizer, model::Precision precision = model::Precision::fp32) {
  return model_states_estimate(model_states_job_of(kThreeLinears, optimizer, precision))->expected.count();
}

// Of kThreeLinears: 40 trained parameters (8 x 4 + 8) and 36 frozen ones (4 x 8 + 4).

TEST(ModelStates, OfAdamAreTheWeightsAndThreeTimesTheTrainedOnes) {
  const auto result = model_states_estimate(model_states_job_of(kThreeLinears));
  ASSERT_TRUE(succeeds(result));
  EXPECT_EQ(result->breakdown.parameters.count(), 76 * 4);
  EXPECT_EQ(result->breakdown.gradients.count(), 40 * 4);
  EXPECT_EQ(result->breakdown.optimizer.count(), 40 * 2 * 4);
  EXPECT_EQ(result->expected.count(), 304 + 160 + 320);
}

TEST(ModelStates, DependOnTheOptimizer) {
  EXPECT_EQ(total(model::Optimizer::sgd), 304 + 160);
  EXPECT_EQ(total(model::Optimizer::sgd_momentum), 304 + 160 + 160);
  EXPECT_EQ(total(model::Optimizer::adagrad), 304 + 160 + 160);
  EXPECT_EQ(total(model::Optimizer::rmsprop), 304 + 160 + 160);
  EXPECT_EQ(total(model::Optimizer::lion), 304 + 160 + 160);
  EXPECT_EQ(total(model::Optimizer::adamw), 304 + 160 + 320);
  // 8 rows and 4 columns of the matrix, 8 elements of the bias.
  EXPECT_EQ(total(model::Optimizer::adafactor), 304 + 160 + (8 + 4 + 8) * 4);
}

TEST(ModelStates, UnderAutocastTheParametersAreTheMasterWeights) {
  EXPECT_EQ(total(model::Optimizer::adam, model::Precision::amp_fp16), total(model::Optimizer::adam));
  EXPECT_EQ(total(model::Optimizer::adam, model::Precision::amp_bf16), total(model::Optimizer::adam));
}

TEST(ModelStates, InPureBfloat16TakeTwoBytesAnElement) {
  EXPECT_EQ(total(model::Optimizer::adam, model::Precision::bf16), (304 + 160 + 320) / 2);
  // What is factored stays in float32.
  EXPECT_EQ(total(model::Optimizer::adafactor, model::Precision::bf16), (304 + 160) / 2 + (8 + 4) * 4 + 8 * 2);
}

TEST(ModelStates, CountATiedTensorOnce) {
  const auto gpt = read_summary(GPUMEM_SOURCE_DIR "/models/graphs/resnet50.json");
  ASSERT_TRUE(succeeds(gpt));
  EXPECT_EQ(model_states_estimate(TrainingJob(*gpt, 1))->expected.count(), std::int64_t{16} * 25557032)
      << "as torchvision counts";
}

TEST(ModelStates, AreALowerBoundThatIsNeverKnownToFit) {
  const auto result = model_states_estimate(model_states_job_of(kThreeLinears));
  EXPECT_TRUE(result->lower_bound);
  EXPECT_FALSE(result->fits);
  EXPECT_FALSE(result->upper_coverage.has_value());
}

TEST(ModelStates, DoNotDependOnTheBatchOrOnCopiesOfTheModel) {
  TrainingJob job = model_states_job_of(kThreeLinears);
  const Bytes one = model_states_estimate(job)->expected;
  job.batch_size = 4096;
  job.layout.data_parallel = 64;
  const auto result = model_states_estimate(job);
  ASSERT_TRUE(succeeds(result));
  EXPECT_EQ(result->expected, one);
}

TEST(ModelStates, CountParametersOfUnknownLayers) {
  const auto graph = parse_summary("Net(\n  (a): Strange(8, 8), 72 params\n  (b): ReLU(), 0 params\n)\n", true);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(model_states_estimate(TrainingJob(*graph, 1))->expected.count(), 72 * 16);
}

TEST(ModelStates, BeyondSixtyFourBitsAreAnErrorNeverASmallNumber) {
  model::GraphBuilder builder("test");
  builder.infer_edges();
  builder.add({.name = "a", .op = ops::vocabulary().find_op("linear"), .parameters = INT64_MAX / 8});
  const auto result = model_states_estimate(TrainingJob(*std::move(builder).build(), 1));
  ASSERT_TRUE(fails(result, ErrorCode::overflow, 0, "do not fit 64 bits"));
}

/// What a plan of training steps holds of these three kinds when it ends, without zeroing: nothing frees them.
std::int64_t planned(const TrainingJob& job) {
  const auto connected = connect::connect(job, ops::catalogue());
  const auto pass = plan::make_forward_pass(*connected, job, ops::catalogue());
  const auto plan = plan::make_step_plan(job, *pass);
  std::vector<std::int64_t> held(plan->slots);
  for (const plan::Event& event : plan->events) {
    if (event.kind == plan::Event::Kind::call) continue;
    const bool counts = event.category == plan::Category::parameter || event.category == plan::Category::gradient ||
                        event.category == plan::Category::optimizer;
    held[event.slot] = event.kind == plan::Event::Kind::allocate && counts ? event.bytes : 0;
  }
  std::int64_t sum = 0;
  for (const std::int64_t bytes : held) sum += bytes;
  return sum;
}

TEST(ModelStates, AreWhatAPlanOfTheStepsHoldsToTheByte) {
  int graphs = 0;
  for (const auto& entry : fs::directory_iterator(GPUMEM_SOURCE_DIR "/models/graphs")) {
    if (entry.path().extension() != ".json") continue;
    ++graphs;
    TrainingJob job(*read_summary(entry.path().string()), 2);
    for (const auto& optimizer : model::kOptimizers) {
      for (const model::Precision precision :
           {model::Precision::fp32, model::Precision::amp_bf16, model::Precision::bf16}) {
        job.optimizer = optimizer.value;
        job.precision = precision;
        const auto result = model_states_estimate(job);
        ASSERT_TRUE(succeeds(result)) << entry.path();
        EXPECT_EQ(result->expected.count(), planned(job))
            << entry.path() << " " << optimizer.name << " " << model::name_of(model::kPrecisions, precision);
      }
    }
  }
  EXPECT_GE(graphs, 10);
}

/// A model of so many parameters, of which one layer holds `largest`, and no other more.
ModelGraph model_of(std::int64_t parameters, std::int64_t largest) {
  model::GraphBuilder builder("test");
  builder.infer_edges();
  const auto* linear = ops::vocabulary().find_op("linear");
  for (std::int64_t left = parameters; left > 0; left -= largest) {
    builder.add({.name = "a", .op = linear, .parameters = std::min(left, largest)});
  }
  return *std::move(builder).build();
}

TrainingJob zero_states_job_of(ModelGraph graph, std::int64_t gpus) {
  TrainingJob job(std::move(graph), 1);
  job.layout.data_parallel = gpus;
  job.precision = model::Precision::bf16;
  return job;
}

Result<MemoryEstimate> zero_states_estimate(ZeroStates::Kind kind, const TrainingJob& job) {
  return ZeroStates(kind).estimate(job, *find_profile("a100-80gb"));
}

double gib(ZeroStates::Kind kind, const TrainingJob& job) {
  return static_cast<double>(zero_states_estimate(kind, job)->expected.count()) /
         static_cast<double>(std::int64_t{1} << 30);
}

// "Memory Requirements" in DeepSpeed's documentation: t5-3b, total_params=2851e6, largest_layer_params=32e6, 8 GPUs.
TEST(ZeroStates, AreWhatDeepSpeedPrintsForT5Of3BOnEightGpus) {
  constexpr double kPrinted = 0.005;  // to two decimals
  const TrainingJob job = zero_states_job_of(model_of(2'851'000'000, 32'000'000), 8);
  EXPECT_NEAR(gib(ZeroStates::Kind::two_offload, job), 5.31, kPrinted);
  EXPECT_NEAR(gib(ZeroStates::Kind::three, job), 6.09, kPrinted);
  EXPECT_NEAR(gib(ZeroStates::Kind::three_offload, job), 0.78, kPrinted);
  EXPECT_NEAR(gib(ZeroStates::Kind::three_offload_all, job), 0.12, kPrinted);
}

// There, of t5-large on 4 GPUs (cases 1, 3 and 2), in MiB rounded down: 3291, 477, 125.
TEST(ZeroStates, AreWhatDeepSpeedPrintsForT5LargeOnFourGpus) {
  const TrainingJob job = zero_states_job_of(model_of(737'670'000, 32'900'000), 4);
  EXPECT_EQ(zero_states_estimate(ZeroStates::Kind::three, job)->expected.count() >> 20, 3291);
  EXPECT_EQ(zero_states_estimate(ZeroStates::Kind::three_offload, job)->expected.count() >> 20, 477);
  EXPECT_EQ(zero_states_estimate(ZeroStates::Kind::three_offload_all, job)->expected.count() >> 20, 125);
}

// The documentation's 15.93 GB for zero-2 is 4 P + 16 P / N; the function has been 2 P + 18 P / N since.
TEST(ZeroStates, OfStageTwoFollowTheFunctionAsItIsNow) {
  const auto result =
      zero_states_estimate(ZeroStates::Kind::two, zero_states_job_of(model_of(2'851'000'000, 32'000'000), 8));
  ASSERT_TRUE(succeeds(result));
  EXPECT_EQ(result->expected.count(), 2 * std::int64_t{2'851'000'000} + std::int64_t{6'414'750'000});
}

// Figure 1 of the paper: 7.5 B parameters on 64 GPUs take 31.4 GB with the optimizer's states shared.
TEST(ZeroStates, OfStageOneAreThePapers) {
  const TrainingJob job = zero_states_job_of(model_of(7'500'000'000, 7'500'000'000), 64);
  EXPECT_EQ(zero_states_estimate(ZeroStates::Kind::one, job)->expected.count(), 31'406'250'000);
  EXPECT_EQ(zero_states_estimate(ZeroStates::Kind::one_offload, job)->expected.count(), 30'000'000'000);
}

TEST(ZeroStates, OfOneGpuAreShareless) {
  const TrainingJob job = zero_states_job_of(model_of(1000, 600), 1);
  EXPECT_EQ(zero_states_estimate(ZeroStates::Kind::one, job)->expected.count(), 16 * 1000)
      << "the paper's 16 bytes a parameter";
  EXPECT_EQ(zero_states_estimate(ZeroStates::Kind::two, job)->expected.count(), 20 * 1000);
  EXPECT_EQ(zero_states_estimate(ZeroStates::Kind::three, job)->expected.count(), 18 * 1000 + 4 * 600);
}

TEST(ZeroStates, RoundTheSharedSumDown) {
  // 18 * 7 / 4 = 31.5: 31 bytes, of which gradients are 6 * 7 / 4 = 10.5: 10.
  const auto two = zero_states_estimate(ZeroStates::Kind::two, zero_states_job_of(model_of(7, 7), 4));
  ASSERT_TRUE(succeeds(two));
  EXPECT_EQ(two->expected.count(), 14 + 31);
  EXPECT_EQ(two->breakdown.parameters.count(), 14);
  EXPECT_EQ(two->breakdown.gradients.count(), 10);
  EXPECT_EQ(two->breakdown.optimizer.count(), 21);
  // 4 * 7 + 31: weights are 2 * 7 + 14 / 4, gradients 2 * 7 + 28 / 4.
  const auto three = zero_states_estimate(ZeroStates::Kind::three, zero_states_job_of(model_of(7, 7), 4));
  EXPECT_EQ(three->expected.count(), 28 + 31);
  EXPECT_EQ(three->breakdown.parameters.count(), 14 + 3);
  EXPECT_EQ(three->breakdown.gradients.count(), 14 + 7);
  EXPECT_EQ(three->breakdown.optimizer.count(), 21);
}

TEST(ZeroStates, TheLargestLayerIsTheModuleThatHoldsMost) {
  // Bare parameters of one container are one module's; a tied tensor is held all the same.
  const auto graph = parse_summary(R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 4], "dtype": "float32"}],
 "nodes": [
  {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false}},
  {"name": "p", "op": "parameter", "attrs": {"shape": [20]}},
  {"name": "q", "op": "parameter", "attrs": {"shape": [30]}}
 ]}
)");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(zero_states_estimate(ZeroStates::Kind::three_offload_all, zero_states_job_of(*graph, 2))->expected.count(),
            4 * 50);
}

TEST(ZeroStates, SayWhereTheJobIsUnlikeTheFormulas) {
  TrainingJob job = zero_states_job_of(model_of(10, 10), 2);
  for (const model::Precision known :
       {model::Precision::bf16, model::Precision::amp_fp16, model::Precision::amp_bf16}) {
    job.precision = known;
    EXPECT_TRUE(zero_states_estimate(ZeroStates::Kind::two, job)->out_of_domain.empty());
  }
  const Bytes known = zero_states_estimate(ZeroStates::Kind::two, job)->expected;
  job.precision = model::Precision::fp32;
  job.optimizer = model::Optimizer::sgd;
  const auto other = zero_states_estimate(ZeroStates::Kind::two, job);
  EXPECT_EQ(other->out_of_domain, (std::vector<std::string>{"precision", "optimizer"}));
  EXPECT_EQ(other->expected, known) << "the formulas know neither";
}

TEST(ZeroStates, AreALowerBound) {
  for (const EstimatorEntry& entry : estimators()) {
    if (!entry.name.starts_with("zero-")) continue;
    const auto result =
        (*entry.create({}))->estimate(zero_states_job_of(model_of(10, 10), 2), *find_profile("a100-40gb"));
    ASSERT_TRUE(succeeds(result)) << entry.name;
    EXPECT_TRUE(result->lower_bound);
    EXPECT_FALSE(result->fits);
    EXPECT_EQ(result->breakdown.total().value(), result->expected.count());
  }
}

TEST(ZeroStates, ShrinkWithEveryGpuAndEveryStage) {
  const ModelGraph graph = model_of(1'000'000, 1'000);
  const auto bytes = [&](ZeroStates::Kind kind, std::int64_t gpus) {
    return zero_states_estimate(kind, zero_states_job_of(graph, gpus))->expected.count();
  };
  using Kind = ZeroStates::Kind;
  for (const Kind kind : {Kind::one, Kind::two, Kind::three}) {
    for (std::int64_t gpus = 1; gpus < 64; gpus *= 2) EXPECT_LT(bytes(kind, 2 * gpus), bytes(kind, gpus));
  }
  EXPECT_LT(bytes(Kind::two, 8), bytes(Kind::one, 8));
  EXPECT_LT(bytes(Kind::three, 8), bytes(Kind::two, 8));
  EXPECT_LT(bytes(Kind::one_offload, 8), bytes(Kind::one, 8));
  EXPECT_LT(bytes(Kind::two_offload, 8), bytes(Kind::two, 8));
  EXPECT_LT(bytes(Kind::three_offload, 8), bytes(Kind::three, 8));
  EXPECT_LT(bytes(Kind::three_offload_all, 8), bytes(Kind::three_offload, 8));
}

TEST(ZeroStates, BeyondSixtyFourBitsAreAnErrorNeverASmallNumber) {
  constexpr std::int64_t kHalf = INT64_MAX / 2 + 1;
  const TrainingJob job = zero_states_job_of(model_of(kHalf, kHalf), 1024);
  for (const EstimatorEntry& entry : estimators()) {
    if (!entry.name.starts_with("zero-")) continue;
    const auto result = (*entry.create({}))->estimate(job, *find_profile("a100-40gb"));
    EXPECT_TRUE(fails(result, ErrorCode::overflow, 0, "do not fit 64 bits")) << entry.name;
  }
}

}  // namespace
}  // namespace gpumem::estimate
