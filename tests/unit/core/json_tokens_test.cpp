#include "gpumem/core/json.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace gpumem::core {
namespace {

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

}  // namespace
}  // namespace gpumem::core
