// PatchTST: each channel of a series is cut into patches, which an encoder reads as tokens; channels are samples of
// their own. The config says how long a series is (context_length, prediction_length, num_input_channels); a job's
// sequence length changes nothing.
// Source: transformers 5.17, models/patchtst/modeling_patchtst.py (PatchTSTStdScaler, PatchTSTEncoderLayer).
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/decoder.hpp"
#include "gpumem/architectures/series_parts.hpp"

namespace gpumem::architectures {

namespace patchtst {

using series_parts_detail::cut_series;
using series_parts_detail::future_loss;
using series_parts_detail::Model;
using series_parts_detail::normed;
using series_parts_detail::patch_loss;
using series_parts_detail::projected;
using series_parts_detail::read_sizes;

inline Model read(ConfigFields& config) {
  Model model;
  model.class_name = config.class_name();
  read_sizes(config, model);
  model.heads = config.size_or({"num_attention_heads"}, 4);
  if (model.width % model.heads != 0) config.fail("does not divide d_model", "num_attention_heads");
  if (model.is("ForPrediction") || model.is("ForRegression")) {
    const std::int64_t numbers = distribution_numbers(config);
    model.numbers = config.text({"loss"}, "mse") == "mse" ? 0 : numbers;
  }
  model.norms_batches = config.text({"norm_type"}, "batchnorm") == "batchnorm";
  model.norms_before = config.flag("pre_norm", true);
  model.bias = config.flag("bias", true);
  model.shares_embedding = config.flag("share_embedding", true);
  model.shares_head = config.flag("share_projection", true);
  model.attends_channels = config.flag("channel_attention", false);
  model.summarises = config.flag("use_cls_token", false);
  model.learns_positions = config.text({"positional_encoding_type"}, "sincos") == "random";
  model.pooling = config.is_null("pooling_type") ? "" : config.text({"pooling_type"}, "mean");
  model.activation = config.text({"activation_function"}, "gelu");
  model.attention_dropout = config.number({"attention_dropout"}, 0.0);
  model.position_dropout = config.number({"positional_dropout"}, 0.0);
  model.path_dropout = config.number({"path_dropout"}, 0.0);
  model.inner_dropout = config.number({"ff_dropout", "dropout"}, 0.0);
  model.head_dropout = config.number({"head_dropout"}, 0.0);
  config.ignore({"loss",
                 "distribution_output",
                 "scaling",
                 "do_mask_input",
                 "mask_input",
                 "mask_type",
                 "random_mask_ratio",
                 "mask_value",
                 "mask_ratio",
                 "channel_consistent_masking",
                 "unmasked_channel_indices",
                 "num_forecast_mask_patches",
                 "forecast_mask_patches",
                 "forecast_mask_ratios",
                 "num_parallel_samples",
                 "output_range",
                 "norm_eps",
                 "init_std",
                 "learn_pe",
                 "shared_embedding",
                 "shared_projection",
                 "encoder_layers"});
  return model;
}

inline Tensor attended(Forward& f, const Model& model, Tensor input) {
  return stream_attention(f,
                          {.name = "self_attn",
                           .class_name = "PatchTSTAttention",
                           .width = model.width,
                           .heads = model.heads,
                           .dropout = model.attention_dropout,
                           .copies = false},
                          input, input);
}

inline Tensor fed(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "ff", "Sequential");
  const Tensor wide = f.linear("0", input, model.width, model.inner, {.bias = model.bias});
  const Tensor open = f.dropout("2", f.activation("1", wide, model.activation), model.inner_dropout);
  return f.linear("3", open, model.inner, model.width, {.bias = model.bias});
}

/// A part of a block with its norm before or behind it, and what is added to it.
template <typename Part>
Tensor joined(Forward& f, const Model& model, std::string_view number, Tensor input, Part part) {
  const std::string norm = "norm_sublayer" + std::string(number);
  const std::string path = "dropout_path" + std::string(number);
  const Tensor read = model.norms_before ? normed(f, model, norm, input) : input;
  const Tensor sum = f.add(input, f.dropout(path, part(read), model.path_dropout));
  return model.norms_before ? sum : normed(f, model, norm, sum);
}

/// Tokens of all channels see each other, by the layers that attend to time.
inline Tensor across_channels(Forward& f, const Model& model, Tensor input) {
  const Tensor turned = f.flatten(f.contiguous(f.permute(input, {0, 2, 1, 3})), 0, 1);
  const Tensor mixed = joined(f, model, "2", turned, [&](Tensor x) {
    f.repeat_parameters(true);
    const Tensor made = attended(f, model, x);
    f.repeat_parameters(false);
    return made;
  });
  return f.contiguous(f.permute(f.unflatten(mixed, 0, {-1, model.tokens()}), {0, 2, 1, 3}));
}

/// [N, channels, tokens, width]
inline Tensor block(Forward& f, const Model& model, Tensor input) {
  const auto rows = [&](Tensor x) { return f.flatten(x, 0, 1); };
  const auto samples = [&](Tensor x) { return f.unflatten(x, 0, {-1, model.channels}); };
  Tensor hidden = samples(joined(f, model, "1", rows(input), [&](Tensor x) { return attended(f, model, x); }));
  if (model.attends_channels) hidden = across_channels(f, model, hidden);
  return samples(joined(f, model, "3", rows(hidden), [&](Tensor x) { return fed(f, model, x); }));
}

inline Tensor embedded(Forward& f, const Model& model, Tensor patches) {
  const InModule inside(f, "embedder", "PatchTSTEmbedding");
  if (model.shares_embedding) return f.linear("input_embedding", patches, model.patch, model.width);
  const InModule list(f, "input_embedding", "ModuleList");
  std::vector<Tensor> made;
  for (std::int64_t at = 0; at < model.channels; ++at) {
    const Tensor one = f.linear(std::to_string(at), f.select(patches, 1, at), model.patch, model.width);
    made.push_back(f.call("unsqueeze", {one}, {{"dim", std::int64_t{1}}}));
  }
  return f.concatenate(made, 1);
}

inline Tensor placed(Forward& f, const Model& model, Tensor input) {
  const InModule inside(f, "positional_encoder", "PatchTSTPositionalEncoding");
  const auto drop = [&](Tensor x) { return f.dropout("positional_dropout", x, model.position_dropout); };
  if (!model.summarises) {
    return drop(f.add(input, f.parameter("position_enc", {model.tokens(), model.width}, !model.learns_positions)));
  }
  const Tensor token = f.parameter("cls_token", {1, 1, 1, model.width});
  const Tensor places = f.parameter("position_enc", {model.tokens(), model.width}, !model.learns_positions);
  const Tensor patches = drop(f.add(input, f.slice(places, 0, 1, Forward::kRest)));
  const std::vector<core::Dim> all = {core::Dim::batch(), core::Dim::fixed(model.channels), core::Dim::fixed(-1),
                                      core::Dim::fixed(-1)};
  const Tensor first = f.call("expand", {f.add(token, f.slice(places, 0, 0, 1))}, {{"shape", all}});
  return f.concatenate({first, patches}, 2);
}

/// What a body leaves besides its tokens.
struct Read {
  Tensor tokens = 0;   ///< [N, channels, tokens, width]
  Tensor patches = 0;  ///< [N, channels, patches, length of a patch]
};

inline Read body(Forward& f, const Model& model) {
  const InModule inside(f, model.is("Model") ? "" : "model", "PatchTSTModel");
  const Tensor patches = cut_series(f, model);
  Tensor read = patches;
  if (model.is("ForPretraining")) read = f.call("clone", {patches});
  const InModule encoder(f, "encoder", "PatchTSTEncoder");
  const Tensor hidden = placed(f, model, embedded(f, model, read));
  const Tensor made = stack(f, "layers", "PatchTSTEncoderLayer", model.layers, hidden,
                            [&](Tensor x, std::int64_t) { return block(f, model, x); });
  f.hand_out(made);
  return {made, patches};
}

/// One vector for each channel, or all of its tokens.
inline Tensor pooled(Forward& f, const Model& model, Tensor tokens) {
  if (model.summarises) return f.select(tokens, 2, 0);
  if (model.pooling == "mean") return f.call("mean", {tokens}, {{"dim", std::int64_t{2}}});
  if (model.pooling == "max") return f.call("amax", {tokens}, {{"dim", std::int64_t{2}}});
  return f.flatten(tokens, 2, 3);
}

/// Values to come, [N, future, channels], or the numbers of their distribution.
inline std::vector<Tensor> predicted(Forward& f, const Model& model, Tensor input, std::int64_t in) {
  const InModule inside(f, "head", "PatchTSTPredictionHead");
  std::vector<Tensor> made;
  if (model.shares_head) {
    made = projected(f, model, "projection", f.dropout("dropout", input, model.head_dropout), in, model.future);
  } else {
    const InModule list(f, "projections", "ModuleList");
    for (std::int64_t at = 0; at < model.channels; ++at) {
      const Tensor one = f.select(input, 1, at);
      const std::vector<Tensor> numbers = projected(f, model, std::to_string(at), one, in, model.future);
      for (const Tensor number : numbers) made.push_back(f.call("unsqueeze", {number}, {{"dim", std::int64_t{1}}}));
    }
    if (model.numbers == 0) made = {f.concatenate(made, 1)};
  }
  for (Tensor& each : made) each = f.permute(each, {0, 2, 1});
  return made;
}

inline void predict(Forward& f, const Model& model, Tensor tokens) {
  const bool all = model.pooling.empty() && !model.summarises;
  const std::int64_t in = model.width * (all ? model.patches() : 1);
  future_loss(f, model, predicted(f, model, pooled(f, model, tokens), in));
}

inline void pretrain(Forward& f, const Model& model, const Read& read) {
  Tensor made = 0;
  {
    const InModule inside(f, "head", "PatchTSTMaskPretrainHead");
    const Tensor dropped = f.dropout("dropout", read.tokens, model.head_dropout);
    made = f.linear("linear", dropped, model.width, model.patch, {.returned = true});
    if (model.summarises) made = f.slice(made, 2, 1, Forward::kRest);
  }
  patch_loss(f, made, read.patches);
}

/// A class, or numbers that describe the whole series.
inline void judge(Forward& f, const Model& model, Tensor tokens) {
  const bool classes = model.is("ForClassification");
  const InModule inside(f, "head", classes ? "PatchTSTClassificationHead" : "PatchTSTRegressionHead");
  const Tensor flat = f.flatten(pooled(f, model, tokens), 1, 2);
  const Tensor dropped = f.dropout("dropout", flat, model.head_dropout);
  const std::int64_t in = model.channels * model.width;
  const std::vector<Tensor> made = projected(f, model, classes ? "linear" : "projection", dropped, in, model.targets);
  if (model.numbers > 0) return distribution_loss(f, made);
  (void)f.call(classes ? "cross_entropy" : "mse_loss", {made.front()});
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  if (!config.status()) return;
  const Read read = body(f, model);
  if (model.is("ForPretraining")) pretrain(f, model, read);
  else if (model.is("ForClassification") || model.is("ForRegression")) judge(f, model, read.tokens);
  else if (!model.is("Model")) predict(f, model, read.tokens);
}

inline constexpr auto kClasses = std::to_array<ModelClass>({{"PatchTST", "patchtst", "model"}});
/// Published models, by width: of ETTh1, and the class's own.
inline constexpr auto kPublished = std::to_array<PublishedHeads>({{128, 16, 3}});

/// How long a series is and how many channels it has.
inline void series_of_tree(TreeFields& t) {
  constexpr std::int64_t kUsualContext = 512;
  const std::span<const std::int64_t> input = t.input();
  const bool given = input.size() == 2;
  const std::int64_t context = given ? input[0] : kUsualContext;
  std::int64_t channels = given ? input[1] : 1;
  const auto width = t.value("encoder.layers.0.self_attn.q_proj", "out_features");
  const std::string_view flat = t.has("/head.linear") ? "/head.linear" : "/head.projection";
  const auto read = t.value(flat, "in_features");
  if (width && read && *read % *width == 0) {
    if (t.class_name().ends_with("ForClassification") || t.class_name().ends_with("ForRegression")) {
      channels = *read / *width;
    }
  }
  const auto patch = t.value("encoder.embedder.input_embedding", "in_features").value_or(1);
  t.set("context_length", context);
  t.set("num_input_channels", channels);
  t.set("patch_length", patch);
  t.set("patch_stride", patch);
  t.assume("series of " + std::to_string(context) + " values and " + std::to_string(channels) +
           " channels, in patches that do not overlap, which the tree does not print");
}

/// What print(model) shows.
inline void read_tree(TreeFields& t) {
  series_of_tree(t);
  const std::string layer = "encoder.layers.0.";
  const auto width = t.value(layer + "self_attn.q_proj", "out_features");
  t.size("d_model", layer + "self_attn.q_proj", "out_features");
  t.count("num_hidden_layers", "encoder.layers");
  t.size("ffn_dim", layer + "ff.0", "out_features");
  t.flag("bias", layer + "ff.0");
  t.dropout("ff_dropout", layer + "ff.2");
  t.dropout("path_dropout", layer + "dropout_path1");
  t.dropout("positional_dropout", "encoder.positional_encoder.positional_dropout");
  t.dropout("head_dropout", "/head.dropout");
  t.set_string("norm_type", t.has(layer + "norm_sublayer1.batchnorm") ? "batchnorm" : "layernorm");
  t.there("channel_attention", layer + "norm_sublayer2");
  const bool numbers = t.has("/head.projection.proj");
  t.set_string("loss", numbers ? "nll" : "mse");
  const std::string head = numbers ? "/head.projection.proj.0" : "/head.projection";
  t.size("prediction_length", head, "out_features");
  t.size("num_targets", t.has("/head.linear") ? std::string("/head.linear") : head, "out_features");
  if (numbers) t.set_string("distribution_output", t.count_of("/head.projection.proj") == 3 ? "student_t" : "normal");
  t.heads_of_width({.published = kPublished, .usual_width = 32}, width.value_or(0));
}

inline constexpr Architecture kArchitecture = {.name = "patchtst",
                                               .model_types = names<"patchtst">,
                                               .usual_head = Head::own,
                                               .write = write,
                                               .classes = kClasses,
                                               .read_tree = read_tree};

}  // namespace patchtst

