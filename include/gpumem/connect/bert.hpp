// Input: the module tree of a BERT or RoBERTa (masked language model, sequence or token classification, bare encoder).
// Output: its wiring: post-norm residual blocks and the printed head. Heads are 64 wide in every published BERT of more
// than 128 columns.
// Source: transformers 4.51, models/bert/modeling_bert.py, models/roberta/modeling_roberta.py.
#pragma once

#include "gpumem/connect/family.hpp"

namespace gpumem::connect {

[[nodiscard]] const Family& bert();

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/bert_inl.hpp"
#endif
