#include "gpumem/job/job_options.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "option_values.hpp"

namespace gpumem::job {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

/// The request that a table of one column and one row says.
core::Result<JobRequest> read(std::string_view column, const std::string& cell) {
  const auto table = core::parse_csv("other," + std::string(column) + "\nx," + cell + "\n", "jobs.csv");
  if (!table) return table.error();
  JobRequest request;
  const core::Status taken = take_option_cells(core::CsvCells(*table, table->rows.at(0)), request);
  if (!taken) return taken.error();
  return request;
}

TEST(OptionColumns, HoldEveryOptionThatSaysHowAJobIsTrained) {
  for (const JobOption& option : job_options()) {
    const JobRequest expected = option.place.in_training ? testing::with_other_value(option) : JobRequest();
    const auto named = read(option.name, testing::other_value(option));
    ASSERT_TRUE(succeeds(named)) << option.name;
    EXPECT_EQ(*named, expected) << option.name;
    for (const std::string_view alias : option.aliases) {
      if (alias.empty()) continue;
      const auto renamed = read(alias, testing::other_value(option));
      ASSERT_TRUE(succeeds(renamed)) << alias;
      EXPECT_EQ(*renamed, expected) << alias;
    }
    const auto empty = read(option.name, "");
    ASSERT_TRUE(succeeds(empty)) << option.name;
    EXPECT_EQ(*empty, JobRequest()) << option.name;
  }
}

TEST(OptionColumns, ASwitchIsYesOrNoOrAKind) {
  EXPECT_TRUE(read("checkpointing", "yes")->training.activation_checkpointing);
  EXPECT_FALSE(read("checkpointing", "no")->training.activation_checkpointing);
  EXPECT_EQ(read("checkpointing", "selective-op")->training.checkpoints.kind, model::Checkpoints::selective_op);
  EXPECT_EQ(*read("checkpointing", "none"), JobRequest());
}

TEST(OptionColumns, NameTheColumnOfAWrongCell) {
  EXPECT_TRUE(fails(read("checkpointing", "some"), ErrorCode::malformed_input, 2, "choose one of none, full"));
  EXPECT_TRUE(fails(read("optimizer", "adamm"), ErrorCode::malformed_input, 2, "optimizer is 'adamm'; choose one of"));
  EXPECT_TRUE(fails(read("input", "3x"), ErrorCode::malformed_input, 2, "input is '3x'; it must be of the form"));
  EXPECT_TRUE(fails(read("gradient_accumulation", "many"), ErrorCode::malformed_input, 2, "gradient_accumulation"));
  EXPECT_TRUE(fails(read("fused", "perhaps"), ErrorCode::malformed_input, 2, "fused is 'perhaps'"));
}

}  // namespace
}  // namespace gpumem::job
