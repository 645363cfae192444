// DeepSeek-V4: one key, which is its value too, for all heads; layers that also see windows of 4 or 128 tokens
// compressed to one key each, of which an indexer chooses the windows of 4; a product by groups of heads behind
// attention; experts in every layer, in the first layers chosen by the token itself; several residual streams (see
// hyper_connections.hpp). Attention is written out, since heads are 512 wide and have sinks.
// Source: transformers 5.x (@019760818965c71b0a4d38e95820ee0b6cee4240), models/deepseek_v4/modeling_deepseek_v4.py,
// configuration_deepseek_v4.py; its experts multiply all at once (integrations/moe.py). Layers that predict further
// tokens are not part of it. Norms and mixing weights that transformers keeps in float32 are taken in the model's type.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/hyper_connections.hpp"
#include "gpumem/architectures/mixture.hpp"

namespace gpumem::architectures {

namespace deepseek_v4 {

/// What a layer sees besides a window of near tokens.
enum class Sees : std::uint8_t { near, chosen, compressed };

struct Model {
  DecoderSizes sizes;
  std::int64_t query_rank = 1;
  std::int64_t turned = 64;  ///< elements of a head that are turned
  std::int64_t groups = 1;   ///< of heads, behind attention
  std::int64_t group_rank = 1;
  std::int64_t index_heads = 1;
  std::int64_t index_width = 1;
  std::int64_t chosen_window = 4;  ///< tokens of a compressed key
  std::int64_t compressed_window = 128;
  std::vector<Sees> sees;
  std::vector<bool> hashed;  ///< by layer: the token itself tells its experts
  Mixture mixture;
  std::int64_t shared = 1;
  HyperConnections streams;
};

inline constexpr std::array<std::pair<std::string_view, Sees>, 3> kLayerTypes = {
    {{"sliding_attention", Sees::near},
     {"compressed_sparse_attention", Sees::chosen},
     {"heavily_compressed_attention", Sees::compressed}}};

inline void read_layers(ConfigFields& config, Model& model) {
  const auto layers = static_cast<std::size_t>(model.sizes.layers);
  const core::JsonValue* ratios = config.find("compress_ratios");
  const std::vector<std::string> types = config.texts_or("layer_types", {});
  for (std::size_t at = 0; at < types.size() && at < layers; ++at) {
    const auto named = [&](const auto& row) { return row.first == types[at]; };
    const auto found = std::find_if(kLayerTypes.begin(), kLayerTypes.end(), named);
    if (found == kLayerTypes.end()) return config.fail("names a kind of layer that is not known", "layer_types");
    model.sees.push_back(found->second);
  }
  if (model.sees.empty() && ratios != nullptr && ratios->is(core::JsonValue::Kind::list)) {
    for (const core::JsonValue& ratio : ratios->items()) {
      if (model.sees.size() == layers) break;
      const bool known = ratio.is(0) || ratio.is(4) || ratio.is(128);
      if (!known) return config.fail("is 0, 4 or 128 in each layer", "compress_ratios");
      model.sees.push_back(ratio.is(0) ? Sees::near : ratio.is(4) ? Sees::chosen : Sees::compressed);
    }
  }
  // DeepseekV4Config: two compressed layers, then both kinds in turns.
  for (std::size_t at = model.sees.size(); types.empty() && ratios == nullptr && at < layers; ++at) {
    model.sees.push_back(at >= 2 && at % 2 == 1 ? Sees::chosen : Sees::compressed);
  }
  if (model.sees.size() < layers) config.fail("has fewer entries than the model has layers", "compress_ratios");
  model.sees.resize(layers, Sees::near);
  model.hashed =
      config.layers_with("mlp_layer_types", model.sizes.layers, std::string_view("hash_moe"), std::string_view("moe"));
  const std::int64_t hashed = config.count_or("num_hash_layers", 3);
  for (std::size_t at = model.hashed.size(); at < layers; ++at) {
    model.hashed.push_back(static_cast<std::int64_t>(at) < hashed);
  }
}

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.inner_factor = 1});
  const DecoderSizes& s = model.sizes;
  model.query_rank = config.size({"q_lora_rank"});
  model.turned = config.size_or({"qk_rope_head_dim"}, std::max<std::int64_t>(s.head_width / 8, 2));
  model.groups = config.size_or({"o_groups"}, 8);
  model.group_rank = config.size_or({"o_lora_rank"}, 1024);
  model.index_heads = config.size_or({"index_n_heads"}, 64);
  model.index_width = config.size_or({"index_head_dim"}, 128);
  read_layers(config, model);
  model.mixture = {.experts = config.size({"n_routed_experts"}),
                   .per_token = config.size_or({"num_experts_per_tok"}, 6),
                   .inner = config.size({"moe_intermediate_size"})};
  check_mixture(config, model.mixture, s.layers, "n_routed_experts", "num_experts_per_tok");
  model.shared = config.size_or({"n_shared_experts"}, 1);
  model.streams = {.width = s.width,
                   .streams = config.size_or({"hc_mult"}, 4),
                   .rounds = config.size_or({"hc_sinkhorn_iters"}, 20),
                   .class_name = "DeepseekV4HyperConnection",
                   .norm_class = "DeepseekV4UnweightedRMSNorm",
                   .matrix = "fn",
                   .offsets = "base",
                   .factors = "scale"};
  constexpr std::int64_t kMost = ConfigFields::kLargestSize / 64;
  const bool wide = s.heads * s.head_width > kMost || model.groups * model.group_rank > kMost ||
                    model.index_heads > kMost / model.index_width || model.streams.streams > 16 ||
                    model.streams.rounds > 64 || model.mixture.inner > kMost || s.width > kMost;
  if (wide) config.fail("is more than any model has", "hidden_size");
  check_rounds(config, model.streams, s.layers, "hc_sinkhorn_iters");
  if (model.turned >= s.head_width || model.turned % 2 != 0) config.fail("does not fit a head", "qk_rope_head_dim");
  if (s.heads % model.groups != 0) config.fail("does not divide the heads", "o_groups");
  if (model.shared != 1) config.fail("must be 1", "n_shared_experts");
  if (config.flag("attention_bias", false)) config.fail("is not known", "attention_bias");
  config.ignore({"compress_rates", "compress_rope_theta", "hc_eps", "index_topk", "norm_topk_prob",
                 "num_nextn_predict_layers", "routed_scaling_factor", "scoring_func", "swiglu_limit", "topk_method",
                 "expert_dtype", "router_aux_loss_coef", "output_router_logits", "router_jitter_noise",
                 "partial_rotary_factor", "mlp_bias"});
  return model;
}

