// Input: the fields that decoder-only language models share, and their hidden states.
// Output: the parts of their forward(): heads, rotary positions, attention, feed-forward layers, output heads with
// their losses.
// Source: transformers 4.48, models/llama/modeling_llama.py, integrations/sdpa_attention.py, loss/loss_utils.py.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

/// Sizes under the names that most configs have. Further ones are read by the architecture itself.
struct DecoderSizes {
  std::int64_t vocabulary = 1;
  std::int64_t width = 1;
  std::int64_t layers = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;  ///< of keys and values
  std::int64_t head_width = 1;
  std::int64_t inner = 1;  ///< of the feed-forward layers
  double attention_dropout = 0.0;
  std::string_view activation = {};
  bool tied = false;  ///< the head's weight is the embedding
};

/// What configs leave out.
struct DecoderDefaults {
  std::string_view activation = "silu";
  bool tied = false;
  std::int64_t inner_factor = 0;  ///< of the width; 0: intermediate_size must be there
};

/// hidden_size (n_embd, d_model), num_hidden_layers (n_layer, n_layers), num_attention_heads (n_head, n_heads),
/// num_key_value_heads, head_dim, intermediate_size (n_inner, ffn_dim), vocab_size, hidden_act (activation_function).
/// Heads that are not whole are a fault.
[[nodiscard]] DecoderSizes decoder_sizes(ConfigFields& config, const DecoderDefaults& defaults = {});

/// A size that some layers have of their own, and what they have where the config gives them none.
struct OwnSize {
  std::string_view name;
  std::int64_t otherwise = 1;
};

/// These sizes of the layers of `which`: transformers 5.16 saves {"5": {"head_dim": 512}} as "per_layer_config".
/// Faults: layers of `which` that differ, another layer's own size, and fields that are not asked for. Source:
/// transformers, configuration_utils.py, HeterogeneousConfigMixin.
inline std::vector<std::int64_t> own_sizes(ConfigFields& config, const std::vector<bool>& which,
                                           std::initializer_list<OwnSize> asked) {
  constexpr std::string_view kField = "per_layer_config";
  std::vector<std::int64_t> sizes;
  for (const OwnSize& size : asked) sizes.push_back(size.otherwise);
  const core::JsonValue* own = config.find(kField);
  if (own == nullptr) return sizes;
  if (!own->is(core::JsonValue::Kind::object)) {
    config.fail("must be an object", kField);
    return sizes;
  }
  std::vector<std::vector<std::int64_t>> of_layers(which.size(), sizes);
  for (const core::JsonValue& entry : own->items()) {
    const std::string_view number = entry.key();
    std::size_t layer = which.size();
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), layer);
    const bool whole = error == std::errc() && end == number.data() + number.size();
    if (!whole || layer >= which.size() || !entry.is(core::JsonValue::Kind::object)) {
      config.fail("must have an object for the number of a layer", kField);
      return sizes;
    }
    for (const core::JsonValue& field : entry.items()) {
      const auto found = std::ranges::find(asked, field.key(), &OwnSize::name);
      const bool sound = field.is(core::JsonValue::Kind::integer) && field.integer() >= 1 &&
                         field.integer() <= ConfigFields::kLargestSize;
      if (found == asked.end() || !sound) {
        config.fail("has " + core::quoted(field.key()) + " of a layer, which is not understood", kField);
        return sizes;
      }
      const bool usual = field.integer() == config.size_or({found->name}, found->otherwise);
      if (!which[layer] && !usual) config.fail("gives a layer of the other kind a size of its own", kField);
      of_layers[layer][static_cast<std::size_t>(found - asked.begin())] = field.integer();
    }
  }
  std::optional<std::vector<std::int64_t>> all;
  for (std::size_t at = 0; at < which.size(); ++at) {
    if (which[at] && all.value_or(of_layers[at]) != of_layers[at]) {
      config.fail("has layers of one kind that differ", kField);
    }
    if (which[at]) all = of_layers[at];
  }
  return all.value_or(sizes);
}

/// What an encoder's fields leave out.
struct EncoderDefaults {
  std::int64_t width = 1;
  std::int64_t inner = 1;
  std::int64_t layers = 1;
  std::int64_t heads = 1;
  std::string_view activation = "gelu";
};

/// Of a tower or another stack whose heads share its width: hidden_size, intermediate_size, num_hidden_layers,
/// num_attention_heads, hidden_act and attention_dropout.
[[nodiscard]] DecoderSizes encoder_sizes(ConfigFields& config, const EncoderDefaults& defaults);

struct Heads {
  Tensor query = 0;
  Tensor key = 0;
  Tensor value = 0;
};

/// Gemma's norm: (x.float() / rms(x)) * (1 + weight.float()), in the type of x; `adds_one` false: times the weight.
Tensor wide_norm(Forward& forward, std::string_view name, std::string_view class_name, Tensor input, std::int64_t width,
                 bool adds_one = true);

