#include "gpumem/summary/torchsummary.hpp"

#include "graphs.hpp"

namespace gpumem::summary {
namespace {

using core::ErrorCode;
using testing::describe;
using testing::Described;
using testing::fails;
using testing::read_layers;
using testing::succeeds;
using testing::warnings;

constexpr std::string_view kHead =
    "----------------------------------------------------------------\n"
    "        Layer (type)               Output Shape         Param #\n"
    "================================================================\n";
constexpr std::string_view kRows =
    "            Conv2d-1          [-1, 64, 112, 112]           9,408\n"
    "       BatchNorm2d-2          [-1, 64, 112, 112]             128\n"
    "              ReLU-3          [-1, 64, 112, 112]               0\n"
    "        Bottleneck-4          [-1, 64, 112, 112]               0\n"
    "            Linear-5                    [-1, 10]       8,028,170\n";
constexpr std::string_view kFoot =
    "================================================================\n"
    "Total params: 8,037,706\n"
    "Trainable params: 8,037,706\n"
    "Non-trainable params: 0\n"
    "----------------------------------------------------------------\n"
    "Input size (MB): 0.57\n"
    "Params size (MB): 30.66\n";

std::string table(std::string_view rows) { return std::string(kHead) + std::string(rows) + std::string(kFoot); }

/// A table of these rows and no total.
std::string bare_table(std::string_view rows) {
  return std::string(kHead) + std::string(rows) + std::string(kFoot.substr(0, 65));
}

TEST(Torchsummary, ReadsLayersAndLeavesContainersOut) {
  const auto graph = parse_summary(table(kRows));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->format(), "torchsummary");
  EXPECT_EQ(describe(*graph),
            (Described{"conv2d Conv2d-1 [N, 64, 112, 112] 9408", "batch_norm BatchNorm2d-2 [N, 64, 112, 112] 128",
                       "relu ReLU-3 [N, 64, 112, 112] 0", "linear Linear-5 [N, 10] 8028170"}));
  EXPECT_EQ(graph->parameters(), 8037706);
  EXPECT_TRUE(graph->edges_inferred());
  EXPECT_TRUE(graph->warnings().empty());
  EXPECT_EQ(graph->layers()[0].line, 4U);
  EXPECT_EQ(graph->layers()[3].line, 8U);
}

TEST(Torchsummary, IgnoresProseAroundTheTable) {
  const auto graph = parse_summary("$ python show.py\nusing GPU 0\n\n" + table(kRows) +
                                   "\nThis one OOMs at batch 64, ask (me) why.\n");
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->layers().size(), 4U);
  EXPECT_EQ(graph->layers()[0].line, 7U);
}

TEST(Torchsummary, ReadsARealBatchAsTheBatch) {
  EXPECT_EQ(read_layers(bare_table("            Linear-1                 [32, 5, 10]             110\n"
                                   "              ReLU-2                  [64, 10]                 0\n")),
            (Described{"linear Linear-1 [N, 5, 10] 110", "relu ReLU-2 [2N, 10] 0"}));
}

TEST(Torchsummary, ReadsSeveralOutputs) {
  EXPECT_EQ(read_layers(bare_table("              LSTM-1  [[-1, 5, 20], [-1, 2, 20]]           2,560\n")),
            (Described{"lstm LSTM-1 [N, 5, 20] [N, 2, 20] 2560"}));
}

