// BERT, RoBERTa, XLM-RoBERTa, CamemBERT and ELECTRA: encoders with norms after attention and feed-forward layer.
// Source: transformers 4.48, models/bert/modeling_bert.py, roberta, electra (eager there, the kernel here).
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& bert();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/bert_inl.hpp"
#endif
