// XLNet: relative attention, whose scores are of content with content, of content with distances and of content with
// whether two tokens are of one segment. Tensors have the tokens on their first axis, so that products read heads where
// they lie. Without permutations and memories of earlier batches, as it is fine-tuned.
// Source: transformers 4.48, models/xlnet/modeling_xlnet.py; arXiv:1906.08237.
#pragma once

#include <algorithm>
#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace xlnet {

struct Model {
  std::int64_t vocabulary = 1;
  std::int64_t width = 1;
  std::int64_t layers = 1;
  std::int64_t heads = 1;
  std::int64_t head_width = 1;
  std::int64_t inner = 1;
  std::int64_t labels = 2;
  std::string_view activation = "gelu";
  double dropout = 0.1;
  double last_dropout = 0.1;
  std::string_view summary = "last";
  std::string_view summary_activation = "tanh";
  bool summary_projects = true;
  bool tied = true;
  bool remembers = false;  ///< returns what goes into each layer
  bool beams = false;      ///< XLNetForQuestionAnswering: the end of an answer is looked for from its start
};

inline void check(ConfigFields& config, const Model& model) {
  if (model.heads * model.head_width != model.width) config.fail("is not d_model / n_head", "d_head");
  if (config.text({"attn_type"}, "bi") != "bi")
    config.fail("is not known: XLNet reads in both directions", "attn_type");
  constexpr std::array<std::string_view, 3> kSummaries = {"last", "first", "mean"};
  if (std::find(kSummaries.begin(), kSummaries.end(), model.summary) == kSummaries.end())
    config.fail("is not known: one of last, first, mean", "summary_type");
}

inline Model read(ConfigFields& config) {
  Model model;
  model.vocabulary = config.size({"vocab_size"});
  model.width = config.size({"d_model", "hidden_size"});
  model.layers = config.layers({"n_layer", "num_hidden_layers"});
  model.heads = config.size({"n_head", "num_attention_heads"});
  model.head_width = config.size_or({"d_head"}, std::max<std::int64_t>(model.width / model.heads, 1));
  model.inner = config.size({"d_inner"});
  model.labels = labels_of(config);
  model.activation = config.text({"ff_activation"}, "gelu");
  model.dropout = config.number({"dropout"}, 0.1);
  model.last_dropout = config.number({"summary_last_dropout"}, 0.1);
  model.summary = config.text({"summary_type"}, "last");
  model.summary_activation = config.text({"summary_activation"}, "tanh");
  model.summary_projects = config.flag("summary_use_proj", true);
  model.tied = config.flag("tie_word_embeddings", true);
  model.remembers = config.flag("use_mems_train", false);
  model.beams = config.class_name() == "XLNetForQuestionAnswering";
  check(config, model);
  config.ignore({"mem_len", "reuse_len", "use_mems_eval", "bi_data", "clamp_len", "same_length", "untie_r",
                 "start_n_top", "end_n_top", "layer_norm_eps"});
  return model;
}

/// What all layers read.
struct Shared {
  Tensor distances = 0;  ///< the table of how far tokens are from each other, [2 S, N, width]
  Tensor mask = 0;       ///< [N, 1, S, S]
  Tensor segments = 0;   ///< whether two tokens are of one segment, [S, S, N, 2]
};

/// einsum("ibh,hnd->ibnd"): [R, N, width] -> [R, N, heads, d].
inline Tensor heads_of(Forward& f, const Model& model, std::string_view name, Tensor input) {
  const Tensor weight = f.parameter(name, {model.width, model.heads, model.head_width});
  const Tensor rows = f.call("matmul", {input, f.flatten(weight, 1, 2)});
  return f.unflatten(rows, 2, {model.heads, model.head_width});
}

/// einsum("ibnd,jbnd->bnij") of queries plus a bias with keys, [N, heads, S, J].
inline Tensor products(Forward& f, Tensor query, Tensor bias, Tensor key) {
  const Tensor rows = f.permute(f.add(query, bias), {1, 2, 0, 3});
  return f.call("matmul", {rows, f.permute(key, {1, 2, 3, 0})});
}

