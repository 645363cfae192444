// Input: text of a recipe, JSON.
// Output: Recipe: the model to make, and how it is trained. A recipe is a config.json (ml/model_config.hpp) without
// statistics, accuracy and test vectors, with "format": "gpumem-recipe", and with
//
//   "training": {"epochs": 300, "batch_size": 256, "learning_rate": 0.01,                     (the rest may be absent:)
//                "schedule": "constant" or "cosine" (to 0),              "weight_decay": 0,
//                "dropout": 0 (of members),                              "encoder_dropout": 0,
//                "gradient_clip": 0 (none),    "seed": 1,                "folds": 5,          "label_smoothing": 0,
//                "early_stopping_patience": 0 (epochs; 0: none),         "validation_share": 0.1 (where it stops
//                early), "class_bias": 0 (added to the logit of bin k, k times: above 0, fewer jobs are put too low),
//                "members": "together" (learn by the loss of their mean) or "alone" (each by its own),
//                "loss": "huber", "squared" or {"pinball": [0.5, 0.95]} (for values; one quantile an output)}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/ml/model_config.hpp"
#include "torch_network.hpp"

namespace gpumem::train {

enum class Schedule : std::uint8_t {
  constant,
  cosine,  ///< from the learning rate to 0 by half a cosine (Loshchilov & Hutter 2017)
};

struct TrainingOptions {
  std::int64_t epochs = 0;
  std::int64_t batch_size = 0;  ///< examples a step
  double learning_rate = 0.0;
  Schedule schedule = Schedule::constant;
  double weight_decay = 0.0;
  double dropout = 0.0;
  double encoder_dropout = 0.0;
  double gradient_clip = 0.0;
  std::uint64_t seed = 1;
  std::int64_t folds = 5;
  std::int64_t early_stopping_patience = 0;
  double validation_share = 0.1;
  double class_bias = 0.0;
  Objective objective;
};

struct Recipe {
  ml::ModelConfig model;  ///< without statistics, accuracy and test vectors
  TrainingOptions training;
};

/// Errors: malformed_input with a JSON pointer. Unknown fields are refused.
[[nodiscard]] core::Result<Recipe> parse_recipe(std::string_view text, std::string_view file = {});

}  // namespace gpumem::train
