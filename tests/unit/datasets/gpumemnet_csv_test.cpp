#include "gpumem_datasets/runs_tables.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "run_tables.hpp"

namespace gpumem::datasets {
namespace {

using testing::N;
using testing::shape;
using testing::succeeds;

MeasuredRun one_run(const std::string& row, const RunsOptions& options = testing::small_shelf()) {
  const std::string header =
      "Filename,Activations-Params,Total Activations,Total Parameters,Batch Size,Max GPU Memory (MiB),Status\n";
  const auto table = core::parse_csv(header + row + "\n", "t.csv");
  EXPECT_TRUE(succeeds(table));
  EXPECT_TRUE(gpumemnet_csv().sniff(*table));
  const auto all = gpumemnet_csv().read(*table, options);
  EXPECT_TRUE(succeeds(all));
  return all->runs.at(0);
}

const std::string kMlpName = "input:5_output:2_depth:1_arch:pyramid_batch:8_act:relu_dropout:0.5_dropout:True.out";
const std::string kMlpList = R"("[('linear', 3, 18), ('ReLU', 3, 0), ('linear', 2, 8), ('Softmax', 2, 0)]")";
const std::string kCnnName =
    "input_channels:1_num_classes:2_depth:1_arch:uniform_base_filters:4_batch:8_input_size:6_act:elu_dropout:0.1.out";
const std::string kCnnList =
    R"("[('conv2d', 36, 40), ('ELU', 36, 0), ('adaptive_avg_pool2d', 1, 0), ('linear', 2, 10), ('Softmax', 2, 0)]")";

TEST(GpumemnetCsv, ReadsAnMlp) {
  const MeasuredRun run = one_run(kMlpName + "," + kMlpList + ",10,26,8,1500,");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.name, kMlpName);
  EXPECT_EQ(run.gpu, "a100-40gb");
  EXPECT_EQ(run.measured_mib, 1500.0);
  EXPECT_EQ(run.figure, Figure::device);
  EXPECT_FALSE(run.out_of_memory);
  EXPECT_EQ(run.job.batch_size, 8);
  EXPECT_EQ(run.job.optimizer, model::Optimizer::adam);
  EXPECT_EQ(run.job.precision, model::Precision::fp32);
  EXPECT_EQ(run.job.loss, model::Loss::cross_entropy);
  EXPECT_EQ(run.job.zero_grad, model::ZeroGrad::before_forward);
  EXPECT_EQ(run.job.samples_per_epoch, 4096);
  EXPECT_TRUE(run.job.summary_pass);
  EXPECT_EQ(run.job.graph->parameters(), 26);
  EXPECT_EQ(run.job.graph->graph_inputs()[0].shape, shape({N, 5}));
}

/// A run with its counters, as the data sets print them.
MeasuredRun counted_run(const std::string& status, const std::string& counters) {
  const std::string header =
      "Filename,Activations-Params,Total Activations,Total Parameters,Batch Size,Max GPU Memory (MiB),Status,"
      "Avg GPUTL,Avg GRACT,Avg SMACT,Avg SMOCC,Avg FP32A\n";
  const auto table =
      core::parse_csv(header + kMlpName + "," + kMlpList + ",10,26,8,1500," + status + "," + counters + "\n", "t.csv");
  EXPECT_TRUE(succeeds(table));
  return gpumemnet_csv().read(*table, testing::small_shelf())->runs.at(0);
}

TEST(GpumemnetCsv, ReadsCounters) {
  const MeasuredRun run = counted_run("SUCCESSFUL", "50,0.5,0.25,0.125,0");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.counters.gpu_utilisation, 0.5) << "printed in percent";
  EXPECT_EQ(run.counters.gract, 0.5);
  EXPECT_EQ(run.counters.smact, 0.25);
  EXPECT_EQ(run.counters.smocc, 0.125);
  EXPECT_EQ(run.counters.fp32, 0.0);
}

TEST(GpumemnetCsv, MinusOneIsACounterThatWasNotRead) {
  const MeasuredRun run = counted_run("SUCCESSFUL", "-1,-1.0,0.25,,-1");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_FALSE(run.counters.gpu_utilisation);
  EXPECT_FALSE(run.counters.gract);
  EXPECT_EQ(run.counters.smact, 0.25);
  EXPECT_FALSE(run.counters.smocc);
  EXPECT_FALSE(run.counters.fp32);
}

TEST(GpumemnetCsv, ARunOutOfMemoryCountedNoTraining) {
  EXPECT_FALSE(counted_run("OOM_CRASH", "50,0.5,0.25,0.125,0").counters.smact);
}

TEST(GpumemnetCsv, ACounterBeyondItsRangeIsAnError) {
  for (const char* counters : {"101,0,0,0,0", "0,1.5,0,0,0", "0,0,-0.5,0,0", "0,0,much,0,0"}) {
    EXPECT_TRUE(counted_run("", counters).error) << counters;
  }
}

TEST(GpumemnetCsv, ReadsACnnThatDidNotFit) {
  const MeasuredRun run = one_run(kCnnName + "," + kCnnList + ",75,50,8,39000,OOM_CRASH");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_TRUE(run.out_of_memory);
  EXPECT_EQ(run.job.graph->parameters(), 50);
  EXPECT_EQ(run.job.graph->graph_inputs()[0].shape, shape({N, 1, 6, 6}));
}

TEST(GpumemnetCsv, ReportsARowThatDoesNotFit) {
  const std::vector<std::pair<std::string, const char*>> rows = {
      {kMlpName + "," + kMlpList + ",10,27,8,1500,", "do not sum to its Total Parameters"},
      {kMlpName + "," + kMlpList + ",11,26,8,1500,", "do not sum to its Total Activations"},
      {kCnnName + "," + kCnnList + ",77,50,8,1500,", "do not sum to its Total Activations"},
      {kMlpName + "," + kMlpList + ",10,26,,1500,", "the batch size is 0"},
      {kMlpName + "," + kMlpList + ",10,26,8,1500,LOST", "Status is 'LOST'"},
      {kMlpName + "," + kMlpList + ",10,26,8,much,", "Max GPU Memory (MiB) is 'much'"},
      {kMlpName + ",[],,,8,1500,", "the list of layers"},
      {kMlpName + ",(),,,8,1500,", "not of the form"},
      {"depth:1," + kMlpList + ",10,26,8,1500,", "does not say the size of the net's input"},
      {"input_channels:1_depth:1," + kCnnList + ",75,50,8,1500,", "does not say the size of the net's input"},
      {"input:6," + kMlpList + ",10,26,8,1500,", "layer 1, 'linear', has parameters"},
  };
  for (const auto& [row, message] : rows) {
    const MeasuredRun run = one_run(row);
    ASSERT_TRUE(run.error) << row;
    EXPECT_NE(run.error->message.find(message), std::string::npos) << run.error->message;
    EXPECT_EQ(run.error->place.line, 2) << row;
  }
}

TEST(GpumemnetCsv, NeedsTheOps) {
  const MeasuredRun run = one_run(kMlpName + "," + kMlpList + ",10,26,8,1500,", {});
  ASSERT_TRUE(run.error);
  EXPECT_EQ(run.error->code, core::ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace gpumem::datasets
