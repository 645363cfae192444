// Wav2Vec2-BERT: a conformer (attention and a convolution over time in each block) on the bands of a spectrogram, of
// which two frames are one. A job's sequence length counts these, 50 a second. Attention is written out, with a product
// of its queries and a table of distances. An adapter behind the blocks halves the frames. Batches bring masks of their
// padding, as the feature extractor makes them. Layers are never dropped here (layerdrop), and no frames are masked.
// Source: transformers 5.16, models/wav2vec2_bert/modeling_wav2vec2_bert.py.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/sound_parts.hpp"

namespace gpumem::architectures {

namespace wav2vec2_bert {

struct Model {
  std::int64_t vocabulary = 32;
  std::int64_t bands = 160;
  std::int64_t width = 1024;
  std::int64_t layers = 24;
  std::int64_t heads = 16;
  std::int64_t inner = 4096;
  std::int64_t kernel = 31;
  std::int64_t distances = 73;        ///< rows of the table; 0: there is none
  std::int64_t adapter_layers = 0;    ///< 0: there is no adapter
  std::int64_t adapted_width = 1024;  ///< behind it
  std::int64_t adapter_kernel = 3;
  std::int64_t adapter_stride = 2;
  std::int64_t classifier = 768;
  std::int64_t labels = 2;
  bool masks = true;  ///< a vector stands in masked frames
  std::string_view activation = "swish";
  std::string_view adapter_activation = "relu";
  double dropout = 0.0;
  double activation_dropout = 0.0;
  double attention_dropout = 0.0;
  double feature_dropout = 0.0;
  double convolution_dropout = 0.1;
  double final_dropout = 0.1;

