// Recipes and data that are small enough to train in a test.
#pragma once

#include <cmath>
#include <string>

#include "../../src/train/dataset.hpp"
#include "../../src/train/recipe.hpp"
#include "expect.hpp"

namespace gpumem::testing {

/// Three bins by three features, with two members.
inline std::string bins_recipe(const std::string& training = R"("epochs": 12, "batch_size": 32, "learning_rate": 0.02,
                                                               "folds": 3, "seed": 5)") {
  return R"({"format": "gpumem-recipe", "version": 1, "name": "made-up", "nets": "mlp",
    "network": {"features": 3, "outputs": 3, "branches": [{"members": [[8, 4], [8]]}]},
    "features": [{"name": "kept_mib", "transform": "log1p"}, {"name": "activation_sin"}, {"name": "activation_cos"}],
    "head": {"type": "bins", "edges_mib": [0, 100, 200, 300]},
    "provenance": {"data": "made up for a test", "licence": "none"},
    "training": {)" +
         training + "}}";
}

/// The same with a sequence of two columns, at most six rows, that one of two branches reads.
inline std::string sequence_recipe(const std::string& training = R"("epochs": 8, "batch_size": 32,
                                     "learning_rate": 0.01, "folds": 2, "seed": 5, "dropout": 0.1)") {
  return R"({"format": "gpumem-recipe", "version": 1, "name": "made-up-sequence", "nets": "any",
    "network": {"features": 3, "outputs": 3, "sequence": {"length": 6, "columns": 2},
      "branches": [{"encoder": {"width": 4, "layers": 2, "heads": 2, "feed_forward": 8, "embedding": "linear",
                                "attention": "sequence", "pooling": "mean"}, "members": [[8, 4], [8]]},
                   {"members": [[4]]}]},
    "features": [{"name": "kept_mib", "transform": "log1p"}, {"name": "activation_sin"}, {"name": "activation_cos"}],
    "sequence": [{"name": "layer_outputs_mib"}, {"name": "is_linear"}],
    "head": {"type": "bins", "edges_mib": [0, 100, 200, 300]},
    "provenance": {"data": "made up for a test"},
    "training": {)" +
         training + "}}";
}

/// Two quantiles of one value.
inline std::string values_recipe(const std::string& training = R"("epochs": 40, "batch_size": 32,
                                     "learning_rate": 0.02, "folds": 3, "loss": {"pinball": [0.5, 0.9]})") {
  return R"({"format": "gpumem-recipe", "version": 1, "name": "made-up-values", "nets": "any",
    "network": {"features": 3, "outputs": 2, "branches": [{"members": [[8], [8, 4]]}]},
    "features": [{"name": "kept_mib", "transform": "log1p"}, {"name": "activation_sin"}, {"name": "activation_cos"}],
    "head": {"type": "values", "names": ["mib_p50", "mib_p90"]},
    "provenance": {"data": "made up for a test"},
    "training": {)" +
         training + "}}";
}

inline train::Recipe recipe_of(const std::string& text) {
  auto recipe = train::parse_recipe(text, "recipe.json");
  EXPECT_TRUE(succeeds(recipe));
  return recipe ? *std::move(recipe) : train::Recipe();
}

/// Jobs whose figure grows with `a` and with the layers' widths; three of each net.
inline train::Dataset made_up_data(const ml::ModelConfig& model, std::size_t rows = 120) {
  train::Dataset data;
  for (std::size_t index = 0; index < rows; ++index) {
    train::Row row;
    const auto at = static_cast<double>(index);
    row.name = "job " + std::to_string(index);
    row.source = "made-up.csv";
    row.group = index / 3;
    const double a = 1000.0 * (1.0 + std::sin(at * 12.9898)) / 2.0;
    row.features = {a, std::sin(at * 78.233), std::cos(at * 37.719)};
    row.measured_mib = 290.0 * std::log1p(a) / std::log1p(1000.0);
    row.out_of_memory = row.measured_mib > 280.0 && model.head.names.empty();
    for (std::size_t layer = 0; layer < index % 8 && !model.sequence.empty(); ++layer) {
      row.sequence.push_back({at + static_cast<double>(layer), static_cast<double>(layer % 2)});
    }
    row.targets.assign(model.head.names.size(), row.measured_mib);
    data.rows.push_back(std::move(row));
  }
  return data;
}

/// A table in GPUMemNet's form: six perceptrons at two batch sizes each.
inline std::string mlp_runs() {
  std::string text = "Filename,Activations-Params,Batch Size,Max GPU Memory (MiB)\n";
  for (int row = 0; row < 12; ++row) {
    const int width = 10 + row / 2;
    text += "input:8_output:1_depth:1_batch:4.out,\"[('linear', " + std::to_string(width) + ", " +
            std::to_string(9 * width) + "), ('ReLU', " + std::to_string(width) + ", 0), ('linear', 1, " +
            std::to_string(width + 1) + ")]\"," + std::to_string(4 + row % 2) + "," + std::to_string(20 * row + 10) +
            "\n";
  }
  return text;
}

}  // namespace gpumem::testing
