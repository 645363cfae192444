// Input: a wired graph.
// Output: its linear layers with what adapters and quantised weights need to know about them: names, sides, and which
// one is the model's output. Also its embeddings, which can have adapters too.
// Units: features; rows of a table.
//
// Source: transformers 4.46 integrations/bitsandbytes.py, get_keys_to_not_convert: the output embedding, what is tied,
// and the last module stay as they are. PEFT 0.14 tuners/tuners_utils.py, _maybe_include_all_linear_layers: all-linear
// leaves out the output embedding and a classifier's head.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/connect/wired_graph.hpp"

namespace gpumem::adapt {

struct BaseLinear {
  std::uint32_t layer = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::string path = {};  ///< "model.layers.0.self_attn.q_proj"
  bool output = false;    ///< the model's head

  /// "q_proj".
  [[nodiscard]] std::string_view leaf() const {
    const std::string_view whole = path;
    return whole.substr(whole.rfind('.') + 1);  // npos + 1 is 0
  }
};

struct BaseEmbedding {
  std::uint32_t layer = 0;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::string path = {};  ///< "model.embed_tokens"
};

/// In the order of the layers.
[[nodiscard]] std::vector<BaseEmbedding> base_embeddings(const connect::WiredGraph& wired);
/// In the order of the layers. Modules that are called again are there again.
[[nodiscard]] std::vector<BaseLinear> base_linears(const connect::WiredGraph& wired);

}  // namespace gpumem::adapt
