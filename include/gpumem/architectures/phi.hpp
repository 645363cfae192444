// Phi-1, 1.5 and 2: attention and feed-forward layer side by side after one norm, rotary positions on part of
// each head, biases everywhere. Source: transformers 4.48, models/phi/modeling_phi.py.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace phi {

struct Model {
  DecoderSizes sizes;
  double dropout = 0.0;
  double embedding_dropout = 0.0;
  std::int64_t rotary_width = 1;
  bool normed_heads = false;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_new", .inner_factor = 4});
  model.dropout = config.number({"resid_pdrop"}, 0.0);
  model.embedding_dropout = config.number({"embd_pdrop"}, 0.0);
  model.rotary_width = rotary_width(config, model.sizes, {"partial_rotary_factor"}, 0.5);
  model.normed_heads = config.flag("qk_layernorm", false);
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "PhiAttention");
  const DecoderSizes& s = model.sizes;
  const auto heads = [&](std::string_view name, std::int64_t count, std::string_view norm) {
    const Tensor parted = split_heads(f, f.linear(name, input, s.width, count * s.head_width), s.head_width);
    return model.normed_heads && !norm.empty() ? f.layer_norm(norm, parted, s.head_width) : parted;
  };
  const Tensor query = heads("q_proj", s.heads, "q_layernorm");
  const Tensor key = heads("k_proj", s.kv_heads, "k_layernorm");
  const Tensor value = heads("v_proj", s.kv_heads, "");
  const Heads turned = {rotate(f, query, rotary, s.head_width), rotate(f, key, rotary, s.head_width), value};
  const Tensor attended = attend_cached(f, s, turned);
  return f.linear("dense", attended, s.heads * s.head_width, s.width);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const Tensor normed = f.layer_norm("input_layernorm", input, model.sizes.width);
  const Tensor mixed = f.dropout("resid_dropout", attention(f, model, normed, rotary), model.dropout);
  const Tensor fed =
      f.dropout("resid_dropout", feed_forward(f, model.sizes, normed, {.class_name = "PhiMLP"}), model.dropout);
  return f.add(f.add(mixed, fed), input);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  decoder_model(f, config, s, head, {.class_name = "PhiModel", .head = {.bias = true}}, [&](Tensor ids, Tensor hidden) {
    hidden = f.dropout("embed_dropout", hidden, model.embedding_dropout);
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    hidden = stack(f, "layers", "PhiDecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.layer_norm("final_layernorm", hidden, s.width);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Phi", "phi", "model"}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{2048, 32}, {2560, 32}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.fc1", "out_features");
  t.there("qk_layernorm", "layers.0.self_attn.q_layernorm");
  t.dropout("resid_pdrop", "layers.0.resid_dropout");
  if (width == 2560) t.set_text("partial_rotary_factor", "0.4");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .published = kPublished});
}

