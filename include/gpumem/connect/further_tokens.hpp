// Input: the wired graph of a language model of a config.json that Megatron trains, and how many further tokens it
// predicts.
// Output: the same graph with a layer for each of them: norms of the embedded words and of what the layer before made,
// a product that joins both, a block as the last one, a norm, and the head and the loss once more.
// Units: layers.
//
// The head's weight is the same for all. The words are those of the first embedding, copied where Megatron embeds the
// tokens that follow. Source: Megatron-LM of August 2026, core/transformer/multi_token_prediction.py
// (MultiTokenPredictionLayer, MultiTokenPredictionBlock.forward, process_mtp_loss) and core/models/gpt/
// gpt_layer_specs.py (get_gpt_mtp_block_spec: the last layer's spec), which ms-swift 4 and Megatron-Bridge call.
#pragma once

#include <cstdint>

#include "gpumem/connect/wired_graph.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/ops/catalogue.hpp"

namespace gpumem::connect {

/// Errors: missing_information for a model of another form.
[[nodiscard]] core::Result<WiredGraph> with_further_tokens(const WiredGraph& wired, std::int64_t count,
                                                           const ops::Catalogue& ops);

}  // namespace gpumem::connect
