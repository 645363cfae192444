// Input: the module tree of a DistilBERT (masked language model, sequence or token classification, bare encoder).
// Output: its wiring: post-norm residual blocks and the printed head. Heads are 64 wide in every published DistilBERT.
// Source: transformers 4.51, models/distilbert/modeling_distilbert.py.
#pragma once

#include "gpumem/connect/family.hpp"

namespace gpumem::connect {

[[nodiscard]] const Family& distilbert();

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/distilbert_inl.hpp"
#endif
