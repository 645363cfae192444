#include "gpumem/summary/text.hpp"

#include "expect.hpp"

namespace gpumem::summary {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::succeeds;

TEST(Lines, EndInLfOrCrLf) {
  Lines lines("a\r\nb\n\nc");
  std::vector<std::string> all;
  while (lines.next()) all.push_back(std::to_string(lines.number()) + std::string(lines.line()));
  EXPECT_EQ(all, (std::vector<std::string>{"1a", "2b", "3", "4c"}));
}

TEST(Lines, AreNumberedInTheWholeText) {
  Lines lines("a\nb\nc", 2);
  ASSERT_TRUE(lines.next());
  EXPECT_EQ(lines.line(), "b");
  EXPECT_EQ(lines.number(), 2);
  EXPECT_EQ(lines.offset(), 4U);
}

TEST(Lines, OfAnEmptyTextAreNone) { EXPECT_FALSE(Lines("").next()); }

TEST(IsIdentifier, TakesPythonNamesAndDots) {
  EXPECT_TRUE(is_identifier("torch.nn.Conv2d"));
  EXPECT_TRUE(is_identifier("_x1"));
  EXPECT_FALSE(is_identifier("1x"));
  EXPECT_FALSE(is_identifier("a-b"));
  EXPECT_FALSE(is_identifier(""));
}

TEST(IsRule, IsALineOfOneCharacter) {
  EXPECT_TRUE(is_rule("==========", '='));
  EXPECT_TRUE(is_rule("  ==========\r", '='));
  EXPECT_FALSE(is_rule("=========", '='));
  EXPECT_FALSE(is_rule("=====-====", '='));
}

TEST(ParseCount, ReadsThousandsSeparators) {
  EXPECT_EQ(*parse_count("0"), 0);
  EXPECT_EQ(*parse_count("9408"), 9408);
  EXPECT_EQ(*parse_count("9,408"), 9408);
  EXPECT_EQ(*parse_count("25,557,032"), 25557032);
  EXPECT_EQ(*parse_count("9,223,372,036,854,775,807"), INT64_MAX);
}

TEST(ParseCount, RefusesWhatIsNoCount) {
  for (const char* wrong : {"", "-1", "1,23", "1,2345", ",123", "1,", "1,,234", "12a", "1.5", "1 000", "--", "+1",
                            "1234,567", "0x10", "1e6"}) {
    EXPECT_TRUE(fails(parse_count(wrong), ErrorCode::malformed_input, 0, "is not a count")) << wrong;
  }
}

TEST(ParseCount, RefusesWhatDoesNotFitSixtyFourBits) {
  EXPECT_TRUE(fails(parse_count("9223372036854775808"), ErrorCode::overflow, 0, "64 bits"));
  EXPECT_TRUE(fails(parse_count("99,999,999,999,999,999,999"), ErrorCode::overflow, 0, "64 bits"));
}

std::string shapes_text(std::string_view text, std::int64_t batch = 0) {
  std::vector<core::Shape> shapes;
  const core::Status read = parse_shapes(text, batch, shapes);
  if (!read) return read.error().message;
  std::string result;
  for (const core::Shape& shape : shapes) result += core::to_string(shape);
  return result;
}

TEST(ParseShapes, ReadsABatchOfMinusOneOrNone) {
  EXPECT_EQ(shapes_text("[-1, 64, 112, 112]"), "[N, 64, 112, 112]");
  EXPECT_EQ(shapes_text("(None, 224, 224, 3)"), "[N, 224, 224, 3]");
  EXPECT_EQ(shapes_text("(None,None,3)"), "[N, ?, 3]");
}

TEST(ParseShapes, TakesMultiplesOfTheBatchToGrowWithIt) {
  EXPECT_EQ(shapes_text("[32, 64, 7]", 32), "[N, 64, 7]");
  EXPECT_EQ(shapes_text("[2048, 49, 96]", 32), "[64N, 49, 96]");
  EXPECT_EQ(shapes_text("[33, 32]", 32), "[33, 32]");
  EXPECT_EQ(shapes_text("[32, 64]", 0), "[32, 64]");
}

TEST(ParseShapes, EveryInnermostListIsAShape) {
  EXPECT_EQ(shapes_text("[[-1, 5, 512], [-1, 5, 5]]"), "[N, 5, 512][N, 5, 5]");
  EXPECT_EQ(shapes_text("[(None, 7)]"), "[N, 7]");
  EXPECT_EQ(shapes_text("[[[-1, 1], [-1, 2]], [-1, 3]]"), "[N, 1][N, 2][N, 3]");
  EXPECT_EQ(shapes_text("[]"), "");
}

TEST(ParseShapes, RefusesWhatIsNoShape) {
  std::vector<core::Shape> shapes;
  for (const char* wrong : {"[-1, 64", "[-1, 64]]", "-1, 64", "[-1, x]", "[-1, -64]", "[-1, 0]", "[3, [4]]", "[-]",
                            "[1, 2, 3, 4, 5, 6, 7, 8, 9]"}) {
    EXPECT_TRUE(fails(parse_shapes(wrong, 0, shapes), ErrorCode::malformed_input, 0, "")) << wrong;
  }
  EXPECT_TRUE(fails(parse_shapes("[-1, 9223372036854775808]", 0, shapes), ErrorCode::overflow, 0, "64 bits"));
}

TEST(PrintedBatch, IsTheFirstDimensionOfTheFirstList) {
  EXPECT_EQ(printed_batch("[32, 3, 224, 224]"), 32);
  EXPECT_EQ(printed_batch("[[16, 5], [8, 5]]"), 16);
  EXPECT_EQ(printed_batch("[-1, 3]"), std::nullopt);
  EXPECT_EQ(printed_batch("(None, 3)"), std::nullopt);
  EXPECT_EQ(printed_batch(""), std::nullopt);
}

TEST(ParseTotal, ReadsTheTotalOfEveryTable) {
  EXPECT_EQ(**parse_total("Total params: 25,557,032"), 25557032);
  EXPECT_EQ(**parse_total(" Total params: 25,636,712 (97.80 MB)"), 25636712);
  EXPECT_FALSE(parse_total("Trainable params: 3").has_value());
  EXPECT_TRUE(fails(*parse_total("Total params: many"), ErrorCode::malformed_input, 0, "'many'"));
}

TEST(FindHeader, GivesTheLineAndTheOneAboveIt) {
  const std::string_view text = "prose\n-----\n  Layer (type)  Shape\nrow";
  std::string seen;
  const auto at = find_header(text, 0, [&](std::string_view above, std::string_view line) {
    seen = std::string(above) + "|" + std::string(line);
    return true;
  });
  EXPECT_EQ(at, 12U);
  EXPECT_EQ(seen, "-----|  Layer (type)  Shape");
}

TEST(FindHeader, LooksAtALongLineOnce) {
  std::string text;
  for (int copy = 0; copy < 1000; ++copy) text += "Layer (type) ";
  int looks = 0;
  const auto at = find_header(text, 0, [&](std::string_view, std::string_view) {
    ++looks;
    return false;
  });
  EXPECT_EQ(at, std::nullopt);
  EXPECT_EQ(looks, 1);
}

}  // namespace
}  // namespace gpumem::summary
