// ViT and DeiT: images cut into patches, a class token (DeiT: and one for distillation) before them, learned positions.
// Source: transformers 4.48, models/vit/modeling_vit.py (ViTSdpaSelfAttention), deit.
#pragma once

#include <array>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

namespace gpumem::architectures {

namespace vit_detail {

inline constexpr std::array<std::string_view, 2> kModelTypes = {"vit", "deit"};

struct Model {
  std::int64_t width = 1;
  std::int64_t layers = 1;
  std::int64_t heads = 1;
  std::int64_t inner = 1;
  std::int64_t side = 224;
  std::int64_t patch = 16;
  std::int64_t channels = 3;
  std::int64_t labels = 2;
  double dropout = 0.0;
  double attention_dropout = 0.0;
  std::string_view activation = "gelu";
  bool bias = true;
  bool distils = false;
  bool teaches = false;  ///< a second classifier reads the distillation token

  [[nodiscard]] std::int64_t patches() const { return (side / patch) * (side / patch); }
  [[nodiscard]] std::int64_t extra_tokens() const { return distils ? 2 : 1; }
};

inline Model read(ConfigFields& config) {
  Model model;
  model.distils = config.text({"model_type"}, "vit") == "deit";
  const core::JsonValue* classes = config.find("architectures");
  const bool named = classes != nullptr && classes->is(core::JsonValue::Kind::list) && classes->size() > 0 &&
                     (*classes->items().begin()).is("DeiTForImageClassificationWithTeacher");
  model.teaches = model.distils && named;
  model.width = config.size({"hidden_size"});
  model.layers = config.layers({"num_hidden_layers"});
  model.heads = config.size({"num_attention_heads"});
  model.inner = config.size({"intermediate_size"});
  model.side = config.size_or({"image_size"}, 224);
  model.patch = config.size_or({"patch_size"}, 16);
  model.channels = config.size_or({"num_channels"}, 3);
  model.labels = labels_of(config);
  model.dropout = config.number({"hidden_dropout_prob"}, 0.0);
  model.attention_dropout = config.number({"attention_probs_dropout_prob"}, 0.0);
  model.activation = config.text({"hidden_act"}, "gelu");
  model.bias = config.flag("qkv_bias", true);
  if (model.width % model.heads != 0) config.fail("does not divide hidden_size", "num_attention_heads");
  if (model.side < model.patch) config.fail("is smaller than patch_size", "image_size");
  config.ignore({"encoder_stride"});
  return model;
}

inline Tensor embeddings(Forward& f, const Model& model) {
  const InModule inside(f, "embeddings", "ViTEmbeddings");
  const std::int64_t width = model.width;
  const Tensor image = f.sample_input("pixel_values", {model.channels, model.side, model.side});
  Tensor rows = 0;
  {
    const InModule patches(f, "patch_embeddings", "ViTPatchEmbeddings");
    const Tensor cut = f.layer("projection", "Conv2d", "conv2d", {image},
                               {{"in_channels", model.channels},
                                {"out_channels", width},
                                {"kernel_size", Sizes(2, model.patch)},
                                {"stride", Sizes(2, model.patch)}});
    rows = f.permute(f.flatten(cut, 2, 3), {0, 2, 1});
  }
  const std::vector<core::Dim> each = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(-1)};
  const auto token = [&](std::string_view name) {
    return f.call("expand", {f.parameter(name, {1, 1, width})}, {{"shape", each}});
  };
  const Tensor first = token("cls_token");
  const Tensor all =
      model.distils ? f.concatenate({first, token("distillation_token"), rows}, 1) : f.concatenate({first, rows}, 1);
  const Tensor places = f.parameter("position_embeddings", {1, model.patches() + model.extra_tokens(), width});
  return f.dropout("dropout", f.add(all, places), model.dropout);
}

inline Tensor block(Forward& f, const Model& model, Tensor input) {
  const std::int64_t width = model.width;
  const Tensor normed = f.layer_norm("layernorm_before", input, width);
  Tensor mixed = 0;
  {
    const InModule inside(f, "attention", "ViTSdpaAttention");
    const auto heads = [&](std::string_view name) {
      return split_heads(f, f.linear(name, normed, width, width, {.bias = model.bias}), width / model.heads);
    };
    const Tensor key = heads("key");
    const Tensor value = heads("value");
    const Tensor query = heads("query");
    mixed = attend(f, {query, key, value}, {.dropout = model.attention_dropout, .copies = false});
    mixed = f.dropout("dropout", f.linear("output", mixed, width, width), model.dropout);
  }
  const Tensor attended = f.add(mixed, input);
  const Tensor again = f.layer_norm("layernorm_after", attended, width);
  const Tensor wide = f.linear("intermediate", again, width, model.inner);
  const Tensor active = f.activation("intermediate_act_fn", wide, model.activation);
  const Tensor narrow = f.dropout("dropout", f.linear("output", active, model.inner, width), model.dropout);
  return f.add(narrow, attended);
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  Tensor hidden = 0;
  {
    const InModule inside(f, "vit", "ViTModel");
    hidden = embeddings(f, model);
    const InModule encoder(f, "encoder", "ViTEncoder");
    hidden =
        stack(f, "layer", "ViTLayer", model.layers, hidden, [&](Tensor x, std::int64_t) { return block(f, model, x); });
  }
  hidden = f.layer_norm("layernorm", hidden, model.width);
  const Tensor first = f.select(hidden, 1, 0);
  if (head == Head::none) {
    f.hand_out(hidden);
    f.call("tanh", {f.linear("pooler", first, model.width, model.width)});
    return;
  }
  if (!model.teaches) {
    f.linear("classifier", first, model.width, model.labels);
    return;
  }
  const Tensor one = f.linear("cls_classifier", first, model.width, model.labels);
  const Tensor other = f.linear("distillation_classifier", f.select(hidden, 1, 1), model.width, model.labels);
  f.hand_out(one);
  f.hand_out(other);
  f.scale(f.add(one, other));
}

}  // namespace vit_detail

[[nodiscard]] inline const Architecture& vit() {
  static constexpr Architecture kArchitecture = {.name = "vit",
                                                 .model_types = vit_detail::kModelTypes,
                                                 .usual_head = Head::sequence_classification,
                                                 .write = vit_detail::write};
  return kArchitecture;
}

}  // namespace gpumem::architectures