/// An RMS norm without weights, of a float32 copy, in the type of x.
Tensor plain_norm(Forward& forward, std::string_view name, std::string_view class_name, Tensor input,
                  std::int64_t width);

/// (up + 1) gate sigmoid(alpha gate), of clamped halves of the last of the axes (gpt-oss, MiniMax-M3).
Tensor clamped_gate(Forward& forward, Tensor gate, Tensor up);

/// [N, S, heads d] -> [N, heads, S, d]: a view.
Tensor split_heads(Forward& forward, Tensor tensor, std::int64_t width);
/// [N, heads, S, d] -> [N, S, heads d].
Tensor merge_heads(Forward& forward, Tensor tensor);
/// repeat_kv: each head repeated, by an expanded view and a copy. `in_kernel`: transformers leaves it to the
/// kernel since 4.54, where attention has no mask (integrations/sdpa_attention.py, use_gqa_in_sdpa).
Tensor repeat_heads(Forward& forward, Tensor tensor, std::int64_t times, bool in_kernel = false);

/// Cosines and sines of positions, [1, 1, S, width].
struct Rotary {
  Tensor cosines = 0;
  Tensor sines = 0;
  std::int64_t width = 0;
  bool by_section = false;  ///< there are three tables of each, of which a layer joins sections
};
/// The tables that one layer reads: those, or a copy of sections of them (apply_multimodal_rotary_pos_emb of Qwen2-VL).
[[nodiscard]] Rotary layer_tables(Forward& forward, const Rotary& rotary);
[[nodiscard]] Rotary rotary_tables(Forward& forward, Tensor ids, std::int64_t width);
/// How many elements of each head are turned: a share of them under one of these names.
[[nodiscard]] std::int64_t rotary_width(ConfigFields& config, const DecoderSizes& sizes,
                                        std::initializer_list<std::string_view> names, double usual_share);
/// x cos + rotate_half(x) sin, of heads of this width; where the tables are narrower, of their first elements.
Tensor rotate(Forward& forward, Tensor heads, const Rotary& rotary, std::int64_t width);

/// How attention is called.
struct Attention {
  std::int64_t groups = 1;  ///< queries a key
  bool in_kernel = false;   ///< the class repeats heads before, where the kernel does not
  double dropout = 0.0;
  bool copies = true;  ///< as sdpa_attention_forward does; attention classes of their own call the kernel on views
  std::optional<Tensor> mask = {};
  bool causal = true;  ///< without a mask, no query meets later keys; not so in encoders and towers of images
};
/// sdpa_attention_forward without a mask: keys and values repeated, copies in order, the kernel, its output as [N, S,
/// heads d].
Tensor attend(Forward& forward, const Heads& heads, const Attention& options = {});

/// q_proj, k_proj and v_proj, each a linear layer of the same options, as heads.
[[nodiscard]] Heads project_heads(Forward& forward, const DecoderSizes& sizes, Tensor input, const Linear& linear);
/// attend() as decoders call it: keys and values go into the cache, and the sizes say how many queries a key has, and
/// the dropout.
Tensor attend_cached(Forward& forward, const DecoderSizes& sizes, const Heads& heads, Attention options = {});

/// Attention that is written out, with a mask [N, 1, S, S] and a learned sink for each head, where there are any; its
/// output as [N, S, heads d].
Tensor sink_attention(Forward& forward, const Heads& heads, std::optional<Tensor> sinks, Tensor mask,
                      const Attention& options);

/// The encoder or the decoder of a model that has both (BART, Whisper).
struct Side {
  std::int64_t layers = 1;
  std::int64_t heads = 1;
  std::int64_t inner = 1;
};
/// NAME_layers, NAME_attention_heads and NAME_ffn_dim, of "encoder" or "decoder". Heads that do not divide the width
/// are a fault.
[[nodiscard]] Side read_side(ConfigFields& config, std::string_view name, std::int64_t width);
/// The same fields of both, of a tree.
void tree_sides(TreeFields& tree, std::span<const PublishedHeads> published, std::int64_t width);

/// Attention whose projections keep the width, of a stream to itself or to another one (BART, CLIP, Whisper).
struct StreamAttention {
  std::string_view name = {};
  std::string_view class_name = {};
  std::int64_t width = 1;
  std::int64_t heads = 1;
  double dropout = 0.0;
  bool key_bias = true;
  bool copies = true;  ///< the class itself copies heads before the kernel, whatever the release; else it reads views
  /// Where `copies` is false: the jobs in which they are copied all the same.
  std::array<std::optional<When>, 2> copies_when = {};
  bool caches = false;  ///< keys and values are returned
  std::optional<Tensor> mask = {};
  bool adds_masks = false;  ///< each call adds the mask of padding to that one
  bool causal = false;      ///< without a mask, no query meets later keys
};
Tensor stream_attention(Forward& forward, const StreamAttention& options, Tensor input, Tensor source);

