// What transformers 4.57's own processors give for these sizes.
#include "gpumem/architectures/image_rules.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace gpumem::architectures {
namespace {

constexpr PixelBounds kQwen2 = {.factor = 28, .least = 3136, .most = 12'845'056};
constexpr PixelBounds kQwen3 = {.factor = 32, .least = 65'536, .most = 16'777'216};

TEST(ImageRules, ResizeAsQwenDoes) {
  struct Case {
    PictureSize given;
    PictureSize second;
    PictureSize third;
  };
  constexpr Case kCases[] = {{{1024, 768}, {1036, 756}, {1024, 768}}, {{640, 480}, {644, 476}, {640, 480}},
                             {{28, 28}, {56, 56}, {256, 256}},        {{5000, 4000}, {4004, 3192}, {4576, 3648}},
                             {{100, 1000}, {112, 1008}, {96, 992}},   {{30, 20}, {84, 56}, {320, 224}},
                             {{854, 480}, {840, 476}, {864, 480}}};
  for (const Case& each : kCases) {
    EXPECT_EQ(smart_resize(each.given, kQwen2), each.second) << each.given.width;
    EXPECT_EQ(smart_resize(each.given, kQwen3), each.third) << each.given.width;
  }
  EXPECT_FALSE(smart_resize({2010, 10}, kQwen2).has_value()) << "they refuse it";
}

TEST(ImageRules, ResizeAllFramesOfAVideoTogether) {
  const auto resized = [](const PictureSize& size, std::int64_t frames) {
    return smart_resize(size, {.factor = 32, .least = 4096, .most = 25'165'824, .frames = frames});
  };
  EXPECT_EQ(resized({640, 360}, 16), (PictureSize{640, 352}));
  EXPECT_EQ(resized({1920, 1080}, 64), (PictureSize{832, 448}));
  EXPECT_EQ(resized({1280, 720}, 768), (PictureSize{224, 128}));
}

TEST(ImageRules, ChooseTheCanvasAndCutThePaddingAsLlavaDoes) {
  constexpr std::array<PictureSize, 5> kNext = {{{672, 336}, {336, 672}, {672, 672}, {336, 1008}, {1008, 336}}};
  std::vector<PictureSize> vision;
  for (std::int64_t rows = 1; rows <= 6; ++rows) {
    for (std::int64_t columns = 1; columns <= 6; ++columns) vision.push_back({384 * columns, 384 * rows});
  }
  struct Case {
    PictureSize given;
    PictureSize canvas;
    std::int64_t tokens;
    PictureSize vision_canvas;
    std::int64_t vision_tokens;
  };
  constexpr Case kCases[] = {{{1024, 768}, {672, 672}, 2340, {1152, 768}, 4725},
                             {{640, 480}, {672, 672}, 2340, {768, 768}, 2929},
                             {{300, 1200}, {336, 1008}, 1944, {384, 1536}, 3753},
                             {{1600, 400}, {1008, 336}, 1890, {1920, 768}, 5353},
                             {{4000, 3000}, {672, 672}, 2340, {2304, 1920}, 7309}};
  for (const Case& each : kCases) {
    const auto tokens = [&](const PictureSize& canvas, std::int64_t tile, std::int64_t side, std::int64_t most) {
      const TileGrid kept = unpadded_features(each.given, {canvas.height / tile, canvas.width / tile}, side, most);
      return kept.tiles() + kept.rows + side * side;
    };
    EXPECT_EQ(best_resolution(each.given, kNext), each.canvas) << each.given.width;
    EXPECT_EQ(tokens(each.canvas, 336, 24, 0), each.tokens) << each.given.width;
    EXPECT_EQ(best_resolution(each.given, vision), each.vision_canvas) << each.given.width;
    EXPECT_EQ(tokens(each.vision_canvas, 384, 27, 9), each.vision_tokens) << each.given.width;
  }
}

TEST(ImageRules, CutTilesAsInternVlDoes) {
  EXPECT_EQ(closest_grid({1024, 768}, 448, 12), (TileGrid{3, 4}));
  EXPECT_EQ(closest_grid({448, 448}, 448, 12), (TileGrid{1, 1}));
  EXPECT_EQ(closest_grid({800, 1300}, 448, 12), (TileGrid{3, 2}));
  EXPECT_EQ(closest_grid({3000, 500}, 448, 12), (TileGrid{1, 6}));
  EXPECT_EQ(closest_grid({300, 300}, 448, 12), (TileGrid{1, 1}));
  EXPECT_EQ(closest_grid({2000, 2000}, 448, 12), (TileGrid{3, 3}));
  EXPECT_EQ((TileGrid{3, 4}).with_thumbnail(), 13);
  EXPECT_EQ((TileGrid{1, 1}).with_thumbnail(), 1);
}

TEST(ImageRules, CutTilesAsIdeficsDoes) {
  EXPECT_EQ(covering_grid({1024, 768}, 1536, 384), (TileGrid{3, 4}));
  EXPECT_EQ(covering_grid({500, 1300}, 1536, 384), (TileGrid{4, 2}));
  EXPECT_EQ(covering_grid({3000, 500}, 1536, 384), (TileGrid{1, 4}));
}

TEST(ImageRules, KeepWholePatchesAsPixtralDoes) {
  EXPECT_EQ(patched_size({1024, 768}, 1024, 16), (PictureSize{1024, 768}));
  EXPECT_EQ(patched_size({1000, 700}, 1540, 28), (PictureSize{1008, 700}));
  EXPECT_EQ(patched_size({3080, 1540}, 1540, 28), (PictureSize{1540, 784}));
}

TEST(ImageRules, EnlargeLeastAsLlama4Does) {
  // The example of get_best_fit(): a picture of 300 x 200, tiles of 224.
  EXPECT_EQ(least_scaled_grid({300, 200}, 224, 3), (TileGrid{1, 2}));
  EXPECT_EQ(least_scaled_grid({336, 336}, 336, 16), (TileGrid{1, 1}));
  EXPECT_EQ(least_scaled_grid({10'000, 10'000}, 336, 16), (TileGrid{4, 4})) << "none holds it";
}

}  // namespace
}  // namespace gpumem::architectures
