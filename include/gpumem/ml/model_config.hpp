// Input: text of a config.json.
// Output: ModelConfig, all that is known about a trained model except its weights (model_config_writer.hpp goes the
// other way). The format:
//
//   {"format": "gpumem-model", "version": 1, "name": "mlp-cnn", "nets": "cnn",
//    "network": {"features": 10, "outputs": 6, "sequence": {"length": 119, "columns": 4},       (sequence: may be
//    absent)
//                "branches": [{"encoder": {"width": 6, "layers": 3, "heads": 1, "feed_forward": 4,    (may be absent)
//                                          "embedding": "linear", "attention": "sequence", "pooling": "mean"},
//                              "members": [[8, 4], [8]]}]},
//    "features": [{"name": "parameters", "transform": "log1p", "mean": 13.1, "scale": 2.0, "min": 0, "max": 1e9}],
//    "sequence": [{"name": "layer_parameters", "transform": "log1p", "mean": 0, "scale": 1}],
//    "head": {"type": "bins", "edges_mib": [0, 8000, 16000]}   or   {"type": "bins", "of": "smact", "edges": [0, 0.5,
//    1]}
//            or   {"type": "values", "names": ["log_ratio"]},   (with "residuals": {"lower": [-0.1], "upper": [0.1],
//                  "coverage": 0.9} where cross-validation told them)
//            or   {"type": "mixture", "names": ["rule", "replay.slices-1"], "spread": 0.02, "lower_share": 0.025,
//                  "upper_share": 0.95},        (and "wide_spread": 0.08 if "wide" is among the names)
//    "provenance": {"data": "...", "gpu": "...", "software": "...", "date": "...", "licence": "...", ...},   (texts)
//    "accuracy": {...},                                                                 (numbers by name; may be
//    absent) "test_vectors": [{"features": [...], "sequence": [[...]], "outputs": [...]}]}
//
// A feature enters the network as (transform(x) - mean) / scale; absent: identity, 0, 1. min and max bound the raw
// values of the training jobs: beyond them a job is out of domain. Names of features are those of ml/features.hpp,
// which the loader checks; "test_vectors" hold raw features and what the network gives for them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/ml/network_shape.hpp"

namespace gpumem::ml {

inline constexpr std::string_view kModelConfigFormat = "gpumem-model";
inline constexpr std::int64_t kModelConfigVersion = 1;

/// What kind of nets a model was trained on.
enum class NetKind : std::uint8_t { mlp, cnn, transformer, any };
inline constexpr std::array<model::Named<NetKind>, 4> kNetKinds = {
    {{NetKind::mlp, "mlp"}, {NetKind::cnn, "cnn"}, {NetKind::transformer, "transformer"}, {NetKind::any, "any"}}};

enum class Transform : std::uint8_t { identity, log1p };
inline constexpr std::array<model::Named<Transform>, 2> kTransforms = {
    {{Transform::identity, "identity"}, {Transform::log1p, "log1p"}}};

/// One figure that enters the network.
struct FeatureSpec {
  std::string name;
  Transform transform = Transform::identity;
  double mean = 0.0;
  double scale = 1.0;  ///< not 0
  std::optional<double> min = {};
  std::optional<double> max = {};

  friend bool operator==(const FeatureSpec&, const FeatureSpec&) = default;
};

/// The component of a mixture that is at 0.
inline constexpr std::string_view kRuleComponent = "rule";
/// Another one at the same place, with a scale of its own: for what no other explains.
inline constexpr std::string_view kWideComponent = "wide";

/// How far values lay from what cross-validation said about them: quantiles of value less output, one an output.
struct Residuals {
  std::vector<double> lower = {};
  std::vector<double> upper = {};
  double coverage = 0.0;  ///< share of values between the two; 0: not known

  friend bool operator==(const Residuals&, const Residuals&) = default;
};

/// The meaning of the outputs. Exactly one of the two lists is not empty.
struct Head {
  std::vector<double> edges_mib = {};   ///< outputs are logits of bins between these; one more than outputs, rising
  std::vector<std::string> names = {};  ///< outputs are these values; in a mixture, logits of its components
  /// Not 0: a mixture. The value is Laplace-distributed, with this scale, around one of the components, which are raw
  /// features of these names, or 0 ("rule", "wide").
  double spread = 0.0;
  double wide_spread = 0.0;  ///< the scale of "wide"; 0: no such component
  double lower_share = 0.0;  ///< of a mixture: what lies below the lower end of its range, in (0, 0.5)
  double upper_share = 0.0;  ///< and below its upper end, in (0.5, 1)
  std::string of = {};       ///< what bins are of; empty: MiB, which "edges_mib" says. Else "edges" does
  Residuals residuals = {};  ///< of values, where they were measured

  friend bool operator==(const Head&, const Head&) = default;
};

/// The scale of each component of a mixture.
[[nodiscard]] std::vector<double> spreads_of(const Head& head);

struct TestVector {
  std::vector<double> features;               ///< raw
  std::vector<std::vector<double>> sequence;  ///< raw rows, without padding
  std::vector<double> outputs;

  friend bool operator==(const TestVector&, const TestVector&) = default;
};

struct ModelConfig {
  std::string name;
  NetKind nets = NetKind::any;
  NetworkShape network;
  std::vector<FeatureSpec> features;  ///< network.features of them
  std::vector<FeatureSpec> sequence;  ///< network.sequence_columns of them
  Head head;
  std::vector<std::pair<std::string, std::string>> provenance;
  std::vector<std::pair<std::string, double>> accuracy;
  std::vector<TestVector> test_vectors;  ///< at least one

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

/// Errors: malformed_input with a JSON pointer: an unknown format, version or field value, a list of another length
/// than the network needs, a number that is not finite, no test vector. Unknown fields are refused, too.
[[nodiscard]] core::Result<ModelConfig> parse_model_config(std::string_view text, std::string_view file = {});

}  // namespace gpumem::ml
