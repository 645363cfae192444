#include "gpumem/adapt/lora_targets.hpp"

#include <gtest/gtest.h>

namespace gpumem::adapt {
namespace {

bool matches(std::string_view patterns, std::string_view name) { return NamePatterns(patterns).match(name); }

TEST(NamePatterns, MeanNamesContainersAndWhatStarsStandFor) {
  EXPECT_TRUE(matches("model.norm", "model.norm"));
  EXPECT_FALSE(matches("model.norm", "model.norms"));
  EXPECT_TRUE(matches("model.layers.0", "model.layers.0.mlp.up_proj")) << "all that a container holds";
  EXPECT_FALSE(matches("model.layers.1", "model.layers.11.mlp"));
  EXPECT_TRUE(matches("*.bias", "model.layers.3.q_proj.bias"));
  EXPECT_FALSE(matches("*.bias", "model.bias_free"));
  EXPECT_TRUE(matches("*layers.?.*proj", "model.layers.3.q_proj"));
  EXPECT_FALSE(matches("*layers.?.*proj", "model.layers.13.q_proj"));
  EXPECT_TRUE(matches("*", "x"));
  EXPECT_FALSE(matches("", "x"));
}

TEST(NamePatterns, ArePartedByCommas) {
  EXPECT_TRUE(matches("embed, lm_head", "lm_head"));
  EXPECT_TRUE(matches("embed, lm_head", "embed"));
  EXPECT_FALSE(matches("embed, lm_head", "norm"));
  EXPECT_TRUE(NamePatterns(" , ").empty());
}

TEST(NamePatterns, KnowWhichOfThemMeantNothing) {
  NamePatterns patterns("a*,b*");
  EXPECT_TRUE(patterns.match("abc"));
  EXPECT_EQ(patterns.unused(), std::vector<std::string_view>{"b*"});
  EXPECT_TRUE(patterns.match("bc"));
  EXPECT_TRUE(patterns.unused().empty());
}

TEST(NamePatterns, ManyStarsTakeNoSquareOfTheirNumber) {
  const std::string stars = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
  EXPECT_FALSE(matches(stars, std::string(10000, 'a')));
}

}  // namespace
}  // namespace gpumem::adapt
