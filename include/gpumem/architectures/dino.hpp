// DINOv2 and DINOv3: ViT whose parts are scaled before they are added, with tokens that nothing reads (registers).
// DINOv3 turns queries and keys of patches by rotary positions, which learned ones stand for in DINOv2.
// Source: transformers 5.16, models/dinov2, dinov2_with_registers, dinov3_vit.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/image_tokens.hpp"

namespace gpumem::architectures {

namespace dino {

inline constexpr std::array<std::string_view, 3> kModelTypes = {"dinov2", "dinov2_with_registers", "dinov3_vit"};

struct Model {
  std::int64_t width = 1;
  std::int64_t layers = 1;
  std::int64_t heads = 1;
  std::int64_t inner = 1;
  std::int64_t side = 224;  ///< of an image
  std::int64_t patch = 16;
  std::int64_t channels = 3;
  std::int64_t labels = 2;
  double dropout = 0.0;
  double attention_dropout = 0.0;
  std::string_view activation = "gelu";
  bool third = false;          ///< DINOv3
  std::int64_t registers = 0;  ///< tokens that nothing reads
  bool masks_patches = true;   ///< a vector stands in masked patches
  bool gated = false;          ///< feed-forward layers
  bool query_bias = true;
  bool key_bias = true;
  bool value_bias = true;
  bool projection_bias = true;
  bool inner_bias = true;

  [[nodiscard]] std::int64_t patches() const { return (side / patch) * (side / patch); }
  [[nodiscard]] std::string_view prefix() const {
    return third ? "DINOv3ViT" : registers > 0 ? "Dinov2WithRegisters" : "Dinov2";
  }
  [[nodiscard]] std::string part(std::string_view name) const { return std::string(prefix()).append(name); }
};

inline void read_third(ConfigFields& config, Model& model) {
  model.inner = config.size_or({"intermediate_size"}, 1536);
  model.registers = config.count_or("num_register_tokens", 0);
  model.gated = config.flag("use_gated_mlp", false);
  model.query_bias = config.flag("query_bias", true);
  model.key_bias = config.flag("key_bias", false);
  model.value_bias = config.flag("value_bias", true);
  model.projection_bias = config.flag("proj_bias", true);
  model.inner_bias = config.flag("mlp_bias", true);
  model.attention_dropout = config.number({"attention_dropout"}, 0.0);
  config.ignore({"rope_theta", "pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale"});
}

inline void read_second(ConfigFields& config, Model& model, bool registers) {
  const double ratio = config.number({"mlp_ratio"}, 4.0);
  constexpr double kMostTimes = 64.0;
  if (ratio <= 0.0 || ratio > kMostTimes) return config.fail("must be above 0 and at most 64", "mlp_ratio");
  model.inner = std::max<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(model.width) * ratio), 1);
  model.gated = config.flag("use_swiglu_ffn", false);
  // Dinov2SwiGLUFFN: two thirds, and whole eights
  if (model.gated) model.inner = (static_cast<std::int64_t>(static_cast<double>(model.inner) * 2 / 3) + 7) / 8 * 8;
  if (registers) model.registers = config.size_or({"num_register_tokens"}, 4);
  model.masks_patches = config.flag("use_mask_token", true);
  const bool bias = config.flag("qkv_bias", true);
  model.query_bias = model.key_bias = model.value_bias = bias;
  model.dropout = config.number({"hidden_dropout_prob"}, 0.0);
  model.attention_dropout = config.number({"attention_probs_dropout_prob"}, 0.0);
}

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "dinov2");
  model.third = type == kModelTypes[2];
  model.width = config.size_or({"hidden_size"}, model.third ? 384 : 768);
  model.layers = config.layers_or("num_hidden_layers", 12);
  model.heads = config.size_or({"num_attention_heads"}, model.third ? 6 : 12);
  model.side = config.size_or({"image_size"}, 224);
  model.patch = config.size_or({"patch_size"}, type == kModelTypes[0] ? 14 : 16);
  model.channels = config.size_or({"num_channels"}, 3);
  model.activation = config.text({"hidden_act"}, "gelu");
  model.labels = labels_of(config);
  if (model.third) read_third(config, model);
  else read_second(config, model, type == kModelTypes[1]);
  if (model.side < model.patch) config.fail("is smaller than patch_size", "image_size");
  if (model.width % model.heads != 0) config.fail("does not divide hidden_size", "num_attention_heads");
  if (config.number({"drop_path_rate"}, 0.0) > 0.0)
    config.fail("blocks that are left out are not known", "drop_path_rate");
  config.ignore({"layerscale_value", "out_features", "out_indices", "apply_layernorm", "reshape_hidden_states",
                 "stage_names", "return_class_token"});
  return model;
}

