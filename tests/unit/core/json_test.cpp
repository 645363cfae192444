#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "expect.hpp"
#include "gpumem/core/json.hpp"

namespace gpumem::core {
namespace {

using testing::fails;
using testing::succeeds;

using Kind = JsonValue::Kind;

TEST(JsonValue, HoldsOneOfEachKind) {
  EXPECT_TRUE(JsonValue::null().is(Kind::null));
  EXPECT_TRUE(JsonValue::boolean(true).boolean());
  EXPECT_EQ(JsonValue::integer(-7).integer(), -7);
  EXPECT_EQ(JsonValue::real(0.5).real(), 0.5);
  EXPECT_EQ(JsonValue::text("a").text(), "a");
  EXPECT_EQ(JsonValue::unsigned_integer(7).kind(), Kind::integer);
  EXPECT_EQ(JsonValue::unsigned_integer(UINT64_MAX).kind(), Kind::beyond_int64);
  EXPECT_EQ(JsonValue::unsigned_integer(UINT64_MAX).unsigned_integer(), UINT64_MAX);
}

TEST(JsonValue, ComparesNumbersAsNumbers) {
  EXPECT_TRUE(JsonValue::integer(1).is(1));
  EXPECT_TRUE(JsonValue::real(1.0).is(1));
  EXPECT_FALSE(JsonValue::real(1.5).is(1));
  EXPECT_FALSE(JsonValue::boolean(true).is(1));
  EXPECT_FALSE(JsonValue::text("1").is(1));
  EXPECT_TRUE(JsonValue::text("1").is("1"));
}

TEST(JsonValue, ItemsSkipWhatIsInsideThem) {
  std::vector<JsonValue> values = {JsonValue::object(), JsonValue::list(), JsonValue::integer(1),
                                   JsonValue::integer(2)};
  values[0].set_extent(4);
  values[1].set_extent(2);
  values[1].set_key("list");
  values[3].set_key("two");
  std::vector<std::string_view> keys;
  for (const JsonValue& item : values[0].items()) keys.push_back(item.key());
  EXPECT_EQ(keys, (std::vector<std::string_view>{"list", "two"}));
}

std::optional<std::string> text_of(std::string_view json) {
  JsonTokens tokens(json);
  std::string_view text;
  if (!tokens.take_text(text) || !tokens.at_end()) return std::nullopt;
  return std::string(text);
}

TEST(JsonTokens, ATextEndsAtItsQuoteWhereverThatStands) {
  for (std::size_t length = 0; length < 40; ++length) {
    const std::string text(length, 'a');
    EXPECT_EQ(text_of("\"" + text + "\""), text);
  }
}

TEST(JsonTokens, ATextIsPlainInEveryByte) {
  for (int byte = 0; byte < 256; ++byte) {
    for (std::size_t at = 0; at < 20; ++at) {
      std::string text(20, '~');
      text[at] = static_cast<char>(byte);
      const bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
      const auto read = text_of("\"" + text + "\"");
      EXPECT_EQ(read, plain ? std::optional(text) : std::nullopt) << byte << " at " << at;
    }
  }
}

TEST(JsonTokens, ATextStandsWhole) {
  EXPECT_EQ(text_of(""), std::nullopt);
  EXPECT_EQ(text_of("\""), std::nullopt);
  EXPECT_EQ(text_of("\"12345678"), std::nullopt);
  EXPECT_EQ(text_of("a\""), std::nullopt);
}

TEST(JsonTokens, NumbersAreIntegersOrReals) {
  const auto number_of = [](std::string_view json) -> std::string {
    JsonTokens tokens(json);
    JsonNumber number;
    if (!tokens.take_number(number) || !tokens.at_end()) return "no";
    return number.is_real ? "real " + std::to_string(number.real) : std::to_string(number.integer);
  };
  EXPECT_EQ(number_of("0"), "0");
  EXPECT_EQ(number_of("-17"), "-17");
  EXPECT_EQ(number_of("999999999999999999"), "999999999999999999");
  EXPECT_EQ(number_of("2.5"), "real 2.500000");
  EXPECT_EQ(number_of("-1e-1"), "real -0.100000");
  for (const std::string_view json : {"", "-", "01", "1.", "1e", ".5", "+1", "1000000000000000000", "1e999"}) {
    EXPECT_EQ(number_of(json), "no") << json;
  }
}

TEST(JsonTokens, WhiteSpaceAndWords) {
  JsonTokens tokens(" \t\r\n[true,");
  EXPECT_TRUE(tokens.skip_space());
  EXPECT_EQ(tokens.front(), '[');
  EXPECT_FALSE(tokens.take('{'));
  EXPECT_TRUE(tokens.take('['));
  EXPECT_FALSE(tokens.take_word("trueish"));
  EXPECT_TRUE(tokens.take_word("true"));
  EXPECT_TRUE(tokens.take(','));
  EXPECT_TRUE(tokens.at_end());
  EXPECT_EQ(tokens.front(), '\0');
  EXPECT_TRUE(tokens.skip_space());
  const std::string spaces(100'000, ' ');
  EXPECT_FALSE(JsonTokens(spaces).skip_space());
}

using Kind = JsonValue::Kind;

/// Writes down what it is told: "{k:i5 [b1]}".
struct Notes {
  std::string all;

  bool open_object() { return note("{"); }
  bool open_list() { return note("["); }
  bool close() { return note("."); }
  bool key(std::string_view name) { return note(std::string(name) + ":"); }
  bool value(const JsonValue& value) {
    switch (value.kind()) {
      case Kind::null: return note("null ");
      case Kind::boolean: return note(value.boolean() ? "true " : "false ");
      case Kind::integer: return note(std::to_string(value.integer()) + " ");
      case Kind::real: return note(std::to_string(value.real()) + " ");
      default: return note("'" + std::string(value.text()) + "' ");
    }
  }
  bool note(const std::string& what) {
    all += what;
    return what != "stop:";
  }
};

/// The events of a text; "no" if the scanner gives it up.
std::string events_of(std::string_view text) {
  Notes notes;
  const char* reached = text.data();
  return JsonScanner<Notes, JsonValue>(text, notes, reached).scan() ? notes.all : "no";
}

TEST(JsonScanner, ReportsPlainJson) {
  EXPECT_EQ(events_of(R"({"a": 5, "b": [-1, 0, 2.5, 1e-2, true, false, null], "c": {}, "d": [], "e": "N"})"),
            "{a:5 b:[-1 0 2.500000 0.010000 true false null .c:{.d:[.e:'N' .");
  EXPECT_EQ(events_of(" [ 1 , { \"a\" :\t[ ] } ]\r\n"), "[1 {a:[...");
  EXPECT_EQ(events_of("999999999999999999"), "999999999999999999 ");
}

TEST(JsonScanner, GivesUpWhatIsNotJson) {
  for (const std::string_view text :
       {"",         " ",          "{",     "[",         "]",    "}",     "{]",
        "[}",       "[1",         "[1,",   "[1,]",      "[,1]", "[1 2]", "{\"a\"}",
        "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:1}",     "{,}",  "01",    "-",
        "-01",      "+1",         ".5",    "1.",        "1.e5", "1e",    "1e+",
        "0x1",      "nul",        "nulll", "truefalse", "tru",  "NaN",   "Infinity",
        "\"a",      "'a'",        "1 1",   "[] []",     "[1]x", "\f1",   "\xEF\xBB\xBF{}"}) {
    EXPECT_EQ(events_of(text), "no") << text;
  }
  EXPECT_EQ(events_of(std::string_view("[1]\0", 4)), "no");
}

TEST(JsonScanner, GivesUpWhatIsNotPlain) {
  for (const std::string_view text :
       {"\"\\n\"", "\"\\\"\"", "\"\xC3\xA9\"", "\"\t\"", "\"\x01\"", "1000000000000000000", "18446744073709551615",
        "1e999", "0.1234567890123456789"}) {
    EXPECT_EQ(events_of(text), "no") << text;
  }
  EXPECT_EQ(events_of(std::string(100'000, '[')), "no");
  EXPECT_EQ(events_of("\"" + std::string(100'000, 'a') + "\""), "no");
  EXPECT_EQ(events_of("[" + std::string(100'000, ' ') + "]"), "no");
}

TEST(JsonScanner, EndsWhenToldTo) { EXPECT_EQ(events_of(R"({"stop": 1})"), "no"); }

TEST(JsonScanner, ShowsWhereTheLastObjectOpened) {
  const std::string_view text = R"([1, {"a": 2}])";
  Notes notes;
  const char* reached = text.data();
  EXPECT_TRUE((JsonScanner<Notes, JsonValue>(text, notes, reached).scan()));
  EXPECT_EQ(reached - text.data(), 5);
}

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
