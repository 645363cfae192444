// Input: the fields of a config.json of a model for sound, and samples of sound, 16,000 a second.
// Output: what wav2vec 2.0 and its kin have in common: convolutions over the samples, their projection, the convolution
// that stands for positions, and the feed-forward layers of a block; and what models hold that make speech.
// Source: transformers 4.57, models/wav2vec2/modeling_wav2vec2.py.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/core/bytes.hpp"

namespace gpumem::architectures {

namespace sound_parts_detail {

inline constexpr std::string_view kData2Vec = "Data2VecAudio";

struct Convolution {
  std::int64_t channels = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
};

/// What stands before the encoder.
struct Front {
  std::string_view prefix = "Wav2Vec2";
  std::int64_t width = 1;  ///< of the encoder
  std::vector<Convolution> convolutions;
  bool convolution_bias = false;
  bool norms_all = false;      ///< a layer norm behind each convolution; else a group norm behind the first
  bool norms_features = true;  ///< before they are projected
  std::int64_t position_kernel = 128;
  std::int64_t position_groups = 16;
  std::int64_t position_layers = 0;  ///< data2vec's, each with a norm; 0: one, whose weight is normed
  std::string_view feature_activation = "gelu";
  double feature_dropout = 0.0;

  [[nodiscard]] std::string named(std::string_view part) const { return std::string(prefix).append(part); }
};

inline void read_convolutions(ConfigFields& config, Front& front) {
  const std::vector<std::int64_t> channels = config.sizes_or("conv_dim", {512, 512, 512, 512, 512, 512, 512});
  const std::vector<std::int64_t> kernels = config.sizes_or("conv_kernel", {10, 3, 3, 3, 3, 2, 2});
  const std::vector<std::int64_t> strides = config.sizes_or("conv_stride", {5, 2, 2, 2, 2, 2, 2});
  if (channels.size() != kernels.size() || channels.size() != strides.size() || channels.empty()) {
    return config.fail("must have as many entries as conv_kernel and conv_stride", "conv_dim");
  }
  constexpr std::int64_t kMost = 1 << 14;
  constexpr std::size_t kMostConvolutions = 64;
  if (channels.size() > kMostConvolutions) return config.fail("is more than gpumem takes", "conv_dim");
  for (std::size_t at = 0; at < channels.size(); ++at) {
    if (channels[at] > kMost) return config.fail("is more than gpumem takes", "conv_dim");
    if (kernels[at] > kMost) return config.fail("is more than gpumem takes", "conv_kernel");
    if (strides[at] > kMost) return config.fail("is more than gpumem takes", "conv_stride");
    front.convolutions.push_back({channels[at], kernels[at], strides[at]});
  }
  front.convolution_bias = config.flag("conv_bias", false);
  front.norms_all = front.prefix == kData2Vec || config.text({"feat_extract_norm"}, "group") == "layer";
  front.feature_activation = config.text({"feat_extract_activation"}, "gelu");
  front.norms_features = config.flag("feat_proj_layer_norm", true);
}

inline void read_front(ConfigFields& config, std::int64_t width, Front& front) {
  front.width = width;
  read_convolutions(config, front);
  if (front.prefix == kData2Vec) {
    front.position_layers = config.layers_or("num_conv_pos_embeddings", 5);
    front.position_kernel = config.size_or({"conv_pos_kernel_size"}, 19);
  } else {
    front.position_kernel = config.size_or({"num_conv_pos_embeddings"}, 128);
  }
  front.position_groups = config.size_or({"num_conv_pos_embedding_groups"}, 16);
  front.feature_dropout = config.number({"feat_proj_dropout"}, 0.0);
  constexpr std::int64_t kMost = 1 << 14;
  if (front.position_kernel > kMost) config.fail("is more than gpumem takes", "num_conv_pos_embeddings");
  if (width % front.position_groups != 0) config.fail("does not divide hidden_size", "num_conv_pos_embedding_groups");
}

/// Frames of sound [N, frames, channels of the last convolution].
inline Tensor frames(Forward& f, const Front& front, std::string_view module) {
  const InModule inside(f, module, front.named("FeatureEncoder"));
  const InModule list(f, "conv_layers", "ModuleList");
  Tensor sound = f.to(f.token_input("input_values"), "parameters");
  sound = f.call("unsqueeze", {sound}, {{"dim", std::int64_t{1}}});
  std::int64_t in = 1;
  for (std::size_t at = 0; at < front.convolutions.size() && !f.failed(); ++at) {
    const Convolution& c = front.convolutions[at];
    const bool groups = !front.norms_all && at == 0;
    const InModule one(f, std::to_string(at),
                       front.named(front.prefix == kData2Vec ? "ConvLayer"
                                   : front.norms_all         ? "LayerNormConvLayer"
                                   : groups                  ? "GroupNormConvLayer"
                                                             : "NoLayerNormConvLayer"));
    sound = f.layer("conv", "Conv1d", "conv1d", {sound},
                    {{"in_channels", in},
                     {"out_channels", c.channels},
                     {"kernel_size", Sizes(1, c.kernel)},
                     {"stride", Sizes(1, c.stride)},
                     {"bias", front.convolution_bias}});
    if (front.norms_all) {
      const Tensor normed = f.layer_norm("layer_norm", f.permute(sound, {0, 2, 1}), c.channels);
      sound = f.permute(normed, {0, 2, 1});
    }
    if (groups) {
      sound = f.layer("layer_norm", "GroupNorm", "group_norm", {sound},
                      {{"num_groups", c.channels}, {"num_channels", c.channels}});
    }
    sound = f.activation("activation", sound, front.feature_activation);
    in = c.channels;
  }
  return f.permute(sound, {0, 2, 1});
}

/// `normed` gets the features as the projection reads them.
inline Tensor projected(Forward& f, const Front& front, Tensor features, Tensor* normed = nullptr) {
  const InModule inside(f, "feature_projection", front.named("FeatureProjection"));
  const std::int64_t channels = front.convolutions.empty() ? 1 : front.convolutions.back().channels;
  if (front.norms_features) features = f.layer_norm("layer_norm", features, channels);
  if (normed != nullptr) *normed = features;
  return f.dropout("dropout", f.linear("projection", features, channels, front.width), front.feature_dropout);
}

/// Data2VecAudioPositionalConvEmbedding: convolutions over frames, each behind it a norm that learns nothing.
inline Tensor stacked_positions(Forward& f, const Front& front, Tensor hidden) {
  const InModule inside(f, "pos_conv_embed", front.named("PositionalConvEmbedding"));
  const Tensor rows = stack(f, "layers", front.named("PositionalConvLayer"), front.position_layers,
                            f.permute(hidden, {0, 2, 1}), [&](Tensor x, std::int64_t) {
                              Tensor made = f.layer("conv", "Conv1d", "conv1d", {x},
                                                    {{"in_channels", front.width},
                                                     {"out_channels", front.width},
                                                     {"kernel_size", Sizes(1, front.position_kernel)},
                                                     {"padding", Sizes(1, front.position_kernel / 2)},
                                                     {"groups", front.position_groups}});
                              if (front.position_kernel % 2 == 0) made = f.slice(made, 2, 0, -1);
                              const Tensor normed =
                                  f.layer("layer_norm", "LayerNorm", "layer_norm", {f.permute(made, {0, 2, 1})},
                                          {{"normalized_shape", front.width}, {"elementwise_affine", false}});
                              return f.activation("activation", f.permute(normed, {0, 2, 1}), front.feature_activation);
                            });
  return f.permute(rows, {0, 2, 1});
}

/// A convolution over frames whose weight is a direction times a length for each place of the kernel (weight_norm).
inline Tensor positions(Forward& f, const Front& front, Tensor hidden) {
  if (front.position_layers > 0) return stacked_positions(f, front, hidden);
  const InModule inside(f, "pos_conv_embed", front.named("PositionalConvEmbedding"));
  const std::int64_t width = front.width;
  const std::int64_t kernel = front.position_kernel;
  const Tensor rows = f.permute(hidden, {0, 2, 1});
  Tensor made = 0;
  {
    const InModule conv(f, "conv", "ParametrizedConv1d");
    const Tensor bias = f.parameter("bias", {width});
    const Tensor lengths = f.parameter("parametrizations.weight.original0", {1, 1, kernel});
    const Tensor directions =
        f.parameter("parametrizations.weight.original1", {width, width / front.position_groups, kernel});
    made = f.call("conv1d_function", {rows, f.multiply(directions, lengths), bias},
                  {{"in_channels", width},
                   {"out_channels", width},
                   {"groups", front.position_groups},
                   {"kernel_size", Sizes(1, kernel)},
                   {"padding", Sizes(1, kernel / 2)}});
  }
  if (kernel % 2 == 0) made = f.slice(made, 2, 0, -1);
  return f.permute(f.activation("activation", made, front.feature_activation), {0, 2, 1});
}

/// Numbers of this width for each token, which a batch or a step makes without gradients.
inline Tensor token_rows(Forward& f, Tensor tokens, std::int64_t width) {
  const std::vector<core::Dim> all = {core::Dim::batch(), core::Dim::fixed(-1), core::Dim::fixed(width)};
  const Tensor column = f.call("unsqueeze", {f.to(tokens, "parameters")}, {{"dim", std::int64_t{2}}});
  return f.call("expand", {column}, {{"shape", all}});
}

/// What queries [N, heads, S, d] make of a table of distances [S, S, d], [N, heads, S, S]: one product a token of all
/// heads.
inline Tensor distance_scores(Forward& f, std::int64_t heads, Tensor query, Tensor distances) {
  const Tensor rows = f.flatten(f.permute(query, {2, 0, 1, 3}), 1, 2);
  const Tensor products = f.call("matmul", {rows, f.permute(distances, {0, 2, 1})});
  return f.unflatten(f.permute(products, {1, 0, 2}), 0, {-1, heads});
}

/// The feed-forward layers of a block.
struct Feeding {
  std::string_view name = "feed_forward";
  std::string class_name;
  std::int64_t width = 1;
  std::int64_t inner = 1;
  std::string_view activation = "gelu";
  double activation_dropout = 0.0;
  double dropout = 0.0;
};

inline Tensor fed(Forward& f, const Feeding& of, Tensor input) {
  const InModule inside(f, of.name, of.class_name);
  const Tensor wide = f.linear("intermediate_dense", input, of.width, of.inner);
  const Tensor open = f.activation("intermediate_act_fn", wide, of.activation);
  const Tensor dropped = f.dropout("intermediate_dropout", open, of.activation_dropout);
  return f.dropout("output_dropout", f.linear("output_dense", dropped, of.inner, of.width), of.dropout);
}

/// The convolutions, of a list of modules.
inline void convolutions_of_tree(TreeFields& t, const std::string& module) {
  const std::string list = module + ".conv_layers";
  std::string channels;
  std::string kernels;
  std::string strides;
  const std::int64_t count = std::min<std::int64_t>(t.count_of(list), 64);
  for (std::int64_t at = 0; at < count; ++at) {
    const std::string conv = list + "." + std::to_string(at) + ".conv";
    const std::string comma = at == 0 ? "" : ", ";
    channels += comma + std::to_string(t.value(conv, "out_channels").value_or(1));
    kernels += comma + std::to_string(t.value(conv, "kernel_size").value_or(1));
    strides += comma + std::to_string(t.value(conv, "stride").value_or(1));
  }
  t.set_text("conv_dim", "[" + channels + "]");
  t.set_text("conv_kernel", "[" + kernels + "]");
  t.set_text("conv_stride", "[" + strides + "]");
  t.convolution_bias("conv_bias", list + ".0.conv");
  if (t.has(list + ".1.layer_norm")) t.set_string("feat_extract_norm", "layer");
}

/// Where a tree has the parts.
struct FrontModules {
  std::string convolutions;
  std::string projection;
  std::string positions;
};

inline void front_of_tree(TreeFields& t, const FrontModules& at) {
  convolutions_of_tree(t, at.convolutions);
  t.there("feat_proj_layer_norm", at.projection + ".layer_norm");
  t.dropout("feat_proj_dropout", at.projection + ".dropout");
  const std::string conv = at.positions + ".conv";
  t.size("num_conv_pos_embeddings", conv, "kernel_size");
  t.size("num_conv_pos_embedding_groups", conv, "groups");
}

}  // namespace sound_parts_detail

// What makes speech in Qwen2.5-Omni and Qwen3-Omni: a decoder of codes (the talker), and what turns codes into sound.
// Trainers hold it and do not call it, so that its parameters are counted and no more. Source: transformers 5.16,
// models/qwen2_5_omni/modeling_qwen2_5_omni.py (Qwen2_5OmniTalkerForConditionalGeneration, Qwen2_5OmniToken2WavModel),
// models/qwen3_omni_moe/modeling_qwen3_omni_moe.py (Qwen3OmniMoeTalkerForConditionalGeneration, Qwen3OmniMoeCode2Wav);
// what their classes have where the config leaves fields out.

namespace omni_speech {

using core::Checked;

/// A list of sizes, one a stage of a part; a longer one than models have is a fault.
inline std::vector<std::int64_t> stages_or(ConfigFields& config, std::string_view name,
                                           std::vector<std::int64_t> usual) {
  constexpr std::size_t kMost = 16;
  std::vector<std::int64_t> stages = config.sizes_or(name, usual);
  if (stages.size() <= kMost) return stages;
  config.fail("has more than " + std::to_string(kMost) + " entries", name);
  return usual;
}

/// Half as many channels, rounded down, as each stage has of the one before; none are a fault of the field.
inline std::int64_t halved(ConfigFields& config, std::int64_t channels, std::string_view field) {
  if (channels < 2) config.fail("is halved to nothing by its stages", field);
  return std::max<std::int64_t>(channels / 2, 1);
}

inline Checked linear(Checked from, Checked to) { return from * to + to; }
inline Checked convolution(Checked from, Checked to, Checked kernel) { return from * to * kernel + to; }

/// Queries, keys, values and the output of attention. `biased`: those of the first three; `normed`: norms of the heads
/// of queries and keys.
struct SpeechAttention {
  std::int64_t width = 1;
  std::int64_t heads = 1;
  std::int64_t key_heads = 1;
  std::int64_t each = 1;
  bool biased = false;
  bool normed = false;

