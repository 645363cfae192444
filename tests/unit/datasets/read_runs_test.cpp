#include "gpumem_datasets/runs_format.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"
#include "run_tables.hpp"

namespace gpumem::datasets {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

std::string format_of(std::string_view header) {
  const auto all = parse_runs(header, testing::small_shelf(), "t.csv");
  EXPECT_TRUE(succeeds(all));
  return all ? all->format : "";
}

TEST(ReadRuns, KnowsATableByItsHeader) {
  EXPECT_EQ(format_of("summary,batch_size,input,seq_length,optimizer,precision,gpu,measured_mib\n"), "runs");
  EXPECT_EQ(format_of("Filename,Activations-Params,Batch Size,Max GPU Memory (MiB)\n"), "gpumemnet");
  EXPECT_EQ(format_of("model,real_oom,ground_truth_peak_bytes\n"), "xmem");
}

TEST(ReadRuns, NamesTheTablesItKnows) {
  const auto all = parse_runs("a,b\n", testing::small_shelf(), "t.csv");
  for (const RunsFormat* format : runs_formats()) {
    EXPECT_TRUE(fails(all, ErrorCode::unknown_format, 1, format->name));
  }
}

TEST(ReadRuns, SaysWhyAFileCannotBeRead) {
  EXPECT_TRUE(
      fails(read_runs("/nowhere/runs.csv", testing::small_shelf()), ErrorCode::unreadable_file, 0, "cannot open"));
  EXPECT_TRUE(fails(parse_runs("a\n\"", testing::small_shelf()), ErrorCode::malformed_input, 2, "never closed"));
}

}  // namespace
}  // namespace gpumem::datasets
