#include "gpumem_datasets/runs_tables.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "run_tables.hpp"

namespace gpumem::datasets {
namespace {

using testing::succeeds;

const std::string kXmemHeader =
    "set,model,optimizer,batch_size,gpu,zero_grad_position_or_variant,real_oom,ground_truth_peak_bytes\n";

MeasuredRuns xmem_runs(const std::string& rows, RunsOptions options = testing::small_shelf()) {
  const auto table = core::parse_csv(kXmemHeader + rows, "runs.csv");
  EXPECT_TRUE(succeeds(table));
  EXPECT_TRUE(xmem_csv().sniff(*table));
  const auto all = xmem_csv().read(*table, options);
  EXPECT_TRUE(succeeds(all));
  return *all;
}

TEST(XmemCsv, ReadsAConvolutionalNet) {
  const MeasuredRuns all = xmem_runs("mc-cnn,small,RMSprop,20,RTX 3060,2,false,2097152\n");
  ASSERT_EQ(all.runs.size(), 1U);
  const MeasuredRun& run = all.runs[0];
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.name, "small RMSprop 20");
  EXPECT_EQ(run.job.graph->file(), "shelf/small.txt");
  EXPECT_EQ(run.job.batch_size, 20);
  EXPECT_EQ(run.job.input_shape, (std::vector<std::int64_t>{3, 86, 86}));
  EXPECT_EQ(run.job.optimizer, model::Optimizer::rmsprop);
  EXPECT_EQ(run.job.zero_grad, model::ZeroGrad::step_end);
  EXPECT_EQ(run.gpu, "rtx3060");
  EXPECT_EQ(run.measured_mib, 2.0);
  EXPECT_EQ(run.figure, Figure::growth);
}

TEST(XmemCsv, TakesEveryOptimizerByItsNameInAnyCase) {
  for (const model::OptimizerRow& row : model::kOptimizerRows) {
    std::string name(row.name);
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
    const MeasuredRuns all = xmem_runs("mc-cnn,small," + name + ",20,RTX 3060,2,false,2097152\n");
    ASSERT_EQ(all.runs.size(), 1U);
    ASSERT_FALSE(all.runs[0].error) << core::to_string(*all.runs[0].error);
    EXPECT_EQ(all.runs[0].job.optimizer, row.value);
  }
}

TEST(XmemCsv, ReadsATransformer) {
  const MeasuredRuns all = xmem_runs(
      "mc-transformer,who/small,SGD,1,RTX 4060,null,false,1048576\n"
      "colab,T5-small,AdamW,1,A100-SXM4-40GB,1,false,1048576\n");
  ASSERT_EQ(all.runs.size(), 2U);
  ASSERT_FALSE(all.runs[0].error) << core::to_string(*all.runs[0].error);
  EXPECT_EQ(all.runs[0].job.graph->file(), "shelf/who_small.txt");
  EXPECT_EQ(all.runs[0].job.sequence_length, 128);
  EXPECT_TRUE(all.runs[0].job.input_shape.empty());
  EXPECT_EQ(all.runs[0].job.zero_grad, model::ZeroGrad::step_start);
  EXPECT_EQ(all.runs[0].job.optimizer, model::Optimizer::sgd);
  EXPECT_EQ(all.runs[0].gpu, "rtx4060");
  EXPECT_EQ(all.runs[1].job.sequence_length, 128);
  EXPECT_EQ(all.runs[1].gpu, "a100-40gb");
}

TEST(XmemCsv, ARunThatFailedForWantOfMemoryHasNoFigure) {
  const MeasuredRuns all = xmem_runs("mc-cnn,small,SGD,1,RTX 3060,0,true,1\nmc-cnn,small,SGD,1,RTX 3060,0,false,1\n");
  ASSERT_EQ(all.runs.size(), 2U);
  EXPECT_TRUE(all.runs[0].out_of_memory);
  EXPECT_EQ(all.runs[0].measured_mib, std::nullopt);
  EXPECT_FALSE(all.runs[1].out_of_memory);
}

TEST(XmemCsv, ReadsWhatOthersSaidOfARun) {
  const std::string header =
      "model,optimizer,batch_size,gpu,real_oom,ground_truth_peak_bytes,xmem_bytes,xmem_pred_oom,xmem_fail_when_capped,"
      "dnnmem_bytes,dnnmem_pred_oom,dnnmem_fail_when_capped,llmem_bytes,llmem_pred_oom,llmem_fail_when_capped\n";
  const auto table =
      core::parse_csv(header + "small,SGD,1,RTX 3060,false,1,2097152,false,true,1048576,true,,-1,true,\n");
  ASSERT_TRUE(succeeds(table));
  const auto all = xmem_csv().read(*table, testing::small_shelf());
  ASSERT_TRUE(succeeds(all));
  const std::vector<PublishedEstimate>& published = all->runs.at(0).published;
  ASSERT_EQ(published.size(), 2U);  // schedtune said nothing, and llmem does not know the model
  EXPECT_EQ(published[0].estimator, "xmem");
  EXPECT_EQ(published[0].expected_mib, 2.0);
  EXPECT_EQ(published[0].out_of_memory, false);
  EXPECT_EQ(published[0].failed_when_capped, true);
  EXPECT_EQ(published[1].estimator, "dnnmem");
  EXPECT_EQ(published[1].expected_mib, std::nullopt);  // where its simulation stopped
  EXPECT_EQ(published[1].out_of_memory, true);
  EXPECT_EQ(published[1].failed_when_capped, std::nullopt);
}

TEST(XmemCsv, ReportsWhatIsWrongWithARow) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"mc-cnn,other,SGD,1,RTX 3060,0,false,1", "there is no summary other.json or .txt"},
      {"mc-cnn,small,Rprop,1,RTX 3060,0,false,1", "no optimizer 'Rprop'"},
      {"mc-cnn,small,SGD,,RTX 3060,0,false,1", "the batch size is 0"},
      {"mc-cnn,small,SGD,1,RTX 3060,3,false,1", "must be null, 0, 1 or 2"},
      {"mc-cnn,small,SGD,1,RTX 3060,0,perhaps,1", "real_oom is 'perhaps'"},
      {"mc-cnn,small,SGD,1,RTX 3060,0,false,much", "ground_truth_peak_bytes is 'much'"},
  };
  for (const auto& [row, message] : rows) {
    const MeasuredRuns all = xmem_runs(std::string(row) + "\n");
    ASSERT_EQ(all.runs.size(), 1U) << row;
    ASSERT_TRUE(all.runs[0].error) << row;
    EXPECT_NE(all.runs[0].error->message.find(message), std::string::npos) << all.runs[0].error->message;
  }
}

TEST(XmemCsv, NeedsAFolderWithSummaries) {
  RunsOptions options = testing::small_shelf();
  options.summaries.clear();
  const MeasuredRuns all = xmem_runs("mc-cnn,small,SGD,1,RTX 3060,0,false,1\n", options);
  ASSERT_TRUE(all.runs.at(0).error);
  EXPECT_NE(all.runs[0].error->message.find("`summaries`"), std::string::npos);
}

}  // namespace
}  // namespace gpumem::datasets
