// Tests run side by side, each as a process of its own: none may write where another writes. What is left out somewhere
// is named as its tests are.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "sources.hpp"

namespace gpumem::architecture {
namespace {

TEST(TestFiles, EveryTestWritesToPathsOfItsOwn) {
  // A name put after the folder for temporary files; support/own_path.hpp does that for all.
  const std::regex fixed_name(R"(TempDir\(\)\)?\s*[/+])");
  std::size_t own = 0;
  for (const Source& file : sources_below(kRoot / "tests")) {
    const std::string text = text_of(kRoot / "tests" / file.path);
    if (file.path == "support/own_path.hpp") continue;
    own += text.find("own_path(") != std::string::npos ? 1U : 0U;
    EXPECT_FALSE(std::regex_search(text, fixed_name)) << file.path << ": use testing::own_path";
  }
  EXPECT_GE(own, 20U);
}

/// "Suite.Test", or "*Suite.*/parameter", whose name has "_" for what is no letter.
std::string declared_as(const std::string& pattern) {
  const std::size_t parameter = pattern.find('/');
  if (parameter != std::string::npos) return "{\"" + pattern.substr(parameter + 1) + "\"";
  const std::size_t dot = pattern.find('.');
  return "(" + pattern.substr(0, dot) + ", " + pattern.substr(dot + 1) + ")";
}

TEST(TestFiles, WhatAddressSanitizerLeavesOutIsThere) {
  const std::string lists = text_of(kRoot / "tests/CMakeLists.txt");
  std::smatch list;
  ASSERT_TRUE(std::regex_search(lists, list, std::regex(R"(set\(long_under_asan([^)]*)\))")));
  std::string tests;
  for (const Source& file : sources_below(kRoot / "tests")) tests += text_of(kRoot / "tests" / file.path);
  std::replace_if(
      tests.begin(), tests.end(), [](char byte) { return byte == '-' || byte == '.'; }, '_');
  std::istringstream patterns(list[1].str());
  for (std::string pattern; patterns >> pattern;) {
    EXPECT_NE(tests.find(declared_as(pattern)), std::string::npos) << pattern << " is no test: a new name, or gone";
  }
}

}  // namespace
}  // namespace gpumem::architecture