  [[nodiscard]] std::int64_t last_width() const { return adapter_layers > 0 ? adapted_width : width; }
};

inline void read_adapter(ConfigFields& config, Model& model) {
  model.adapted_width = config.size_or({"output_hidden_size"}, model.width);
  model.adapter_kernel = config.size_or({"adapter_kernel_size"}, 3);
  model.adapter_stride = config.size_or({"adapter_stride"}, 2);
  model.adapter_activation = config.text({"adapter_act"}, "relu");
  const std::int64_t layers = config.layers_or("num_adapter_layers", 1);
  if (config.flag("add_adapter", false)) model.adapter_layers = layers;
  if (model.adapter_layers > 0 && model.adapted_width % model.heads != 0) {
    config.fail("does not divide output_hidden_size", "num_attention_heads");
  }
  if (config.flag("use_intermediate_ffn_before_adapter", false)) {
    config.fail("is not known", "use_intermediate_ffn_before_adapter");
  }
}

inline void read_distances(ConfigFields& config, Model& model) {
  const std::int64_t left = config.size_or({"left_max_position_embeddings"}, 64);
  const std::int64_t right = config.size_or({"right_max_position_embeddings"}, 8);
  constexpr std::int64_t kMost = 1 << 20;
  if (left > kMost || right > kMost) config.fail("is more than gpumem takes", "left_max_position_embeddings");
  model.distances = left + right + 1;
  if (config.is_null("position_embeddings_type")) model.distances = 0;
  else if (config.text({"position_embeddings_type"}, "relative_key") != "relative_key") {
    config.fail("other than relative_key is not known", "position_embeddings_type");
  }
}

inline Model read(ConfigFields& config) {
  Model model;
  config.complete(R"({"vocab_size": 32})");
  if (!config.is_null("vocab_size")) model.vocabulary = config.size({"vocab_size"});
  model.bands = config.size_or({"feature_projection_input_dim"}, 160);
  model.width = config.size_or({"hidden_size"}, 1024);
  model.layers = config.layers_or("num_hidden_layers", 24);
  model.heads = config.size_or({"num_attention_heads"}, 16);
  model.inner = config.size_or({"intermediate_size"}, 4096);
  model.kernel = config.size_or({"conv_depthwise_kernel_size"}, 31);
  if (model.width % model.heads != 0) config.fail("does not divide hidden_size", "num_attention_heads");
  constexpr std::int64_t kMost = 1 << 14;
  if (model.kernel > kMost || model.bands > kMost) {
    config.fail("is more than gpumem takes", "conv_depthwise_kernel_size");
  }
  if (model.kernel % 2 == 0) config.fail("must be odd", "conv_depthwise_kernel_size");
  read_distances(config, model);
  read_adapter(config, model);
  model.classifier = config.size_or({"classifier_proj_size"}, 768);
  model.labels = labels_of(config);
  model.masks = config.number({"mask_time_prob"}, 0.05) > 0.0 || config.number({"mask_feature_prob"}, 0.0) > 0.0;
  model.activation = config.text({"hidden_act"}, "swish");
  model.dropout = config.number({"hidden_dropout"}, 0.0);
  model.activation_dropout = config.number({"activation_dropout"}, 0.0);
  model.attention_dropout = config.number({"attention_dropout"}, 0.0);
  model.feature_dropout = config.number({"feat_proj_dropout"}, 0.0);
  model.convolution_dropout = config.number({"conformer_conv_dropout"}, 0.1);
  model.final_dropout = config.number({"final_dropout"}, 0.1);
  if (config.flag("use_weighted_layer_sum", false)) config.fail("is not known", "use_weighted_layer_sum");
  config.ignore({"layerdrop", "apply_spec_augment", "mask_time_length", "mask_time_min_masks", "mask_feature_length",
                 "mask_feature_min_masks", "ctc_loss_reduction", "ctc_zero_infinity", "tdnn_dim", "tdnn_kernel",
                 "tdnn_dilation", "xvector_output_dim", "max_source_positions", "rotary_embedding_base",
                 "feat_proj_dropout", "feat_quantizer_dropout", "num_codevectors_per_group", "codevector_dim",
                 "proj_codevector_dim"});
  return model;
}

/// The batch's frames, which are padded, and the masks that say where.
struct Sound {
  Tensor bands = 0;
  Tensor mask = 0;  ///< [N, S, 1], of booleans as numbers
};

inline Tensor attention(Forward& f, const Model& model, std::int64_t width, Tensor input, std::optional<Tensor> mask) {
  const InModule inside(f, "self_attn", "Wav2Vec2BertSelfAttention");
  const std::int64_t each = width / model.heads;
  const auto parted = [&](std::string_view name) { return split_heads(f, f.linear(name, input, width, width), each); };
  const Tensor query = parted("linear_q");
  const Tensor key = parted("linear_k");
  const Tensor value = parted("linear_v");
  Tensor scores = f.scale(f.call("matmul", {query, f.permute(key, {0, 1, 3, 2})}));
  if (mask && model.distances > 0) {
    const Tensor places = f.call("relative_positions", {input});
    const Tensor table = f.embedding("distance_embedding", places, model.distances, each);
    scores = f.add(scores, f.scale(sound_parts_detail::distance_scores(f, model.heads, query, table)));
  }
  if (mask) scores = f.add(scores, *mask);
  const Tensor weights = f.call("softmax", {scores});
  const Tensor dropped = f.dropout("dropout", weights, model.attention_dropout);
  const Tensor mixed = merge_heads(f, f.call("matmul", {dropped, value}));
  return f.leave_function(f.linear("linear_out", mixed, width, width), {query, key, value, scores, dropped, input});
}

inline Tensor fed(Forward& f, const Model& model, std::string_view name, std::int64_t width, Tensor input,
                  std::string_view activation) {
  return sound_parts_detail::fed(f,
                                 {.name = name,
                                  .class_name = "Wav2Vec2BertFeedForward",
                                  .width = width,
                                  .inner = model.inner,
                                  .activation = activation,
                                  .activation_dropout = model.activation_dropout,
                                  .dropout = model.dropout},
                                 input);
}

inline Tensor convolution(Forward& f, const Model& model, Tensor input, Tensor mask) {
  const InModule inside(f, "conv_module", "Wav2Vec2BertConvolutionModule");
  const std::int64_t width = model.width;
  const auto conv = [&](std::string_view name, Tensor x, std::int64_t out, std::int64_t kernel, std::int64_t groups) {
    return f.layer(name, "Conv1d", "conv1d", {x},
                   {{"in_channels", width},
                    {"out_channels", out},
                    {"kernel_size", Sizes(1, kernel)},
                    {"groups", groups},
                    {"bias", false}});
  };
  const Tensor seen = f.call("masked_fill", {f.layer_norm("layer_norm", input, width), mask});
  Tensor x = conv("pointwise_conv1", f.permute(seen, {0, 2, 1}), 2 * width, 1, 1);
  x = f.layer("glu", "GLU", "glu", {x}, {{"dim", std::int64_t{1}}});
  x = f.call("pad", {x}, {{"padding", Sizes{model.kernel - 1, 0}}});
  x = conv("depthwise_conv", x, width, model.kernel, width);
  x = f.permute(f.layer_norm("depthwise_layer_norm", f.permute(x, {0, 2, 1}), width), {0, 2, 1});
  x = conv("pointwise_conv2", f.activation("activation", x, model.activation), width, 1, 1);
  return f.permute(f.dropout("dropout", x, model.convolution_dropout), {0, 2, 1});
}

inline Tensor block(Forward& f, const Model& model, Tensor input, Tensor scores_mask, Tensor mask) {
  const std::int64_t width = model.width;
  const auto half = [&](std::string_view name, Tensor x) {
    const std::string norm = std::string(name) + "_layer_norm";
    return f.add(f.scale(fed(f, model, name, width, f.layer_norm(norm, x, width), model.activation)), x);
  };
  const Tensor first = half("ffn1", input);
  const Tensor normed = f.layer_norm("self_attn_layer_norm", first, width);
  const Tensor mixed =
      f.dropout("self_attn_dropout", attention(f, model, width, normed, scores_mask), model.attention_dropout);
  const Tensor attended = f.add(mixed, first);
  const Tensor convolved = f.add(attended, convolution(f, model, attended, mask));
  return f.layer_norm("final_layer_norm", half("ffn2", convolved), width);
}

/// Wav2Vec2BertAdapterLayer: attention of fewer frames, which a convolution makes.
inline Tensor adapter_block(Forward& f, const Model& model, Tensor input) {
  const std::int64_t width = model.adapted_width;
  const auto narrowed = [&](std::string_view norm, std::string_view conv) {
    const Tensor rows = f.permute(f.layer_norm(norm, input, width), {0, 2, 1});
    const Tensor both = f.layer(conv, "Conv1d", "conv1d", {rows},
                                {{"in_channels", width},
                                 {"out_channels", 2 * width},
                                 {"kernel_size", Sizes(1, model.adapter_kernel)},
                                 {"stride", Sizes(1, model.adapter_stride)},
                                 {"padding", Sizes(1, model.adapter_stride / 2)}});
    return f.permute(f.layer("activation", "GLU", "glu", {both}, {{"dim", std::int64_t{1}}}), {0, 2, 1});
  };
  const Tensor residual = narrowed("residual_layer_norm", "residual_conv");
  const Tensor read = narrowed("self_attn_layer_norm", "self_attn_conv");
  const Tensor mixed =
      f.dropout("self_attn_dropout", attention(f, model, width, read, std::nullopt), model.convolution_dropout);
  const Tensor attended = f.add(mixed, residual);
  const Tensor normed = f.layer_norm("ffn_layer_norm", attended, width);
  return f.add(fed(f, model, "ffn", width, normed, model.adapter_activation), attended);
}

inline Tensor adapted(Forward& f, const Model& model, Tensor hidden) {
  const InModule inside(f, "adapter", "Wav2Vec2BertAdapter");
  if (model.adapted_width != model.width) {
    hidden = f.linear("proj", hidden, model.width, model.adapted_width);
    hidden = f.layer_norm("proj_layer_norm", hidden, model.adapted_width);
  }
  return stack(f, "layers", "Wav2Vec2BertAdapterLayer", model.adapter_layers, hidden,
               [&](Tensor x, std::int64_t) { return adapter_block(f, model, x); });
}

inline Tensor body(Forward& f, const Model& model, Head head) {
  const InModule inside(f, head == Head::none ? std::string_view() : "wav2vec2_bert", "Wav2Vec2BertModel");
  const Tensor attention_mask = f.token_input("attention_mask");
  const Tensor bands = f.contiguous(sound_parts_detail::token_rows(f, attention_mask, model.bands));
  Tensor hidden = 0;
  {
    const InModule projection(f, "feature_projection", "Wav2Vec2BertFeatureProjection");
    const Tensor normed = f.layer_norm("layer_norm", bands, model.bands);
    f.hand_out(normed);  // extract_features
    hidden = f.dropout("dropout", f.linear("projection", normed, model.bands, model.width), model.feature_dropout);
  }
  if (model.masks) (void)f.parameter("masked_spec_embed", {model.width});
  {
    const InModule encoder(f, "encoder", "Wav2Vec2BertEncoder");
    const Tensor mask = f.call("unsqueeze", {attention_mask}, {{"dim", std::int64_t{2}}});
    hidden = f.dropout("dropout", f.call("masked_fill", {hidden, mask}), model.dropout);
    const Tensor scores_mask = row_mask(f, attention_mask);
    hidden = stack(f, "layers", "Wav2Vec2BertEncoderLayer", model.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x, scores_mask, mask); });
  }
  return model.adapter_layers > 0 ? adapted(f, model, hidden) : hidden;
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const bool known = head == Head::none || head == Head::causal_lm || head == Head::sequence_classification;
  if (head == Head::causal_lm && config.is_null("vocab_size")) config.fail("is null; ForCTC needs it", "vocab_size");
  if (!known) config.fail("only ForCTC, ForSequenceClassification and the model without a head are known");
  // Its class raises an error.
  if (head == Head::sequence_classification && model.adapter_layers > 0) {
    config.fail("is not possible with ForSequenceClassification", "add_adapter");
  }
  if (!config.status()) return;
  f.remark("the sequence length counts frames of sound, 50 a second");
  const Tensor hidden = body(f, model, head);
  const std::int64_t width = model.last_width();
  if (head == Head::causal_lm) {
    const Tensor dropped = f.dropout("dropout", hidden, model.final_dropout);
    const Tensor logits = f.linear("lm_head", dropped, width, model.vocabulary, {.returned = true});
    (void)f.call("cross_entropy", {f.to(f.flatten(logits, 0, 1), "float32")});
  } else if (head == Head::sequence_classification) {
    const Tensor made = f.linear("projector", hidden, model.width, model.classifier);
    const Tensor pooled = f.call("mean", {made}, {{"dim", std::int64_t{1}}});
    (void)f.linear("classifier", pooled, model.classifier, model.labels);
  }
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Wav2Vec2Bert", "wav2vec2-bert", "wav2vec2_bert"}});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const std::string layer = "encoder.layers.0.";
  const std::int64_t width = t.value("feature_projection.projection", "out_features").value_or(0);
  t.size("feature_projection_input_dim", "feature_projection.projection", "in_features");
  t.size("hidden_size", "feature_projection.projection", "out_features");
  t.count("num_hidden_layers", "encoder.layers");
  t.size("intermediate_size", layer + "ffn1.intermediate_dense", "out_features");
  t.size("conv_depthwise_kernel_size", layer + "conv_module.depthwise_conv", "kernel_size");
  const std::string distances = layer + "self_attn.distance_embedding";
  const std::int64_t rows = t.value(distances, "num_embeddings").value_or(0);
  constexpr std::int64_t kRight = 8;
  if (rows > kRight + 1) t.set("left_max_position_embeddings", rows - kRight - 1);
  else t.set_text("position_embeddings_type", "null");
  const std::int64_t each = t.value(distances, "embedding_dim").value_or(64);
  t.set("num_attention_heads", std::max<std::int64_t>(width / each, 1));
  if (rows == 0) t.assume("heads of width 64, as published models have");
  t.there("add_adapter", "adapter");
  t.count("num_adapter_layers", "adapter.layers");
  t.size("output_hidden_size", "adapter.proj", "out_features");
  t.size("adapter_kernel_size", "adapter.layers.0.residual_conv", "kernel_size");
  t.size("adapter_stride", "adapter.layers.0.residual_conv", "stride");
  t.size("vocab_size", "/lm_head", "out_features");
  t.size("classifier_proj_size", "/projector", "out_features");
  t.size("num_labels", "/classifier", "out_features");
  t.dropout("feat_proj_dropout", "feature_projection.dropout");
  t.dropout("hidden_dropout", "encoder.dropout");
  t.dropout("activation_dropout", layer + "ffn1.intermediate_dropout");
  t.dropout("attention_dropout", layer + "self_attn.dropout");
  t.dropout("conformer_conv_dropout", layer + "conv_module.dropout");
  t.dropout("final_dropout", "/dropout");
}

inline constexpr Architecture kArchitecture = {.name = "wav2vec2_bert",
                                               .model_types = names<"wav2vec2-bert">,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree,
                                               .blocks = names<"Wav2Vec2BertEncoderLayer">};

}  // namespace wav2vec2_bert

}  // namespace gpumem::architectures
