// Expected figures: PyTorch 1.13.1, the module called on zeros.
#include "gpumem/ops/conv.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using core::ErrorCode;
using testing::fails;
using testing::N;
using testing::output;
using testing::output_text;
using testing::parameters;
using testing::shape;

TEST(Conv, HasTheOutputShapeThatPyTorchGives) {
  EXPECT_EQ(output_text("conv1d", "4, 8, kernel_size=(3,), stride=(2,), padding=(1,)", {shape({N, 4, 17})}),
            "[N, 8, 9]");
  EXPECT_EQ(output_text("conv2d", "3, 64, kernel_size=(7, 7), stride=(2, 2), padding=(3, 3), bias=False",
                        {shape({N, 3, 224, 224})}),
            "[N, 64, 112, 112]");
  EXPECT_EQ(output_text("conv2d", "6, 12, kernel_size=(3, 5), stride=(2, 1), padding=(1, 2), dilation=(2, 1), groups=3",
                        {shape({N, 6, 32, 32})}),
            "[N, 12, 15, 32]");
  EXPECT_EQ(output_text("conv3d", "2, 4, kernel_size=(3, 3, 3), stride=(2, 2, 2), padding=(1, 1, 1)",
                        {shape({N, 2, 9, 9, 9})}),
            "[N, 4, 5, 5, 5]");
}

TEST(Conv, PadsToTheSameOrTheValidSize) {
  EXPECT_EQ(output_text("conv2d", "6, 12, kernel_size=(3, 3), stride=(1, 1), padding='same'", {shape({N, 6, 10, 11})}),
            "[N, 12, 10, 11]");
  EXPECT_EQ(output_text("conv2d", "6, 12, kernel_size=(3, 3), stride=(1, 1), padding='valid'", {shape({N, 6, 10, 11})}),
            "[N, 12, 8, 9]");
}

TEST(Conv, PadsToTheSameSizeAsPyTorchPrintsItWithoutQuotes) {
  EXPECT_EQ(output_text("conv2d", "6, 12, kernel_size=(3, 3), stride=(1, 1), padding=same", {shape({N, 6, 10, 11})}),
            "[N, 12, 10, 11]");
}

TEST(ConvTranspose, HasTheOutputShapeThatPyTorchGives) {
  EXPECT_EQ(output_text("conv_transpose1d", "4, 8, kernel_size=(4,), stride=(2,), padding=(1,)", {shape({N, 4, 10})}),
            "[N, 8, 20]");
  EXPECT_EQ(output_text("conv_transpose2d",
                        "8, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), output_padding=(1, 1), groups=2",
                        {shape({N, 8, 7, 7})}),
            "[N, 4, 14, 14]");
  EXPECT_EQ(output_text("conv_transpose2d",
                        "8, 4, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), dilation=(2, 2), bias=False",
                        {shape({N, 8, 7, 7})}),
            "[N, 4, 15, 15]");
  EXPECT_EQ(output_text("conv_transpose3d", "2, 3, kernel_size=(2, 2, 2), stride=(2, 2, 2)", {shape({N, 2, 4, 4, 4})}),
            "[N, 3, 8, 8, 8]");
}

TEST(Conv, CountsTheParametersThatPyTorchCounts) {
  EXPECT_EQ(parameters("conv1d", "4, 8, kernel_size=(3,)"), 104);
  EXPECT_EQ(parameters("conv2d", "3, 64, kernel_size=(7, 7), bias=False"), 9408);
  EXPECT_EQ(parameters("conv2d", "6, 12, kernel_size=(3, 5), groups=3"), 372);
  EXPECT_EQ(parameters("conv2d", "6, 12, kernel_size=3"), 660) << "one number stands for every axis";
  EXPECT_EQ(parameters("conv3d", "2, 4, kernel_size=(3, 3, 3)"), 220);
  EXPECT_EQ(parameters("conv_transpose1d", "4, 8, kernel_size=(4,)"), 136);
  EXPECT_EQ(parameters("conv_transpose2d", "8, 4, kernel_size=(3, 3), groups=2"), 148);
  EXPECT_EQ(parameters("conv_transpose2d", "8, 4, kernel_size=(3, 3), bias=False"), 288);
  EXPECT_EQ(parameters("conv_transpose3d", "2, 3, kernel_size=(2, 2, 2)"), 51);
}

