#include "gpumem/job/job_options.hpp"

#include <gtest/gtest.h>

namespace gpumem::job {
namespace {

TEST(OptionWords, AreReadAsTheOptionsTypeHasThem) {
  EXPECT_EQ(value_of_word(OptionType::flag, "true"), OptionValue(true));
  EXPECT_EQ(value_of_word(OptionType::whole_number, "-12"), OptionValue(std::int64_t{-12}));
  EXPECT_EQ(value_of_word(OptionType::fraction, "0.05"), OptionValue(0.05));
  EXPECT_EQ(value_of_word(OptionType::switch_or_choice, "full:2"), OptionValue(std::string("full:2")));
  EXPECT_EQ(value_of_word(OptionType::switch_or_choice, "false"), OptionValue(false));
  EXPECT_EQ(value_of_word(OptionType::text, "12"), OptionValue(std::string("12")));
}

TEST(OptionWords, OfAnotherTypeAreNone) {
  EXPECT_FALSE(value_of_word(OptionType::flag, "yes").has_value());
  for (const char* word : {"", "-", "1.5", "12 ", "99999999999999999999"}) {
    EXPECT_FALSE(value_of_word(OptionType::whole_number, word).has_value()) << word;
  }
  for (const char* word : {"", "nan", "inf", "0.05x"}) {
    EXPECT_FALSE(value_of_word(OptionType::fraction, word).has_value()) << word;
  }
}

TEST(OptionWords, FractionsAreWrittenAsShortAsTheyAreRead) {
  EXPECT_EQ(fraction_text(0.05), "0.05");
  EXPECT_EQ(fraction_text(0.0), "0");
}

TEST(OptionWords, AccessorsTakeValuesOfTheirType) {
  EXPECT_TRUE(is_of_kind(OptionType::flag, true));
  EXPECT_FALSE(is_of_kind(OptionType::flag, std::int64_t{1}));
  EXPECT_TRUE(is_of_kind(OptionType::dimensions, std::string("3x224x224")));
}

}  // namespace
}  // namespace gpumem::job