TEST(Torchsummary, WarnsOfATotalThatDisagrees) {
  const auto graph = parse_summary(table("            Linear-1                    [-1, 10]             110\n"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 110);
  EXPECT_EQ(warnings(*graph), (Described{"6: the summary prints a total of 8,037,706 parameters; its layers hold 110, "
                                         "which is used"}));
}

TEST(Torchsummary, ReadsCrLf) {
  std::string text;
  for (const char byte : table(kRows)) text += byte == '\n' ? "\r\n" : std::string(1, byte);
  EXPECT_EQ(read_layers(text), read_layers(table(kRows)));
}

TEST(Torchsummary, AnUnknownLayerWithParametersHasItsOutput) {
  const std::string text = bare_table(
      "              ReLU-1                    [-1, 10]               0\n"
      "           MyLayer-2                    [-1, 10]           1,234\n");
  EXPECT_EQ(read_layers(text)[1], "opaque MyLayer-2 [N, 10] 1234");
  const model::Vocabulary without_that_op;
  EXPECT_TRUE(fails(summary::read(text, {&without_that_op, {}, false}), ErrorCode::unknown_layer, 5,
                    "layer 'MyLayer-2' holds 1,234 parameters"));
  const auto lenient = parse_summary(text, true);
  ASSERT_TRUE(succeeds(lenient));
  EXPECT_EQ(lenient->unknown_layers(), 1);
  EXPECT_EQ(lenient->parameters(), 1234);
  EXPECT_EQ(describe(*lenient)[1], "unknown MyLayer-2 [N, 10] 1234");
}

TEST(Torchsummary, SaysWhereItCannotCount) {
  EXPECT_TRUE(fails(parse_summary(bare_table("              LSTM-1                [-1, 5, 20]               0\n")),
                    ErrorCode::missing_information, 4, "does not count the parameters of 'LSTM-1'"));
}

TEST(Torchsummary, RefusesRowsThatAreNone) {
  struct Case {
    std::string_view row;
    ErrorCode code;
    std::string_view part;
  };
  const std::vector<Case> cases = {
      {"Conv2d-1 [-1, 64, 112, 112]\n", ErrorCode::malformed_input, "is not a row of the table"},
      {"Conv2d [-1, 64] 9,408\n", ErrorCode::malformed_input, "is not a row of the table"},
      {"Conv2d-x [-1, 64] 9,408\n", ErrorCode::malformed_input, "is not a row of the table"},
      {"-1 [-1, 64] 9,408\n", ErrorCode::malformed_input, "is not a row of the table"},
      {"Conv2d-1 -1, 64 9,408\n", ErrorCode::malformed_input, "is not a row of the table"},
      {"hello\n", ErrorCode::malformed_input, "'hello' is not a row of the table"},
      {"Conv2d-1 [-1, 64] 9,40\n", ErrorCode::malformed_input, "'9,40' is not a count"},
      {"Conv2d-1 [-1, 64] -3\n", ErrorCode::malformed_input, "'-3' is not a count"},
      {"Conv2d-1 [-1, -64] 3\n", ErrorCode::malformed_input, "negative dimension"},
      {"Conv2d-1 [-1, 0] 3\n", ErrorCode::malformed_input, "dimension of zero"},
      {"Conv2d-1 [-1, 99999999999999999999] 3\n", ErrorCode::overflow, "dimension beyond 64 bits"},
      {"Conv2d-1 [-1, 64] 99,999,999,999,999,999,999\n", ErrorCode::overflow, "does not fit 64 bits"},
  };
  for (const Case& row : cases) {
    EXPECT_TRUE(fails(parse_summary(bare_table(row.row)), row.code, 4, row.part)) << row.row;
  }
}

TEST(Torchsummary, NamesTheLayerWhoseShapeIsWrong) {
  const auto graph = parse_summary(bare_table("Conv2d-1 [-1, 64, 0, 112] 9,408\n"));
  ASSERT_TRUE(fails(graph, ErrorCode::malformed_input, 4, "dimension of zero"));
  EXPECT_EQ(graph.error().place.element, "Conv2d-1");
}

TEST(Torchsummary, RefusesATotalBeyondSixtyFourBits) {
  const std::string text = bare_table("            Linear-1                    [-1, 10]             110\n") +
                           "Total params: 99999999999999999999\n";
  EXPECT_TRUE(fails(parse_summary(text), ErrorCode::overflow, 6, "does not fit 64 bits"));
}

TEST(Torchsummary, RefusesLayersWhoseSumIsBeyondSixtyFourBits) {
  const std::string text = bare_table("Linear-1 [-1, 10] 9223372036854775807\nLinear-2 [-1, 10] 1\n");
  EXPECT_TRUE(fails(parse_summary(text), ErrorCode::overflow, 0, "do not fit 64 bits"));
}

TEST(Torchsummary, RefusesATableWithoutItsEnd) {
  EXPECT_TRUE(fails(parse_summary(std::string(kHead) + std::string(kRows)), ErrorCode::malformed_input, 8,
                    "ends without its closing line"));
  EXPECT_TRUE(fails(parse_summary(kHead.substr(0, 128)), ErrorCode::malformed_input, 2, "ends without its closing"));
}

TEST(Torchsummary, RefusesATableWithoutLayers) {
  EXPECT_TRUE(fails(parse_summary(bare_table("")), ErrorCode::malformed_input, 1, "holds no layers"));
}

TEST(Torchsummary, RefusesASecondTable) {
  EXPECT_TRUE(fails(parse_summary(table(kRows) + "\n" + table(kRows)), ErrorCode::unknown_format, 18,
                    "a second summary begins here"));
}

TEST(Torchsummary, AFileCutOffAnywhereIsAnErrorOrWholeTable) {
  const std::string text = table(kRows);
  // Once the closing line has ten of its characters the table is whole; what follows is its foot.
  const auto end = static_cast<int>(kHead.size() + kRows.size());
  EXPECT_LE(testing::readable_prefixes(text), static_cast<int>(text.size()) - end);
  EXPECT_GT(testing::readable_prefixes(text), 0);
}

}  // namespace
}  // namespace gpumem::summary
