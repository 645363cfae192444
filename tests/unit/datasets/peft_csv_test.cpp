#include "gpumem_datasets/peft_csv.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "run_tables.hpp"

namespace gpumem::datasets {
namespace {

const std::string kHeader =
    "task,name,method,model,base_dtype,adapter_dtype,batch,checkpointing,optimizer,adapter_file,reserved_p99_bytes,"
    "gpu\n";

/// The one run of a table with this row. All figures are made up.
MeasuredRun read_one(const std::string& row) {
  const auto table = core::parse_csv(kHeader + row + "\n", "data/runs.csv");
  EXPECT_TRUE(testing::succeeds(table));
  EXPECT_TRUE(peft_csv().sniff(*table));
  const RunsOptions options = testing::small_shelf();
  const auto all = peft_csv().read(*table, options);
  EXPECT_TRUE(testing::succeeds(all));
  return all->runs.at(0);
}

TEST(PeftCsv, NamesWhatIsMissing) {
  const MeasuredRun image =
      read_one("image-gen,a,LORA,who/paints,bfloat16,float32,2,False,AdamW,none.json,1048576,NVIDIA L40S");
  ASSERT_TRUE(image.error);
  EXPECT_EQ(image.refusal, "a model that is not read");
  EXPECT_EQ(image.gpu, "l40s-48gb");
  EXPECT_EQ(image.measured_mib, 1.0);
  EXPECT_EQ(image.figure, Figure::reserved);
  const MeasuredRun file =
      read_one("MetaMathQA,a,LORA,who/talks,bfloat16,float32,4,False,AdamW,none.json,1048576,NVIDIA L40S");
  ASSERT_TRUE(file.error);
  EXPECT_NE(core::to_string(*file.error).find("none.json"), std::string::npos) << core::to_string(*file.error);
  const MeasuredRun model = read_one("MetaMathQA,a,FULL,who/talks,bfloat16,float32,4,False,AdamW,,1048576,NVIDIA L40S");
  ASSERT_TRUE(model.error);
  EXPECT_EQ(model.refusal, "a model that is not read");
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
