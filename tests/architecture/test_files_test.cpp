// Tests run side by side, each as a process of its own: none may write where another writes.
#include <gtest/gtest.h>

#include <regex>

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

}  // namespace
}  // namespace gpumem::architecture
