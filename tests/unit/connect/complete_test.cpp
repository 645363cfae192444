#include "gpumem/connect/complete.hpp"

#include "graphs.hpp"

namespace gpumem::connect {
namespace {

core::Shape shape_of(std::initializer_list<std::int64_t> sample) {
  core::Shape shape;
  shape.push_back(core::Dim::batch());
  for (const std::int64_t size : sample) shape.push_back(core::Dim::fixed(size));
  return shape;
}

const model::OpTraits* row(std::string_view op) { return ops::vocabulary().find_op(op); }

/// "kernel 7x7 stride 2x2 padding 3x3 groups 1 bias", or "nothing".
std::string convolution(const PrintedLayer& layer, const core::Shape& input, bool usual = false) {
  const auto found = complete(layer, input, usual);
  if (!found) return "nothing";
  const model::Attributes attributes(*found);
  std::string text;
  for (const std::string name : {"kernel_size", "stride", "padding"}) {
    text += name + " " + std::to_string(attributes.per_axis(name, 0).value_or(-1)) + "x" +
            std::to_string(attributes.per_axis(name, 1).value_or(-1)) + " ";
  }
  text += "groups " + std::to_string(attributes.integer("groups").value_or(-1));
  return text + (attributes.flag("bias", false) ? " bias" : "");
}

TEST(Complete, AConvolutionFromItsCountAndShapes) {
  EXPECT_EQ(convolution({row("conv2d"), {}, shape_of({64, 112, 112}), 9408, true}, shape_of({3, 224, 224})),
            "kernel_size 7x7 stride 2x2 padding 3x3 groups 1");
  EXPECT_EQ(convolution({row("conv2d"), {}, shape_of({64, 55, 55}), 23296, false}, shape_of({3, 224, 224})),
            "kernel_size 11x11 stride 4x4 padding 2x2 groups 1 bias");
  EXPECT_EQ(convolution({row("conv2d"), {}, shape_of({768, 14, 14}), 590592, false}, shape_of({3, 224, 224})),
            "kernel_size 16x16 stride 16x16 padding 0x0 groups 1 bias");
  EXPECT_EQ(convolution({row("conv2d"), {}, shape_of({128, 17, 17}), 114688, true}, shape_of({128, 17, 17})),
            "kernel_size 1x7 stride 1x1 padding 0x3 groups 1");
}

TEST(Complete, AConvolutionOfEachChannelAndOfGroups) {
  EXPECT_EQ(convolution({row("conv2d"), {}, shape_of({96, 56, 56}), 864, true}, shape_of({96, 112, 112})),
            "kernel_size 3x3 stride 2x2 padding 1x1 groups 96");
  const PrintedLayer grouped = {row("conv2d"), {}, shape_of({128, 56, 56}), 4608, true};
  EXPECT_EQ(convolution(grouped, shape_of({128, 56, 56})), "kernel_size 3x3 stride 1x1 padding 1x1 groups 32");
  EXPECT_EQ(convolution(grouped, shape_of({128, 56, 56}), true), "nothing");
}

TEST(Complete, NothingFitsASizeThatContradicts) {
  EXPECT_EQ(convolution({row("conv2d"), {}, shape_of({256, 56, 56}), 16384, true}, shape_of({256, 56, 56}), true),
            "nothing");
  EXPECT_EQ(convolution({row("conv2d"), {}, shape_of({16, 55, 55}), 2064, false}, shape_of({64, 55, 55})), "nothing");
  EXPECT_FALSE(complete({row("linear"), {}, shape_of({10}), 5130, false}, shape_of({100})).has_value());
}

TEST(Complete, SizesBeyondAnyModelTakeNoTime) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_EQ(convolution({row("conv2d"), {}, shape_of({kHuge, kHuge, 1}), kHuge, false}, shape_of({kHuge, 1, kHuge})),
            "nothing");
}

TEST(Complete, ALayerCanReadWhatItIsCompletedFrom) {
  const std::vector<PrintedLayer> layers = {{row("conv2d"), {}, shape_of({64, 112, 112}), 9408, true},
                                            {row("conv2d"), {}, shape_of({128, 56, 56}), 4608, true},
                                            {row("conv2d"), {}, shape_of({16, 55, 55}), 2064, false},
                                            {row("linear"), {}, shape_of({10}), 5130, false},
                                            {row("batch_norm2d"), {}, shape_of({64, 56, 56}), 128, false},
                                            {nullptr, {}, shape_of({64, 56, 56}), 0, false}};
  const std::vector<core::Shape> inputs = {
      shape_of({3, 224, 224}), shape_of({128, 56, 56}), shape_of({64, 55, 55}), shape_of({512}),
      shape_of({100}),         shape_of({64, 56, 56}),  core::Shape()};
  std::size_t readable = 0;
  for (const PrintedLayer& layer : layers) {
    for (const core::Shape& input : inputs) {
      EXPECT_EQ(can_read(layer, input), complete(layer, input, true).has_value());
      readable += can_read(layer, input) ? 1 : 0;
    }
  }
  EXPECT_GE(readable, 2 + 2 * inputs.size()) << "the first convolution, the linear layer, and all that read anything";
  EXPECT_LT(readable, layers.size() * inputs.size());
}

TEST(Complete, WhatIsPrintedStays) {
  const std::vector<model::Attribute> printed = {{"stride", std::vector<std::int64_t>{4, 4}}, {"bias", true}};
  const auto found = complete({row("conv2d"), model::Attributes(printed), shape_of({64, 112, 112}), 9408, true},
                              shape_of({3, 224, 224}));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(model::Attributes(*found).per_axis("stride", 0), 4);
  EXPECT_EQ(model::Attributes(*found).per_axis("kernel_size", 1), 7);
  EXPECT_TRUE(model::Attributes(*found).flag("bias", false));
  EXPECT_EQ(found->size(), 7U) << "each name once";
}

TEST(Complete, LinearAndNormalisationLayers) {
  const auto linear = complete({row("linear"), {}, shape_of({10}), 5130, false}, shape_of({512}));
  ASSERT_TRUE(linear.has_value());
  EXPECT_EQ(model::Attributes(*linear).integer("in_features"), 512);
  EXPECT_TRUE(model::Attributes(*linear).flag("bias", false));
  const auto norm = complete({row("layer_norm"), {}, shape_of({197, 768}), 1536, false}, shape_of({197, 768}));
  ASSERT_TRUE(norm.has_value());
  EXPECT_EQ(model::Attributes(*norm).per_axis("normalized_shape", 0), 768);
}

}  // namespace
}  // namespace gpumem::connect
