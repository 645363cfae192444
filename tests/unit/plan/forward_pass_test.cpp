#include "gpumem/plan/forward_pass.hpp"

#include <algorithm>

#include "gpumem/estimate/replay.hpp"
#include "plans.hpp"

namespace gpumem::plan {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::forward;
using testing::job_of;
using testing::succeeds;

constexpr std::string_view kRows = R"({"name": "x", "shape": ["N", 4]})";
constexpr std::string_view kTwoLayers = R"(
  {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": true}},
  {"name": "b", "op": "relu", "inputs": ["a"]})";

TEST(Record, HoldsTheModelAndItsLoss) {
  const TrainingJob job = job_of(kRows, kTwoLayers, 2);
  const auto pass = forward(job);
  ASSERT_TRUE(succeeds(pass));
  const ops::Tape& tape = pass->tape;
  EXPECT_EQ(pass->model_inputs, 1U);
  ASSERT_EQ(tape.inputs().size(), 2U) << "the batch and its labels";
  EXPECT_EQ(tape.tensor(tape.inputs()[1]).size.bytes(2).value(), 16) << "one int64 a row";
  EXPECT_EQ(pass->model_functions, 2U);
  EXPECT_EQ(tape.functions().size(), 4U) << "log-softmax and the mean of what it gives";
  ASSERT_EQ(tape.parameters().size(), 2U);
  EXPECT_EQ(tape.tensor(tape.parameters()[0].tensor).size.bytes(2).value(), 128);
  EXPECT_EQ(tape.tensor(tape.parameters()[1].tensor).size.bytes(2).value(), 32);
  ASSERT_EQ(pass->held.size(), 2U) << "the names outputs and loss";
  EXPECT_EQ(pass->held.back(), pass->loss);
  EXPECT_FALSE(pass->convolves);
  EXPECT_FALSE(pass->normalises);
}

TEST(Record, HoldsWhatIsReturnedAndTakesNoLossOfIt) {
  const TrainingJob job = job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": true}},
    {"name": "kept", "op": "identity", "inputs": ["a"], "returned": true},
    {"name": "again", "op": "identity", "inputs": ["a"], "returned": true},
    {"name": "b", "op": "relu", "inputs": ["a"]})",
                                 2);
  const auto pass = forward(job);
  ASSERT_TRUE(succeeds(pass));
  EXPECT_EQ(pass->held.size(), 3U) << "a once, the output, the loss";
  EXPECT_EQ(pass->tape.inputs().size(), 2U) << "the batch, and labels of the one output";
}

TEST(Record, LabelsAreAsTheLossWantsThem) {
  TrainingJob job = job_of(R"({"name": "x", "shape": ["N", 3, 8, 8]})",
                           R"({"name": "c", "op": "conv2d", "inputs": ["x"],
                               "attrs": {"in_channels": 3, "out_channels": 5, "kernel_size": [1, 1], "bias": false}})",
                           1);
  const auto labels = [&] {
    const auto pass = forward(job);
    EXPECT_TRUE(succeeds(pass));
    return pass->tape.tensor(pass->tape.inputs()[1]).size.bytes(1).value();
  };
  EXPECT_EQ(labels(), 64 * 8) << "an id a pixel";
  job.loss = model::Loss::mse;
  EXPECT_EQ(labels(), 5 * 64 * 4) << "as large as the output";
  job.loss = model::Loss::bce_with_logits;
  EXPECT_EQ(labels(), 5 * 64 * 4);
}

TEST(Record, OutputsOfOneSizeShareTheirLabels) {
  const std::string heads = std::string(kTwoLayers) +
                            R"(, {"name": "main", "op": "linear", "inputs": ["b"],
                                 "attrs": {"in_features": 8, "out_features": 3, "bias": false}},
                                {"name": "aux", "op": "linear", "inputs": ["a"],
                                 "attrs": {"in_features": 8, "out_features": 3, "bias": false}})";
  const auto pass = forward(job_of(kRows, heads, 2));
  ASSERT_TRUE(succeeds(pass));
  EXPECT_EQ(pass->tape.inputs().size(), 2U);
  EXPECT_EQ(pass->held.size(), 3U) << "two outputs and the sum of their losses";
}

