// Trained models whose outputs are worked out by hand: one Linear without hidden layers.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "expect.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/ml/trained_model.hpp"

namespace gpumem::testing {

/// Outputs are `weights`, a row an output, times the features (as they are), plus `biases`.
inline ml::TrainedModel linear_model(const std::vector<std::string>& features, ml::Head head,
                                     const std::vector<float>& weights, const std::vector<float>& biases) {
  ml::ModelConfig config;
  config.name = "linear";
  const auto inputs = static_cast<std::int64_t>(features.size());
  const auto outputs = static_cast<std::int64_t>(biases.size());
  config.network = {.features = inputs, .outputs = outputs, .branches = {{.encoder = {}, .members = {{}}}}};
  for (const std::string& name : features) config.features.push_back({.name = name});
  config.head = std::move(head);
  config.provenance = {{"data", "made up for a test"}};
  config.test_vectors = {{.features = std::vector<double>(features.size()),
                          .sequence = {},
                          .outputs = std::vector<double>(biases.begin(), biases.end())}};
  const ml::TensorFile file = {{{"branches.0.members.0.output.weight", {outputs, inputs}, weights},
                                {"branches.0.members.0.output.bias", {outputs}, biases}},
                               {}};
  auto model = ml::make_model(ml::write_model_config(config), ml::write_safetensors(file));
  EXPECT_TRUE(succeeds(model));
  return *std::move(model);
}

}  // namespace gpumem::testing