/// What the segments add: einsum("ibnd,snd->ibns") of queries plus a bias, then einsum("ijbs,ibns->bnij"). The table of
/// segments is copied in another order by each layer.
inline Tensor segment_scores(Forward& f, Tensor query, Tensor bias, Tensor embedding, const Shared& shared) {
  const Tensor rows = f.flatten(f.permute(f.add(query, bias), {2, 0, 1, 3}), 1, 2);  // [heads, S N, d]
  const Tensor each = f.call("matmul", {rows, f.permute(embedding, {1, 2, 0})});     // [heads, S N, 2]
  const Tensor table = f.flatten(f.permute(f.as_type_of(shared.segments, each), {0, 2, 1, 3}), 0, 1);  // [S N, S, 2]
  const Tensor made = f.call("matmul", {table, f.permute(each, {1, 2, 0})});  // [S N, S, heads]
  const Tensor parted = f.call("unflatten", {made, shared.segments}, {{"dim", std::int64_t{0}}, {"sizes", Sizes{-1}}});
  return f.permute(parted, {1, 3, 0, 2});
}

struct Scored {
  Tensor query = 0;
  Tensor key = 0;
  Tensor value = 0;
  Tensor places = 0;  ///< keys of the distances
};

/// rel_attn_core: [S, N, heads, d], in the memory's order [N, heads, S, d].
inline Tensor core(Forward& f, const Model& model, const Scored& of, const Shared& shared) {
  const Sizes bias = {model.heads, model.head_width};
  const Tensor of_places = f.parameter("r_r_bias", bias);
  const Tensor of_segments = f.parameter("r_s_bias", bias);
  const Tensor of_content = f.parameter("r_w_bias", bias);
  const Tensor embedding = f.parameter("seg_embed", {2, model.heads, model.head_width});
  const Tensor content = products(f, of.query, of_content, of.key);
  const Tensor place = f.call("relative_shift", {products(f, of.query, of_places, of.places)});
  const Tensor segment = segment_scores(f, of.query, of_segments, embedding, shared);
  const Tensor scaled = f.scale(f.add(f.add(content, place), segment));
  const Tensor mask = f.scale(f.as_type_of(shared.mask, content));  // autocast lowers what an einsum reads
  const Tensor scores = f.call("sub", {scaled, mask});
  const Tensor weights = f.dropout("dropout", f.call("softmax", {scores}), model.dropout);
  const Tensor mixed = f.call("matmul", {weights, f.permute(of.value, {1, 2, 0, 3})});
  return f.leave_function(f.permute(mixed, {2, 0, 1, 3}), {content, place, segment, scores});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Shared& shared) {
  const InModule inside(f, "rel_attn", "XLNetRelativeAttention");
  Scored of;
  of.query = heads_of(f, model, "q", input);
  of.key = heads_of(f, model, "k", input);
  of.value = heads_of(f, model, "v", input);
  of.places = heads_of(f, model, "r", f.as_type_of(shared.distances, input));
  const Tensor mixed = core(f, model, of, shared);
  const Tensor weight = f.parameter("o", {model.width, model.heads, model.head_width});
  const Tensor joined = f.permute(f.flatten(weight, 1, 2), {1, 0});
  const Tensor output = f.dropout("dropout", f.call("matmul", {f.flatten(mixed, 2, 3), joined}), model.dropout);
  const Tensor normed = f.layer_norm("layer_norm", f.add(output, input), model.width);
  return f.leave_function(normed, {of.query, mixed});
}

inline Tensor feed_forward(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "ff", "XLNetFeedForward");
  const Tensor wide = f.linear("layer_1", input, model.width, model.inner);
  const Tensor active =
      f.dropout("dropout", f.activation("activation_function", wide, model.activation), model.dropout);
  const Tensor narrow = f.dropout("dropout", f.linear("layer_2", active, model.inner, model.width), model.dropout);
  return f.layer_norm("layer_norm", f.add(narrow, input), model.width);
}

/// The table of distances is made on the CPU, in float32 whatever the model's type.
inline Shared shared_tensors(Forward& f, const Model& model, Tensor ids) {
  Shared shared;
  shared.mask = f.call("causal_mask", {ids}, {{"padded", true}});
  shared.segments = f.call("segment_pairs", {ids});
  const Tensor table = f.to(f.call("distance_table", {ids}, {{"width", model.width}}), "float32");
  shared.distances = f.dropout("dropout", table, model.dropout);
  return shared;
}

