// Input: a job whose graph may lack edges.
// Output: the same model as a WiredGraph, with an edge for everything that a layer reads and the shape of everything
// that it leaves: its own edges where it has them, the forward() of its architecture where its class is known, and a
// chain of layers otherwise.
#pragma once

#include <cstdint>

#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
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

/// The graph of a language model of a config.json that Megatron trains, with a layer for each of `count` further tokens
/// that it predicts: norms of the embedded words and of what the layer before made, a product that joins both, a block
/// as the last one, a norm, and the head and the loss once more. The head's weight is the same for all. The words are
/// those of the first embedding, copied where Megatron embeds the tokens that follow. Source: Megatron-LM of August
/// 2026, core/transformer/multi_token_prediction.py (MultiTokenPredictionLayer, MultiTokenPredictionBlock.forward,
/// process_mtp_loss) and core/models/gpt/gpt_layer_specs.py (get_gpt_mtp_block_spec: the last layer's spec), which
/// ms-swift 4 and Megatron-Bridge call. Errors: missing_information for a model of another form.
[[nodiscard]] core::Result<WiredGraph> with_further_tokens(const WiredGraph& wired, std::int64_t count,
                                                           const ops::Catalogue& ops);

}  // namespace gpumem::connect
