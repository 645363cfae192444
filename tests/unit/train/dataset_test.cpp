#include "../../../src/train/dataset.hpp"

#include <limits>

#include "gpumem/model/graph_builder.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "small_recipes.hpp"

namespace gpumem::train {
namespace {

using testing::fails;
using testing::made_up_data;
using testing::recipe_of;
using testing::succeeds;

TEST(Dataset, ClassesAreBinsBetweenTheEdges) {
  const std::vector<double> edges = {0, 8000, 16000, 24000};
  const auto class_at = [&](double mib) { return class_of({.measured_mib = mib}, edges); };
  EXPECT_EQ(class_at(0), 0);
  EXPECT_EQ(class_at(7999.9), 0);
  EXPECT_EQ(class_at(8000), 1);
  EXPECT_EQ(class_at(16000), 2);
  EXPECT_EQ(class_at(24000), 2);
  EXPECT_EQ(class_at(90000), 2);
  EXPECT_EQ(class_of({.measured_mib = 12, .out_of_memory = true}, edges), 2);
}

TEST(Dataset, RowsMustHoldWhatTheModelReads) {
  for (const std::string& text : {testing::bins_recipe(), testing::sequence_recipe(), testing::values_recipe()}) {
    const ml::ModelConfig model = recipe_of(text).model;
    EXPECT_TRUE(succeeds(validate(made_up_data(model), model)));
  }
  const ml::ModelConfig model = recipe_of(testing::sequence_recipe()).model;
  const auto broken = [&](auto&& breaks) {
    Dataset data = made_up_data(model);
    breaks(data.rows[7]);
    return validate(data, model);
  };
  const auto code = core::ErrorCode::malformed_input;
  EXPECT_TRUE(fails(broken([](Row& row) { row.features.pop_back(); }), code, 0, "'job 7' does not hold the features"));
  EXPECT_TRUE(fails(broken([](Row& row) { row.features[1] = std::numeric_limits<double>::quiet_NaN(); }), code, 0,
                    "does not hold the features"));
  EXPECT_TRUE(fails(broken([](Row& row) { row.features[0] = -1.0; }), code, 0, "does not hold the features"));
  EXPECT_TRUE(fails(broken([](Row& row) { row.sequence[3].pop_back(); }), code, 0, "does not hold the features"));
  EXPECT_TRUE(fails(broken([](Row& row) { row.measured_mib = -1.0; }), code, 0, "has no label"));
  EXPECT_TRUE(fails(validate({}, model), core::ErrorCode::missing_information, 0, "no row"));
}

model::ModelGraph net(std::int64_t width, std::int64_t batch) {
  model::GraphBuilder builder("test", "");
  builder.add_input({"input", testing::shape({batch, 8}), core::DType::float32});
  const core::Shape shape = testing::shape({batch, width});
  const model::LayerIndex edge = model::kFirstGraphInput;
  builder.add({.name = "head",
               .op = ops::vocabulary().find_op("linear"),
               .outputs = {&shape, 1},
               .inputs = {&edge, 1},
               .parameters = 9 * width});
  return *std::move(builder).build();
}

TEST(Dataset, AGroupIsANetWhateverItsBatch) {
  EXPECT_EQ(net_of(net(4, 2)), net_of(net(4, 64)));
  EXPECT_NE(net_of(net(4, 2)), net_of(net(5, 2)));
}

}  // namespace
}  // namespace gpumem::train