inline Tensor body(Forward& f, const Model& model, std::string_view name) {
  const InModule inside(f, name, "XLNetModel");
  const Tensor ids = f.token_input("input_ids");
  (void)f.token_input("token_type_ids");
  (void)f.token_input("attention_mask");
  (void)f.parameter("mask_emb", {1, 1, model.width});  // only of predicted tokens, in pre-training
  const Tensor columns = f.contiguous(f.permute(ids, {1, 0}));
  const Tensor words = f.embedding("word_embedding", columns, model.vocabulary, model.width);
  const Tensor embedded = f.dropout("dropout", words, model.dropout);
  const Shared shared = shared_tensors(f, model, ids);
  const Tensor hidden = stack(f, "layer", "XLNetLayer", model.layers, embedded, [&](Tensor x, std::int64_t) {
    if (model.remembers) f.hand_out(x);
    return feed_forward(f, model, attention(f, model, x, shared));
  });
  const Tensor rows = f.contiguous(f.permute(f.dropout("dropout", hidden, model.dropout), {1, 0, 2}));
  return f.leave_function(rows, {words, hidden, shared.mask, shared.segments, shared.distances});
}

/// XLNetSequenceSummary: one token of a sample, or the mean of all.
inline Tensor summarised(Forward& f, const Model& model, Tensor hidden) {
  const InModule inside(f, "sequence_summary", "XLNetSequenceSummary");
  Tensor one = model.summary == "mean" ? f.call("mean", {hidden}, {{"dim", std::int64_t{1}}})
                                       : f.select(hidden, 1, model.summary == "first" ? 0 : -1);
  if (model.summary_projects) one = f.linear("summary", one, model.width, model.width);
  if (model.summary_activation == "tanh") one = f.activation("activation", one, "tanh");
  return f.dropout("last_dropout", one, model.last_dropout);
}

/// The rows, each next to the one where the answer starts.
inline Tensor beside_start(Forward& f, Tensor hidden) {
  const Tensor start = f.call("unsqueeze", {f.select(hidden, 1, 0)}, {{"dim", std::int64_t{1}}});
  return f.concatenate({f.call("expand", {start, hidden}), hidden}, 2);
}

/// PoolerStartLogits, PoolerEndLogits and PoolerAnswerClass of modeling_utils.py.
inline void search_answers(Forward& f, const Model& model, Tensor hidden) {
  const std::int64_t width = model.width;
  const auto logits = [&](Tensor from, std::string_view name, bool bias) {
    return f.call("squeeze", {f.linear(name, from, width, 1, {.bias = bias, .returned = true})},
                  {{"dim", std::int64_t{-1}}});
  };
  {
    const InModule inside(f, "start_logits", "PoolerStartLogits");
    (void)logits(hidden, "dense", true);
  }
  {
    const InModule inside(f, "end_logits", "PoolerEndLogits");
    const Tensor dense = f.linear("dense_0", beside_start(f, hidden), 2 * width, width);
    const Tensor normed = f.layer_norm("LayerNorm", f.activation("activation", dense, "tanh"), width);
    (void)logits(normed, "dense_1", true);
  }
  const InModule inside(f, "answer_class", "PoolerAnswerClass");
  const Tensor both = f.concatenate({f.select(hidden, 1, 0), f.select(hidden, 1, -1)}, 1);
  const Tensor active = f.activation("activation", f.linear("dense_0", both, 2 * width, width), "tanh");
  (void)logits(active, "dense_1", false);
}

inline void masked_lm(Forward& f, const Model& model, Tensor hidden) {
  const Linear tied = {.tied = model.tied, .returned = true};
  token_loss(f, f.linear("lm_loss", hidden, model.width, model.vocabulary, tied));
}

