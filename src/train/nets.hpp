// Input: the configuration of a net as GPUMemNet's generators have them.
// Output: its ModelGraph with exact edges and every shape.
//
// Source: the nets of GPUMemNet's data sets (itu-rad/GPUMemNet, NeuroNetGen_scripts). A hidden layer of an MLP is
// linear
// [, batch norm], activation [, dropout]; a block of a CNN the same with a convolution. CNNs end in global average
// pooling, MLPs and CNNs in linear and softmax (sigmoid for one output). How wide the layers are:
//
//   MLP   pyramid     each half of the one before, no narrower than the outputs
//         uniform     all as wide as the input
//         bottleneck  as pyramid, and one more halving
//         gradual     each narrower than the one before by the depth's share of the way to the outputs
//   CNN   pyramid     base (2048 / base)^(i / depth) channels in block i
//         uniform     base
//         bottleneck  2 base, then as a pyramid of one block less
//         gradual     base (2048 / base)^(i / 2 depth)
//         hourglass   up to 2048 as a pyramid of half the depth, and down to base again
//         residual    depth / 2 pairs of blocks, channels as in a pyramid; each second pair halves the image, until it
//         is
//                     7 or less; a 1x1 convolution [, batch norm] on the shortcut where the shape changes
//         dense       depth / 4 groups of four blocks of 32 channels, each over all before it in its group; after the
//                     first group, and every few further ones, a 1x1 convolution to half the channels and average
//                     pooling
//
// Kernels are k x k with padding k / 2; the published nets have k = 3. Transformers are nn.Embedding plus learned
// positions, nn.TransformerEncoder (post-norm, batch first), the mean over the tokens, and linear.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::train {

enum class Architecture : std::uint8_t { pyramid, uniform, bottleneck, gradual, hourglass, residual, dense };

/// MLPs have the first four of these.
inline constexpr std::array<model::Named<Architecture>, 7> kArchitectures = {{{Architecture::pyramid, "pyramid"},
                                                                              {Architecture::uniform, "uniform"},
                                                                              {Architecture::bottleneck, "bottleneck"},
                                                                              {Architecture::gradual, "gradual"},
                                                                              {Architecture::hourglass, "hourglass"},
                                                                              {Architecture::residual, "residual"},
                                                                              {Architecture::dense, "dense"}}};

/// Ops of the activation functions that MLPs have. CNNs have all but the last.
inline constexpr std::array<std::string_view, 11> kActivations = {
    "elu", "gelu", "leaky_relu", "mish", "prelu", "relu", "selu", "silu", "softplus", "tanh", "identity"};

struct MlpNet {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t depth = 0;  ///< hidden layers; a bottleneck has one more
  Architecture architecture = Architecture::pyramid;
  std::string_view activation = "relu";
  std::int64_t dropout_percent = 0;  ///< 0: no dropout layers
  bool batch_norm = false;
};

struct CnnNet {
  std::int64_t channels = 3;
  std::int64_t side = 0;  ///< of the square image
  std::int64_t classes = 0;
  std::int64_t depth = 0;
  Architecture architecture = Architecture::pyramid;
  std::int64_t base_filters = 0;
  std::int64_t kernel = 3;  ///< odd
  std::string_view activation = "relu";
  std::int64_t dropout_percent = 0;  ///< 0: no dropout layers
  bool batch_norm = false;
  std::int64_t pooling_interval = 5;  ///< dense: groups from one transition to the next
};

struct TransformerNet {
  std::int64_t vocabulary = 0;
  std::int64_t sequence = 0;
  std::int64_t embedding = 0;
  std::int64_t heads = 0;  ///< divides the embedding
  std::int64_t feed_forward = 0;
  std::int64_t layers = 0;
  std::int64_t classes = 0;
  std::string_view activation = "relu";
  std::int64_t dropout_percent = 0;
  /// Query, key and value are one packed projection (nn.MultiheadAttention); else three linear layers, as in BERT.
  bool packed = true;
};

/// Errors: invalid_argument for a size below 1 or beyond all sense (2^24), or an unknown activation;
/// malformed_input where sizes do not fit each other.
[[nodiscard]] core::Result<model::ModelGraph> build(const MlpNet& net);
[[nodiscard]] core::Result<model::ModelGraph> build(const CnnNet& net);
[[nodiscard]] core::Result<model::ModelGraph> build(const TransformerNet& net);

}  // namespace gpumem::train
