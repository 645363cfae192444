// The page that `gpumem timeline` writes.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "command_line.hpp"
#include "gpumem/all.hpp"
#include "own_path.hpp"

namespace gpumem {
namespace {

namespace fs = std::filesystem;
using testing::Outcome;
using testing::resnet50;
using testing::run;

/// The page of `gpumem timeline` with these words.
std::string page_of(const std::string& words) {
  const fs::path file = testing::own_path("timeline.html");
  const Outcome result = run("timeline " + words + " -o '" + file.string() + "'");
  EXPECT_EQ(result.exit, 0) << result.err;
  std::string page = testing::text_of(file);
  fs::remove(file);
  return page;
}

/// What stands between two marks; the page must hold both.
std::string between(const std::string& page, const std::string& begin, const std::string& end) {
  const std::size_t from = page.find(begin);
  const std::size_t to = page.find(end, from);
  if (from == std::string::npos || to == std::string::npos) return "no " + begin;
  return page.substr(from + begin.size(), to - from - begin.size());
}

nlohmann::json data_of(const std::string& page) {
  return nlohmann::json::parse(between(page, "<script type=\"application/json\" id=\"data\">", "</script>"));
}

TEST(CliTimeline, HoldsTheRunThatIsEstimated) {
  const std::string job = "models/graphs/resnet50.json --batch 32 --gpu rtx4090-24gb";
  const auto data = data_of(page_of(job));
  const auto json = nlohmann::json::parse(run("estimate " + job + " --json").out);
  const auto& estimate = json["estimates"][0];
  EXPECT_EQ(data["peak"]["allocated_bytes"], estimate["allocated_bytes"]);
  EXPECT_EQ(data["peak"]["reserved_bytes"], estimate["reserved_bytes"]);
  EXPECT_EQ(data["context_bytes"], estimate["breakdown"]["context"]);
  EXPECT_EQ(data["peak"]["phase"], estimate["peak"]["phase"]);
  EXPECT_EQ(data["layers"][data["peak"]["layer"].get<std::size_t>()][0], estimate["peak"]["layer"]);
  EXPECT_EQ(data["gpu"]["capacity_bytes"], json["capacity_bytes"]);

  // The columns hold differences: summed up to the peak they are what it is made of.
  const auto& points = data["points"];
  const std::size_t peak = data["peak"]["point"];
  std::int64_t allocated = 0;
  for (const auto& column : points["allocated"]) {
    ASSERT_EQ(column.size(), points["event"].size());
    for (std::size_t point = 0; point <= peak; ++point) allocated += column[point].get<std::int64_t>();
  }
  EXPECT_EQ(allocated, estimate["allocated_bytes"].get<std::int64_t>());
  EXPECT_EQ(points["allocated"].size(), data["categories"].size());
  for (const char* column : {"reserved", "bytes", "category", "layer"}) {
    EXPECT_EQ(points[column].size(), points["event"].size()) << column;
  }
}

TEST(CliTimeline, LoadsNothingFromElsewhere) {
  const std::string page = page_of("models/graphs/resnet50.json --batch 1");
  for (const char* part : {"http:", "https:", "//cdn", "src=", "@import", "url("}) {
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  }
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(CliTimeline, TextOfTheSummaryStaysText) {
  const std::string tame = page_of("models/graphs/resnet50.json --batch 1");
  const std::string page = page_of("tests/browser/hostile.json --batch 1");
  const auto count = [](const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  for (const char* part : {"<script", "</script", "<img", "<!--"})
    EXPECT_EQ(count(page, part), count(tame, part)) << part;
  EXPECT_EQ(page.find("window.pwned=1<"), std::string::npos);
  const auto data = data_of(page);
  std::set<std::string> names;
  for (const auto& layer : data["layers"]) names.insert(layer[0].get<std::string>());
  EXPECT_TRUE(names.contains("<img src=x onerror='window.pwned=2'>")) << data["layers"];
  EXPECT_TRUE(names.contains("</script><script>window.pwned=1</script>")) << data["layers"];
}

}  // namespace
}  // namespace gpumem