inline Tensor norm(Forward& f, std::string_view name, Tensor input, std::int64_t width) {
  return f.rms_norm(name, input, width, "DeepseekV4RMSNorm");
}

/// The last elements of each head turned in float32, behind the others.
inline Tensor turned(Forward& f, Tensor heads, const Rotary& rotary, std::int64_t width) {
  const std::vector<Tensor> parts = f.split(heads, 3, {width - rotary.width, rotary.width});
  const Tensor straight = f.multiply(f.to(parts[1], "float32"), rotary.cosines);
  const std::vector<Tensor> halves = f.split(parts[1], 3, {rotary.width / 2, rotary.width / 2});
  const Tensor swapped = f.to(f.concatenate({f.call("neg", {halves[1]}), halves[0]}, 3), "float32");
  const Tensor made = f.as_type_of(f.add(straight, f.multiply(swapped, rotary.sines)), heads);
  return f.concatenate({parts[0], made}, 3);
}

/// One key a window: its tokens, weighed by a softmax of their gates. Windows of 4 overlap: each has the first half of
/// what its tokens project, beside the second half of the window before. [N, windows, width]
inline Tensor compressed(Forward& f, const Model& model, Tensor input, std::int64_t width, std::int64_t window,
                         bool overlaps) {
  const std::int64_t made = overlaps ? 2 * width : width;
  const auto windows = [&](std::string_view name) {
    const Tensor flat = f.linear(name, input, model.sizes.width, made, {.bias = false});
    return f.call("token_windows", {flat}, {{"size", window}});
  };
  const auto overlapped = [&](Tensor of) {
    if (!overlaps) return of;
    const std::vector<Tensor> halves = f.split(of, 3, {width, width});
    return f.concatenate({halves[0], halves[1]}, 2);
  };
  const Tensor tokens = windows("kv_proj");
  const Tensor gates = f.add(windows("gate_proj"), f.parameter("position_bias", {window, made}));
  const Tensor all = overlapped(tokens);
  const Tensor weights =
      f.as_type_of(f.call("softmax", {f.to(overlapped(gates), "float32")}, {{"dim", std::int64_t{2}}}), all);
  const Tensor sum = f.call("sum", {f.multiply(all, weights)}, {{"dim", std::int64_t{2}}});
  return norm(f, "kv_norm", sum, width);
}

