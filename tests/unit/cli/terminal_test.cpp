#include "terminal.hpp"

#include <gtest/gtest.h>

#include <map>

namespace gpumem::cli {
namespace {

using Variables = std::map<std::string, std::string>;

Terminal terminal_with(const Variables& variables, std::int64_t columns = 80, bool is_terminal = true) {
  return terminal_from(is_terminal, columns, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Terminal, DrawsNothingInAPipe) {
  const Terminal pipe = terminal_with({{"TERM", "xterm"}, {"LANG", "C.UTF-8"}, {"COLUMNS", "120"}}, 0, false);
  EXPECT_FALSE(pipe.shown);
  EXPECT_FALSE(pipe.colour);
}

TEST(Terminal, HeedsNoColorAndDumbTerminals) {
  EXPECT_TRUE(terminal_with({{"TERM", "xterm"}}).colour);
  EXPECT_TRUE(terminal_with({{"TERM", "xterm"}, {"NO_COLOR", ""}}).colour);
  EXPECT_FALSE(terminal_with({{"TERM", "xterm"}, {"NO_COLOR", "0"}}).colour);
  EXPECT_FALSE(terminal_with({{"TERM", "dumb"}}).colour);
  EXPECT_FALSE(terminal_with({}).colour);
}

TEST(Terminal, IsAsWideAsItOrColumnsSays) {
  EXPECT_EQ(terminal_with({}, 132).width, 132U);
  EXPECT_EQ(terminal_with({}, 0).width, 80U);
  EXPECT_EQ(terminal_with({{"COLUMNS", "40"}}, 132).width, 40U);
  EXPECT_EQ(terminal_with({{"COLUMNS", "wide"}}, 132).width, 132U);
  EXPECT_EQ(terminal_with({{"COLUMNS", "3"}}, 132).width, 20U);
}

TEST(Terminal, HasUtf8WhereTheLocaleSaysSo) {
  EXPECT_TRUE(terminal_with({{"LANG", "de_DE.UTF-8"}}).utf8);
  EXPECT_TRUE(terminal_with({{"LC_CTYPE", "C.utf8"}, {"LANG", "C"}}).utf8);
  EXPECT_FALSE(terminal_with({{"LC_ALL", "C"}, {"LANG", "C.UTF-8"}}).utf8);
  EXPECT_FALSE(terminal_with({}).utf8);
}

TEST(Terminal, ColoursOnlyWhereThereAreColours) {
  EXPECT_EQ(coloured("yes", Tone::good, {}), "yes");
  EXPECT_EQ(coloured("yes", Tone::good, {.shown = true, .colour = true}), "\033[32myes\033[0m");
  EXPECT_EQ(coloured("yes", Tone::plain, {.shown = true, .colour = true}), "yes");
}

TEST(Gauge, ShowsTheRangeAgainstTheWhole) {
  EXPECT_EQ(drawn({0.2, 0.4, 0.6, Tone::plain}, 10, {}), "##==--....");
  EXPECT_EQ(drawn({0.2, 0.4, 0.6, Tone::plain}, 10, {.utf8 = true}), "██▓▓▒▒░░░░");
  EXPECT_EQ(drawn({0.5, 0.5, 0.5, Tone::plain}, 4, {}), "##..");
  EXPECT_EQ(drawn({0.0, 0.0, 0.0, Tone::plain}, 4, {}), "....");
}

TEST(Gauge, EndsInAnArrowBeyondTheWhole) {
  EXPECT_EQ(drawn({0.5, 1.2, 1.5, Tone::plain}, 4, {}), "##=>");
  EXPECT_EQ(drawn({0.5, 0.8, 1.5, Tone::plain}, 4, {}), "##=-");
}

TEST(Gauge, HasALegendAsWideAsTheTerminal) {
  EXPECT_EQ(gauge_legend({.width = 80}), "# up to lower  = up to expected  - up to upper  . free\n");
  EXPECT_EQ(gauge_legend({.width = 40}), "# up to lower  = up to expected\n- up to upper  . free\n");
}

TEST(Wrapped, BreaksAtBlanksAndKeepsLongWords) {
  EXPECT_EQ(wrapped("one two three", 7, 2), "one two\n  three");
  EXPECT_EQ(wrapped("incomprehensibilities and", 5, 1), "incomprehensibilities\n and");
  EXPECT_EQ(wrapped("", 5, 1), "");
  EXPECT_EQ(columns_of("█ä"), 2U);
}

}  // namespace
}  // namespace gpumem::cli