// PatchTSMixer: PatchTST's patches, mixed by feed-forward layers over their numbers, over patches and over channels.
// Source: transformers 5.16, models/patchtsmixer/modeling_patchtsmixer.py.

namespace patchtsmixer {

struct Model : series_parts_detail::Model {
  std::int64_t factor = 2;  ///< how much wider feed-forward layers are within
  bool gates = true;
  bool mixes_channels = false;
  bool places = false;  ///< adds positions
  double dropout = 0.2;
};

inline Model read(ConfigFields& config) {
  config.complete(R"({"patch_length": 8, "patch_stride": 8, "d_model": 8, "prediction_length": 16})");
  Model model;
  model.class_name = config.class_name();
  series_parts_detail::read_sizes(config, model);
  model.layers = config.layers_or("num_layers", model.layers);  // else num_hidden_layers, another name of it
  model.factor = config.size_or({"expansion_factor"}, 2);
  const std::string_view mode = config.text({"mode"}, "common_channel");
  if (mode != "common_channel" && mode != "mix_channel") config.fail("is not known", "mode");
  model.mixes_channels = mode == "mix_channel";
  model.gates = config.flag("gated_attn", true);
  const std::string_view norm = config.text({"norm_mlp"}, "LayerNorm");
  model.norms_batches = norm.find("atch") != std::string_view::npos;
  model.places = config.flag("use_positional_encoding", false);
  model.learns_positions = config.text({"positional_encoding_type"}, "sincos") == "random";
  model.dropout = config.number({"dropout"}, 0.2);
  model.head_dropout = config.number({"head_dropout"}, 0.2);
  const std::int64_t numbers = distribution_numbers(config);
  if (model.is("ForPrediction") && config.text({"loss"}, "mse") != "mse") model.numbers = numbers;
  if (config.flag("self_attn", false)) config.fail("is not known", "self_attn");
  if (const core::JsonValue* some = config.find("prediction_channel_indices");
      some != nullptr && !config.is_null("prediction_channel_indices")) {
    config.fail("is not known", "prediction_channel_indices");
  }
  config.ignore({"loss", "scaling", "norm_eps", "init_std", "mask_type", "random_mask_ratio", "mask_value",
                 "masked_loss", "num_forecast_mask_patches", "channel_consistent_masking", "unmasked_channel_indices",
                 "output_range", "head_aggregation", "num_parallel_samples", "num_patches", "patch_last",
                 "self_attn_heads"});
  return model;
}

/// One of a block's mixers: its norm, its feed-forward layers over the last axis of `turned`, and a gate.
template <typename Turned>
Tensor mixed(Forward& f, const Model& model, std::string_view name, std::string_view class_name, Tensor input,
             std::int64_t size, Turned turned) {
  const InModule inside(f, name, class_name);
  Tensor x = 0;
  {
    const InModule norm(f, "norm", "PatchTSMixerNormLayer");
    x = model.norms_batches ? f.unflatten(series_parts_detail::normed(f, model, "norm", f.flatten(input, 0, 1)), 0,
                                          {-1, model.channels})
                            : f.layer_norm("norm", input, model.width);
  }
  x = turned(x);
  // Channels are gated before they are mixed, all else behind.
  const bool gates_first = name == "channel_feature_mixer";
  const auto gated = [&](Tensor of) {
    const InModule gate(f, "gating_block", "PatchTSMixerGatedAttention");
    return f.multiply(of, f.call("softmax", {f.linear("attn_layer", of, size, size)}));
  };
  if (model.gates && gates_first) x = gated(x);
  {
    const InModule mlp(f, "mlp", "PatchTSMixerMLP");
    const Tensor open = f.activation("gelu", f.linear("fc1", x, size, size * model.factor), "gelu");
    x = f.linear("fc2", f.dropout("dropout1", open, model.dropout), size * model.factor, size);
    x = f.dropout("dropout2", x, model.dropout);
  }
  if (model.gates && !gates_first) x = gated(x);
  return f.add(turned(x), input);
}

inline Tensor block(Forward& f, const Model& model, Tensor hidden) {
  const auto channels_last = [&](Tensor x) { return f.permute(x, {0, 3, 2, 1}); };
  const auto patches_last = [&](Tensor x) { return f.permute(x, {0, 1, 3, 2}); };
  const auto as_it_is = [](Tensor x) { return x; };
  if (model.mixes_channels) {
    hidden = mixed(f, model, "channel_feature_mixer", "PatchTSMixerChannelFeatureMixerBlock", hidden, model.channels,
                   channels_last);
  }
  hidden = mixed(f, model, "patch_mixer", "PatchMixerBlock", hidden, model.patches(), patches_last);
  return mixed(f, model, "feature_mixer", "FeatureMixerBlock", hidden, model.width, as_it_is);
}

inline void write(ConfigFields& config, Head, Forward& f) {
  const Model model = read(config);
  const bool known = model.is("Model") || model.is("ForPrediction") || model.is("ForPretraining");
  if (!known) {
    config.fail(
        "only ForPrediction, ForPretraining and the model without a head are known; the field architectures names the "
        "class");
  }
  if (!config.status()) return;
  Tensor patches = 0;
  Tensor hidden = 0;
  {
    const InModule inside(f, model.is("Model") ? "" : "model", "PatchTSMixerModel");
    patches = series_parts_detail::cut_series(f, model);
    const InModule encoder(f, "encoder", "PatchTSMixerEncoder");
    const Tensor read = model.is("ForPretraining") ? f.call("clone", {patches}) : patches;
    hidden = f.linear("patcher", read, model.patch, model.width);
    if (model.places) {
      const InModule positions(f, "positional_encoder", "PatchTSMixerPositionalEncoding");
      const Sizes table = {model.patches(), model.width};
      hidden = f.add(hidden, f.parameter("position_enc", table, !model.learns_positions));
    }
    const InModule mixers(f, "mlp_mixer_encoder", "PatchTSMixerBlock");
    hidden = stack(f, "mixers", "PatchTSMixerLayer", model.layers, hidden,
                   [&](Tensor x, std::int64_t) { return block(f, model, x); });
    f.hand_out(hidden);
  }
  if (model.is("Model")) return;
  const InModule head(f, "head",
                      model.is("ForPrediction") ? "PatchTSMixerForPredictionHead" : "PatchTSMixerPretrainHead");
  if (model.is("ForPretraining")) {
    const Tensor dropped = f.dropout("dropout_layer", hidden, model.head_dropout);
    return series_parts_detail::patch_loss(
        f, f.linear("base_pt_block", dropped, model.width, model.patch, {.returned = true}), patches);
  }
  const Tensor flat = f.dropout("dropout_layer", f.flatten(hidden, 2, 3), model.head_dropout);
  std::vector<Tensor> made = series_parts_detail::projected(f, model, "base_forecast_block", flat,
                                                            model.patches() * model.width, model.future);
  for (Tensor& each : made) each = f.permute(each, {0, 2, 1});
  series_parts_detail::future_loss(f, model, made);
}

inline constexpr Architecture kArchitecture = {
    .name = "patchtsmixer", .model_types = names<"patchtsmixer">, .usual_head = Head::own, .write = write};

}  // namespace patchtsmixer

}  // namespace gpumem::architectures
