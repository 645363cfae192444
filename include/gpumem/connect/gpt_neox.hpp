// Input: the module tree of a GPT-NeoX (Pythia: GPTNeoXForCausalLM, GPTNeoXModel).
// Output: its wiring: packed queries, keys and values, rotary positions on a quarter of each head, attention and
// feed-forward net in parallel (the published models' use_parallel_residual), and the keys and values of every layer
// returned (use_cache). Heads are taken to be 64 wide in models narrower than 2,048 columns, 128 from there on (Pythia
// 2.8B has 80, and GPT-NeoX-20B 96; the width only decides the rows of the attention's log-sums).
// Source: transformers 4.51, models/gpt_neox/modeling_gpt_neox.py.
#pragma once

#include "gpumem/connect/family.hpp"

namespace gpumem::connect {

[[nodiscard]] const Family& gpt_neox();

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/gpt_neox_inl.hpp"
#endif
