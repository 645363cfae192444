// No file is longer than 500 lines, and no function in C, C++ or Python longer than 60: what is longer does more than
// one thing. A table of data is not a function, wherever it is; keep it next to the function that reads it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <set>

#include "sources.hpp"

namespace gpumem::architecture {
namespace {

namespace fs = std::filesystem;

constexpr std::ptrdiff_t kMostLinesOfAFile = 500;
constexpr std::ptrdiff_t kMostLinesOfAFunction = 60;
/// The C API is one header, and its comments are its reference.
constexpr std::ptrdiff_t kMostLinesOfTheCHeader = 600;

const std::set<std::string> kBraces = {".c", ".cpp", ".h", ".hpp"};
const std::set<std::string> kOthers = {".cmake", ".css", ".html", ".js", ".lua", ".mjs", ".sh"};

/// Files that people write. Summaries, graphs, models, recorded answers and regressions of the fuzzers are data: a tool
/// writes them, and none has one of these endings.
std::vector<fs::path> written_files() {
  std::vector<fs::path> files;
  for (const char* folder : {"include", "src", "tests", "bench", "examples", "packaging"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string ending = entry.path().extension().string();
      const bool written = kBraces.contains(ending) || kOthers.contains(ending) || ending == ".py" ||
                           entry.path().filename() == "CMakeLists.txt";
      if (entry.is_regular_file() && written) files.push_back(entry.path());
    }
  }
  return files;
}

std::ptrdiff_t lines_of(std::string_view text) { return std::count(text.begin(), text.end(), '\n'); }

struct Function {
  std::string head;  ///< its first line
  std::ptrdiff_t lines = 0;
};

/// The text with comments, and what literals hold, as blanks; every line stays where it is.
std::string without_words(std::string text) {
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (std::size_t at = from; at < std::min(to, text.size()); ++at) {
      if (text[at] != '\n') text[at] = ' ';
    }
    return std::min(to, text.size());
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (rest.starts_with("//") || (rest.starts_with('#') && (at == 0 || text[at - 1] == '\n'))) {
      at = blank(at, text.find('\n', at));
    } else if (rest.starts_with("/*")) {
      at = blank(at, text.find("*/", at) + 2);
    } else if (rest.starts_with("R\"")) {
      const std::string mark = ")" + std::string(rest.substr(2, rest.find('(') - 2)) + "\"";
      at = blank(at, text.find(mark, at) + mark.size());
    } else if (rest[0] == '"' || (rest[0] == '\'' && (at == 0 || std::isalnum(text[at - 1]) == 0))) {
      std::size_t end = at + 1;
      while (end < text.size() && text[end] != rest[0]) end += text[end] == '\\' ? 2 : 1;
      at = blank(at, end + 1);
    } else {
      ++at;
    }
  }
  return text;
}

enum class Block : std::uint8_t { function, scope, value };

/// What a brace opens that has this before it: a function has parameters; a value is assigned, or follows its name
/// at once, or is an argument.
Block block_after(std::string_view head) {
  std::string outside;  // of parentheses
  int depth = 0;
  bool parameters = false;
  for (const char byte : head) {
    depth += byte == '(' ? 1 : 0;
    parameters = parameters || depth > 0;
    if (depth == 0) outside.push_back(byte);
    depth -= byte == ')' ? 1 : 0;
  }
  const bool assigned = outside.find('=') != std::string::npos && outside.find("operator") == std::string::npos;
  if (assigned || depth > 0 || !(head.empty() || head.back() == ' ')) return Block::value;
  return parameters ? Block::function : Block::scope;
}

/// The functions of a text in C or C++; those within others count with them.
std::vector<Function> functions_with_braces(const std::string& text) {
  const std::string code = without_words(text);
  std::vector<Function> found;
  std::vector<Block> open;
  std::size_t head = 0;   // where what is before the next block begins
  std::size_t begin = 0;  // of the function that is open
  for (std::size_t at = 0; at < code.size(); ++at) {
    const bool inside = std::find(open.begin(), open.end(), Block::function) != open.end();
    if (code[at] == '{') {
      open.push_back(inside ? Block::value : block_after(std::string_view(code).substr(head, at - head)));
      if (open.back() == Block::function) begin = code.find_first_not_of(" \n", head);
      if (open.back() == Block::scope) head = at + 1;
    } else if (code[at] == '}' && !open.empty()) {
      const Block closed = open.back();
      open.pop_back();
      if (closed == Block::function) {
        const std::string first = text.substr(begin, text.find('\n', begin) - begin);
        found.push_back({first, lines_of(std::string_view(code).substr(begin, at - begin)) + 1});
      }
      if (closed != Block::value) head = at + 1;
    } else if (code[at] == ';' && !inside) {
      head = at + 1;
    }
  }
  return found;
}

/// The functions of a text in Python, each to the last line that is further in than its `def`.
std::vector<Function> functions_by_indentation(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::vector<Function> found;
  for (std::size_t first = 0; first < lines.size(); ++first) {
    const std::size_t indent = std::min(lines[first].find_first_not_of(' '), lines[first].size());
    if (!lines[first].substr(indent).starts_with("def ")) continue;
    std::size_t last = first;
    for (std::size_t at = first + 1; at < lines.size(); ++at) {
      const std::size_t in = lines[at].find_first_not_of(' ');
      if (in == std::string::npos) continue;
      if (in <= indent && lines[at][in] != ')') break;  // the end of a long list of parameters
      last = at;
    }
    found.push_back({lines[first], static_cast<std::ptrdiff_t>(last - first) + 1});
  }
  return found;
}

std::vector<Function> functions_of(const fs::path& file) {
  if (file.extension() == ".py") return functions_by_indentation(text_of(file));
  return kBraces.contains(file.extension().string()) ? functions_with_braces(text_of(file)) : std::vector<Function>();
}

TEST(Size, NoFileIsLongerThan500Lines) {
  const std::vector<fs::path> files = written_files();
  EXPECT_GT(files.size(), 700U);
  for (const fs::path& file : files) {
    const bool c_header = file.filename() == "gpumem.h";
    EXPECT_LE(lines_of(text_of(file)), c_header ? kMostLinesOfTheCHeader : kMostLinesOfAFile) << file;
  }
}

TEST(Size, NoFunctionIsLongerThan60Lines) {
  std::size_t functions = 0;
  for (const fs::path& file : written_files()) {
    for (const Function& function : functions_of(file)) {
      ++functions;
      EXPECT_LE(function.lines, kMostLinesOfAFunction) << file << ": " << function.head;
    }
  }
  EXPECT_GT(functions, 6000U);
}

TEST(Size, FunctionsInBracesAreFound) {
  const std::vector<Function> found = functions_with_braces(R"(#include <map>
namespace a {
const std::map<int, int> kTable = {
    {1, f(2)},
    {'{', 3},  // "}"
};
struct B {
  explicit B(int one)
      : one_{one}, two_{2} {
    if (one > 0) { run(); }
  }
  bool operator==(const B&) const { return true; }
  int one_ = 1'000;
};
template <typename T>
void c(T value,
       std::vector<int> more = {}) {
  const auto inner = [&] {
    return "{";
  };
}
}  // namespace a
)");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].head, "explicit B(int one)");
  EXPECT_EQ(found[0].lines, 4);
  EXPECT_EQ(found[1].lines, 1);
  EXPECT_EQ(found[2].head, "template <typename T>");
  EXPECT_EQ(found[2].lines, 7);
}

TEST(Size, FunctionsInPythonAreFound) {
  const std::vector<Function> found = functions_by_indentation(R"(def a(
    one,
):
    if one:

        return 1


class B:
    def c(self):
        def d():
            return 2
        return d

X = 1
)");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].lines, 6);
  EXPECT_EQ(found[1].lines, 4);
  EXPECT_EQ(found[2].head, "        def d():");
  EXPECT_EQ(found[2].lines, 2);
}

}  // namespace
}  // namespace gpumem::architecture
