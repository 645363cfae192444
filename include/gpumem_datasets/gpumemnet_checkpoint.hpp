// Input: bytes of one of GPUMemNet's six published checkpoints (repository itu-rad/GPUMemNet, Ensemble/trained_models).
// Output: the same network as a config and weights in our format. The names and shapes of its tensors tell which of the
// six it is.
// The networks' inputs are raw (they have no scaler). Here their names begin with "gpumemnet.":
//
// - mlp4mlp (5 outputs): depth, batch_size, parameters, activations, batch_norm_layers, dropout_layers, activation_sin,
//   activation_cos
// - mlp4cnn (6): depth, activations, activations_times_batch, parameters, batch_size, conv2d_layers, batch_norm_layers,
//   dropout_layers, activation_sin, activation_cos
// - mlp4transformer (6): depth, activations, activations_times_batch, parameters, batch_size, ndq_linear_layers,
//   linear_layers, layer_norm_layers, dropout_layers
// - transformer4mlp (5): batch_size, parameters, activations, activations_times_batch; and 46 rows of a sequence
// - transformer4cnn (6): those four, conv2d_layers, batch_norm_layers, dropout_layers,
//   activation_sin_truncated, activation_cos_truncated; 119 rows
// - transformer4transformer (6): depth, activations, parameters, batch_size, ndq_linear_layers, linear_layers,
//   activations_times_batch, layer_norm_layers, dropout_layers; 314 rows
//
// A row of the sequence: a layer's code (code_0, code_1, ...), layer_activations, layer_parameters. Codes: in MLPs 01
// linear, 10 any other; in CNNs 01 convolution, 11 linear, 00 dropout and batch norm, 10 any other; in Transformers
// 1000 layer norm, 0100 embedding, 0010 linear, 0001 dropout.
//
// Facts, from that repository's data loaders (Ensemble/dataloaders, commit e7471dd), as are orders and codes:
//
// - MLP sets: the classes are 1,000 MiB wide and the first begins at 1,000 MiB; the last, from 5,000 MiB on, is open.
// - CNN and Transformer sets: edges 0, 8,000, ..., 40,000, 50,000 MiB. A run that ran out of 40 GB is in the
//   last class.
// - depth is the data sets' column Depth, ndq_linear_layers their "NonDynamicallyQuantizableLinear Count".
// - activation_sin and activation_cos are sin(i pi / n) and cos(i pi / n) of activation function i of n in alphabetical
//   order (n is 11 in the MLP sets, 10 in the CNN sets). For transformer4cnn they are cut to whole numbers
//   (activation_sin_truncated, activation_cos_truncated), as all its features are.
// - The models for CNNs were trained without residual and dense nets.
//
// Measured: on 1,841 runs of the public MLP set, mlp4mlp finds the right one of these classes for 98.4 %,
// transformer4mlp for 98.8 %. With steps of 1,024 MiB mlp4mlp would come to 98.3 %, with steps of 2,000 MiB from 0 on
// to 96.7 %, with steps of 1,000 MiB from 0 on to 0.3 %. Outputs are PyTorch's for a batch of one within 2e-5, or
// within 3e-7 of the largest one where that is more.
//
// Inferred: the open class ends at 6,000 MiB here, for an edge must be a number. Attention has one head and norms have
// PyTorch's eps of 1e-5: no tensor says so, but the outputs above are met with both.
#pragma once

#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/ml/network.hpp"

namespace gpumem::datasets {

struct ImportedModel {
  ml::ModelConfig config;
  ml::TensorFile weights;
};

/// Errors: those of read_lightning_checkpoint(); malformed_input for a checkpoint that is none of the six, saying what
/// was found, and for one whose positional encoding is not the sinusoidal one or whose values make no network.
[[nodiscard]] core::Result<ImportedModel> import_gpumemnet(std::string_view bytes, std::string_view file = {});

}  // namespace gpumem::datasets