/// Turned by the positions of windows. [N, 1, windows, width]
inline Tensor turned_windows(Forward& f, const Model& model, Tensor windows, std::int64_t width) {
  const Rotary rotary = rotary_tables(f, windows, model.turned);
  return turned(f, f.call("unsqueeze", {windows}, {{"dim", std::int64_t{1}}}), rotary, width);
}

/// Which windows each token sees. Nothing of the indexer gets a gradient: only places leave it.
inline Tensor indexed(Forward& f, const Model& model, Tensor input, Tensor narrow) {
  const InModule inside(f, "indexer", "DeepseekV4Indexer");
  f.without_gradients(true);
  const Tensor tokens = f.detached(input);
  const Tensor keys = compressed(f, model, tokens, model.index_width, model.chosen_window, true);
  const Tensor query = f.linear("q_b_proj", f.detached(narrow), model.query_rank, model.index_heads * model.index_width,
                                {.bias = false});
  Tensor weights = 0;
  {
    const InModule scorer(f, "scorer", "DeepseekV4IndexerScorer");
    weights = f.linear("weights_proj", tokens, model.sizes.width, model.index_heads, {.bias = false});
  }
  f.without_gradients(false);
  return f.call("window_mask", {query, keys, weights}, {{"heads", model.index_heads}});
}

/// The keys of a layer and its mask, with those of windows where it sees them.
struct Keys {
  Tensor all = 0;
  Tensor mask = 0;
};
inline Keys with_windows(Forward& f, const Model& model, Keys near, Tensor input, Tensor narrow, Sees sees) {
  if (sees == Sees::near) return near;
  const bool chosen = sees == Sees::chosen;
  const InModule inside(f, "compressor", chosen ? "DeepseekV4CSACompressor" : "DeepseekV4HCACompressor");
  const std::int64_t width = model.sizes.head_width;
  const Tensor windows =
      compressed(f, model, input, width, chosen ? model.chosen_window : model.compressed_window, chosen);
  const Tensor keys = turned_windows(f, model, windows, width);
  const Tensor mask = chosen ? indexed(f, model, input, narrow) : f.call("window_mask", {input, windows});
  return {f.concatenate({near.all, keys}, 2), f.concatenate({near.mask, mask}, 3)};
}