/// Where queries and keys are normed, if they are.
enum class HeadNorm : std::uint8_t {
  each,    ///< each head
  turned,  ///< each head, after its positions
  all,     ///< all heads at once, before they are told apart
};

/// How rotary positions are applied.
enum class Turning : std::uint8_t {
  halves,      ///< the halves of a head, as Llama does
  pairs,       ///< its pairs; each block makes tables for it
  wide_pairs,  ///< the same in float32
  made_pairs,  ///< the same of tables that are made for pairs, once for all blocks
};

/// Attention as Llama has it: projections of their own, rotary positions on the whole head, a cache.
struct RotaryAttention {
  std::string_view class_name = {};
  bool input_bias = false;  ///< of queries, keys and values
  bool output_bias = false;
  std::string_view head_norm = {};  ///< class of the RMS norms of queries and keys; empty: there are none
  bool turns = true;                ///< by rotary positions
  HeadNorm norm_place = HeadNorm::each;
  std::string_view query_norm = "q_norm";
  std::string_view key_norm = "k_norm";
  bool plain_norms = false;  ///< without weights
  Turning turning = Turning::halves;
  double output_dropout = 0.0;
  bool clips = false;              ///< what the projections leave, in place
  bool scales_queries = false;     ///< by a figure of their position
  std::string_view sub_norm = {};  ///< class of an RMS norm before the output projection; empty: there is none
};
/// Queries and keys with their positions.
[[nodiscard]] std::array<Tensor, 2> turn_heads(Forward& forward, Tensor query, Tensor key, const Rotary& rotary,
                                               std::int64_t width, Turning turning);
Tensor rotary_attention(Forward& forward, const DecoderSizes& sizes, Tensor input, const Rotary& rotary,
                        const RotaryAttention& options);

/// down_proj(act_fn(gate_proj(x)) * up_proj(x)), in a module of this class. `sub_norm`: class of an RMS norm before
/// down_proj.
Tensor gated_feed_forward(Forward& forward, const DecoderSizes& sizes, Tensor input, std::string_view class_name,
                          bool bias = false, std::string_view sub_norm = {});

/// The same with gate_proj and up_proj in one: down_proj(up * activation_fn(gate)).
Tensor packed_feed_forward(Forward& forward, const DecoderSizes& sizes, Tensor input, std::string_view class_name);

/// Two linear layers with an activation between them.
struct PlainFeedForward {
  std::string_view class_name = {};
  std::string_view widen = "fc1";
  std::string_view narrow = "fc2";
  std::string_view activation = "activation_fn";
  bool bias = true;
  double dropout = 0.0;
  std::string_view linear_class = "Linear";
  bool split = false;  ///< tensor parallel ranks share it
  std::string_view module = "mlp";
};
Tensor feed_forward(Forward& forward, const DecoderSizes& sizes, Tensor input, const PlainFeedForward& options);

/// The batch's token ids and the attention mask that collators make with them.
Tensor token_ids(Forward& forward);

/// Repeated blocks: `block(x)` again and again, each in a module of its own. `hidden`: a tensor, or the streams that
/// blocks hand on together.
template <typename Hidden, typename Block>
Hidden stack(Forward& forward, std::string_view name, std::string_view class_name, std::int64_t count, Hidden hidden,
             Block block) {
  const InModule list(forward, name, "ModuleList");
  for (std::int64_t index = 0; index < count && !forward.failed(); ++index) {
    {
      const InModule inside(forward, std::to_string(index), class_name);
      hidden = block(hidden, index);
    }
    if constexpr (std::is_same_v<Hidden, Tensor>) hidden = forward.after_block(hidden, index);
  }
  return hidden;
}

/// How a body follows GPT-2's.
struct Gpt2Body {
  std::string_view block_class = {};
  std::string_view feed_forward_class = {};
  std::int64_t positions = 1;
  double embedding_dropout = 0.0;
  double dropout = 0.0;
  std::string_view linear_class = "Linear";
};

/// GPT-2's body, inside its module: embeddings of words and learned positions, blocks with a norm in front of each
/// half, and a last norm. `attention(x)` is a block's attention.
template <typename AttentionOf>
Tensor gpt2_body(Forward& f, const DecoderSizes& sizes, const Gpt2Body& body, AttentionOf attention) {
  const Tensor ids = token_ids(f);
  const Tensor words = f.embedding("wte", ids, sizes.vocabulary, sizes.width);
  const Tensor positions = f.embedding("wpe", f.positions(ids, body.positions), body.positions, sizes.width);
  const Tensor embedded = f.dropout("drop", f.add(words, positions), body.embedding_dropout);
  const auto block = [&](Tensor input, std::int64_t) {
    const Tensor attended = f.add(attention(f.layer_norm("ln_1", input, sizes.width)), input);
    const Tensor again = f.layer_norm("ln_2", attended, sizes.width);
    return f.add(attended, feed_forward(f, sizes, again,
                                        {.class_name = body.feed_forward_class,
                                         .widen = "c_fc",
                                         .narrow = "c_proj",
                                         .activation = "act",
                                         .dropout = body.dropout,
                                         .linear_class = body.linear_class}));
  };
  return f.layer_norm("ln_f", stack(f, "h", body.block_class, sizes.layers, embedded, block), sizes.width);
}