  [[nodiscard]] Checked parameters() const {
    const Checked wide = Checked(heads) * each;
    const Checked narrow = Checked(key_heads) * each;
    const Checked weights = Checked(2) * width * (wide + narrow);
    const Checked biases = biased ? wide + Checked(2) * narrow : Checked(0);
    return weights + biases + Checked(normed ? 2 * each : 0);
  }
};

inline SpeechAttention read_attention(ConfigFields& config, const SpeechAttention& usual) {
  SpeechAttention a = usual;
  a.width = config.size_or({"hidden_size"}, usual.width);
  a.heads = config.size_or({"num_attention_heads"}, usual.heads);
  a.key_heads = config.size_or({"num_key_value_heads"}, usual.key_heads);
  const std::int64_t each = usual.each > 0 ? usual.each : std::max<std::int64_t>(a.width / a.heads, 1);
  a.each = config.size_or({"head_dim"}, each);
  return a;
}

inline Checked gated(Checked width, Checked inner) { return Checked(3) * width * inner; }

inline Checked talker_of_second(ConfigFields& config) {
  const SpeechAttention a =
      read_attention(config, {.width = 3584, .heads = 28, .key_heads = 4, .each = 128, .biased = true});
  const Checked width = a.width;
  const Checked inner = config.size_or({"intermediate_size"}, 18944);
  const Checked read = config.size_or({"embedding_size"}, 3584);
  const Checked codes = config.size_or({"vocab_size"}, 8448);
  const Checked layers = config.layers_or("num_hidden_layers", 28);
  const Checked block = a.parameters() + gated(width, inner) + Checked(2) * width;
  return linear(read, width) + codes * read + layers * block + width + width * codes;
}

/// The encoder of a speaker's voice (ECAPA_TimeDelayNet).
inline Checked voice_encoder(ConfigFields& config, Checked bands) {
  const std::vector<std::int64_t> widths = stages_or(config, "enc_channels", {256, 256, 256, 256, 768});
  const std::vector<std::int64_t> kernels = stages_or(config, "enc_kernel_sizes", {5, 3, 3, 3, 1});
  const std::int64_t parts = config.size_or({"enc_res2net_scale"}, 2);
  const Checked squeezed = config.size_or({"enc_se_channels"}, 64);
  const Checked attended = config.size_or({"enc_attention_channels"}, 64);
  const Checked out = config.size_or({"enc_dim"}, 128);
  if (widths.size() < 2 || widths.size() != kernels.size()) {
    config.fail("must have as many entries as enc_kernel_sizes, two or more", "enc_channels");
    return 0;
  }
  Checked sum = convolution(bands, widths[0], kernels[0]);
  for (std::size_t at = 1; at + 1 < widths.size(); ++at) {
    if (widths[at] % parts != 0) config.fail("does not divide enc_channels", "enc_res2net_scale");
    const Checked width = widths[at];
    const Checked part = widths[at] / parts;
    sum += convolution(widths[at - 1], width, 1) + Checked(parts - 1) * convolution(part, part, kernels[at]);
    sum += convolution(width, width, 1) + convolution(width, squeezed, 1) + convolution(squeezed, width, 1);
  }
  const Checked last = widths.back();
  sum += convolution(last, last, kernels.back()) + convolution(Checked(3) * last, attended, 1);
  return sum + convolution(attended, last, 1) + convolution(Checked(2) * last, out, 1);
}

/// The transformer that makes bands of codes (Qwen2_5OmniToken2WavDiTModel).
inline Checked bands_of_codes(ConfigFields& config) {
  constexpr std::int64_t kSteps = 256;  // of the table of time steps
  const Checked width = config.size_or({"hidden_size", "dim"}, 1024);
  const Checked layers = config.layers_or("num_hidden_layers", config.layers_or("depth", 22));
  const Checked inner =
      Checked(config.size_or({"num_attention_heads", "heads"}, 16)) * config.size_or({"head_dim"}, 64);
  const Checked wide = width * config.size_or({"ff_mult"}, 2);
  const Checked bands = config.size_or({"mel_dim"}, 80);
  const Checked code = config.size_or({"emb_dim"}, 512);
  const Checked rows = config.size_or({"num_embeds"}, 8193);
  const Checked voice = Checked(config.size_or({"enc_dim"}, 128)) + config.size_or({"enc_emb_dim"}, 192);
  const Checked block = linear(width, Checked(6) * width) + Checked(3) * linear(width, inner) + linear(inner, width) +
                        linear(width, wide) + linear(wide, width);
  const Checked front = linear(kSteps, width) + linear(width, width) + (rows + 1) * code +
                        linear(bands + voice + code, width) + voice_encoder(config, bands);
  return front + layers * block + linear(width, Checked(2) * width) + linear(width, bands);
}

/// What makes samples of bands (Qwen2_5OmniToken2WavBigVGANModel): three pairs of convolutions a residual block, each
/// behind an activation of two figures a channel.
inline Checked sound_of_bands(ConfigFields& config) {
  constexpr std::int64_t kEnds = 7;  // the kernel of the first and the last convolution
  const Checked bands = config.size_or({"mel_dim"}, 80);
  std::int64_t width = config.size_or({"upsample_initial_channel"}, 1536);
  const std::vector<std::int64_t> kernels = stages_or(config, "upsample_kernel_sizes", {11, 7, 4, 4, 4, 4});
  const std::vector<std::int64_t> blocks = stages_or(config, "resblock_kernel_sizes", {3, 7, 11});
  Checked sum = convolution(bands, width, kEnds);
  for (const std::int64_t kernel : kernels) {
    const std::int64_t half = halved(config, width, "upsample_initial_channel");
    sum += convolution(width, half, kernel);
    width = half;
    for (const std::int64_t side : blocks) sum += Checked(6) * (convolution(width, width, side) + Checked(2) * width);
  }
  return sum + Checked(2) * width + Checked(kEnds) * width;
}

/// A block of the talker: experts with one that all tokens go to.
inline Checked talker_of_third(ConfigFields& config) {
  ConfigFields* text = config.part_or_usual("text_config");
  ConfigFields* codes = config.part_or_usual("code_predictor_config");
  if (text == nullptr || codes == nullptr) return 0;
  for (ConfigFields* fields : {text, codes}) {  // of which no parameter follows
    fields->ignore({"num_experts_per_tok", "mlp_only_layers", "layer_types", "sliding_window", "max_window_layers",
                    "max_position_embeddings"});
  }
  const SpeechAttention a =
      read_attention(*text, {.width = 1024, .heads = 16, .key_heads = 2, .each = 0, .normed = true});
  const Checked width = a.width;
  const Checked experts = text->size_or({"num_experts"}, 128);
  const Checked shared = text->size_or({"shared_expert_intermediate_size"}, 768);
  const Checked each = gated(width, text->size_or({"moe_intermediate_size"}, 384));
  const Checked block = a.parameters() + experts * (each + width) + gated(width, shared) + Checked(3) * width;
  const Checked rows = text->size_or({"vocab_size"}, 3072);
  const Checked inner = text->size_or({"intermediate_size"}, 2048);
  const Checked read = config.size_or({"thinker_hidden_size"}, 2048);
  const Checked projected = Checked(2) * (linear(read, inner) + linear(inner, width));
  if (text->size_or({"decoder_sparse_step"}, 1) != 1) text->fail("is 1 in this model", "decoder_sparse_step");
  const Checked talks = Checked(2) * rows * width + Checked(text->layers_or("num_hidden_layers", 20)) * block + width;
  const SpeechAttention own =
      read_attention(*codes, {.width = 1024, .heads = 16, .key_heads = 8, .each = 128, .normed = true});
  const Checked narrow = own.width;
  const Checked groups = codes->size_or({"num_code_groups"}, 32) - 1;
  const Checked layer =
      own.parameters() + gated(narrow, codes->size_or({"intermediate_size"}, 3072)) + Checked(2) * narrow;
  const Checked predicted = Checked(2) * groups * codes->size_or({"vocab_size"}, 2048) * narrow;
  return talks + projected + predicted + Checked(codes->layers_or("num_hidden_layers", 5)) * layer + narrow;
}

/// Qwen3OmniMoeCode2Wav.
inline Checked sound_of_codes(ConfigFields& config) {
  constexpr std::int64_t kEnds = 7;
  const SpeechAttention a = read_attention(config, {.width = 1024, .heads = 16, .key_heads = 16, .each = 0});
  const Checked width = a.width;
  const Checked inner = config.size_or({"intermediate_size"}, 3072);
  const Checked rows = Checked(config.size_or({"codebook_size"}, 2048)) * config.size_or({"num_quantizers"}, 16);
  const Checked block = a.parameters() + gated(width, inner) + Checked(4) * width;
  Checked sum = rows * width + Checked(config.layers_or("num_hidden_layers", 8)) * block + width;
  for (const std::int64_t factor : stages_or(config, "upsampling_ratios", {2, 2})) {
    const Checked wide = Checked(4) * width;
    sum += convolution(width, width, factor) + convolution(1, width, kEnds) + Checked(3) * width;
    sum += linear(width, wide) + linear(wide, width);
  }
  std::int64_t channels = config.size_or({"decoder_dim"}, 1536);
  sum += convolution(width, channels, kEnds);
  for (const std::int64_t rate : stages_or(config, "upsample_rates", {8, 5, 4, 3})) {
    const std::int64_t half = halved(config, channels, "decoder_dim");
    const Checked out = half;
    const Checked unit = Checked(4) * out + convolution(out, out, kEnds) + convolution(out, out, 1);
    sum += Checked(2) * channels + convolution(channels, out, Checked(2) * rate) + Checked(3) * unit;
    channels = half;
  }
  return sum + Checked(2) * channels + convolution(channels, 1, kEnds);
}

/// The parameters, and of them those that stay in float32 whatever the model is loaded in (token2wav.float()).
struct SpeechParameters {
  std::int64_t all = 0;
  std::int64_t wide = 0;
};

/// Of the config of a whole model, whose `third` is Qwen3-Omni.
inline SpeechParameters speech_of(ConfigFields& config, bool third) {
  ConfigFields* talker = config.part_or_usual("talker_config");
  ConfigFields* sound = config.part_or_usual(third ? "code2wav_config" : "token2wav_config");
  if (talker == nullptr || sound == nullptr) return {};
  Checked wide = 0;
  Checked all = third ? talker_of_third(*talker) + sound_of_codes(*sound) : talker_of_second(*talker);
  if (!third) {
    ConfigFields* dit = sound->part_or_usual("dit_config");
    ConfigFields* vocoder = sound->part_or_usual("bigvgan_config");
    if (dit == nullptr || vocoder == nullptr) return {};
    wide = bands_of_codes(*dit) + sound_of_bands(*vocoder);
    all += wide;
  }
  if (!all.valid()) config.fail("makes a model larger than gpumem takes", "talker_config");
  return {all.value().value_or(0), wide.value().value_or(0)};
}

}  // namespace omni_speech

}  // namespace gpumem::architectures
