// Input: the text of a config.json of a language model.
// Output: the sizes that a server needs: of its weights and of its KV cache.
// Units: elements, layers, heads, tokens; bits of a weight.
// Source: weights are those of the architecture's forward(); the fields are as transformers' configuration classes name
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"

namespace gpumem::serve {

/// Elements of the model's weights, by what an engine does with them.
struct ServedWeights {
  std::int64_t split = 0;          ///< linear layers that tensor parallel ranks share
  std::int64_t replicated = 0;     ///< linear layers that every rank has whole: projections into a latent space
  std::int64_t keys_values = 0;    ///< the part of `split` that makes keys and values
  std::int64_t latent_up = 0;      ///< the part of `split` that leads out of a latent space
  std::int64_t plain = 0;          ///< norms, biases, routers, positions: whole, and never quantised
  std::int64_t tables = 0;         ///< matrices with a row for each token: 2, or 1 if the head is tied
  std::int64_t table_columns = 0;  ///< of one such matrix
};

struct ServedModel {
  std::string model_type;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;  ///< of a dense layer or of one expert, the wider
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t latent_dim = 0;  ///< of multi-head latent attention: elements of a token in the cache; 0: none
  std::int64_t vocabulary = 0;
  std::int64_t max_positions = 0;
  std::int64_t rotary_dim = 0;
  std::int64_t experts = 0;  ///< 0: dense
  std::int64_t experts_per_token = 0;
  std::int64_t sliding_layers = 0;
  std::int64_t sliding_window = 0;
  bool gated = true;    ///< the feed-forward layer multiplies two projections
  bool embeds = true;   ///< it begins with the embedding; a later stage of a pipeline does not
  bool samples = true;  ///< it ends with the output layer; an earlier stage does not
  ServedWeights weights;
  std::int64_t weight_bits = 0;  ///< of the linear layers; 0: they are not quantised
  std::int64_t group_size = 0;   ///< weights that share a scale; 0: one output channel
  std::vector<model::Doubt> doubts = {};
};

/// Errors: malformed_input, missing_information (a model type without an architecture), and unknown_format for a model
/// that holds no KV cache, or a quantisation without rules.
[[nodiscard]] core::Result<ServedModel> read_served_model(std::string_view config_json);

}  // namespace gpumem::serve
