// Input: a wired graph.
// Output: the layers that a flash-attn kernel does not need: contiguous copies and repeated heads, which only bring
// queries, keys and values into the form that scaled_dot_product_attention takes.
// Units: indices.
// Source: transformers 4.48, integrations/flash_attention.py compared with integrations/sdpa_attention.py.
#pragma once

#include <vector>

#include "gpumem/connect/wired_graph.hpp"

namespace gpumem::plan {

/// By layer: whether it comes before an attention and moves what that reads, and nothing else reads it.
[[nodiscard]] std::vector<bool> attention_inputs(const connect::WiredGraph& wired);

}  // namespace gpumem::plan
