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
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::ml {

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
/// ("/branches/0/encoder/heads", "/sequence/length"; see model_config.hpp); any size beyond what a model of this kind
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

}  // namespace gpumem::ml
