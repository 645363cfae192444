#include "gpumem/core/csv.hpp"

#include <gtest/gtest.h>

#include "expect.hpp"

namespace gpumem::core {
namespace {

using testing::fails;
using testing::succeeds;
using Cells = std::vector<std::string>;

TEST(Csv, ReadsHeaderAndRowsWithTheirLines) {
  const auto table = parse_csv("a,b\n1,2\n\n3,\n", "t.csv");
  ASSERT_TRUE(succeeds(table));
  EXPECT_EQ(table->file, "t.csv");
  EXPECT_EQ(table->header, (Cells{"a", "b"}));
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_EQ(table->rows[0].cells, (Cells{"1", "2"}));
  EXPECT_EQ(table->rows[0].line, 2);
  EXPECT_EQ(table->rows[1].cells, (Cells{"3", ""}));
  EXPECT_EQ(table->rows[1].line, 4);
  EXPECT_EQ(table->find("b"), std::optional<std::size_t>(1));
  EXPECT_FALSE(table->has("c"));
}

TEST(Csv, TakesWhatSpreadsheetsWrite) {
  const auto table = parse_csv(
      "\xEF\xBB\xBF"
      "a,b\r\n\"x, \"\"y\"\"\",\"two\r\nlines\"\r\nlast,row");
  ASSERT_TRUE(succeeds(table));
  EXPECT_EQ(table->header, (Cells{"a", "b"}));
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_EQ(table->rows[0].cells, (Cells{"x, \"y\"", "two\r\nlines"}));
  EXPECT_EQ(table->rows[1].cells, (Cells{"last", "row"}));
  EXPECT_EQ(table->rows[1].line, 4);
}

TEST(Csv, NamesTheLineOfWhatBreaksIt) {
  const auto malformed = ErrorCode::malformed_input;
  EXPECT_TRUE(fails(parse_csv(""), malformed, 1, "is empty"));
  EXPECT_TRUE(fails(parse_csv("\n\r\n"), malformed, 1, "is empty"));
  EXPECT_TRUE(fails(parse_csv(std::string_view("a\n\0", 3)), malformed, 1, "is binary"));
  EXPECT_TRUE(fails(parse_csv("a,b,a\n"), malformed, 1, "the column 'a' twice"));
  EXPECT_TRUE(fails(parse_csv("a,b\n1,2\n1\n"), malformed, 3, "has 1 fields; the header has 2"));
  EXPECT_TRUE(fails(parse_csv("a,b\n1,2,3\n"), malformed, 2, "has 3 fields"));
  EXPECT_TRUE(fails(parse_csv("a\nx\"y\n"), malformed, 2, "a quote inside a field"));
  EXPECT_TRUE(fails(parse_csv("a\n\"x\"y\n"), malformed, 2, "text after a closing quote"));
  EXPECT_TRUE(fails(parse_csv("a\n\"x\n\n"), malformed, 2, "a quote that is never closed"));
  EXPECT_TRUE(fails(parse_csv("a\nx\ry\n"), malformed, 2, "a carriage return that ends no line"));
}

TEST(Csv, IsBounded) {
  EXPECT_TRUE(fails(parse_csv(std::string(kMostCsvColumns, ',')), ErrorCode::malformed_input, 1, "1,000 columns"));
  EXPECT_TRUE(fails(parse_csv(std::string(kLongestCsvField + 1, 'x')), ErrorCode::malformed_input, 1, "1 MiB"));
}

class OneRow : public ::testing::Test {
 protected:
  CsvTable table_ = {"t.csv",
                     {"empty", "seven", "half", "yes", "word", "minus", "long"},
                     {{5, {"", "7", "0.5", "Yes", "word", "-1", "99999999999999999999"}}}};
  CsvCells cells_{table_, table_.rows[0]};
};

TEST_F(OneRow, ReadsCellsAsWhatTheyShouldBe) {
  EXPECT_EQ(cells_.text("word"), "word");
  EXPECT_EQ(*cells_.whole("seven"), std::optional<std::int64_t>(7));
  EXPECT_EQ(*cells_.whole("minus"), std::optional<std::int64_t>(-1));
  EXPECT_EQ(*cells_.number("half"), std::optional(0.5));
  EXPECT_EQ(*cells_.flag("yes"), std::optional(true));
}

TEST_F(OneRow, AnEmptyCellAndAMissingColumnHoldNothing) {
  for (const char* column : {"empty", "missing"}) {
    EXPECT_EQ(cells_.text(column), "");
    EXPECT_EQ(*cells_.whole(column), std::nullopt);
    EXPECT_EQ(*cells_.number(column), std::nullopt);
    EXPECT_EQ(*cells_.flag(column), std::nullopt);
  }
}

TEST_F(OneRow, NamesLineAndColumnOfAWrongCell) {
  EXPECT_TRUE(fails(cells_.whole("word"), ErrorCode::malformed_input, 5, "word is 'word'"));
  EXPECT_TRUE(fails(cells_.whole("half"), ErrorCode::malformed_input, 5, "a whole number"));
  EXPECT_TRUE(fails(cells_.whole("long"), ErrorCode::malformed_input, 5, "64 bits"));
  EXPECT_TRUE(fails(cells_.number("minus"), ErrorCode::malformed_input, 5, "not negative"));
  EXPECT_TRUE(fails(cells_.number("word"), ErrorCode::malformed_input, 5, "must be a number"));
  EXPECT_TRUE(fails(cells_.flag("word"), ErrorCode::malformed_input, 5, "true or false"));
  EXPECT_EQ(cells_.number("word").error().place.file, "t.csv");
}

TEST(CsvField, IsQuotedOnlyWhereItMustBe) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  for (const char* text : {"a,b", "say \"x\"", "two\nlines", "a\r"}) {
    const auto table = parse_csv("h\n" + csv_field(text) + "\n");
    ASSERT_TRUE(succeeds(table));
    EXPECT_EQ(table->rows[0].cells[0], text);
  }
}

}  // namespace
}  // namespace gpumem::core
