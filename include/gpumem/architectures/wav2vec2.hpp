// wav2vec 2.0, HuBERT, UniSpeech, data2vec and WavLM: convolutions over samples of sound, a convolution whose weight is
// normed in place of positions, and an encoder; WavLM's attention adds a learned bias of distances, gated by each
// token. A job's sequence length counts samples of sound, of which there are 16,000 a second. Source:
// transformers 4.57, models/wav2vec2/modeling_wav2vec2.py, hubert, unispeech, unispeech_sat, wavlm. Masks of
// spectrograms write in place. Layers are never dropped here (layerdrop). The loss is taken of one label a frame, as
// large as CTC's log-probabilities; CTC's tables of targets, which are small, are not counted.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/sound_parts.hpp"

namespace gpumem::architectures {

namespace wav2vec2 {

inline constexpr auto kClasses = std::to_array<ModelClass>({{"Wav2Vec2", "wav2vec2", "wav2vec2"},
                                                            {"Hubert", "hubert", "hubert"},
                                                            {"WavLM", "wavlm", "wavlm"},
                                                            {"UniSpeechSat", "unispeech-sat", "unispeech_sat"},
                                                            {"UniSpeech", "unispeech", "unispeech"},
                                                            {"Data2VecAudio", "data2vec-audio", "data2vec_audio"}});

struct Model : sound_parts_detail::Front {
  DecoderSizes sizes;
  std::string_view module = "wav2vec2";
  bool stable = false;            ///< norms stand before each part
  bool masks = true;              ///< a vector stands in masked frames
  std::int64_t buckets = 320;     ///< WavLM: of distances
  std::int64_t adapter = 0;       ///< width of an adapter behind each layer; 0: there is none
  std::int64_t classifier = 256;  ///< what a classifier projects to
  std::int64_t labels = 2;
  double dropout = 0.1;
  double activation_dropout = 0.1;
  double final_dropout = 0.1;
  std::int64_t groups = 2;        ///< of the codes that pretraining learns
  std::int64_t codes = 320;       ///< of a group
  std::int64_t code_width = 256;  ///< of all groups together
  std::int64_t compared = 256;    ///< width in which frames and codes are compared
  std::int64_t negatives = 100;   ///< codes of other frames that each frame is compared with
  double feature_dropout = 0.0;   ///< before the codes

