#include "gpumem/ops/parameter.hpp"

#include "op_cases.hpp"

namespace gpumem::ops {
namespace {

TEST(Parameter, WithoutAShapeOnlyAPrintedCountTellsItsSize) {
  EXPECT_EQ(testing::parameters("parameter", "3, 4"), -1);
  EXPECT_TRUE(testing::fails(testing::output("parameter", "", {}), core::ErrorCode::missing_information, 0, "shape"));
}

TEST(Parameter, WithAShapeIsATensor) {
  EXPECT_EQ(testing::output_text("parameter", "shape=(1, 197, 768)", {}), "[1, 197, 768]");
  EXPECT_EQ(testing::parameters("parameter", "shape=(1, 197, 768)"), 151296);
  EXPECT_EQ(testing::parameters("parameter", "shape=(4294967296, 4294967296)"), -2);
  EXPECT_FALSE(testing::output("parameter", "shape=(1, 1, 1, 1, 1, 1, 1, 1, 1)", {}));
}

TEST(Parameter, OfNoAxesHoldsOneElement) {
  const std::vector<model::Attribute> scalar = {{"shape", std::vector<std::int64_t>()}};
  EXPECT_EQ(core::to_string(*testing::op("parameter").output_shape({model::Attributes(scalar), {}})), "[]");
  EXPECT_EQ(testing::op("parameter").traits.parameters(model::Attributes(scalar))->value(), 1);
}

TEST(Constant, IsATensorWithoutParameters) {
  EXPECT_EQ(testing::output_text("constant", "shape=(1, 512), dtype=int64", {}), "[1, 512]");
  EXPECT_EQ(testing::op("constant").traits.parameters, nullptr);
}

}  // namespace
}  // namespace gpumem::ops
