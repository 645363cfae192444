// Input: the wired graph of a whole model and the layout of a job.
// Output: the wired graph of one rank: the layers of its pipeline stages with its part of each, its experts and its
// part of the tokens. What it receives is an input of the graph; what it sends takes the place of a loss.
// Units: elements.
//
// One file a way of splitting: tensor_parallel, pipeline_parallel; here experts (whole ones, of which each rank has as
// many) and context (each rank has a part of every sequence).
#pragma once

#include <tuple>

#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::parallel {

/// The fields of a job that it depends on, in addition to the graph.
template <typename Job>
[[nodiscard]] auto rank_key(Job& job) {
  return std::tie(job.layout, job.sequence_length, job.input_shape, job.lora, job.quantize);
}

/// Whether the layout splits the model itself.
[[nodiscard]] bool splits_model(const model::Layout& layout);

/// Whether two jobs of one graph have the same rank_graph(): of a layout count the ways in which it splits the model
/// and the rank's pipeline stage, not how many ranks are alike.
[[nodiscard]] bool same_rank_graph(const model::TrainingJob& left, const model::TrainingJob& right);

/// Errors: invalid_argument for a layout that the model cannot have, naming the layer and the rule; missing_information
/// for a model that does not say how ranks share its layers.
[[nodiscard]] core::Result<connect::WiredGraph> rank_graph(const connect::WiredGraph& whole,
                                                           const model::TrainingJob& job, const ops::Catalogue& ops);

}  // namespace gpumem::parallel
