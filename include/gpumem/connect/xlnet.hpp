// Input: the module tree of an XLNet (XLNetLMHeadModel, XLNetForSequenceClassification with its sequence summary,
// XLNetModel), without memories, permutations or segments.
// Output: its wiring: written-out relative attention, with the projections and biases that print(model) does not show.
// XLNet stores tensors as [S, N, heads, d], so that its einsums read heads without a copy; here they are contiguous [N,
// heads, S, d], which takes the same memory. Heads are 64 wide in both published XLNets.
// Source: transformers 4.51, models/xlnet/modeling_xlnet.py.
#pragma once

#include "gpumem/connect/family.hpp"

namespace gpumem::connect {

[[nodiscard]] const Family& xlnet();

}  // namespace gpumem::connect

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/connect/impl/xlnet_inl.hpp"
#endif
