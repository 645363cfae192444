// A model's folder: the config, a NUL, and the weights.
#include "gpumem/ml/trained_model.hpp"

#include "fuzz.hpp"

namespace {

using namespace gpumem;

/// A run over figures that no test vector holds.
void run(const ml::TrainedModel& model, double figure, std::string_view input) {
  const std::vector<double> features(model.config.features.size(), figure);
  std::vector<std::vector<double>> rows;
  constexpr std::int64_t kMostRows = 8;
  if (model.config.network.sequence_columns > 0) {
    rows.resize(static_cast<std::size_t>(std::min(kMostRows, model.config.network.sequence_length + 1)),
                std::vector<double>(model.config.sequence.size(), figure));
  }
  const auto outputs = ml::run_raw(model, features, rows);
  if (!outputs) return fuzz::require_readable(outputs.error(), input);
  fuzz::require(static_cast<std::int64_t>(outputs->size()) == model.config.network.outputs, "each output has a value");
}

}  // namespace

GPUMEM_FUZZ_TARGET(trained_model) {
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string_view weights = input.substr(std::min(end + 1, input.size()));
  const auto model = ml::make_model(input.substr(0, end), weights, "fuzzed");
  if (!model) {
    require_readable(model.error(), input);
    return false;
  }
  for (const ml::TestVector& vector : model->config.test_vectors) {
    const auto far = ml::deviation(*model, vector);
    require(far && *far <= ml::kTestVectorTolerance, "a model that loads gives what its test vectors say");
  }
  for (const double figure : {0.0, 1.0, 1e9, -2.0, 1e300}) run(*model, figure, input);
  return true;
}
