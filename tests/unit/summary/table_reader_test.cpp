#include "gpumem/summary/table_reader.hpp"

#include "graphs.hpp"

namespace gpumem::summary {
namespace {

using testing::describe;
using testing::Described;
using testing::succeeds;
using testing::warnings;

/// A torchinfo table of two rows with these output shapes.
std::string table_of(std::string_view first, std::string_view second) {
  const std::string rule(60, '=');
  return rule + "\nLayer (type:depth-idx)   Output Shape   Param #\n" + rule + "\n├─ReLU: 1-1   " + std::string(first) +
         "   --\n├─ReLU: 1-2   " + std::string(second) + "   --\n" + rule + "\n";
}

TEST(TableReader, ScalesShapesFromTheFirstOnesBatch) {
  const auto graph = parse_summary(table_of("[32, 3]", "[64, 3]"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->printed_batch_size(), 32);
  EXPECT_EQ(describe(*graph), (Described{"relu ReLU: 1-1 [N, 3] 0", "relu ReLU: 1-2 [2N, 3] 0"}));
  EXPECT_TRUE(warnings(*graph).empty());
}

TEST(TableReader, KnowsNoBatchWhereNoneIsPrinted) {
  const auto graph = parse_summary(table_of("[-1, 3]", "[-1, 7]"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->printed_batch_size(), std::nullopt);
}

TEST(TableReader, SaysThatBatchOneDoesNotTellTheBatchAxis) {
  const auto graph = parse_summary(table_of("[1, 3]", "[197, 3]"));
  ASSERT_TRUE(succeeds(graph));
  ASSERT_EQ(warnings(*graph).size(), 1U);
  EXPECT_NE(warnings(*graph)[0].find("5: the summary is printed at batch 1"), std::string::npos);
}

}  // namespace
}  // namespace gpumem::summary
