// Bamba and Falcon-H1: layers of Mamba-2 and of attention, each with a gated feed-forward layer. In Bamba a layer is
// one or the other; in Falcon-H1 both read the same norm side by side, and their results are added.
// Source: transformers 4.57, models/bamba/modeling_bamba.py, models/falcon_h1/modeling_falcon_h1.py; arXiv:2507.22448.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/mamba_mixers.hpp"

namespace gpumem::architectures {

namespace bamba {

inline Mamba2Fields mixer_fields(std::string_view prefix) {
  return {.heads = "mamba_n_heads",
          .head_width = "mamba_d_head",
          .groups = "mamba_n_groups",
          .state = "mamba_d_state",
          .kernel = "mamba_d_conv",
          .chunk = "mamba_chunk_size",
          .bias = "mamba_proj_bias",
          .convolution_bias = "mamba_conv_bias",
          .usual = {.name = "mamba",
                    .class_name = std::string(prefix) + "Mixer",
                    .norm_class = std::string(prefix) + "RMSNormGated",
                    .heads = 128,
                    .head_width = 64,
                    .groups = 1,
                    .state = 256}};
}

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Bamba";
  bool parallel = false;  ///< Falcon-H1
  std::vector<LayerKind> kinds;
  Mamba2Mixer mixer;
  std::int64_t turned = 2;  ///< elements of a head with rotary positions
  bool bias = false;
  bool mlp_bias = false;

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

/// attn_layer_indices: which layers are attention.
inline std::vector<LayerKind> read_kinds(ConfigFields& config, std::int64_t layers, bool parallel) {
  const std::vector<bool> listed = config.layers_listed("attn_layer_indices", layers);
  std::vector<LayerKind> kinds = mixer_kinds(config, "layer_types", layers);
  if (parallel) kinds.assign(static_cast<std::size_t>(layers), LayerKind::both);
  if (kinds.empty() && !listed.empty()) return kinds_of(listed, LayerKind::attention);
  if (kinds.empty()) kinds.assign(static_cast<std::size_t>(layers), LayerKind::recurrent);
  return kinds;
}

inline void read_multipliers(ConfigFields& config) {
  config.ignore({"attention_in_multiplier", "attention_out_multiplier", "embedding_multiplier", "key_multiplier",
                 "lm_head_multiplier", "mlp_multipliers", "ssm_in_multiplier", "ssm_multipliers", "ssm_out_multiplier",
                 "mamba_norm_before_gate", "mamba_use_mlp", "mamba_expand", "num_logits_to_keep", "z_loss_coefficient",
                 "time_step_limit", "time_step_min", "time_step_max"});
}

inline Model read(ConfigFields& config) {
  Model model;
  model.parallel = config.text({"model_type"}, "bamba") == "falcon_h1";
  model.prefix = model.parallel ? "FalconH1" : "Bamba";
  // FalconH1Config's own values; no published model has both.
  if (model.parallel) config.complete(R"({"vocab_size": 128000, "intermediate_size": 14336})");
  model.sizes = decoder_sizes(config);
  model.kinds = read_kinds(config, model.sizes.layers, model.parallel);
  const std::int64_t inner = config.size_or({"mamba_d_ssm"}, 0);
  model.mixer = mamba2_sizes(config, mixer_fields(model.prefix));
  model.mixer.width = model.sizes.width;
  model.mixer.multiplies = model.parallel;
  if (inner > 0 && inner != model.mixer.inner()) config.fail("is not mamba_n_heads x mamba_d_head", "mamba_d_ssm");
  if (model.parallel && !config.flag("mamba_rms_norm", true)) model.mixer.norm_class.clear();
  model.mixer.output_bias = config.flag("projectors_bias", model.mixer.output_bias);
  const double usual_share = model.parallel ? 1.0 : 0.5;
  model.turned = rotary_width(config, model.sizes, {"partial_rotary_factor"}, usual_share);
  model.bias = config.flag("attention_bias", false);
  model.mlp_bias = config.flag("mlp_bias", false);
  read_multipliers(config);
  return model;
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  const std::int64_t each = s.head_width;
  const Linear wide = {.bias = model.bias, .split = Split::columns};
  const auto projected = [&](std::string_view name, std::int64_t count) {
    return f.linear(name, input, s.width, count * each, wide);
  };
  const Tensor query = split_heads(f, projected("q_proj", s.heads), each);
  const Tensor flat = projected("k_proj", s.kv_heads);
  const Tensor key = split_heads(f, model.parallel ? f.scale(flat) : flat, each);
  const Tensor value = split_heads(f, projected("v_proj", s.kv_heads), each);
  const Heads turned = {rotate(f, query, rotary, each), rotate(f, key, rotary, each), value};
  const Tensor attended = attend_cached(f, s, turned);
  return f.linear("o_proj", attended, s.heads * each, s.width, {.bias = model.bias, .split = Split::rows});
}

/// Falcon-H1 multiplies the gate before its activation, and the result.
inline Tensor feed_forward_layer(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "feed_forward", model.named("MLP"));
  const DecoderSizes& s = model.sizes;
  const Linear wide = {.bias = model.mlp_bias, .split = Split::columns};
  const auto scaled = [&](Tensor tensor) { return model.parallel ? f.scale(tensor) : tensor; };
  const Tensor gate = scaled(f.linear("gate_proj", input, s.width, s.inner, wide));
  const Tensor open = f.activation("act_fn", gate, s.activation);
  const Tensor up = f.linear("up_proj", input, s.width, s.inner, wide);
  return scaled(
      f.linear("down_proj", f.multiply(open, up), s.inner, s.width, {.bias = model.mlp_bias, .split = Split::rows}));
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, LayerKind kind) {
  const std::int64_t width = model.sizes.width;
  const Tensor normed = f.rms_norm("input_layernorm", input, width, model.named("RMSNorm"));
  Tensor mixed = 0;
  if (kind == LayerKind::both) {
    const Tensor scanned = f.scale(mamba2_mixer(f, model.mixer, normed));
    mixed = f.add(scanned, f.scale(attention(f, model, f.scale(normed), rotary)));
  } else {
    mixed = kind == LayerKind::attention ? attention(f, model, normed, rotary) : mamba2_mixer(f, model.mixer, normed);
  }
  const Tensor attended = f.add(input, mixed);
  const Tensor again = f.rms_norm("pre_ff_layernorm", attended, width, model.named("RMSNorm"));
  return f.add(attended, feed_forward_layer(f, model, again));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const bool says_sizes = config.has("vocab_size") && config.has("intermediate_size");
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  if (!says_sizes) {
    f.doubt({model::Doubt::About::fields,
             "vocab_size and intermediate_size are not both in the config: they are taken as FalconH1Config has them"});
  }
  doubt_kernels(f, "mamba-ssm and causal-conv1d");
  const DecoderBody body = {.class_name = model.named("Model"), .head = {.scales = model.parallel}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    if (model.parallel) hidden = f.scale(hidden);
    const Rotary rotary = rotary_tables(f, ids, model.turned);
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden, [&](Tensor x, std::int64_t index) {
      return block(f, model, x, rotary, model.kinds[static_cast<std::size_t>(index)]);
    });
    return f.rms_norm("final_layernorm", hidden, s.width, model.named("RMSNorm"));
  });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Bamba", "bamba", "model"}, {"FalconH1", "falcon_h1", "model"}});
