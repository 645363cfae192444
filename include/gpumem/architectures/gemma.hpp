// Gemma 1, 2 and 3 (text): wide heads, norms that multiply in float32, embeddings times a number; Gemma 2 and 3 with a
// norm after each part too, Gemma 2 with logits below a cap, Gemma 3 with normed queries and keys; VaultGemma, Gemma 2
// without these norms. Source: transformers 4.48 and 4.51, models/gemma/modeling_gemma.py, gemma2, gemma3; 5.16,
// vaultgemma.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_towers.hpp"
#include "gpumem/architectures/mixture.hpp"
#include "gpumem/architectures/vision_language.hpp"

namespace gpumem::architectures {

namespace gemma {

struct Model {
  DecoderSizes sizes;
  std::string_view prefix = "Gemma";
  bool normed_behind = false;  ///< Gemma 2 and 3
  bool vault = false;
  bool normed_heads = false;  ///< Gemma 3
  bool bias = false;
  double softcap = 0.0;
  std::int64_t pattern = 2;  ///< every so many layers, one reads all tokens

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "gemma");
  model.normed_heads = type == "gemma3_text";
  model.vault = type == "vaultgemma";
  model.normed_behind = type != "gemma" && !model.vault;
  model.prefix = model.normed_heads ? "Gemma3" : model.normed_behind ? "Gemma2" : "Gemma";
  if (model.vault) model.prefix = "VaultGemma";
  model.sizes = decoder_sizes(config, {.activation = "gelu_pytorch_tanh", .tied = true});
  // Whatever hidden_act says: hidden_activation counts, and is this one in all of them.
  model.sizes.activation = "gelu_pytorch_tanh";
  model.bias = config.flag("attention_bias", false);
  const bool second = model.vault || (model.normed_behind && !model.normed_heads);
  model.softcap = config.number({"final_logit_softcapping"}, second ? 30.0 : 0.0);
  if (model.normed_heads) model.pattern = config.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  config.ignore({"query_pre_attn_scalar", "sliding_window_pattern", "cache_implementation", "_sliding_window_pattern"});
  return model;
}

inline Tensor norm(Forward& f, const Model& model, std::string_view name, Tensor input, std::int64_t width) {
  return wide_norm(f, name, model.named("RMSNorm"), input, width);
}

/// Gemma 2 and 3 make a mask in every job: one for all samples, expanded, and copied where samples differ.
inline Tensor full_mask(Forward& f, Tensor ids) {
  const std::vector<core::Dim> all = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1),
                                      core::Dim::fixed(-1)};
  return f.add(f.call("expand", {f.call("causal_mask", {ids})}, {{"shape", all}}), When::masked);
}

/// A layer that reads a window of tokens makes its own of it: torch.where(sliding_window_mask, min, mask).
inline Tensor windowed(Forward& f, Tensor mask) { return f.call("where", {mask}, {{"mask_stands", true}}); }

