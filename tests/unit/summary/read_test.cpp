#include "gpumem/summary/formats.hpp"

#include <cstdio>

#include "graphs.hpp"
#include "own_path.hpp"

namespace gpumem::summary {
namespace {

using core::ErrorCode;
using testing::Described;
using testing::fails;
using testing::read_layers;
using testing::succeeds;

constexpr std::string_view kTree = "Net(\n  (fc): Linear(in_features=3, out_features=4, bias=True)\n)\n";
constexpr std::string_view kTable =
    "----------------------------------------------------------------\n"
    "        Layer (type)               Output Shape         Param #\n"
    "================================================================\n"
    "            Linear-1                     [-1, 4]              16\n"
    "================================================================\n";

TEST(Read, RefusesAnEmptyText) {
  for (const char* text : {"", " \n\t\r\n", "\xEF\xBB\xBF"}) {
    EXPECT_TRUE(fails(parse_summary(text), ErrorCode::malformed_input, 1, "is empty")) << '"' << text << '"';
  }
}

TEST(Read, IgnoresAByteOrderMark) {
  EXPECT_EQ(read_layers("\xEF\xBB\xBF" + std::string(kTree)), (Described{"linear fc 16"}));
}

TEST(Read, NamesUtf16) {
  EXPECT_TRUE(fails(parse_summary(std::string_view("\xFF\xFEN\0e\0t\0", 8)), ErrorCode::malformed_input, 1, "UTF-16"));
  EXPECT_TRUE(fails(parse_summary(std::string_view("\xFE\xFF\0N\0e\0t", 8)), ErrorCode::malformed_input, 1, "UTF-16"));
}

TEST(Read, RefusesBinaryFiles) {
  const std::string text = std::string(kTree) + std::string("x\0y", 3);
  EXPECT_TRUE(fails(parse_summary(text), ErrorCode::malformed_input, 4, "is binary"));
}

TEST(Read, RefusesWhatIsNotUtf8AndNamesTheLine) {
  const std::vector<std::string> wrong = {
      "\xFF",              // never occurs
      "\x80",              // continues nothing
      "\xC0\xAF",          // overlong, two bytes
      "\xE0\x80\xAF",      // overlong, three bytes
      "\xF0\x80\x80\xAF",  // overlong, four bytes
      "\xED\xA0\x80",      // surrogate
      "\xF4\x90\x80\x80",  // beyond U+10FFFF
      "\xE2\x94",          // box drawing cut in half
      "\xE2\x94x",
  };
  for (const std::string& bytes : wrong) {
    EXPECT_TRUE(
        fails(parse_summary("a\nb\nc" + bytes + "\n"), ErrorCode::malformed_input, 3, "bytes that are not UTF-8"));
    EXPECT_TRUE(fails(parse_summary("a\nb\n" + bytes), ErrorCode::malformed_input, 3, "bytes that are not UTF-8"));
  }
}

TEST(Read, TakesUtf8OfEveryLength) {
  const std::string prose = "é │ 😀 " + std::string(3, ' ') + "Größe\n";
  EXPECT_EQ(read_layers(prose + std::string(kTree)), (Described{"linear fc 16"}));
}

TEST(Read, SaysWhichFormatsThereAre) {
  EXPECT_TRUE(
      fails(parse_summary("hello\n"), ErrorCode::unknown_format, 1,
            "none of the summaries that gpumem reads: torchsummary, from torchsummary.summary(model, input_size); "));
}

TEST(Read, RefusesTwoFormatsInOneFileAndNamesBothLines) {
  const auto graph = parse_summary(std::string(kTree) + "\n" + std::string(kTable));
  EXPECT_TRUE(fails(graph, ErrorCode::unknown_format, 6,
                    "holds two summaries, torchsummary in line 6 and module_tree in line 1"));
}

TEST(Read, AnErrorNamesTheFile) {
  const auto graph = read("hello\n", {&ops::vocabulary(), "model.txt"});
  ASSERT_FALSE(graph);
  EXPECT_EQ(core::to_string(graph.error()).substr(0, 12), "model.txt:1:");
}

TEST(Read, TakesAListOfFormatsOfTheCallersOwn) {
  static constexpr Format kMine = {"mine", "a line that says so",
                                   [](std::string_view text, std::size_t from) -> std::optional<std::size_t> {
                                     const std::size_t at = text.find("mine!", from);
                                     return at == std::string_view::npos ? std::nullopt : std::optional(at);
                                   },
                                   [](std::string_view, std::size_t, const ReadOptions& options) {
                                     model::GraphBuilder builder("mine", options.file);
                                     builder.add({.name = "layer", .parameters = 7});
                                     return std::move(builder).build();
                                   }};
  Formats extended = formats();
  extended.push_back(&kMine);
  const auto graph = read("this is mine!", {&ops::vocabulary()}, extended);
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 7);
}

TEST(Read, ALongLineIsReadInTimeInProportion) {
  const std::string line(std::size_t{8} << 20, 'x');
  EXPECT_TRUE(fails(parse_summary(line), ErrorCode::unknown_format, 1, "none of the summaries"));
  EXPECT_TRUE(fails(parse_summary(std::string(std::size_t{8} << 20, '(')), ErrorCode::unknown_format, 1, "none of"));
}

TEST(ReadFile, NamesTheFileThatCannotBeRead) {
  const auto graph = read_summary("/nowhere/model.txt");
  ASSERT_TRUE(fails(graph, ErrorCode::unreadable_file, 0, "cannot open"));
  EXPECT_EQ(graph.error().place.file, "/nowhere/model.txt");
}

TEST(ReadFile, ReadsAFile) {
  const std::string path = testing::own_path("read_test.txt").string();
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  std::fwrite(kTree.data(), 1, kTree.size(), file);
  std::fclose(file);
  const auto graph = read_summary(path);
  std::remove(path.c_str());
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->file(), path);
  EXPECT_EQ(graph->parameters(), 16);
}

}  // namespace
}  // namespace gpumem::summary
