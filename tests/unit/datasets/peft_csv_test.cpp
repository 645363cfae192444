#include "gpumem_datasets/runs_tables.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "run_tables.hpp"

namespace gpumem::datasets {
namespace {

const std::string kHeader =
    "task,name,method,model,base_dtype,adapter_dtype,batch,checkpointing,optimizer,adapter_file,reserved_p99_bytes,"
    "gpu,max_seq_or_resolution\n";

/// The one run of a table with this row. All figures are made up.
MeasuredRun read_one(const std::string& row) {
  const auto table = core::parse_csv(kHeader + row + "\n", "data/runs.csv");
  EXPECT_TRUE(testing::succeeds(table));
  EXPECT_TRUE(peft_csv().sniff(*table));
  RunsOptions options = testing::small_shelf();
  options.parse_summary = [](std::string_view, const std::string& name) -> core::Result<model::ModelGraph> {
    return testing::small_model(name);
  };
  const auto all = peft_csv().read(*table, options);
  EXPECT_TRUE(testing::succeeds(all));
  return all->runs.at(0);
}

TEST(PeftCsv, NamesWhatIsMissing) {
  const MeasuredRun image =
      read_one("image-gen,a,FULL,who/paints,bfloat16,float32,2,False,AdamW,,1048576,NVIDIA L40S,512");
  ASSERT_TRUE(image.error);
  EXPECT_EQ(image.refusal, "a model that is not read");
  EXPECT_EQ(image.gpu, "l40s-48gb");
  EXPECT_EQ(image.measured_mib, 1.0);
  EXPECT_EQ(image.figure, Figure::reserved);
  const MeasuredRun file =
      read_one("MetaMathQA,a,LORA,who/talks,bfloat16,float32,4,False,AdamW,none.json,1048576,NVIDIA L40S,768");
  ASSERT_TRUE(file.error);
  EXPECT_NE(core::to_string(*file.error).find("none.json"), std::string::npos) << core::to_string(*file.error);
  const MeasuredRun model =
      read_one("MetaMathQA,a,FULL,who/talks,bfloat16,float32,4,False,AdamW,,1048576,NVIDIA L40S,768");
  ASSERT_TRUE(model.error);
  EXPECT_EQ(model.refusal, "a model that is not read");
}

TEST(PeftCsv, ReadsRunsOfImages) {
  const MeasuredRun run = read_one(
      "image-gen,a,FULL,black-forest-labs/FLUX.2-klein-base-4B,bfloat16,float32,2,True,AdamW,,1048576,"
      "NVIDIA L40S,512");
  ASSERT_FALSE(run.error) << core::to_string(*run.error);
  EXPECT_EQ(run.job.batch_size, 2);
  EXPECT_EQ(run.job.image, (std::vector<std::int64_t>{512, 512}));
  EXPECT_EQ(run.job.sequence_length, 512);
  EXPECT_TRUE(run.job.activation_checkpointing);
  EXPECT_EQ(run.job.precision, model::Precision::bf16);
}

TEST(PeftCsv, AsksForItsColumns) {
  const auto table = core::parse_csv("adapter_file,reserved_p99_bytes\na,1\n", "data/runs.csv");
  ASSERT_TRUE(testing::succeeds(table));
  const auto all = peft_csv().read(*table, {});
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().message.find("has no column 'name'"), std::string::npos) << all.error().message;
}

}  // namespace
}  // namespace gpumem::datasets
