#include "gpumem/connect/infer_shapes.hpp"
#include "block_trees.hpp"
#include "gpumem/connect/connect.hpp"
#include "graphs.hpp"

namespace gpumem::connect {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::ops_of;
using testing::parameters_of;
using testing::succeeds;

core::Result<WiredGraph> infer(const TrainingJob& job) {
  if (job.graph == nullptr) return core::Error{ErrorCode::invalid_argument, "the summary could not be read", {}};
  return connect(job, ops::catalogue());
}

/// The same where guesses are not wanted.
core::Result<WiredGraph> infer_strictly(TrainingJob job) {
  job.strict = true;
  return infer(job);
}

/// The job's inferred shapes, one text a layer, or the error's message as the only one.
testing::Described inferred(const TrainingJob& job) {
  const auto wired = infer(job);
  if (!wired) return {core::to_string(wired.error())};
  testing::Described all;
  for (std::size_t layer = 0; layer < wired->graph().layers().size(); ++layer) {
    std::string text;
    for (const core::Shape& shape : wired->outputs(layer)) text += core::to_string(shape);
    all.push_back(text);
  }
  return all;
}

TrainingJob job_of(std::string_view summary, std::vector<std::int64_t> input = {}) {
  auto graph = parse_summary(summary);
  EXPECT_TRUE(succeeds(graph));
  if (!graph) return {};
  TrainingJob job(*std::move(graph), 2);
  job.input_shape = std::move(input);
  return job;
}

TEST(InferShapes, ChainALayerToTheOneBeforeIt) {
  EXPECT_EQ(inferred(job_of(R"(Net(
  (conv): Conv2d(3, 16, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
  (relu): ReLU()
  (pool): AdaptiveAvgPool2d(output_size=(1, 1))
  (fc): Linear(in_features=16, out_features=10, bias=True)
)
)",
                            {3, 32, 32})),
            (testing::Described{"[N, 16, 16, 16]", "[N, 16, 16, 16]", "[N, 16, 1, 1]", "[N, 16]", "[N, 10]"}));
}

TEST(InferShapes, PadAConvolutionToTheSameSize) {
  EXPECT_EQ(inferred(job_of("Net(\n  (conv): Conv2d(3, 16, kernel_size=(3, 3), stride=(1, 1), padding=same)\n)\n",
                            {3, 32, 32})),
            (testing::Described{"[N, 16, 32, 32]"}));
}

TEST(InferShapes, StrictlyNeverGuessWhatAShortcutReads) {
  // Of the earlier outputs only one has its channels; whether it is what the shortcut reads, no row says.
  EXPECT_TRUE(fails(infer_strictly(job_of(R"(Block(
  (stem): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  (conv1): Conv2d(8, 4, kernel_size=(1, 1), stride=(2, 2))
  (conv2): Conv2d(4, 16, kernel_size=(1, 1), stride=(1, 1))
  (downsample): Conv2d(8, 16, kernel_size=(1, 1), stride=(2, 2))
)
)",
                                          {3, 32, 32})),
                    ErrorCode::missing_information, 5, "reads 8 channels, and follows [N, 16, 16, 16]"));
}

TEST(InferShapes, StrictlyNeverGuessWhatAShortcutReadsInABlockOfUnknownClass) {
  EXPECT_TRUE(fails(infer_strictly(job_of(R"(Net(
  (stem): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  (block): Block(
    (conv1): Conv2d(8, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
    (conv2): Conv2d(8, 16, kernel_size=(1, 1), stride=(1, 1))
    (down): Conv2d(8, 16, kernel_size=(1, 1), stride=(2, 2))
  )
)
)",
                                          {3, 32, 32})),
                    ErrorCode::missing_information, 6, "reads 8 channels, and follows [N, 16, 16, 16]"));
}

TEST(InferShapes, AShortcutInABlockOfAKnownClassReadsTheBlocksInput) {
  EXPECT_EQ(
      inferred(job_of(R"(Net(
  (stem): Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))
  (block): BasicBlock(
    (conv1): Conv2d(8, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
    (bn1): BatchNorm2d(8)
    (relu): ReLU(inplace=True)
    (conv2): Conv2d(8, 16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
    (bn2): BatchNorm2d(16)
    (downsample): Conv2d(8, 16, kernel_size=(1, 1), stride=(2, 2))
  )
)
)",
                      {3, 32, 32})),
      (testing::Described{"[N, 8, 32, 32]", "[N, 8, 16, 16]", "[N, 8, 16, 16]", "[N, 8, 16, 16]", "[N, 16, 16, 16]",
                          "[N, 16, 16, 16]", "[N, 16, 16, 16]", "[N, 16, 16, 16]", "[N, 16, 16, 16]"}));
}

