#include "gpumem/summary/formats.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gpumem::summary {
namespace {

TEST(Formats, AreCompleteAndOfDifferentNames) {
  std::set<std::string_view> names;
  for (const Format* format : formats()) {
    EXPECT_TRUE(names.insert(format->name).second) << format->name;
    EXPECT_FALSE(format->description.empty()) << format->name;
    EXPECT_NE(format->sniff, nullptr) << format->name;
    EXPECT_NE(format->parse, nullptr) << format->name;
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"torchsummary", "torchinfo", "module_tree", "keras", "graph_json",
                                               "config_json", "recording"}));
}

TEST(Formats, NoneIsFoundInProse) {
  for (const Format* format : formats()) {
    EXPECT_EQ(format->sniff("A table of layers (by type) and their shapes, see {this}.\n", 0), std::nullopt)
        << format->name;
    EXPECT_EQ(format->sniff("", 0), std::nullopt) << format->name;
  }
}

}  // namespace
}  // namespace gpumem::summary