inline constexpr Architecture kArchitecture = {
    .name = "phi", .model_types = names<"phi">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace phi

// Phi-3, Phi-3.5 and Phi-4: queries, keys and values from one projection, gate and values of the feed-forward layer
// from another. Source: transformers 4.48, models/phi3/modeling_phi3.py.

namespace phi3 {

struct Model {
  DecoderSizes sizes;
  double dropout = 0.0;  ///< of what joins the residual
  std::int64_t rotary_width = 1;
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  model.dropout = config.number({"resid_pdrop"}, 0.0);
  model.rotary_width = rotary_width(config, model.sizes, {"partial_rotary_factor"}, 1.0);
  config.ignore({"embd_pdrop"});
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "Phi3Attention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t queries = s.heads * s.head_width;
  const std::int64_t keys = s.kv_heads * s.head_width;
  const Tensor packed = f.linear("qkv_proj", input, s.width, queries + 2 * keys, {.bias = false});
  const Tensor query = split_heads(f, f.slice(packed, 2, 0, queries), s.head_width);
  const Tensor key = split_heads(f, f.slice(packed, 2, queries, keys), s.head_width);
  const Tensor value = split_heads(f, f.slice(packed, 2, queries + keys, keys), s.head_width);
  // What is turned is joined to the rest of the head, even where nothing is left of it: heads lie in order from then
  // on.
  const auto turn = [&](Tensor heads) { return f.contiguous(rotate(f, heads, rotary, s.head_width)); };
  const Heads turned = {turn(query), turn(key), value};
  const Tensor attended = attend_cached(f, s, turned);
  return f.linear("o_proj", attended, queries, s.width, {.bias = false});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const Tensor mixed = attention(f, model, f.rms_norm("input_layernorm", input, width, "Phi3RMSNorm"), rotary);
  const Tensor attended = f.add(input, f.dropout("resid_attn_dropout", mixed, model.dropout));
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, width, "Phi3RMSNorm");
  return f.add(attended,
               f.dropout("resid_mlp_dropout", packed_feed_forward(f, model.sizes, again, "Phi3MLP"), model.dropout));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  decoder_model(f, config, s, head, {.class_name = "Phi3Model"}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    hidden = stack(f, "layers", "Phi3DecoderLayer", s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.rms_norm("norm", hidden, s.width, "Phi3RMSNorm");
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Phi3", "phi3", "model", 3072, 200064}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{5120, 40}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.half("intermediate_size", "layers.0.mlp.gate_up_proj", "out_features");
  t.dropout("resid_pdrop", "layers.0.resid_attn_dropout");
  t.labels();
  const std::int64_t queries = t.value("layers.0.self_attn.o_proj", "in_features").value_or(0);
  const std::int64_t packed = t.value("layers.0.self_attn.qkv_proj", "out_features").value_or(0);
  // Phi-3 mini has as many keys as queries, 96 wide; all others have heads of 128.
  const bool mini = packed == 3 * queries && queries == 3072;
  const std::int64_t each = t.heads_of_width({.published = kPublished, .usual_width = mini ? 96 : 128}, queries);
  if (each > 0 && packed > queries) t.set("num_key_value_heads", (packed - queries) / 2 / each);
  if (!mini && queries == 3072) t.set_text("partial_rotary_factor", "0.75");
}

inline constexpr Architecture kArchitecture = {
    .name = "phi3", .model_types = names<"phi3">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace phi3

// Cohere (Command R, Aya) and Cohere 2 (Command R7B, Command A): attention and feed-forward layer side by side on one
// norm, which has no bias and is computed in float32; logits times a number. Cohere 2 turns only layers whose window
// slides; Cohere 2 MoE has experts after its first layers. Source: transformers 4.48, models/cohere/modeling_cohere.py,
// cohere2/modeling_cohere2.py; 5.16, cohere2_moe.

namespace cohere {

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Cohere";
  bool bias = false;
  bool normed_heads = false;  ///< a norm with weights for each head (Command R+)
  std::vector<bool> turns;    ///< by layer
  Mixture mixture = {};
  std::vector<bool> mixes = {};   ///< by layer: it has experts, of one tensor each; empty: none has
  std::int64_t shared_inner = 0;  ///< of the experts that all tokens go to
  bool averages = false;          ///< those and the chosen ones
  bool sigmoid = false;           ///< weighs the chosen experts, and not a softmax of their scores
  bool rms = false;               ///< its norms are RMS norms

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

/// Experts after the first dense layers, which have no positions unless every one of them reads all tokens.
inline void read_mixture(ConfigFields& config, Model& model) {
  DecoderSizes& s = model.sizes;
  model.mixture = {.experts = config.size_or({"num_experts"}, 8),
                   .per_token = config.size_or({"num_experts_per_tok"}, 2),
                   .inner = s.inner};
  check_mixture(config, model.mixture, s.layers, "num_experts", "num_experts_per_tok");
  const std::int64_t shared = config.count_or("num_shared_experts", 0);
  if (shared > ConfigFields::kLargestSize / s.inner)
    config.fail("makes the shared experts too wide", "num_shared_experts");
  model.shared_inner = shared * s.inner;
  s.inner = config.size_or({"prefix_dense_intermediate_size"}, s.inner);
  const std::int64_t dense = std::min(config.count_or("first_k_dense_replace", 0), s.layers);
  model.mixes = config.layers_with("mlp_layer_types", s.layers, std::string_view("sparse"), std::string_view("dense"));
  if (model.mixes.empty()) {
    model.mixes.assign(static_cast<std::size_t>(s.layers), true);
    std::fill_n(model.mixes.begin(), dense, false);
  }
  const std::int64_t pattern = config.size_or({"sliding_window_pattern"}, 4);
  const std::int64_t first = config.size_or({"prefix_dense_sliding_window_pattern"}, 1);
  const bool listed = !model.turns.empty();
  for (std::int64_t at = 0; at < s.layers; ++at) {
    const std::int64_t place = at < dense ? at + 1 : at + 1 - dense;
    if (!listed) model.turns.push_back(place % (at < dense ? first : pattern) != 0);
    const auto index = static_cast<std::size_t>(at);
    if (!model.mixes[index] && first == 1) model.turns[index] = true;
  }
  const std::string_view strategy = config.text({"shared_expert_combination_strategy"}, "average");
  const std::string_view weighs = config.text({"expert_selection_fn"}, "softmax");
  if (strategy != "sum" && strategy != "average") config.fail("is not known", "shared_expert_combination_strategy");
  if (weighs != "softmax" && weighs != "sigmoid") config.fail("is not known", "expert_selection_fn");
  model.averages = strategy == "average";
  model.sigmoid = weighs == "sigmoid";
  model.rms = config.has("rms_norm_eps");
  config.ignore({"norm_topk_prob", "router_aux_loss_coef", "output_router_logits"});
}

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "cohere");
  const bool mixes = type == "cohere2_moe";
  const bool second = mixes || type == "cohere2";
  model.prefix = second ? "Cohere2" : "Cohere";
  if (mixes) model.prefix = "Cohere2Moe";
  if (mixes) config.complete(R"({"head_dim": 128})");
  model.sizes = decoder_sizes(config, {.tied = true});
  model.bias = config.flag("attention_bias", false);
  model.normed_heads = !second && config.flag("use_qk_norm", false);
  const std::int64_t layers = model.sizes.layers;
  const std::int64_t pattern = config.size_or({"sliding_window_pattern"}, 4);
  if (second) {
    model.turns = config.layers_with("layer_types", layers, std::string_view("sliding_attention"),
                                     std::string_view("full_attention"));
  }
  if (mixes) read_mixture(config, model);
  for (std::int64_t at = static_cast<std::int64_t>(model.turns.size()); at < layers; ++at) {
    model.turns.push_back(!second || (at + 1) % pattern != 0);
  }
  config.ignore({"logit_scale", "cache_implementation", "order_of_interleaved_layers", "position_embedding_type",
                 "rotary_pct", "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
                 "use_parallel_embedding", "_sliding_window_pattern"});
  return model;
}

/// (x - mean) / deviation, times the weight, in float32: CohereLayerNorm, operation by operation.
inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input, const Sizes& shape) {
  if (model.rms) return f.rms_norm(name, input, shape.back(), model.named("RMSNorm"));
  const InModule inside(f, name, model.named("LayerNorm"));
  const auto mean = [&](Tensor of) { return f.call("mean", {of}, {{"dim", std::int64_t{-1}}, {"keepdim", true}}); };
  const Tensor wide = f.to(input, "float32");
  const Tensor middle = mean(wide);
  const Tensor variance = mean(f.call("pow", {f.call("sub", {wide, middle})}));
  const Tensor deviation = f.call("rsqrt", {f.call("add", {variance})});
  const Tensor normed = f.multiply(f.call("sub", {wide, middle}), deviation);
  const Tensor weight = f.to(f.parameter("weight", shape), "float32");
  const Tensor made = f.as_type_of(f.multiply(weight, normed), input);
  return f.leave_function(made, {middle, variance});
}

/// Queries or keys with their positions: pairs are turned, of a float32 copy.
inline Tensor turned(Forward& f, Tensor heads, const Rotary& rotary) {
  const std::int64_t half = std::max<std::int64_t>(rotary.width / 2, 1);
  const Tensor wide = f.to(heads, "float32");
  const Tensor second = f.slice(wide, 3, half, Forward::kRest);
  const Tensor across = f.concatenate({f.call("neg", {second}), f.slice(wide, 3, 0, half)}, 3);
  const Tensor sum = f.add(f.multiply(wide, rotary.cosines), f.multiply(across, rotary.sines));
  return f.as_type_of(sum, heads);
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  const auto heads = [&](std::string_view name, std::int64_t count, std::string_view norm_name) {
    const Split split = model.normed_heads ? Split::whole : Split::columns;
    const Tensor flat = f.linear(name, input, s.width, count * s.head_width, {.bias = model.bias, .split = split});
    if (!model.normed_heads || norm_name.empty()) return split_heads(f, flat, s.head_width);
    const Tensor parted = f.unflatten(flat, 2, {-1, s.head_width});
    return f.permute(norm(f, model, norm_name, parted, {count, s.head_width}), {0, 2, 1, 3});
  };
  const Tensor query = heads("q_proj", s.heads, "q_norm");
  const Tensor key = heads("k_proj", s.kv_heads, "k_norm");
  const Tensor value = heads("v_proj", s.kv_heads, "");
  const bool turns = model.turns[static_cast<std::size_t>(index)];
  const Heads ready = turns ? Heads{turned(f, query, rotary), turned(f, key, rotary), value} : Heads{query, key, value};
  const Tensor attended = attend_cached(f, s, ready);
  return f.linear("o_proj", attended, s.heads * s.head_width, s.width,
                  {.bias = model.bias, .split = model.normed_heads ? Split::whole : Split::rows});
}

/// Cohere2MoeSparseMoeBlock: the weights are those of the chosen scores alone.
inline Tensor mixture(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", model.named("SparseMoeBlock"));
  const DecoderSizes& s = model.sizes;
  const Mixture& m = model.mixture;
  const Tensor chosen =
      f.slice(held_scores(f, "gate", model.named("TopKRouter"), m, s.width, input), 2, 0, m.per_token);
  const Tensor weights =
      model.sigmoid ? f.scale(f.call("sigmoid", {chosen})) : f.call("softmax", {f.to(chosen, "float32")});
  const std::string list = model.named("Experts");
  const GroupedExperts all = {.list_class = list, .width = s.width, .activation = s.activation};
  const Tensor sum = add_grouped_experts(f, m, all, input, f.as_type_of(weights, input));
  if (model.shared_inner == 0) return sum;
  Tensor shared = 0;
  {
    const InModule one(f, "shared_experts", model.named("MLP"));
    shared = gated_layer(f, s.width, model.shared_inner, s.activation, input);
  }
  const Tensor both = f.add(sum, shared);
  return model.averages ? f.scale(both) : both;
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::int64_t index) {
  const Tensor normed = norm(f, model, "input_layernorm", input, {model.sizes.width});
  const Tensor mixed = attention(f, model, normed, rotary, index);
  const bool mixes = !model.mixes.empty() && model.mixes[static_cast<std::size_t>(index)];
  const Tensor fed = mixes ? mixture(f, model, normed) : gated_feed_forward(f, model.sizes, normed, model.named("MLP"));
  return f.add(f.add(input, mixed), fed);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  const DecoderBody body = {.class_name = model.named("Model"), .head = {.scales = true}};
  if (!model.mixes.empty()) warn_of_routing(f);
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, index); });
    return norm(f, model, "norm", hidden, {s.width});
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Cohere", "cohere", "model", kAlwaysTied},
                                                            {"Cohere2", "cohere2", "model", kAlwaysTied},
                                                            {"Cohere2Moe", "cohere2_moe", "model", kAlwaysTied}});

