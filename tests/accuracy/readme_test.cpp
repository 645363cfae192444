#include "readme.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"

namespace gpumem::accuracy {
namespace {

using testing::fails;
using testing::succeeds;

const std::vector<ReadmeTable> kReadmeTables = {
    {"runs", "| runs | error |\n|---|---|\n", {{"MLPs", "| 5 MLPs | 1 % |\n"}, {"CNNs", std::nullopt}}},
    {"learned", "| model |\n|---|\n", {{"`a`", "| `a` |\n"}}, true}};

std::string between_marks(const std::string& name, const std::string& table) {
  return "before\n<!-- accuracy: begin " + name + " -->\n" + table + "<!-- accuracy: end -->\nafter | MLPs |\n";
}

std::string rewrite(const std::string& text) {
  const auto anew = rewritten(text, kReadmeTables, "README.md");
  EXPECT_TRUE(succeeds(anew));
  return anew ? *anew : "";
}

TEST(Readme, ARowWhoseRunsAreNotAtHandStandsAsItIs) {
  const std::string old = "| runs |\n|---|\n| 7 Transformers |\n| 4 CNNs | 3 % |\n| 4 MLPs | 2 % |\n";
  const std::string anew = "| runs | error |\n|---|---|\n| 5 MLPs | 1 % |\n| 4 CNNs | 3 % |\n| 7 Transformers |\n";
  EXPECT_EQ(rewrite(between_marks("runs", old)), between_marks("runs", anew));
  EXPECT_EQ(rewrite(between_marks("runs", anew)), between_marks("runs", anew));
}

TEST(Readme, AnEmptyTableIsFilled) {
  EXPECT_EQ(rewrite(between_marks("runs", "")),
            between_marks("runs", "| runs | error |\n|---|---|\n| 5 MLPs | 1 % |\n"));
}

TEST(Readme, AWholeTableLosesTheRowsOfOthers) {
  EXPECT_EQ(rewrite(between_marks("learned", "| model |\n|---|\n| `old` |\n| `a` |\n")),
            between_marks("learned", "| model |\n|---|\n| `a` |\n"));
}

TEST(Readme, MarksThatAreWrongAreErrors) {
  const auto code = core::ErrorCode::malformed_input;
  EXPECT_TRUE(
      fails(rewritten("no mark\n", kReadmeTables, "README.md"), code, 0, "has no <!-- accuracy: begin NAME -->"));
  EXPECT_TRUE(fails(rewritten("\n<!-- accuracy: end -->\n", kReadmeTables), code, 2, "nothing begins"));
  EXPECT_TRUE(fails(rewritten("a\n<!-- accuracy: begin runs -->\n| x |\n", kReadmeTables), code, 2, "does not end"));
  EXPECT_TRUE(fails(rewritten(between_marks("other", ""), kReadmeTables), code, 2, "no table 'other'"));
}

TEST(Readme, SaysWhichRunsAreNotAtHand) { EXPECT_EQ(not_at_hand(kReadmeTables), std::vector<std::string>{"CNNs"}); }

TEST(ReadmeTables, TakeCrossValidationFromTheConfigs) {
  ml::ModelConfig bins;
  bins.name = "gpumemnet-mlp-cnn";
  bins.nets = ml::NetKind::cnn;
  bins.head.edges_mib = {0, 8000, 16000, 26000};
  bins.provenance = {{"data", "made-up: no measured runs"}};
  bins.accuracy = {{"rows", 1234}, {"accuracy", 0.5}, {"underestimated", 0.25}};
  ml::ModelConfig corrector;
  corrector.name = "corrector";
  corrector.head.names = {"rule"};
  corrector.accuracy = {
      {"rows", 10},      {"mean_relative_error", 0.03}, {"median_relative_error", 0.01}, {"right_class", 0.95},
      {"covered", 0.94}, {"upper_ratio", 1.1}};
  const std::vector<ml::ModelConfig> models = {corrector, bins};
  const std::vector<ReadmeTable> tables = readme_tables({}, models);
  ASSERT_EQ(tables.size(), 4U);
  for (const ReadmeRow& row : tables[0].rows) EXPECT_FALSE(row.line) << row.key;
  ASSERT_EQ(tables[2].rows.size(), 1U);
  EXPECT_EQ(tables[2].rows[0].line.value_or(""),
            "| `gpumemnet-mlp-cnn` | 1,234 CNNs: made-up: **no measured runs**; bins of 8,000 MiB and out of memory | "
            "50.0 % | 25.0 % | 88.3 % |\n");
  EXPECT_EQ(tables[3].rows.at(1).line.value_or(""),
            "| `replay-corrected` with `corrector`, on nets it did not see (10) | 3.00 % | 1.00 % | 95.0 % | 94.0 % at "
            "1.100 |\n");
}

}  // namespace
}  // namespace gpumem::accuracy
