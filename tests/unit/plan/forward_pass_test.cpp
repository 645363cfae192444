#include <algorithm>

#include "gpumem/estimate/replay.hpp"
#include "gpumem/plan/forward_pass.hpp"
#include "plans.hpp"
#include "small_plans.hpp"

namespace gpumem::plan {
namespace {

using core::ErrorCode;
using testing::count;
using testing::events;
using testing::fails;
using testing::forward;
using testing::job_of;
using testing::kRows;
using testing::net;
using testing::planned;
using testing::succeeds;

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

/// A block of four query heads that share one head of keys and values.
TrainingJob llama(model::AttentionBackend attention) {
  const auto graph = parse_summary(R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 1, "vocab_size": 100})");
  EXPECT_TRUE(succeeds(graph));
  TrainingJob job(*graph, 2);
  job.sequence_length = 128;
  job.precision = Precision::bf16;
  job.optimizer = Optimizer::sgd;
  job.attention = attention;
  return job;
}

/// Bytes of the scores of all heads, an element each.
constexpr std::int64_t kScores = std::int64_t{2} * 4 * 128 * 128;

std::int64_t allocations_of(const TrainingJob& job, std::int64_t bytes) {
  std::int64_t found = 0;
  for (const Event& event : planned(job).plan.events) {
    if (event.kind == Event::Kind::allocate && event.bytes == bytes) ++found;
  }
  return found;
}

TEST(AttentionInputs, AreWhatRepeatsAndCopiesForTheAttentionAlone) {
  const TrainingJob job = llama(model::AttentionBackend::flash);
  const auto wired = connect::connect(job, ops::catalogue());
  ASSERT_TRUE(succeeds(wired));
  const std::vector<bool> moved = attention_inputs(*wired);
  std::size_t expands = 0;
  for (std::size_t index = 0; index < moved.size(); ++index) {
    const auto& layer = job.graph->layers()[index];
    if (job.graph->op(layer) == "expand" && moved[index]) ++expands;
    if (moved[index]) {
      EXPECT_EQ(layer.parameters, 0);
    }
  }
  EXPECT_EQ(expands, 2U) << "of keys and of values";
}

TEST(AttentionInputs, FlashAttentionRepeatsNoHeads) {
  const auto sdpa = planned(llama(model::AttentionBackend::sdpa)).plan;
  const auto flash = planned(llama(model::AttentionBackend::flash)).plan;
  EXPECT_LT(flash.peak_bytes, sdpa.peak_bytes);
  EXPECT_EQ(allocations_of(llama(model::AttentionBackend::flash), kScores * 4), 0) << "no scores";
}

TEST(AttentionInputs, EagerAttentionMakesScoresInBothTypes) {
  const TrainingJob eager = llama(model::AttentionBackend::eager);
  EXPECT_GT(allocations_of(eager, kScores * 4), 0) << "the softmax in float32";
  EXPECT_GT(allocations_of(eager, kScores * 2), 0) << "scores, and weights";
  EXPECT_EQ(allocations_of(llama(model::AttentionBackend::sdpa), kScores * 4), 0);
}

TEST(AttentionInputs, FlashAttentionTakesTypesOfTwoBytes) {
  TrainingJob job = llama(model::AttentionBackend::flash);
  job.precision = Precision::fp32;
  EXPECT_TRUE(fails(forward(job), ErrorCode::invalid_argument, 0, "flash attention takes float16 and bfloat16"));
}

TEST(NameLifetimes, EachNameEndsBehindItsLastReader) {
  const auto pass = forward(net());
  ASSERT_TRUE(testing::succeeds(pass));
  const NameLifetimes names(*pass);
  const auto functions = pass->tape.functions();
  const auto ends_at = [&](std::size_t function, ops::TensorId id) {
    const auto ending = names.ending_at(function);
    return std::find(ending.begin(), ending.end(), id) != ending.end();
  };
  EXPECT_TRUE(names.ending_at(0).empty()) << "the batch keeps its name";
  EXPECT_TRUE(ends_at(1, functions[0].output)) << "relu reads what the first layer made";
  EXPECT_TRUE(ends_at(2, functions[1].output));
  std::size_t ended = 0;
  for (std::size_t index = 0; index < functions.size(); ++index) {
    ended += names.ending_at(index).size();
    for (const ops::TensorId held : pass->held) EXPECT_FALSE(ends_at(index, held)) << "the loop holds it";
    for (const auto& parameter : pass->tape.parameters()) EXPECT_FALSE(ends_at(index, parameter.tensor));
  }
  EXPECT_EQ(ended, functions.size() - pass->held.size()) << "each output ends once, unless it is held";
}

TEST(NameLifetimes, WhatNobodyReadsEndsAtOnce) {
  const auto pass = forward(job_of(kRows, R"(
    {"name": "a", "op": "linear", "inputs": ["x"], "attrs": {"in_features": 4, "out_features": 8, "bias": false}},
    {"name": "b", "op": "relu", "inputs": ["a"]},
    {"name": "c", "op": "tanh", "inputs": ["a"]},
    {"name": "d", "op": "add", "inputs": ["b", "c"]})",
                                   2));
  ASSERT_TRUE(testing::succeeds(pass));
  const NameLifetimes names(*pass);
  const auto functions = pass->tape.functions();
  EXPECT_TRUE(names.ending_at(1).empty()) << "tanh still reads a";
  ASSERT_EQ(names.ending_at(2).size(), 1U);
  EXPECT_EQ(names.ending_at(2)[0], functions[0].output);
  EXPECT_EQ(names.ending_at(3).size(), 2U) << "b and c";
}

}  // namespace
}  // namespace gpumem::plan
