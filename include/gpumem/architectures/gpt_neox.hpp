// GPT-NeoX, Pythia, and StableLM's first models: attention and feed-forward layer side by side, each after its
// own norm. Source: transformers 4.48, models/gpt_neox/modeling_gpt_neox.py.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace gpt_neox {

struct Model {
  DecoderSizes sizes;
  std::int64_t rotary_width = 1;
  double dropout = 0.0;
  bool parallel = true;
  bool bias = true;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu"});
  model.rotary_width = rotary_width(config, model.sizes, {"rotary_pct", "partial_rotary_factor"}, 0.25);
  model.dropout = config.number({"hidden_dropout"}, 0.0);
  model.parallel = config.flag("use_parallel_residual", true);
  model.bias = config.flag("attention_bias", true);
  config.ignore({"classifier_dropout"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "attention", "GPTNeoXAttention");
  const DecoderSizes& s = model.sizes;
  const Tensor packed = f.linear("query_key_value", input, s.width, 3 * s.width, {.bias = model.bias});
  const Tensor each = split_heads(f, packed, 3 * s.head_width);
  const std::vector<Tensor> parts = f.split(each, 3, Sizes(3, s.head_width));
  Heads turned = {rotate(f, parts[0], rotary, s.head_width), rotate(f, parts[1], rotary, s.head_width), parts[2]};
  turned.value = f.cache(turned.key, turned.value);
  const Tensor attended = attend(f, turned, {.dropout = s.attention_dropout});
  return f.linear("dense", attended, s.width, s.width, {.bias = model.bias});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const auto fed = [&](Tensor x) {
    const Tensor normed = f.layer_norm("post_attention_layernorm", x, width);
    const Tensor made = feed_forward(
        f, model.sizes, normed,
        {.class_name = "GPTNeoXMLP", .widen = "dense_h_to_4h", .narrow = "dense_4h_to_h", .activation = "act"});
    return f.dropout("post_mlp_dropout", made, model.dropout);
  };
  const Tensor mixed = attention(f, model, f.layer_norm("input_layernorm", input, width), rotary);
  const Tensor dropped = f.dropout("post_attention_dropout", mixed, model.dropout);
  if (model.parallel) return f.add(f.add(fed(input), dropped), input);
  const Tensor attended = f.add(dropped, input);
  return f.add(fed(attended), attended);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  // Transformers 5 calls the head as other models do.
  const LanguageHead on_top = {.name = f.prints("lm_head") ? "lm_head" : "embed_out", .upcasts = false};
  const DecoderBody body = {
      .module = "gpt_neox", .class_name = "GPTNeoXModel", .embedding = "embed_in", .head = on_top};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    hidden = f.dropout("emb_dropout", hidden, model.dropout);
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    hidden = stack(f, "layers", "GPTNeoXLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.layer_norm("final_layer_norm", hidden, s.width);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GPTNeoX", "gpt_neox", "gpt_neox"}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{128, 4},
                                                                  {256, 8},
                                                                  {512, 8},
                                                                  {768, 12},
                                                                  {1024, 16},
                                                                  {2048, 8, 16},
                                                                  {2048, 16},
                                                                  {2560, 32},
                                                                  {4096, 32},
                                                                  {5120, 40},
                                                                  {6144, 64}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("embed_in", "layers");
  t.size("intermediate_size", "layers.0.mlp.dense_h_to_4h", "out_features");
  t.flag("attention_bias", "layers.0.attention.query_key_value");
  t.labels();
  t.heads_of_width({.published = kPublished}, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "gpt_neox", .model_types = names<"gpt_neox">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace gpt_neox

// GPT-J: attention and feed-forward layer side by side after one norm, rotary positions on part of each head,
// attention written out in float32. Source: transformers 4.48, models/gptj/modeling_gptj.py.

namespace gptj {

struct Model {
  DecoderSizes sizes;
  std::int64_t positions = 1;
  std::int64_t rotary_width = 1;
  double embedding_dropout = 0.0;
  double dropout = 0.0;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_new", .inner_factor = 4});
  model.positions = config.size({"n_positions", "max_position_embeddings"});
  model.rotary_width = std::min(config.size_or({"rotary_dim"}, 64), model.sizes.head_width);
  model.embedding_dropout = config.number({"embd_pdrop"}, 0.0);
  model.dropout = config.number({"resid_pdrop"}, 0.0);
  config.ignore({"rotary", "scale_attn_weights", "summary_type", "summary_use_proj", "summary_activation",
                 "summary_proj_to_labels", "summary_first_dropout"});
  return model;
}

/// Queries and keys are turned as [N, S, heads, d], before the heads come first.
inline Tensor turned(Forward& f, const Model& model, Tensor flat, const Rotary& rotary) {
  const Tensor parted = f.unflatten(flat, 2, {-1, model.sizes.head_width});
  return f.permute(rotate(f, parted, rotary, model.sizes.head_width), {0, 2, 1, 3});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "attn", "GPTJAttention");
  const DecoderSizes& s = model.sizes;
  f.constant("embed_positions", {model.positions, model.rotary_width}, "float32");
  const auto projected = [&](std::string_view name) {
    return f.linear(name, input, s.width, s.width, {.bias = false});
  };
  const Tensor query = projected("q_proj");
  const Tensor key = projected("k_proj");
  const Tensor value = split_heads(f, projected("v_proj"), s.head_width);
  const Tensor turned_key = turned(f, model, key, rotary);
  const Tensor turned_query = turned(f, model, query, rotary);
  f.cache(turned_key);
  f.cache(value);
  const Tensor wide_key = f.to(turned_key, "float32");
  const Tensor wide_query = f.to(turned_query, "float32");
  const Tensor raw = f.call("matmul", {wide_query, f.permute(wide_key, {0, 1, 3, 2})});
  const Tensor scores = f.scale(f.call("where", {raw}, {{"mask_stands", true}}));
  const Tensor weights = f.as_type_of(f.call("softmax", {scores}), value);
  const Tensor dropped = f.dropout("attn_dropout", weights, s.attention_dropout);
  const Tensor mixed = f.leave_function(f.call("matmul", {dropped, value}), {wide_query, wide_key});
  const Tensor attended = merge_heads(f, mixed);
  const Tensor output = f.linear("out_proj", attended, s.width, s.width, {.bias = false});
  return f.dropout("resid_dropout", output, model.dropout);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const Tensor normed = f.layer_norm("ln_1", input, model.sizes.width);
  const Tensor mixed = attention(f, model, normed, rotary);
  const Tensor fed = feed_forward(
      f, model.sizes, normed,
      {.class_name = "GPTJMLP", .widen = "fc_in", .narrow = "fc_out", .activation = "act", .dropout = model.dropout});
  return f.add(f.add(mixed, fed), input);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  const DecoderBody body = {
      .module = "transformer", .class_name = "GPTJModel", .embedding = "wte", .head = {.bias = true, .floats = true}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    hidden = f.dropout("drop", hidden, model.embedding_dropout);
    Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    // The tables are float32 whatever the model's type, and so is what they turn.
    rotary.cosines = f.to(f.permute(rotary.cosines, {0, 2, 1, 3}), "float32");
    rotary.sines = f.to(f.permute(rotary.sines, {0, 2, 1, 3}), "float32");
    hidden = stack(f, "h", "GPTJBlock", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.layer_norm("ln_f", hidden, s.width);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"GPTJ", "gptj", "transformer"}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{4096, 16}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("wte", "h");
  t.set("n_positions", 2048);  // of the table of positions, which is no module
  t.size("n_inner", "h.0.mlp.fc_in", "out_features");
  t.dropout("attn_pdrop", "h.0.attn.attn_dropout");
  t.labels();
  t.heads_of_width({.published = kPublished, .usual_width = 256}, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "gptj", .model_types = names<"gptj">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace gptj

// DBRX: queries, keys and values of one layer, whose clamped output is split; norms without biases; each of the
// experts' three matrices is a part of one tensor. Source: transformers 4.48, models/dbrx/modeling_dbrx.py; those
// of 5, from modular_dbrx.py, read emb_pdrop and drop no embedding.

namespace dbrx {

struct Model {
  DecoderSizes sizes;
  Mixture mixture;
  bool clips = false;
  bool jitters = false;  ///< what the router reads, by a number an element
  double embedding_dropout = 0.0;
  double dropout = 0.0;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.inner_factor = 1});
  DecoderSizes& s = model.sizes;
  model.embedding_dropout = config.number({"emb_pdrop"}, 0.0);
  model.dropout = config.number({"resid_pdrop"}, 0.0);
  ConfigFields* const attention = config.part("attn_config", "{}");
  s.kv_heads = attention == nullptr ? 1 : attention->size_or({"kv_n_heads"}, 1);
  if (s.heads % s.kv_heads != 0) config.fail("does not make whole groups of heads", "attn_config");
  if (attention != nullptr) {
    s.attention_dropout = attention->number({"attn_pdrop"}, 0.0);
    model.clips = attention->number({"clip_qkv"}, 0.0) > 0.0;
    attention->ignore({"rope_theta", "model_type"});
  }
  model.mixture = {.experts = 4, .per_token = 1, .inner = 3584};
  if (ConfigFields* const fed = config.part("ffn_config", "{}"); fed != nullptr) {
    model.mixture = {.experts = fed->size_or({"moe_num_experts"}, 4),
                     .per_token = fed->size_or({"moe_top_k"}, 1),
                     .inner = fed->size_or({"ffn_hidden_size"}, 3584)};
    model.jitters = fed->has("moe_jitter_eps");
    if (ConfigFields* const act = fed->part("ffn_act_fn"); act != nullptr) s.activation = act->text({"name"}, "silu");
    fed->ignore({"moe_jitter_eps", "moe_loss_weight", "moe_normalize_expert_weights", "hidden_size", "model_type",
                 "uniform_expert_assignment"});
  }
  check_mixture(config, model.mixture, s.layers, "ffn_config", "ffn_config");
  if (model.mixture.inner > ConfigFields::kLargestSize / model.mixture.experts)
    config.fail("makes the experts too wide", "ffn_config");
  config.ignore({"max_seq_len", "router_aux_loss_coef"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "attn", "DbrxAttention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t keys = s.kv_heads * s.head_width;
  Tensor packed = f.linear("Wqkv", input, s.width, s.width + 2 * keys, {.bias = false});
  if (model.clips) packed = f.call("hardtanh", {packed}, {{"inplace", false}});
  const std::vector<Tensor> parts = f.split(packed, 2, {s.width, keys, keys});
  const auto heads = [&](Tensor of) { return split_heads(f, of, s.head_width); };
  const Tensor query = rotate(f, heads(parts[0]), rotary, s.head_width);
  const Tensor key = rotate(f, heads(parts[1]), rotary, s.head_width);
  const Tensor attended = attend_cached(f, s, {query, key, heads(parts[2])});
  return f.linear("out_proj", attended, s.width, s.width, {.bias = false});
}

/// DbrxExperts: a loop over the experts, each of which multiplies with its parts of the three tensors.
inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "ffn", "DbrxFFN");
  const Mixture& m = model.mixture;
  const std::int64_t width = model.sizes.width;
  Tensor weights = 0;
  {
    const InModule router(f, "router", "DbrxRouter");
    const Tensor read = model.jitters ? f.multiply(input, f.call("token_zeros", {input})) : input;
    const Tensor scores = f.linear("layer", read, width, m.experts, {.bias = false});
    const Tensor all = f.call("softmax", {f.to(scores, "float32")});
    weights = f.as_type_of(f.scale(f.slice(all, 2, 0, m.per_token)), input);
  }
  const InModule list(f, "experts", "DbrxExperts");
  const InModule one(f, "mlp", "DbrxExpertGLU");
  const Sizes shape = {m.experts * m.inner, width};
  const Tensor gates = f.parameter("w1", shape);
  const Tensor values = f.parameter("v1", shape);
  const Tensor down = f.parameter("w2", shape);
  const auto share = [&](Tensor of) {
    return f.call("gather_tokens", {of}, {{"experts", m.experts}, {"per_token", m.per_token}});
  };
  Tensor sum = f.call("token_zeros", {input});
  for (std::int64_t index = 0; index < m.experts && !f.failed(); ++index) {
    const auto part = [&](Tensor of) { return f.slice(of, 0, index * m.inner, m.inner); };
    const auto across = [&](Tensor of) { return f.permute(part(of), {1, 0}); };
    const Tensor rows = share(input);
    const Tensor gate = f.call("matmul", {rows, across(gates)});
    const Tensor value = f.call("matmul", {rows, across(values)});
    const Tensor active = f.multiply(f.activation("activation_fn", gate, model.sizes.activation), value);
    const Tensor made = f.multiply(f.call("matmul", {active, part(down)}), share(f.slice(weights, 2, 0, 1)));
    sum = f.call("scatter_tokens", {sum, made});
  }
  return sum;
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const auto dropped = [&](Tensor of) {
    return model.dropout > 0.0 ? f.call("dropout", {of}, {{"p", model.dropout}}) : of;
  };
  Tensor attended = 0;
  Tensor again = 0;
  {
    const InModule inside(f, "norm_attn_norm", "DbrxNormAttentionNorm");
    const Tensor normed = f.as_type_of(f.layer_norm("norm_1", input, width, false), input);
    attended = f.add(dropped(attention(f, model, normed, rotary)), input);
    again = f.as_type_of(f.layer_norm("norm_2", attended, width, false), attended);
  }
  return f.add(attended, dropped(mixture(f, model, again)));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  warn_of_routing(f);
  const DecoderBody body = {.module = "transformer", .class_name = "DbrxModel", .embedding = "wte"};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    if (model.embedding_dropout > 0.0)
      hidden = f.call("dropout", {hidden}, {{"p", model.embedding_dropout}}, When::before_5_0);
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "blocks", "DbrxBlock", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.layer_norm("norm_f", hidden, s.width, false);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Dbrx", "dbrx", "transformer"}});

/// What print(model) shows. Experts are three bare parameters: as the published model has them.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kHead = 128;
  const std::int64_t width = t.body("wte", "blocks");
  const std::string block = "blocks.0.";
  const std::int64_t all = t.value(block + "norm_attn_norm.attn.Wqkv", "out_features").value_or(0);
  const std::int64_t experts = t.value(block + "ffn.router.layer", "out_features").value_or(0);
  if (width < kHead || all <= width || experts == 0) return;
  t.set("num_attention_heads", width / kHead);
  t.open("attn_config");
  t.set("kv_n_heads", std::max<std::int64_t>((all - width) / (2 * kHead), 1));
  t.set_text("clip_qkv", "8.0");
  t.close();
  t.open("ffn_config");
  t.set("moe_num_experts", experts);
  t.set("moe_top_k", std::min<std::int64_t>(experts, 4));
  const std::int64_t held = t.held(block + "ffn.experts.mlp");
  t.set("ffn_hidden_size", held > 0 ? std::max<std::int64_t>(held / (3 * experts * width), 1) : 10752);
  t.close();
  t.assume("heads of width 128, 4 experts a token and their width, as DBRX has");
}

inline constexpr Architecture kArchitecture = {
    .name = "dbrx", .model_types = names<"dbrx">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace dbrx

}  // namespace gpumem::architectures
