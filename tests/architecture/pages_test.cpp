// What people read first: the README is short, every link between pages leads somewhere, every page is linked, and
// every file that is named is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "sources.hpp"

namespace gpumem::architecture {
namespace {

namespace fs = std::filesystem;

constexpr std::ptrdiff_t kMostLinesOfTheReadme = 200;

/// Pages in Markdown that lead from one to the other.
std::vector<fs::path> pages() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(kRoot)) {
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  }
  for (const char* folder : {"docs", "examples", "bench", "models"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (entry.path().extension() == ".md") found.push_back(entry.path());
    }
  }
  return found;
}

/// A page without what stands between ``` and ```.
std::string prose_of(const fs::path& page) {
  std::string prose;
  bool code = false;
  const std::string text = text_of(page);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (line.starts_with("```")) {
      code = !code;
    } else if (!code) {
      prose += line + "\n";
    }
    at = end + 1;
  }
  return prose;
}

/// The name by which GitHub links a heading: small letters, without punctuation, blanks as hyphens.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char letter : heading) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0 || letter == '-' || letter == '_') anchor += static_cast<char>(std::tolower(byte));
    if (letter == ' ') anchor += '-';
  }
  return anchor;
}

std::set<std::string> anchors_of(const fs::path& page) {
  std::set<std::string> anchors;
  const std::string prose = prose_of(page);
  const std::regex heading("(^|\n)#+ ([^\n]+)");
  for (std::sregex_iterator at(prose.begin(), prose.end(), heading), end; at != end; ++at) {
    anchors.insert(anchor_of((*at)[2].str()));
  }
  return anchors;
}

/// The targets of a page's links that lead to files of the project.
std::vector<std::string> links_of(const fs::path& page) {
  std::vector<std::string> links;
  const std::string prose = prose_of(page);
  const std::regex link("\\]\\(([^)\\s]+)\\)");
  for (std::sregex_iterator at(prose.begin(), prose.end(), link), end; at != end; ++at) {
    const std::string target = (*at)[1].str();
    if (!target.starts_with("http")) links.push_back(target);
  }
  return links;
}

TEST(Pages, TheReadmeIsShort) {
  const std::string text = text_of(kRoot / "README.md");
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), kMostLinesOfTheReadme);
}

TEST(Pages, EveryLinkLeadsSomewhere) {
  std::size_t seen = 0;
  for (const fs::path& page : pages()) {
    for (const std::string& link : links_of(page)) {
      ++seen;
      const std::size_t hash = std::min(link.find('#'), link.size());
      const fs::path target = hash == 0 ? page : page.parent_path() / link.substr(0, hash);
      ASSERT_TRUE(fs::exists(target)) << page << " links " << link;
      if (hash == link.size()) continue;
      EXPECT_TRUE(anchors_of(target).contains(link.substr(hash + 1))) << page << " links " << link;
    }
  }
  EXPECT_GT(seen, 20U);
}

TEST(Pages, TheReadmeLeadsToEveryPage) {
  std::set<fs::path> linked;
  for (const std::string& link : links_of(kRoot / "README.md")) {
    linked.insert(fs::weakly_canonical(kRoot / link.substr(0, link.find('#'))));
  }
  for (const auto& entry : fs::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() != ".md") continue;
    EXPECT_TRUE(linked.contains(fs::weakly_canonical(entry.path()))) << "README.md does not link " << entry.path();
  }
}

/// What stands in `backquotes` and begins as a path of the repository does.
std::set<std::string> files_named_on(const fs::path& page) {
  std::set<std::string> files;
  const std::string prose = prose_of(page);
  const std::regex name("`((?:\\./)?(?:include|src|examples|tests|bench|models)/[A-Za-z0-9_./-]+)[` ]");
  const std::regex placeholder("[A-Z]{3,}");  // ROOM, NAME: the reader's own
  for (std::sregex_iterator at(prose.begin(), prose.end(), name), end; at != end; ++at) {
    const std::string file = (*at)[1].str();
    if (file.ends_with(".md") || !std::regex_search(file, placeholder)) files.insert(file);
  }
  return files;
}

TEST(Pages, EveryFileThatIsNamedIsThere) {
  std::size_t seen = 0;
  for (const fs::path& page : pages()) {
    if (page.parent_path() != kRoot && page.parent_path() != kRoot / "docs") continue;
    for (const std::string& file : files_named_on(page)) {
      ++seen;
      EXPECT_TRUE(fs::exists(kRoot / file)) << page << " names " << file;
    }
  }
  EXPECT_GT(seen, 50U);
}

}  // namespace
}  // namespace gpumem::architecture