TEST(InferShapes, StrictlyNeverGuessWhatABranchOfAnotherSizeIsJoinedWith) {
  // A U-Net's second half reads the concatenation with the first half's output, which no row shows.
  EXPECT_TRUE(fails(infer_strictly(job_of(R"(UNet(
  (inc): Conv2d(3, 16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
  (down): Conv2d(16, 32, kernel_size=(2, 2), stride=(2, 2))
  (up): ConvTranspose2d(32, 16, kernel_size=(2, 2), stride=(2, 2))
  (conv): Conv2d(32, 16, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
  (out): Conv2d(16, 2, kernel_size=(1, 1), stride=(1, 1))
)
)",
                                          {3, 32, 32})),
                    ErrorCode::missing_information, 5, "reads 32 channels, and follows [N, 16, 32, 32]"));
}

TEST(InferShapes, TakeTokensFromTheSequenceLength) {
  TrainingJob job = job_of("Net(\n  (e): Embedding(100, 8)\n  (fc): Linear(in_features=8, out_features=3)\n)\n");
  EXPECT_EQ(inferred(job)[0],
            "line 2: e: its input size is not printed; give one sample's shape (`input=3x224x224`) or the "
            "sequence length (`seq_length=512`)");
  job.sequence_length = 12;
  EXPECT_EQ(inferred(job), (testing::Described{"[N, 12, 8]", "[N, 12, 3]"}));
}

TEST(InferShapes, AreThePrintedOnesWhereTheSummaryHasThem) {
  const TrainingJob job = job_of(
      "----------------------------------------------------------------\n"
      "        Layer (type)               Output Shape         Param #\n"
      "================================================================\n"
      "            Linear-1                     [-1, 4]              16\n"
      "================================================================\n");
  EXPECT_EQ(inferred(job), (testing::Described{"[N, 4]"}));
}

TEST(InferShapes, PrintedOnesMustHaveTheWidthsThatLayersWereBuiltFor) {
  const auto printed = [](std::string_view width) {
    return infer(
        job_of(R"({"format": "gpumem-graph", "version": 1, "inputs": [{"name": "x", "shape": ["N", 8]}], "nodes": [
{"name": "a", "op": "linear", "inputs": ["x"], "output": ["N", 4], "attrs": {"in_features": 8, "out_features": 4}},
{"name": "b", "op": "linear", "inputs": ["a"], "output": ["N", 2], "attrs": {"in_features": )" +
               std::string(width) + R"(, "out_features": 2}}]})"));
  };
  EXPECT_TRUE(succeeds(printed("4")));
  const auto fault = printed("5");
  ASSERT_TRUE(fails(fault, ErrorCode::malformed_input, 3, "has in_features 5, but its input has the shape [N, 4]"));
  EXPECT_EQ(fault.error().place.element, "b");
}

TEST(InferShapes, FollowTheEdgesOfAGraph) {
  EXPECT_EQ(inferred(job_of(R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 3, 8, 8]}, {"name": "ids", "shape": ["N", 5], "dtype": "int64"}],
 "nodes": [
  {"name": "a", "op": "conv2d", "inputs": ["x"], "attrs": {"in_channels": 3, "out_channels": 4, "kernel_size": 1}},
  {"name": "b", "op": "conv2d", "inputs": ["x"], "attrs": {"in_channels": 3, "out_channels": 2, "kernel_size": 1}},
  {"name": "both", "op": "concat", "inputs": ["a", "b"], "attrs": {"dim": 1}},
  {"name": "e", "op": "embedding", "inputs": ["ids"], "attrs": {"num_embeddings": 9, "embedding_dim": 7}}
 ]}
)")),
            (testing::Described{"[N, 4, 8, 8]", "[N, 2, 8, 8]", "[N, 6, 8, 8]", "[N, 5, 7]"}));
}

TEST(InferShapes, AGivenInputReplacesTheGraphsFirst) {
  EXPECT_EQ(
      inferred(job_of(R"({"format": "gpumem-graph", "version": 1, "inputs": [{"name": "x", "shape": ["N", 3, 8, 8]}],
 "nodes": [{"name": "a", "op": "relu", "inputs": ["x"]}]})",
                      {3, 16, 16})),
      (testing::Described{"[N, 3, 16, 16]"}));
}

TEST(InferShapes, NeedTheInputSize) {
  const TrainingJob job = job_of("Net(\n  (conv): Conv2d(3, 16, kernel_size=(3, 3))\n)\n");
  const auto shapes = infer(job);
  ASSERT_TRUE(fails(shapes, ErrorCode::missing_information, 2, "`input=3x224x224`"));
  EXPECT_EQ(shapes.error().place.element, "conv");
}

