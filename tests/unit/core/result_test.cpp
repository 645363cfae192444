#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "gpumem/core/result.hpp"

namespace gpumem::core {
namespace {

struct CodeFacts {
  ErrorCode code;
  std::string_view name;
  int exit;
};

constexpr std::array<CodeFacts, 9> kCodes = {{{ErrorCode::invalid_argument, "invalid_argument", 2},
                                              {ErrorCode::unknown_gpu, "unknown_gpu", 2},
                                              {ErrorCode::unreadable_file, "unreadable_file", 3},
                                              {ErrorCode::unknown_format, "unknown_format", 3},
                                              {ErrorCode::malformed_input, "malformed_input", 3},
                                              {ErrorCode::unknown_layer, "unknown_layer", 3},
                                              {ErrorCode::missing_information, "missing_information", 4},
                                              {ErrorCode::overflow, "overflow", 4},
                                              {ErrorCode::deadline_exceeded, "deadline_exceeded", 4}}};

TEST(Error, CodesHaveTheDocumentedNamesAndExitCodes) {
  for (const CodeFacts& row : kCodes) {
    EXPECT_EQ(to_string(row.code), row.name);
    EXPECT_EQ(exit_code(row.code), row.exit) << row.name;
  }
}

TEST(Error, PrintsFileLineAndElement) {
  EXPECT_EQ(to_string(Error{ErrorCode::malformed_input, "is bad", {"a.txt", 7, "fc"}}), "a.txt:7: fc: is bad");
}

TEST(Error, LeavesOutWhatIsUnknown) {
  EXPECT_EQ(to_string(Error{ErrorCode::malformed_input, "is bad", {"a.txt", 0, {}}}), "a.txt: is bad");
  EXPECT_EQ(to_string(Error{ErrorCode::malformed_input, "is bad", {"", 7, {}}}), "line 7: is bad");
  EXPECT_EQ(to_string(Error{ErrorCode::malformed_input, "is bad", {"", 0, "fc"}}), "fc: is bad");
  EXPECT_EQ(to_string(Error{ErrorCode::malformed_input, "is bad", {}}), "is bad");
}

TEST(Error, InFileKeepsAFileThatIsNamedAlready) {
  EXPECT_EQ((Error{ErrorCode::overflow, "m", {}}.in_file("a.txt").place.file), "a.txt");
  EXPECT_EQ((Error{ErrorCode::overflow, "m", {"b.txt", 0, {}}}.in_file("a.txt").place.file), "b.txt");
}

TEST(Quoted, ReplacesControlBytes) {
  EXPECT_EQ(core::quoted("plain"), "'plain'");
  EXPECT_EQ(core::quoted("a\x1b[31m\tb\x7f"), "'a?[31m?b?'");
}

TEST(Quoted, CutsLongText) {
  EXPECT_EQ(core::quoted(std::string(60, 'x')), "'" + std::string(60, 'x') + "'");
  EXPECT_EQ(core::quoted(std::string(61, 'x')), "'" + std::string(60, 'x') + "...'");
}

TEST(Quoted, NeverCutsACharacterInHalf) {
  EXPECT_EQ(core::quoted(std::string(59, 'x') + "││"), "'" + std::string(59, 'x') + "...'");
}

Result<std::string> value() { return std::string("value"); }
Result<std::string> error() { return Error{ErrorCode::overflow, "too much", {}}; }

TEST(Result, HoldsAValue) {
  const Result<std::string> result = value();
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.has_value());
  EXPECT_EQ(*result, "value");
  EXPECT_EQ(result->size(), 5U);
}

TEST(Result, HoldsAnError) {
  const Result<std::string> result = error();
  ASSERT_FALSE(result);
  EXPECT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::overflow);
  EXPECT_EQ(result.error().message, "too much");
}

TEST(Result, GivesUpAValueThatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 3);
}

TEST(Result, IsTrueForAnyValueEvenZero) {
  const Result<int> number = 0;
  EXPECT_TRUE(number) << "zero is a value";
}

TEST(Status, IsDoneOrAnError) {
  EXPECT_TRUE(Status(Done{}));
  EXPECT_FALSE(Status(Error{ErrorCode::overflow, "m", {}}));
}

constexpr std::array<std::string_view, 4> kKnown = {"adam", "adamw", "sgd-momentum", "lion"};

TEST(Nearest, ForgivesCaseDashesAndALetter) {
  EXPECT_EQ(nearest("AdamW", kKnown), "adamw");
  EXPECT_EQ(nearest("sgd_momentun", kKnown), "sgd-momentum");
  EXPECT_EQ(nearest("lino", kKnown), "lion");
}

TEST(Nearest, SaysNothingOfWhatIsFarOrAmbiguous) {
  EXPECT_EQ(nearest("adamm", kKnown), "");  // adam and adamw are as near
  EXPECT_EQ(nearest("rmsprop", kKnown), "");
  EXPECT_EQ(nearest("", kKnown), "");
  EXPECT_EQ(nearest(std::string(1000, 'a'), kKnown), "");
}

TEST(DidYouMean, IsPartOfAMessageOrEmpty) {
  EXPECT_EQ(did_you_mean("lino", kKnown), " (did you mean 'lion'?)");
  EXPECT_EQ(did_you_mean("rmsprop", kKnown), "");
}

TEST(CheckWord, NamesWhatIsKnownAndWhatIsNear) {
  constexpr std::string_view kWords = "adam adamw sgd-momentum lion";
  EXPECT_TRUE(check_word("optimizer", "lion", kWords));
  const Status wrong = check_word("optimizer", "lino", kWords);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(wrong.error().message.starts_with("optimizer: 'lino' is none of ")) << wrong.error().message;
  EXPECT_TRUE(wrong.error().message.ends_with(" (did you mean 'lion'?)")) << wrong.error().message;
}

TEST(Listed, TextsAsInASentence) {
  EXPECT_EQ(listed(std::vector<std::string>{}), "");
  EXPECT_EQ(listed(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(listed(std::vector<std::string_view>{"a", "b"}), "a and b");
  EXPECT_EQ(listed(std::array<std::string_view, 3>{"a", "b", "b"}), "a, b and b");
}

}  // namespace
}  // namespace gpumem::core
