// T5 of Megatron-Core, of the arguments that its launcher takes, as one JSON object: encoder_num_layers,
// decoder_num_layers, hidden_size. The encoder reads as many tokens as the job says, the decoder decoder_seq_length.
// The model is whole: what a rank holds of it is the layout's matter. Source: Megatron-LM core r0.12,
// core/models/T5/t5_model.py and t5_spec.py, core/transformer/attention.py (CrossAttention),
// core/transformer/transformer_layer.py, pretrain_t5.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& megatron_t5();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/megatron_t5_inl.hpp"
#endif