/// The experts of a tree, of which a config has no size of their own.
inline void read_experts(TreeFields& t) {
  const std::int64_t dense = layers_before_experts(t);
  const std::string mixture = "layers." + std::to_string(dense) + ".mlp.";
  if (!t.has(mixture + "experts")) return;
  t.set("first_k_dense_replace", dense);
  if (t.value("layers.0.input_layernorm", "normalized_shape")) t.set_text("rms_norm_eps", "1e-05");
  t.size("prefix_dense_intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  const std::int64_t inner = fused_experts(
      t,
      {.model_type = "cohere2_moe", .router = mixture + "gate", .list = mixture + "experts", .number = "num_experts"});
  const std::int64_t shared = t.value(mixture + "shared_experts.gate_proj", "out_features").value_or(0);
  t.set("num_shared_experts", shared / std::max<std::int64_t>(inner, 1));
  t.assume("a softmax of the chosen experts' scores, and their average with the shared ones, as the class has it");
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  const bool mixes = t.class_name().starts_with("Cohere2Moe");
  if (mixes) read_experts(t);
  else t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.there("use_qk_norm", "layers.0.self_attn.q_norm");
  t.labels();
  if (!mixes)
    return t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 128});
  // Its class has a width of heads where a config says none, so that they are said.
  const std::int64_t queries = t.value("layers.0.self_attn.q_proj", "out_features").value_or(0);
  const std::int64_t each = t.heads_of_width({.usual_width = 128}, queries);
  const std::int64_t keys = t.value("layers.0.self_attn.k_proj", "out_features").value_or(queries);
  if (each < 1) return;
  t.set("head_dim", each);
  t.set("num_key_value_heads", std::max<std::int64_t>(keys / each, 1));
}

