// Input: the module tree of a GPT-2 (GPT2LMHeadModel, GPT2Model).
// Output: its wiring: queries, keys and values packed in one projection, pre-norm residual blocks, and the keys and
// values of every layer returned (use_cache). Heads are 64 wide in every published GPT-2.
// Source: transformers 4.51, models/gpt2/modeling_gpt2.py.
#pragma once

#include "gpumem/connect/family.hpp"

namespace gpumem::connect {

[[nodiscard]] const Family& gpt2();

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/gpt2_inl.hpp"
#endif