inline void classifier(Forward& f, const Model& model, Tensor hidden) {
  (void)f.linear("logits_proj", summarised(f, model, hidden), model.width, model.labels);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const Tensor hidden = body(f, model, "transformer");
  if (head == Head::question_answering && model.beams) return search_answers(f, model, hidden);
  encoder_head(f, head, hidden,
               {.width = model.width,
                .labels = model.labels,
                .words = [&](Tensor x) { masked_lm(f, model, x); },
                .sample = [&](Tensor x) { classifier(f, model, x); }});
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"XLNet", "xlnet", "transformer", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{768, 12}, {1024, 16}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("word_embedding", "layer");
  t.size("d_inner", "layer.0.ff.layer_1", "out_features");
  t.dropout("dropout", "dropout");
  t.there("summary_use_proj", "/sequence_summary.summary");
  t.labels("/logits_proj");
  t.heads_of_width({.published = kPublished}, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "xlnet", .model_types = names<"xlnet">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace xlnet

// Diffusion language models: LLaDA, whose code is OLMo 1's with Llama's block, and Dream, Qwen2 with attention to all
// tokens. Neither class computes a loss; their trainers take the cross entropy of each token with its own label.
// Source: modeling_llada.py of GSAI-ML/LLaDA-8B-Instruct; modeling_dream.py of Dream-org/Dream-v0-Instruct-7B.

namespace diffusion_language {

struct Model {
  bool dream = false;
  DecoderSizes sizes;
  bool input_bias = false;
  bool bias = false;
  double dropout = 0.0;
};

/// Fields under which LLaDA's class has parts that no published model has.
inline void check_llada(ConfigFields& config) {
  for (const std::string_view name : {"alibi", "attention_layer_norm", "block_group", "scale_logits"}) {
    if (config.flag(name, false)) config.fail("is false in this model", name);
  }
  if (!config.flag("rope", true)) config.fail("is true in this model", "rope");
  if (config.text({"block_type"}, "llama") != "llama") config.fail("is llama in this model", "block_type");
  if (config.text({"layer_norm_type"}, "rms") != "rms") config.fail("is rms in this model", "layer_norm_type");
  config.ignore({"alibi_bias_max", "input_emb_norm", "mlp_ratio", "max_sequence_length", "multi_query_attention",
                 "bias_for_layer_norm", "init_device", "attention_layer_norm_with_affine", "layer_norm_with_affine",
                 "block_group_size", "rope_full_precision", "flash_attention", "precision", "init_fn", "init_std",
                 "init_cutoff_factor", "mask_token_id"});
}

inline Model read(ConfigFields& config) {
  Model m;
  m.dream = config.text({"model_type"}, "llada") == "Dream";
  if (m.dream) {
    m.sizes = decoder_sizes(config);
    m.input_bias = true;
    config.ignore({"sliding_window", "max_window_layers", "use_sliding_window", "mask_token_id"});
    return m;
  }
  check_llada(config);
  DecoderSizes& s = m.sizes;
  const std::int64_t words = config.size({"vocab_size"});
  s.vocabulary = config.size_or({"embedding_size"}, words);
  s.width = config.size({"d_model"});
  s.layers = config.layers({"n_layers"});
  s.heads = config.size({"n_heads"});
  s.kv_heads = config.size_or({"n_kv_heads"}, s.heads);
  s.head_width = std::max<std::int64_t>(s.width / s.heads, 1);
  s.inner = config.size({"mlp_hidden_size"});
  s.activation = config.text({"activation_type"}, "silu");
  s.tied = config.flag("weight_tying", false);
  s.attention_dropout = config.number({"attention_dropout"}, 0.0);
  m.dropout = config.number({"residual_dropout"}, 0.0);
  m.bias = config.flag("include_bias", false);
  m.input_bias = m.bias || config.flag("include_qkv_bias", false);
  config.ignore({"embedding_dropout"});
  if (s.width % s.heads != 0) config.fail("does not divide d_model", "n_heads");
  if (s.heads % s.kv_heads != 0) config.fail("does not divide n_heads", "n_kv_heads");
  return m;
}

inline Heads heads_of(Forward& f, const Model& m, Tensor input) {
  return project_heads(f, m.sizes, input, {.bias = m.input_bias, .split = Split::columns});
}

/// LLaDA's block, which has no modules within: heads are turned in float32.
inline Tensor llada_block(Forward& f, const Model& m, Tensor input, const Rotary& rotary) {
  const DecoderSizes& s = m.sizes;
  const Tensor normed = f.rms_norm("attn_norm", input, s.width, "RMSLayerNorm");
  const Heads heads = heads_of(f, m, normed);
  const auto turned = [&](Tensor of) { return f.as_type_of(rotate(f, f.to(of, "float32"), rotary, s.head_width), of); };
  const Tensor query = turned(heads.query);
  const Tensor key = turned(heads.key);
  const Tensor mixed =
      attend(f, {query, key, heads.value},
             {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout, .copies = false, .causal = false});
  const Tensor out = f.linear("attn_out", mixed, s.width, s.width, {.bias = m.bias, .split = Split::rows});
  const Tensor made = f.leave_function(out, {query, key});
  const Tensor attended = f.add(input, f.dropout("dropout", made, m.dropout));
  const Tensor again = f.rms_norm("ff_norm", attended, s.width, "RMSLayerNorm");
  const Linear wide = {.bias = m.bias, .split = Split::columns};
  const Tensor gate = f.linear("ff_proj", again, s.width, s.inner, wide);
  const Tensor up = f.linear("up_proj", again, s.width, s.inner, wide);
  const Tensor gated = f.multiply(f.activation("act", gate, s.activation), up);
  const Tensor narrow = f.linear("ff_out", gated, s.inner, s.width, {.bias = m.bias, .split = Split::rows});
  return f.leave_function(f.add(attended, f.dropout("dropout", narrow, m.dropout)),
                          {normed, heads.query, heads.key, heads.value, made, up});
}

inline Tensor dream_block(Forward& f, const Model& m, Tensor input, const Rotary& rotary) {
  const DecoderSizes& s = m.sizes;
  const Tensor normed = f.rms_norm("input_layernorm", input, s.width, "DreamRMSNorm");
  Tensor mixed = 0;
  {
    const InModule inside(f, "self_attn", "DreamSdpaAttention");
    const Heads heads = heads_of(f, m, normed);
    const auto [query, key] = turn_heads(f, heads.query, heads.key, rotary, s.head_width, Turning::halves);
    const Tensor attended = attend_cached(f, s, {query, key, heads.value}, {.copies = false, .causal = false});
    const Linear rows = {.bias = false, .split = Split::rows};
    mixed = f.leave_function(f.linear("o_proj", attended, s.heads * s.head_width, s.width, rows),
                             {query, key, heads.value, normed});
  }
  const Tensor attended = f.add(input, mixed);
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, s.width, "DreamRMSNorm");
  return f.add(attended, gated_feed_forward(f, s, again, "DreamMLP"));
}

inline Tensor llada(Forward& f, const Model& m) {
  const DecoderSizes& s = m.sizes;
  const InModule model(f, "model", "LLaDAModel");
  const InModule inside(f, "transformer", "ModuleDict");
  Tensor hidden = f.embedding("wte", token_ids(f), s.vocabulary, s.width);
  const auto table = [&] {
    return f.call("rotary_table", {hidden}, {{"width", s.head_width}, {"dtype", std::string("float32")}});
  };
  const Tensor cosines = table();
  const Rotary rotary = {cosines, table(), s.head_width, false};
  hidden = stack(f, "blocks", "LLaDALlamaBlock", s.layers, hidden,
                 [&](Tensor x, std::int64_t) { return llada_block(f, m, x, rotary); });
  hidden = f.rms_norm("ln_f", hidden, s.width, "RMSLayerNorm");
  return f.linear("ff_out", hidden, s.width, s.vocabulary, {.bias = m.bias, .tied = s.tied, .returned = true});
}

inline Tensor dream(Forward& f, const Model& m) {
  const DecoderSizes& s = m.sizes;
  Tensor hidden = 0;
  {
    const InModule inside(f, "model", "DreamBaseModel");
    const Tensor ids = token_ids(f);
    hidden = f.embedding("embed_tokens", ids, s.vocabulary, s.width);
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", "DreamDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return dream_block(f, m, x, rotary); });
    hidden = f.rms_norm("norm", hidden, s.width, "DreamRMSNorm");
  }
  return f.linear("lm_head", hidden, s.width, s.vocabulary, {.bias = false, .tied = s.tied, .returned = true});
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  f.remark("the loss is that of each token with its own label, as trainers of diffusion language models take it");
  token_loss(f, model.dream ? dream(f, model) : llada(f, model));
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"LLaDA", "llada"}, {"Dream", "Dream"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  if (t.class_name().starts_with("Dream")) {
    const std::string layer = "model.layers.0.";
    t.body("model.embed_tokens", "model.layers");
    t.size("intermediate_size", layer + "mlp.gate_proj", "out_features");
    t.heads({.query = layer + "self_attn.q_proj", .key = layer + "self_attn.k_proj", .usual_width = 128});
    return;
  }
  const std::string body = "model.transformer.";
  const std::string block = body + "blocks.0.";
  t.size("vocab_size", body + "wte", "num_embeddings");
  t.size("d_model", body + "wte", "embedding_dim");
  t.count("n_layers", body + "blocks");
  t.size("mlp_hidden_size", block + "ff_proj", "out_features");
  t.flag("include_bias", block + "attn_out");
  t.flag("include_qkv_bias", block + "q_proj");
  t.heads({.query = block + "q_proj",
           .key = block + "k_proj",
           .usual_width = 128,
           .heads_field = "n_heads",
           .kv_heads_field = "n_kv_heads"});
}

inline constexpr Architecture kArchitecture = {.name = "diffusion_language",
                                               .model_types = names<"llada", "Dream">,
                                               .usual_head = Head::masked_lm,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace diffusion_language

}  // namespace gpumem::architectures
