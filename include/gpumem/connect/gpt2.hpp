// Enters: the module tree of a GPT-2 (GPT2LMHeadModel, GPT2Model). Leaves: its wiring: packed queries, keys and
// values in one projection, pre-norm residual blocks, and keys and values of every layer returned (use_cache).
// Source: transformers 4.51, models/gpt2/modeling_gpt2.py. Heads are 64 wide in every published GPT-2.
#pragma once

#include "gpumem/connect/family.hpp"

namespace gpumem::connect {

[[nodiscard]] const Family& gpt2();

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/gpt2_inl.hpp"
#endif
