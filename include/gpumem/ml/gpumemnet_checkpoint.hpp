// Enters: bytes of one of GPUMemNet's six published checkpoints (Yousefzadeh-Asl-Miandoab et al.; repository
// itu-rad/GPUMemNet, Ensemble/trained_models). Leaves: the same network as config and weights of ours. Which of the six
// it is follows from the names and shapes of its tensors.
//
//              features, in order                                                       sequence            outputs
//   mlp4mlp    depth, batch_size, parameters, activations, batch_norm_layers,           none                5
//              dropout_layers, activation_sin, activation_cos
//   mlp4cnn    depth, activations, activations_times_batch, parameters, batch_size,     none                6
//              conv2d_layers, batch_norm_layers, dropout_layers, activation_sin,
//              activation_cos
//   mlp4transformer  depth, activations, activations_times_batch, parameters,           none                6
//              batch_size, ndq_linear_layers, linear_layers, layer_norm_layers,
//              dropout_layers
//   transformer4mlp  batch_size, parameters, activations, activations_times_batch       46 rows of 2 + 2    5
//   transformer4cnn  the same, conv2d_layers, batch_norm_layers, dropout_layers,        119 rows of 2 + 2   6
//              activation_sin, activation_cos
//   transformer4transformer  depth, activations, parameters, batch_size,                314 rows of 4 + 2   6
//              ndq_linear_layers, linear_layers, activations_times_batch,
//              layer_norm_layers, dropout_layers
//
// Their names here begin with "gpumemnet."; a row of the sequence is code_0, code_1, ..., layer_activations,
// layer_parameters. All enter raw: the networks have no scaler.
//
// Facts, from that repository's data loaders (Ensemble/dataloaders, commit e7471dd), as are order and codes:
//   - MLP sets: class i is from 1,000 (i + 1) MiB on, 1,000 MiB wide; no run below 1,000 MiB has a class, and the last
//     class, from 5,000 MiB on, is open.
//   - CNN and Transformer sets: edges 0, 8,000, ..., 40,000, 50,000 MiB. Runs that ran out of 40 GB are in the last
//   class.
//   - depth is the data sets' column Depth; ndq_linear_layers is their "NonDynamicallyQuantizableLinear Count".
//   - activation_sin and activation_cos are sin(i pi / n), cos(i pi / n) of activation function i of n in alphabetical
//     order; the loaders of the Transformer ensembles cut them (as all extra features) to whole numbers.
//   - The CNN models were trained without residual and dense nets.
// Measured: mlp4mlp finds the right one of these classes for 98.4 % of 1,841 public MLP runs; with steps of 1,024 MiB
// it would be 98.3 %, with steps of 2,000 MiB from 0 on 96.7 %, with steps of 1,000 MiB from 0 on 0.3 %. Inferred: the
// open class is given 6,000 MiB as its upper edge, for an edge must be a number; the attention has one head, and norms
// have eps 1e-5 (PyTorch's default), for no tensor says either: PyTorch's logits are met with both.
#pragma once

#include <string_view>

#include "gpumem/core/result.hpp"
#include "gpumem/ml/model_config.hpp"
#include "gpumem/ml/safetensors.hpp"

namespace gpumem::ml {

struct ImportedModel {
  ModelConfig config;
  TensorFile weights;
};

/// Errors: those of read_lightning_checkpoint(); malformed_input for a checkpoint that is none of the six, saying what
/// was found, and for one whose positional encoding is not the sinusoidal one or whose values make no network.
[[nodiscard]] core::Result<ImportedModel> import_gpumemnet(std::string_view bytes, std::string_view file = {});

}  // namespace gpumem::ml

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/impl/gpumemnet_checkpoint_inl.hpp"
#endif
