#include "gpumem/connect/wiring.hpp"

#include <cmath>

#include "block_trees.hpp"

namespace gpumem::connect {
namespace {

using testing::N;
using testing::ops_of;
using testing::shape;
using testing::succeeds;

TEST(Opaque, ParametersTellHowMuchIsKept) {
  // 1.4 tensors of 6,400 elements for each 64 x 64 parameters; at most 64 as large as the input.
  const OpaqueRow row = {shape({N, 32, 20, 20}), shape({N, 64, 10, 10}), 10 * 64 * 64};
  const KeptElements kept = kept_by(row, std::nullopt);
  EXPECT_EQ(kept.least, 0);
  EXPECT_EQ(kept.expected, 14 * 6'400);
  EXPECT_EQ(kept.most, 64 * 12'800);
  // A module of a tree that holds none.
  EXPECT_EQ(kept_by({row.input, row.output, row.parameters, false}, std::nullopt).most, 3 * 14 * 12'800);
}

TEST(Opaque, NoRowKeepsLessThanTwoTensorsOrMoreThan64) {
  const core::Shape images = shape({N, 8, 4, 4});
  EXPECT_EQ(kept_by({images, images, 1}, std::nullopt).expected, 2 * 128);
  EXPECT_EQ(kept_by({images, images, 1'000'000'000'000}, std::nullopt).expected, 64 * 128);
}

TEST(Opaque, AnUnknownSizeKeepsNothingThatIsKnown) {
  EXPECT_EQ(kept_by({shape({N, 8}), shape({N, core::Dim::unknown()}), 100}, std::nullopt).expected, 0);
}

/// A table of 16 x 8 x 8 = 1,024 elements a row, whose foot tells what all layers leave, if it is told.
std::string table_of(std::string_view rows, std::string_view foot = "") {
  return R"(===================================================================================
Layer (type:depth-idx)                   Output Shape              Param #
===================================================================================
Net                                      [2, 16, 8, 8]             --
├─Conv2d: 1-1                            [2, 16, 8, 8]             432
)" + std::string(rows) +
         R"(===================================================================================
Total params: 1
Input size (MB): 0.00
)" + std::string(foot);
}
constexpr std::string_view kTwo =
    "├─Mine: 1-2                              [2, 16, 8, 8]             512\n"
    "├─Mine: 1-3                              [2, 16, 8, 8]             512\n";
// 0.16 MB: 10,000 elements a sample.
constexpr std::string_view kFoot = "Forward/backward pass size (MB): 0.16\n";

TEST(Opaque, TheFootIsDividedAmongTheRowsThatHideLayers) {
  const auto graph = parse_summary(table_of(kTwo, kFoot));
  ASSERT_TRUE(succeeds(graph));
  const auto told = told_by_foot(*graph);
  ASSERT_TRUE(told.has_value());
  const core::Shape images = shape({N, 16, 8, 8});
  const double hidden = (10'000.0 - 1'024.0) / 2.0;
  const KeptElements kept = kept_by({images, images, 512}, told);
  EXPECT_NEAR(static_cast<double>(kept.least), 0.75 * hidden - 1'024.0, 1.0);
  EXPECT_NEAR(static_cast<double>(kept.expected), 1.7 * hidden - 1'024.0, 1.0);
  EXPECT_NEAR(static_cast<double>(kept.most), 4.0 * hidden - 1'024.0, 1.0);
}

TEST(Opaque, AFootThatShownRowsUseUpTellsNothing) {
  const auto graph = parse_summary(table_of(kTwo, "Forward/backward pass size (MB): 0.01\n"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_FALSE(told_by_foot(*graph).has_value());
}

TEST(Opaque, ARowThatEnlargesImagesKeepsWhatItJoins) {
  const core::Shape images = shape({N, 16, 8, 8});
  const KeptElements kept = kept_by({images, images, 512}, ToldByFoot{1.0, true});
  EXPECT_EQ(kept.expected, std::llround(1.7 * 2.8 * 1'024) - 1'024);
  constexpr std::string_view kLarger =
      "├─Mine: 1-2                              [2, 16, 8, 8]             512\n"
      "├─Mine: 1-3                              [2, 16, 16, 16]           512\n";
  const auto graph = parse_summary(table_of(kLarger, "Forward/backward pass size (KB): 1,160.00\n"));
  ASSERT_TRUE(succeeds(graph));
  EXPECT_EQ(graph->printed_outputs(), 72'500);
  const auto told = told_by_foot(*graph);
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->copies);
}

TEST(Opaque, LayersOfManyMultiplicationsKeepLittleBesideTheirOutputs) {
  const core::Shape images = shape({N, 16, 8, 8});
  const KeptElements kept = kept_by({images, images, 512}, ToldByFoot{1.0, false});
  EXPECT_EQ(kept.expected, std::llround(1.2 * 2.8 * 1'024) - 1'024);
  // 8,976 hidden outputs, 2 x 512 parameters at 64 pixels: 7 multiplications each; or 73.
  const auto few = told_by_foot(*parse_summary(table_of(kTwo, kFoot)));
  ASSERT_TRUE(few.has_value());
  EXPECT_TRUE(few->copies);
  constexpr std::string_view kWide = "├─Mine: 1-2                              [2, 16, 8, 8]             10,240\n";
  const auto many = told_by_foot(*parse_summary(table_of(kWide, kFoot)));
  ASSERT_TRUE(many.has_value());
  EXPECT_FALSE(many->copies);
}

TEST(Opaque, AListWithoutAShapeHidesLayersToo) {
  constexpr std::string_view kList = "├─ModuleList: 1-2                        --                        1,024\n";
  const auto wired = testing::wired_tree(table_of(kList, kFoot), {3, 8, 8});
  ASSERT_TRUE(succeeds(wired));
  EXPECT_EQ(ops_of(table_of(kList, kFoot), {3, 8, 8}), "conv2d opaque");
  EXPECT_EQ(wired->guesses().bounded, 1);
  EXPECT_EQ(ops_of(table_of(kList), {3, 8, 8}), "conv2d parameter");
}

TEST(Opaque, AnUnknownClassIsBoundedAndNamedOnce) {
  const auto wired = testing::wired_tree(table_of(kTwo, kFoot), {3, 8, 8});
  ASSERT_TRUE(succeeds(wired));
  EXPECT_EQ(ops_of(table_of(kTwo, kFoot), {3, 8, 8}), "conv2d opaque opaque");
  EXPECT_EQ(wired->graph().parameters(), 432 + 2 * 512);
  EXPECT_EQ(wired->graph().unknown_layers(), 0);
  EXPECT_EQ(wired->guesses().bounded, 2);
  EXPECT_GT(wired->guesses().fewer_elements, 0);
  EXPECT_GT(wired->guesses().more_elements, wired->guesses().fewer_elements);
  EXPECT_EQ(wired->guesses().edges, 0);
  ASSERT_EQ(wired->graph().warnings().size(), 1U);
  EXPECT_EQ(wired->graph().warnings()[0].place.line, 6);
  EXPECT_NE(wired->graph().warnings()[0].message.find("class 'Mine'"), std::string::npos);
}

TEST(Opaque, StrictRefusesIt) {
  EXPECT_TRUE(testing::fails(testing::wired_tree(table_of(kTwo, kFoot), {3, 8, 8}, true), ErrorCode::unknown_layer, 6,
                             "holds 512 parameters"));
}

TEST(Opaque, WhereMostWouldBeAGuessItIsRefusedWithTheShare) {
  // Two rows keep 2.8 tensors each in addition to three that are known, where no foot tells more.
  EXPECT_TRUE(testing::fails(testing::wired_tree(table_of(kTwo), {3, 8, 8}), ErrorCode::unknown_layer, 0,
                             "63 % of what the model takes would be a guess"));
}

TEST(Opaque, ALayerOfATreeLeavesWhatItReads) {
  constexpr std::string_view kTree =
      "M(\n  (a): Linear(8, 64), 576 params\n  (b): ReLU(), 0 params\n  (c): Linear(64, 64), 4,160 params\n"
      "  (odd): Mine(), 100 params\n  (d): Linear(64, 4), 260 params\n), 5,096 params\n";
  EXPECT_EQ(ops_of(kTree, {8}), "linear relu linear opaque linear");
}

}  // namespace
}  // namespace gpumem::connect
