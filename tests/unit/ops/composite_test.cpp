#include "gpumem/ops/composite.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using core::Dim;
using core::Shape;
using testing::output_text;

Shape image(std::int64_t channels, std::int64_t size) {
  Shape shape;
  for (const Dim dim : {Dim::batch(), Dim::fixed(channels), Dim::fixed(size), Dim::fixed(size)}) shape.push_back(dim);
  return shape;
}

TEST(Composite, BlurPoolHalvesAnImageAndRoundsUp) {
  EXPECT_EQ(output_text("blur_pool", "", {image(64, 56)}), "[N, 64, 28, 28]");
  EXPECT_EQ(output_text("blur_pool", "", {image(64, 7)}), "[N, 64, 4, 4]");
}

TEST(Composite, BlurPoolNeedsImages) {
  Shape tokens;
  for (const Dim dim : {Dim::batch(), Dim::fixed(49), Dim::fixed(64)}) tokens.push_back(dim);
  EXPECT_NE(output_text("blur_pool", "", {tokens}).find("needs 4 axes"), std::string::npos);
}

TEST(Composite, NormsAndScalesKeepTheShape) {
  for (const std::string_view op : {"layer_scale", "evo_norm", "global_response_norm", "filter_response_norm"}) {
    EXPECT_EQ(output_text(op, "", {image(8, 4)}), "[N, 8, 4, 4]") << op;
  }
}

TEST(Composite, SpaceToDepthMakesChannelsOfPixels) {
  EXPECT_EQ(output_text("space_to_depth", "", {image(3, 224)}), "[N, 48, 56, 56]");
  EXPECT_NE(output_text("space_to_depth", "", {image(3, 30)}).find("4 divides"), std::string::npos);
}

TEST(Composite, ClassesThatPrintNothingAreKnown) {
  EXPECT_EQ(vocabulary().find_torch("EvoNorm2dS0a")->name, "evo_norm");
  EXPECT_EQ(vocabulary().find_torch("BlurPool2d")->name, "blur_pool");
  EXPECT_EQ(vocabulary().find_torch("LayerScale2d")->name, "layer_scale");
}

TEST(Composite, ATreeShowsOnOneLineWhatATableShowsWithItsParts) {
  EXPECT_EQ(vocabulary().find_tree("SelectAdaptivePool2d")->name, "adaptive_avg_pool2d");
  EXPECT_EQ(vocabulary().find_torch("SelectAdaptivePool2d"), nullptr);
  EXPECT_EQ(vocabulary().find_tree("Conv2d"), vocabulary().find_torch("Conv2d"));
}

}  // namespace
}  // namespace gpumem::ops