inline constexpr Architecture kArchitecture = {.name = "cohere",
                                               .model_types = names<"cohere", "cohere2", "cohere2_moe">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace cohere

// GLM-4 (glm), and the release of April 2025 (glm4), which has a norm after each half of a block too.
// Source: transformers 4.51, models/glm/modeling_glm.py, models/glm4/modeling_glm4.py.

namespace glm {

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Glm";
  std::int64_t rotary_width = 2;
  bool bias = false;
  bool normed_behind = false;

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.normed_behind = config.text({"model_type"}, "glm") == "glm4";
  model.prefix = model.normed_behind ? "Glm4" : "Glm";
  model.sizes = decoder_sizes(config);
  model.rotary_width = rotary_width(config, model.sizes, {"partial_rotary_factor"}, 0.5);
  model.bias = config.flag("attention_bias", false);
  return model;
}

/// Each block makes tables in which the elements of a pair are side by side, once for queries and keys.
inline Rotary paired(Forward& f, const Rotary& rotary) {
  const auto doubled = [&](Tensor table) {
    const Tensor half = f.slice(table, 3, 0, rotary.width / 2);
    return f.concatenate({half, half}, 3);
  };
  const Tensor cosines = doubled(rotary.cosines);
  return {cosines, doubled(rotary.sines), rotary.width};
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  const auto [query, key, value] = project_heads(f, s, input, {.bias = model.bias});
  const Rotary tables = paired(f, layer_tables(f, rotary));
  const Heads turned = {rotate(f, query, tables, s.head_width), rotate(f, key, tables, s.head_width), value};
  const Tensor attended = attend_cached(f, s, turned);
  return f.linear("o_proj", attended, s.heads * s.head_width, s.width, {.bias = false});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const auto norm = [&](std::string_view name, Tensor tensor) {
    return f.rms_norm(name, tensor, model.sizes.width, model.named("RMSNorm"));
  };
  const auto behind = [&](std::string_view name, Tensor part) { return model.normed_behind ? norm(name, part) : part; };
  const Tensor mixed = attention(f, model, norm("input_layernorm", input), rotary);
  const Tensor attended = f.add(input, behind("post_self_attn_layernorm", mixed));
  const Tensor again = norm("post_attention_layernorm", attended);
  const Tensor fed = packed_feed_forward(f, model.sizes, again, model.named("MLP"));
  return f.add(attended, behind("post_mlp_layernorm", fed));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  decoder_model(f, config, s, head, {.class_name = model.named("Model")}, [&](Tensor ids, Tensor hidden) {
    const Rotary rotary = rotary_tables(f, ids, model.rotary_width);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    return f.rms_norm("norm", hidden, s.width, model.named("RMSNorm"));
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Glm", "glm", "model"}, {"Glm4", "glm4", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.half("intermediate_size", "layers.0.mlp.gate_up_proj", "out_features");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj", .key = "layers.0.self_attn.k_proj", .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {
    .name = "glm", .model_types = names<"glm", "glm4">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace glm

}  // namespace gpumem::architectures
