// PatchTSMixer: PatchTST's patches, mixed by feed-forward layers over their numbers, over patches and over channels.
// Source: transformers 5.16, models/patchtsmixer/modeling_patchtsmixer.py.
#pragma once

#include <string>
#include <vector>

#include "gpumem/architectures/series_parts.hpp"

namespace gpumem::architectures {

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
