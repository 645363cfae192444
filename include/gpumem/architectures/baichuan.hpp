// Baichuan and Baichuan 2: Llamas whose queries, keys and values are one projection. Those of 7 B have rotary positions
// in float32; those of 13 B a bias that falls with the distance (ALiBi) and attention written out. The head of
// Baichuan 2 norms its weight in each pass.
// Source: baichuan-inc/Baichuan2-7B-Base and Baichuan2-13B-Base, modeling_baichuan.py: Attention, BaichuanAttention,
// get_alibi_mask, NormHead; baichuan-inc/Baichuan-7B and Baichuan-13B-Base, the same file.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace baichuan {

struct Model {
  DecoderSizes sizes;
  bool turns = true;  ///< rotary positions; else ALiBi
  bool norms_weight = false;

  [[nodiscard]] std::string_view attention_class() const { return turns ? "Attention" : "BaichuanAttention"; }
  [[nodiscard]] std::string_view block_class() const { return turns ? "DecoderLayer" : "BaichuanLayer"; }
};

/// Only the models of 7 B have a number of positions, only Baichuan 2 a weight of its z-loss.
inline Model read(ConfigFields& config) {
  Model model;
  model.sizes = decoder_sizes(config);
  model.turns = config.find("max_position_embeddings") != nullptr;
  model.norms_weight = config.find("z_loss_weight") != nullptr;
  config.ignore({"model_max_length"});
  return model;
}

/// What one pass computes of positions alone.
struct Positions {
  Tensor ids = 0;
  Tensor mask = 0;  ///< with ALiBi [N, heads, S, S]
};

/// Of float32 copies, by tables that each layer picks anew.
inline std::array<Tensor, 2> turned(Forward& f, const Model& model, Tensor query, Tensor key, Tensor ids) {
  const std::int64_t each = model.sizes.head_width;
  const auto table = [&] {
    return f.call("rotary_table", {ids}, {{"width", each}, {"dtype", std::string("float32")}});
  };
  const Tensor cosines = table();
  const Rotary rotary = {.cosines = cosines, .sines = table(), .width = each};
  const auto turn = [&](Tensor heads) { return f.as_type_of(rotate(f, f.to(heads, "float32"), rotary, each), heads); };
  const Tensor turned_query = turn(query);
  return {turned_query, turn(key)};
}

/// Scores, their sum with the mask, and the weights in the model's own type.
inline Tensor attended_by_distance(Forward& f, const Heads& heads, Tensor mask) {
  const Tensor scores = f.scale(f.call("matmul", {heads.query, f.permute(heads.key, {0, 1, 3, 2})}));
  const Tensor bounded = f.call("clamp", {f.add(scores, mask)});
  return merge_heads(f, f.call("matmul", {f.call("softmax", {bounded}), heads.value}));
}

/// Tensor parallel ranks each have all of it: no framework says how they share W_pack, whose rows are queries, keys and
/// values one after the other.
inline Tensor attention(Forward& f, const Model& model, Tensor input, const Positions& positions) {
  const InModule inside(f, "self_attn", model.attention_class());
  const DecoderSizes& s = model.sizes;
  const Tensor packed = f.linear("W_pack", input, s.width, 3 * s.width, {.bias = false});
  const Tensor parted = f.unflatten(packed, 2, {3, s.width});
  const auto heads = [&](std::int64_t part) { return split_heads(f, f.select(parted, 2, part), s.head_width); };
  Heads made = {heads(0), heads(1), heads(2)};
  if (model.turns) {
    const std::array<Tensor, 2> both = turned(f, model, made.query, made.key, positions.ids);
    made = {both[0], both[1], made.value};
  }
  f.cache(made.key);
  f.cache(made.value);
  const Tensor attended = model.turns ? attend(f, made, {.copies = false, .mask = positions.mask})
                                      : attended_by_distance(f, made, positions.mask);
  const Tensor output = f.linear("o_proj", attended, s.width, s.width, {.bias = false});
  return f.leave_function(output, {packed, made.query, made.key, input});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Positions& positions) {
  const std::int64_t width = model.sizes.width;
  const Tensor attended =
      f.add(input, attention(f, model, f.rms_norm("input_layernorm", input, width, "RMSNorm"), positions));
  const Tensor again = f.rms_norm("post_attention_layernorm", attended, width, "RMSNorm");
  return f.add(attended, gated_feed_forward(f, model.sizes, again, "MLP"));
}

/// The mask of padding, and with ALiBi its sum with the biases of all heads.
inline Tensor mask_of(Forward& f, const Model& model, Tensor ids) {
  if (model.turns) return f.call("causal_mask", {ids}, {{"padded", true}});
  const Tensor distances = f.call("rotary_table", {ids}, {{"width", model.sizes.heads}});
  const Tensor biases = f.add(f.call("causal_mask", {ids}), f.permute(distances, {0, 3, 1, 2}));
  return f.add(f.call("causal_mask", {ids}, {{"padded", true}}), biases);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const DecoderSizes& s = model.sizes;
  if (!config.status()) return;
  f.doubt({model::Doubt::About::kernels,
           "xformers is taken not to be installed; with it Baichuan's attention is a kernel that keeps less", false});
  decoder_model(f, config, s, head, {.class_name = "BaichuanModel", .head = {.norms_weight = model.norms_weight}},
                [&](Tensor ids, Tensor hidden) {
                  const Positions positions = {ids, mask_of(f, model, ids)};
                  hidden = stack(f, "layers", model.block_class(), s.layers, hidden,
                                 [&](Tensor x, std::int64_t) { return block(f, model, x, positions); });
                  return f.leave_function(f.rms_norm("norm", hidden, s.width, "RMSNorm"), {positions.mask});
                });
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Baichuan", "baichuan", "model"}, {"BaiChuan", "baichuan", "model"}});
/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{4096, 32}, {5120, 40}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::int64_t width = t.body("embed_tokens", "layers");
  t.size("intermediate_size", "layers.0.mlp.gate_proj", "out_features");
  t.labels();
  if (t.has("layers.0.self_attn.rotary_emb") || width < 5120) t.set("max_position_embeddings", 4096);
  if (!t.value("/lm_head", "out_features")) t.set("z_loss_weight", 0);  // NormHead prints no sizes
  t.heads_of_width({.published = kPublished, .usual_width = 128}, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "baichuan", .model_types = names<"baichuan">, .write = write, .classes = kClasses, .read_tree = read_tree};

}  // namespace baichuan

}  // namespace gpumem::architectures
