// Enters: the module tree of a GPT-NeoX (Pythia: GPTNeoXForCausalLM, GPTNeoXModel). Leaves: its wiring: packed queries,
// keys and values, rotary positions on a quarter of each head, attention and feed-forward net beside each other (the
// published models' use_parallel_residual), and keys and values of every layer returned (use_cache). Heads: 64 wide
// below a width of 2,048 columns, 128 from there on (Pythia 2.8B has 80, and GPT-NeoX-20B 96; it decides the rows of
// the attention's log-sums alone). Source: transformers 4.51, models/gpt_neox/modeling_gpt_neox.py.
#pragma once

#include "gpumem/connect/family.hpp"

namespace gpumem::connect {

[[nodiscard]] const Family& gpt_neox();

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/gpt_neox_inl.hpp"
#endif
