#pragma once

#include "gpumem/ml/trained_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <system_error>

#include "gpumem/core/file.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/ml/features.hpp"
#include "gpumem/ml/model_config.hpp"

#if __has_include("gpumem/ml/impl/builtin_models.hpp")
#include "gpumem/ml/impl/builtin_models.hpp"
#else
namespace gpumem::ml::builtin {
inline constexpr std::array<BuiltinModel, 0> kModels = {};
}
#endif

namespace gpumem::ml {

GPUMEM_INLINE std::span<const BuiltinModel> builtin_models() { return builtin::kModels; }

GPUMEM_INLINE core::Result<TrainedModel> find_model(std::string_view name) {
  std::string names;
  for (const BuiltinModel& model : builtin_models()) {
    if (model.name == name) return make_model(model.config, model.weights, model.name);
    names += (names.empty() ? "" : ", ") + std::string(model.name);
  }
  std::error_code ignored;
  const std::string folder(name);
  if (name.find('/') != std::string_view::npos || std::filesystem::is_directory(folder, ignored)) {
    return load_model(folder);
  }
  return core::Error{core::ErrorCode::invalid_argument,
                     "there is no trained model " + core::quoted(name) + "; choose one of " + names +
                         ", or give the path of a model folder",
                     {}};
}

GPUMEM_INLINE core::Result<std::vector<TrainedModel>> find_models(std::string_view beginning) {
  std::vector<TrainedModel> found;
  for (const BuiltinModel& builtin : builtin_models()) {
    if (!builtin.name.starts_with(beginning)) continue;
    core::Result<TrainedModel> model = make_model(builtin.config, builtin.weights, builtin.name);
    if (!model) return std::move(model.error());
    found.push_back(*std::move(model));
  }
  if (!found.empty()) return found;
  return core::Error{
      core::ErrorCode::invalid_argument,
      "gpumem was built without the trained models " + std::string(beginning) + "*; give the path of a model folder",
      {}};
}

}  // namespace gpumem::ml

