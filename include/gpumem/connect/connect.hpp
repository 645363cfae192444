// Input: a job whose graph may lack edges.
// Output: the same model as a WiredGraph, with an edge for everything that a layer reads and the shape of everything
// that it leaves: its own edges where it has them, the forward() of its architecture where its class is known, and a
// chain of layers otherwise.
#pragma once

#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/model/training_job.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::connect {

/// Reads the job's graph, input_shape, sequence_length, strict, padding, attention and transformers, and nothing else
/// of it. The ops must outlive the graph. Where a chain finds no input for a layer it guesses one: a warning of the
/// graph names the line, and WiredGraph::guesses() counts them.
///
/// Errors: those of architectures::read_tree(); missing_information where a layer does not say its sizes, where more
/// than half of the layers would read something made up, and in place of every guess if the job is strict;
/// malformed_input where an edge has not the width that its reader was built for.
[[nodiscard]] core::Result<WiredGraph> connect(const model::TrainingJob& job, const ops::Catalogue& ops);

/// How many of a sample's tokens the job's images take, in a model that reads text and images; 0: none. Errors: those
/// of connect() that are about images.
[[nodiscard]] core::Result<std::int64_t> picture_tokens(const model::TrainingJob& job, const ops::Catalogue& ops);

}  // namespace gpumem::connect
