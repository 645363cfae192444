// Expected figures: PyTorch 1.13.1, the module called on zeros of [3, 2, 10].
#include "gpumem/ops/recurrent.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

using testing::N;
using testing::output_text;
using testing::parameters;
using testing::shape;

TEST(Recurrent, CountsTheParametersThatPyTorchCounts) {
  EXPECT_EQ(parameters("lstm", "10, 20"), 2560);
  EXPECT_EQ(parameters("lstm", "10, 20, num_layers=3, bidirectional=True"), 24960);
  EXPECT_EQ(parameters("lstm", "10, 20, proj_size=5"), 1460);
  EXPECT_EQ(parameters("lstm", "10, 20, proj_size=5, num_layers=2, bidirectional=True"), 5840);
  EXPECT_EQ(parameters("lstm", "10, 20, num_layers=2, bias=False"), 5600);
  EXPECT_EQ(parameters("gru", "10, 20, num_layers=2"), 4440);
  EXPECT_EQ(parameters("rnn", "10, 20, num_layers=2, bidirectional=True"), 3760);
}

TEST(Recurrent, HasTheOutputShapeThatPyTorchGives) {
  const std::vector<core::Shape> sequence = {shape({N, 3, 10})};
  EXPECT_EQ(output_text("lstm", "10, 20", sequence), "[N, 3, 20]");
  EXPECT_EQ(output_text("lstm", "10, 20, num_layers=3, bidirectional=True", sequence), "[N, 3, 40]");
  EXPECT_EQ(output_text("lstm", "10, 20, proj_size=5", sequence), "[N, 3, 5]");
  EXPECT_EQ(output_text("lstm", "10, 20, proj_size=5, bidirectional=True", sequence), "[N, 3, 10]");
  EXPECT_EQ(output_text("gru", "10, 20", sequence), "[N, 3, 20]");
  EXPECT_EQ(output_text("rnn", "10, 20, bidirectional=True", sequence), "[N, 3, 40]");
}

TEST(Recurrent, SaysWhatItMisses) {
  EXPECT_EQ(parameters("lstm", "10"), -1);
  EXPECT_EQ(output_text("lstm", "10", {shape({N, 3, 10})}), "does not say its hidden_size");
}

TEST(Recurrent, RefusesALayerCountBelowOne) {
  EXPECT_EQ(parameters("lstm", "10, 20, num_layers=0"), -2);
  EXPECT_EQ(parameters("lstm", "10, 20, num_layers=-9223372036854775808"), -2);
}

TEST(Recurrent, CountsBeyondSixtyFourBitsOverflow) {
  EXPECT_EQ(parameters("lstm", "10, 4294967296"), -2);
  EXPECT_EQ(output_text("lstm", "10, 9223372036854775807, bidirectional=True", {shape({N, 3, 10})}),
            "its hidden_size does not fit 64 bits");
}

}  // namespace
}  // namespace gpumem::ops
