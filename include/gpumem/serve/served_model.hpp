// Input: the text of a config.json of a language model.
// Output: the sizes that a server needs: of its weights, how these are quantised, and of its KV cache; the states that
// its layers hold; its image tower. Units: elements, layers, heads, tokens; bits of a weight; patches and pixels of one
// image. Source: weights are those of the architecture's forward(); the fields are as transformers' configuration
// classes name them; vLLM 0.17 to 0.19, as named at each rule.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/config_fields.hpp"
#include "gpumem/core/json.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"

namespace gpumem::serve {

/// Elements of the model's weights, by what an engine does with them.
struct ServedWeights {
  std::int64_t split = 0;          ///< linear layers that tensor parallel ranks share
  std::int64_t replicated = 0;     ///< linear layers that every rank has whole: projections into a latent space
  std::int64_t keys_values = 0;    ///< the part of `split` that makes keys and values
  std::int64_t latent_up = 0;      ///< the part of `split` that leads out of a latent space
  std::int64_t experts = 0;        ///< the part of `split` that is in experts
  std::int64_t kept = 0;           ///< the part of `split` that is not quantised though the rest is
  std::int64_t plain = 0;          ///< norms, biases, routers, positions: whole, and never quantised
  std::int64_t tables = 0;         ///< matrices with a row for each token: 2, or 1 if the head is tied
  std::int64_t table_columns = 0;  ///< of one such matrix
};

/// Inputs and outputs of linear layers, for adapters: of rank r they have r times as many elements.
struct ServedAdapters {
  std::int64_t split = 0;  ///< sides that ranks share: what a layer split by columns gives, one split by rows reads
  std::int64_t whole = 0;  ///< sides that every rank has whole
};

/// What reads images: a tower with all up to the text model's width. It is never quantised.
struct ServedTower {
  std::int64_t split = 0;         ///< linear layers, which ranks share
  std::int64_t plain = 0;         ///< all other parameters
  std::int64_t hidden = 0;        ///< 0: the model has no tower
  std::int64_t intermediate = 0;  ///< of its feed-forward layers
  std::int64_t patches = 0;       ///< of the largest image
  std::int64_t tokens = 0;        ///< that this image takes of the text model
  std::int64_t pixels = 0;        ///< elements of this image as the tower reads it
};

/// Layers that carry a state from token to token, of one size for each sequence.
struct ServedStates {
  std::int64_t layers = 0;
  std::int64_t convolved = 0;  ///< elements that the convolution keeps
  std::int64_t carried = 0;    ///< elements of the state
  bool in_float32 = false;     ///< the state; else it is of the model's type
};

/// How the weights of linear layers are held.
enum class HeldWeights : std::uint8_t { as_they_are, packed, mxfp4_experts };

struct ServedModel {
  std::string model_type;
  std::int64_t layers = 0;
  std::int64_t attention_layers = 0;  ///< that have keys and values in the cache
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;  ///< of a dense layer or of one expert, the wider
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t latent_dim = 0;  ///< of multi-head latent attention: elements of a token in the cache; 0: none
  std::int64_t vocabulary = 0;
  std::int64_t max_positions = 0;
  std::int64_t rotary_dim = 0;
  std::int64_t rotary_rows = 0;  ///< positions whose cosines and sines the engine keeps
  std::int64_t experts = 0;      ///< 0: dense
  std::int64_t experts_per_token = 0;
  std::int64_t sliding_layers = 0;
  std::int64_t sliding_window = 0;
  std::int64_t index_bytes = 0;       ///< of a token in the cache of a layer's indexer; 0: it has none
  std::int64_t index_keys = 0;        ///< that it chooses for each token
  std::int64_t draft_vocabulary = 0;  ///< of the output layer of a draft model (EAGLE-3); 0: the model's own
  bool chunked = false;               ///< some layers attend within chunks (Llama 4)
  bool pools = false;                 ///< it gives embeddings or classes, and no tokens
  bool classifies = false;            ///< classes
  bool gated = true;                  ///< the feed-forward layer multiplies two projections
  bool embeds = true;                 ///< it begins with the embedding; a later stage of a pipeline does not
  bool samples = true;                ///< it ends with the output layer; an earlier stage does not
  ServedWeights weights;
  ServedTower tower;
  ServedAdapters adapters;  ///< without experts and tables
  ServedStates states;
  HeldWeights held = HeldWeights::as_they_are;
  std::int64_t weight_bits = 0;  ///< of packed ones
  std::int64_t group_size = 0;   ///< weights that share a scale; 0: one output channel
  std::int64_t scale_bytes = 0;  ///< of a scale; 0: as the format has it
  std::vector<model::Doubt> doubts = {};

  /// Whether something is kept of a sequence between two steps; an encoder keeps nothing.
  [[nodiscard]] bool caches() const { return attention_layers + states.layers > 0; }
};

/// Errors: malformed_input, missing_information (a model type without an architecture), and unknown_format for a model
/// that holds no KV cache, or a quantisation without rules.
[[nodiscard]] core::Result<ServedModel> read_served_model(std::string_view config_json);

/// Layers that stay as they are, by parts of their names. Source: the lists of compressed-tensors, AWQ and fp8, and
/// ModelOpt.
[[nodiscard]] std::vector<std::string> kept_layers(const core::JsonValue& quantization,
                                                   std::vector<model::Doubt>& doubts);

/// Bits of a linear layer's weights, and how many share a scale. Errors: unknown_format for one without rules.
[[nodiscard]] core::Status read_quantization(const core::JsonValue& quantization, ServedModel& model);

/// What a layer with a state keeps of each sequence; nothing where no layer has one. Errors: unknown_format.
[[nodiscard]] core::Status read_states(const model::ModelGraph& graph, architectures::ConfigFields& fields,
                                       ServedModel& model);

/// What the profiling pass gives the tower: the image that takes most tokens. `type` is the whole model's. Errors:
/// unknown_format.
[[nodiscard]] core::Status read_tower(architectures::ConfigFields& fields, std::string_view type, ServedModel& model);

}  // namespace gpumem::serve
