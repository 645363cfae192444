// Cross-validation and the final model: learned by nets, only by the seed, and the same after an interruption.
#include "../../src/train/cross_validation.hpp"

#include <cmath>
#include <filesystem>

#include "gpumem/ml/model_config.hpp"
#include "gpumem/ml/network.hpp"
#include "own_path.hpp"
#include "small_recipes.hpp"

namespace gpumem::train {
namespace {

using testing::fails;
using testing::made_up_data;
using testing::recipe_of;
using testing::succeeds;

namespace fs = std::filesystem;

class Training : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::own_path("training");
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] Session session() const {
    Session session;
    session.states = (folder_ / "training").string();
    session.save_every = 2;
    return session;
  }

  static Outcome train_all(const Recipe& recipe, const Session& session) {
    auto outcome = train(recipe, made_up_data(recipe.model), session);
    EXPECT_TRUE(succeeds(outcome));
    return outcome ? *std::move(outcome) : Outcome();
  }

  fs::path folder_;
};

std::string bytes_of(const Outcome& outcome) {
  return ml::write_model_config(outcome.model) + ml::write_safetensors(outcome.weights);
}

TEST_F(Training, LearnsWhatTheFeaturesTell) {
  const Recipe recipe = recipe_of(testing::bins_recipe(
      R"("epochs": 60, "batch_size": 32, "learning_rate": 0.02, "schedule": "cosine", "folds": 3)"));
  const Outcome outcome = train_all(recipe, {});
  ASSERT_FALSE(outcome.scores.empty());
  EXPECT_GT(outcome.scores[0].accuracy, 0.9);
  EXPECT_LT(outcome.scores[0].majority, 0.8);
  EXPECT_EQ(outcome.predictions.size(), 120U);
  for (std::size_t row = 0; row < outcome.predictions.size(); ++row) EXPECT_EQ(outcome.predictions[row].row, row);
}

TEST_F(Training, LearnsQuantilesInTheirUnits) {
  const Outcome outcome = train_all(recipe_of(testing::values_recipe()), {});
  ASSERT_FALSE(outcome.scores.empty());
  EXPECT_LT(outcome.scores[0].absolute_error[0], 25.0);  // MiB, of figures up to 290
  EXPECT_GT(outcome.scores[0].covered[1], outcome.scores[0].covered[0]);
}

TEST_F(Training, LearnsWhichComponentOfAMixtureItIs) {
  Recipe recipe = recipe_of(testing::values_recipe());
  Dataset data = made_up_data(recipe.model);
  recipe.model.head = {};
  recipe.model.head.names = {"rule", recipe.model.features[0].name};
  recipe.model.head.spread = 0.02;
  recipe.model.head.lower_share = 0.05;
  recipe.model.head.upper_share = 0.95;
  recipe.training.objective.loss = Loss::mixture;
  recipe.training.objective.spreads = ml::spreads_of(recipe.model.head);
  recipe.training.epochs = 60;
  // The first feature above its middle tells that the run took 1.5 times what the rule says.
  for (Row& row : data.rows) {
    const bool more = row.features[0] > 100.0;
    row.features[0] = more ? std::log(1.5) : -std::log(1.5);
    const double value = more ? std::log(1.5) : 0.0;
    row.targets = {value, value - row.features[0]};
    row.context_mib = 500.0;
    row.reserved_mib = 1000.0;
    row.capacity_mib = 40000.0;
    row.measured_mib = 500.0 + 1000.0 * std::exp(value);
    row.out_of_memory = false;
  }
  for (const bool alone : {false, true}) {
    recipe.training.objective.members_alone = alone;
    const auto outcome = train(recipe, data, {});
    ASSERT_TRUE(succeeds(outcome));
    ASSERT_TRUE(outcome->scores[0].corrected);
    EXPECT_LT(outcome->scores[0].corrected->relative_error.mean, 0.05);
    EXPECT_GT(outcome->scores[0].uncorrected.relative_error.mean, 0.1);
  }
}

