#include "gpumem_datasets/runs_tables.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "run_tables.hpp"

namespace gpumem::datasets {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

const std::string kHeader = "summary,batch_size,input,seq_length,optimizer,precision,gpu,measured_mib";

core::Result<MeasuredRuns> read(const std::string& text) {
  const auto table = core::parse_csv(text, "folder/runs.csv");
  if (!table) return table.error();
  EXPECT_TRUE(runs_csv().sniff(*table));
  return runs_csv().read(*table, testing::small_shelf());
}

/// The one run of a table with this row below the header and these further columns.
MeasuredRun one_run(const std::string& row, const std::string& more_columns = "") {
  const auto all = read(kHeader + more_columns + "\n" + row + "\n");
  EXPECT_TRUE(succeeds(all));
  EXPECT_EQ(all->runs.size(), 1U);
  return all->runs.at(0);
}

TEST(RunsCsv, ReadsARun) {
  const MeasuredRun run = one_run("small.txt,32,3x8x8,16,sgd,amp-fp16,t4-16gb,1234.5");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.name, "small.txt");
  EXPECT_EQ(run.line, 2);
  EXPECT_EQ(run.job.graph->file(), "folder/small.txt");
  EXPECT_EQ(run.job.batch_size, 32);
  EXPECT_EQ(run.job.input_shape, (std::vector<std::int64_t>{3, 8, 8}));
  EXPECT_EQ(run.job.sequence_length, 16);
  EXPECT_EQ(run.job.optimizer, model::Optimizer::sgd);
  EXPECT_EQ(run.job.precision, model::Precision::amp_fp16);
  EXPECT_EQ(run.gpu, "t4-16gb");
  EXPECT_EQ(run.measured_mib, 1234.5);
  EXPECT_EQ(run.figure, Figure::device);
  EXPECT_FALSE(run.out_of_memory);
}

TEST(RunsCsv, TakesEveryOptimizerByItsName) {
  for (const model::OptimizerRow& row : model::kOptimizerRows) {
    const MeasuredRun run = one_run("small.txt,1,,," + std::string(row.name) + ",,,");
    ASSERT_FALSE(run.error) << core::to_string(*run.error);
    EXPECT_EQ(run.job.optimizer, row.value);
  }
}

TEST(RunsCsv, AnEmptyCellIsTheDefault) {
  const MeasuredRun run = one_run("small.txt,1,,,,,,");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_TRUE(run.job.input_shape.empty());
  EXPECT_EQ(run.job.sequence_length, std::nullopt);
  EXPECT_EQ(run.job.optimizer, model::Optimizer::adam);
  EXPECT_EQ(run.job.precision, model::Precision::fp32);
  EXPECT_EQ(run.measured_mib, std::nullopt);
  EXPECT_EQ(run.gpus, 1);
}

TEST(RunsCsv, TakesTheFurtherColumnsAndIgnoresUnknownOnes) {
  const MeasuredRun run = one_run(
      "small.txt,4,,,,,,,net,2,before-backward,100,true,yes,mse,reserved,OOM,3,1,whatever",
      ",name,gpus,zero_grad,samples_per_epoch,summary_pass,validation_pass,loss,figure,status,gradient_accumulation,"
      "checkpointing,colour");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.name, "net");
  EXPECT_EQ(run.gpus, 2);
  EXPECT_EQ(run.job.zero_grad, model::ZeroGrad::before_backward);
  EXPECT_EQ(run.job.samples_per_epoch, 100);
  EXPECT_TRUE(run.job.summary_pass);
  EXPECT_TRUE(run.job.validation_pass);
  EXPECT_EQ(run.job.loss, model::Loss::mse);
  EXPECT_EQ(run.figure, Figure::reserved);
  EXPECT_TRUE(run.out_of_memory);
  EXPECT_EQ(run.job.gradient_accumulation, 3);
  EXPECT_TRUE(run.job.activation_checkpointing);
}

TEST(RunsCsv, ReadsTheOptimizersForm) {
  const MeasuredRun plain = one_run("small.txt,4,,,,,,,no,", ",foreach,fused");
  EXPECT_FALSE(plain.job.foreach);
  EXPECT_FALSE(plain.job.fused);
  const MeasuredRun fused = one_run("small.txt,4,,,,,,,,yes", ",foreach,fused");
  EXPECT_TRUE(fused.job.foreach);
  EXPECT_TRUE(fused.job.fused);
}

