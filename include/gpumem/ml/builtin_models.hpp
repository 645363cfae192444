// Input: the name of a trained model.
// Output: the model, from the library itself or from a folder. A built-in model is one folder in models/, named
// ESTIMATOR-NETS: "gpumemnet-mlp-cnn".
#pragma once

#include <span>
#include <string_view>

#include "gpumem/ml/trained_model.hpp"

namespace gpumem::ml {

/// A built-in model as the library carries it: the contents of its two files.
struct BuiltinModel {
  std::string_view name;
  std::string_view config;
  std::string_view weights;
};

/// All built-in models, by name. Empty if the headers are used without the generated gpumem/ml/impl/builtin_models.hpp,
/// which CMake writes from models/.
[[nodiscard]] std::span<const BuiltinModel> builtin_models();

/// The built-in model of this name; a path (anything with a '/', or a folder with a config.json) is loaded. Errors:
/// invalid_argument for a name that there is not, and those of load_model().
[[nodiscard]] core::Result<TrainedModel> find_model(std::string_view name);

/// The built-in models whose names begin so, loaded. Errors: invalid_argument if there is none.
[[nodiscard]] core::Result<std::vector<TrainedModel>> find_models(std::string_view beginning);

}  // namespace gpumem::ml