TEST(Record, ParametersAreTiedAndFrozenAsTheSummarySays) {
  const std::string nodes = R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 4, "bias": true},
     "frozen": true},
    {"name": "b", "op": "linear", "inputs": ["a"], "attrs": {"in_features": 4, "out_features": 4, "bias": false},
     "parameters": 16, "tied_parameters": 16},
    {"name": "c", "op": "linear", "inputs": ["b"], "attrs": {"in_features": 4, "out_features": 4, "bias": false}})";
  const auto pass = forward(job_of(kRows, nodes, 2));
  ASSERT_TRUE(succeeds(pass));
  const auto parameters = pass->tape.parameters();
  ASSERT_EQ(parameters.size(), 4U);
  EXPECT_TRUE(parameters[0].frozen);
  EXPECT_TRUE(parameters[1].frozen);
  EXPECT_TRUE(parameters[2].tied);
  EXPECT_FALSE(parameters[3].tied || parameters[3].frozen);
}

TEST(Record, NotesConvolutionsNormalisationsAndSplits) {
  const std::string nodes = R"(
    {"name": "c", "op": "conv2d", "inputs": ["x"],
     "attrs": {"in_channels": 3, "out_channels": 4, "kernel_size": [3, 3], "padding": [1, 1], "bias": false}},
    {"name": "n", "op": "batch_norm", "inputs": ["c"], "attrs": {"num_features": 4}},
    {"name": "s", "op": "split", "inputs": ["n"], "attrs": {"sizes": [2, 2], "dim": 1}},
    {"name": "l", "op": "item", "inputs": ["s"], "attrs": {"dim": 1, "start": 0, "length": 2}},
    {"name": "r", "op": "item", "inputs": ["s"], "attrs": {"dim": 1, "start": 2, "length": 2}},
    {"name": "j", "op": "add", "inputs": ["l", "r"]})";
  const auto pass = forward(job_of(R"({"name": "x", "shape": ["N", 3, 8, 8]})", nodes, 2));
  ASSERT_TRUE(succeeds(pass));
  EXPECT_TRUE(pass->convolves);
  EXPECT_TRUE(pass->normalises);
  EXPECT_EQ(pass->splits.size(), 1U);
  ASSERT_EQ(pass->tape.convolutions().size(), 1U);
  EXPECT_EQ(pass->tape.convolutions()[0].kernel_elements, 9);
  EXPECT_EQ(pass->tape.buffers().size(), 3U) << "running mean, variance and the count of batches";
}

TEST(Record, TokenIdsAreEightBytesEach) {
  TrainingJob job = job_of(R"({"name": "ids", "shape": ["N", "?"], "dtype": "int64"})",
                           R"({"name": "e", "op": "embedding", "inputs": ["ids"],
                               "attrs": {"num_embeddings": 10, "embedding_dim": 4}})",
                           2);
  EXPECT_TRUE(fails(forward(job), ErrorCode::missing_information, 0, ""));
  job.sequence_length = 7;
  const auto pass = forward(job);
  ASSERT_TRUE(succeeds(pass));
  EXPECT_EQ(pass->tape.tensor(pass->tape.inputs()[0]).size.bytes(2).value(), 2 * 7 * 8);
}

constexpr std::string_view kBehindUnknown = R"({"format": "gpumem-graph", "version": 1,
  "inputs": [{"name": "x", "shape": ["N", 4]}], "nodes": [
  {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8}},
  {"name": "u", "op": "mystery", "inputs": ["a"], "parameters": 7},
  {"name": "b", "op": "linear", "inputs": ["u"], "attrs": {"in_features": 8, "out_features": 4}},
  {"name": "v", "op": "mystery", "inputs": ["b"]},
  {"name": "c", "op": "linear", "inputs": ["v"], "attrs": {"in_features": 16, "out_features": 2}},
  {"name": "d", "op": "relu", "inputs": ["c"]}]})";

TEST(Record, BehindAnUnknownLayerTheLatestTensorIsReadIfItFits) {
  const auto graph = parse_summary(kBehindUnknown, true);
  ASSERT_TRUE(testing::succeeds(graph));
  const auto pass = forward(TrainingJob(*graph, 2));
  ASSERT_TRUE(testing::succeeds(pass));
  EXPECT_EQ(pass->skipped_layers, 1) << "c: nothing of 16 features is known; d reads b's";
  std::int64_t parameters = 0;
  for (const auto& parameter : pass->tape.parameters()) {
    parameters += pass->tape.tensor(parameter.tensor).size.elements.value().value_or(0);
  }
  EXPECT_EQ(parameters, 40 + 7 + 36 + 34) << "all parameters count";
}

