// The tour of the house (docs/house.md), its picture and CONTRIBUTING.md show the house as it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "arrows.hpp"
#include "sources.hpp"

namespace gpumem::architecture {
namespace {

namespace fs = std::filesystem;

Names rooms() {
  Names all;
  for (const auto& entry : fs::directory_iterator(kRoot / "include" / "gpumem")) {
    if (entry.is_directory()) all.insert(entry.path().filename().string());
  }
  return all;
}

/// The words of a text that this expression finds, by its first group.
std::vector<std::string> found_in(const std::string& text, const std::string& expression) {
  const std::regex pattern(expression);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at)
    found.push_back((*at)[1].str());
  return found;
}

/// The rows of the tables below a heading, up to the next heading; each row as its two first cells.
std::vector<std::pair<std::string, std::string>> rows_below(const std::string& page, const std::string& heading) {
  const std::size_t begin = page.find("\n## " + heading + "\n");
  if (begin == std::string::npos) return {};
  const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  const std::regex row("\n\\| (`[^|]*) \\| ([^|]*) \\|");
  std::vector<std::pair<std::string, std::string>> rows;
  for (std::sregex_iterator at(section.begin(), section.end(), row), end; at != end; ++at) {
    rows.emplace_back((*at)[1].str(), (*at)[2].str());
  }
  return rows;
}

Names in_backticks(const std::string& text) {
  const std::vector<std::string> words = found_in(text, "`([^`]+)`");
  return {words.begin(), words.end()};
}

TEST(House, ThePageHasEveryRoom) {
  Names told;
  for (const auto& [room, purpose] : rows_below(text_of(kRoot / "docs" / "house.md"), "The rooms")) {
    told.merge(in_backticks(room));
    EXPECT_FALSE(purpose.empty()) << room;
  }
  EXPECT_EQ(told, rooms());
}

TEST(House, ThePictureHasEveryRoom) {
  const std::vector<std::string> names =
      found_in(text_of(kRoot / "docs" / "images" / "house.svg"), "class=\"name\"[^>]*>([a-z_]+)</text>");
  EXPECT_EQ(Names(names.begin(), names.end()), rooms());
}

TEST(House, ThePageShowsTheArrows) {
  std::map<std::string, Names> shown;
  for (const auto& [including, included] : rows_below(text_of(kRoot / "docs" / "house.md"), "Who may include whom")) {
    for (const std::string& room : in_backticks(including)) {
      EXPECT_FALSE(shown.contains(room)) << room << " has two rows";
      shown[room] = in_backticks(included);
    }
  }
  EXPECT_EQ(shown, kArrows);
}

/// Whether this file or folder of the project is there; `path` is from the root, or from where the pages say.
bool exists(const std::string& path) {
  const fs::path bases[] = {kRoot, kRoot / "include" / "gpumem", kRoot / "src" / "python",
                            kRoot / "bench" / "measured"};
  return std::any_of(std::begin(bases), std::end(bases), [&](const fs::path& base) { return fs::exists(base / path); });
}

TEST(House, EveryFileThatThePagesNameIsThere) {
  std::size_t seen = 0;
  for (const char* page : {"CONTRIBUTING.md", "docs/house.md"}) {
    for (const std::string& path : found_in(text_of(kRoot / page), "`([a-z._]+/[a-z0-9_./]+)`")) {
      ++seen;
      EXPECT_TRUE(exists(path)) << page << " names " << path;
    }
  }
  EXPECT_GT(seen, 50U);
}

}  // namespace
}  // namespace gpumem::architecture