namespace gpumem::ml {

namespace trained_model_detail {

GPUMEM_INLINE core::Error fault(core::ErrorCode code, std::string message) { return {code, std::move(message), {}}; }

GPUMEM_INLINE std::string path_in(std::string_view folder, std::string_view file) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
  if (folder.empty()) return std::string(file);
  return std::string(folder) + (folder.ends_with('/') ? "" : "/") + std::string(file);
}

/// A number for a message.
GPUMEM_INLINE std::string shown(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

/// Raw figures, as many as there are specs, after those that are in `to`.
GPUMEM_INLINE core::Status append_transformed(const std::vector<FeatureSpec>& specs, std::span<const double> raw,
                                              std::vector<float>& to) {
  using core::ErrorCode;
  if (raw.size() != specs.size()) {
    return fault(ErrorCode::invalid_argument,
                 "holds " + std::to_string(raw.size()) + " figures; the model reads " + std::to_string(specs.size()));
  }
  for (std::size_t index = 0; index < raw.size(); ++index) {
    const float value = transformed(specs[index], raw[index]);
    if (!std::isfinite(value)) {
      const std::string transform(model::name_of(kTransforms, specs[index].transform));
      return core::below(index,
                         fault(ErrorCode::invalid_argument, shown(raw[index]) + " is beyond the model's feature " +
                                                                core::quoted(specs[index].name) + ": " + transform +
                                                                " and scale make no finite float32 of it"));
    }
    to.push_back(value);
  }
  return core::Done{};
}

GPUMEM_INLINE core::Result<std::vector<float>> transformed_rows(const ModelConfig& config,
                                                                std::span<const std::vector<double>> sequence) {
  std::vector<float> rows;
  if (config.network.sequence_columns == 0 && !sequence.empty()) {
    return fault(core::ErrorCode::invalid_argument, "is given, but the model reads none");
  }
  const auto longest = static_cast<std::size_t>(config.network.sequence_length);
  sequence = sequence.first(std::min(sequence.size(), longest));
  rows.reserve(sequence.size() * config.sequence.size());
  for (std::size_t row = 0; row < sequence.size(); ++row) {
    core::Status status = append_transformed(config.sequence, sequence[row], rows);
    if (!status) return core::below(row, std::move(status.error()));
  }
  return rows;
}

/// Done if the network gives what every test vector says.
GPUMEM_INLINE core::Status check_vectors(const TrainedModel& model) {
  for (std::size_t index = 0; index < model.config.test_vectors.size(); ++index) {
    const auto at = [&](core::Error error) {
      error.code = core::ErrorCode::malformed_input;
      return core::below("test_vectors", core::below(index, std::move(error)));
    };
    core::Result<double> far = deviation(model, model.config.test_vectors[index]);
    if (!far) return at(std::move(far.error()));
    if (*far <= kTestVectorTolerance) continue;
    return at(fault(core::ErrorCode::malformed_input,
                    "is not what the weights give (off by " + shown(*far) + ", allowed is " +
                        shown(kTestVectorTolerance) +
                        "): config and weights are damaged, or belong to different models"));
  }
  return core::Done{};
}

}  // namespace trained_model_detail

GPUMEM_INLINE float transformed(const FeatureSpec& spec, double raw) {
  const double value = spec.transform == Transform::log1p ? std::log1p(raw) : raw;
  const double scaled = (value - spec.mean) / spec.scale;
  // The cast of what float32 cannot hold is undefined.
  const bool fits = std::abs(scaled) <= static_cast<double>(std::numeric_limits<float>::max());
  return fits ? static_cast<float>(scaled) : std::numeric_limits<float>::quiet_NaN();
}

GPUMEM_INLINE core::Result<std::vector<float>> run_raw(const TrainedModel& model, std::span<const double> features,
                                                       std::span<const std::vector<double>> sequence) {
  namespace detail = trained_model_detail;
  std::vector<float> inputs;
  inputs.reserve(features.size());
  core::Status status = detail::append_transformed(model.config.features, features, inputs);
  if (!status) return core::below("features", std::move(status.error()));
  core::Result<std::vector<float>> rows = detail::transformed_rows(model.config, sequence);
  if (!rows) return core::below("sequence", std::move(rows.error()));
  std::vector<float> outputs(static_cast<std::size_t>(model.config.network.outputs));
  NetworkBuffers buffers = model.network.buffers();
  model.network.run(inputs, *rows, buffers, outputs);
  const auto finite = [](float value) { return std::isfinite(value); };
  if (std::all_of(outputs.begin(), outputs.end(), finite)) return outputs;
  return detail::fault(core::ErrorCode::overflow,
                       "an output of the network is not finite: the figures are far from what it was trained on");
}

GPUMEM_INLINE core::Result<double> deviation(const TrainedModel& model, const TestVector& vector) {
  const core::Result<std::vector<float>> outputs = run_raw(model, vector.features, vector.sequence);
  if (!outputs) return outputs.error();
  double largest = 0.0;
  for (std::size_t index = 0; index < outputs->size(); ++index) {
    const double said = vector.outputs[index];
    const double got = static_cast<double>((*outputs)[index]);
    largest = std::max(largest, std::abs(got - said) / std::max(1.0, std::abs(said)));
  }
  return largest;
}

GPUMEM_INLINE core::Result<TrainedModel> make_model(std::string_view config, std::string_view weights,
                                                    std::string_view folder) {
  namespace detail = trained_model_detail;
  const std::string config_file = detail::path_in(folder, kConfigFile);
  const std::string weights_file = detail::path_in(folder, kWeightsFile);
  core::Result<ModelConfig> parsed = parse_model_config(config, config_file);
  if (!parsed) return std::move(parsed.error());
  if (core::Status known = check_features(*parsed); !known) return std::move(known.error()).in_file(config_file);
  const core::Result<TensorFile> tensors = parse_safetensors(weights, weights_file);
  if (!tensors) return tensors.error();
  core::Result<Network> network = Network::create(parsed->network, *tensors);
  if (!network) return std::move(network.error()).in_file(weights_file);
  TrainedModel model{*std::move(parsed), *std::move(network)};
  if (core::Status same = detail::check_vectors(model); !same) return std::move(same.error()).in_file(config_file);
  return model;
}

GPUMEM_INLINE core::Result<TrainedModel> load_model(const std::string& folder) {
  namespace detail = trained_model_detail;
  constexpr std::size_t kLargest = std::size_t{1} << 30;
  const core::Result<std::string> config = core::read_regular_file(detail::path_in(folder, kConfigFile), kLargest);
  if (!config) return config.error();
  const core::Result<std::string> weights = core::read_regular_file(detail::path_in(folder, kWeightsFile), kLargest);
  if (!weights) return weights.error();
  return make_model(*config, *weights, folder);
}

GPUMEM_INLINE core::Status save_model(const ModelConfig& config, const TensorFile& weights, const std::string& folder) {
  namespace detail = trained_model_detail;
  const std::string config_text = write_model_config(config);
  const std::string weights_bytes = write_safetensors(weights);
  if (auto model = make_model(config_text, weights_bytes, folder); !model) return std::move(model.error());
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    return core::Error{
        core::ErrorCode::unreadable_file, "cannot make the folder: " + failure.message(), {folder, 0, {}}};
  }
  // The config last: a folder without one is none of a model.
  core::Status written = core::write_file(detail::path_in(folder, kWeightsFile), weights_bytes);
  if (!written) return written;
  return core::write_file(detail::path_in(folder, kConfigFile), config_text);
}

}  // namespace gpumem::ml