  [[nodiscard]] bool gates() const { return prefix == "WavLM"; }
};

inline void refuse_others(ConfigFields& config) {
  if (config.flag("add_adapter", false)) config.fail("is not known", "add_adapter");
  if (config.flag("conv_pos_batch_norm", false)) config.fail("is not known", "conv_pos_batch_norm");
  if (config.flag("use_weighted_layer_sum", false)) config.fail("is not known", "use_weighted_layer_sum");
  config.ignore({"adapter_kernel_size",
                 "adapter_stride",
                 "apply_spec_augment",
                 "contrastive_logits_temperature",
                 "ctc_loss_reduction",
                 "ctc_zero_infinity",
                 "diversity_loss_weight",
                 "freeze_feat_extract_train",
                 "layerdrop",
                 "mask_channel_length",
                 "mask_channel_min_space",
                 "mask_channel_other",
                 "mask_channel_prob",
                 "mask_channel_selection",
                 "mask_feature_length",
                 "mask_feature_min_masks",
                 "mask_feature_prob",
                 "mask_time_length",
                 "mask_time_min_masks",
                 "mask_time_min_space",
                 "mask_time_other",
                 "mask_time_selection",
                 "max_bucket_distance",
                 "no_mask_channel_overlap",
                 "no_mask_time_overlap",
                 "num_adapter_layers",
                 "num_ctc_classes",
                 "num_feat_extract_layers",
                 "output_hidden_size",
                 "replace_prob",
                 "tdnn_dilation",
                 "tdnn_dim",
                 "tdnn_kernel",
                 "xvector_output_dim",
                 "tokenizer_class",
                 "vocab_size",
                 "feat_extract_dropout",
                 "gradient_checkpointing",
                 "num_hidden_layers",
                 "hidden_dropout_prob"});
}

inline Model read(ConfigFields& config) {
  Model model;
  const std::string_view type = config.text({"model_type"}, "wav2vec2");
  for (const ModelClass& row : kClasses) {
    if (row.model_type != type) continue;
    model.prefix = row.prefix;
    model.module = row.body;
  }
  config.complete(R"({"vocab_size": 32, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
                      "intermediate_size": 3072})");
  model.sizes = decoder_sizes(config, {.activation = "gelu"});
  model.sizes.attention_dropout = config.number({"attention_dropout"}, 0.1);
  sound_parts_detail::read_front(config, model.sizes.width, model);
  model.stable = config.flag("do_stable_layer_norm", false);
  model.masks = type.starts_with("unispeech") || config.number({"mask_time_prob"}, 0.05) > 0.0 ||
                config.number({"mask_feature_prob"}, 0.0) > 0.0;
  model.buckets = config.size_or({"num_buckets"}, 320);
  model.adapter = config.count_or("adapter_attn_dim", 0);
  model.classifier = config.size_or({"classifier_proj_size"}, 256);
  model.labels = labels_of(config);
  model.dropout = config.number({"hidden_dropout"}, 0.1);
  model.activation_dropout = config.number({"activation_dropout"}, 0.1);
  model.final_dropout = config.number({"final_dropout"}, 0.1);
  constexpr std::int64_t kMost = 1 << 20;
  model.groups = config.size_or({"num_codevector_groups"}, 2);
  model.codes = config.size_or({"num_codevectors_per_group"}, 320);
  model.code_width = config.size_or({"codevector_dim"}, 256);
  model.compared = config.size_or({"proj_codevector_dim"}, 256);
  model.negatives = config.size_or({"num_negatives"}, 100);
  model.feature_dropout = config.number({"feat_quantizer_dropout"}, 0.0);
  if (std::max({model.groups, model.codes, model.negatives}) > kMost || model.code_width % model.groups != 0) {
    config.fail("must be a multiple of num_codevector_groups", "codevector_dim");
  }
  refuse_others(config);
  return model;
}

/// The bias of distances [heads, frames, frames], which the first layer makes and all layers gate.
inline Tensor distances(Forward& f, const Model& model, Tensor hidden) {
  const Tensor places = f.call("relative_positions", {hidden});
  const Tensor table = f.embedding("rel_attn_embed", places, model.buckets, model.sizes.heads);
  return f.permute(table, {2, 0, 1});
}

/// WavLM's bias for each sample: distances times a gate of each token and head.
inline Tensor gated_bias(Forward& f, const Model& model, Tensor input, Tensor bias) {
  constexpr std::int64_t kParts = 4;
  const DecoderSizes& s = model.sizes;
  const Tensor constant = f.parameter("gru_rel_pos_const", {1, s.heads, 1, 1});
  const Tensor heads = split_heads(f, input, s.head_width);
  const Tensor flat = f.linear("gru_rel_pos_linear", heads, s.head_width, 2 * kParts);
  const Tensor sums = f.call("sum", {f.unflatten(flat, 3, {2, kParts})}, {{"dim", std::int64_t{-1}}});
  const std::vector<Tensor> gates = f.split(f.call("sigmoid", {sums}), 3, {1, 1});
  const Tensor inner = f.call("sub", {f.multiply(gates[1], constant)});
  const Tensor open = f.call("add", {f.multiply(gates[0], inner)});
  return f.multiply(open, bias);
}

inline Tensor attention(Forward& f, const Model& model, Tensor input, std::optional<Tensor>& bias) {
  const DecoderSizes& s = model.sizes;
  const std::string own = model.named("Attention");
  if (!model.gates()) {
    return stream_attention(f,
                            {.name = "attention",
                             .class_name = own,
                             .width = s.width,
                             .heads = s.heads,
                             .dropout = s.attention_dropout,
                             .copies = false},
                            input, input);
  }
  const InModule inside(f, "attention", own);
  if (!bias) bias = distances(f, model, input);
  const Tensor mask = gated_bias(f, model, input, *bias);
  const auto heads = [&](std::string_view name) {
    return split_heads(f, f.linear(name, input, s.width, s.width), s.head_width);
  };
  const Tensor query = heads("q_proj");
  const Tensor key = heads("k_proj");
  const Tensor value = heads("v_proj");
  const Tensor mixed = merge_heads(
      f, f.call("scaled_dot_product_attention", {query, key, value, mask}, {{"dropout_p", s.attention_dropout}}));
  return f.linear("out_proj", mixed, s.width, s.width);
}

inline sound_parts_detail::Feeding feeding_of(const Model& model) {
  return {.class_name = model.named("FeedForward"),
          .width = model.sizes.width,
          .inner = model.sizes.inner,
          .activation = model.sizes.activation,
          .activation_dropout = model.activation_dropout,
          .dropout = model.dropout};
}

/// Wav2Vec2AttnAdapterLayer, which models of many languages have (MMS).
inline Tensor adapted(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "adapter_layer", model.named("AttnAdapterLayer"));
  const Tensor normed = f.layer_norm("norm", input, model.sizes.width);
  const Tensor narrow = f.linear("linear_1", normed, model.sizes.width, model.adapter);
  return f.linear("linear_2", f.activation("act_fn", narrow, "relu"), model.adapter, model.sizes.width);
}

