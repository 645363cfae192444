#include "gpumem/summary/torchinfo.hpp"

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

constexpr std::string_view kRule =
    "==========================================================================================\n";

std::string table(std::string_view header, std::string_view rows, std::string_view foot = "") {
  return std::string(kRule) + std::string(header) + std::string(kRule) + std::string(rows) + std::string(kRule) +
         std::string(foot);
}

constexpr std::string_view kHeader = "Layer (type:depth-idx)                   Output Shape              Param #\n";
constexpr std::string_view kRows =
    "Net                                      [32, 10]                  --\n"
    "├─Sequential: 1-1                        [32, 16, 8, 8]            --\n"
    "│    └─Conv2d: 2-1                       [32, 16, 8, 8]            448\n"
    "│    └─ReLU: 2-2                         [32, 16, 8, 8]            --\n"
    "├─Linear: 1-2                            [32, 10]                  10,250\n";

TEST(Torchinfo, ReadsTheLeavesOfTheTree) {
  const auto graph = parse_summary(table(kHeader, kRows, "Total params: 10,698\nTrainable params: 10,698\n"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->format(), "torchinfo");
  EXPECT_EQ(describe(*graph), (Described{"conv2d Conv2d: 2-1 [N, 16, 8, 8] 448", "relu ReLU: 2-2 [N, 16, 8, 8] 0",
                                         "linear Linear: 1-2 [N, 10] 10250"}));
  EXPECT_EQ(graph->parameters(), 10698);
  EXPECT_TRUE(graph->warnings().empty());
  EXPECT_EQ(graph->layers()[0].line, 6U);
}

TEST(Torchinfo, ReadsTheTreeInAscii) {
  EXPECT_EQ(read_layers(table(kHeader,
                              "Net                                      [32, 10]                  --\n"
                              "+ Sequential: 1-1                        [32, 16, 8, 8]            --\n"
                              "|    + Conv2d: 2-1                       [32, 16, 8, 8]            448\n"
                              "|    + ReLU: 2-2                         [32, 16, 8, 8]            --\n"
                              "+ Linear: 1-2                            [32, 10]                  10,250\n")),
            read_layers(table(kHeader, kRows)));
}

TEST(Torchinfo, ReadsAnyColumnsAndVariableNames) {
  const auto graph = parse_summary(table(
      "Layer (type (var_name):depth-idx)        Kernel Shape      Input Shape         Output Shape        Param #      "
      "Param %      Mult-Adds      Trainable\n",
      "Net (Net)                                --                [8, 3, 8, 8]        [8, 10]             --           "
      "--           --             True\n"
      "├─Conv2d (conv1): 1-1                    [3, 3]            [8, 3, 8, 8]        [8, 16, 8, 8]       448          "
      "4.19%        229,376        True\n"
      "├─MaxPool2d (pool): 1-2                  2                 [8, 16, 8, 8]       [8, 16, 4, 4]       --           "
      "--           --             --\n"
      "├─Linear (fc): 1-3                       --                [8, 256]            [8, 10]             2,570        "
      "95.81%       20,560         True\n"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph),
            (Described{"conv2d Conv2d (conv1): 1-1 [N, 16, 8, 8] 448",
                       "max_pool2d MaxPool2d (pool): 1-2 [N, 16, 4, 4] 0", "linear Linear (fc): 1-3 [N, 10] 2570"}));
  EXPECT_EQ(graph->attributes(graph->layers()[0]).per_axis("kernel_size", 1), 3);
}

TEST(Torchinfo, AnInputColumnTellsTheBatchOfASequenceFirstModel) {
  const auto graph = parse_summary(
      table("Layer (type:depth-idx)                   Input Shape          Output Shape         Param #\n",
            "Net                                      [16, 128]            [16, 5]              --\n"
            "├─Linear: 1-1                            [32, 128]            [32, 5]              645\n"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph), (Described{"linear Linear: 1-1 [2N, 5] 645"}));
}

TEST(Torchinfo, SkipsTheTensorsThatVerboseTwoLists) {
  EXPECT_EQ(
      read_layers(table("Layer (type:depth-idx)                   Kernel Shape      Output Shape         Param #\n",
                        "Net                                      --                [1, 10]              --\n"
                        "├─Linear: 1-1                            --                [1, 10]              110\n"
                        "│    └─weight                            [10, 10]                               100\n"
                        "│    └─bias                              [10]                                   10\n"
                        "├─ReLU: 1-2                              --                [1, 10]              --\n")),
      (Described{"linear Linear: 1-1 [N, 10] 110", "relu ReLU: 1-2 [N, 10] 0"}));
}

TEST(Torchinfo, CountsARecursiveLayersParametersOnce) {
  const auto graph =
      parse_summary(table(kHeader,
                          "Net                                      [1, 10]                   --\n"
                          "├─Linear: 1-1                            [1, 10]                   110\n"
                          "├─Linear: 1-2                            [1, 10]                   (recursive)\n",
                          "Total params: 110\n"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph), (Described{"linear Linear: 1-1 [N, 10] 110", "linear Linear: 1-2 [N, 10] 0"}));
  EXPECT_TRUE(graph->warnings().empty());
}

TEST(Torchinfo, ReadsFrozenParameters) {
  const auto graph = parse_summary(table(kHeader,
                                         "Net                                      [1, 10]                   --\n"
                                         "├─Linear: 1-1                            [1, 10]                   (1,010)\n"
                                         "├─Linear: 1-2                            [1, 10]                   110\n"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph), (Described{"linear Linear: 1-1 [N, 10] 1010 frozen", "linear Linear: 1-2 [N, 10] 110"}));
  EXPECT_EQ(graph->trainable_parameters(), 110);
}

TEST(Torchinfo, AContainerMayHoldParametersOfItsOwn) {
  const auto graph = parse_summary(table(kHeader,
                                         "ViT                                      [1, 10]                   768\n"
                                         "├─Linear: 1-1                            [1, 10]                   110\n",
                                         "Total params: 878\n"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(describe(*graph), (Described{"parameter ViT 768", "linear Linear: 1-1 [N, 10] 110"}));
  EXPECT_EQ(warnings(*graph), (Described{"4: container 'ViT' holds 768 parameters of its own; what it computes with "
                                         "them is not printed"}));
}

TEST(Torchinfo, ADepthThatCutsContainersLeavesTheirOutputs) {
  const std::string text = table(kHeader,
                                 "Net                                      [1, 10]                   --\n"
                                 "├─Sequential: 1-1                        [1, 10]                   10,250\n");
  EXPECT_EQ(read_layers(text), (Described{"opaque Sequential: 1-1 [N, 10] 10250"}));
  const model::Vocabulary without_that_op;
  EXPECT_TRUE(fails(summary::read(text, {&without_that_op, {}, false}), ErrorCode::unknown_layer, 5,
                    "print the summary with a greater depth"));
  const auto lenient = parse_summary(text, true);
  ASSERT_TRUE(succeeds(lenient));
  EXPECT_EQ(lenient->unknown_layers(), 1);
  EXPECT_EQ(lenient->parameters(), 10250);
}

TEST(Torchinfo, TheFootTellsWhatAllLayersLeave) {
  const auto read = [](const std::string& foot) {
    return parse_summary(table(kHeader,
                               "Net                                      [2, 10]                   --\n"
                               "├─Linear: 1-1                            [2, 10]                   110\n",
                               "Total params: 110\n" + foot));
  };
  const auto told = read("Input size (MB): 0.00\nForward/backward pass size (MB): 1.60\n");
  ASSERT_TRUE(succeeds(told));
  EXPECT_EQ(told->printed_outputs(), 100'000) << "1.6 MB, of 2 samples, twice in 4 bytes";
  for (const char* odd : {"", "Forward/backward pass size (MB): much\n", "Forward/backward pass size (PB): 1.60\n"}) {
    const auto silent = read(std::string("Input size (MB): 0.00\n") + odd);
    ASSERT_TRUE(succeeds(silent));
    EXPECT_FALSE(silent->printed_outputs().has_value()) << odd;
  }
}

TEST(Torchinfo, WarnsOfATotalThatDisagrees) {
  const auto graph = parse_summary(table(kHeader, kRows, "Total params: 9,999\n"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(warnings(*graph), (Described{"10: the summary prints a total of 9,999 parameters; its layers hold 10,698, "
                                         "which is used"}));
}

TEST(Torchinfo, NamesAMissingColumn) {
  EXPECT_TRUE(fails(parse_summary(table("Layer (type:depth-idx)                   Output Shape\n", "")),
                    ErrorCode::malformed_input, 2, "no column 'Param #'"));
  EXPECT_TRUE(fails(parse_summary(table("Layer (type:depth-idx)                   Param #\n", "")),
                    ErrorCode::malformed_input, 2, "no column 'Output Shape'"));
}

TEST(Torchinfo, RefusesRowsThatAreNone) {
  struct Case {
    std::string_view row;
    ErrorCode code;
    std::string_view part;
  };
  const std::vector<Case> cases = {
      {"├─Linear: 1-1   [1, 10]\n", ErrorCode::malformed_input, "too few cells"},
      {"├─Linear: 1-1   [1, 10]   1,0\n", ErrorCode::malformed_input, "is not a count"},
      {"├─Linear: 1-1   [1, 10]   110   110\n", ErrorCode::malformed_input, "is not a row"},
      {"!!!   [1, 10]   110\n", ErrorCode::malformed_input, "is not a row"},
      {"├─Linear: 1-1   [1, 0]   110\n", ErrorCode::malformed_input, "dimension of zero"},
      {"├─Linear: 1-1   [1, 10]   99999999999999999999\n", ErrorCode::overflow, "64 bits"},
  };
  for (const Case& row : cases) {
    EXPECT_TRUE(fails(parse_summary(table(kHeader, row.row)), row.code, 4, row.part)) << row.row;
  }
}

TEST(Torchinfo, TheFootOfNewerVersionsChoosesItsUnits) {
  const auto graph = parse_summary(table(kHeader, "Net   [2, 10]   --\n├─Linear: 1-1   [2, 10]   110\n",
                                         "Total params: 110\n====\nInput size: 80\n"
                                         "Forward/backward pass size (GB): 1,001.15\n"));
  ASSERT_TRUE(succeeds(graph));
  ASSERT_TRUE(graph->printed_input().has_value());
  EXPECT_EQ(graph->printed_input()->most_bytes, 41);
  EXPECT_EQ(graph->printed_outputs(), 1'001'150'000'000 / 16);
}

// A FeaturePyramidNetwork calls the modules of its two lists in turns, and each row of a list says "(recursive)".
TEST(Torchinfo, CountsWhatNoRowOfACutTableShows) {
  constexpr std::string_view kCut =
      "Net   [2, 10]   --\n├─Linear: 1-1   [2, 10]   110\n├─Pyramid: 1-2   [2, 10]   --\n"
      "│    └─ModuleList: 2-1   --   (recursive)\n│    └─ModuleList: 2-1   --   (recursive)\n";
  const auto graph = parse_summary(table(kHeader, kCut, "Total params: 1,110\n"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->parameters(), 1'110);
  ASSERT_FALSE(graph->warnings().empty());
  EXPECT_NE(graph->warnings()[0].message.find("1,000 parameters fewer than the total"), std::string::npos);
}

TEST(Torchinfo, ADetectionNetsBoxesAreNoBatch) {
  const auto graph = parse_summary(
      table(kHeader, "Net   [100, 4]   --\n├─Transform: 1-1   [2, 3, 8, 8]   --\n├─Linear: 1-2   [2, 10]   110\n"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->printed_batch_size(), 2);
}

TEST(Torchinfo, RefusesASecondTable) {
  EXPECT_TRUE(fails(parse_summary(table(kHeader, kRows) + table(kHeader, kRows)), ErrorCode::unknown_format, 11,
                    "a second summary begins here"));
}

TEST(Torchinfo, AFileCutOffAnywhereIsAnErrorOrWholeTable) {
  const std::string text = table(kHeader, kRows, "Total params: 10,698\n");
  EXPECT_LE(testing::readable_prefixes(text), static_cast<int>(kRule.size()) + 21);
}

}  // namespace
}  // namespace gpumem::summary