TEST(RunsCsv, ReadsCounters) {
  const MeasuredRun run = one_run("small.txt,4,,,,,,,0.97,0.8,0.5,,0", ",gpu_utilisation,gract,smact,smocc,fp32");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.counters.gpu_utilisation, 0.97);
  EXPECT_EQ(run.counters.gract, 0.8);
  EXPECT_EQ(run.counters.smact, 0.5);
  EXPECT_EQ(run.counters.smocc, std::nullopt);
  EXPECT_EQ(run.counters.fp32, 0.0);
}

struct Wrong {
  const char* row;
  const char* more_columns;
  const char* message;
};

TEST(RunsCsv, TakesWhatOtherEstimatorsSaid) {
  const MeasuredRun run =
      one_run("small.txt,1,,,,,,9,100.5,,7", ",published_horus_mb,published_gpumemnet_mib,published__mib");
  ASSERT_EQ(run.published.size(), 1U);  // an empty cell says nothing, and a column without a name is not known
  EXPECT_EQ(run.published[0].estimator, "horus");
  EXPECT_EQ(run.published[0].expected_mib, 100.5);
  EXPECT_EQ(run.published[0].out_of_memory, std::nullopt);
}

TEST(RunsCsv, AWrongRowIsReportedAndTheOthersStand) {
  const std::vector<Wrong> rows = {
      {",1,,,,,,1", "", "names no summary"},
      {"small.txt,,,,,,,1", "", "the batch size is 0"},
      {"small.txt,many,,,,,,1", "", "batch_size is 'many'"},
      {"small.txt,1,3x,,,,,1", "", "input is '3x'; it must be of the form 3x224x224"},
      {"small.txt,1,axb,,,,,1", "", "input is 'axb'"},
      {"small.txt,1,3x0,,,,,1", "", "an input dimension is 0"},
      {"small.txt,1,,-5,,,,1", "", "the sequence length is -5"},
      {"small.txt,1,,,adamm,,,1", "", "optimizer is 'adamm'; choose one of sgd, "},
      {"small.txt,1,,,,fp8,,1", "", "precision is 'fp8'"},
      {"small.txt,1,,,,,,-1", "", "measured_mib is '-1'"},
      {"small.txt,1,,,,,,1,0", ",capacity_mib", "capacity_mib is '0'; it must be at least 1"},
      {"small.txt,1,,,,,,1,lost", ",status", "status is 'lost'"},
      {"small.txt,1,,,,,,1,total", ",figure", "figure is 'total'; choose one of device, "},
      {"small.txt,1,,,,,,1,0", ",gpus", "gpus is 0"},
      {"small.txt,1,,,,,,1,maybe", ",summary_pass", "summary_pass is 'maybe'"},
      {"small.txt,1,,,,,,1,perhaps", ",fused", "fused is 'perhaps'"},
      {"small.txt,1,,,,,,1,97", ",smact", "smact is '97'; it must be a share, from 0 to 1"},
  };
  for (const Wrong& wrong : rows) {
    const MeasuredRun run = one_run(wrong.row, wrong.more_columns);
    ASSERT_TRUE(run.error) << wrong.row;
    EXPECT_NE(run.error->message.find(wrong.message), std::string::npos) << run.error->message;
    EXPECT_EQ(run.error->place.line, 2) << wrong.row;
    EXPECT_EQ(run.error->place.file, "folder/runs.csv");
  }
  const auto all = read(kHeader + "\nmissing.txt,1,,,,,,1\nsmall.txt,1,,,,,,1\n");
  ASSERT_TRUE(succeeds(all));
  EXPECT_EQ(all->runs.at(0).error->place.file, "folder/missing.txt");
  EXPECT_FALSE(all->runs.at(1).error);
}

TEST(RunsCsv, NamesAColumnThatIsMissing) {
  EXPECT_TRUE(fails(read("summary,batch_size,measured_mib\n"), ErrorCode::malformed_input, 1, "no column 'input'"));
}

}  // namespace
}  // namespace gpumem::datasets