/// A product for each group of heads, and one of all that these make.
inline Tensor projected(Forward& f, const Model& model, Tensor heads) {
  const DecoderSizes& s = model.sizes;
  const std::int64_t in = s.heads * s.head_width / model.groups;
  std::vector<Tensor> made;
  {
    const InModule inside(f, "o_a_proj", "DeepseekV4GroupedLinear");
    const Tensor weight = f.parameter("weight", {model.groups * model.group_rank, in});
    for (std::int64_t group = 0; group < model.groups && !f.failed(); ++group) {
      const Tensor rows = f.slice(heads, 2, group * in, in);
      const Tensor part = f.slice(weight, 0, group * model.group_rank, model.group_rank);
      made.push_back(f.call("linear_function", {rows, part}));
    }
  }
  if (made.empty()) return heads;
  const Tensor all = f.concatenate(made, 2);
  return f.linear("o_b_proj", all, model.groups * model.group_rank, s.width, {.bias = false});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary, Tensor mask, Sees sees) {
  const InModule inside(f, "self_attn", "DeepseekV4Attention");
  const DecoderSizes& s = model.sizes;
  const Tensor narrow =
      norm(f, "q_a_norm", f.linear("q_a_proj", input, s.width, model.query_rank, {.bias = false}), model.query_rank);
  const Tensor flat = f.linear("q_b_proj", narrow, model.query_rank, s.heads * s.head_width, {.bias = false});
  const Tensor normed =
      f.layer("q_b_norm", "DeepseekV4UnweightedRMSNorm", "rms_norm", {split_heads(f, flat, s.head_width)},
              {{"normalized_shape", s.head_width}, {"elementwise_affine", false}});
  const Tensor query = turned(f, normed, rotary, s.head_width);
  const Tensor key =
      norm(f, "kv_norm", f.linear("kv_proj", input, s.width, s.head_width, {.bias = false}), s.head_width);
  const Tensor near = turned(f, split_heads(f, key, s.head_width), rotary, s.head_width);
  f.cache(near);
  const Tensor sinks = f.parameter("sinks", {s.heads});
  const Keys keys = with_windows(f, model, {near, mask}, input, narrow, sees);
  const Tensor mixed = sink_attention(f, {query, keys.all, keys.all}, sinks, keys.mask,
                                      {.groups = s.heads, .dropout = s.attention_dropout});
  const Tensor back = turned(f, split_heads(f, mixed, s.head_width), rotary, s.head_width);
  return projected(f, model, f.flatten(f.permute(back, {0, 2, 1, 3}), 2, 3));
}

/// act(gate) up, of clamped halves.
inline Tensor gated(Forward& f, std::string_view activation, Tensor gate, Tensor up) {
  const Tensor held = f.call("clamp", {gate});
  return f.multiply(f.activation("act_fn", held, activation), f.call("clamp", {up}));
}

inline Tensor mixture(Forward& f, const Model& model, Tensor input, bool hashed) {
  const InModule inside(f, "mlp", "DeepseekV4SparseMoeBlock");
  const Mixture& m = model.mixture;
  const DecoderSizes& s = model.sizes;
  Tensor weights = 0;
  {
    const InModule gate(f, "gate", hashed ? "DeepseekV4HashRouter" : "DeepseekV4TopKRouter");
    const Tensor scores = f.call("linear_function", {input, f.parameter("weight", {m.experts, s.width})});
    const Tensor rooted = f.call("sqrt", {f.call("softplus", {scores})});
    if (hashed) (void)f.constant("tid2eid", {s.vocabulary, m.per_token}, "int64");
    else (void)f.constant("e_score_correction_bias", {m.experts}, "float32");
    const Tensor best = f.slice(rooted, 2, 0, m.per_token);
    weights = f.scale(f.call("div", {best, f.call("sum", {best}, {{"dim", std::int64_t{2}}, {"keepdim", true}})}));
  }
  const GroupedExperts all = {.list_class = "DeepseekV4Experts", .width = s.width, .activation = s.activation};
  const Tensor sum = add_grouped_experts(f, m, all, input, weights, [&](Tensor wide) {
    const std::vector<Tensor> halves = f.split(wide, 1, {m.inner, m.inner});
    return gated(f, s.activation, halves[0], halves[1]);
  });
  const InModule shared(f, "shared_experts", "DeepseekV4MLP");
  const Tensor gate = f.linear("gate_proj", input, s.width, m.inner, {.bias = false});
  const Tensor up = f.linear("up_proj", input, s.width, m.inner, {.bias = false});
  return f.add(sum, f.linear("down_proj", gated(f, s.activation, gate, up), m.inner, s.width, {.bias = false}));
}