TEST(InferShapes, StrictlyNeverGuessAnInputThatFitsNothing) {
  EXPECT_TRUE(fails(infer_strictly(job_of("Net(\n  (a): Linear(in_features=3, out_features=4)\n"
                                          "  (b): Linear(in_features=9, out_features=4)\n)\n",
                                          {3})),
                    ErrorCode::missing_information, 3, "reads 9 features, and follows [N, 4]"));
}

TEST(InferShapes, StrictlyNeverGuessWhatASqueezeAndExcitationBlockReturns) {
  EXPECT_TRUE(fails(infer_strictly(job_of(R"(Net(
  (conv): Conv2d(3, 16, kernel_size=(3, 3))
  (se): Unheard(
    (avgpool): AdaptiveAvgPool2d(output_size=1)
    (fc1): Conv2d(16, 4, kernel_size=(1, 1))
    (fc2): Conv2d(4, 16, kernel_size=(1, 1))
  )
  (project): Conv2d(16, 8, kernel_size=(1, 1))
)
)",
                                          {3, 32, 32})),
                    ErrorCode::missing_information, 8, "of a block that pools to one pixel"));
}

TEST(InferShapes, RefuseAnEdgeOfTheWrongWidth) {
  EXPECT_TRUE(fails(infer(job_of(R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "x", "shape": ["N", 5]}],
 "nodes": [
  {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 3, "out_features": 4}}]})")),
                    ErrorCode::malformed_input, 4, "has in_features 3, but its input has the shape [N, 5]"));
}

TEST(InferShapes, ParametersAndConstantsOfAShapeHaveIt) {
  EXPECT_EQ(inferred(job_of(R"({"format": "gpumem-graph", "version": 1,
 "inputs": [{"name": "ids", "shape": ["N", 6], "dtype": "int64"}],
 "nodes": [
  {"name": "token", "op": "parameter", "attrs": {"shape": [1, 1, 4]}},
  {"name": "unused", "op": "parameter", "parameters": 5},
  {"name": "positions", "op": "constant", "attrs": {"shape": [1, 9], "dtype": "int64"}},
  {"name": "cut", "op": "slice", "inputs": ["positions", "ids"], "attrs": {"dim": 1, "start": 0, "like_dim": 1}},
  {"name": "tokens", "op": "expand", "inputs": ["token"], "attrs": {"shape": ["N", -1, -1]}}
 ]})")),
            (testing::Described{"[1, 1, 4]", "", "[1, 9]", "[1, 6]", "[N, 1, 4]"}));
}

TEST(InferShapes, AParametersSizesMustBePositive) {
  EXPECT_TRUE(fails(infer(job_of(R"({"format": "gpumem-graph", "version": 1, "inputs": [], "nodes": [
  {"name": "token", "op": "parameter", "attrs": {"shape": [1, 0]}}]})")),
                    ErrorCode::malformed_input, 2, "must be positive"));
}

TEST(InferShapes, BareParametersHaveNone) {
  EXPECT_EQ(
      inferred(job_of("Net(\n  (w): ParameterList(), 12 params\n  (fc): Linear(3, 4), 16 params\n), 28 params\n", {3})),
      (testing::Described{"", "[N, 4]"}));
}

TEST(SamePadding, AStridedConvolutionLeavesHalfOfItsInputRoundedUp) {
  constexpr std::string_view kTree = R"(Net(
  (conv): Conv2dSame(3, 8, kernel_size=(3, 3), stride=(2, 2), bias=False)
))";
  EXPECT_EQ(ops_of(kTree, {3, 8, 8}), "pad conv2d");
  const auto even = testing::wired_tree(kTree, {3, 8, 8});
  ASSERT_TRUE(testing::succeeds(even));
  EXPECT_EQ(core::to_string(even->outputs(1)[0]), "[N, 8, 4, 4]");
  const auto odd = testing::wired_tree(kTree, {3, 7, 7});
  ASSERT_TRUE(testing::succeeds(odd));
  EXPECT_EQ(core::to_string(odd->outputs(1)[0]), "[N, 8, 4, 4]");
}

TEST(SamePadding, NothingIsPaddedWhereTheWindowFits) {
  constexpr std::string_view kTree = R"(Net(
  (conv): Conv2dSame(3, 8, kernel_size=(1, 1), stride=(1, 1), bias=False)
))";
  EXPECT_EQ(ops_of(kTree, {3, 8, 8}), "conv2d");
}

}  // namespace
}  // namespace gpumem::connect