TEST_F(Training, GivesTheSameBytesFromTheSameSeed) {
  for (const std::string& text : {testing::bins_recipe(), testing::sequence_recipe()}) {
    Recipe recipe = recipe_of(text);
    const std::string bytes = bytes_of(train_all(recipe, {}));
    EXPECT_EQ(bytes, bytes_of(train_all(recipe, {})));
    recipe.training.seed = 6;
    EXPECT_NE(bytes, bytes_of(train_all(recipe, {})));
  }
}

TEST_F(Training, GoesOnWhereItWasStopped) {
  const Recipe recipe = recipe_of(testing::sequence_recipe(
      R"("epochs": 9, "batch_size": 16, "learning_rate": 0.01, "schedule": "cosine", "folds": 2, "dropout": 0.2,
         "early_stopping_patience": 4, "validation_share": 0.2)"));
  const std::string whole = bytes_of(train_all(recipe, {}));
  // In the first fold between two saved states, in the second one, and in the final model.
  for (const std::int64_t epochs : {3, 12, 20}) {
    Session stopped = session();
    std::int64_t left = epochs;
    stopped.on_epoch = [&](const Progress&) { return --left != 0; };
    EXPECT_TRUE(train_all(recipe, stopped).stopped);
    Session resumed = session();
    resumed.resume = true;
    std::int64_t more = 0;
    resumed.on_epoch = [&](const Progress&) { return ++more > 0; };
    EXPECT_EQ(bytes_of(train_all(recipe, resumed)), whole);
    EXPECT_LE(more, 27 - epochs);
  }
}

TEST_F(Training, BeginsAnewUnlessItIsToGoOn) {
  const Recipe recipe = recipe_of(testing::bins_recipe());
  train_all(recipe, session());
  EXPECT_TRUE(fs::exists(folder_ / "training" / "final.state.safetensors"));
  std::int64_t epochs = 0;
  Session again = session();
  again.on_epoch = [&](const Progress&) { return ++epochs > 0; };
  train_all(recipe, again);
  EXPECT_EQ(epochs, 4 * 12);
  remove_states(again.states);
  EXPECT_FALSE(fs::exists(folder_ / "training"));
}

TEST_F(Training, DoesNotGoOnFromAnotherTraining) {
  Recipe recipe = recipe_of(testing::bins_recipe());
  train_all(recipe, session());
  recipe.training.weight_decay = 0.1;
  Session resumed = session();
  resumed.resume = true;
  EXPECT_TRUE(fails(train(recipe, made_up_data(recipe.model), resumed), core::ErrorCode::invalid_argument, 0,
                    "another recipe or other data"));
}

TEST_F(Training, ABiasPutsFewerJobsTooLow) {
  const std::string plain = R"("epochs": 10, "batch_size": 32, "learning_rate": 0.02, "folds": 3, "class_bias": )";
  const Outcome below = train_all(recipe_of(testing::bins_recipe(plain + "-3")), {});
  const Outcome above = train_all(recipe_of(testing::bins_recipe(plain + "3")), {});
  EXPECT_GT(below.scores[0].underestimated, 0.5);
  EXPECT_LT(above.scores[0].underestimated, 0.1);
}

TEST_F(Training, StopsEarly) {
  const Recipe recipe = recipe_of(testing::bins_recipe(
      R"("epochs": 400, "batch_size": 64, "learning_rate": 0.1, "folds": 2, "early_stopping_patience": 5)"));
  const Outcome outcome = train_all(recipe, {});
  for (const std::int64_t epochs : outcome.epochs) EXPECT_LT(epochs, 400);
}

TEST_F(Training, SaysThatALossIsNotFinite) {
  const Recipe recipe = recipe_of(testing::values_recipe(
      R"("epochs": 40, "batch_size": 32, "learning_rate": 10, "weight_decay": 1000, "folds": 2)"));
  EXPECT_TRUE(fails(train(recipe, made_up_data(recipe.model), {}), core::ErrorCode::invalid_argument, 0,
                    "lower the recipe's learning_rate"));
}

}  // namespace
}  // namespace gpumem::train
