// Input: the module tree of a T5 (T5ForConditionalGeneration, T5EncoderModel).
// Output: its wiring: written-out attention with a position bias that all layers of a stack share. In addition to the
// logits the model returns the encoder's last states, and the keys and values of the decoder's self- and
// cross-attention (use_cache). The decoder reads as many tokens as the encoder.
// Source: transformers 4.51, models/t5/modeling_t5.py.
#pragma once

#include "gpumem/connect/family.hpp"

namespace gpumem::connect {

[[nodiscard]] const Family& t5();

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/t5_inl.hpp"
#endif
