#include "gpumem/connect/connect.hpp"

#include "graphs.hpp"

namespace gpumem::connect {
namespace {

using core::ErrorCode;
using testing::succeeds;

MemoryEstimate replayed(const std::string& file, std::vector<std::int64_t> input) {
  auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/" + file);
  EXPECT_TRUE(succeeds(graph)) << file;
  TrainingJob job(*std::move(graph), 32);
  job.input_shape = std::move(input);
  const auto estimate = (*make_estimator("replay"))->estimate(job, *find_profile("a100-40gb"));
  EXPECT_TRUE(succeeds(estimate)) << file;
  return estimate ? *estimate : MemoryEstimate{};
}

// Its table was printed in evaluation, where the second classifier is not called.
TEST(Connect, ATableGivesTheEstimateOfItsModelsGraph) {
  const auto table = replayed("summaries/inception_v3.torchinfo.txt", {3, 299, 299});
  const auto graph = replayed("graphs/inception_v3.json", {3, 299, 299});
  const double ratio = static_cast<double>(table.expected.count()) / static_cast<double>(graph.expected.count());
  EXPECT_NEAR(ratio, 1.0, 0.01);
  EXPECT_EQ(table.coverage.edges, "chained, 15 joins inferred");
  EXPECT_EQ(graph.coverage.edges, "given");
}

TEST(Connect, FindsTheInputInTheFirstLayerAndTheFoot) {
  const auto told = replayed("summaries/resnet50.torchsummary.txt", {});
  EXPECT_EQ(told.coverage.edges, "chained, 16 joins inferred, input 3x224x224 inferred");
  EXPECT_EQ(told.expected, replayed("summaries/resnet50.torchsummary.txt", {3, 224, 224}).expected);
  EXPECT_EQ(replayed("summaries/resnet50.torchinfo.txt", {}).expected, told.expected);
}

core::Result<WiredGraph> connected(std::string_view summary, std::vector<std::int64_t> input, bool strict = false) {
  auto graph = parse_summary(summary);
  if (!graph) return graph.error();
  TrainingJob job(*std::move(graph), 2);
  job.input_shape = std::move(input);
  job.strict = strict;
  return connect(job, ops::catalogue());
}

constexpr std::string_view kTable = R"(----------------------------------------------------------------
        Layer (type)               Output Shape         Param #
================================================================
            Conv2d-1            [-1, 8, 16, 16]             216
            Conv2d-2            [-1, 4, 16, 16]              71
================================================================
Total params: 287
)";

TEST(Connect, AConvolutionThatContradictsItsPredecessorIsAGuessThatSaysSo) {
  const auto guessed = connected(kTable, {3, 16, 16});
  ASSERT_TRUE(succeeds(guessed));
  EXPECT_EQ(guessed->guesses().edges, 1);
  ASSERT_EQ(guessed->graph().warnings().size(), 1U);
  EXPECT_EQ(guessed->graph().warnings()[0].place.line, 5);
  EXPECT_EQ(guessed->graph().parameters(), 287);
  EXPECT_NE(guessed->edges().find("1 layer's input guessed"), std::string::npos);
}

TEST(Connect, StrictlyAConvolutionThatContradictsItsPredecessorIsAnError) {
  const auto refused = connected(kTable, {3, 32, 32}, true);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::missing_information);
  EXPECT_EQ(refused.error().place.element, "Conv2d-2");
}

TEST(Connect, AnExplicitGraphIsLeftAsItIs) {
  auto graph = std::make_shared<const ModelGraph>(*parse_summary(testing::kSmallGraph));
  const auto same = connect(TrainingJob(graph, 2), ops::catalogue());
  ASSERT_TRUE(succeeds(same));
  EXPECT_EQ(same->shared_graph(), graph);
  EXPECT_EQ(same->edges(), "given");
}

TEST(Connect, StrictlyATreeWhoseBlockIsNotKnownIsAnError) {
  const auto refused = connected(R"(Net(
  (block): Unheard(
    (a): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
    (b): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  )
)
)",
                                 {3, 8, 8}, true);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().place.element, "block.b");
}

TEST(Connect, MarksOfContainersAreKept) {
  const auto graph = read_summary(GPUMEM_SOURCE_DIR "/models/summaries/resnet50.torchsummary.txt");
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(graph->block_marks().size(), 16U);
  const model::BlockMark& first = graph->block_marks().front();
  EXPECT_EQ(graph->class_name(first), "Bottleneck");
  EXPECT_EQ(graph->name(graph->layers()[first.layers - 1]), "ReLU-15");
  EXPECT_EQ(core::to_string(first.output), "[N, 256, 56, 56]");
}

}  // namespace
}  // namespace gpumem::connect