inline Tensor attention(Forward& f, const Model& model, Tensor input, const Rotary& rotary,
                        std::optional<Tensor> mask) {
  const InModule inside(f, "self_attn", model.named("Attention"));
  const DecoderSizes& s = model.sizes;
  auto [query, key, value] = project_heads(f, s, input, {.bias = model.bias});
  if (model.normed_heads) {
    query = norm(f, model, "q_norm", query, s.head_width);
    key = norm(f, model, "k_norm", key, s.head_width);
  }
  const auto [turned_query, turned_key] = turn_heads(f, query, key, rotary, s.head_width, Turning::halves);
  Heads turned = {turned_query, turned_key, value};
  // Gemma 2 and 3 make their cache, a HybridCache, in evaluation only.
  const Caches caches = model.normed_behind ? Caches::serving : Caches::unless_checkpointed;
  turned.value = f.cache(turned.key, turned.value, caches);
  const Tensor attended =
      attend(f, turned, {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout, .mask = mask});
  const Tensor output = f.linear("o_proj", attended, s.heads * s.head_width, s.width, {.bias = model.bias});
  return f.leave_function(output, {turned.query, turned.key, turned.value, input});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary, std::optional<Tensor> mask) {
  const std::int64_t width = model.sizes.width;
  const auto behind = [&](std::string_view name, Tensor part) {
    return model.normed_behind ? norm(f, model, name, part, width) : part;
  };
  const Tensor normed = norm(f, model, "input_layernorm", input, width);
  const Tensor mixed = behind("post_attention_layernorm", attention(f, model, normed, rotary, mask));
  const Tensor attended = f.add(input, mixed);
  const bool apart = model.vault || model.normed_behind;
  const std::string_view before = apart ? "pre_feedforward_layernorm" : "post_attention_layernorm";
  const Tensor again = norm(f, model, before, attended, width);
  const Tensor fed = gated_feed_forward(f, model.sizes, again, model.named("MLP"));
  return f.add(attended, behind("post_feedforward_layernorm", fed));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (config.find("attn_logit_softcapping") != nullptr) {
    f.warn(
        "attention is taken without its soft cap, which PyTorch's kernel does not have; written out "
        "(attn_implementation=\"eager\") it keeps its scores too");
  }
  if (!config.status()) return;
  const DecoderSizes& s = model.sizes;
  const DecoderBody body = {.class_name = model.named("Model"), .head = {.softcap = model.softcap}};
  decoder_model(f, config, s, head, body, [&](Tensor ids, Tensor hidden) {
    hidden = f.scale(hidden);
    const Rotary rotary = rotary_tables(f, ids, s.head_width);
    const auto mask = model.normed_behind && f.text_part() == nullptr ? std::optional(full_mask(f, ids)) : std::nullopt;
    hidden = stack(f, "layers", model.named("DecoderLayer"), s.layers, hidden, [&](Tensor x, std::int64_t index) {
      const bool window = mask && (index + 1) % model.pattern != 0;
      return block(f, model, x, rotary, window ? windowed(f, *mask) : mask);
    });
    return norm(f, model, "norm", hidden, s.width);
  });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Gemma", "gemma", "model", kAlwaysTied},
                                                            {"Gemma2", "gemma2", "model", kAlwaysTied},
                                                            {"Gemma3", "gemma3_text", "model", kAlwaysTied},
                                                            {"Gemma3Text", "gemma3_text", "model", kAlwaysTied},
                                                            {"VaultGemma", "vaultgemma", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{4608, 32}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.flag("attention_bias", "layers.0.self_attn.q_proj");
  t.labels();
  t.heads({.query = "layers.0.self_attn.q_proj",
           .key = "layers.0.self_attn.k_proj",
           .norm = "layers.0.self_attn.q_norm",
           .published = kPublished,
           .usual_width = 256});
}

inline constexpr Architecture kArchitecture = {.name = "gemma",
                                               .model_types = names<"gemma", "gemma2", "gemma3_text", "vaultgemma">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace gemma

// Gemma 3 and PaliGemma: SigLIP's tower, whose output is pooled to 256 tokens (Gemma 3) or projected as it is, and
// Gemma's text model. The tokens of an image see each other, so attention has a mask in every layer.
// Source: transformers 4.57, models/gemma3/modeling_gemma3.py, paligemma/modeling_paligemma.py.

namespace gemma_vision {

struct Model {
  bool pools = true;  ///< Gemma 3
  ImageTower tower;
  std::int64_t tokens = 256;  ///< an image
  std::int64_t width = 1;     ///< of the text model
  std::int64_t projected = 1;
};

inline std::int64_t square_root(std::int64_t value) {
  std::int64_t root = 1;
  while ((root + 1) * (root + 1) <= value) ++root;
  return root;
}

inline Model read(ConfigFields& config) {
  Model m;
  m.pools = config.text({"model_type"}, "gemma3") == "gemma3";
  ConfigFields* tower = vision_fields(config);
  if (tower == nullptr) return m;
  if (!m.pools) m.projected = config.size_or({"projection_dim"}, 2048);
  if (!m.pools) m.projected = tower->size_or({"projection_dim"}, m.projected);
  m.tower = read_image_tower(*tower, "siglip_vision_model");
  m.tokens = m.pools ? config.size_or({"mm_tokens_per_image"}, 256) : m.tower.patches();
  const std::int64_t side = m.tower.side / m.tower.patch;
  const std::int64_t kept = m.pools ? square_root(m.tokens) : 1;
  if (m.pools && (kept * kept != m.tokens || side % kept != 0)) {
    config.fail("does not divide the tower's patches", "mm_tokens_per_image");
  }
  config.ignore({"hidden_size", "vocab_size", "num_image_tokens", "ignore_index", "projection_dim"});
  return m;
}

/// Gemma3MultiModalProjector.
inline Tensor pooled(Forward& f, const Model& m, Tensor hidden) {
  const InModule inside(f, "multi_modal_projector", "Gemma3MultiModalProjector");
  const std::int64_t side = m.tower.side / m.tower.patch;
  const std::int64_t window = side / square_root(m.tokens);
  const Tensor image = f.unflatten(f.call("clone", {f.permute(hidden, {0, 2, 1})}), 2, {side, side});
  const Tensor less =
      f.layer("avg_pool", "AvgPool2d", "avg_pool2d", {image}, {{"kernel_size", window}, {"stride", window}});
  const Tensor rows = f.permute(f.flatten(less, 2, 3), {0, 2, 1});
  const Tensor normed = f.rms_norm("mm_soft_emb_norm", rows, m.tower.sizes.width, "Gemma3RMSNorm");
  const Tensor weight = f.parameter("mm_input_projection_weight", {m.tower.sizes.width, m.width});
  return f.call("matmul", {normed, weight});
}

inline Tensor features_of(Forward& f, const Model& m, std::int64_t images) {
  Tensor hidden = 0;
  {
    const InModule inside(f, "vision_tower", "SiglipVisionModel");
    hidden = image_states(f, m.tower, images).normed;
  }
  if (m.pools) return pooled(f, m, hidden);
  const InModule inside(f, "multi_modal_projector", "PaliGemmaMultiModalProjector");
  return f.scale(f.linear("linear", hidden, m.tower.sizes.width, m.projected));
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  // A Gemma 3 that reads only text has this type in older configs, and nothing inside of it.
  if (!config.has("vision_config") && !config.has("text_config")) {
    ConfigFields* text = text_fields(config, "gemma3_text");
    if (text == nullptr || !config.status()) return;
    return architecture_of("gemma3_text")->write(*text, head, f);
  }
  const Pictures pictures = pictures_of(f);
  Model model = read(config);
  ConfigFields* text = text_fields(config, model.pools ? "gemma3_text" : "gemma");
  if (text == nullptr || !config.status()) return;
  text->ignore({"num_image_tokens"});
  model.width = text->size({"hidden_size"});
  tell_pictures(f, pictures, pictures.seen() * model.tokens);
  TextPart part = inner_text(model.pools ? "Gemma3Model" : "PaliGemmaModel", "TextModel");
  part.masks = pictures.count > 0;
  write_text(f, *text, head, part, pictures, [&](Forward& to) { return features_of(to, model, pictures.seen()); });
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{.prefix = "Gemma3",
                                                             .model_type = "gemma3",
                                                             .body = "model",
                                                             .tied_up_to = kAlwaysTied,
                                                             .ending = "ForConditionalGeneration"},
                                                            {"PaliGemma", "paligemma", "model", kAlwaysTied}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const bool pools = t.class_name().starts_with("Gemma3");
  tree_image_tower(t, "vision_tower");
  if (!pools) t.size("projection_dim", "multi_modal_projector.linear", "out_features");
  tree_text(t, {.type = pools ? "gemma3_text" : "gemma"});
}

inline constexpr Architecture kArchitecture = {.name = "gemma_vision",
                                               .model_types = names<"gemma3", "paligemma">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .holds_text_model = true};

}  // namespace gemma_vision

// RecurrentGemma (Griffin): two layers of a gated linear recurrence to one of attention to a window, each with a gated
// feed-forward layer. The recurrence is plain PyTorch, token by token.
// Source: transformers 4.57, models/recurrent_gemma/modeling_recurrent_gemma.py; arXiv:2402.19427.

namespace recurrent_gemma {

inline constexpr std::string_view kNorm = "RecurrentGemmaRMSNorm";

struct Model {
  DecoderSizes sizes;
  std::vector<std::string> kinds;  ///< "recurrent" or "attention", again and again
  std::int64_t channels = 1;       ///< of the recurrence
  std::int64_t kernel = 4;
  std::int64_t turned = 2;  ///< elements of a head with rotary positions
  bool bias = false;        ///< of queries, keys and values
  double softcap = 0.0;

  [[nodiscard]] std::int64_t own() const { return channels / sizes.heads; }  ///< channels of a head's gates
};

inline Model read(ConfigFields& config) {
  constexpr std::int64_t kMostKernel = 1 << 12;
  Model model;
  model.sizes = decoder_sizes(config, {.activation = "gelu_pytorch_tanh", .tied = true});
  DecoderSizes& s = model.sizes;
  s.activation = config.text({"hidden_activation"}, "gelu_pytorch_tanh");
  s.attention_dropout = config.number({"attention_dropout"}, 0.0);
  s.inner = std::max<std::int64_t>(s.inner / 2, 1);
  model.channels = config.size_or({"lru_width"}, s.width);
  model.kernel = config.size_or({"conv1d_width"}, 4);
  model.kinds =
      config.texts_or("block_types", config.texts_or("_block_types", {"recurrent", "recurrent", "attention"}));
  for (const std::string& kind : model.kinds) {
    if (kind != "recurrent" && kind != "attention")
      config.fail("names a kind of layer that is not known", "block_types");
  }
  if (model.kinds.empty()) config.fail("names no layers", "block_types");
  if (model.channels % s.heads != 0) config.fail("is not a number of channels for each head", "lru_width");
  if (model.kernel > kMostKernel) config.fail("is wider than any convolution", "conv1d_width");
  model.turned = rotary_width(config, s, {"partial_rotary_factor"}, 0.5);
  model.bias = config.flag("attention_bias", false);
  model.softcap = config.number({"logits_soft_cap"}, 30.0);
  config.ignore({"attention_window_size", "w_init_variance_scale", "final_w_init_variance_scale"});
  return model;
}

/// The sigmoid of each head's channels times its own matrix.
inline Tensor gate(Forward& f, const Model& model, const std::string& name, Tensor heads) {
  const std::int64_t count = model.sizes.heads;
  const Tensor weight = f.parameter(name + "_weight", {count, model.own(), model.own()});
  const Tensor bias =
      f.call("unsqueeze", {f.parameter(name + "_bias", {count, model.own()})}, {{"dim", std::int64_t{1}}});
  const Tensor made = f.add(f.call("matmul", {heads, weight}), bias);
  return f.call("sigmoid", {merge_heads(f, made)});
}

/// RecurrentGemmaRglru, of [N, S, channels].
inline Tensor recurrence(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "rg_lru", "RecurrentGemmaRglru");
  const Tensor decay = f.parameter("recurrent_param", {model.channels});
  const Tensor heads = split_heads(f, f.contiguous(input), model.own());
  const Tensor opened = gate(f, model, "input_gate", heads);
  const Tensor forgets = gate(f, model, "recurrent_gate", heads);
  const Tensor rate = f.multiply(f.scale(forgets), f.call("softplus", {decay}));
  const Tensor kept = f.call("exp", {rate});
  const Tensor squared = f.call("exp", {f.scale(rate)});
  const Tensor gated = f.multiply(input, opened);
  // Where a text begins, the multiplier is 1.
  const Tensor root = f.call("sqrt", {f.call("sub", {squared})});
  const Tensor multiplier = f.call("add", {f.scale(root)});
  const Tensor normed = f.multiply(gated, multiplier);
  const Tensor states = f.call("gated_recurrence", {normed, f.scale(kept)});
  return f.leave_function(states, {heads, opened, kept, rate, squared, gated, multiplier, normed});
}

inline Tensor recurrent_block(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "temporal_block", "RecurrentGemmaRecurrentBlock");
  const std::int64_t width = model.sizes.width;
  const Tensor open =
      f.activation("act_fn", f.linear("linear_y", input, width, model.channels), model.sizes.activation);
  const Tensor planes = f.permute(f.linear("linear_x", input, width, model.channels), {0, 2, 1});
  const Tensor made = f.layer("conv_1d", "Conv1d", "conv1d", {planes},
                              {{"in_channels", model.channels},
                               {"out_channels", model.channels},
                               {"groups", model.channels},
                               {"kernel_size", Sizes(1, model.kernel)},
                               {"padding", Sizes(1, model.kernel - 1)},
                               {"bias", true}});
  const Tensor within = f.slice(made, 2, 0, model.kernel > 1 ? 1 - model.kernel : Forward::kRest);
  const Tensor mixed = recurrence(f, model, f.permute(within, {0, 2, 1}));
  const Tensor output = f.linear("linear_out", f.multiply(mixed, open), model.channels, width);
  return f.leave_function(output, {open, mixed, input});
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, Tensor ids, Tensor mask) {
  const InModule inside(f, "temporal_block", "RecurrentGemmaSdpaAttention");
  const DecoderSizes& s = model.sizes;
  const std::int64_t each = s.head_width;
  const auto heads = [&](std::string_view name, std::int64_t count) {
    return split_heads(f, f.linear(name, input, s.width, count * each, {.bias = model.bias}), each);
  };
  const Heads made = {heads("q_proj", s.heads), heads("k_proj", s.kv_heads), heads("v_proj", s.kv_heads)};
  const Rotary rotary = rotary_tables(f, ids, model.turned);  // each layer makes its own
  const Tensor query = rotate(f, made.query, rotary, each);
  const Heads turned = {query, rotate(f, made.key, rotary, each), made.value};
  const Tensor attended =
      attend(f, turned, {.groups = s.heads / s.kv_heads, .dropout = s.attention_dropout, .mask = mask});
  const Tensor output = f.linear("o_proj", attended, s.heads * each, s.width);
  return f.leave_function(output, {turned.query, turned.key, turned.value, input});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, Tensor ids, Tensor mask, std::int64_t index) {
  const DecoderSizes& s = model.sizes;
  const bool attends = model.kinds[static_cast<std::size_t>(index) % model.kinds.size()] == "attention";
  const Tensor normed = wide_norm(f, "temporal_pre_norm", kNorm, input, s.width);
  const Tensor mixed = attends ? attention(f, model, normed, ids, mask) : recurrent_block(f, model, normed);
  const Tensor residual = f.add(mixed, input);
  const Tensor again = wide_norm(f, "channel_pre_norm", kNorm, residual, s.width);
  Tensor fed = 0;
  {
    const InModule inside(f, "mlp_block", "RecurrentGemmaMlp");
    fed = gated_layer(f, s.width, s.inner, s.activation, again, {.bias = true});
  }
  return f.add(fed, residual);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  Tensor hidden = 0;
  {
    const InModule inside(f, "model", "RecurrentGemmaModel");
    const Tensor ids = token_ids(f);
    const Tensor embedded = f.embedding("embed_tokens", ids, s.vocabulary, s.width);
    const Tensor mask = f.call("causal_mask", {ids}, {{"padded", true}});
    hidden = stack(f, "layers", "RecurrentGemmaDecoderLayer", s.layers, f.scale(embedded),
                   [&](Tensor x, std::int64_t index) { return block(f, model, x, ids, mask, index); });
    hidden = f.leave_function(wide_norm(f, "final_norm", kNorm, hidden, s.width), {mask});
  }
  decoder_head(f, config, s, head, hidden, {.softcap = model.softcap});
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"RecurrentGemma", "recurrent_gemma", "model", kAlwaysTied}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{2560, 10}, {4096, 16}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("embed_tokens", "layers");
  t.labels();
  if (const auto inner = t.value("layers.0.mlp_block.gate_proj", "out_features"))
    t.set("intermediate_size", 2 * *inner);
  std::string kinds;
  std::string attention;
  std::string recurrent;
  for (std::int64_t at = 0; at < std::min(t.count_of("layers"), ConfigFields::kMostLayers); ++at) {
    const std::string mixer = "layers." + std::to_string(at) + ".temporal_block";
    const bool attends = t.has(mixer + ".q_proj");
    if (attends && attention.empty()) attention = mixer;
    if (!attends && recurrent.empty()) recurrent = mixer;
    kinds.append(kinds.empty() ? "" : ", ").append(attends ? "\"attention\"" : "\"recurrent\"");
  }
  t.set_text("block_types", "[" + kinds + "]");
  t.size("lru_width", recurrent + ".linear_x", "out_features");
  t.size("conv1d_width", recurrent + ".conv_1d", "kernel_size");
  if (attention.empty()) return (void)t.heads_of_width({.published = kPublished, .usual_width = 256}, width);
  t.flag("attention_bias", attention + ".q_proj");
  t.heads({.query = attention + ".q_proj", .key = attention + ".k_proj", .published = kPublished, .usual_width = 256});
}

inline constexpr Architecture kArchitecture = {.name = "recurrent_gemma",
                                               .model_types = names<"recurrent_gemma">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace recurrent_gemma

}  // namespace gpumem::architectures
