// Input: a folder with a trained model, or the name of one that the library carries.
// Output: TrainedModel: its config and its network, checked against each other.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/ml/network.hpp"

namespace gpumem::ml {

// Input: a model folder (config.json, model.safetensors).
// Output: TrainedModel: a config and a network that belong together and reproduce the config's test vectors; and from
// these a folder again.

inline constexpr std::string_view kConfigFile = "config.json";
inline constexpr std::string_view kWeightsFile = "model.safetensors";
/// How far the network may be from its test vectors: |got - said| <= this x max(1, |said|).
inline constexpr double kTestVectorTolerance = 1e-3;

struct TrainedModel {
  ModelConfig config;
  Network network;
};

/// The two files' contents. `folder` is for messages. Errors: malformed_input, with file and JSON pointer or tensor; a
/// test vector that the network does not reproduce is one.
[[nodiscard]] core::Result<TrainedModel> make_model(std::string_view config, std::string_view weights,
                                                    std::string_view folder = {});

/// Errors: also unreadable_file.
[[nodiscard]] core::Result<TrainedModel> load_model(const std::string& folder);

/// Writes both files (each to a temporary first, then renamed), config.json last. Makes the folder. Errors: those of
/// make_model(), for what would not load is not written; unreadable_file.
[[nodiscard]] core::Status save_model(const ModelConfig& config, const TensorFile& weights, const std::string& folder);

/// A raw figure as it enters the network; not a finite number where the transform has none (log1p of -1 and below), or
/// beyond float32.
[[nodiscard]] float transformed(const FeatureSpec& spec, double raw);

/// Raw features and rows of the sequence (none for a model that reads none) through the network; allocates. Rows beyond
/// the network's length are not read. Errors: invalid_argument with a JSON pointer ("/features/2"): another number of
/// figures than the model reads, or one that does not enter the network as a finite number; overflow if an output is
/// not finite.
[[nodiscard]] core::Result<std::vector<float>> run_raw(const TrainedModel& model, std::span<const double> features,
                                                       std::span<const std::vector<double>> sequence);

/// How far the network is from a test vector: the largest |got - said| / max(1, |said|). Errors: those of run_raw().
[[nodiscard]] core::Result<double> deviation(const TrainedModel& model, const TestVector& vector);

// Input: the name of a trained model.
// Output: the model, from the library itself or from a folder. A built-in model is one folder in models/, named
// ESTIMATOR-NETS: "gpumemnet-mlp-cnn".

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
