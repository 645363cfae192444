#include "../../../src/train/weights.hpp"

#include <algorithm>
#include <cmath>

#include "gpumem/ml/network.hpp"
#include "small_recipes.hpp"

namespace gpumem::train {
namespace {

using testing::recipe_of;
using testing::succeeds;

TEST(InitialWeights, AreThoseOfTheShape) {
  for (const std::string& text : {testing::bins_recipe(), testing::sequence_recipe()}) {
    const ml::NetworkShape shape = recipe_of(text).model.network;
    EXPECT_TRUE(succeeds(ml::Network::create(shape, initial_weights(shape, 1))));
    EXPECT_EQ(initial_weights(shape, 1).tensors, initial_weights(shape, 1).tensors);
    EXPECT_NE(initial_weights(shape, 1).tensors, initial_weights(shape, 2).tensors);
  }
}

TEST(InitialWeights, AreSpreadAsPyTorchDoes) {
  const ml::NetworkShape shape{.features = 100, .outputs = 50, .branches = {{{}, {{64}}}}};
  const ml::TensorFile file = initial_weights(shape, 1);
  const auto spread = [&](const char* name) {
    const std::vector<float>& values = file.find(name)->values;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return std::pair(*least, *most);
  };
  const auto weight = spread("branches.0.members.0.hidden.0.linear.weight");
  EXPECT_NEAR(weight.first, -0.1F, 1e-3F);
  EXPECT_NEAR(weight.second, 0.1F, 1e-3F);
  EXPECT_LE(spread("branches.0.members.0.output.bias").second, 1.0F / 8);
  EXPECT_GE(spread("branches.0.members.0.output.bias").second, 0.05F);
  EXPECT_EQ(spread("branches.0.members.0.hidden.0.norm.weight"), std::pair(1.0F, 1.0F));
  EXPECT_EQ(spread("branches.0.members.0.hidden.0.norm.running_var"), std::pair(1.0F, 1.0F));
  EXPECT_EQ(spread("branches.0.members.0.hidden.0.norm.running_mean"), std::pair(0.0F, 0.0F));
}

std::vector<float> outputs_of(const ml::NetworkShape& shape, const ml::TensorFile& weights) {
  const auto network = ml::Network::create(shape, weights);
  EXPECT_TRUE(succeeds(network));
  const std::vector<float> features = {0.5F, -1.0F, 2.0F};
  std::vector<float> outputs(static_cast<std::size_t>(shape.outputs));
  ml::NetworkBuffers buffers = network->buffers();
  network->run(features, {}, buffers, outputs);
  return outputs;
}

TEST(FoldedWeights, RaiseAndScaleTheOutputs) {
  const ml::NetworkShape bins = recipe_of(testing::bins_recipe()).model.network;
  ml::TensorFile weights = initial_weights(bins, 4);
  const std::vector<float> plain = outputs_of(bins, weights);
  fold_class_bias(weights, 0.5);
  const std::vector<float> raised = outputs_of(bins, weights);
  for (std::size_t bin = 0; bin < 3; ++bin) {
    EXPECT_NEAR(raised[bin], plain[bin] + 0.5F * static_cast<float>(bin), 1e-5F);
  }

  const ml::NetworkShape values = recipe_of(testing::values_recipe()).model.network;
  weights = initial_weights(values, 4);
  const std::vector<float> unscaled = outputs_of(values, weights);
  fold_target_scale(weights, std::vector<TargetScale>{{100.0, 10.0}, {-5.0, 0.1}});
  const std::vector<float> scaled = outputs_of(values, weights);
  EXPECT_NEAR(scaled[0], 100.0F + 10.0F * unscaled[0], 1e-4F);
  EXPECT_NEAR(scaled[1], -5.0F + 0.1F * unscaled[1], 1e-5F);
}

}  // namespace
}  // namespace gpumem::train
