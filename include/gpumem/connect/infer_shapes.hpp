// Input: a graph with edges, the rules of its ops, and the job that feeds it.
// Output: the shape of every graph input and of every layer: the printed one where the summary prints shapes, otherwise
// inferred from the inputs on.
// Units: elements, with the batch size as N.
#pragma once

#include <span>

#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::connect {

/// One sample's shape with the batch N before it.
[[nodiscard]] core::Shape with_batch(std::span<const std::int64_t> sample);

/// `graph` is the job's, or what connect() made of it; `ops` has the row of each op, by the graph's op index. In a
/// graph that was read leniently a layer may read what an unknown one leaves: it is taken to read the latest known
/// tensor if that fits it, else no tensor leaves it either.
///
/// Errors: missing_information where a layer does not say its sizes, or cannot take its input; malformed_input where an
/// edge does not have the width that its reader was built for, printed or inferred, and where a layer reads nothing.
[[nodiscard]] core::Result<LayerShapes> infer_shapes(const model::TrainingJob& job, const model::ModelGraph& graph,
                                                     std::span<const ops::Op* const> ops);

}  // namespace gpumem::connect
