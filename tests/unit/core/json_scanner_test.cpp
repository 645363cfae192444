#include "gpumem/core/json.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpumem::core {
namespace {

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

}  // namespace
}  // namespace gpumem::core
