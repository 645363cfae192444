// Input: a wired graph, how it is trained, and the ops.
// Output: ForwardPass, its autograd graph for any batch size, with the loss: what forward computes and what backward
// will read again.
// Units: elements.
#pragma once

#include <vector>

#include "gpumem/connect/repeated_blocks.hpp"
#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"
#include "gpumem/ops/tape.hpp"

namespace gpumem::plan {

/// A pipeline stage's part of a pass.
struct StagePart {
  connect::Range functions;
  ops::TensorId loss = ops::kNoTensor;  ///< what its backward starts from: of all but the last stage, what it sends
};

/// It holds its graph, so that later stages need nothing but it and how the model is trained.
struct ForwardPass {
  connect::WiredGraph wired;
  ops::Tape tape = ops::Tape();
  std::vector<ops::TensorId> held = {};  ///< what the training loop's names hold until the next step: outputs, loss
  ops::TensorId loss = ops::kNoTensor;
  std::vector<StagePart> stages = {};      ///< in their order; the only one is all of the pass
  std::size_t model_inputs = 0;            ///< of the tape's inputs; the rest are labels
  std::size_t model_functions = 0;         ///< of the tape's functions; the rest are the loss
  std::vector<ops::TensorId> splits = {};  ///< tuples: their parts' gradients wait for each other; ascending
  bool convolves = false;                  ///< calls cuDNN's convolutions
  bool normalises = false;                 ///< calls cuDNN's batch normalisation
  std::int64_t skipped_layers = 0;         ///< after unknown ones: of these, too, only the parameters are counted
};

/// It reads the job's precision and loss. `ops` gives the loss its row; the layers' rows are in the wired graph.
///
/// Errors: missing_information for an op whose memory is not known, or a size that is not; malformed_input for a layer
/// that reads a layer without a tensor; overflow if a size does not fit 64 bits. Each names its layer.
[[nodiscard]] core::Result<ForwardPass> make_forward_pass(const connect::WiredGraph& wired,
                                                          const model::TrainingJob& job, const ops::Catalogue& ops,
                                                          ops::Backend backend = ops::Backend::cuda);

}  // namespace gpumem::plan
