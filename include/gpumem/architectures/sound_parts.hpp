// Input: the fields of a config.json of a model for sound, and samples of sound, 16,000 a second.
// Output: what wav2vec 2.0 and its kin have in common: convolutions over the samples, their projection, the convolution
// that stands for positions, and the feed-forward layers of a block.
// Source: transformers 4.57, models/wav2vec2/modeling_wav2vec2.py.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"

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
    const bool sound = channels[at] <= kMost && kernels[at] <= kMost && strides[at] <= kMost;
    if (!sound) return config.fail("is more than gpumem takes", "conv_dim");
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

inline Tensor projected(Forward& f, const Front& front, Tensor features) {
  const InModule inside(f, "feature_projection", front.named("FeatureProjection"));
  const std::int64_t channels = front.convolutions.empty() ? 1 : front.convolutions.back().channels;
  if (front.norms_features) features = f.layer_norm("layer_norm", features, channels);
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

}  // namespace gpumem::architectures
