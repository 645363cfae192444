#include "gpumem/ops/opaque.hpp"

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

TEST(Constant, HasTheTypeOfTheParametersWhereItSaysSo) {
  const auto type_of = [](std::string_view arguments) {
    Tape tape(model::Precision::bf16);
    const Op& rule = testing::op("constant");
    const auto given = testing::attributes(rule, arguments);
    OpCall call;
    call.attributes = model::Attributes(given);
    call.size = {10, 0, core::DType::float32};
    const auto made = rule.record(call, tape);
    EXPECT_TRUE(made);
    return made ? tape.tensor(*made).size.dtype : core::DType::boolean;
  };
  EXPECT_EQ(type_of(""), core::DType::float32);
  EXPECT_EQ(type_of("dtype='int64'"), core::DType::int64);
  EXPECT_EQ(type_of("dtype='parameters'"), core::DType::bfloat16);
}

}  // namespace
}  // namespace gpumem::ops
