#include "gpumem/core/json.hpp"

#include <limits>
#include <vector>

#include "expect.hpp"

namespace gpumem::core {
namespace {

using testing::fails;
using testing::succeeds;
using Kind = JsonValue::Kind;

/// The JSON pointer in the error of this text; "no error" if it has none.
std::string pointer_of(std::string_view text, const JsonLimits& limits = {}) {
  const auto document = JsonDocument::parse(text, limits);
  return document ? "no error" : document.error().place.element;
}

TEST(JsonDocument, HoldsTheValuesInOrder) {
  // A text with an escape is read by the full parser, the other by the one of plain JSON: alike.
  for (const std::string text : {R"({"b": [1, -2.5, true], "a": {"c": "x"}, "d": null})",
                                 R"({"b": [1, -2.5, true], "a": {"c": "\u0078"}, "d": null})"}) {
    const auto document = JsonDocument::parse(text);
    ASSERT_TRUE(succeeds(document));
    const JsonValue& root = document->root();
    ASSERT_TRUE(root.is(Kind::object));
    std::vector<std::string_view> keys;
    for (const JsonValue& field : root.items()) keys.push_back(field.key());
    EXPECT_EQ(keys, (std::vector<std::string_view>{"b", "a", "d"}));
    const JsonValue& list = *root.items().begin();
    ASSERT_EQ(list.size(), 3U);
    EXPECT_EQ((*list.items().begin()).integer(), 1);
    EXPECT_EQ((*++list.items().begin()).real(), -2.5);
    const JsonValue& object = *++root.items().begin();
    EXPECT_TRUE((*object.items().begin()).is("x"));
    EXPECT_EQ((*object.items().begin()).key(), "c");
  }
}

TEST(JsonDocument, StaysWholeWhenItMoves) {
  auto first = JsonDocument::parse(R"(["a\n", "\u00e9"])");
  ASSERT_TRUE(succeeds(first));
  const JsonDocument second = *std::move(first);
  EXPECT_TRUE((*second.root().items().begin()).is("a\n"));
  EXPECT_TRUE((*++second.root().items().begin()).is("\xC3\xA9"));
}

TEST(JsonDocument, AScalarIsOneToo) {
  const auto document = JsonDocument::parse(" 7 ");
  ASSERT_TRUE(succeeds(document));
  EXPECT_EQ(document->root().integer(), 7);
}

TEST(JsonDocument, NamesLineAndByteOfWhatIsNoJson) {
  const auto malformed = ErrorCode::malformed_input;
  EXPECT_TRUE(fails(JsonDocument::parse(""), malformed, 1, "is not JSON"));
  EXPECT_TRUE(fails(JsonDocument::parse("{\n\"a\": 1,\n}"), malformed, 3, "from byte 11"));
  EXPECT_TRUE(fails(JsonDocument::parse("[1] x"), malformed, 1, "is not JSON"));
  EXPECT_TRUE(fails(JsonDocument::parse("[01]"), malformed, 1, "is not JSON"));
  EXPECT_TRUE(fails(JsonDocument::parse("[\"\xFF\"]"), malformed, 1, "is not JSON"));
  EXPECT_TRUE(fails(JsonDocument::parse("[NaN]"), malformed, 1, "is not JSON"));
  EXPECT_TRUE(fails(JsonDocument::parse("[\n1e999]"), malformed, 2, "beyond what a double holds"));
}

TEST(JsonDocument, TakesPythonsNumbersWhereTheyAreAskedFor) {
  constexpr std::string_view kText = R"({"a": [Infinity, -Infinity, NaN], "NaN": "Infinity \"NaN\"", "b": 1})";
  EXPECT_TRUE(fails(JsonDocument::parse(kText), ErrorCode::malformed_input, 1, "not JSON"));
  const auto document = JsonDocument::parse(kText, {.python_numbers = true});
  ASSERT_TRUE(succeeds(document));
  const JsonValue& list = *document->root().items().begin();
  std::vector<double> numbers;
  std::size_t nulls = 0;
  for (const JsonValue& item : list.items()) {
    if (item.is(Kind::null)) ++nulls;
    else numbers.push_back(item.real());
  }
  constexpr double kLargest = std::numeric_limits<double>::max();
  EXPECT_EQ(numbers, (std::vector{kLargest, -kLargest}));
  EXPECT_EQ(nulls, 1U);
  const JsonValue& text = *++document->root().items().begin();
  EXPECT_EQ(text.key(), "NaN");
  EXPECT_TRUE(text.is("Infinity \"NaN\"")) << text.text();
  EXPECT_TRUE(
      fails(JsonDocument::parse("{\"a\": NaNs}", {.python_numbers = true}), ErrorCode::malformed_input, 1, "JSON"));
}

TEST(JsonDocument, RefusesAKeyThatStandsTwice) {
  EXPECT_EQ(pointer_of(R"({"a": 1, "b": 2, "a": 3})"), "/a");
  EXPECT_EQ(pointer_of(R"({"x": [0, {"y": {"a/b~": 1, "a/b~": 1}}]})"), "/x/1/y/a~1b~0");
  EXPECT_EQ(pointer_of(R"({"a": 1, "\u0061": 3})"), "/a");
  EXPECT_EQ(pointer_of(R"([{"a": 1}, {"a": 3}])"), "no error");
}

TEST(JsonDocument, IsBounded) {
  EXPECT_EQ(pointer_of("[[[]]]", {.depth = 3}), "no error");
  EXPECT_EQ(pointer_of("[[0, [[]]]]", {.depth = 3}), "/0/1");
  EXPECT_TRUE(fails(JsonDocument::parse("[[]]", {.depth = 1}), ErrorCode::malformed_input, 0, "nests deeper than 1"));
  EXPECT_EQ(pointer_of("[1, 2]", {.values = 3}), "no error");
  EXPECT_TRUE(
      fails(JsonDocument::parse("[1, 2, 3]", {.values = 3}), ErrorCode::malformed_input, 0, "more than 3 values"));
  EXPECT_TRUE(fails(JsonDocument::parse(std::string(100'000, '[')), ErrorCode::malformed_input, 0, "nests deeper"));
}

TEST(JsonDocument, StepsMakePointers) {
  const Error error = below("list", below(std::size_t{2}, Error{ErrorCode::malformed_input, "is wrong", {}}));
  EXPECT_EQ(error.place.element, "/list/2");
  EXPECT_EQ(pointer_step(std::string(100, 'x')), "/" + std::string(60, 'x') + "...");
}

}  // namespace
}  // namespace gpumem::core
