// Input: facts of a job, and the features that a model's config names.
// Output: the figures that go into its network, and whether they lie within what it was trained on.
//
// The catalogue below is the one place that says what a feature means; which of them a model reads, in which order and
// scaled how, is data in its config.json. Names that begin with "gpumemnet." are those of the published models with
// their quirks (itu-rad/GPUMemNet): raw counts, activations of a CNN without their channels, parameters without the
// slopes of PReLU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/ml/job_facts.hpp"
#include "gpumem/ml/model_config.hpp"

namespace gpumem::ml {

/// What a feature reads of a job.
enum class Needs : std::uint8_t {
  layers,    ///< JobFacts as facts_of() makes it
  replay,    ///< JobFacts::replay
  variants,  ///< its figures of other workspaces, too
  roofline,  ///< JobFacts::roofline
};

/// A figure of a whole job.
struct Feature {
  std::string_view name;
  std::string_view description;  ///< with the unit, for people
  double (*value)(const JobFacts& facts);
  Needs needs = Needs::layers;
};

/// A figure of one layer: a column of the sequence.
struct LayerFeature {
  std::string_view name;
  std::string_view description;
  double (*value)(const JobFacts& facts, const LayerFacts& layer);
};

/// Every feature that gpumem can compute.
[[nodiscard]] std::span<const Feature> features();
[[nodiscard]] std::span<const LayerFeature> layer_features();

/// Done if every feature and column of the config is in the catalogue. Errors: malformed_input with a JSON pointer.
[[nodiscard]] core::Status check_features(const ModelConfig& config);

/// The features of one model, looked up once.
/// Thread safety: immutable; any number of threads may read with one.
class FeatureReader {
 public:
  /// Errors: those of check_features().
  [[nodiscard]] static core::Result<FeatureReader> create(const ModelConfig& config);

  /// Whether a feature of the model reads this; `replay` also where one reads its variants.
  [[nodiscard]] bool needs(Needs what) const;

  /// Raw figures, as they are in tables and test vectors.
  [[nodiscard]] std::vector<double> raw_features(const JobFacts& facts) const;
  [[nodiscard]] std::vector<std::vector<double>> raw_sequence(const JobFacts& facts) const;

  /// The same as they enter the network: `features` has room for all; `sequence` is given its size, up to the model's
  /// length. `outside` gets the names of features outside their training range.
  void read(const JobFacts& facts, std::span<float> features, std::vector<float>& sequence,
            std::vector<std::string>& outside) const;

 private:
  [[nodiscard]] bool is_row(const JobFacts& facts, const LayerFacts& layer) const;

  std::vector<const Feature*> features_;
  std::vector<const LayerFeature*> columns_;
  std::vector<FeatureSpec> specs_;
  std::vector<FeatureSpec> column_specs_;
  std::size_t length_ = 0;
  bool published_rows_ = false;  ///< the rows that GPUMemNet lists, not ours
};

}  // namespace gpumem::ml
