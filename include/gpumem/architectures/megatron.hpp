// GPT of Megatron-Core, with experts or without, and by megatron_t5.hpp its T5, of the arguments that its launcher
// takes, as one JSON object: num_layers, hidden_size, swiglu. The model is whole: what a rank holds of it is the
// layout's matter. Attention is TransformerEngine's fused one. Experts are taken to get their tokens one after the
// other. Source: Megatron-LM core r0.12, megatron/training/arguments.py, core/models/gpt/gpt_model.py,
// core/transformer/transformer_layer.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& megatron();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/megatron_inl.hpp"
#endif