inline Tensor block(Forward& f, const Model& model, Tensor input, std::optional<Tensor>& bias) {
  const std::int64_t width = model.sizes.width;
  if (!model.stable) {
    const Tensor mixed = f.dropout("dropout", attention(f, model, input, bias), model.dropout);
    const Tensor attended = f.layer_norm("layer_norm", f.add(input, mixed), width);
    return f.layer_norm("final_layer_norm", f.add(attended, sound_parts_detail::fed(f, feeding_of(model), attended)),
                        width);
  }
  const Tensor normed = f.layer_norm("layer_norm", input, width);
  const Tensor attended = f.add(input, f.dropout("dropout", attention(f, model, normed, bias), model.dropout));
  const Tensor made =
      f.add(attended, sound_parts_detail::fed(f, feeding_of(model), f.layer_norm("final_layer_norm", attended, width)));
  return model.adapter > 0 ? f.add(made, adapted(f, model, made)) : made;
}

struct Outputs {
  Tensor hidden = 0;
  Tensor features = 0;  ///< of the convolutions, normed
};

inline Outputs body(Forward& f, const Model& model, Head head) {
  const InModule inside(f, head == Head::none ? std::string_view() : model.module, model.named("Model"));
  const std::int64_t width = model.sizes.width;
  namespace parts = sound_parts_detail;
  Outputs made;
  made.features = parts::frames(f, model, "feature_extractor");
  const Tensor projection = parts::projected(f, model, made.features, &made.features);
  if (model.masks) (void)f.parameter("masked_spec_embed", {width});
  const InModule encoder(f, "encoder", model.named(model.stable ? "EncoderStableLayerNorm" : "Encoder"));
  Tensor hidden = f.add(projection, parts::positions(f, model, projection));
  if (!model.stable) hidden = f.layer_norm("layer_norm", hidden, width);
  hidden = f.dropout("dropout", hidden, model.dropout);
  std::optional<Tensor> bias;
  hidden = stack(f, "layers", model.named(model.stable ? "EncoderLayerStableLayerNorm" : "EncoderLayer"),
                 model.sizes.layers, hidden, [&](Tensor x, std::int64_t) { return block(f, model, x, bias); });
  made.hidden = model.stable ? f.layer_norm("layer_norm", hidden, width) : hidden;
  return made;
}

/// Wav2Vec2GumbelVectorQuantizer: of each frame and group one code, drawn in float32; every code is multiplied with
/// what was drawn.
inline Tensor quantized(Forward& f, const Model& model, Tensor features, std::int64_t in) {
  const InModule inside(f, "quantizer", "Wav2Vec2GumbelVectorQuantizer");
  const std::int64_t all = model.groups * model.codes;
  const std::int64_t width = model.code_width / model.groups;
  const Tensor codes = f.parameter("codevectors", {1, all, width});
  const Tensor logits = f.linear("weight_proj", features, in, all);
  const Tensor rows =
      f.to(f.flatten(f.unflatten(f.flatten(logits, 0, 1), 1, {model.groups, model.codes}), 0, 1), "float32");
  const Tensor soft = f.call("softmax", {f.scale(f.call("add", {rows}))}, {{"dim", std::int64_t{-1}}});
  const Tensor hard = f.call("add", {f.call("sub", {soft}), soft});
  (void)f.call("softmax", {rows}, {{"dim", std::int64_t{-1}}});  // of the codes' perplexity
  const Tensor drawn = f.flatten(f.unflatten(f.as_type_of(hard, logits), 0, {-1, model.groups}), 1, 2);
  const Tensor each = f.multiply(f.call("unsqueeze", {drawn}, {{"dim", std::int64_t{2}}}), codes);
  const Tensor sums = f.call("sum", {f.unflatten(each, 1, {model.groups, model.codes})}, {{"dim", std::int64_t{2}}});
  return f.flatten(sums, 1, 2);
}