inline Tensor embeddings(Forward& f, const Model& model) {
  const InModule inside(f, "embeddings", model.part("Embeddings"));
  const Tensor image = f.sample_input("pixel_values", {model.channels, model.side, model.side});
  const auto tokens = [&](std::string_view name, std::int64_t count) {
    return learned_tokens(f, name, model.width, count);
  };
  Tensor rows = 0;
  {
    std::optional<InModule> patches;  // of DINOv3 the convolution itself has that name
    if (!model.third) patches.emplace(f, "patch_embeddings", model.part("PatchEmbeddings"));
    rows = cut_patches(f, model.third ? "patch_embeddings" : "projection", image,
                       {model.channels, model.width, model.patch});
  }
  if (model.masks_patches) (void)f.parameter("mask_token", {1, 1, model.width});
  const Tensor first = tokens("cls_token", 1);
  if (model.third) {
    if (model.registers == 0) return f.concatenate({first, rows}, 1);
    return f.concatenate({first, tokens("register_tokens", model.registers), rows}, 1);
  }
  const Tensor places = f.parameter("position_embeddings", {1, model.patches() + 1, model.width});
  Tensor all = f.add(f.concatenate({first, rows}, 1), places);
  if (model.registers > 0) {
    const Tensor extra = tokens("register_tokens", model.registers);
    all = f.concatenate({f.slice(all, 1, 0, 1), extra, f.slice(all, 1, 1, Forward::kRest)}, 1);
  }
  return f.dropout("dropout", all, model.dropout);
}

/// DINOv3 turns queries and keys of patches alone.
inline Tensor turned(Forward& f, const Model& model, Tensor heads, const Rotary& rotary) {
  const std::vector<Tensor> parts = f.split(heads, 2, {1 + model.registers, model.patches()});
  return f.concatenate({parts[0], rotate(f, parts[1], rotary, rotary.width)}, 2);
}

inline Tensor attention(Forward& f, const Model& model, Tensor normed, const Rotary& rotary) {
  const std::int64_t width = model.width;
  const InModule outer(f, "attention", model.part("Attention"));
  const auto heads = [&](std::string_view name, bool bias) {
    return split_heads(f, f.linear(name, normed, width, width, {.bias = bias}), width / model.heads);
  };
  if (model.third) {
    const Tensor query = heads("q_proj", model.query_bias);
    const Tensor key = heads("k_proj", model.key_bias);
    const Tensor value = heads("v_proj", model.value_bias);
    const Tensor straight = turned(f, model, query, rotary);
    const Tensor mixed = attend(f, {straight, turned(f, model, key, rotary), value},
                                {.dropout = model.attention_dropout, .copies = false, .causal = false});
    return f.linear("o_proj", mixed, width, width, {.bias = model.projection_bias});
  }
  Tensor mixed = 0;
  {
    const InModule inside(f, "attention", model.part("SelfAttention"));
    const Tensor key = heads("key", model.key_bias);
    const Tensor value = heads("value", model.value_bias);
    const Tensor query = heads("query", model.query_bias);
    const auto copied = [&](Tensor part) { return f.contiguous(part, When::in_4_52); };
    mixed = attend(f, {copied(query), copied(key), copied(value)},
                   {.dropout = model.attention_dropout, .copies = false, .causal = false});
  }
  const InModule output(f, "output", model.part("SelfOutput"));
  return f.dropout("dropout", f.linear("dense", mixed, width, width), model.dropout);
}

