// The config of a trained model.
#include "gpumem/ml/model_config.hpp"

#include "fuzz.hpp"

GPUMEM_FUZZ_TARGET(model_config) {
  const auto config = ml::parse_model_config(input, "fuzzed.json");
  if (!config) {
    require_readable(config.error(), input);
    return false;
  }
  require(ml::validate(config->network).has_value(), "the network can be built");
  require(static_cast<std::int64_t>(config->features.size()) == config->network.features, "each feature is described");
  require(config->head.edges_mib.empty() != config->head.names.empty(), "a head is of one type");
  require(!config->test_vectors.empty(), "there is a test vector");
  const std::string written = ml::write_model_config(*config);
  const auto again = ml::parse_model_config(written);
  require(again.has_value(), "the reader reads what the writer wrote");
  require(*again == *config, "a config survives the round trip");
  require(ml::write_model_config(*again) == written, "a config is written twice alike");
  return true;
}
