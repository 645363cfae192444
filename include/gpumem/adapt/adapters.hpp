// Input: a linear layer or an embedding of the frozen base, and the adapter's settings.
// Output: the adapter's layers, wired as PEFT calls them.
// Units: the rank in features.
//
// Source: PEFT 0.14, tuners/lora: layer.py (Linear.forward, Embedding.forward), bnb.py (Linear4bit, which copies the
// base's output; Linear8bitLt), gptq.py (which adds to it in place). x is cast to the adapter's type; over a quantised
// base it is not under autocast, and what B leaves is cast back in place of the sum.
#pragma once

#include "gpumem/adapt/base_linears.hpp"
#include "gpumem/connect/graph_copy.hpp"
#include "gpumem/model/training_job.hpp"

namespace gpumem::adapt {

/// Puts the adapter of a layer of the source after it, which was copied last; what reads the layer then reads their
/// sum.
void add_adapter(connect::GraphCopy& copy, const connect::WiredGraph& source, const BaseLinear& base,
                 const model::TrainingJob& job, model::Quantization quantization, std::int64_t rank);

/// The same of an embedding: F.embedding of A's transpose, times B's. There is no dropout.
void add_adapter(connect::GraphCopy& copy, const connect::WiredGraph& source, const BaseEmbedding& base,
                 const model::TrainingJob& job, std::int64_t rank);

}  // namespace gpumem::adapt