inline Tensor fed(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "mlp", model.part("MLP"));
  const Linear linear = {.bias = model.inner_bias};
  if (model.third && model.gated) {
    const Tensor open =
        f.activation("act_fn", f.linear("gate_proj", input, model.width, model.inner, linear), model.activation);
    const Tensor up = f.linear("up_proj", input, model.width, model.inner, linear);
    return f.linear("down_proj", f.multiply(open, up), model.inner, model.width, linear);
  }
  if (model.gated) {
    const Tensor both = f.linear("weights_in", input, model.width, 2 * model.inner);
    const std::vector<Tensor> halves = f.split(both, 2, {model.inner, model.inner});
    const Tensor gated = f.multiply(f.activation("silu", halves[0], "silu"), halves[1]);
    return f.linear("weights_out", gated, model.inner, model.width);
  }
  const Tensor wide = f.linear(model.third ? "up_proj" : "fc1", input, model.width, model.inner, linear);
  const Tensor open = f.activation(model.third ? "act_fn" : "activation", wide, model.activation);
  return f.linear(model.third ? "down_proj" : "fc2", open, model.inner, model.width, linear);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, const Rotary& rotary) {
  const auto scaled = [&](std::string_view name, Tensor part) {
    const InModule inside(f, name, model.part("LayerScale"));
    return f.multiply(part, f.parameter("lambda1", {model.width}));
  };
  const Tensor normed = f.layer_norm("norm1", input, model.width);
  const Tensor attended = f.add(scaled("layer_scale1", attention(f, model, normed, rotary)), input);
  const Tensor again = f.layer_norm("norm2", attended, model.width);
  return f.add(scaled("layer_scale2", fed(f, model, again)), attended);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const bool classifies = head == Head::sequence_classification && !model.third;
  if (!classifies && head != Head::none)
    config.fail("only Dinov2ForImageClassification and models without a head are known");
  if (!config.status()) return;
  // Published configs of DINOv2 have 518, and their processors crop to 224.
  const std::string side = std::to_string(model.side);
  f.remark("each sample is an image of " + side + " x " + side +
           " pixels, as image_size says; where a processor crops it to fewer, set image_size to these");
  Tensor hidden = 0;
  {
    const std::string_view body = model.third ? "" : model.registers > 0 ? "dinov2_with_registers" : "dinov2";
    std::optional<InModule> inside;
    if (classifies) inside.emplace(f, body, model.part("Model"));
    const Tensor embedded = embeddings(f, model);
    const std::int64_t each = model.width / model.heads;
    const auto table = [&](std::string_view name) {
      return f.constant(name, {1, 1, model.patches(), each}, "parameters");
    };
    const Rotary rotary = model.third ? Rotary{table("cos"), table("sin"), each, false} : Rotary{};
    {
      const InModule encoder(f, model.third ? "model" : "encoder", model.part("Encoder"));
      hidden = stack(f, "layer", model.part("Layer"), model.layers, embedded,
                     [&](Tensor x, std::int64_t) { return block(f, model, x, rotary); });
    }
    hidden = f.layer_norm(model.third ? "norm" : "layernorm", hidden, model.width);
  }
  if (!classifies) return;
  const Tensor patches = f.slice(hidden, 1, 1 + model.registers, Forward::kRest);
  const Tensor mean = f.call("mean", {patches}, {{"dim", std::int64_t{1}}});
  f.linear("classifier", f.concatenate({f.select(hidden, 1, 0), mean}, 1), 2 * model.width, model.labels);
}

inline constexpr auto kClasses =
    std::to_array<ModelClass>({{"Dinov2", "dinov2", "dinov2"},
                               {"Dinov2WithRegisters", "dinov2_with_registers", "dinov2_with_registers"},
                               {"DINOv3ViT", "dinov3_vit"}});

/// What print(model) shows. Positions and registers are bare parameters: images are as large as the job's, or as
/// published.
inline void read_tree(TreeFields& t) {
  const bool third = t.class_name().starts_with("DINOv3");
  const bool registers = t.class_name().starts_with("Dinov2WithRegisters");
  const std::string cut = third ? "embeddings.patch_embeddings" : "embeddings.patch_embeddings.projection";
  const std::string blocks = third && t.has("model.layer") ? "model.layer" : third ? "layer" : "encoder.layer";
  const std::string mlp = blocks + ".0.mlp.";
  const std::string attention = blocks + ".0.attention.";
  const std::int64_t width = t.value(cut, "out_channels").value_or(0);
  constexpr std::int64_t kPublishedSide = 518;
  t.size("hidden_size", cut, "out_channels");
  t.size("num_channels", cut, "in_channels");
  t.size("patch_size", cut, "kernel_size");
  t.count("num_hidden_layers", blocks);
  t.heads_of_width({.usual_width = 64}, width);
  if (third || !t.input().empty()) {
    t.image_size("image_size");
  } else {
    t.set("image_size", kPublishedSide);
    t.assume("positions of images of 518 x 518, as published models have");
  }
  t.labels();
  if (third) {
    t.size("intermediate_size", mlp + "up_proj", "out_features");
    t.there("use_gated_mlp", mlp + "gate_proj");
    t.activation("hidden_act", mlp + "act_fn");
    for (const auto& [field, layer] : {std::pair("query_bias", "q_proj"), std::pair("key_bias", "k_proj"),
                                       std::pair("value_bias", "v_proj"), std::pair("proj_bias", "o_proj")}) {
      t.flag(field, attention + layer);
    }
    t.flag("mlp_bias", mlp + "up_proj");
  } else {
    t.there("use_swiglu_ffn", mlp + "weights_in");
    t.activation("hidden_act", mlp + "activation");
    if (const auto inner = t.value(mlp + "fc1", "out_features"); inner && width > 0) t.set("mlp_ratio", *inner / width);
    t.flag("qkv_bias", attention + "attention.query");
  }
  if (third || registers) {
    t.set("num_register_tokens", 4);
    t.assume("4 registers, as published models have");
  }
}

inline constexpr Architecture kArchitecture = {
    .name = "dino",
    .model_types = kModelTypes,
    .usual_head = Head::none,
    .write = write,
    .classes = kClasses,
    .read_tree = read_tree,
    .blocks = names<"Dinov2Layer", "Dinov2WithRegistersLayer", "DINOv3ViTLayer">};

}  // namespace dino

}  // namespace gpumem::architectures