inline Tensor block(Forward& f, const Model& model, Tensor streams, const Rotary& rotary, Tensor mask,
                    std::int64_t index) {
  const auto at = static_cast<std::size_t>(index);
  const std::int64_t width = model.sizes.width;
  const Mixed before = enter_streams(f, model.streams, "attn_hc", streams);
  const Tensor normed = norm(f, "input_layernorm", before.input, width);
  const Tensor mixed = attention(f, model, normed, rotary, mask, model.sees[at]);
  const Tensor attended = leave_streams(f, model.streams, before, mixed, streams);
  const Mixed again = enter_streams(f, model.streams, "ffn_hc", attended);
  const Tensor fed = mixture(f, model, norm(f, "post_attention_layernorm", again.input, width), model.hashed[at]);
  return leave_streams(f, model.streams, again, fed, attended);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  warn_of_routing(f);
  decoder_model(f, config, s, head, {.class_name = "DeepseekV4Model"}, [&](Tensor ids, Tensor embedded) {
    const Tensor mask = f.call("causal_mask", {ids}, {{"padded", true}});
    const Tensor streams = first_streams(f, embedded, model.streams.streams, true);
    const Rotary rotary = rotary_tables(f, ids, model.turned);
    const Tensor hidden = stack(f, "layers", "DeepseekV4DecoderLayer", s.layers, streams,
                                [&](Tensor x, std::int64_t index) { return block(f, model, x, rotary, mask, index); });
    HyperConnections last = model.streams;
    last.matrix = "hc_fn";
    last.offsets = "hc_base";
    last.factors = "hc_scale";
    return norm(f, "norm", last_stream(f, last, "hc_head", "DeepseekV4HyperHead", hidden), s.width);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"DeepseekV4", "deepseek_v4", "model"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  constexpr std::int64_t kGroups = 8;
  const std::string block = "layers.0.self_attn.";
  t.body("embed_tokens", "layers");
  const std::int64_t each = t.value(block + "kv_proj", "out_features").value_or(1);
  t.set("head_dim", each);
  t.part("num_attention_heads", block + "q_b_proj", "out_features", each);
  t.set("num_key_value_heads", 1);
  t.size("q_lora_rank", block + "q_a_proj", "out_features");
  t.set("o_groups", kGroups);
  t.part("o_lora_rank", block + "o_b_proj", "in_features", kGroups);
  std::string ratios;
  std::int64_t hashed = 0;
  for (std::int64_t at = 0; at < std::min(t.count_of("layers"), ConfigFields::kMostLayers); ++at) {
    const std::string layer = "layers." + std::to_string(at);
    const std::string indexer = layer + ".self_attn.compressor.indexer";
    const bool chosen = t.has(indexer);
    if (chosen) {
      const std::int64_t heads = t.value(indexer + ".scorer.weights_proj", "out_features").value_or(1);
      if (ratios.find('4') == std::string::npos) {
        t.set("index_n_heads", heads);
        t.part("index_head_dim", indexer + ".q_b_proj", "out_features", heads);
      }
    }
    const bool compressed = t.has(layer + ".self_attn.compressor");
    ratios += std::string(at == 0 ? "" : ", ") + (chosen ? "4" : compressed ? "128" : "0");
    if (t.class_of(layer + ".mlp.gate") == "DeepseekV4HashRouter") ++hashed;
  }
  t.set_text("compress_ratios", "[" + ratios + "]");
  if (t.has("layers.0.mlp.gate")) t.set("num_hash_layers", hashed);
  t.size("moe_intermediate_size", "layers.0.mlp.shared_experts.gate_proj", "out_features");
  fused_experts(t, {.model_type = "deepseek_v4",
                    .router = "layers.0.mlp.gate",
                    .list = "layers.0.mlp.experts",
                    .number = "n_routed_experts",
                    .inner = "intermediate_size"});
  t.assume("four streams, heads in eight groups and 64 elements of a head with positions, as published models have");
}

inline constexpr Architecture kArchitecture = {.name = "deepseek_v4",
                                               .model_types = names<"deepseek_v4">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace deepseek_v4

}  // namespace gpumem::architectures