/// Wav2Vec2ForPreTraining: each frame is compared with its own code and those of other frames.
inline void write_pretraining(Forward& f, const Model& model, const Outputs& made) {
  f.remark("pretraining compares each frame with " + std::to_string(model.negatives) +
           " codes of others (num_negatives), as examples/pytorch/speech-pretraining draws them");
  const std::int64_t in = model.convolutions.empty() ? 1 : model.convolutions.back().channels;
  const Tensor seen = f.linear("project_hid", made.hidden, model.sizes.width, model.compared);
  const Tensor features = f.dropout("dropout_features", made.features, model.feature_dropout);
  const Tensor codes = f.linear("project_q", quantized(f, model, features, in), model.code_width, model.compared);
  // Its own code and the others, as rows behind each other: [frames, 1 + negatives, width].
  const Tensor row = f.call("unsqueeze", {codes}, {{"dim", std::int64_t{1}}});
  const Tensor others = f.contiguous(f.call("expand", {row}, {{"shape", Sizes{-1, model.negatives, -1}}}));
  const Tensor targets = f.to(f.concatenate({row, others}, 1), "float32");
  const Tensor asked = f.call("unsqueeze", {f.flatten(f.to(seen, "float32"), 0, 1)}, {{"dim", std::int64_t{1}}});
  const Tensor normed = f.call("lp_normalize", {targets}, {{"dim", std::int64_t{-1}}});
  const Tensor directions = f.call("lp_normalize", {asked}, {{"dim", std::int64_t{-1}}});
  const Tensor alike = f.call("sum", {f.multiply(normed, directions)}, {{"dim", std::int64_t{-1}}});
  (void)f.call("cross_entropy", {f.scale(alike)});
  f.doubt(
      {model::Doubt::About::kernels, "pretraining's comparison with codes of other frames was not measured", false});
}

inline void write(ConfigFields& config, Head head, Forward& f) {
  const Model model = read(config);
  const bool known = head == Head::none || head == Head::causal_lm || head == Head::sequence_classification ||
                     head == Head::token_classification || (head == Head::masked_lm && model.module == "wav2vec2");
  if (!known) {
    config.fail(
        "only ForCTC, ForSequenceClassification, ForAudioFrameClassification, wav2vec 2.0's ForPreTraining and the "
        "model without a head are known");
  }
  if (!config.status()) return;
  f.remark("the sequence length counts samples of sound, 16,000 a second");
  const Outputs made = body(f, model, head);
  const Tensor hidden = made.hidden;
  const std::int64_t width = model.sizes.width;
  if (head == Head::masked_lm) return write_pretraining(f, model, made);
  if (head == Head::causal_lm) {
    const Tensor dropped = f.dropout("dropout", hidden, model.final_dropout);
    const Tensor logits = f.linear("lm_head", dropped, width, model.sizes.vocabulary, {.returned = true});
    (void)f.call("cross_entropy", {f.to(f.flatten(logits, 0, 1), "float32")});
  } else if (head == Head::sequence_classification) {
    const Tensor narrow = f.linear("projector", hidden, width, model.classifier);
    const Tensor pooled = f.call("mean", {narrow}, {{"dim", std::int64_t{1}}});
    (void)f.linear("classifier", pooled, model.classifier, model.labels);
  } else if (head == Head::token_classification) {
    (void)f.linear("classifier", hidden, width, model.labels);
  }
}

