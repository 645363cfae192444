#include "../../../src/train/recipe.hpp"

#include "gpumem/core/file.hpp"
#include "gpumem/ml/features.hpp"
#include "small_recipes.hpp"

namespace gpumem::train {
namespace {

using testing::recipe_of;

/// The error's place and message; empty if there is none.
std::string fault_of(const std::string& text) {
  const auto recipe = parse_recipe(text, "recipe.json");
  return recipe ? "" : core::to_string(recipe.error());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Recipe, IsAModelAndHowItIsTrained) {
  const Recipe recipe = recipe_of(testing::sequence_recipe(
      R"("epochs": 7, "batch_size": 33, "learning_rate": 0.5, "schedule": "cosine", "weight_decay": 0.25,
         "dropout": 0.125, "encoder_dropout": 0.5, "gradient_clip": 2, "seed": 12, "folds": 4, "label_smoothing": 0.1,
         "early_stopping_patience": 6, "validation_share": 0.2, "class_bias": 0.75)"));
  EXPECT_EQ(recipe.model.name, "made-up-sequence");
  EXPECT_EQ(recipe.model.network.branches.size(), 2U);
  EXPECT_EQ(recipe.model.features[0].transform, ml::Transform::log1p);
  EXPECT_TRUE(recipe.model.test_vectors.empty());
  const TrainingOptions& training = recipe.training;
  EXPECT_EQ(training.epochs, 7);
  EXPECT_EQ(training.batch_size, 33);
  EXPECT_EQ(training.learning_rate, 0.5);
  EXPECT_EQ(training.schedule, Schedule::cosine);
  EXPECT_EQ(training.weight_decay, 0.25);
  EXPECT_EQ(training.dropout, 0.125);
  EXPECT_EQ(training.encoder_dropout, 0.5);
  EXPECT_EQ(training.gradient_clip, 2.0);
  EXPECT_EQ(training.seed, 12U);
  EXPECT_EQ(training.folds, 4);
  EXPECT_EQ(training.objective.loss, Loss::cross_entropy);
  EXPECT_EQ(training.objective.label_smoothing, 0.1);
  EXPECT_EQ(training.early_stopping_patience, 6);
  EXPECT_EQ(training.validation_share, 0.2);
  EXPECT_EQ(training.class_bias, 0.75);
}

TEST(Recipe, ThePagesIsOne) {
  const auto page = core::read_file(GPUMEM_SOURCE_DIR "/docs/training.md");
  ASSERT_TRUE(testing::succeeds(page));
  const std::size_t begin = page->find("{\"format\": \"gpumem-recipe\"");
  ASSERT_NE(begin, std::string::npos);
  const Recipe recipe = recipe_of(page->substr(begin, page->find("```", begin) - begin));
  EXPECT_TRUE(testing::succeeds(ml::check_features(recipe.model)));
}

TEST(Recipe, LossesOfValues) {
  const std::string common = R"("epochs": 1, "batch_size": 2, "learning_rate": 0.1)";
  EXPECT_EQ(recipe_of(testing::values_recipe(common)).training.objective.loss, Loss::huber);
  EXPECT_EQ(recipe_of(testing::values_recipe(common + R"(, "loss": "squared")")).training.objective.loss,
            Loss::squared);
  const Objective pinball = recipe_of(testing::values_recipe()).training.objective;
  EXPECT_EQ(pinball.loss, Loss::pinball);
  EXPECT_EQ(pinball.quantiles, (std::vector<double>{0.5, 0.9}));
  for (const char* loss : {R"("mean")", R"({"pinball": [0.5]})", R"({"pinball": 0.5})", R"({"p": [0.5, 0.9]})", "1"}) {
    EXPECT_NE(fault_of(testing::values_recipe(common + ", \"loss\": " + loss)).find("/training/loss"),
              std::string::npos)
        << loss;
  }
  EXPECT_NE(fault_of(testing::values_recipe(common + R"(, "loss": {"pinball": [0.5, 1]})")).find("between 0 and 1"),
            std::string::npos);
}

TEST(Recipe, SaysWhatIsWrongAndWhere) {
  const std::string common = R"("epochs": 1, "batch_size": 2, "learning_rate": 0.1)";
  const auto with = [&](const std::string& field) { return fault_of(testing::bins_recipe(common + ", " + field)); };
  EXPECT_EQ(fault_of("[]"), "recipe.json: is not a JSON object");
  EXPECT_EQ(fault_of("{"), "recipe.json: is not a JSON object");
  EXPECT_EQ(fault_of("{}"), "recipe.json: /format: must be \"gpumem-recipe\"");
  EXPECT_EQ(fault_of(testing::bins_recipe(R"("epochs": 1, "batch_size": 2)")),
            "recipe.json: /training/learning_rate: is missing");
  EXPECT_EQ(with(R"("epoch": 1)"), "recipe.json: /training/epoch: is not a field of a recipe's training");
  EXPECT_EQ(with(R"("seed": -1)").substr(0, 41), "recipe.json: /training/seed: must be a wh");
  EXPECT_EQ(with(R"("folds": 2.5)").substr(0, 42), "recipe.json: /training/folds: must be a wh");
  EXPECT_EQ(with(R"("dropout": 1)"), "recipe.json: /training/dropout: must be a number of 0.0 to 0.95");
  EXPECT_EQ(fault_of(testing::sequence_recipe(common + R"(, "encoder_dropout": -1)")),
            "recipe.json: /training/encoder_dropout: must be a number of 0.0 to 0.95");
  EXPECT_EQ(with(R"("encoder_dropout": 0.5)"), "recipe.json: /training/encoder_dropout: is for networks with encoders");
  EXPECT_EQ(with(R"("schedule": "linear")"), "recipe.json: /training/schedule: must be \"constant\" or \"cosine\"");
  EXPECT_NE(with(R"("loss": "huber")").find("/training/loss: is for heads of values"), std::string::npos);
  EXPECT_NE(fault_of(testing::values_recipe(common + R"(, "class_bias": 1)")).find("is for heads of bins"),
            std::string::npos);
  EXPECT_NE(fault_of(testing::bins_recipe(common + "}, \"accuracy\": {")).find("/accuracy: is made by training"),
            std::string::npos);
  EXPECT_NE(fault_of(replaced(testing::bins_recipe(), "\"features\": 3", "\"features\": 4")).find("features"),
            std::string::npos);
  EXPECT_NE(fault_of(replaced(testing::bins_recipe(), "[[8, 4], [8]]", "[[8, -4], [8]]")).find("members"),
            std::string::npos);
}

}  // namespace
}  // namespace gpumem::train
