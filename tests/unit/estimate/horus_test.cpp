#include "gpumem/estimate/published.hpp"

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

Result<MemoryEstimate> estimate(std::string_view summary, std::int64_t batch, std::vector<std::int64_t> input = {},
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
  const auto result = estimate(table("Linear-1 [-1, 10] 110\nReLU-2 [-1, 10] 0\nDropout-3 [-1, 10] 0\n"), 32);
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
  const auto result = estimate(table("MaxPool2d-1 [-1, 4, 2, 2] 0\nFlatten-2 [-1, 16] 0\n"
                                     "AdaptiveAvgPool2d-3 [-1, 4, 1, 1] 0\n"),
                               1, {4, 4, 4});
  ASSERT_TRUE(succeeds(result));
  EXPECT_EQ(result->breakdown.activations.count(), 16);
}

TEST(Horus, CountsTwoBytesAnElementInPureBfloat16) {
  const std::string summary = table("Linear-1 [-1, 10] 110\n");
  EXPECT_EQ(estimate(summary, 2, {}, model::Precision::bf16)->expected.count(), ((20 + 110) + 220) * 2 + kOverhead);
  EXPECT_EQ(estimate(summary, 2, {}, model::Precision::amp_bf16)->expected, estimate(summary, 2)->expected);
}

TEST(Horus, EstimatesAJobBeyondEightyGibibytes) {
  // 1 Gi parameters and 1 Gi activations at batch 32: (32 + 1 + 32) 4 GiB + 800 MiB.
  const auto result = estimate(table("Linear-1 [-1, 1073741824] 1,073,741,824\n"), 32, {1});
  ASSERT_TRUE(succeeds(result));
  EXPECT_EQ(result->expected.count(), (std::int64_t{260} << 30) + kOverhead);
  EXPECT_FALSE(result->fits);
}

TEST(Horus, AJobBeyondSixtyFourBitsIsAnErrorNeverASmallNumber) {
  const std::string summary = table("Linear-1 [-1, 1073741824] 1,073,741,824\n");
  const auto result = estimate(summary, std::int64_t{1} << 31, {1});
  ASSERT_TRUE(fails(result, ErrorCode::overflow, 0, "does not fit 64 bits"));
  EXPECT_EQ(core::exit_code(result.error().code), 4);
  EXPECT_TRUE(fails(estimate(summary, INT64_MAX, {1}), ErrorCode::overflow, 0, "does not fit 64 bits"));
  EXPECT_TRUE(
      fails(estimate(table("ReLU-1 [-1, 9223372036854775807, 9223372036854775807] 0\n"), 1, {INT64_MAX, INT64_MAX}),
            ErrorCode::overflow, 0, "does not fit 64 bits"));
}

TEST(Horus, NamesTheLayerOfAnUnknownDimension) {
  const auto result = estimate(table("Linear-1 [-1, -1, 10] 110\n"), 1, {5, 10});
  ASSERT_TRUE(fails(result, ErrorCode::missing_information, 4, "has the output shape [N, ?, 10]"));
  EXPECT_EQ(result.error().place.element, "Linear-1");
}

TEST(Horus, CountsALayerWhoseShapeIsNotPrintedOrRefusesIt) {
  // Keras prints "multiple" for a layer that is called on several inputs: its activations are not zero.
  const auto result = estimate(R"(_________________________________________________________________
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
  EXPECT_TRUE(fails(estimate(table("MaxPool2d-1 [-1, 4, 2, 2] 0\n"), 1), ErrorCode::missing_information, 4,
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

}  // namespace
}  // namespace gpumem::estimate