/// Published models, by width.
inline constexpr auto kPublished =
    std::to_array<PublishedHeads>({{1024, 8}, {1280, 10}, {2048, 8}, {2560, 10}, {3072, 12}, {5120, 20}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.labels();
  const bool parallel = t.class_name().starts_with("FalconH1");
  t.size("intermediate_size", "layers.0.feed_forward.gate_proj", "out_features");
  t.flag("mlp_bias", "layers.0.feed_forward.gate_proj");
  std::string mamba;
  std::string attention;
  std::string indices;
  for (std::int64_t at = 0; at < std::min(t.count_of("layers"), ConfigFields::kMostLayers); ++at) {
    const std::string layer = "layers." + std::to_string(at);
    const bool attends = t.has(layer + ".self_attn.q_proj");
    if (attends && attention.empty()) attention = layer + ".self_attn";
    if (mamba.empty() && t.has(layer + ".mamba.in_proj")) mamba = layer + ".mamba";
    if (attends) indices += (indices.empty() ? "" : ", ") + std::to_string(at);
  }
  if (!parallel) t.set_text("attn_layer_indices", "[" + indices + "]");
  tree_mamba2(t, mamba, mixer_fields(parallel ? "FalconH1" : "Bamba"), 1);
  t.there("mamba_rms_norm", mamba + ".norm");
  t.flag("projectors_bias", mamba + ".out_proj");
  t.flag("attention_bias", attention + ".q_proj");
  if (attention.empty()) return t.set("num_attention_heads", 1);
  t.heads({.query = attention + ".q_proj",
           .key = attention + ".k_proj",
           .published = parallel ? std::span<const PublishedHeads>(kPublished) : std::span<const PublishedHeads>(),
           .usual_width = 128});
}

inline constexpr Architecture kArchitecture = {.name = "bamba",
                                               .model_types = names<"bamba", "falcon_h1">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace bamba

// Zamba2: layers of Mamba-2; some of them first call a transformer block that they share, of the layer's input beside
// the embeddings, with low-rank adapters of each call's own.
// Source: transformers 4.57, models/zamba2/modular_zamba2.py, models/zamba/modeling_zamba.py; arXiv:2411.15242.

namespace zamba2 {

inline constexpr std::string_view kNorm = "Zamba2RMSNorm";

inline Mamba2Fields mixer_fields() {
  return {.heads = "n_mamba_heads",
          .head_width = "mamba_headdim",
          .groups = "mamba_ngroups",
          .state = "mamba_d_state",
          .kernel = "mamba_d_conv",
          .chunk = "chunk_size",
          .bias = "add_bias_linear",
          .convolution_bias = "use_conv_bias",
          .usual = {.name = "mamba",
                    .class_name = "Zamba2MambaMixer",
                    .norm_class = "Zamba2RMSNormGated",
                    .heads = 8,
                    .head_width = 64,
                    .groups = 1,
                    .state = 64}};
}

struct Model {
  DecoderSizes sizes;  ///< heads read twice the width
  Mamba2Mixer mixer;
  std::vector<LayerKind> kinds;
  std::int64_t blocks = 1;  ///< shared ones, called in turn
  std::int64_t rank = 1;    ///< of the adapters
  bool adapts_attention = false;
  bool adapts_mlp = true;
  bool turns = false;  ///< rotary positions
  bool bias = false;

  [[nodiscard]] std::int64_t read_width() const { return 2 * sizes.width; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu", .tied = true, .inner_factor = 4});
  DecoderSizes& s = model.sizes;
  s.head_width = 2 * s.width / s.heads;
  if (2 * s.width % s.heads != 0) config.fail("does not divide twice the hidden size", "num_attention_heads");
  s.attention_dropout = config.number({"attention_dropout"}, 0.0);
  Mamba2Fields fields = mixer_fields();
  const std::int64_t inner = mamba_mixers_detail::product(config.size_or({"mamba_expand"}, 2), s.width);
  fields.usual.head_width = std::max<std::int64_t>(inner / config.size_or({"n_mamba_heads"}, 8), 1);
  model.mixer = mamba2_sizes(config, fields);
  model.mixer.width = s.width;
  model.mixer.convolution_bias = true;  // whatever use_conv_bias says
  const std::vector<bool> hybrid = config.layers_listed("hybrid_layer_ids", s.layers);
  model.kinds = mixer_kinds(config, "layers_block_type", s.layers);
  if (model.kinds.empty()) model.kinds = kinds_of(hybrid, LayerKind::both);
  if (model.kinds.empty()) config.fail("must say which layers are hybrid", "layers_block_type");
  model.blocks = config.size_or({"num_mem_blocks"}, 1);
  model.rank = config.size_or({"adapter_rank"}, 128);
  model.adapts_attention = config.flag("use_shared_attention_adapter", false);
  model.adapts_mlp = config.flag("use_shared_mlp_adapter", true);
  model.turns = config.flag("use_mem_rope", false);
  model.bias = config.flag("add_bias_linear", false);
  config.ignore({"attention_head_dim", "attention_hidden_size", "kv_channels", "num_query_groups", "ft_lora",
                 "use_mem_eff_path", "use_long_context", "num_logits_to_keep", "time_step_floor", "time_step_limit",
                 "time_step_max", "time_step_min", "use_low_rank_mamba_proj", "lora_rank", "state_size",
                 "conv_dimension", "mamba_dt_rank", "expansion_factor", "vocab_size_padded"});
  return model;
}

/// A call of the shared block: which one of all calls it is, and whether its block was called before.
struct Call {
  std::int64_t number = 0;
  bool again = false;
};

/// `made`, and what the call's own adapter makes of the input.
inline Tensor adapted(Forward& f, const Model& model, const Call& call, std::string_view list, Tensor input,
                      Tensor made, std::int64_t in, std::int64_t out) {
  f.repeat_parameters(false);
  const InModule inside(f, list, "ModuleList");
  const InModule own(f, std::to_string(call.number), "Sequential");
  const Tensor narrow = f.linear("0", input, in, model.rank, {.bias = false});
  const Tensor wide = f.linear("1", narrow, model.rank, out, {.bias = false});
  f.repeat_parameters(call.again);
  return f.add(made, wide);
}

inline Tensor attention(Forward& f, const Model& model, const Call& call, Tensor input, const Rotary& rotary) {
  const InModule inside(f, "self_attn", "Zamba2Attention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t each = s.head_width;
  const std::int64_t in = model.read_width();
  const auto projected = [&](const std::string& name, std::int64_t count) {
    return f.linear(name + "_proj", input, in, count * each, {.bias = false});
  };
  std::array<Tensor, 3> rows = {projected("q", s.heads), projected("k", s.kv_heads), projected("v", s.kv_heads)};
  static constexpr std::array<std::string_view, 3> kLists = {"linear_q_adapter_list", "linear_k_adapter_list",
                                                             "linear_v_adapter_list"};
  for (std::size_t at = 0; at < rows.size() && model.adapts_attention; ++at) {
    rows[at] = adapted(f, model, call, kLists[at], input, rows[at], in, (at == 0 ? s.heads : s.kv_heads) * each);
  }
  Heads heads = {split_heads(f, rows[0], each), split_heads(f, rows[1], each), split_heads(f, rows[2], each)};
  if (model.turns) {
    const Tensor query = rotate(f, heads.query, rotary, each);
    heads = {query, rotate(f, heads.key, rotary, each), heads.value};
  }
  const Tensor attended = attend(f, heads, {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout});
  const Tensor output = f.linear("o_proj", attended, s.heads * each, s.width, {.bias = false});
  return f.leave_function(output, {heads.query, heads.key, heads.value, input});
}

inline Tensor fed(Forward& f, const Model& model, const Call& call, Tensor input) {
  const InModule inside(f, "feed_forward", "Zamba2MLP");
  const DecoderSizes& s = model.sizes;
  Tensor packed = f.linear("gate_up_proj", input, s.width, 2 * s.inner, {.bias = model.bias});
  if (model.adapts_mlp) {
    packed = adapted(f, model, call, "gate_up_proj_adapter_list", input, packed, s.width, 2 * s.inner);
  }
  const std::vector<Tensor> halves = f.split(packed, 2, {s.inner, s.inner});
  const Tensor gated = f.multiply(f.activation("act_fn", halves[0], s.activation), halves[1]);
  return f.linear("down_proj", gated, s.inner, s.width, {.bias = model.bias});
}

/// Zamba2AttentionDecoderLayer: without residuals.
inline Tensor shared_block(Forward& f, const Model& model, const Call& call, Tensor input, Tensor embedded,
                           const Rotary& rotary) {
  const InModule inside(f, "shared_transformer", "Zamba2AttentionDecoderLayer");
  f.repeat_parameters(call.again);
  const Tensor both = f.concatenate({input, embedded}, 2);
  const Tensor normed = f.rms_norm("input_layernorm", both, model.read_width(), kNorm);
  const Tensor attended = attention(f, model, call, normed, rotary);
  const Tensor again = f.rms_norm("pre_ff_layernorm", attended, model.sizes.width, kNorm);
  const Tensor made = fed(f, model, call, again);
  f.repeat_parameters(false);
  return made;
}

/// Zamba2MambaDecoderLayer, of the sum of its input and what a shared block made, where there is one.
inline Tensor mamba_layer(Forward& f, const Model& model, Tensor input, Tensor sum) {
  const Tensor normed = f.rms_norm("input_layernorm", sum, model.sizes.width, kNorm);
  return f.add(input, mamba2_mixer(f, model.mixer, normed));
}

inline Tensor hybrid_layer(Forward& f, const Model& model, const Call& call, Tensor input, Tensor embedded,
                           const Rotary& rotary) {
  const std::int64_t width = model.sizes.width;
  const Tensor transformed = shared_block(f, model, call, input, embedded, rotary);
  const Tensor added = f.linear("linear", transformed, width, width, {.bias = false});
  const InModule inside(f, "mamba_decoder", "Zamba2MambaDecoderLayer");
  return mamba_layer(f, model, input, f.add(input, added));
}

inline Tensor layers(Forward& f, const Model& model, Tensor hidden, const Rotary& rotary) {
  const Tensor embedded = f.call("clone", {hidden});
  const InModule list(f, "layers", "ModuleList");
  Call call;
  for (std::size_t at = 0; at < model.kinds.size() && !f.failed(); ++at) {
    const bool hybrid = model.kinds[at] == LayerKind::both;
    const InModule inside(f, std::to_string(at), hybrid ? "Zamba2HybridLayer" : "Zamba2MambaDecoderLayer");
    call.again = call.number >= model.blocks;
    hidden = hybrid ? hybrid_layer(f, model, call, hidden, embedded, rotary) : mamba_layer(f, model, hidden, hidden);
    if (hybrid) ++call.number;
  }
  return hidden;
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  doubt_kernels(f, "mamba-ssm and causal-conv1d", "; the model is taken to run without its cache (use_cache=False)");
  decoder_model(f, config, s, head, {.class_name = "Zamba2Model"}, [&](Tensor ids, Tensor embedded) {
    const Rotary rotary = model.turns ? rotary_tables(f, ids, s.head_width) : Rotary{};
    return f.rms_norm("final_layernorm", layers(f, model, embedded, rotary), s.width, kNorm);
  });
}

/// The classes that are checkpointed one by one.
inline constexpr std::array<std::string_view, 2> kBlocks = {"Zamba2HybridLayer", "Zamba2MambaDecoderLayer"};

inline constexpr Architecture kArchitecture = {
    .name = "zamba2", .model_types = names<"zamba2">, .write = write, .blocks = kBlocks};

}  // namespace zamba2

/// From a config alone: a printed tree shows the adapters of all calls in each shared block.

}  // namespace gpumem::architectures