/// What is added on top of the body's hidden states.
struct LanguageHead {
  std::string_view name = "lm_head";
  bool bias = false;
  double softcap = 0.0;                 ///< logits are kept below it by a tanh
  bool scales = false;                  ///< logits are multiplied or divided by a number
  bool upcasts = true;                  ///< the loss is computed of float32 logits
  bool floats = false;                  ///< forward() casts the logits to float32, and returns these
  bool retyped = false;                 ///< the same, but returned in the type of the hidden states
  bool norms_weight = false;            ///< its weight's rows are normed in each pass (Baichuan 2's NormHead)
  bool outlives_loss = false;           ///< the logits are held until backward has run
  std::optional<Tensor> narrowed = {};  ///< what the head reads in place of the hidden states, which keep their name
};

/// The head that the config asks for. For causal_lm the loss too, as ForCausalLMLoss has it: float32 logits, all but
/// the last token's copied, cross entropy. The classifiers of transformers have no bias on decoders.
void decoder_head(Forward& forward, ConfigFields& config, const DecoderSizes& sizes, Head head, Tensor hidden,
                  const LanguageHead& options = {});

/// What stands on an encoder's hidden states: for words and for samples what the class itself has, for tokens and spans
/// one linear layer.
struct EncoderHeads {
  std::int64_t width = 1;
  std::int64_t labels = 2;
  std::function<void(Tensor)> words = {};
  std::function<void(Tensor)> sample = {};
  std::function<Tensor(Tensor)> token = {};  ///< what the classifier of tokens reads; empty: the hidden states
  std::function<Tensor(Tensor)> span = {};   ///< what the layer of answers reads
};
void encoder_head(Forward& forward, Head head, Tensor hidden, const EncoderHeads& heads);

/// The names of a language model's body and of its embedding, and what is on top of it.
struct DecoderBody {
  std::string_view module = "model";
  std::string class_name = {};
  std::string_view embedding = "embed_tokens";
  LanguageHead head = {};
};

/// A language model as Llama's: embedding, blocks and a last norm in its body's module, then the head.
/// `rest(ids, embedded)` makes what the head reads.
template <typename Rest>
void decoder_model(Forward& f, ConfigFields& config, const DecoderSizes& sizes, Head head, const DecoderBody& body,
                   Rest rest) {
  Tensor hidden = 0;
  {
    const InModule inside(f, body.module, body.class_name);
    const Tensor ids = token_ids(f);
    const Tensor embedded = f.embedding(body.embedding, ids, sizes.vocabulary, sizes.width);
    hidden = rest(ids, embedded);
  }
  decoder_head(f, config, sizes, head, hidden, body.head);
}

/// The additive mask [N, 1, 1, S] of an attention mask [N, S].
Tensor row_mask(Forward& forward, Tensor attention_mask);

/// How many labels a classifier has: num_labels, or as many as id2label names; 2 if neither is there.
[[nodiscard]] std::int64_t labels_of(ConfigFields& config);

/// How many numbers describe the distribution that a config of a time series model names. An unknown one is a fault.
/// Source: transformers 5.17, time_series_utils.py.
[[nodiscard]] std::int64_t distribution_numbers(ConfigFields& config);
/// ParameterProjection: each of these numbers by a linear layer of its own.
[[nodiscard]] std::vector<Tensor> distribution_head(Forward& forward, std::string_view name, Tensor input,
                                                    std::int64_t in, std::int64_t out, std::int64_t numbers);
/// The loss of a distribution, counted as a mean of its numbers' squares.
void distribution_loss(Forward& forward, const std::vector<Tensor>& numbers);
/// A series of more values than the sizes of its tensors are checked for is a fault.
void check_length(ConfigFields& config, std::int64_t length, std::string_view field);

/// Cross entropy of logits [N, S, V] with a label a token, as forward() computes it where no token is left out.
/// `hidden`: what forward() still holds then, the body's output.
void token_loss(Forward& forward, Tensor logits, std::optional<Tensor> hidden = {});
/// The same as Megatron computes it of float32 logits, in their memory. Returns the loss.
Tensor vocabulary_parallel_loss(Forward& forward, Tensor logits);

}  // namespace gpumem::architectures
