// The shipped tables of torchinfo, cut at every depth and with the names of their classes hidden: what the cut hides is
// guessed, the range covers the answer for the whole table, and the answer says that it guesses.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "expect.hpp"
#include "gpumem/all.hpp"

namespace gpumem::testing {
namespace {

constexpr std::array kTables = {"densenet121", "efficientnet_b0", "inception_v3", "mobilenet_v2",       "resnet18",
                                "resnet50",    "vgg16",           "vit_b_16",     "transformer_encoder"};

std::vector<std::string> lines_of(std::string_view name) {
  std::ifstream file(std::string(GPUMEM_SOURCE_DIR "/models/summaries/") + std::string(name) + ".torchinfo.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool is_rule(const std::string& line) { return !line.empty() && line.find_first_not_of('=') == std::string::npos; }

/// Bytes of the tree that is drawn in front of a row.
std::size_t drawn(const std::string& row) {
  std::size_t at = 0;
  while (at < row.size() && (row[at] == ' ' || (static_cast<unsigned char>(row[at]) & 0x80U) != 0)) ++at;
  return at;
}

std::size_t depth_of(const std::string& row) {
  const std::size_t end = drawn(row);
  const auto begins = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; };
  return (static_cast<std::size_t>(std::count_if(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(end), begins)) +
          3) /
         5;
}

std::int64_t parameters_of(const std::string& row) {
  std::int64_t count = 0;
  for (const char byte : row.substr(row.find_last_of(' ') + 1)) {
    if (byte >= '0' && byte <= '9') count = 10 * count + (byte - '0');
  }
  return count;
}

void hide_class(std::string& row) {
  const std::size_t begin = drawn(row);
  const std::size_t end = row.find_first_of(": ", begin);
  const std::string name = row.substr(begin, end - begin);
  if (begin == 0 || name == "Sequential" || name == "ModuleList") return;
  row.replace(begin, end - begin, "Hidden");
}

struct Cut {
  std::string text;
  bool changed = false;
};

/// The table as torchinfo prints it with this depth: the last rows hold the parameters of all that is below them.
Cut cut(const std::vector<std::string>& lines, std::size_t depth, bool hide) {
  Cut result;
  std::size_t rules = 0;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    std::string row = lines[at];
    rules += is_rule(row) ? 1 : 0;
    if (rules == 2 && !is_rule(row)) {
      const std::size_t own = depth_of(row);
      if (own > depth) continue;
      std::int64_t parameters = parameters_of(row);
      std::size_t below = at + 1;
      for (; !is_rule(lines[below]) && depth_of(lines[below]) > own; ++below) parameters += parameters_of(lines[below]);
      const bool holds = below > at + 1;
      if (holds && own == depth) row = row.substr(0, row.find_last_of(' ') + 1) + std::to_string(parameters);
      if (holds && hide) hide_class(row);
      result.changed = result.changed || row != lines[at];
    }
    result.text += row + "\n";
  }
  return result;
}

Result<MemoryEstimate> estimate_of(std::string_view text) {
  auto graph = parse_summary(text);
  if (!graph) return graph.error();
  const auto replay = make_estimator("replay");
  if (!replay) return replay.error();
  return (*replay)->estimate(TrainingJob(*std::move(graph), 32), *find_profile("a100-80gb"));
}

struct Counts {
  std::vector<double> errors;
  std::int64_t covered = 0;
  std::int64_t told = 0;
};

void compare(const std::string& name, const MemoryEstimate& whole, const Cut& part, Counts& counts) {
  const auto estimate = estimate_of(part.text);
  ASSERT_TRUE(succeeds(estimate)) << name;
  const auto expected = static_cast<double>(estimate->expected.count());
  counts.errors.push_back(std::abs(expected / static_cast<double>(whole.expected.count()) - 1.0));
  counts.covered += estimate->upper >= whole.expected ? 1 : 0;
  const auto guesses = [](const estimate::Assumption& each) { return each.about == "guess" || each.about == "edges"; };
  counts.told += std::any_of(estimate->assumed.begin(), estimate->assumed.end(), guesses) ? 1 : 0;
}

TEST(CutTables, UpperCoversTheUncutAnswerAndTheExpectedFigureIsNear) {
  Counts counts;
  for (const char* name : kTables) {
    const std::vector<std::string> lines = lines_of(name);
    std::string text;
    std::size_t deepest = 0;
    for (const std::string& line : lines) {
      text += line + "\n";
      if (line.find("-") != std::string::npos) deepest = std::max(deepest, depth_of(line));
    }
    const auto whole = estimate_of(text);
    ASSERT_TRUE(succeeds(whole)) << name;
    for (std::size_t depth = 1; depth <= deepest; ++depth) {
      for (const bool hide : {false, true}) {
        const Cut part = cut(lines, depth, hide);
        if (part.changed) compare(name + std::string(" at ") + std::to_string(depth), *whole, part, counts);
      }
    }
  }
  const auto answers = static_cast<std::int64_t>(counts.errors.size());
  ASSERT_GE(answers, 40);
  EXPECT_GE(100 * counts.covered, 97 * answers) << counts.covered << " of " << answers;
  EXPECT_EQ(counts.told, answers);
  std::sort(counts.errors.begin(), counts.errors.end());
  EXPECT_LE(counts.errors[counts.errors.size() / 2], 0.10);
  RecordProperty("median", std::to_string(counts.errors[counts.errors.size() / 2]));
}

}  // namespace
}  // namespace gpumem::testing
