// Input: the module tree of a LLaMA-like model (LLaMA, Mistral, Qwen2, Qwen3, Gemma, with a language-model head or
// bare).
// Output: its wiring: RMS norms before each half of a block, rotary positions, keys and values repeated for grouped
// queries, a gated feed-forward net, and the keys and values of every layer returned (use_cache). Heads are as wide as
// q_norm if it is printed, otherwise 128 for queries of 3,072 columns and more (256 for Gemma), and 64 below. The width
// only decides the rows of the attention's log-sums.
// Source: transformers 4.51, models/llama/modeling_llama.py and those made from it.
#pragma once

#include "gpumem/connect/family.hpp"

namespace gpumem::connect {

[[nodiscard]] const Family& llama();

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/llama_inl.hpp"
#endif