TEST(Record, ALowerBoundNeverFits) {
  const auto graph = parse_summary(kBehindUnknown, true);
  ASSERT_TRUE(testing::succeeds(graph));
  GpuProfile gpu;
  gpu.name = "any";
  gpu.memory_bytes.value = std::int64_t{16} << 30;
  const auto found = estimate::Replay().estimate(TrainingJob(*graph, 2), gpu);
  ASSERT_TRUE(testing::succeeds(found));
  EXPECT_FALSE(found->fits);
  EXPECT_EQ(found->coverage.layers_unknown, 3) << "two unknown, one behind them";
}

TEST(Record, ALayerThatReadsWhatLeavesNoTensorIsNamed) {
  const auto graph = parse_summary(R"({"format": "gpumem-graph", "version": 1,
    "inputs": [{"name": "x", "shape": ["N", 4]}], "nodes": [
    {"name": "p", "op": "parameter", "parameters": 4},
    {"name": "r", "op": "relu", "inputs": ["p"]}]})");
  ASSERT_TRUE(testing::succeeds(graph));
  const auto pass = forward(TrainingJob(*graph, 2));
  ASSERT_FALSE(pass);
  EXPECT_EQ(pass.error().place.element, "r");
}

TEST(Record, PetabytesAreAnAnswerOrAnOverflow) {
  const auto graph = parse_summary(R"({"format": "gpumem-graph", "version": 1,
    "inputs": [{"name": "x", "shape": ["N", 64, 512, 512]}], "nodes": [
    {"name": "a", "op": "conv2d", "inputs": ["x"],
     "attrs": {"in_channels": 64, "out_channels": 64, "kernel_size": [3, 3], "padding": [1, 1]}}]})");
  ASSERT_TRUE(testing::succeeds(graph));
  GpuProfile gpu;
  gpu.name = "any";
  gpu.memory_bytes.value = std::int64_t{16} << 30;
  TrainingJob job(*graph, 1 << 24);
  job.loss = model::Loss::mse;
  const auto petabytes = estimate::Replay().estimate(job, gpu);
  ASSERT_TRUE(testing::succeeds(petabytes));
  EXPECT_FALSE(petabytes->fits);
  EXPECT_GT(petabytes->expected.count(), std::int64_t{1} << 50);
  for (const std::int64_t batch : {std::int64_t{1} << 34, std::int64_t{1} << 40, INT64_MAX}) {
    job.batch_size = batch;
    const auto beyond = estimate::Replay().estimate(job, gpu);
    ASSERT_FALSE(beyond) << batch;
    EXPECT_EQ(beyond.error().code, ErrorCode::overflow) << batch;
  }
}

TEST(Record, NothingToTrainIsAnError) {
  const auto pass = forward(job_of(kRows, R"({"name": "b", "op": "relu", "inputs": ["x"]})", 2));
  EXPECT_TRUE(fails(pass, ErrorCode::missing_information, 0, "has nothing to train"));
}

TEST(Record, AnOpOfUnknownMemoryIsAnErrorThatNamesItsLayer) {
  const auto graph = parse_summary(R"(Model: "m"
_________________________________________________________________
 Layer (type)                Output Shape              Param #   
=================================================================
 dense (Dense)               (None, 5, 10)             110       
 td (TimeDistributed)        (None, 5, 10)             110       
=================================================================
Total params: 220
Trainable params: 220
Non-trainable params: 0
)");
  ASSERT_TRUE(succeeds(graph));
  TrainingJob job(*graph, 2);
  job.input_shape = {5, 10};
  const auto pass = forward(job);
  ASSERT_FALSE(pass);
  EXPECT_EQ(pass.error().code, ErrorCode::missing_information);
  EXPECT_EQ(pass.error().place.element, "td");
}

TEST(Record, LstmIsStepByStepWhereThereIsNoCudnn) {
  const TrainingJob job = job_of(R"({"name": "x", "shape": ["N", 6, 4]})",
                                 R"({"name": "l", "op": "lstm", "inputs": ["x"],
                                     "attrs": {"input_size": 4, "hidden_size": 3, "num_layers": 1, "batch_first": true}})",
                                 2);
  const auto gpu = forward(job);
  const auto cpu = forward(job, ops::Backend::cpu);
  ASSERT_TRUE(succeeds(gpu));
  ASSERT_TRUE(succeeds(cpu));
  EXPECT_EQ(gpu->model_functions, 1U);
  EXPECT_GT(cpu->model_functions, 6U * 10U);
  EXPECT_EQ(cpu->tape.parameters().size(), 4U);
}

}  // namespace
}  // namespace gpumem::plan