TEST(Conv, CountsNothingFromTooLittle) {
  EXPECT_EQ(parameters("conv2d", "3, 64"), -1);
  EXPECT_EQ(parameters("conv2d", "kernel_size=3"), -1);
  EXPECT_EQ(parameters("conv2d", "3, 64, kernel_size=3, groups=0"), -1);
}

TEST(Conv, CountsBeyondSixtyFourBitsOverflow) {
  EXPECT_EQ(parameters("conv2d", "4294967296, 4294967296, kernel_size=3"), -2);
}

TEST(Conv, NamesWhatItMisses) {
  const std::vector<core::Shape> image = {shape({N, 3, 8, 8})};
  EXPECT_TRUE(fails(output("conv2d", "kernel_size=3", image), ErrorCode::missing_information, 0, "out_channels"));
  EXPECT_TRUE(fails(output("conv2d", "3, 64", image), ErrorCode::missing_information, 0, "kernel_size"));
  EXPECT_TRUE(fails(output("conv_transpose2d", "3, 64", image), ErrorCode::missing_information, 0, "kernel_size"));
}

TEST(Conv, RefusesAnInputThatDoesNotFit) {
  EXPECT_TRUE(fails(output("conv2d", "3, 8, kernel_size=9", {shape({N, 3, 8, 8})}), ErrorCode::missing_information, 0,
                    "larger than its kernel"));
  EXPECT_TRUE(
      fails(output("conv2d", "3, 8, kernel_size=3", {shape({N, 3, 8})}), ErrorCode::missing_information, 0, "4 axes"));
  EXPECT_TRUE(fails(output("conv2d", "3, 8, kernel_size=3", {shape({N, 3, core::Dim::unknown(), 8})}),
                    ErrorCode::missing_information, 0, "known spatial sizes"));
  EXPECT_TRUE(fails(output("conv_transpose2d", "3, 8, kernel_size=1, padding=5", {shape({N, 3, 4, 4})}),
                    ErrorCode::missing_information, 0, "less padding"));
}

TEST(Conv, RefusesFiguresThatNoLayerHas) {
  const std::vector<core::Shape> image = {shape({N, 3, 8, 8})};
  for (const char* wrong : {"kernel_size=0", "kernel_size=-3", "kernel_size=3, stride=0", "kernel_size=3, padding=-1",
                            "kernel_size=3, dilation=0", "kernel_size=1048577", "kernel_size=9223372036854775807"}) {
    for (const char* name : {"conv2d", "conv_transpose2d"}) {
      EXPECT_TRUE(fails(output(name, std::string("3, 8, ") + wrong, image), ErrorCode::malformed_input, 0, "2^20"))
          << wrong;
    }
  }
}

TEST(ConvTranspose, RefusesAnOutputPaddingThatNoLayerHas) {
  const std::vector<core::Shape> image = {shape({N, 3, 8, 8})};
  for (const char* wrong : {"output_padding=9223372036854775807", "output_padding=-9"}) {
    EXPECT_FALSE(output("conv_transpose2d", std::string("3, 8, kernel_size=3, ") + wrong, image)) << wrong;
  }
}

TEST(Conv, CalledWithAWeightHasTheShapeOfTheModule) {
  const std::vector<core::Shape> tensors = {shape({N, 3, 8, 8}), shape({16, 3, 3, 3}), shape({16})};
  EXPECT_EQ(output_text("conv2d_function", "out_channels=16, kernel_size=(3, 3), stride=2, padding=1", tensors),
            "[N, 16, 4, 4]");
  EXPECT_FALSE(output("conv2d_function", "kernel_size=(3, 3)", tensors)) << "no channels";
  EXPECT_EQ(output_text("conv1d_function", "out_channels=4, kernel_size=3", {shape({N, 3, 8}), shape({4, 3, 3})}),
            "[N, 4, 6]");
}

}  // namespace
}  // namespace gpumem::ops
