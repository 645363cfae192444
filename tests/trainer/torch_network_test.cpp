// The network as libtorch trains it: it learns, only by the seed, and gives what ml::Network gives.
#include "../../src/train/torch_network.hpp"

#include <numeric>

#include "../../src/train/standardise.hpp"
#include "../../src/train/weights.hpp"
#include "small_recipes.hpp"

namespace gpumem::train {
namespace {

using testing::made_up_data;
using testing::recipe_of;

struct Case {
  Recipe recipe;
  Examples examples;

  explicit Case(const std::string& text) : recipe(recipe_of(text)) {
    const Dataset data = made_up_data(recipe.model);
    std::vector<std::size_t> rows(data.rows.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    fit_statistics(recipe.model, data, rows);
    examples = examples_of(recipe.model, fit_targets(recipe.model, data, rows), data, rows);
  }

  [[nodiscard]] std::vector<std::int64_t> all() const {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(examples.count));
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    return rows;
  }
  [[nodiscard]] ml::TensorFile weights() const { return initial_weights(recipe.model.network, 3); }

  double train(TorchNetwork& network, int steps, double dropout = 0.0) const {
    double loss = 0.0;
    for (int step = 0; step < steps; ++step) {
      loss = network.step(examples, all(), recipe.training.objective,
                          {.learning_rate = 0.02, .dropout = dropout, .seed = static_cast<std::uint64_t>(step)});
    }
    return loss;
  }
};

std::vector<std::string> recipes() {
  return {testing::bins_recipe(), testing::sequence_recipe(), testing::values_recipe()};
}

TEST(TorchNetwork, Learns) {
  for (const std::string& text : recipes()) {
    const Case made(text);
    TorchNetwork network(made.recipe.model.network, made.weights());
    const double before = network.loss(made.examples, made.recipe.training.objective);
    made.train(network, 60);
    EXPECT_LT(network.loss(made.examples, made.recipe.training.objective), 0.7 * before);
  }
}

TEST(TorchNetwork, HoldsTheWeightsItWasGiven) {
  for (const std::string& text : recipes()) {
    const Case made(text);
    const ml::TensorFile weights = made.weights();
    EXPECT_EQ(TorchNetwork(made.recipe.model.network, weights).weights().tensors, weights.tensors);
  }
}

TEST(TorchNetwork, TrainsTheSameWeightsFromTheSameSeeds) {
  for (const std::string& text : recipes()) {
    const Case made(text);
    TorchNetwork one(made.recipe.model.network, made.weights());
    TorchNetwork two(made.recipe.model.network, made.weights());
    made.train(one, 5, 0.3);
    made.train(two, 5, 0.3);
    EXPECT_EQ(one.weights().tensors, two.weights().tensors);
    EXPECT_NE(one.weights().tensors, made.weights().tensors);
  }
}

TEST(TorchNetwork, GoesOnFromItsState) {
  const Case made(testing::sequence_recipe());
  TorchNetwork one(made.recipe.model.network, made.weights());
  made.train(one, 4, 0.2);
  TorchNetwork two(made.recipe.model.network, made.weights());
  two.restore(one.state());
  EXPECT_EQ(one.run(made.examples), two.run(made.examples));
  made.train(one, 4, 0.2);
  made.train(two, 4, 0.2);
  EXPECT_EQ(one.state().weights.tensors, two.state().weights.tensors);
  EXPECT_EQ(one.state().second_moment.tensors, two.state().second_moment.tensors);
  EXPECT_EQ(two.state().steps, 8);
}

TEST(TorchNetwork, DropsOutByTheSeedOfAStep) {
  const Case made(testing::bins_recipe());
  const auto trained = [&](std::uint64_t seed) {
    TorchNetwork network(made.recipe.model.network, made.weights());
    network.step(made.examples, made.all(), made.recipe.training.objective,
                 {.learning_rate = 0.02, .dropout = 0.5, .seed = seed});
    return network.weights().tensors;
  };
  EXPECT_EQ(trained(1), trained(1));
  EXPECT_NE(trained(1), trained(2));
}

TEST(TorchNetwork, DropsOutInEncodersAlone) {
  const auto trained = [](const Case& made, double encoder_dropout, std::uint64_t seed) {
    TorchNetwork network(made.recipe.model.network, made.weights());
    network.step(made.examples, made.all(), made.recipe.training.objective,
                 {.learning_rate = 0.02, .encoder_dropout = encoder_dropout, .seed = seed});
    return network.weights().tensors;
  };
  const Case without(testing::bins_recipe());
  EXPECT_EQ(trained(without, 0.5, 1), trained(without, 0.0, 1));
  const Case with(testing::sequence_recipe());
  EXPECT_EQ(trained(with, 0.5, 1), trained(with, 0.5, 1));
  EXPECT_NE(trained(with, 0.5, 1), trained(with, 0.5, 2));
  EXPECT_NE(trained(with, 0.5, 1), trained(with, 0.0, 1));
}

TEST(TorchNetwork, ShortensLongGradients) {
  const Case made(testing::bins_recipe());
  TorchNetwork network(made.recipe.model.network, made.weights());
  network.step(made.examples, made.all(), made.recipe.training.objective,
               {.learning_rate = 0.02, .gradient_clip = 1e-3});
  double squares = 0.0;
  for (const ml::Tensor& tensor : network.state().first_moment.tensors) {
    for (const float value : tensor.values) squares += static_cast<double>(value) * static_cast<double>(value);
  }
  // The first moment of the first step is a tenth of the gradient.
  EXPECT_NEAR(std::sqrt(squares), 1e-4, 1e-7);
}

}  // namespace
}  // namespace gpumem::train
