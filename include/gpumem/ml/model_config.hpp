// Input: the text of a trained model's config.json.
// Output: NetworkShape, the parts of its network, and ModelConfig, all that is known about it except its weights; and
// the text of such a file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::ml {

// NetworkShape: the parts of a trained network, and the list of tensors that follows: their names and shapes in a file
// of weights. Plain data.
// Units: elements.
//
// One form serves every model here. A branch is an ensemble of small perceptrons over the features; where it has an
// encoder, the encoder reads the sequence of layers, and its pooled output comes before the features. The outputs of
// all branches are averaged, as those of the members of a branch are.
//
//   features ─────────────────────────────┬──► member 0 ─┐
//   sequence ──► encoder ──► pooled ──► [pooled, features] ──► member 1 ─┴─► mean ──► branch 0 ─┐
//                                                                                     branch 1 ─┴─► mean ──► outputs
//
// A member: (Linear -> BatchNorm -> ReLU) for each hidden width, then Linear to the outputs. BatchNorm here is that of
// evaluation, by running figures, with eps 1e-5. An encoder is PyTorch's nn.TransformerEncoder with post-norm, ReLU and
// layer norm eps 1e-5, after an embedding and sinusoidal positions (Vaswani et al. 2017).

/// How a row of the sequence becomes a vector of the encoder's width.
enum class Embedding : std::uint8_t {
  linear,               ///< one Linear
  position_batch_norm,  ///< (Linear -> BatchNorm with a channel a position -> ReLU), twice: GPUMemNet's
};

/// What a position of the sequence looks at.
enum class Attention : std::uint8_t {
  sequence,  ///< all rows that are not padding
  self,      ///< only itself: what attention across the batch (batch_first off, GPUMemNet's) comes to for one job
};

/// How the encoder's positions become one vector.
enum class Pooling : std::uint8_t {
  mean,  ///< of the rows that are not padding
  sum,   ///< of all positions, padding included: GPUMemNet's
};

inline constexpr std::array<model::Named<Embedding>, 2> kEmbeddings = {
    {{Embedding::linear, "linear"}, {Embedding::position_batch_norm, "position-batch-norm"}}};
inline constexpr std::array<model::Named<Attention>, 2> kAttentions = {
    {{Attention::sequence, "sequence"}, {Attention::self, "self"}}};
inline constexpr std::array<model::Named<Pooling>, 2> kPoolings = {{{Pooling::mean, "mean"}, {Pooling::sum, "sum"}}};

struct EncoderShape {
  std::int64_t width = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 1;  ///< divides the width
  std::int64_t feed_forward = 0;
  Embedding embedding = Embedding::linear;
  Attention attention = Attention::sequence;
  Pooling pooling = Pooling::mean;

  friend bool operator==(const EncoderShape&, const EncoderShape&) = default;
};

struct BranchShape {
  std::optional<EncoderShape> encoder = {};
  std::vector<std::vector<std::int64_t>> members = {};  ///< the hidden widths of each

  friend bool operator==(const BranchShape&, const BranchShape&) = default;
};

struct NetworkShape {
  std::int64_t features = 0;
  std::int64_t outputs = 0;
  std::int64_t sequence_length = 0;   ///< rows; longer sequences are cut, shorter ones padded with zeros
  std::int64_t sequence_columns = 0;  ///< figures a row; 0: no branch has an encoder
  std::vector<BranchShape> branches = {};

  friend bool operator==(const NetworkShape&, const NetworkShape&) = default;
};

/// A tensor that a network of some shape needs.
struct TensorSpec {
  std::string name;
  std::vector<std::int64_t> shape;

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// Done if a network can be built so. Errors: invalid_argument, naming the field as a JSON pointer below the network
/// ("/branches/0/encoder/heads", "/sequence/length"); any size beyond what a model of this kind
/// can sensibly have (4,096 wide, 65,536 long, 64 deep, 16 branches, 256 members of all branches together, 2^26
/// weights, 2^26 elements in a sequence as wide as the encoder) is one, so that a damaged file asks for no terabytes.
/// So is a sequence that no branch reads. A member may have no hidden layer.
[[nodiscard]] core::Status validate(const NetworkShape& shape);

/// Every tensor of a valid shape, in the order in which they are applied, all float32:
///   branches.B.encoder.embedding.E.linear.{weight [width, in], bias [width]}
///   branches.B.encoder.embedding.E.norm.{weight, bias, running_mean, running_var} [length]  (position-batch-norm)
///   branches.B.encoder.layers.L.attention.in_proj.{weight [3 width, width], bias}           (query, key, value)
///   branches.B.encoder.layers.L.attention.out_proj.{weight [width, width], bias}
///   branches.B.encoder.layers.L.norm1.{weight, bias} [width]
///   branches.B.encoder.layers.L.linear1.{weight [feed_forward, width], bias}
///   branches.B.encoder.layers.L.linear2.{weight [width, feed_forward], bias}
///   branches.B.encoder.layers.L.norm2.{weight, bias} [width]
///   branches.B.members.M.hidden.H.linear.{weight [out, in], bias}
///   branches.B.members.M.hidden.H.norm.{weight, bias, running_mean, running_var} [out]
///   branches.B.members.M.output.{weight [outputs, in], bias}
[[nodiscard]] std::vector<TensorSpec> tensors_of(const NetworkShape& shape);

// Input: text of a config.json.
// Output: ModelConfig, all that is known about a trained model except its weights (write_model_config() goes
// the other way). The format:
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

// Input: ModelConfig.
// Output: its text, a config.json as is described above.

/// Reading it back gives an equal config.
[[nodiscard]] std::string write_model_config(const ModelConfig& config);

}  // namespace gpumem::ml
