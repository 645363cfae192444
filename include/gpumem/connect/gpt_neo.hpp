// Input: the module tree of a GPT-Neo (GPTNeoForCausalLM, GPTNeoModel).
// Output: its wiring: written-out attention (matrix products, a masked softmax), pre-norm residual blocks, and the keys
// and values of every layer returned (use_cache). Heads are 64 wide in GPT-Neo 125M, 128 wide in 1.3B and 2.7B.
// Source: transformers 4.51, models/gpt_neo/modeling_gpt_neo.py.
#pragma once

#include "gpumem/connect/family.hpp"

namespace gpumem::connect {

[[nodiscard]] const Family& gpt_neo();

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/gpt_neo_inl.hpp"
#endif