/// Published models, by width.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{768, 12}, {1024, 16}, {1280, 16}, {1920, 16}});
/// Convolutions are checkpointed too.
inline constexpr auto kBlocks = std::to_array<std::string_view>({"Wav2Vec2EncoderLayer",
                                                                 "Wav2Vec2EncoderLayerStableLayerNorm",
                                                                 "Wav2Vec2NoLayerNormConvLayer",
                                                                 "Wav2Vec2LayerNormConvLayer",
                                                                 "Wav2Vec2GroupNormConvLayer",
                                                                 "HubertEncoderLayer",
                                                                 "HubertEncoderLayerStableLayerNorm",
                                                                 "HubertNoLayerNormConvLayer",
                                                                 "HubertLayerNormConvLayer",
                                                                 "HubertGroupNormConvLayer",
                                                                 "WavLMEncoderLayer",
                                                                 "WavLMEncoderLayerStableLayerNorm",
                                                                 "WavLMNoLayerNormConvLayer",
                                                                 "WavLMLayerNormConvLayer",
                                                                 "WavLMGroupNormConvLayer",
                                                                 "UniSpeechEncoderLayer",
                                                                 "UniSpeechEncoderLayerStableLayerNorm",
                                                                 "UniSpeechNoLayerNormConvLayer",
                                                                 "UniSpeechLayerNormConvLayer",
                                                                 "UniSpeechGroupNormConvLayer",
                                                                 "UniSpeechSatEncoderLayer",
                                                                 "UniSpeechSatEncoderLayerStableLayerNorm",
                                                                 "UniSpeechSatNoLayerNormConvLayer",
                                                                 "UniSpeechSatLayerNormConvLayer",
                                                                 "UniSpeechSatGroupNormConvLayer",
                                                                 "Data2VecAudioEncoderLayer",
                                                                 "Data2VecAudioConvLayer"});

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  const bool several = t.class_name().starts_with(sound_parts_detail::kData2Vec);
  const std::string positions = several ? "encoder.pos_conv_embed.layers.0" : "encoder.pos_conv_embed";
  sound_parts_detail::front_of_tree(t, {"feature_extractor", "feature_projection", positions});
  if (several) {
    t.size("conv_pos_kernel_size", positions + ".conv", "kernel_size");
    t.count("num_conv_pos_embeddings", "encoder.pos_conv_embed.layers");
  }
  const std::string layer = "encoder.layers.0.";
  t.size("hidden_size", "feature_projection.projection", "out_features");
  t.count("num_hidden_layers", "encoder.layers");
  t.size("intermediate_size", layer + "feed_forward.intermediate_dense", "out_features");
  t.size("vocab_size", "/lm_head", "out_features");
  t.size("classifier_proj_size", "/projector", "out_features");
  t.size("num_labels", "/classifier", "out_features");
  t.size("num_buckets", layer + "attention.rel_attn_embed", "num_embeddings");
  t.size("adapter_attn_dim", layer + "adapter_layer.linear_1", "out_features");
  t.dropout("hidden_dropout", "encoder.dropout");
  t.dropout("activation_dropout", layer + "feed_forward.intermediate_dropout");
  t.dropout("final_dropout", "/dropout");
  const std::string_view name = t.class_name();
  const std::int64_t width = t.value("feature_projection.projection", "out_features").value_or(0);
  // The name of the encoder's class says it, which no layer prints; the largest published models have it.
  const bool stable = t.value(layer + "adapter_layer.linear_1", "out_features").has_value() ||
                      (!several && t.has("feature_extractor.conv_layers.1.layer_norm"));
  t.set_flag("do_stable_layer_norm", stable);
  t.assume(std::string("norms ") + (stable ? "before" : "behind") + " each part, and attention's dropout of 0.1, as " +
           std::string(name) + " of these convolutions has");
  t.heads_of_width({.published = kPublished}, width);
}

inline constexpr Architecture kArchitecture = {
    .name = "wav2vec2",
    .model_types = names<"wav2vec2", "hubert", "wavlm", "unispeech", "unispeech-sat", "data2vec-audio">,
    .write = write,
    .classes = kClasses,
    .read_tree = read_tree,
    .blocks = kBlocks};

}  // namespace wav2vec2

}  // namespace gpumem::architectures
